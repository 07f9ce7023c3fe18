// sliding: blocks walk down strips of the picture, its rows in a ring in shared memory.
//
// A block computes THREADS·THREAD_PIXELS output pixels across and a strip of rows down, and goes down it in steps of
// some rows. The bytes of a row of the padded picture go into the block's ring some steps ahead of their use, or none (above
// stride 3 those of the rows that windows meet); each
// thread reads what it needs of a row from there once and adds it to the sums of all output rows that the row touches,
// which stay in registers. A complete output row goes back through shared memory, so that whole lines are written.
// Device memory is read twice only where strips meet.
//
// Each step of the way here, with what it was expected to gain and what it did, stands in docs/kernels-tried.md.
//
// Variants:
//     sliding_sums.cuh    one window per thread: FMA, or exact integers four products at a time (dp4a)
//     sliding_forms.cuh   the same for one filter on every plane, by fewer operations
//     sliding_mma.cuh     the windows of a warp as one matrix: the tensor cores
//     mend.cuh            float16 on the tensor cores, and forms of float pictures: outputs that are not finite are
//                         computed again
//     sliding_rows.cuh    rows that start on 16 bytes, and rows that start anywhere
//     bulk.cuh            compute capability 9.0: one lane starts the copy of a row; before it every thread copies 16
//                         bytes at a time
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
//                                                       macros CHANNEL_SUM, BY_SIZE and PAIRS go with it)
//     MENDS             flag                            outputs that are not finite are computed again (mend.cuh)
//     BATCH             flag                            pictures one behind another: one line of the grid's y axis each
//     EXACT_ROOT        flag                            16-bit magnitudes of whole sums are rounded exactly (sums.cuh)
// Macros that say how the arrays lie:
//     ALIGNED_IN, _OUT  0 1                             1 where every row of picture, of output, starts on 16 bytes
//     HALO_BYTES        0 to 511                        ALIGNED_IN: bytes of the left padding, modulo 32 copies of 16
// Macros that change speed alone: THREAD_PIXELS, STEP_ROWS, STEPS_AHEAD, WARPS, MIN_BLOCKS (sliding_tiles.py: StripTile)
#include <cuda_pipeline.h>

#include "bulk.cuh"
#include "picture.cuh"

// Rows go by bulk copies where the GPU has them.
#ifdef HAS_BULK_COPIES
#define BULK_READS
#define BULK_WRITES
#endif
typedef unsigned long long Barrier;

constexpr Border border = Border::BORDER;
constexpr Combine combine = Combine::COMBINE;
constexpr Store store = Store::STORE;
#include "sums.cuh"
#ifdef MENDS
#include "mend.cuh"
__shared__ int block_is_spoilt;  // set by any thread whose sums are not all finite
#endif

constexpr int WARP = 32;
constexpr int THREADS = WARP * WARPS;  // threads of a block, which share one ring
constexpr unsigned CHUNK = 16;  // bytes of one asynchronous copy
constexpr unsigned LINE = 128;  // bytes of a cache line
constexpr int WORD = 4;

constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// --- a row of the picture in shared memory, bytes -----------------------------------------------------------------
constexpr int SAMPLE_BYTES = sizeof(INPUT);
constexpr int PIXEL_BYTES = CHANNELS * SAMPLE_BYTES;
constexpr int LEAD = (4 * LINE - HALO_BYTES) % LINE;  // from the slot's start, or Row::bytes, to thread 0's window
constexpr int MOST_LEAD = ALIGNED_IN ? LEAD : LINE - 1;
constexpr int THREAD_BYTES = THREAD_PIXELS * STRIDE * PIXEL_BYTES;  // from one thread's window to the next
constexpr int WINDOW_PIXELS = (THREAD_PIXELS - 1) * STRIDE + KERNEL_SIZE;
constexpr int WINDOW_END = LEAD + WINDOW_PIXELS * PIXEL_BYTES;
constexpr int USED_BYTES = (THREADS - 1) * THREAD_BYTES + MOST_LEAD + WINDOW_PIXELS * PIXEL_BYTES;
// The tensor cores read up to a chunk further; what is shifted, a word.
constexpr int ROW_BYTES = round_up(USED_BYTES + CHUNK + (ALIGNED_IN ? 0 : WORD), LINE);
static_assert(THREAD_BYTES % WORD == 0, "a thread's window must start on a whole word");

