// flat_rows: channels that are filtered by themselves, at stride 1; a row of pixels is one row of samples.
//
// A row of W pixels is a row of W·C samples whose neighbours lie C apart; which channel a sample belongs to plays no
// part. A thread has a vector of samples in a few rows, and starts the loads of all of them before it computes anything.
// Samples are taken out of words by bit operations, and what a row contributes to the output rows above, in and below it
// is made once. No shared memory, no barrier.
// For rows that start on 16 bytes, in the picture and in the output, of the same type, with a padding of 1.
//
// FORM (flat_rows.py decides) says what the three picture rows of an output contribute:
//     lines                                 weighted sums along the row (LINES), of which each direction joins three
//     ring_of_three, ring_of_differences    the samples; the largest of eight directions, see core/lowering.py
// in lanes (lanes.cuh): a float, or under PAIRS two bytes as halves.
//
// Float pictures (MENDS, flat_rows.py says which): where a sum overflows, or an infinity meets another, the value is not
// finite, or right all the same; what is not finite is computed again by the plain sum (mend.cuh). Denormal numbers are
// kept.
//
// Macros: those of responses.cuh, and
//     FORM, PAIRS, MENDS              as above
//     BATCH                           flag: pictures lie one behind another, each has a line of the grid's y axis
//     LINES, LINE_KINDS, LINE_TAPS    how many lines, and of each its kind and a mask of the samples that it takes
//     LINE_OF_ROW                     of each direction the line of each row of the kernel
//     ROWS_KINDS, ROWS_TAPS           of each direction how the lines of three rows are joined
//     VECTOR_BYTES, ROWS              a thread's part of a row, 8 or 16, and its output rows
//     THREADS                         threads of a block
#include "sums.cuh"
#ifdef MENDS
#include "mend.cuh"
constexpr int MIN_BLOCKS = sizeof(INPUT) == 4 ? 10 : 8;  // caps the registers: with 0 the compiler spills
#else
constexpr int MIN_BLOCKS = 0;
#endif

enum class Form { lines, ring_of_three, ring_of_differences };
enum class Kind { any, sum, difference, beside };  // flat_rows.py says how each joins three numbers
constexpr Form form = Form::FORM;

constexpr int WORD = 4, SAMPLE_BYTES = sizeof(INPUT);
constexpr int SAMPLES = VECTOR_BYTES / SAMPLE_BYTES, WORDS = VECTOR_BYTES / WORD;
constexpr int NEIGHBOURS = CHANNELS * SAMPLE_BYTES;  // bytes beside a vector that its outputs need
constexpr int HALO_BYTES = NEIGHBOURS <= 4 ? 4 : NEIGHBOURS <= 8 ? 8 : 16, HALO_WORDS = HALO_BYTES / WORD;
constexpr int WINDOW_WORDS = 2 * HALO_WORDS + WORDS;
static_assert(NEIGHBOURS <= VECTOR_BYTES, "beside a vector lies one other");

struct FlatGeometry : StridedGeometry {
    unsigned across;      // vectors of a row
    unsigned reciprocal;  // (2^32 - 1) / across, rounded down
};

// --- rows of the picture -------------------------------------------------------------------------------------------
template <int BYTES>
__device__ __forceinline__ void load(unsigned *word, const unsigned char *from, bool is_read) {
    if (BYTES == 16) load_16_bytes(word, from, is_read);
    else if (BYTES == 8) load_8_bytes(word, from, is_read);
    else load_4_bytes(word, from, is_read);
}

// The samples of a vector and those beside it, of one row.
struct Window {
    unsigned word[WINDOW_WORDS];

