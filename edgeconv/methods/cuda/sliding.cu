// sliding: warps walk down strips of the picture, its rows in a ring in shared memory.
//
// A warp owns LANES·LANE_PIXELS output pixels across and a strip of rows down. The bytes of a row of the padded
// picture go by asynchronous copies, 16 bytes each, into the warp's own ring, some steps ahead of their use. Each lane
// reads its window of a row from there once and adds it to the sums of all output rows that it touches, which stay
// in registers; a finished row goes back through shared memory, so that the warp writes whole sectors. No warp waits
// for another, and device memory is read twice only where strips meet.
//
// INPUT, OUTPUT    sample types            BORDER, COMBINE, STORE    rules, by name
// DIRECTIONS       1, or 2 (magnitude)     OUT_CHANNELS, IN_GROUP    3→3 mix 3 3, each 3 1, luma 1 3
// STRIDE           1 to 3                  HALO_BYTES                padding in bytes, modulo 32 copies
// ALIGNED          1 where every row of both pictures starts on 16 bytes
// USES_DP4A        8-bit pictures with whole weights: exact integer sums, four products an instruction
// LANE_PIXELS, STEPS_AHEAD, WARPS, MIN_BLOCKS    see Tile in sliding.py
#include <cuda_pipeline.h>

#include "picture.cuh"

constexpr Border border = Border::BORDER;
constexpr Combine combine = Combine::COMBINE;
constexpr Store store = Store::STORE;

constexpr int LANES = 32;
constexpr int CHUNK = 16;  // bytes of one asynchronous copy
constexpr int WORD = 4;

constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }
constexpr int widest_access(int pitch) { return pitch % 16 == 0 ? 16 : pitch % 8 == 0 ? 8 : 4; }

// --- a row of the picture in shared memory, bytes -----------------------------------------------------------------
constexpr int SAMPLE_BYTES = sizeof(INPUT);
constexpr int PIXEL_BYTES = RGB * SAMPLE_BYTES;
constexpr int LEAD = (LANES * CHUNK - HALO_BYTES) % CHUNK;  // from a chunk's start to the first sample of a window
constexpr int LANE_BYTES = LANE_PIXELS * STRIDE * PIXEL_BYTES;  // from one lane's window to the next
constexpr int WINDOW_PIXELS = (LANE_PIXELS - 1) * STRIDE + KERNEL_SIZE;
constexpr int WINDOW_END = LEAD + WINDOW_PIXELS * PIXEL_BYTES;
constexpr int ROW_BYTES = round_up((LANES - 1) * LANE_BYTES + WINDOW_END, CHUNK);
constexpr int ROW_CHUNKS = ROW_BYTES / CHUNK;
static_assert(LANE_BYTES % WORD == 0, "a lane's window must start on a whole word");

constexpr int READ = widest_access(LANE_BYTES);  // bytes that a lane reads at once
constexpr int WINDOW_START = LEAD / READ * READ;
constexpr int WINDOW_WORDS = (round_up(WINDOW_END, READ) - WINDOW_START) / WORD;

// The chunks in the order in which the warp copies them, a lane each: first those from the tile's own start, which
// lies on a sector's boundary where rows do, and last the halo to its left, so that no sector is asked for twice.
constexpr int FIRST_CHUNK = round_up(HALO_BYTES, CHUNK) / CHUNK % ROW_CHUNKS;
constexpr int LANE_CHUNKS = (ROW_CHUNKS + LANES - 1) / LANES;
__device__ __forceinline__ int chunk_of(int lane, int i) {
    const int chunk = FIRST_CHUNK + lane + i * LANES;
    return chunk < ROW_CHUNKS ? chunk : chunk - ROW_CHUNKS;
}
__device__ __forceinline__ bool has_chunk(int lane, int i) {
    return (i + 1) * LANES <= ROW_CHUNKS || lane + i * LANES < ROW_CHUNKS;
}

// --- the ring: the rows of this step, and those of the steps under way ----------------------------------------------
constexpr int RING_ROWS = (1 + STEPS_AHEAD) * STRIDE;
constexpr int PENDING = STRIDE == 1 ? 2 : STRIDE == 2 ? 1 : 0;  // output rows that wait for more input rows

