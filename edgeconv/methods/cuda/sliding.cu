// sliding: warps walk down strips of the picture, its rows in a ring in shared memory.
//
// A warp owns LANES·LANE_PIXELS output pixels across and a strip of rows down. The bytes of a row of the padded
// picture go by asynchronous copies, 16 bytes each, into the warp's own ring, some steps ahead of their use; each
// lane reads its window from there, sums all channels in registers and puts its samples back through shared memory,
// so that the warp writes whole sectors. No lane waits for another warp, and nothing is read twice from device memory
// but the two rows where strips meet.
//
// INPUT, OUTPUT    sample types            BORDER, COMBINE, STORE    rules, by name
// DIRECTIONS       kernels that answer     OUT_CHANNELS, IN_GROUP    3→3 mix 3 3, each 3 1, luma 1 3
// STRIDE           1 to 3                  LEAD                      bytes from a 16-byte boundary to a row's window
// ALIGNED          1 where every row of both pictures starts on 16 bytes
// USES_DP4A        8-bit pictures with whole weights: exact integer sums, four products an instruction
// LANE_PIXELS, STEP_ROWS, STEPS_AHEAD, WARPS, MIN_BLOCKS    see Tile in sliding.py
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
constexpr int LANE_BYTES = LANE_PIXELS * STRIDE * PIXEL_BYTES;  // from one lane's window to the next
constexpr int WINDOW_PIXELS = (LANE_PIXELS - 1) * STRIDE + KERNEL_SIZE;
constexpr int WINDOW_END = LEAD + WINDOW_PIXELS * PIXEL_BYTES;
constexpr int ROW_BYTES = round_up((LANES - 1) * LANE_BYTES + WINDOW_END, CHUNK);
constexpr int ROW_CHUNKS = ROW_BYTES / CHUNK;
constexpr int LANE_CHUNKS = (ROW_CHUNKS + LANES - 1) / LANES;
static_assert(LANE_BYTES % WORD == 0, "a lane's window must start on a whole word");

constexpr int READ = widest_access(LANE_BYTES);  // bytes that a lane reads at once
constexpr int WINDOW_START = LEAD / READ * READ;
constexpr int WINDOW_WORDS = (round_up(WINDOW_END, READ) - WINDOW_START) / WORD;

// --- the ring: the rows of this step, and those of the steps under way ----------------------------------------------
constexpr int STEP_INPUT_ROWS = (STEP_ROWS - 1) * STRIDE + KERNEL_SIZE;
constexpr int STEP_NEW_ROWS = STEP_ROWS * STRIDE;
constexpr int RING_ROWS = STEP_INPUT_ROWS + STEPS_AHEAD * STEP_NEW_ROWS;

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
constexpr int TOGETHER = DIRECTIONS == 2 ? 2 : 1;  // directions that one reading of the window answers
constexpr int PASSES = DIRECTIONS / TOGETHER;

#ifdef USES_DP4A
typedef int Response;
constexpr int WINDOW_TRIPLE = 3;  // nine bytes of three neighbouring pixels lie in three words, wherever they start
struct Weights {
#if IN_GROUP == 1
    int quad[DIRECTIONS][OUT_CHANNELS][KERNEL_SIZE][2];  // (w0 w1 w2 0) and (0 w0 w1 w2)
#else
    int triple[DIRECTIONS][WORD][OUT_CHANNELS][KERNEL_SIZE][WINDOW_TRIPLE];  // by the byte where the nine start
#endif
    int start[DIRECTIONS][OUT_CHANNELS];  // see FLIP
};
// dp4a multiplies signed bytes: a pixel goes in as pixel - 128, and the sum starts at 128·Σ weights. It starts at
// the bits of 1.5·2^23 besides, so that its bits, read as a float, are that much plus the whole sum.
constexpr unsigned FLIP = 0x80808080u;
constexpr float SUM_ORIGIN = 12582912.0f;
constexpr int SUM_ORIGIN_BITS = 0x4B400000;
__device__ __forceinline__ float to_value(int response) { return __int_as_float(response) - SUM_ORIGIN; }
#else
typedef float Response;
struct Weights {
    float value[DIRECTIONS][OUT_CHANNELS][IN_GROUP][KERNEL_SIZE][KERNEL_SIZE];
};
__device__ __forceinline__ float to_value(float response) { return response; }
#endif

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
#ifdef USES_DP4A
#if IN_GROUP == 1
// The bytes of four pixels of one channel, `gap` bytes apart from `byte` on, as one word.
__device__ __forceinline__ int gather(const Window &window, int byte) {
    const unsigned *const w = window.word + byte / WORD;
    const unsigned first = w[0], second = w[1], third = w[2];
    switch (byte % WORD) {
        case 0: return __byte_perm(__byte_perm(first, second, 0x0630), third, 0x5210);
        case 1: return __byte_perm(__byte_perm(first, second, 0x0741), third, 0x6210);
        case 2: return __byte_perm(__byte_perm(first, second, 0x0052), third, 0x7410);
        default: return __byte_perm(__byte_perm(first, second, 0x0063), __byte_perm(third, w[3], 0x0041), 0x5410);
    }
}
#endif
#endif