    // Sample i, from -CHANNELS to SAMPLES + CHANNELS - 1, as bits.
    __device__ __forceinline__ unsigned bits(int i) const {
        const int byte = HALO_BYTES + i * SAMPLE_BYTES;
        return word[byte / WORD] >> byte % WORD * 8 & MASK;
    }
    __device__ __forceinline__ void put(int i, unsigned bits) {
        const int byte = HALO_BYTES + i * SAMPLE_BYTES, shift = byte % WORD * 8;
        word[byte / WORD] = word[byte / WORD] & ~(MASK << shift) | bits << shift;
    }
    __device__ __forceinline__ float sample(int i) const {
        const int byte = HALO_BYTES + i * SAMPLE_BYTES;
        const unsigned all = word[byte / WORD];
        if (SAMPLE_BYTES == WORD) return __uint_as_float(all);
#ifdef USES_FLOAT16
        // The outermost by a permutation: else the compiler keeps only their half of the word, and puts what joins it to
        // the zeros outside between the loads.
        const bool is_outermost = i == -CHANNELS || i == SAMPLES + CHANNELS - 1;
        if (is_outermost) return half_as_float(__byte_perm(all, 0, byte % WORD ? 0x4432 : 0x4410), 0);
        return half_as_float(all, byte % WORD != 0);
#else
        const unsigned which = byte % WORD == 0 ? 0x7410 : 0x7432;
        return __uint_as_float(__byte_perm(all, TWO_POW_23_BITS, which)) - TWO_POW_23;
#endif
    }

private:
    static constexpr unsigned MASK = SAMPLE_BYTES == WORD ? ~0u : (1u << SAMPLE_BYTES * 8 % 32) - 1;
};

// Where a thread's vector lies.
struct Vector {
    const unsigned char *image;  // its samples in row 0
    int pitch;                   // bytes of a row
    int height;
    bool at_left, at_right;  // its neighbours there lie outside

    // Row y, or the row that stands for it outside the picture, with zeros beside the picture. No branch: the compiler
    // would put it, and what is computed of the first rows, between the loads.
    __device__ __forceinline__ void load_row(Window &row, int y) const {
        constexpr int FROM_END = border == Border::reflect101;
        const int source = y < 0 ? min(FROM_END, height - 1) : y < height ? y : max(height - 1 - FROM_END, 0);
        const unsigned char *const at = image + static_cast<long long>(source) * pitch;
        load<HALO_BYTES>(row.word, at - HALO_BYTES, !at_left);
        load<VECTOR_BYTES>(row.word + HALO_WORDS, at, true);
        load<HALO_BYTES>(row.word + HALO_WORDS + WORDS, at + VECTOR_BYTES, !at_right);
    }

    // What is outside: zeros in the rows there; beside the picture the pixel at the end, or the one next to it.
    template <int ROW_COUNT>
    __device__ __forceinline__ void patch(Window (&rows)[ROW_COUNT], int first_row) const {
        const bool has_rows_outside = first_row < 0 || first_row + ROW_COUNT > height;
        if (border == Border::zero ? !has_rows_outside : !at_left && !at_right) return;
        stay_a_branch();
#pragma unroll
        for (int i = 0; i < ROW_COUNT; ++i) {
            const bool is_outside = static_cast<unsigned>(first_row + i) >= static_cast<unsigned>(height);
            if (border != Border::zero) patch_ends(rows[i]);
            else if (is_outside) rows[i] = Window();
        }
    }

private:
    __device__ __forceinline__ void patch_ends(Window &row) const {
        constexpr int FROM_END = border == Border::reflect101 ? 2 * CHANNELS : CHANNELS;
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) {
            if (at_left) row.put(c - CHANNELS, row.bits(c - CHANNELS + FROM_END));
            if (at_right) row.put(SAMPLES + c, row.bits(SAMPLES + c - FROM_END));
        }
    }
};

// --- lanes ---------------------------------------------------------------------------------------------------------
#include "lanes.cuh"

#ifdef PAIRS
constexpr int VALUES = SAMPLES / 2, ROW_LANES = SAMPLES - 2 + 2 * CHANNELS;
__device__ __forceinline__ constexpr int lane_of(int value, int v) {
    return value / 2 * WORD + value % 2 + v * CHANNELS;
}
#else
constexpr int VALUES = SAMPLES, ROW_LANES = SAMPLES + 2 * CHANNELS;
__device__ __forceinline__ constexpr int lane_of(int value, int v) { return value + v * CHANNELS; }
#endif

