// The sums of sliding.cu, one window per thread.
//
// A thread reads THREAD_PIXELS pixels and their neighbours of one row and adds them to the responses that it holds, of
// all the output rows that the row touches. sliding.cu uses of this file, as of sliding_mma.cuh: Weights, Filter and
// filter_of, PARTS_OF_ROW, and Column.
//
// Variants, by macro:
//     neither                      FMA in float32, or in float64 under WIDE_SUMS
//     WHOLE_WEIGHTS, IN_GROUP 1    dp4a over four neighbouring pixels of a channel; at stride 1 two outputs share them
//     WHOLE_WEIGHTS, IN_GROUP 3    dp4a over the nine bytes of three pixels, in three words
//     FORM                         fewer operations for the same responses: sliding_forms.cuh
constexpr int widest_access(int pitch) { return pitch % 16 == 0 ? 16 : pitch % 8 == 0 ? 8 : 4; }
constexpr int widest_sample(int bytes) { return bytes > WORD ? bytes : WORD; }
// Bytes that a thread reads at once.
constexpr int READ = ALIGNED_IN ? widest_access(THREAD_BYTES) : widest_sample(SAMPLE_BYTES);
constexpr int WINDOW_START = LEAD / READ * READ;
constexpr int WINDOW_WORDS = (round_up(WINDOW_END, READ) - WINDOW_START) / WORD;
constexpr int WRITE = ALIGNED_OUT ? widest_access(THREAD_OUT_BYTES) : widest_sample(sizeof(OUTPUT));
constexpr int THREAD_OUT_WORDS = THREAD_OUT_BYTES / WORD;

#ifndef FORM
#ifdef WHOLE_WEIGHTS
struct Weights {
#if IN_GROUP == 1
    int quad[DIRECTIONS][OUT_CHANNELS][KERNEL_SIZE][2];  // (w0 w1 w2 0) and (0 w0 w1 w2)
#else
    // Nine bytes of three neighbouring pixels lie in three words: by the byte of the first word where they start.
    int triple[DIRECTIONS][WORD][OUT_CHANNELS][KERNEL_SIZE][3];
#endif
};
#else
struct Weights {
    Sum value[DIRECTIONS][OUT_CHANNELS][IN_GROUP][KERNEL_SIZE][KERNEL_SIZE];
};
#endif

// Each thread uses all weights, and takes them from the constant bank as they are needed.
typedef Weights Filter;
__device__ __forceinline__ const Filter &filter_of(const Weights &weights, int) { return weights; }

constexpr int PARTS_OF_ROW = 1;  // runs of pixels of a row that a thread computes, one after the other
typedef Response Responses[THREAD_PIXELS][OUT_CHANNELS][DIRECTIONS];
#endif

// A thread's window of one row, as it lies in shared memory.
struct Window {
    unsigned word[WINDOW_WORDS];

    // Sample `index`, a whole number, as a word.
    __device__ __forceinline__ unsigned whole_bits(int index) const {
        const int byte = LEAD - WINDOW_START + index * SAMPLE_BYTES;
        const unsigned selector = SAMPLE_BYTES == 1 ? 0x4440 + byte % WORD : byte % WORD == 0 ? 0x4410 : 0x4432;
        return __byte_perm(word[byte / WORD], 0, selector);
    }