// --- the ring: the input rows of this step, and those of the steps under way ----------------------------------------
constexpr int ROWS_OF_OUTPUT = STRIDE < KERNEL_SIZE ? STRIDE : KERNEL_SIZE;  // input rows that an output row adds to those before
constexpr int STEP_INPUT_ROWS = STEP_ROWS * ROWS_OF_OUTPUT;
constexpr int SLOTS = 1 + STEPS_AHEAD;
constexpr int SLOT_BYTES = STEP_INPUT_ROWS * ROW_BYTES;
constexpr int PENDING = STRIDE == 1 ? 2 : STRIDE == 2 ? 1 : 0;  // output rows that wait for more input rows

// --- a row of the output ----------------------------------------------------------------------------------------------
constexpr int THREAD_SAMPLES = THREAD_PIXELS * OUT_CHANNELS;
constexpr int THREAD_OUT_BYTES = THREAD_SAMPLES * sizeof(OUTPUT);
constexpr int OUT_ROW_BYTES = THREADS * THREAD_OUT_BYTES;
#ifdef USES_MMA
constexpr bool SHARES_WORDS = false;
#else
constexpr bool SHARES_WORDS = !ALIGNED_OUT && sizeof(OUTPUT) < WORD;  // two threads put samples into one word
#endif
struct Joint {
    unsigned left, right;  // words that meet between two warps
};
constexpr int JOINTS = SHARES_WORDS ? WARPS + 1 : 0;  // of a row; the first and the last have one side
constexpr int STAGE_ROW_BYTES =
    round_up(OUT_ROW_BYTES + (ALIGNED_OUT ? 0 : CHUNK) + JOINTS * static_cast<int>(sizeof(Joint)), CHUNK);
#ifdef HAS_BULK_COPIES
constexpr int STAGES = 2;  // one is filled while the copy engine, or a thread that no barrier held up, reads the other
#else
constexpr int STAGES = 1;
#endif
static_assert(THREAD_OUT_BYTES % WORD == 0, "a thread's output must be whole words");

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

// The low bits of a word as a sample; the pointer says of what type.
template <typename Sample>
__device__ __forceinline__ Sample sample_bits(unsigned bits, const Sample *) { return static_cast<Sample>(bits); }
#ifdef USES_FLOAT16
__device__ __forceinline__ float16 sample_bits(unsigned bits, const float16 *) {
    return __ushort_as_half(static_cast<unsigned short>(bits));
}
#endif

#include "sliding_rows.cuh"

// --- how a row is summed ------------------------------------------------------------------------------------------------
#ifdef USES_MMA
#include "sliding_mma.cuh"
#else
#include "sliding_sums.cuh"
#endif

// Where input row i of a step lies, as rows of the padded picture after the step's first.
__device__ __forceinline__ constexpr int place_in_step(int i) { return i / ROWS_OF_OUTPUT * STRIDE + i % ROWS_OF_OUTPUT; }

// The warps of a block share the bulk copies: which starts that of input row i of a step, and of output row i.
__device__ __forceinline__ constexpr int reader_of(int i) { return i % WARPS; }
__device__ __forceinline__ constexpr int writer_of(int i) { return i % WARPS; }
constexpr int WRITERS = STEP_ROWS < WARPS ? STEP_ROWS : WARPS;

