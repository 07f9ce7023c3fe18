// sliding: warps walk down strips of the picture, its rows in shared memory of their own.
//
// A block is one warp. It computes WARP·THREAD_PIXELS output pixels across and a strip of rows down, in steps of some
// rows. The rows of the padded picture are copied asynchronously into the warp's slots, some steps ahead of their use or
// none (above stride 3 only those that windows meet). Each lane reads what it needs of a row from there once and adds it
// to the sums of all output rows that the row touches, which stay in registers. A complete output row goes back through
// shared memory, so that whole lines are written. No warp waits for another.
//
// Each step of the way here, with what it was expected to gain and what it did, stands in docs/kernels-tried.md.
//
// Variants:
//     sliding_sums.cuh    one window per lane: FMA, or exact integers four products at a time (dp4a)
//     sliding_forms.cuh   the same for one filter on every plane, by fewer operations
//     sliding_mma.cuh     the windows of a warp as one matrix: the tensor cores
//     mend.cuh            float16 on the tensor cores, and forms of float pictures: outputs that are not finite are
//                         computed again
//     sliding_rows.cuh    rows that start on 16 bytes, and rows that start anywhere
//
// Macros that decide what is computed (a flag is defined, or not):
//     INPUT, OUTPUT     uint8 … float16 float32 float64 sample types
//     USES_FLOAT16, _FLOAT64   flags                    one of them is that type
//     WIDE_SUMS         flag                            sums in float64 (sums.cuh)
//     BORDER            zero replicate reflect …        what stands outside the picture
//     COMBINE           single magnitude maximum        how the responses of DIRECTIONS become one value
//     STORE             abs clip raw                    how a value becomes a sample
//     DIRECTIONS        1 2 8                           filters per output channel
//     OUT_CHANNELS      3 1                             output channels (luma: 1)
//     IN_GROUP          3 1                             input channels that an output channel sums (each: 1)
//     STRIDE            1 2 3 …
//     WHOLE_WEIGHTS     flag                            8-bit picture, whole weights: exact integer sums
//     SHORT_SUMS        flag                            the squares of two such sums add up below 880 million
//     USES_MMA          flag                            sums by the tensor cores (8-bit pictures, or float16)
//     FORM              taps gradient ring_of_three …   one filter for every plane, by a form (sliding_forms.cuh, whose
//                                                       macros CHANNEL_SUM and BY_SIZE go with it)
//     MENDS             flag                            outputs that are not finite are computed again (mend.cuh)
//     BATCH             flag                            pictures one behind another: one line of the grid's y axis each
//     EXACT_ROOT        flag                            16-bit magnitudes of whole sums are rounded exactly (sums.cuh)
// Macros that say how the arrays lie:
//     ALIGNED_IN, _OUT  0 1                             1 where every row of picture, of output, starts on 16 bytes
//     HALO_BYTES        0 to 127                        ALIGNED_IN: bytes of the left padding, modulo 128
// Macros that change speed alone: THREAD_PIXELS, STEP_ROWS, STEPS_AHEAD (sliding_tiles.py: StripTile)
#include "sums.cuh"
#ifdef MENDS
#include "mend.cuh"
__shared__ int block_is_spoilt;  // set by any lane whose sums are not all finite
#endif

constexpr int WARP = 32;   // threads of a block
constexpr int CHUNK = 16;  // bytes of one asynchronous copy
constexpr int LINE = 128;  // bytes of a cache line, and of all banks of shared memory
constexpr int WORD = 4;

constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// --- a row of the picture in shared memory, bytes -----------------------------------------------------------------
constexpr int SAMPLE_BYTES = sizeof(INPUT);
constexpr int PIXEL_BYTES = CHANNELS * SAMPLE_BYTES;
constexpr int LEAD = (LINE - HALO_BYTES) % LINE;  // from the slot's start, or Row::bytes, to lane 0's window
constexpr int MOST_LEAD = ALIGNED_IN ? LEAD : LINE - 1;
constexpr int THREAD_BYTES = THREAD_PIXELS * STRIDE * PIXEL_BYTES;  // from one lane's window to the next
constexpr int WINDOW_PIXELS = (THREAD_PIXELS - 1) * STRIDE + KERNEL_SIZE;
constexpr int WINDOW_END = LEAD + WINDOW_PIXELS * PIXEL_BYTES;
constexpr int USED_BYTES = (WARP - 1) * THREAD_BYTES + MOST_LEAD + WINDOW_PIXELS * PIXEL_BYTES;
// The tensor cores read up to a chunk further; what is shifted, a word.
constexpr int ROW_BYTES = round_up(USED_BYTES + CHUNK + (ALIGNED_IN ? 0 : WORD), LINE);
static_assert(THREAD_BYTES % WORD == 0, "a lane's window must start on a whole word");