constexpr int MOST_LINES = 6, MOST_DIRECTIONS = 2;
#ifdef LINES
constexpr int LINE_COUNT = LINES;
struct Lines {
    Kind kind[LINES];
    int taps[LINES];
    Kind rows_kind[DIRECTIONS];
    int rows_taps[DIRECTIONS], of_row[DIRECTIONS * KERNEL_SIZE];
};
constexpr Lines LINES_ARE = {LINE_KINDS, LINE_TAPS, ROWS_KINDS, ROWS_TAPS, LINE_OF_ROW};
#else
constexpr int LINE_COUNT = 0;
#endif

struct FlatWeights {
    Lane line[MOST_LINES][KERNEL_SIZE], rows[MOST_DIRECTIONS][KERNEL_SIZE];
    Lane near, far;  // of a ring
};

// Three numbers joined, along a row or across rows.
__device__ __forceinline__ Lane joined(Kind kind, int taps, const Lane (&weight)[KERNEL_SIZE], Lane first, Lane middle,
                                       Lane last) {
    if (kind == Kind::difference) return subtract(last, first);
    if (kind == Kind::beside) return multiply_add(weight[1], middle, add(first, last));
    const Lane term[KERNEL_SIZE] = {first, middle, last};
    Lane total = Lane();
    bool is_first = true;
#pragma unroll
    for (int i = 0; i < KERNEL_SIZE; ++i) {
        if (!(taps >> i & 1)) continue;
        if (kind == Kind::sum) total = is_first ? term[i] : add(total, term[i]);
        else total = is_first ? multiply(weight[i], term[i]) : multiply_add(weight[i], term[i], total);
        is_first = false;
    }
    return total;
}

// What a row of the picture contributes to the outputs above, in and below it.
struct Row {
    Lane line[LINE_COUNT > 0 ? LINE_COUNT : 1][VALUES];
    Lane lane[ROW_LANES];  // of a ring

    __device__ __forceinline__ void take(const Window &window, const FlatWeights &weights) {
#ifdef PAIRS
        unsigned part[2][WINDOW_WORDS];  // bytes 0 and 2 of a word, and 1 and 3
#pragma unroll
        for (int i = 0; i < WINDOW_WORDS; ++i)
            part[0][i] = __byte_perm(window.word[i], 0, 0x4240), part[1][i] = __byte_perm(window.word[i], 0, 0x4341);
#pragma unroll
        for (int i = 0; i < ROW_LANES; ++i) {
            const int byte = HALO_BYTES - NEIGHBOURS + i;
            const unsigned *const from = part[byte % 2] + byte / WORD;
            lane[i] = byte % WORD < 2 ? from[0] : __byte_perm(from[0], from[1], 0x5432);
        }
#else
#pragma unroll
        for (int i = 0; i < ROW_LANES; ++i) lane[i] = window.sample(i - CHANNELS);
#endif
#ifdef LINES
#pragma unroll
        for (int l = 0; l < LINES; ++l)
#pragma unroll
            for (int n = 0; n < VALUES; ++n)
                line[l][n] = joined(LINES_ARE.kind[l], LINES_ARE.taps[l], weights.line[l], lane[lane_of(n, 0)],
                                    lane[lane_of(n, 1)], lane[lane_of(n, 2)]);
#endif
    }
};

// The three rows of the picture under an output row.
struct ThreeRows {
    const Row &above, &middle, &below;
    const FlatWeights &weights;

    // The response of direction d at value n.
    __device__ __forceinline__ Lane response(int d, int n) const {
#ifdef LINES
        constexpr const int *FIRST = LINES_ARE.of_row;
        const int *const of_row = FIRST + d * KERNEL_SIZE;
        return joined(LINES_ARE.rows_kind[d], LINES_ARE.rows_taps[d], weights.rows[d], above.line[of_row[0]][n],
                      middle.line[of_row[1]][n], below.line[of_row[2]][n]);
#else
        const int left = lane_of(n, 0), centre = lane_of(n, 1), right = lane_of(n, 2);
        const Lane ring[RING] = {above.lane[left],  above.lane[centre], above.lane[right], middle.lane[right],
                                 below.lane[right], below.lane[centre], below.lane[left],  middle.lane[left]};
        if (form == Form::ring_of_three) return ring_of_three(ring, weights.near, weights.far);
        Lane apart[OPPOSITE];
#pragma unroll
        for (int i = 0; i < OPPOSITE; ++i) apart[i] = subtract(ring[i], ring[i + OPPOSITE]);
        return multiply(weights.near, largest_of_differences(apart));
#endif
    }
};

