// sliding: blocks walk down strips of the picture, its rows in a ring in shared memory.
//
// A block computes THREADS·THREAD_PIXELS output pixels across and a strip of rows down, and goes down it in steps of
// some rows. The bytes of a row of the padded picture go into the block's ring some steps ahead of their use; each
// thread reads what it needs of a row from there once and adds it to the sums of all output rows that the row touches,
// which stay in registers. A complete output row goes back through shared memory, so that whole lines are written.
// Device memory is read twice only where strips meet.
//
// Each step of the way here, with what it was expected to gain and what it did, stands in docs/kernels-tried.md.
//
// Variants:
//     sliding_sums.cuh    one window per thread: float32 FMA, or exact integers four products at a time (dp4a)
//     sliding_forms.cuh   the same for one filter on every plane, by fewer operations
//     sliding_mma.cuh     the windows of a warp as one matrix: the tensor cores
//     mend.cuh            float16 on the tensor cores alone: outputs beside a NaN or an infinity are computed again
//     bulk.cuh            compute capability 9.0: one lane starts the copy of a row; before it every thread copies 16
//                         bytes at a time
//
// Macros that decide what is computed (a flag is defined, or not):
//     INPUT, OUTPUT     uint8 uint16 float16 float32    sample types
//     USES_FLOAT16      flag                            one of them is float16
//     BORDER            zero replicate reflect …        what stands outside the picture
//     COMBINE           single magnitude maximum        how the responses of DIRECTIONS become one value
//     STORE             abs clip raw                    how a value becomes a sample
//     DIRECTIONS        1 2 8                           filters per output channel
//     OUT_CHANNELS      3 1                             output channels (luma: 1)
//     IN_GROUP          3 1                             input channels that an output channel sums (each: 1)
//     STRIDE            1 2 3
//     WHOLE_WEIGHTS     flag                            8-bit picture, whole weights: exact integer sums
//     SHORT_SUMS        flag                            the squares of two such sums add up below 880 million
//     USES_MMA          flag                            sums by the tensor cores (8-bit pictures, or float16)
//     FORM              taps opposite ring_of_three …   one filter for every plane, by a form (sliding_forms.cuh, whose
//                                                       macros CHANNEL_SUM and PAIRS go with it)
//     BATCH             flag                            pictures one behind another: one line of the grid's y axis each
//     EXACT_ROOT        flag                            16-bit magnitudes of whole sums are rounded exactly (sums.cuh)
// Macros that say how the arrays lie:
//     ALIGNED_IN, _OUT  0 1                             1 where every row of picture, of output, starts on 16 bytes
//     HALO_BYTES        0 to 511                        bytes of the left padding, modulo 32 copies of 16 bytes
// Macros that change speed alone: THREAD_PIXELS, STEP_ROWS, STEPS_AHEAD, WARPS, MIN_BLOCKS (sliding_tiles.py: StripTile)
#include <cuda_pipeline.h>

#include "bulk.cuh"
#include "picture.cuh"

// Rows that start on 16 bytes go by bulk copies where the GPU has them.
#if defined(HAS_BULK_COPIES) && ALIGNED_IN
#define BULK_READS
#endif
#if defined(HAS_BULK_COPIES) && ALIGNED_OUT
#define BULK_WRITES
#endif
typedef unsigned long long Barrier;

constexpr Border border = Border::BORDER;
constexpr Combine combine = Combine::COMBINE;
constexpr Store store = Store::STORE;
#include "sums.cuh"
#if defined(USES_MMA) && defined(USES_FLOAT16)
#define MENDS  // outputs beside a NaN or an infinity, see there
#include "mend.cuh"
__shared__ int block_is_spoilt;  // set by any thread whose sums are not all finite
#endif

constexpr int WARP = 32;
constexpr int THREADS = WARP * WARPS;  // threads of a block, which share one ring
constexpr int CHUNK = 16;  // bytes of one asynchronous copy
constexpr int LINE = 128;  // bytes of a cache line
constexpr int WORD = 4;

constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// --- a row of the picture in shared memory, bytes -----------------------------------------------------------------
constexpr int SAMPLE_BYTES = sizeof(INPUT);
constexpr int PIXEL_BYTES = CHANNELS * SAMPLE_BYTES;
constexpr int LEAD = (4 * LINE - HALO_BYTES) % LINE;  // from the slot's start to the first sample of a window
constexpr int THREAD_BYTES = THREAD_PIXELS * STRIDE * PIXEL_BYTES;  // from one thread's window to the next
constexpr int WINDOW_PIXELS = (THREAD_PIXELS - 1) * STRIDE + KERNEL_SIZE;
constexpr int WINDOW_END = LEAD + WINDOW_PIXELS * PIXEL_BYTES;
constexpr int USED_BYTES = (THREADS - 1) * THREAD_BYTES + WINDOW_END;
constexpr int ROW_BYTES = round_up(USED_BYTES + CHUNK, LINE);  // the tensor cores read up to a chunk further
#ifndef USES_MMA
static_assert(THREAD_BYTES % WORD == 0, "a thread's window must start on a whole word");
#endif

// A slot lies in the lines of shared memory as its bytes lie in those of the picture where rows start on a line: a
// copy whose two sides lie differently is cut into single sectors, three times as many requests (measured).
constexpr int BEGIN_CHUNK = LEAD / CHUNK;
constexpr int END_CHUNK = round_up(USED_BYTES, CHUNK) / CHUNK;

// --- the ring: the input rows of this step, and those of the steps under way ----------------------------------------
constexpr int STEP_INPUT_ROWS = STEP_ROWS * STRIDE;
constexpr int SLOTS = 1 + STEPS_AHEAD;
constexpr int SLOT_BYTES = STEP_INPUT_ROWS * ROW_BYTES;
constexpr int PENDING = STRIDE == 1 ? 2 : STRIDE == 2 ? 1 : 0;  // output rows that wait for more input rows

// --- a row of the output ----------------------------------------------------------------------------------------------
constexpr int THREAD_SAMPLES = THREAD_PIXELS * OUT_CHANNELS;
constexpr int THREAD_OUT_BYTES = THREAD_SAMPLES * sizeof(OUTPUT);
constexpr int OUT_ROW_BYTES = THREADS * THREAD_OUT_BYTES;
#if defined(BULK_READS) || defined(BULK_WRITES)
constexpr int STAGES = 2;  // one is filled while the copy engine, or a thread that no barrier held up, reads the other
#else
constexpr int STAGES = 1;
#endif
#ifndef USES_MMA
static_assert(THREAD_OUT_BYTES % WORD == 0, "a thread's output must be whole words");
#endif

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
typedef float Response;
constexpr Response START = 0.0f;
__device__ __forceinline__ float to_value(float response) { return response; }
#endif

// sqrt(first² + second²).
__device__ __forceinline__ float length(float first, float second) {
#if defined(WHOLE_WEIGHTS)
    const float square = fmaf(second, second, first * first);
    return store == Store::raw ? sqrtf(square) : approximate_root(square);
#elif defined(EXACT_ROOT)
    return whole_length(first, second);
#else
    return length_of(first, second);
#endif
}

// Four or two values as the samples of one output word.
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

// --- how a row is summed ------------------------------------------------------------------------------------------------
#ifdef USES_MMA
#include "sliding_mma.cuh"
#else
#include "sliding_sums.cuh"
#endif

// --- from the picture into the ring -------------------------------------------------------------------------------------
// Rows that do not start on a chunk's boundary are read in whole words, up to one word to either side.
constexpr int MARGIN = ALIGNED_IN ? 0 : WORD;

// What a warp takes from every row of its strip, found once. Chunks `whole_from` to `whole_to` lie inside the row and are
// copied; the samples of those before and after come one by one, by the border's rule.
struct Span {
    int position;     // padded column of the first sample, less the padding; negative left of the picture
    long long first;  // byte of the row where chunk 0 starts
    int whole_from, whole_to;
    int samples_before, samples_after;