// --- a row of the output ----------------------------------------------------------------------------------------------
constexpr int LANE_SAMPLES = LANE_PIXELS * OUT_CHANNELS;
constexpr int LANE_OUT_BYTES = LANE_SAMPLES * sizeof(OUTPUT);
constexpr int LANE_OUT_WORDS = LANE_OUT_BYTES / WORD;
constexpr int OUT_ROW_BYTES = LANES * LANE_OUT_BYTES;
constexpr int WRITE = widest_access(LANE_OUT_BYTES);
static_assert(LANE_OUT_BYTES % WORD == 0, "a lane's output must be whole words");

struct Geometry {
    int height, width, out_height, out_width, padding;
    int tiles_across, rows_per_strip, strips;
};

// --- weights and arithmetic -------------------------------------------------------------------------------------------
#ifdef USES_DP4A
typedef int Response;
struct Weights {
#if IN_GROUP == 1
    int quad[DIRECTIONS][OUT_CHANNELS][KERNEL_SIZE][2];  // (w0 w1 w2 0) and (0 w0 w1 w2)
#else
    // Nine bytes of three neighbouring pixels lie in three words: by the byte of the first word where they start.
    int triple[DIRECTIONS][WORD][OUT_CHANNELS][KERNEL_SIZE][3];
#endif
};
// Where a float is wanted, sums start at the bits of 1.5·2^23: their bits, read as a float, are that plus the sum.
constexpr float SUM_ORIGIN = 12582912.0f;
constexpr bool WANTS_FLOAT = combine == Combine::magnitude || store == Store::raw;
constexpr Response START = WANTS_FLOAT ? 0x4B400000 : 0;
__device__ __forceinline__ float to_value(int response) { return __int_as_float(response) - SUM_ORIGIN; }

// sum + the products of four unsigned bytes and four signed ones. (CUDA's __dp4a takes two of the same kind.)
__device__ __forceinline__ int dot4(unsigned pixels, int weights, int sum) {
#ifdef __CUDA_ARCH__
    int total;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(total) : "r"(pixels), "r"(weights), "r"(sum));
    return total;
#else
    for (int i = 0; i < WORD; ++i)
        sum += static_cast<int>(pixels >> 8 * i & 0xFF) * static_cast<signed char>(weights >> 8 * i);
    return sum;
#endif
}
#else
typedef float Response;
struct Weights {
    float value[DIRECTIONS][OUT_CHANNELS][IN_GROUP][KERNEL_SIZE][KERNEL_SIZE];
};
constexpr Response START = 0.0f;
__device__ __forceinline__ float to_value(float response) { return response; }
#endif
typedef Response Responses[LANE_PIXELS][OUT_CHANNELS][DIRECTIONS];

// A lane's window of one row, as it lies in shared memory.
struct Window {
    unsigned word[WINDOW_WORDS];

    __device__ __forceinline__ void read(const unsigned char *row) {
        const unsigned char *from = row + WINDOW_START;
#pragma unroll
        for (int i = 0; i < WINDOW_WORDS; i += READ / WORD) {
            if (READ == 16) {
                const uint4 four = *reinterpret_cast<const uint4 *>(from + i * WORD);
                word[i] = four.x, word[i + 1] = four.y, word[i + 2] = four.z, word[i + 3] = four.w;
            } else if (READ == 8) {
                const uint2 two = *reinterpret_cast<const uint2 *>(from + i * WORD);
                word[i] = two.x, word[i + 1] = two.y;
            } else {
                word[i] = *reinterpret_cast<const unsigned *>(from + i * WORD);
            }
        }
    }

    // Sample `index` of the window as a float; `index` must be known to the compiler.
    __device__ __forceinline__ float sample(int index) const {
        const int byte = LEAD - WINDOW_START + index * SAMPLE_BYTES;
        const unsigned bits = word[byte / WORD];
        return unpack(bits, byte % WORD, static_cast<const INPUT *>(nullptr));
    }