// --- slots: the input rows of this step, and those of the steps under way -------------------------------------------
constexpr int ROWS_OF_OUTPUT = STRIDE < KERNEL_SIZE ? STRIDE : KERNEL_SIZE;  // input rows that an output row adds to those before
constexpr int STEP_INPUT_ROWS = STEP_ROWS * ROWS_OF_OUTPUT;
constexpr int SLOTS = 1 + STEPS_AHEAD;
constexpr int SLOT_BYTES = STEP_INPUT_ROWS * ROW_BYTES;
constexpr int PENDING = STRIDE == 1 ? 2 : STRIDE == 2 ? 1 : 0;  // output rows that wait for more input rows

// --- a row of the output ----------------------------------------------------------------------------------------------
constexpr int THREAD_SAMPLES = THREAD_PIXELS * OUT_CHANNELS;
constexpr int THREAD_OUT_BYTES = THREAD_SAMPLES * sizeof(OUTPUT);
constexpr int OUT_ROW_BYTES = WARP * THREAD_OUT_BYTES;
constexpr int STAGE_ROW_BYTES = round_up(OUT_ROW_BYTES + (ALIGNED_OUT ? 0 : CHUNK), CHUNK);
static_assert(THREAD_OUT_BYTES % WORD == 0, "a lane's output must be whole words");

struct StripGeometry : Geometry {
    int tiles_across, rows_per_strip;
};

// --- from responses to samples ----------------------------------------------------------------------------------------
#ifdef WHOLE_WEIGHTS
typedef int Response;
// Where a float is wanted, sums start at the bits of 1.5·2^23: their bits, read as a float, are that plus the sum.
constexpr float SUM_ORIGIN = 12582912.0f;
constexpr bool WANTS_FLOAT = combine == Combine::magnitude || store == Store::raw;
#ifdef SHORT_SUMS
constexpr Response START = 0;
#else
constexpr Response START = WANTS_FLOAT ? 0x4B400000 : 0;
#endif
__device__ __forceinline__ float to_value(int response) { return __int_as_float(response) - SUM_ORIGIN; }

// sqrt(first² + second²) as 8 bits. Scaled such that what is too long to be one is clipped to 1 on the way, at no cost.
__device__ __forceinline__ uint8 length_byte(int first, int second) {
    constexpr float SCALE = 257.0f / 65536.0f;  // a little more than 1/255; exact times any sum, and times SUM_ORIGIN
#ifdef SHORT_SUMS
    // As the low bits of a float that is 2^23 more. Squares past 2^23 run into its exponent: a larger float, which is
    // clipped all the same, and a finite one while they are below 880 million.
    const int square = second * second + (first * first + static_cast<int>(TWO_POW_23_BITS));
    const float clipped = clipped_multiply_add(__int_as_float(square), SCALE * SCALE, -TWO_POW_23 * SCALE * SCALE);
#else
    const float x = fmaf(__int_as_float(first), SCALE, -SUM_ORIGIN * SCALE);
    const float y = fmaf(__int_as_float(second), SCALE, -SUM_ORIGIN * SCALE);
    const float clipped = clipped_multiply_add(y, y, x * x);
#endif
    return static_cast<uint8>(__float_as_uint(fmaf(approximate_root(clipped), 1.0f / SCALE, TWO_POW_23)));
}
#else
typedef Sum Response;
constexpr Response START = 0;
__device__ __forceinline__ Sum to_value(Sum response) { return response; }
#endif

// sqrt(first² + second²).
__device__ __forceinline__ Sum length(Sum first, Sum second) {
#if defined(WHOLE_WEIGHTS)
    const float square = fmaf(second, second, first * first);
    return store == Store::raw ? sqrtf(square) : approximate_root(square);
#elif defined(EXACT_ROOT) && !defined(WIDE_SUMS)
    return whole_length(first, second);
#else
    return length_of(first, second);
#endif
}