    __device__ __forceinline__ void read(const Row &row, int lane) {
        const unsigned char *from = row.bytes + lane * THREAD_BYTES + WINDOW_START;
#pragma unroll
        for (int i = 0; i < WINDOW_WORDS; i += READ / WORD) {
            if (READ == 16) {
                const uint4 four = *reinterpret_cast<const uint4 *>(from + i * WORD);
                word[i] = four.x, word[i + 1] = four.y, word[i + 2] = four.z, word[i + 3] = four.w;
            } else if (READ == 8) {
                const uint2 two = *reinterpret_cast<const uint2 *>(from + i * WORD);
                word[i] = two.x, word[i + 1] = two.y;
            } else {
                word[i] = row.word(lane * THREAD_BYTES + WINDOW_START + i * WORD);
            }
        }
    }

#ifdef WIDE_SUMS
    // Sample `index` of the window; `index` must be known to the compiler. Of a whole number conversions take longer.
    __device__ __forceinline__ double sample(int index) const {
        const int first = (LEAD - WINDOW_START + index * SAMPLE_BYTES) / WORD;
        if (SAMPLE_BYTES < sizeof(double)) return __hiloint2double(TWO_POW_52_HIGH_BITS, whole_bits(index)) - TWO_POW_52;
        return __hiloint2double(word[first + 1], word[first]);
    }
    __device__ __forceinline__ double sample_above(int index) const { return sample(index) + TWO_POW_23; }
    __device__ __forceinline__ double sample_bits(int index) const { return __hiloint2double(0, whole_bits(index)); }
#else
    // Sample `index` of the window as a float; `index` must be known to the compiler.
    __device__ __forceinline__ float sample(int index) const {
        const float above = sample_above(index);
        return is_float(static_cast<const INPUT *>(nullptr)) ? above : above - TWO_POW_23;
    }
    // The same; a whole number as 2^23 more than it is.
    __device__ __forceinline__ float sample_above(int index) const {
        const int byte = LEAD - WINDOW_START + index * SAMPLE_BYTES;
        return unpack(word[byte / WORD], byte % WORD, static_cast<const INPUT *>(nullptr));
    }
    // The same; a whole number as the float of its bits.
    __device__ __forceinline__ float sample_bits(int index) const { return __uint_as_float(whole_bits(index)); }

   private:
    static __device__ __forceinline__ float unpack(unsigned bits, int, const float32 *) { return __uint_as_float(bits); }
    static __device__ __forceinline__ float unpack(unsigned bits, int byte, const uint8 *) {
        return __uint_as_float(__byte_perm(bits, TWO_POW_23_BITS, 0x7440 + byte));
    }
    static __device__ __forceinline__ float unpack(unsigned bits, int byte, const uint16 *) {
        return __uint_as_float(__byte_perm(bits, TWO_POW_23_BITS, byte == 0 ? 0x7410 : 0x7432));
    }
#ifdef USES_FLOAT16
    static __device__ __forceinline__ float unpack(unsigned bits, int byte, const float16 *) {
        return __half2float(__ushort_as_half(static_cast<unsigned short>(byte == 0 ? bits : bits >> 16)));
    }
#endif
#endif
};

// Put a lane's samples, as words, into a staged row.
__device__ __forceinline__ void put(unsigned char *staged, int lane, const unsigned (&word)[THREAD_OUT_WORDS]) {
    unsigned char *const to = staged + lane * THREAD_OUT_BYTES;
#pragma unroll
    for (int i = 0; i < THREAD_OUT_WORDS; i += WRITE / WORD) {
        if (WRITE == 16)
            *reinterpret_cast<uint4 *>(to + i * WORD) = make_uint4(word[i], word[i + 1], word[i + 2], word[i + 3]);
        else if (WRITE == 8)
            *reinterpret_cast<uint2 *>(to + i * WORD) = make_uint2(word[i], word[i + 1]);
        else
            *reinterpret_cast<unsigned *>(to + i * WORD) = word[i];
    }
}

// Samples that are packed at a time, and the words that they make.
constexpr int PACKED = sizeof(OUTPUT) < WORD ? WORD / sizeof(OUTPUT) : 1;
constexpr int PACKED_WORDS = PACKED * sizeof(OUTPUT) / WORD;
#ifdef USES_FLOAT64
__device__ __forceinline__ void pack_into(unsigned *word, const double *value) {
    float64 sample;
    store_sample<store>(value[0], sample);
    word[0] = static_cast<unsigned>(__double2loint(sample)), word[1] = static_cast<unsigned>(__double2hiint(sample));
}
#else
__device__ __forceinline__ void pack_into(unsigned *word, const float *value) {
    *word = pack(value, static_cast<const OUTPUT *>(nullptr));
}
#endif