   private:
    static __device__ __forceinline__ float unpack(unsigned bits, int, const float32 *) { return __uint_as_float(bits); }
    static __device__ __forceinline__ float unpack(unsigned bits, int byte, const uint8 *) {
        return __uint_as_float(__byte_perm(bits, TWO_POW_23_BITS, 0x7440 + byte)) - TWO_POW_23;
    }
    static __device__ __forceinline__ float unpack(unsigned bits, int byte, const uint16 *) {
        return __uint_as_float(__byte_perm(bits, TWO_POW_23_BITS, byte == 0 ? 0x7410 : 0x7432)) - TWO_POW_23;
    }
#ifdef USES_FLOAT16
    static __device__ __forceinline__ float unpack(unsigned bits, int byte, const float16 *) {
        return __half2float(__ushort_as_half(static_cast<unsigned short>(byte == 0 ? bits : bits >> 16)));
    }
#endif
};

// Add one row of the picture, row `u` of the 3×3 filters, to the responses of one output row.
#if defined(USES_DP4A) && IN_GROUP == 1
// The bytes of four neighbouring pixels of one channel, the first at `byte` of the window, as one word.
__device__ __forceinline__ unsigned gather(const Window &window, int byte) {
    const unsigned *const w = window.word + byte / WORD;
    switch (byte % WORD) {
        case 0: return __byte_perm(__byte_perm(w[0], w[1], 0x0630), w[2], 0x5210);
        case 1: return __byte_perm(__byte_perm(w[0], w[1], 0x0741), w[2], 0x6210);
        case 2: return __byte_perm(__byte_perm(w[0], w[1], 0x0052), w[2], 0x7410);
        default: return __byte_perm(__byte_perm(w[0], w[1], 0x0063), __byte_perm(w[2], w[3], 0x0041), 0x5410);
    }
}
__device__ __forceinline__ void add_row(Responses &sum, const Window &window, const Weights &weights, int u) {
    constexpr int SHARED_BY = STRIDE == 1 ? 2 : 1;  // outputs that one word of four pixels answers
#pragma unroll
    for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
        for (int x = 0; x < LANE_PIXELS; x += SHARED_BY) {
            const unsigned four = gather(window, LEAD - WINDOW_START + x * STRIDE * PIXEL_BYTES + o);
#pragma unroll
            for (int k = 0; k < SHARED_BY; ++k)
#pragma unroll
                for (int d = 0; d < DIRECTIONS; ++d)
                    sum[x + k][o][d] = dot4(four, weights.quad[d][o][u][k], sum[x + k][o][d]);
        }
}
#elif defined(USES_DP4A)
__device__ __forceinline__ void add_row(Responses &sum, const Window &window, const Weights &weights, int u) {
#pragma unroll
    for (int x = 0; x < LANE_PIXELS; ++x) {
        const int byte = LEAD - WINDOW_START + x * STRIDE * PIXEL_BYTES;
#pragma unroll
        for (int k = 0; k < 3; ++k)
#pragma unroll
            for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
                for (int d = 0; d < DIRECTIONS; ++d)
                    sum[x][o][d] = dot4(window.word[byte / WORD + k], weights.triple[d][byte % WORD][o][u][k],
                                        sum[x][o][d]);
    }
}
#else
__device__ __forceinline__ void add_row(Responses &sum, const Window &window, const Weights &weights, int u) {
#pragma unroll
    for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
        for (int i = 0; i < IN_GROUP; ++i)
#pragma unroll
            for (int x = 0; x < LANE_PIXELS; ++x)
#pragma unroll
                for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
                    for (int d = 0; d < DIRECTIONS; ++d)
                        sum[x][o][d] = fmaf(weights.value[d][o][i][u][v],
                                            window.sample((x * STRIDE + v) * RGB + (IN_GROUP == 1 ? o : i)),
                                            sum[x][o][d]);
}
#endif

__device__ __forceinline__ void move(Responses &to, const Responses &from) {
#pragma unroll
    for (int x = 0; x < LANE_PIXELS; ++x)
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
            for (int d = 0; d < DIRECTIONS; ++d) to[x][o][d] = from[x][o][d];
}

__device__ __forceinline__ void clear(Responses &sum) {
#pragma unroll
    for (int x = 0; x < LANE_PIXELS; ++x)
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
            for (int d = 0; d < DIRECTIONS; ++d) sum[x][o][d] = START;
}

