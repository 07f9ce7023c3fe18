// sliding_bank: many filters at once; a block keeps their weights in shared memory, a thread the windows of its pixels.
//
// A thread holds in registers what lies under ACROSS neighbouring pixels of ROWS output rows, and goes through the filters
// in groups. LANES lanes share the pixels and the outputs of a group: PER_LANE neighbouring outputs each, whose weights by
// one tap are one read of 16 bytes. So with a read go WEIGHTS_PER_READ · ACROSS · ROWS multiply-adds, of which those that follow one
// another share a weight, and the lanes of a pixel store whole sectors:
//
//     per tap, stride 1    1 read of 16 bytes, 8 · ACROSS multiply-adds in float32, 4 · ACROSS in float64
//
// A block reads the weights once and goes down a strip; what lies under its next outputs is copied to shared memory
// meanwhile. Strips are short, so that the blocks under way at a time write neighbouring lines. More groups than GROUPS,
// and channels that are filtered separately, take several passes, in neighbouring blocks, which find the picture in the
// L2. Sums are added in the order of sliding_direct.cu: row, column, channel.
//
// Macros that decide what is computed: those of responses.cuh (OUT_CHANNELS is not used), and
//     STRIDE    1 2 3
//     BATCH     flag    pictures lie one behind another, each has a line of the grid's y axis
// Macros that change speed alone (BankShape of sliding_bank.py):
//     LANES       that share a pixel: 2, 4 or 8
//     GROUPS      of outputs, in a pass
//     ACROSS      pixels of a thread
//     WARPS       of a block
//     MIN_BLOCKS  that must fit a multiprocessor: caps the registers
#include "responses.cuh"

constexpr int WEIGHTS_PER_READ = 16 / sizeof(Real);  // weights in one read
constexpr int THREADS = WARPS * WARP;
constexpr int PER_LANE = WEIGHTS_PER_READ / DIRECTIONS;
constexpr int SLOTS = LANES * PER_LANE;    // outputs of a group
constexpr int ROWS = STRIDE == 1 ? 2 : 1;  // output rows that share their reads
constexpr int COLUMN_ROWS = 4;             // rows of a column in shared memory: one read, in float64 two
constexpr int USED_ROWS = (ROWS - 1) * STRIDE + KERNEL_SIZE;  // of a column
static_assert(USED_ROWS <= COLUMN_ROWS, "the rows under ROWS outputs are read together");
static_assert(IN_GROUP == CHANNELS, "a launch reads what its outputs sum");

constexpr int HELD = (ACROSS - 1) * STRIDE + KERNEL_SIZE;  // columns under the pixels of a thread
constexpr int TILE = THREADS / LANES * ACROSS;             // output pixels of a block across
constexpr int COLUMNS = (TILE - 1) * STRIDE + KERNEL_SIZE;
constexpr int PLACES = COLUMNS * CHANNELS;
constexpr int PLACES_PER_THREAD = (PLACES + THREADS - 1) / THREADS;
constexpr int WEIGHT_READS = GROUPS * DEPTH * LANES;

struct BankGeometry : Geometry {
    int tiles_across, rows_per_strip;
    int filters, passes_per_channel, passes;  // filters of a channel, or of all where they are summed
};

struct __align__(16) WeightRead {
    Real value[DIRECTIONS][PER_LANE];
};

struct alignas(PER_LANE * sizeof(OUTPUT)) Samples {
    OUTPUT sample[PER_LANE];

    __device__ __forceinline__ void store_at(OUTPUT *to) const {
        if (sizeof(Samples) == sizeof(uint4))
            store_at_once(to, *reinterpret_cast<const uint4 *>(sample));
        else if (sizeof(Samples) == sizeof(uint2))
            store_at_once(to, *reinterpret_cast<const uint2 *>(sample));
        else if (sizeof(Samples) == sizeof(unsigned))
            store_at_once(to, *reinterpret_cast<const unsigned *>(sample));
        else
            *reinterpret_cast<Samples *>(to) = *this;
    }
};

struct __align__(16) Column {
    Real row[COLUMN_ROWS];
};

