// sliding_bank: many filters at once; the lanes of a warp share the outputs of a pixel, each with its weights in registers.
//
// A group of LANES lanes computes SLOTS = LANES · PER_LANE outputs of one pixel, lane l those of l, l + LANES, …, and walks
// along a run of RUN pixels of ROWS output rows. Samples come from shared memory, where the rows under a run lie side by
// side: one read of 16 bytes brings a column of them to all lanes of a group at once, and a window keeps the columns that
// it shares with the next. Weights are read once by a block, which goes down a strip. So a multiply-add costs no load:
//
//     per pixel and lane, stride 1    27 · PER_LANE multiply-adds, 1.5 reads of 16 bytes, PER_LANE stores of whole lines
//
// More filters than SLOTS, and channels that are filtered separately, take several passes, in neighbouring blocks, which
// find the picture in the L2. Sums are added in the order of sliding_direct.cu: row, column, channel. What binds is the
// register file: two or three operands of each multiply-add are read from it (docs/banks.md).
//
// Macros that decide what is computed: those of responses.cuh (OUT_CHANNELS is not used), and
//     STRIDE    1 2 3
//     BATCH     flag    pictures lie one behind another, each has a line of the grid's y axis
// Macros that change speed alone (BankShape of sliding_bank.py):
//     LANES       8, 16 or 32
//     PER_LANE    outputs of a lane
//     RUN         pixels of a run, a multiple of 3
//     WARPS       of a block
//     MIN_BLOCKS  that must fit a multiprocessor: caps the registers
#include "responses.cuh"

constexpr int THREADS = WARPS * WARP;
constexpr int SLOTS = LANES * PER_LANE;
constexpr int ROWS = STRIDE == 1 ? 2 : 1;  // output rows that share their reads
constexpr int COLUMN_ROWS = 4;             // rows of a column in shared memory: one read
static_assert((ROWS - 1) * STRIDE + KERNEL_SIZE <= COLUMN_ROWS, "the rows under ROWS outputs are one read");
constexpr int SHARED = STRIDE < KERNEL_SIZE ? KERNEL_SIZE - STRIDE : 0;  // columns that a window shares with the next
constexpr int TURNS = KERNEL_SIZE;                                       // pixels after which each is back in its place
static_assert(RUN % TURNS == 0, "a run ends with a turn");
static_assert(IN_GROUP == CHANNELS, "a launch reads what its outputs sum");

constexpr int TILE = THREADS / LANES * RUN;  // output pixels of a block across
constexpr int COLUMNS = (TILE - 1) * STRIDE + KERNEL_SIZE;
constexpr int PLACES = COLUMNS * CHANNELS;
constexpr int PLACES_PER_THREAD = (PLACES + THREADS - 1) / THREADS;

struct BankGeometry : Geometry {
    int tiles_across, rows_per_strip;
    int filters, passes_per_channel, passes;  // filters of a channel, or of all where they are summed
};

struct __align__(16) Column {
    float row[COLUMN_ROWS];
};

constexpr int USED_ROWS = (ROWS - 1) * STRIDE + KERNEL_SIZE;  // of a column

// What a thread brings to a patch in every step: the samples of some columns and channels, found once.
struct Share {
    long long offset[PLACES_PER_THREAD];  // of a sample in its row; OUTSIDE where the border supplies it
    bool columns_inside;                  // all of the tile's

    __device__ __forceinline__ Share(int first_column, const Geometry &size) {
        columns_inside = first_column >= 0 && first_column + COLUMNS <= size.width;
#pragma unroll
        for (int k = 0; k < PLACES_PER_THREAD; ++k) {
            const int e = k * THREADS + threadIdx.x;
            const int column = source_index<border>(first_column + e / CHANNELS, size.width);
            offset[k] = column == OUTSIDE ? OUTSIDE : static_cast<long long>(column) * PIXEL_SAMPLES + e % CHANNELS;
        }
    }
    // Start to copy the used rows of a patch, the first of them at row `first_row` of the padded picture.
    __device__ __forceinline__ void fetch(Column *patch, const INPUT *image, int first_row, const Geometry &size) const {
        const long long pitch = static_cast<long long>(size.width) * PIXEL_SAMPLES;
        const bool inside = columns_inside && first_row >= 0 && first_row + USED_ROWS <= size.height;
#pragma unroll
        for (int k = 0; k < PLACES_PER_THREAD; ++k) {
            const int e = k * THREADS + threadIdx.x;
            if (e >= PLACES) continue;
            if (inside) {
                const INPUT *const from = image + first_row * pitch + offset[k];
#pragma unroll
                for (int r = 0; r < USED_ROWS; ++r) copy_sample(from + r * pitch, &patch[e].row[r]);
                continue;
            }
#pragma unroll 1
            for (int r = 0; r < USED_ROWS; ++r) {
                const int row = source_index<border>(first_row + r, size.height);
                if (row == OUTSIDE || offset[k] == OUTSIDE)
                    patch[e].row[r] = 0.0f;
                else
                    copy_sample(image + row * pitch + offset[k], &patch[e].row[r]);
            }
        }
    }
};