    __device__ __forceinline__ Span(int first_x, const Geometry &size) {
        const int outputs = min(size.out_width - first_x, THREADS * THREAD_PIXELS);
        const int bytes = LEAD + ((outputs - 1) * STRIDE + KERNEL_SIZE) * PIXEL_BYTES;  // that the outputs need
        const long long row_bytes = static_cast<long long>(size.width) * PIXEL_BYTES;
        position = first_x * STRIDE - size.padding;
        first = static_cast<long long>(position) * PIXEL_BYTES - LEAD;
        const int chunks = (bytes + CHUNK - 1) / CHUNK;
        const long long before = max((MARGIN - first + CHUNK - 1) / CHUNK, 0ll);
        const long long until = max((row_bytes - MARGIN - first) / CHUNK, 0ll);
        whole_from = max(static_cast<int>(min(before, static_cast<long long>(chunks))), BEGIN_CHUNK);
        whole_to = max(static_cast<int>(min(until, static_cast<long long>(chunks))), whole_from);
        samples_before = max(min(whole_from * CHUNK, bytes) - LEAD, 0) / SAMPLE_BYTES;
        samples_after = max(bytes - max(whole_to * CHUNK, LEAD + samples_before * SAMPLE_BYTES), 0) / SAMPLE_BYTES;
    }
    __device__ __forceinline__ bool interior() const { return whole_from == BEGIN_CHUNK && whole_to == END_CHUNK; }
};

// With a zero border and rows that start on chunks no chunk is partly inside: those outside stay zero in every slot.
constexpr bool EDGES_STAY = ALIGNED_IN && border == Border::zero;

// Copy a chunk that lies inside the row.
__device__ __forceinline__ void copy_chunk(unsigned char *to, const unsigned char *from) {
    if (ALIGNED_IN) {
        __pipeline_memcpy_async(to, from, CHUNK);
    } else if (SAMPLE_BYTES == WORD) {
#pragma unroll
        for (int i = 0; i < CHUNK; i += WORD) __pipeline_memcpy_async(to + i, from + i, WORD);
    } else {
        const unsigned skew = static_cast<unsigned>(reinterpret_cast<unsigned long long>(from)) % WORD;
        const unsigned *const words = reinterpret_cast<const unsigned *>(from - skew);
        uint4 four;
        four.x = __funnelshift_r(__ldg(words), __ldg(words + 1), skew * 8);
        four.y = __funnelshift_r(__ldg(words + 1), __ldg(words + 2), skew * 8);
        four.z = __funnelshift_r(__ldg(words + 2), __ldg(words + 3), skew * 8);
        four.w = __funnelshift_r(__ldg(words + 3), __ldg(words + 4), skew * 8);
        *reinterpret_cast<uint4 *>(to) = four;
    }
}

// The samples of a row that no whole chunk brings; `threads` threads share them, of which this is `thread`.
__device__ __noinline__ void fill_edges(unsigned char *slot, const INPUT *row, int thread, int threads, Span span,
                                        int width) {
    for (int i = thread; i < span.samples_before + span.samples_after; i += threads) {
        const int first_after = max(span.whole_to * CHUNK - LEAD, 0) / SAMPLE_BYTES;
        const int sample = i < span.samples_before ? i : first_after + i - span.samples_before;
        const int column = source_index<border>(span.position + sample / CHANNELS, width);
        INPUT value = INPUT();
        if (column != OUTSIDE) value = row[static_cast<long long>(column) * CHANNELS + sample % CHANNELS];
        reinterpret_cast<INPUT *>(slot + LEAD)[sample] = value;
    }
}

__device__ __forceinline__ void fill_zeros(unsigned char *from, int bytes, int thread, int threads) {
#pragma unroll 1
    for (int at = thread * CHUNK; at < bytes; at += threads * CHUNK)
        *reinterpret_cast<uint4 *>(from + at) = make_uint4(0, 0, 0, 0);
}