// sqrt(first² + second²).
__device__ __forceinline__ float length(float first, float second) {
#ifdef USES_DP4A
    // From whole numbers to 8 bits, two units of the last place can't matter: a half-way point k + 1/2 has a square
    // at least 1/4 from every whole one. The tiny term keeps the root of nothing from being 0·∞.
    if (store != Store::raw) {
        const float square = fmaf(second, second, fmaf(first, first, 1e-30f));
        return square * rsqrtf(square);
    }
#endif
    return sqrtf(fmaf(second, second, first * first));
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

#ifdef USES_DP4A
// Four whole numbers, each clipped to 0..255, as the bytes of a word.
__device__ __forceinline__ unsigned pack_clipped(int first, int second, int third, int fourth) {
#ifdef __CUDA_ARCH__
    unsigned high, all;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(fourth), "r"(third));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(second), "r"(first), "r"(high));
    return all;
#else
    const int value[WORD] = {first, second, third, fourth};
    unsigned all = 0;
    for (int i = 0; i < WORD; ++i) all |= static_cast<unsigned>(min(max(value[i], 0), 255)) << 8 * i;
    return all;
#endif
}
#endif

// --- from the picture into the ring -------------------------------------------------------------------------------------
// Rows that do not start on a chunk's boundary are read in whole words, up to one word to either side.
constexpr int MARGIN = ALIGNED ? 0 : WORD;

// What a warp takes from every row of its strip, found once. Chunks `whole_from` to `whole_to` lie inside the row and are
// copied; the samples of those before and after come one by one, by the border's rule.
struct Span {
    int position;     // padded column of the first sample, less the padding; negative left of the picture
    long long first;  // byte of the row where chunk 0 starts
    int whole_from, whole_to;
    int samples_before, samples_after;

    __device__ __forceinline__ Span(int first_x, const Geometry &size) {
        const int outputs = min(size.out_width - first_x, LANES * LANE_PIXELS);
        const int bytes = LEAD + ((outputs - 1) * STRIDE + KERNEL_SIZE) * PIXEL_BYTES;  // that the outputs need
        const long long row_bytes = static_cast<long long>(size.width) * PIXEL_BYTES;
        position = first_x * STRIDE - size.padding;
        first = static_cast<long long>(position) * PIXEL_BYTES - LEAD;
        const int chunks = (bytes + CHUNK - 1) / CHUNK;
        const long long before = max((MARGIN - first + CHUNK - 1) / CHUNK, 0ll);
        const long long until = max((row_bytes - MARGIN - first) / CHUNK, 0ll);
        whole_from = static_cast<int>(min(before, static_cast<long long>(chunks)));
        whole_to = max(static_cast<int>(min(until, static_cast<long long>(chunks))), whole_from);
        samples_before = max(min(whole_from * CHUNK, bytes) - LEAD, 0) / SAMPLE_BYTES;
        samples_after = max(bytes - max(whole_to * CHUNK, LEAD + samples_before * SAMPLE_BYTES), 0) / SAMPLE_BYTES;
    }
    __device__ __forceinline__ bool interior() const { return whole_from == 0 && whole_to == ROW_CHUNKS; }
};

// With a zero border and rows that start on chunks no chunk is partly inside: those outside stay zero in every slot.
constexpr bool EDGES_STAY = ALIGNED && border == Border::zero;