// Blocks that must fit a multiprocessor: MIN_BLOCKS, but no more than have so many warps. From compute capability 12.0 on
// one holds 1,536 threads and not 2,048; to fit 24 warps into it the compiler would spill registers, and 20 of those that
// shift what they read. From 8.0 on, where there are no bulk copies yet, 24 of those whose threads copy by themselves.
#if __CUDA_ARCH__ >= 1200
constexpr int MOST_WARPS = ALIGNED_IN ? 20 : 16;
#elif __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 900
constexpr int MOST_WARPS = 20;
#else
constexpr int MOST_WARPS = WARPS * MIN_BLOCKS;
#endif
#if __CUDA_ARCH__ < 800 && defined(PAIRS)
constexpr int LIMIT_OF_WARPS = MOST_WARPS < 8 ? MOST_WARPS : 8;  // a maximum of halves is several instructions there
#elif __CUDA_ARCH__ != 900 && (defined(PAIRS) || (defined(USES_MMA) && !defined(WHOLE_WEIGHTS) && !defined(MENDS)))
constexpr int LIMIT_OF_WARPS = MOST_WARPS < 16 ? MOST_WARPS : 16;  // with 20 these spill registers
#elif __CUDA_ARCH__ != 900 && (defined(WIDE_SUMS) || (defined(MENDS) && DIRECTIONS == 2))
constexpr int LIMIT_OF_WARPS = MOST_WARPS < 12 ? MOST_WARPS : 12;  // and these with 16
#else
constexpr int LIMIT_OF_WARPS = MOST_WARPS;
#endif
constexpr int FITTING_BLOCKS = LIMIT_OF_WARPS < WARPS ? 1 : LIMIT_OF_WARPS / WARPS;
constexpr int RESIDENT_BLOCKS = MIN_BLOCKS < FITTING_BLOCKS ? MIN_BLOCKS : FITTING_BLOCKS;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
    sliding(const INPUT *__restrict__ image, OUTPUT *__restrict__ out, const __grid_constant__ StripGeometry size,
            const __grid_constant__ Weights weights
#ifdef MENDS
            , const Real *__restrict__ plain_weights
#endif
    ) {
    __shared__ __align__(LINE) unsigned char ring[SLOTS * SLOT_BYTES];
    __shared__ unsigned leads[SLOTS * STEP_INPUT_ROWS];  // of the rows in the ring
    __shared__ __align__(LINE) unsigned char stage[STAGES * STEP_ROWS * STAGE_ROW_BYTES];
#ifdef BATCH
    image += picture_offset(size.height, size.width, CHANNELS);
    out += picture_offset(size.out_height, size.out_width, OUT_CHANNELS);
#endif
    const int thread = threadIdx.x;
    const int warp = __shfl_sync(~0u, thread / WARP, 0);  // the same for all its lanes, and known to be

    const int strip = blockIdx.x / size.tiles_across;
    const int first_x = blockIdx.x % size.tiles_across * THREADS * THREAD_PIXELS;
    const int first_y = strip * size.rows_per_strip;
    const int rows = min(size.rows_per_strip, size.out_height - first_y);
    __shared__ Span span;  // of input rows
    const Span found = span_of(first_x, size);
    const bool has_border = found.before + found.after > 0;  // or none of the block's threads
    if (thread == 0) span = found;
    const Span &usual = ALIGNED_IN ? found : span;
    __shared__ BorderSample border_samples[WARP];
    __shared__ bool wide_border;
    const unsigned out_bytes = min(size.out_width - first_x, THREADS * THREAD_PIXELS) * OUT_CHANNELS * int(sizeof(OUTPUT));
    const long long out_pitch = static_cast<long long>(size.out_width) * OUT_CHANNELS * int(sizeof(OUTPUT));
    // Of the first row of a step, which may come before the strip.
    unsigned char *out_row = reinterpret_cast<unsigned char *>(out + static_cast<long long>(first_x) * OUT_CHANNELS);
    out_row += (first_y - PENDING) * out_pitch;

#ifdef MENDS
    // What lies beyond the samples that arrive is multiplied by zero weights, or looked at: it must not be a NaN.
    fill_zeros(ring, SLOTS * SLOT_BYTES, thread, THREADS);
    if (thread == 0) block_is_spoilt = 0;
#else
    if (BORDER_STAYS && has_border) fill_zeros(ring, SLOTS * SLOT_BYTES, thread, THREADS);
#endif
#ifdef BULK_READS
    __shared__ Barrier arrived[SLOTS];  // all input rows of a step
    if (thread == 0)
        for (int i = 0; i < SLOTS; ++i) init_barrier(arrived + i, STEP_INPUT_ROWS);
#endif
    fence_before_copies();
    __syncthreads();
    if (!BORDER_STAYS && has_border && warp == 0) find_border(border_samples, &wide_border, thread, span, size.width);

    // A step is STEP_INPUT_ROWS rows of the padded picture. Each call starts the copies of one more.
    int position = first_y * STRIDE - size.padding, fetch_slot = 0;
    const int end = position + (rows - 1) * STRIDE + KERNEL_SIZE;
    const auto fetch_step = [&] {
        unsigned char *const to = ring + fetch_slot * SLOT_BYTES;
        unsigned *const to_leads = leads + fetch_slot * STEP_INPUT_ROWS;
#pragma unroll
        for (int i = 0; i < STEP_INPUT_ROWS; ++i) {
            const int row = position + place_in_step(i);
#ifdef BULK_READS
            if (warp == reader_of(i))
                fetch_row(to + i * ROW_BYTES, to_leads + i, row, end, image, thread, usual, span, size,
                          arrived + fetch_slot);
#else
            fetch_row(to + i * ROW_BYTES, to_leads + i, row, end, image, thread, usual, span, size);
#endif
        }
        position += STEP_ROWS * STRIDE;
        __pipeline_commit();
        if (++fetch_slot == SLOTS) fetch_slot = 0;
    };
    for (int i = 0; i < STEPS_AHEAD; ++i) fetch_step();
#ifdef BULK_READS
    __syncthreads();  // no barrier counts what threads put there themselves
#endif

    const Filter &filter = filter_of(weights, thread);  // under way while the first rows are
    Column columns[PARTS_OF_ROW];
#pragma unroll
    for (int part = 0; part < PARTS_OF_ROW; ++part) columns[part].start();
    int slot = 0;
    unsigned parity = 0, staged = 0;
    for (int y = -PENDING; y < rows; y += STEP_ROWS) {
        fetch_step();
#ifdef BULK_READS
        if (STEPS_AHEAD == 0) __syncthreads();  // with steps ahead, the barrier at the end of the one before does it
        wait_for_phase(arrived + slot, parity);
#else
        __pipeline_wait_prior(STEPS_AHEAD);
        __syncthreads();
#endif
        unsigned char *const slots = ring + slot * SLOT_BYTES;
        const StepRows step = {slots, leads + slot * STEP_INPUT_ROWS};
        if (!BORDER_STAYS && has_border) {
#pragma unroll 1
            for (int i = warp; i < STEP_INPUT_ROWS; i += WARPS) {
                INPUT *const samples = reinterpret_cast<INPUT *>(slots + i * ROW_BYTES + (ALIGNED_IN ? LEAD : step.leads[i]));
                if (wide_border)
                    fill_wide_border(samples, image, (first_y + y + PENDING) * STRIDE - size.padding + place_in_step(i),
                                     thread % WARP, span, size);
                else
                    fill_border(samples, border_samples[thread % WARP]);
            }
            fence_before_copies();
            __syncthreads();
        }
        const StagedRows filled = {stage + staged * STEP_ROWS * STAGE_ROW_BYTES,
                                   static_cast<unsigned>(reinterpret_cast<unsigned long long>(out_row)),
                                   static_cast<unsigned>(out_pitch)};
#pragma unroll
        for (int part = 0; part < PARTS_OF_ROW; ++part) columns[part].step(step, filled, thread, part, filter);
        if (++slot == SLOTS) slot = 0, parity ^= 1;

        // After this barrier the rows are staged, their slots are free for the next fetch, and the other stage for the
        // rows of the next step.
#ifdef BULK_WRITES
        fence_before_bulk();
        if (warp < WRITERS && elected()) wait_for_bulk_writes();
#endif
        __syncthreads();
#ifndef BULK_WRITES
        if (SHARES_WORDS) {
            if (warp == 0)
                for (int row = 0; row < STEP_ROWS; ++row) join_warps(filled.row(row), thread);
            __syncthreads();
        }
#endif
#pragma unroll
        for (int row = 0; row < STEP_ROWS; ++row) {
            if (y + row < 0 || y + row >= rows) continue;
#ifdef BULK_WRITES
            if (warp != writer_of(row)) continue;
#endif
            write_row(out_row + row * out_pitch, filled.row(row), out_bytes, thread);
        }
        out_row += STEP_ROWS * out_pitch;
        if (STAGES == 2) staged ^= 1;
    }
#ifdef MENDS
    if (block_is_spoilt) {  // the loop ended with a barrier
#ifdef BULK_WRITES
        if (warp < WRITERS && elected()) finish_bulk_writes();
#endif
        __syncthreads();  // what any thread stored, every other may read and mend
        const StridedGeometry strided = {size, STRIDE};
        const int block = block_index_anew();  // nothing of the strip is kept in registers for this
        const int x = block % size.tiles_across * THREADS * THREAD_PIXELS;
        const int y = block / size.tiles_across * size.rows_per_strip;
        mend(image, out, plain_weights, strided, y, min(size.rows_per_strip, size.out_height - y), x,
             min(size.out_width - x, THREADS * THREAD_PIXELS), threadIdx.x, THREADS);
    }
#endif
#ifdef BULK_WRITES
    if (warp < WRITERS && elected()) wait_for_bulk_writes();
#endif
}