// --- outputs -------------------------------------------------------------------------------------------------------
struct Words {
    unsigned word[WORDS];
};

#ifdef PAIRS
// The value n of a row as two bytes, 16 bits apart.
__device__ __forceinline__ unsigned value_of(const ThreeRows &rows, int n) {
    if (combine == Combine::magnitude) {
        constexpr float LEVEL = 16777216.0f;
        const Lane first = rows.response(0, n), second = rows.response(DIRECTIONS - 1, n);
        unsigned level[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float x = half_as_float(first, i), y = half_as_float(second, i);
            const float root = fminf(approximate_root(fmaf(x, x, y * y)), 255.0f / LEVEL);
            level[i] = __float_as_uint(fmaf(root, LEVEL, TWO_POW_23));
        }
        return __byte_perm(level[0], level[1], 0x5410);
    }
    const Lane value = rows.response(0, n);
    return smaller_halves(store == Store::abs ? value & 0x7FFF7FFFu : not_below_zero(value), 0x00FF00FFu);
}

__device__ __forceinline__ Words outputs_of(const ThreeRows &rows, unsigned &) {
    Words words;
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        words.word[i] = __byte_perm(value_of(rows, 2 * i), value_of(rows, 2 * i + 1), 0x6240);
    return words;
}
#else
#ifdef EXACT_ROOT
typedef unsigned Value;
__device__ __forceinline__ unsigned pack(const unsigned *value, const uint16 *) {
    return pack_shorts(value[0], value[1]);
}
#else
typedef float Value;
__device__ __forceinline__ unsigned level(float value) {  // in the low bits
    return __float_as_uint(within<store>(value, 65535.0f) + TWO_POW_23);
}
__device__ __forceinline__ unsigned pack(const float *value, const uint16 *) {
    return __byte_perm(level(value[0]), level(value[1]), 0x5410);
}
#endif
__device__ __forceinline__ unsigned pack(const float *value, const float32 *) {
    return __float_as_uint(stored_float<store>(value[0]));
}
#ifdef USES_FLOAT16
__device__ __forceinline__ unsigned pack(const float *value, const float16 *) {
    const unsigned halves = pack_halves(value[0], value[1]);
    return store == Store::abs ? halves & 0x7FFF7FFFu : halves;  // both signs at once
}
#endif

// Whether the square of a magnitude may have overflowed or vanished.
__device__ __forceinline__ bool is_doubtful(float square) {
    constexpr unsigned LEAST = 0x10000000u, LARGEST = 0x7F000000u;  // 2^-95 and 2^127, as bits
    return __float_as_uint(square) - LEAST > LARGEST - LEAST;
}

// A row of outputs; `mark` remembers one that is not finite.
__device__ __forceinline__ Words outputs_of(const ThreeRows &rows, unsigned &mark) {
    constexpr bool HAS_QUICK_ROOT = combine == Combine::magnitude && SAMPLE_BYTES == WORD;
    Value value[SAMPLES];
    float first[SAMPLES], second[SAMPLES];
    bool is_doubted = false;
#pragma unroll
    for (int n = 0; n < SAMPLES; ++n) {
        first[n] = rows.response(0, n);
        if (combine != Combine::magnitude) {
            value[n] = first[n];
            continue;
        }
        second[n] = rows.response(DIRECTIONS - 1, n);
#ifdef EXACT_ROOT
        value[n] = whole_length(first[n], second[n]);
#else
        const float square = fmaf(second[n], second[n], first[n] * first[n]);
        value[n] = HAS_QUICK_ROOT ? approximate_root(square) : length_of(first[n], second[n]);
        is_doubted = is_doubted || is_doubtful(square);
#endif
    }
    if (HAS_QUICK_ROOT && is_doubted) {
        stay_a_branch();
#pragma unroll
        for (int n = 0; n < SAMPLES; ++n) value[n] = length_of(first[n], second[n]);
    }
    Words words;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        words.word[i] = pack(value + i * (WORD / SAMPLE_BYTES), static_cast<const OUTPUT *>(nullptr));
#ifdef MENDS
        mark_not_finite(words.word[i], mark);
#endif
    }
    return words;
}
#endif