// Four, two or one values as the samples of one output word.
__device__ __forceinline__ unsigned pack(const float *value, const float32 *) {
    return __float_as_uint(stored_float<store>(value[0]));
}
__device__ __forceinline__ unsigned pack(const float *value, const uint16 *) {
    uint16 low, high;
    store_sample<store>(value[0], low);
    store_sample<store>(value[1], high);
    return low | static_cast<unsigned>(high) << 16;
}
__device__ __forceinline__ unsigned pack(const float *value, const uint8 *) {
    unsigned bits[WORD];
#pragma unroll
    for (int i = 0; i < WORD; ++i)
        bits[i] = __float_as_uint(within<store>(value[i], 255.0f) + TWO_POW_23);
    return __byte_perm(__byte_perm(bits[0], bits[1], 0x0040), __byte_perm(bits[2], bits[3], 0x0040), 0x5410);
}
#ifdef USES_FLOAT16
__device__ __forceinline__ unsigned pack(const float *value, const float16 *) {
    const unsigned low = __half_as_ushort(__float2half_rn(stored_float<store>(value[0])));
    return low | static_cast<unsigned>(__half_as_ushort(__float2half_rn(stored_float<store>(value[1])))) << 16;
}
#endif

// Where input row i of a step lies, as rows of the padded picture after the step's first.
__device__ __forceinline__ constexpr int place_in_step(int i) { return i / ROWS_OF_OUTPUT * STRIDE + i % ROWS_OF_OUTPUT; }

#include "sliding_rows.cuh"

// --- how a row is summed ------------------------------------------------------------------------------------------------
#ifdef USES_MMA
#include "sliding_mma.cuh"
#else
#include "sliding_sums.cuh"
#endif