__device__ __forceinline__ void add_row(Response (&sum)[TOGETHER][LANE_PIXELS][OUT_CHANNELS], const Window &window,
                                        const Weights &weights, int first_direction, int u) {
#ifdef USES_DP4A
#if IN_GROUP == 1
#pragma unroll
    for (int o = 0; o < OUT_CHANNELS; ++o) {
        constexpr int SHARED_BY = STRIDE == 1 ? 2 : 1;  // outputs that one word of four pixels answers
#pragma unroll
        for (int x = 0; x < LANE_PIXELS; x += SHARED_BY) {
            const int four = gather(window, LEAD - WINDOW_START + x * STRIDE * PIXEL_BYTES + o);
#pragma unroll
            for (int k = 0; k < SHARED_BY; ++k)
#pragma unroll
                for (int d = 0; d < TOGETHER; ++d)
                    sum[d][x + k][o] = __dp4a(four, weights.quad[first_direction + d][o][u][k], sum[d][x + k][o]);
        }
    }
#else
#pragma unroll
    for (int x = 0; x < LANE_PIXELS; ++x) {
        const int byte = LEAD - WINDOW_START + x * STRIDE * PIXEL_BYTES;
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
            for (int d = 0; d < TOGETHER; ++d)
#pragma unroll
                for (int k = 0; k < WINDOW_TRIPLE; ++k)
                    sum[d][x][o] = __dp4a(static_cast<int>(window.word[byte / WORD + k]),
                                          weights.triple[first_direction + d][byte % WORD][o][u][k], sum[d][x][o]);
    }
#endif
#else
    float sample[WINDOW_PIXELS * RGB];
#pragma unroll
    for (int i = 0; i < WINDOW_PIXELS * RGB; ++i) sample[i] = window.sample(i);
#pragma unroll
    for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
        for (int i = 0; i < IN_GROUP; ++i)
#pragma unroll
            for (int x = 0; x < LANE_PIXELS; ++x)
#pragma unroll
                for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
                    for (int d = 0; d < TOGETHER; ++d)
                        sum[d][x][o] = fmaf(weights.value[first_direction + d][o][i][u][v],
                                            sample[(x * STRIDE + v) * RGB + (IN_GROUP == 1 ? o : i)], sum[d][x][o]);
#endif
}