#ifdef FORM
#include "sliding_forms.cuh"
#else
// Add one row of the picture, row `u` of the 3×3 filters, to the responses of one output row.
#if defined(WHOLE_WEIGHTS) && IN_GROUP == 1
// The bytes of neighbouring pixels of one channel, the first at `byte` of the window, as one word: four pixels, which two
// outputs share, or at strides above 1 the three that the window of one output holds (the fourth byte meets a zero).
__device__ __forceinline__ unsigned gather(const Window &window, int byte) {
    constexpr bool FOUR = STRIDE == 1;
    const unsigned *const w = window.word + byte / WORD;
    if (CHANNELS == 1) {  // they lie side by side
        const bool in_one_word = byte % WORD + (FOUR ? 4 : 3) <= WORD;
        return in_one_word ? w[0] >> byte % WORD * 8 : __funnelshift_r(w[0], w[1], byte % WORD * 8);
    }
    switch (byte % WORD) {
        case 0: return FOUR ? __byte_perm(__byte_perm(w[0], w[1], 0x0630), w[2], 0x5210) : __byte_perm(w[0], w[1], 0x0630);
        case 1: return FOUR ? __byte_perm(__byte_perm(w[0], w[1], 0x0741), w[2], 0x6210) : __byte_perm(w[0], w[1], 0x0741);
        case 2: return __byte_perm(__byte_perm(w[0], w[1], 0x0052), w[2], FOUR ? 0x7410 : 0x0410);
        default: {
            const unsigned last = FOUR ? __byte_perm(w[2], w[3], 0x0041) : w[2] >> 8;
            return __byte_perm(__byte_perm(w[0], w[1], 0x0063), last, 0x5410);
        }
    }
}
__device__ __forceinline__ void add_row(Responses &sum, const Window &window, const Filter &weights, int u) {
    constexpr int SHARED_BY = STRIDE == 1 ? 2 : 1;  // outputs that one word of four pixels is for
#pragma unroll
    for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
        for (int x = 0; x < THREAD_PIXELS; x += SHARED_BY) {
            const unsigned four = gather(window, LEAD - WINDOW_START + x * STRIDE * PIXEL_BYTES + (CHANNELS == 1 ? 0 : o));
#pragma unroll
            for (int k = 0; k < SHARED_BY; ++k)
#pragma unroll
                for (int d = 0; d < DIRECTIONS; ++d)
                    sum[x + k][o][d] = dot_of_bytes(four, weights.quad[d][o][u][k], sum[x + k][o][d]);
        }
}
#elif defined(WHOLE_WEIGHTS)
__device__ __forceinline__ void add_row(Responses &sum, const Window &window, const Filter &weights, int u) {
#pragma unroll
    for (int x = 0; x < THREAD_PIXELS; ++x) {
        const int byte = LEAD - WINDOW_START + x * STRIDE * PIXEL_BYTES;
#pragma unroll
        for (int k = 0; k < 3; ++k)
#pragma unroll
            for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
                for (int d = 0; d < DIRECTIONS; ++d)
                    sum[x][o][d] = dot_of_bytes(window.word[byte / WORD + k], weights.triple[d][byte % WORD][o][u][k],
                                        sum[x][o][d]);
    }
}
#else
__device__ __forceinline__ void add_row(Responses &sum, const Window &window, const Filter &weights, int u) {
#pragma unroll
    for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
        for (int i = 0; i < IN_GROUP; ++i)
#pragma unroll
            for (int x = 0; x < THREAD_PIXELS; ++x)
#pragma unroll
                for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
                    for (int d = 0; d < DIRECTIONS; ++d)
                        sum[x][o][d] = multiply_add(
                            weights.value[d][o][i][u][v],
                            Sum(window.sample((x * STRIDE + v) * CHANNELS + (IN_GROUP == CHANNELS ? i : o))), sum[x][o][d]);
}
#endif