#ifdef BULK_READS
// One warp starts the copy of row `position` of the padded picture; `arrival` counts its bytes.
__device__ __forceinline__ void fetch_row(unsigned char *slot, int position, int end, const INPUT *image, int thread,
                                          const Span &span, const Geometry &size, Barrier *arrival) {
    const int source = position < end ? source_index<border>(position, size.height) : OUTSIDE;
    if (source == OUTSIDE) {
        if (position < end) fill_zeros(slot, ROW_BYTES, thread % WARP, WARP);
        fence_before_bulk();
        if (elected()) expect_bytes(arrival, 0);
        return;
    }
    const INPUT *const row = image + static_cast<long long>(source) * size.width * CHANNELS;
    const unsigned char *const from = reinterpret_cast<const unsigned char *>(row) + span.first;
    const int begin = span.whole_from * CHUNK, bytes = span.whole_to * CHUNK - begin;
    if (elected()) {
        expect_bytes(arrival, bytes);
        if (bytes > 0) start_bulk_read(slot + begin, from + begin, bytes, arrival);
    }
    if (!EDGES_STAY) fill_edges(slot, row, thread % WARP, WARP, span, size.width);
}
#else
// All threads of the block start the copy of row `position` of the padded picture.
__device__ __forceinline__ void fetch_row(unsigned char *slot, int position, int end, const INPUT *image, int thread,
                                          const Span &span, const Geometry &size) {
    if (position >= end) return;
    const int source = source_index<border>(position, size.height);
    if (source == OUTSIDE) return fill_zeros(slot, ROW_BYTES, thread, THREADS);
    const INPUT *const row = image + static_cast<long long>(source) * size.width * CHANNELS;
    const unsigned char *const from = reinterpret_cast<const unsigned char *>(row) + span.first;
    constexpr int CHUNKS = END_CHUNK - BEGIN_CHUNK;
#pragma unroll
    for (int i = 0; i < CHUNKS; i += THREADS) {
        const int chunk = BEGIN_CHUNK + i + thread, at = chunk * CHUNK;
        if (i + THREADS <= CHUNKS && span.interior())
            copy_chunk(slot + at, from + at);
        else if (chunk >= span.whole_from && chunk < span.whole_to)
            copy_chunk(slot + at, from + at);
    }
    if (!EDGES_STAY) fill_edges(slot, row, thread, THREADS, span, size.width);
}
#endif

// --- from shared memory to the output ---------------------------------------------------------------------------------------
// Write a staged row of `bytes` bytes; neighbouring threads write neighbouring places.
__device__ __forceinline__ void write_row(unsigned char *to, const unsigned char *staged, int bytes, int thread) {
    if (ALIGNED_OUT) {
#pragma unroll
        for (int i = 0; i < OUT_ROW_BYTES; i += THREADS * CHUNK) {
            const int at = i + thread * CHUNK;
            if (at < bytes)
                __stcs(reinterpret_cast<uint4 *>(to + at), *reinterpret_cast<const uint4 *>(staged + at));
        }
        return;
    }
    // Whole words of the output where they lie; each is put together from two words of the staged row.
    const int skew = static_cast<int>(reinterpret_cast<unsigned long long>(to) % WORD);
    const unsigned *const words = reinterpret_cast<const unsigned *>(staged);
    for (int i = thread; i * WORD - skew < bytes; i += THREADS) {
        const int at = i * WORD - skew;
        if (at >= 0 && at + WORD <= bytes) {
            const unsigned before = i > 0 ? words[i - 1] : 0;
            *reinterpret_cast<unsigned *>(to + at) = __funnelshift_rc(before, words[i], (WORD - skew) * 8);
        } else {
            for (int k = max(at, 0); k < min(at + WORD, bytes); k += sizeof(OUTPUT))
                *reinterpret_cast<OUTPUT *>(to + k) = *reinterpret_cast<const OUTPUT *>(staged + k);
        }
    }
}

// The warps of a block share the bulk copies: which starts that of input row i of a step, and of output row i.
__device__ __forceinline__ constexpr int reader_of(int i) { return i % WARPS; }
__device__ __forceinline__ constexpr int writer_of(int i) { return i % WARPS; }
constexpr int WRITERS = STEP_ROWS < WARPS ? STEP_ROWS : WARPS;