extern "C" __global__ void __launch_bounds__(WARP, 1)
    sliding(const INPUT *__restrict__ image, OUTPUT *__restrict__ out, const __grid_constant__ StripGeometry size,
            const __grid_constant__ Weights weights
#ifdef MENDS
            , const Real *__restrict__ plain_weights
#endif
    ) {
    __shared__ __align__(LINE) unsigned char rows_of_picture[SLOTS * SLOT_BYTES];
    __shared__ __align__(CHUNK) unsigned char stage[STEP_ROWS * STAGE_ROW_BYTES];
#ifdef BATCH
    image += picture_offset(size.height, size.width, CHANNELS);
    out += picture_offset(size.out_height, size.out_width, OUT_CHANNELS);
#endif
    const int lane = threadIdx.x;
    const int first_x = blockIdx.x % size.tiles_across * WARP * THREAD_PIXELS;
    const int first_y = blockIdx.x / size.tiles_across * size.rows_per_strip;
    const int rows = min(size.rows_per_strip, size.out_height - first_y);
    const Span span = span_of(first_x, size);
    const bool has_border = span.before + span.after > 0;
    const BorderSample own = has_border ? border_sample(lane, span, size.width) : BorderSample{NOWHERE, NOWHERE};
    const bool is_wide = has_border && (span.before + span.after > WARP || __any_sync(~0u, own.from == FAR));
    const unsigned out_bytes = min(size.out_width - first_x, WARP * THREAD_PIXELS) * OUT_CHANNELS * int(sizeof(OUTPUT));
    const long long out_pitch = static_cast<long long>(size.out_width) * OUT_CHANNELS * int(sizeof(OUTPUT));
    // Of the first row of a step, which may come before the strip.
    unsigned char *out_row = reinterpret_cast<unsigned char *>(out + static_cast<long long>(first_x) * OUT_CHANNELS);
    out_row += (first_y - PENDING) * out_pitch;
#ifdef MENDS
    if (lane == 0) block_is_spoilt = 0;
    // What lies beyond the samples that arrive is multiplied by zero weights: it must not be a NaN.
    fill_zeros(rows_of_picture, SLOTS * SLOT_BYTES, lane);
    __syncwarp();
#endif

    // A step is STEP_INPUT_ROWS rows of the padded picture. Each call starts the copies of one more.
    const int first_position = first_y * STRIDE - size.padding;
    int position = first_position, fetch_slot = 0;
    const int end = first_position + (rows - 1) * STRIDE + KERNEL_SIZE;
    const long long pitch = static_cast<long long>(size.width) * PIXEL_BYTES;
    const unsigned char *const origin = reinterpret_cast<const unsigned char *>(image) + span.first;
    // Rows whose chunks lie inside the picture for certain.
    const int inner = 1, past_inner = min(pitch >= CHUNK - span.first ? size.height - 1 : 0, end);
    const SharedAddress slots = shared_address(rows_of_picture);
    const auto fetch_step = [&] {
        unsigned char *const to = rows_of_picture + fetch_slot * SLOT_BYTES;
        if (position >= inner && position + place_in_step(STEP_INPUT_ROWS - 1) < past_inner) {
            const unsigned char *const start = origin + lane * CHUNK + position * pitch;
#pragma unroll
            for (int i = 0; i < STEP_INPUT_ROWS; ++i)
                fetch_inner_row(slots + fetch_slot * SLOT_BYTES + i * ROW_BYTES, start + place_in_step(i) * pitch, lane, span);
        } else if (position < end) {
#pragma unroll 1
            for (int i = 0; i < STEP_INPUT_ROWS; ++i) {
                const int row = position + place_in_step(i), source = row < end ? source_index<border>(row, size.height) : OUTSIDE;
                if (source == OUTSIDE) fill_zeros(to + i * ROW_BYTES, ROW_BYTES, lane);
                else fetch_any_row(to + i * ROW_BYTES, source, image, lane, span, size);
            }
        }
        position += STEP_ROWS * STRIDE;
        commit_copies();
        if (++fetch_slot == SLOTS) fetch_slot = 0;
    };
    for (int i = 0; i < STEPS_AHEAD; ++i) fetch_step();

    const Filter &filter = filter_of(weights, lane);  // under way while the first rows are
    Column columns[PARTS_OF_ROW];
#pragma unroll
    for (int part = 0; part < PARTS_OF_ROW; ++part) columns[part].start();
    int slot = 0;
    for (int y = -PENDING; y < rows; y += STEP_ROWS) {
        fetch_step();
        wait_for_copies_but<STEPS_AHEAD>();
        __syncwarp();
        const StepRows step = {rows_of_picture + slot * SLOT_BYTES, first_position + (y + PENDING) * STRIDE, size.height,
                               static_cast<unsigned>(reinterpret_cast<unsigned long long>(origin)), static_cast<unsigned>(pitch)};
        if (has_border) {
            const int first_row = first_position + (y + PENDING) * STRIDE;
            if (is_wide) {
#pragma unroll 1
                for (int i = 0; i < STEP_INPUT_ROWS; ++i)
                    patch_widely(step.samples(i), min(first_row + place_in_step(i), end - 1), image, lane, span, size);
            } else {
#pragma unroll
                for (int i = 0; i < STEP_INPUT_ROWS; ++i) patch(step.samples(i), own);
            }
            __syncwarp();
        }
        const StagedRows staged = {stage, static_cast<unsigned>(reinterpret_cast<unsigned long long>(out_row)),
                                   static_cast<unsigned>(out_pitch)};
#pragma unroll
        for (int part = 0; part < PARTS_OF_ROW; ++part) columns[part].step(step, staged, lane, part, filter, y);
        if (++slot == SLOTS) slot = 0;
        __syncwarp();  // the rows are staged, and their slots are free for the next fetch
#pragma unroll
        for (int row = 0; row < STEP_ROWS; ++row)
            if (y + row >= 0 && y + row < rows) write_row(out_row + row * out_pitch, staged.chunks(row), out_bytes, lane);
        out_row += STEP_ROWS * out_pitch;
    }
#ifdef MENDS
    __syncwarp();  // what any lane stored, every other may read and mend
    if (block_is_spoilt) {
        const StridedGeometry strided = {size, STRIDE};
        const int block = block_index_anew();  // nothing of the strip is kept in registers for this
        const int x = block % size.tiles_across * WARP * THREAD_PIXELS;
        const int y = block / size.tiles_across * size.rows_per_strip;
        mend(image, out, plain_weights, strided, y, min(size.rows_per_strip, size.out_height - y), x,
             min(size.out_width - x, WARP * THREAD_PIXELS), threadIdx.x, WARP);
    }
#endif
}