__device__ __forceinline__ void store_words(unsigned char *to, const Words &words) {
    const unsigned *const word = words.word;
    if (WORDS == 4) *reinterpret_cast<uint4 *>(to) = make_uint4(word[0], word[1], word[2], word[3]);
    else *reinterpret_cast<uint2 *>(to) = make_uint2(word[0], word[1]);
}

// What a thread computes.
struct Part {
    int first_row, start;  // the output row, and the sample in it, that it begins with
    bool at_left, at_right;

    __device__ __forceinline__ Part(int block, const FlatGeometry &size) {
        const unsigned thread = block * THREADS + threadIdx.x;
        unsigned group = __umulhi(thread, size.reciprocal), place = thread - group * size.across;
        if (place >= size.across) ++group, place -= size.across;  // the reciprocal is at most one group short
        first_row = static_cast<int>(group) * ROWS, start = static_cast<int>(place) * SAMPLES;
        at_left = place == 0, at_right = place == size.across - 1;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    flat_rows(const unsigned char *__restrict__ image, unsigned char *__restrict__ out,
              const __grid_constant__ FlatGeometry size, const __grid_constant__ FlatWeights weights
#ifdef MENDS
              , const Real *plain_weights
#endif
    ) {
#ifdef BATCH
    image += picture_offset(size.height, size.width, CHANNELS) * SAMPLE_BYTES;
    out += picture_offset(size.out_height, size.out_width, CHANNELS) * SAMPLE_BYTES;
#endif
    const Part part(blockIdx.x, size);
    const int pitch = static_cast<int>(size.across) * VECTOR_BYTES;
    const unsigned char *column = image + part.start * SAMPLE_BYTES;
    hide_origin(column);  // else the compiler adds up three numbers to the address of each row
    const Vector vector{column, pitch, size.height, part.at_left, part.at_right};
    unsigned char *to = out + static_cast<long long>(part.first_row) * pitch + part.start * SAMPLE_BYTES;

    Window loaded[2 + ROWS];
#pragma unroll
    for (int i = 0; i < 2 + ROWS; ++i) vector.load_row(loaded[i], part.first_row - 1 + i);
    // Here, not above: the compiler orders instructions between branches, and would put sums of the first rows between
    // the loads of the others.
    if (part.first_row >= size.height) return;
    vector.patch(loaded, part.first_row - 1);
    Row rows[KERNEL_SIZE];
#pragma unroll
    for (int i = 0; i < 2; ++i) rows[i].take(loaded[i], weights);
    unsigned mark = 0;
#pragma unroll
    for (int y = 0; y < ROWS; ++y) {
        rows[(y + 2) % 3].take(loaded[2 + y], weights);
        const Words words = outputs_of({rows[y % 3], rows[(y + 1) % 3], rows[(y + 2) % 3], weights}, mark);
        // Where registers are capped an address that moves takes fewer; elsewhere it takes more.
        if (part.first_row + y < size.height)
            store_words(to + (MIN_BLOCKS > 0 ? 0 : static_cast<long long>(y) * pitch), words);
        if (MIN_BLOCKS > 0) to += pitch;
    }
#ifdef MENDS
    if (is_marked(mark)) {
        const Part anew(block_index_anew(), size);  // it would need registers until here
        mend_samples(reinterpret_cast<const INPUT *>(image), reinterpret_cast<OUTPUT *>(out), plain_weights, size,
                     anew.first_row, ROWS, anew.start, anew.start + SAMPLES);
    }
#endif
}