// Copy a chunk that lies inside the row.
__device__ __forceinline__ void copy_chunk(unsigned char *to, const unsigned char *from) {
    if (ALIGNED) {
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

// The samples of a row that no whole chunk brings.
__device__ __noinline__ void fill_edges(unsigned char *slot, const INPUT *row, int lane, Span span, int width) {
    for (int i = lane; i < span.samples_before + span.samples_after; i += LANES) {
        const int first_after = max(span.whole_to * CHUNK - LEAD, 0) / SAMPLE_BYTES;
        const int sample = i < span.samples_before ? i : first_after + i - span.samples_before;
        const int column = source_index<border>(span.position + sample / RGB, width);
        INPUT value = INPUT();
        if (column != OUTSIDE) value = row[static_cast<long long>(column) * RGB + sample % RGB];
        reinterpret_cast<INPUT *>(slot + LEAD)[sample] = value;
    }
}

// Start the copy of one row of the padded picture.
__device__ __forceinline__ void fetch_row(unsigned char *slot, const INPUT *image, int position, int lane,
                                          const Span &span, const Geometry &size) {
    const int source = source_index<border>(position, size.height);
    if (source == OUTSIDE) {
#pragma unroll 1
        for (int at = lane * CHUNK; at < ROW_BYTES; at += LANES * CHUNK)
            *reinterpret_cast<uint4 *>(slot + at) = make_uint4(0, 0, 0, 0);
        return;
    }
    const INPUT *const row = image + static_cast<long long>(source) * size.width * RGB;
    const unsigned char *const from = reinterpret_cast<const unsigned char *>(row) + span.first;
    if (span.interior()) {
#pragma unroll
        for (int i = 0; i < LANE_CHUNKS; ++i) {
            const int at = chunk_of(lane, i) * CHUNK;
            if (has_chunk(lane, i)) copy_chunk(slot + at, from + at);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < LANE_CHUNKS; ++i) {
        const int chunk = chunk_of(lane, i), at = chunk * CHUNK;
        if (has_chunk(lane, i) && chunk >= span.whole_from && chunk < span.whole_to) copy_chunk(slot + at, from + at);
    }
    if (!EDGES_STAY) fill_edges(slot, row, lane, span, size.width);
}

// --- from the lanes to the output -----------------------------------------------------------------------------------------
__device__ __forceinline__ void stage(unsigned char *to, const unsigned (&word)[LANE_OUT_WORDS]) {
#pragma unroll
    for (int i = 0; i < LANE_OUT_WORDS; i += WRITE / WORD) {
        if (WRITE == 16)
            *reinterpret_cast<uint4 *>(to + i * WORD) = make_uint4(word[i], word[i + 1], word[i + 2], word[i + 3]);
        else if (WRITE == 8)
            *reinterpret_cast<uint2 *>(to + i * WORD) = make_uint2(word[i], word[i + 1]);
        else
            *reinterpret_cast<unsigned *>(to + i * WORD) = word[i];
    }
}

// Write a staged row of `bytes` bytes, neighbouring lanes side by side.
__device__ __forceinline__ void write_row(unsigned char *to, const unsigned char *staged, int bytes, int lane) {
    if (ALIGNED) {
#pragma unroll
        for (int i = 0; i < OUT_ROW_BYTES; i += LANES * CHUNK) {
            const int at = i + lane * CHUNK;
            if (at < bytes)
                __stcs(reinterpret_cast<uint4 *>(to + at), *reinterpret_cast<const uint4 *>(staged + at));
        }
        return;
    }
    // Whole words of the output where they lie; each is put together from two words of the staged row.
    const int skew = static_cast<int>(reinterpret_cast<unsigned long long>(to) % WORD);
    const unsigned *const words = reinterpret_cast<const unsigned *>(staged);
    for (int i = lane; i * WORD - skew < bytes; i += LANES) {
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

// Put one finished row of responses into the stage, as samples.
__device__ __forceinline__ void finish(unsigned char *to, const Responses &sum) {
    constexpr int PER_WORD = WORD / sizeof(OUTPUT);
    unsigned word[LANE_OUT_WORDS];
#pragma unroll
    for (int i = 0; i < LANE_OUT_WORDS; ++i) {
#ifdef USES_DP4A
        if (!WANTS_FLOAT) {
            int whole[WORD];
#pragma unroll
            for (int k = 0; k < WORD; ++k) {
                const int response = sum[(i * WORD + k) / OUT_CHANNELS][(i * WORD + k) % OUT_CHANNELS][0];
                whole[k] = store == Store::abs ? abs(response) : response;
            }
            word[i] = pack_clipped(whole[0], whole[1], whole[2], whole[3]);
            continue;
        }
#endif
        float value[PER_WORD];
#pragma unroll
        for (int k = 0; k < PER_WORD; ++k) {
            const auto &response = sum[(i * PER_WORD + k) / OUT_CHANNELS][(i * PER_WORD + k) % OUT_CHANNELS];
            value[k] = to_value(response[0]);
            if (combine == Combine::magnitude) value[k] = length(value[k], to_value(response[DIRECTIONS - 1]));
        }
        word[i] = pack(value, static_cast<const OUTPUT *>(nullptr));
    }
    stage(to, word);
}

extern "C" __global__ void __launch_bounds__(WARPS *LANES, MIN_BLOCKS)
    sliding(const INPUT *__restrict__ image, OUTPUT *__restrict__ out, const __grid_constant__ Geometry size,
            const __grid_constant__ Weights weights) {
    __shared__ __align__(CHUNK) unsigned char rings[WARPS][RING_ROWS * ROW_BYTES];
    __shared__ __align__(CHUNK) unsigned char stages[WARPS][OUT_ROW_BYTES];
    const int lane = threadIdx.x, warp = threadIdx.y;
    unsigned char *const ring = rings[warp];
    unsigned char *const staged = stages[warp];

    // A warp owns a tile: LANES·LANE_PIXELS output pixels across, one strip of rows down.
    const long long tile = static_cast<long long>(blockIdx.x) * WARPS + warp;
    const int strip = static_cast<int>(tile / size.tiles_across);
    if (strip >= size.strips) return;
    const int first_x = static_cast<int>(tile % size.tiles_across) * LANES * LANE_PIXELS;
    const int first_y = strip * size.rows_per_strip;
    const int rows = min(size.rows_per_strip, size.out_height - first_y);
    const Span span(first_x, size);
    const int out_bytes = min(size.out_width - first_x, LANES * LANE_PIXELS) * OUT_CHANNELS * int(sizeof(OUTPUT));
    const long long out_pitch = static_cast<long long>(size.out_width) * OUT_CHANNELS;
    OUTPUT *out_row = out + first_y * out_pitch + static_cast<long long>(first_x) * OUT_CHANNELS;

    // A step is STRIDE rows of the padded picture. Each call starts the copies of one more.
    int position = first_y * STRIDE - size.padding, fetch_slot = 0;
    const int end = position + (rows - 1) * STRIDE + KERNEL_SIZE;
    const auto fetch_step = [&] {
#pragma unroll
        for (int i = 0; i < STRIDE; ++i, ++position)
            if (position < end) fetch_row(ring + fetch_slot + i * ROW_BYTES, image, position, lane, span, size);
        fetch_slot = fetch_slot == (RING_ROWS - STRIDE) * ROW_BYTES ? 0 : fetch_slot + STRIDE * ROW_BYTES;
        __pipeline_commit();
    };
    if (EDGES_STAY && !span.interior())
        for (int i = 0; i < RING_ROWS; ++i) fill_edges(ring + i * ROW_BYTES, image, lane, span, size.width);
    for (int i = 0; i < STEPS_AHEAD; ++i) fetch_step();

    Responses pending[PENDING + 1];  // the output rows under way, the one that ends first in front
#pragma unroll
    for (int i = 0; i <= PENDING; ++i) clear(pending[i]);
    int slot = 0;
    for (int y = -PENDING; y < rows; ++y) {
        fetch_step();
        __pipeline_wait_prior(STEPS_AHEAD);
        __syncwarp();
        Responses done;
#pragma unroll
        for (int i = 0; i < STRIDE; ++i) {
            Window window;
            window.read(ring + slot + i * ROW_BYTES + lane * LANE_BYTES);
            if (STRIDE == 1) {
                move(done, pending[0]), add_row(done, window, weights, 2);
                move(pending[0], pending[1]), add_row(pending[0], window, weights, 1);
                clear(pending[1]), add_row(pending[1], window, weights, 0);
            } else if (STRIDE == 2 && i == 0) {
                move(done, pending[0]), add_row(done, window, weights, 2);
                clear(pending[0]), add_row(pending[0], window, weights, 0);
            } else if (STRIDE == 2) {
                add_row(pending[0], window, weights, 1);
            } else {
                if (i == 0) clear(done);
                add_row(done, window, weights, i);
            }
        }
        slot = slot == (RING_ROWS - STRIDE) * ROW_BYTES ? 0 : slot + STRIDE * ROW_BYTES;

        finish(staged + lane * LANE_OUT_BYTES, done);
        __syncwarp();
        if (y >= 0) {
            write_row(reinterpret_cast<unsigned char *>(out_row), staged, out_bytes, lane);
            out_row += out_pitch;
        }
    }
}