__device__ __forceinline__ void move(Responses &to, const Responses &from) {
#pragma unroll
    for (int x = 0; x < THREAD_PIXELS; ++x)
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
            for (int d = 0; d < DIRECTIONS; ++d) to[x][o][d] = from[x][o][d];
}

__device__ __forceinline__ void clear(Responses &sum) {
#pragma unroll
    for (int x = 0; x < THREAD_PIXELS; ++x)
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
            for (int d = 0; d < DIRECTIONS; ++d) sum[x][o][d] = START;
}

// Put one complete row of responses into the stage, as samples.
__device__ __forceinline__ void stage_row(unsigned char *staged, int lane, const Responses &sum) {
    unsigned word[THREAD_OUT_WORDS];
#pragma unroll
    for (int i = 0; i < THREAD_SAMPLES / PACKED; ++i) {
#ifdef WHOLE_WEIGHTS
        if (!WANTS_FLOAT) {
            int whole[WORD];
#pragma unroll
            for (int k = 0; k < WORD; ++k) {
                const int response = sum[(i * WORD + k) / OUT_CHANNELS][(i * WORD + k) % OUT_CHANNELS][0];
                whole[k] = store == Store::abs ? abs(response) : response;
            }
            word[i] = pack_clipped(whole[0], whole[1], pack_clipped(whole[2], whole[3], 0));
            continue;
        }
#endif
        Real value[PACKED];
#pragma unroll
        for (int k = 0; k < PACKED; ++k) {
            const auto &response = sum[(i * PACKED + k) / OUT_CHANNELS][(i * PACKED + k) % OUT_CHANNELS];
            Sum joined = to_value(response[0]);
            if (combine == Combine::magnitude) joined = length(joined, to_value(response[DIRECTIONS - 1]));
            value[k] = storable(joined, static_cast<const OUTPUT *>(nullptr));
        }
        pack_into(word + i * PACKED_WORDS, value);
    }
    put(staged, lane, word);
}

// Whether what belongs to no output of the strip is left out: dp4a is done sooner without the branches.
#ifdef WHOLE_WEIGHTS
constexpr bool SPARES = false;
#else
constexpr bool SPARES = STRIDE == 1;
#endif

// A thread's part of a strip, going down: the sums of the output rows under way, the one that ends first in front.
struct Column {
    Responses pending[PENDING + 1];

    __device__ __forceinline__ void start() {
#pragma unroll
        for (int i = 0; i <= PENDING; ++i) clear(pending[i]);
    }

    // Take the input rows of a step, put the output rows that end with them, from `first_row` on, into the stage.
    __device__ __forceinline__ void step(const StepRows &rows, const StagedRows &staged, int lane, int,
                                         const Filter &filter, int first_row) {
#pragma unroll
        for (int y = 0; y < STEP_ROWS; ++y) {
            Responses done;
            const bool in_strip = !SPARES || y >= 2 || first_row + y >= 0;
            const bool next_in_strip = !SPARES || y >= 1 || first_row + y >= -1;
#pragma unroll
            for (int i = 0; i < ROWS_OF_OUTPUT; ++i) {
                Window window;
                window.read(rows.row(y * ROWS_OF_OUTPUT + i), lane);
                if (STRIDE == 1) {
                    if (in_strip) move(done, pending[0]), add_row(done, window, filter, 2);
                    if (next_in_strip) move(pending[0], pending[1]), add_row(pending[0], window, filter, 1);
                    clear(pending[1]), add_row(pending[1], window, filter, 0);
                } else if (STRIDE == 2 && i == 0) {
                    move(done, pending[0]), add_row(done, window, filter, 2);
                    clear(pending[0]), add_row(pending[0], window, filter, 0);
                } else if (STRIDE == 2) {
                    add_row(pending[0], window, filter, 1);
                } else {
                    if (i == 0) clear(done);
                    add_row(done, window, filter, i);
                }
            }
            if (in_strip) stage_row(staged.row(y), lane, done);
        }
    }
};
#endif