// Blocks that must fit a multiprocessor. From compute capability 12.0 on one holds 1,536 threads and not 2,048; to fit
// six blocks of 128 threads into it the compiler would spill registers.
#if __CUDA_ARCH__ >= 1200
constexpr int RESIDENT_BLOCKS = THREADS == 128 && MIN_BLOCKS > 5 ? 5 : MIN_BLOCKS;
#else
constexpr int RESIDENT_BLOCKS = MIN_BLOCKS;
#endif

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
    sliding(const INPUT *__restrict__ image, OUTPUT *__restrict__ out, const __grid_constant__ StripGeometry size,
            const __grid_constant__ Weights weights
#ifdef MENDS
            , const float *__restrict__ plain_weights
#endif
    ) {
    __shared__ __align__(LINE) unsigned char ring[SLOTS * SLOT_BYTES];
    __shared__ __align__(LINE) unsigned char stage[STAGES * STEP_ROWS * OUT_ROW_BYTES];
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
    const Span span(first_x, size);
    const int out_bytes = min(size.out_width - first_x, THREADS * THREAD_PIXELS) * OUT_CHANNELS * int(sizeof(OUTPUT));
    const long long out_pitch = static_cast<long long>(size.out_width) * OUT_CHANNELS;
    OUTPUT *out_row = out + first_y * out_pitch + static_cast<long long>(first_x) * OUT_CHANNELS;

#ifdef MENDS
    // What lies beyond the samples that arrive is multiplied by zero weights: it must not be a NaN.
    fill_zeros(ring, SLOTS * SLOT_BYTES, thread, THREADS);
    if (thread == 0) block_is_spoilt = 0;
    __syncthreads();
#endif
    if (EDGES_STAY && !span.interior())
        for (int i = 0; i < SLOTS * STEP_INPUT_ROWS; ++i)
            fill_edges(ring + i * ROW_BYTES, image, thread, THREADS, span, size.width);
#ifdef BULK_READS
    __shared__ Barrier arrived[SLOTS];  // all input rows of a step
    if (thread == 0)
        for (int i = 0; i < SLOTS; ++i) init_barrier(arrived + i, STEP_INPUT_ROWS);
    fence_before_bulk();
#endif
    __syncthreads();

    // A step is STEP_INPUT_ROWS rows of the padded picture. Each call starts the copies of one more.
    int position = first_y * STRIDE - size.padding, fetch_slot = 0;
    const int end = position + (rows - 1) * STRIDE + KERNEL_SIZE;
    const auto fetch_step = [&] {
        unsigned char *const to = ring + fetch_slot * SLOT_BYTES;
#pragma unroll
        for (int i = 0; i < STEP_INPUT_ROWS; ++i, ++position) {
#ifdef BULK_READS
            if (warp == reader_of(i))
                fetch_row(to + i * ROW_BYTES, position, end, image, thread, span, size, arrived + fetch_slot);
#else
            fetch_row(to + i * ROW_BYTES, position, end, image, thread, span, size);
#endif
        }
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
        wait_for_phase(arrived + slot, parity);
#else
        __pipeline_wait_prior(STEPS_AHEAD);
        __syncthreads();
#endif
        const unsigned char *const step = ring + slot * SLOT_BYTES;
        unsigned char *const filled = stage + staged * STEP_ROWS * OUT_ROW_BYTES;
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
#pragma unroll
        for (int row = 0; row < STEP_ROWS; ++row) {
            if (y + row < 0 || y + row >= rows) continue;
            const unsigned char *const from = filled + row * OUT_ROW_BYTES;
#ifdef BULK_WRITES
            if (warp == writer_of(row) && elected()) start_bulk_write(out_row, from, out_bytes);
#else
            write_row(reinterpret_cast<unsigned char *>(out_row), from, out_bytes, thread);
#endif
            out_row += out_pitch;
        }
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