// Start to copy the used rows of a patch, whose first sample is that of a row and a column of the padded picture. Away from
// the picture's edges every thread takes every THREADS-th sample of a row, so that one address serves for all of them.
__device__ __forceinline__ void fetch(Column *patch, const INPUT *image, int first_row, int first_column,
                                      const Geometry &size) {
    const long long pitch = static_cast<long long>(size.width) * PIXEL_SAMPLES;
    if (first_row >= 0 && first_row + USED_ROWS <= size.height && first_column >= 0 &&
        first_column + COLUMNS <= size.width) {
        constexpr int APART = CHANNELS == PIXEL_SAMPLES ? 1 : PIXEL_SAMPLES;  // samples that are copied
        const int place = threadIdx.x;
        const INPUT *from =
            image + first_row * pitch + static_cast<long long>(first_column) * PIXEL_SAMPLES + place * APART;
#pragma unroll
        for (int r = 0; r < USED_ROWS; ++r, from += pitch)
#pragma unroll
            for (int k = 0; k < PLACES_PER_THREAD; ++k)
                if (k * THREADS + place < PLACES)
                    copy_sample(from + k * THREADS * APART, &patch[k * THREADS + place].row[r]);
        return;
    }
    long long row_at[USED_ROWS];
#pragma unroll
    for (int r = 0; r < USED_ROWS; ++r) {
        const int row = source_index<border>(first_row + r, size.height);
        row_at[r] = row == OUTSIDE ? OUTSIDE : row * pitch;
    }
#pragma unroll 1
    for (int e = threadIdx.x; e < PLACES; e += THREADS) {
        const int column = source_index<border>(first_column + e / CHANNELS, size.width);
        const INPUT *const from = image + static_cast<long long>(column) * PIXEL_SAMPLES + e % CHANNELS;
#pragma unroll
        for (int r = 0; r < USED_ROWS; ++r) {
            if (row_at[r] == OUTSIDE || column == OUTSIDE)
                patch[e].row[r] = Real(0);
            else
                copy_sample(from + row_at[r], &patch[e].row[r]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sliding_bank(const INPUT *__restrict__ image, OUTPUT *__restrict__ out, const __grid_constant__ BankGeometry size,
                 const WeightRead *__restrict__ weights) {
    __shared__ Column patches[2][PLACES];
    __shared__ WeightRead shared_weights[WEIGHT_READS];
#ifdef BATCH
    image += picture_offset(size.height, size.width, PIXEL_SAMPLES);
    out += picture_offset(size.out_height, size.out_width, OUT_SAMPLES);
#endif
    const int pass = blockIdx.x % size.passes, tile = blockIdx.x / size.passes;
    const int first_x = tile % size.tiles_across * TILE, first_y = tile / size.tiles_across * size.rows_per_strip;
    const int end_y = min(first_y + size.rows_per_strip, size.out_height);
    const int channel = pass / size.passes_per_channel, first_filter = pass % size.passes_per_channel * GROUPS * SLOTS;
    const int lane = threadIdx.x % LANES, first_column = threadIdx.x / LANES * ACROSS;  // of this thread's pixels

    // weights[pass][group][row][column][channel][lane]
    for (int i = threadIdx.x; i < WEIGHT_READS; i += THREADS) shared_weights[i] = weights[pass * WEIGHT_READS + i];

    image += channel;
    const int first_output = first_filter + lane * PER_LANE;  // of this lane, in the first group
    out += channel * size.filters + first_output;
    const bool aligned = OUT_SAMPLES % PER_LANE == 0 && reinterpret_cast<unsigned long long>(out) % sizeof(Samples) == 0;

    const long long pitch = static_cast<long long>(size.out_width) * OUT_SAMPLES;
    const int x = first_x + first_column, pixels = min(ACROSS, size.out_width - x);  // of this thread: none, or some
    OUTPUT *const run = out + static_cast<long long>(x) * OUT_SAMPLES;
    const auto fetch_rows = [&](int turn, int y) {
        fetch(patches[turn], image, y * STRIDE - size.padding, first_x * STRIDE - size.padding, size);
    };
    fetch_rows(0, first_y);
    for (int y = first_y, turn = 0; y < end_y; y += ROWS, turn ^= 1) {
        wait_for_copies();
        __syncthreads();  // this patch is complete, and no thread reads the other any more
        if (y + ROWS < end_y) fetch_rows(turn ^ 1, y + ROWS);
        if (pixels <= 0) continue;
        const int rows = min(ROWS, end_y - y);
        const bool whole_run = aligned && rows == ROWS && pixels == ACROSS;

        Column window[HELD][CHANNELS];
        const Column *const from = patches[turn] + first_column * STRIDE * CHANNELS;
#pragma unroll
        for (int v = 0; v < HELD; ++v)
#pragma unroll
            for (int i = 0; i < CHANNELS; ++i) window[v][i] = from[v * CHANNELS + i];

        const WeightRead *tap = shared_weights + lane;
        OUTPUT *group_at = run + y * pitch;
        int left = size.filters - first_output;
#pragma unroll 1
        for (int group = 0; group < GROUPS; ++group, group_at += SLOTS, left -= SLOTS) {
            Sum sum[ACROSS][ROWS][DIRECTIONS][PER_LANE] = {};
#pragma unroll
            for (int u = 0; u < KERNEL_SIZE; ++u)
#pragma unroll
                for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
                    for (int i = 0; i < CHANNELS; ++i, tap += LANES) {
                        const WeightRead weight = *tap;
#pragma unroll
                        for (int d = 0; d < DIRECTIONS; ++d)
#pragma unroll
                            for (int k = 0; k < PER_LANE; ++k)
#pragma unroll
                                for (int at = 0; at < ACROSS; ++at)
#pragma unroll
                                    for (int row = 0; row < ROWS; ++row)
                                        sum[at][row][d][k] =
                                            multiply_add(weight.value[d][k],
                                                         window[at * STRIDE + v][i].row[row * STRIDE + u],
                                                         sum[at][row][d][k]);
                    }
            const bool whole = whole_run && left >= PER_LANE;
#pragma unroll
            for (int row = 0; row < ROWS; ++row)
#pragma unroll
                for (int at = 0; at < ACROSS; ++at) {
                    Samples samples;
#pragma unroll
                    for (int k = 0; k < PER_LANE; ++k)
                        store_sample<store>(join([&](int d) { return sum[at][row][d][k]; }), samples.sample[k]);
                    OUTPUT *const to = group_at + row * pitch + at * OUT_SAMPLES;
                    if (whole) {
                        samples.store_at(to);
                        continue;
                    }
#pragma unroll
                    for (int k = 0; k < PER_LANE; ++k)
                        if (row < rows && at < pixels && k < left) to[k] = samples.sample[k];
                }
        }
    }
}