// The window of ROWS outputs: column v of channel i, three of them in turns.
struct Window {
    Column column[KERNEL_SIZE][CHANNELS];

    __device__ __forceinline__ void read(int slot, const Column *from) {
#pragma unroll
        for (int i = 0; i < CHANNELS; ++i) column[slot][i] = from[i];
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sliding_bank(const INPUT *__restrict__ image, OUTPUT *__restrict__ out, const __grid_constant__ BankGeometry size,
                 const float *__restrict__ weights) {
    __shared__ Column patches[2][PLACES];
#ifdef BATCH
    image += picture_offset(size.height, size.width, PIXEL_SAMPLES);
    out += picture_offset(size.out_height, size.out_width, OUT_SAMPLES);
#endif
    const int pass = blockIdx.x % size.passes, tile = blockIdx.x / size.passes;
    const int first_x = tile % size.tiles_across * TILE;
    const int first_y = tile / size.tiles_across * size.rows_per_strip;
    const int end_y = min(first_y + size.rows_per_strip, size.out_height);
    const int channel = pass / size.passes_per_channel, first_filter = pass % size.passes_per_channel * SLOTS;
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const int x = first_x + group * RUN;  // of this group's run

    // weights[pass][direction][slot][row][column][channel]
    float weight[DIRECTIONS][PER_LANE][TAPS][CHANNELS];
#pragma unroll
    for (int d = 0; d < DIRECTIONS; ++d)
#pragma unroll
        for (int k = 0; k < PER_LANE; ++k)
#pragma unroll
            for (int tap = 0; tap < DEPTH; ++tap) {
                float &value = weight[d][k][tap / CHANNELS][tap % CHANNELS];
                value = weights[((pass * DIRECTIONS + d) * DEPTH + tap) * SLOTS + k * LANES + lane];
                keep_in_register(value);
            }

    image += channel;
    out += channel * size.filters + first_filter + lane;
    const int filters_left = size.filters - first_filter - lane;  // of this lane: output k is one if k·LANES is below

    const Share share(first_x * STRIDE - size.padding, size);
    const auto fetch_step = [&](int turn, int y) {
        share.fetch(patches[turn], image, y * STRIDE - size.padding, size);
    };
    fetch_step(0, first_y);
    const long long pitch = static_cast<long long>(size.out_width) * OUT_SAMPLES;
    const int pixels = min(RUN, size.out_width - x);  // of this run
    OUTPUT *row_at = out + first_y * pitch + static_cast<long long>(x) * OUT_SAMPLES;
    int turn = 0;
    for (int y = first_y; y < end_y; y += ROWS, turn ^= 1, row_at += ROWS * pitch) {
        wait_for_copies();
        __syncthreads();  // this patch is complete, and no thread reads the other any more
        if (y + ROWS < end_y) fetch_step(turn ^ 1, y + ROWS);
        const int rows = min(ROWS, end_y - y);
        OUTPUT *pixel = row_at;

        const Column *const run = patches[turn] + group * RUN * STRIDE * CHANNELS;
        Window window;
#pragma unroll
        for (int v = 0; v < SHARED; ++v) window.read(v, run + v * CHANNELS);
#pragma unroll 1
        for (int j = 0; j < pixels; j += TURNS) {
#pragma unroll
            for (int step = 0; step < TURNS; ++step) {
                const int first = step * STRIDE;  // the window's first column, counted from that of j
#pragma unroll
                for (int v = SHARED; v < KERNEL_SIZE; ++v)
                    window.read((first + v) % KERNEL_SIZE, run + (j * STRIDE + first + v) * CHANNELS);
                float sum[ROWS][PER_LANE][DIRECTIONS] = {};
#pragma unroll
                for (int u = 0; u < KERNEL_SIZE; ++u)
#pragma unroll
                    for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
                        for (int i = 0; i < CHANNELS; ++i)
#pragma unroll
                            for (int row = 0; row < ROWS; ++row)
#pragma unroll
                                for (int k = 0; k < PER_LANE; ++k)
#pragma unroll
                                    for (int d = 0; d < DIRECTIONS; ++d)
                                        sum[row][k][d] = multiply_add(
                                            weight[d][k][u * KERNEL_SIZE + v][i],
                                            window.column[(first + v) % KERNEL_SIZE][i].row[row * STRIDE + u],
                                            sum[row][k][d]);
                if (j + step < pixels) {
#pragma unroll
                    for (int row = 0; row < ROWS; ++row) {
                        if (row >= rows) continue;
#pragma unroll
                        for (int k = 0; k < PER_LANE; ++k) {
                            if (k * LANES >= filters_left) continue;
                            OUTPUT sample;
                            store_sample<store>(join([&](int d) { return sum[row][k][d]; }), sample);
                            __stcs(pixel + row * pitch + k * LANES, sample);
                        }
                    }
                }
                pixel += OUT_SAMPLES;
            }
        }
    }
}