// Join what one pass over the directions answered with what the passes before it did.
__device__ __forceinline__ float root(float square) {
#ifdef USES_DP4A
    // Whole squares: a root within two units of the last place never crosses a half-way point that it does not reach
    // below 256 (the nearest whole square to (k + 1/2)² is 1/4 away), and raw output goes the exact way.
    if (store != Store::raw) return square * rsqrtf(fmaxf(square, 1.0f));
#endif
    return sqrtf(square);
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
        bits[i] = __float_as_uint(fminf(fmaxf(stored_float<store>(value[i]), 0.0f), 255.0f) + TWO_POW_23);
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
// Which chunks of a row a lane copies, found once: bit i stands for chunk lane + 32·i.
struct Chunks {
    long long first;   // byte of the row where chunk `lane` starts; negative left of the picture
    unsigned whole;    // chunks that lie inside the row
    unsigned partial;  // chunks that need the border's samples

    __device__ __forceinline__ Chunks(int lane, int first_x, const Geometry &size) {
        const long long row_bytes = static_cast<long long>(size.width) * PIXEL_BYTES;
        const int outputs = min(size.out_width - first_x, LANES * LANE_PIXELS);
        const int needed = LEAD + ((outputs - 1) * STRIDE + KERNEL_SIZE) * PIXEL_BYTES;
        // Rows that do not start on a chunk's boundary are read in whole words, up to one word to either side.
        constexpr int MARGIN = ALIGNED ? 0 : WORD;
        first = (static_cast<long long>(first_x) * STRIDE - size.padding) * PIXEL_BYTES - LEAD + lane * CHUNK;
        whole = partial = 0;
        for (int i = 0; i < LANE_CHUNKS; ++i) {
            const int chunk = lane + i * LANES;
            const long long at = first + i * LANES * CHUNK;
            if (chunk * CHUNK >= needed) continue;
            if (at >= MARGIN && at + CHUNK + MARGIN <= row_bytes)
                whole |= 1u << i;
            else
                partial |= 1u << i;
        }
    }
};

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

// Fill a chunk that reaches over the row's ends, sample by sample.
__device__ __noinline__ void fill_partial(unsigned char *to, const INPUT *row, long long first_byte, int width) {
    constexpr int SAMPLES = CHUNK / SAMPLE_BYTES;
    constexpr int SHIFT = 1 << 20;  // pixels; more than any padding, and keeps the division's operand positive
    const long long first_sample = first_byte / SAMPLE_BYTES + static_cast<long long>(SHIFT) * RGB;
    int pixel = static_cast<int>(first_sample / RGB - SHIFT);
    int channel = static_cast<int>(first_sample % RGB);
    for (int i = 0; i < SAMPLES; ++i) {
        const int column = source_index<border>(pixel, width);
        INPUT sample = INPUT();
        if (column != OUTSIDE) sample = row[static_cast<long long>(column) * RGB + channel];
        reinterpret_cast<INPUT *>(to)[i] = sample;
        if (++channel == RGB) channel = 0, ++pixel;
    }
}

// Start the copy of one row of the padded picture.
__device__ __forceinline__ void fetch_row(unsigned char *slot, const INPUT *image, int position, int lane,
                                          const Chunks &chunks, const Geometry &size) {
    const int source = source_index<border>(position, size.height);
    if (source == OUTSIDE) {
#pragma unroll
        for (int i = 0; i < LANE_CHUNKS; ++i)
            if ((chunks.whole | chunks.partial) >> i & 1)
                *reinterpret_cast<uint4 *>(slot + (lane + i * LANES) * CHUNK) = make_uint4(0, 0, 0, 0);
        return;
    }
    const INPUT *const row = image + static_cast<long long>(source) * size.width * RGB;
    const unsigned char *const from = reinterpret_cast<const unsigned char *>(row) + chunks.first;
#pragma unroll
    for (int i = 0; i < LANE_CHUNKS; ++i)
        if (chunks.whole >> i & 1) copy_chunk(slot + (lane + i * LANES) * CHUNK, from + i * LANES * CHUNK);
    if (chunks.partial)
        for (int i = 0; i < LANE_CHUNKS; ++i)
            if (chunks.partial >> i & 1)
                fill_partial(slot + (lane + i * LANES) * CHUNK, row, chunks.first + i * LANES * CHUNK, size.width);
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

extern "C" __global__ void __launch_bounds__(WARPS *LANES, MIN_BLOCKS)
    sliding(const INPUT *__restrict__ image, OUTPUT *__restrict__ out, const __grid_constant__ Geometry size,
            const __grid_constant__ Weights weights) {
    __shared__ __align__(CHUNK) unsigned char rings[WARPS][RING_ROWS][ROW_BYTES];
    __shared__ __align__(CHUNK) unsigned char stages[WARPS][STEP_ROWS][OUT_ROW_BYTES];
    const int lane = threadIdx.x, warp = threadIdx.y;
    unsigned char(*const ring)[ROW_BYTES] = rings[warp];
    unsigned char(*const staged)[OUT_ROW_BYTES] = stages[warp];

    // A warp owns a tile: LANES·LANE_PIXELS output pixels across, one strip of rows down.
    const long long tile = static_cast<long long>(blockIdx.x) * WARPS + warp;
    const int strip = static_cast<int>(tile / size.tiles_across);
    if (strip >= size.strips) return;
    const int first_x = static_cast<int>(tile % size.tiles_across) * LANES * LANE_PIXELS;
    const int first_y = strip * size.rows_per_strip;
    const int rows = min(size.rows_per_strip, size.out_height - first_y);
    const int input_rows = (rows - 1) * STRIDE + KERNEL_SIZE;
    const int first_position = first_y * STRIDE - size.padding;
    const Chunks chunks(lane, first_x, size);
    const int out_bytes = min(size.out_width - first_x, LANES * LANE_PIXELS) * OUT_CHANNELS * int(sizeof(OUTPUT));
    const long long out_pitch = static_cast<long long>(size.out_width) * OUT_CHANNELS;
    OUTPUT *out_row = out + first_y * out_pitch + static_cast<long long>(first_x) * OUT_CHANNELS;

    int fetched = 0, fetch_slot = 0;
    const auto fetch = [&](int count) {
#pragma unroll
        for (int i = 0; i < count; ++i) {
            if (fetched < input_rows)
                fetch_row(ring[fetch_slot], image, first_position + fetched, lane, chunks, size);
            ++fetched;
            fetch_slot = fetch_slot + 1 == RING_ROWS ? 0 : fetch_slot + 1;
        }
        __pipeline_commit();
    };
    fetch(STEP_INPUT_ROWS);
#pragma unroll
    for (int ahead = 1; ahead < STEPS_AHEAD; ++ahead) fetch(STEP_NEW_ROWS);

    int step_slot = 0;
    for (int y = 0; y < rows; y += STEP_ROWS) {
        fetch(STEP_NEW_ROWS);
        __pipeline_wait_prior(STEPS_AHEAD);
        __syncwarp();

        float value[STEP_ROWS][LANE_SAMPLES];
#ifdef USES_DP4A
        Response whole[STEP_ROWS][LANE_SAMPLES];
#endif
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            Response sum[STEP_ROWS][TOGETHER][LANE_PIXELS][OUT_CHANNELS];
#pragma unroll
            for (int j = 0; j < STEP_ROWS; ++j)
#pragma unroll
                for (int x = 0; x < LANE_PIXELS; ++x)
#pragma unroll
                    for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
                        for (int d = 0; d < TOGETHER; ++d)
#ifdef USES_DP4A
                            sum[j][d][x][o] = weights.start[pass * TOGETHER + d][o];
#else
                            sum[j][d][x][o] = 0.0f;
#endif
#pragma unroll
            for (int r = 0; r < STEP_INPUT_ROWS; ++r) {
                const int slot = step_slot + r < RING_ROWS ? step_slot + r : step_slot + r - RING_ROWS;
                Window window;
                window.read(ring[slot] + lane * LANE_BYTES);
#ifdef USES_DP4A
#pragma unroll
                for (int i = 0; i < WINDOW_WORDS; ++i) window.word[i] ^= FLIP;
#endif
#pragma unroll
                for (int j = 0; j < STEP_ROWS; ++j)
                    if (r >= j * STRIDE && r < j * STRIDE + KERNEL_SIZE)
                        add_row(sum[j], window, weights, pass * TOGETHER, r - j * STRIDE);
            }
#pragma unroll
            for (int j = 0; j < STEP_ROWS; ++j)
#pragma unroll
                for (int i = 0; i < LANE_SAMPLES; ++i) {
                    const int x = i / OUT_CHANNELS, o = i % OUT_CHANNELS;
                    if (combine == Combine::magnitude) {
                        const float gx = to_value(sum[j][0][x][o]), gy = to_value(sum[j][TOGETHER - 1][x][o]);
                        value[j][i] = root(fmaf(gy, gy, gx * gx));
                    } else {
#ifdef USES_DP4A
                        whole[j][i] = pass == 0 ? sum[j][0][x][o] : max(whole[j][i], sum[j][0][x][o]);
#else
                        value[j][i] = pass == 0 ? sum[j][0][x][o] : fmaxf(value[j][i], sum[j][0][x][o]);
#endif
                    }
                }
        }
        step_slot += STEP_NEW_ROWS;
        if (step_slot >= RING_ROWS) step_slot -= RING_ROWS;

#pragma unroll
        for (int j = 0; j < STEP_ROWS; ++j) {
            constexpr int PER_WORD = WORD / sizeof(OUTPUT);
            unsigned word[LANE_OUT_WORDS];
#pragma unroll
            for (int i = 0; i < LANE_OUT_WORDS; ++i) {
#ifdef USES_DP4A
                if (combine != Combine::magnitude) {
                    int *const from = whole[j] + i * PER_WORD;
                    if (store == Store::raw) {
                        word[i] = __float_as_uint(to_value(from[0]));
                    } else {
#pragma unroll
                        for (int k = 0; k < WORD; ++k) {
                            from[k] -= SUM_ORIGIN_BITS;
                            if (store == Store::abs) from[k] = abs(from[k]);
                        }
                        word[i] = pack_clipped(from[0], from[1], from[2], from[3]);
                    }
                    continue;
                }
#endif
                word[i] = pack(value[j] + i * PER_WORD, static_cast<const OUTPUT *>(nullptr));
            }
            stage(staged[j] + lane * LANE_OUT_BYTES, word);
        }
        __syncwarp();
#pragma unroll
        for (int j = 0; j < STEP_ROWS; ++j)
            if (y + j < rows)
                write_row(reinterpret_cast<unsigned char *>(out_row + j * out_pitch), staged[j], out_bytes, lane);
        out_row += STEP_ROWS * out_pitch;
    }
}
