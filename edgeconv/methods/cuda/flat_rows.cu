// flat_rows: channels that are filtered by themselves, at stride 1; a row of pixels is one row of samples.
//
// A row of W pixels is a row of W·C samples whose neighbours lie C apart; which channel a sample belongs to plays no part.
// A thread has a vector of samples of a row and goes down: it loads all rows of a step before it computes anything, and
// those of the next step before it computes this one. Samples are taken out of words by bit operations. What a row
// contributes to the three output rows that it is under is made once. No shared memory, no barrier.
//
//     aligned     rows start on 16 bytes, in the picture and in the output
//     anywhere    (ANYWHERE) a vector of the output starts at any sample: the picture is loaded by words, bytes of which
//                 are shifted; a warp shifts its output into 16-byte places, of which each lane stores one
//
// The row of an output is computed by FORM, from what the three picture rows contribute (flat_rows.py decides):
//     lines                  a few weighted sums along the row (LINES), of which each direction joins three
//     differences            the same, but the second direction is a line of the difference of two rows
//     ring_of_three, ring_of_differences    the largest of eight directions, see core/forms.py
// in lanes: Real, or under PAIRS two samples of bytes, two bytes apart, as halves. A byte is the bits of its multiple of
// 2^-24, and so is every whole number up to 2,048: nothing is converted on either way.
//
// Float pictures (MENDS): where a sum overflows, or an infinity meets another, the value is not finite, or right all the
// same; what is not finite is computed again by the plain sum (mend.cuh). Denormal numbers are kept.
//
// Macros: those of responses.cuh, and
//     FORM, PAIRS, MENDS, ANYWHERE, BATCH    as above; BATCH: pictures lie one behind another, each in its line of the grid
//     LINES, LINE_KINDS, LINE_TAPS           how many, and of each its kind and a mask of the samples that it takes
//     LINE_OF_ROW, ROWS_KINDS, ROWS_TAPS     of each direction: the line of each row of the kernel, and how rows are joined
//     VECTOR_BYTES                           of the wider of samples and outputs, a thread's part of a row
//     STEP_ROWS, STEPS, THREADS              rows of a step, steps of a thread, threads of a block
#include "picture.cuh"

constexpr Border border = Border::BORDER;
constexpr Combine combine = Combine::COMBINE;
constexpr Store store = Store::STORE;
#include "sums.cuh"
#ifdef MENDS
#include "mend.cuh"
#endif

enum class Form { lines, differences, ring_of_three, ring_of_differences };
enum class Kind { any, sum, difference, beside, even };  // flat_rows.py says how each joins three numbers
constexpr Form form = Form::FORM;
constexpr bool HAS_LINES = form == Form::lines || form == Form::differences;
constexpr bool HAS_SAMPLES = form != Form::lines;  // rows keep their samples, not lines alone

constexpr int WARP = 32;
constexpr int WORD = 4, PIECE = 16;  // bytes of a register, and of the largest load
constexpr int SAMPLE_BYTES = sizeof(INPUT), OUT_SAMPLE_BYTES = sizeof(OUTPUT);
constexpr int SAMPLES = VECTOR_BYTES / OUT_SAMPLE_BYTES;  // of a thread in a row
constexpr int IN_BYTES = SAMPLES * SAMPLE_BYTES, IN_WORDS = IN_BYTES / WORD, OUT_WORDS = VECTOR_BYTES / WORD;
constexpr int NEIGHBOURS = CHANNELS * SAMPLE_BYTES;  // bytes beside a vector that its outputs need
#ifdef ANYWHERE
constexpr bool IS_ANYWHERE = true;
constexpr int GRANULE = WORD, HALO_PIECE = WORD;
#else
constexpr bool IS_ANYWHERE = false;
constexpr int GRANULE = IN_BYTES < PIECE ? IN_BYTES : PIECE;  // of a load
constexpr int WANTED = NEIGHBOURS <= 4 ? 4 : NEIGHBOURS <= 8 ? 8 : PIECE;
constexpr int HALO_PIECE = WANTED < GRANULE ? WANTED : GRANULE;
#endif
constexpr int OUT_GRANULE = VECTOR_BYTES < PIECE ? VECTOR_BYTES : PIECE;  // of a store
constexpr int HALO_WORDS = (NEIGHBOURS + HALO_PIECE - 1) / HALO_PIECE * HALO_PIECE / WORD;
constexpr int WINDOW_WORDS = 2 * HALO_WORDS + IN_WORDS;
constexpr int ROWS = STEP_ROWS * STEPS;  // output rows of a thread
static_assert(IN_BYTES % WORD == 0 && SAMPLES >= CHANNELS, "a vector is whole words, and has the neighbours of another");

constexpr int LOADED_WORDS = WINDOW_WORDS + (IS_ANYWHERE && SAMPLE_BYTES < WORD ? 1 : 0);

struct FlatGeometry : StridedGeometry {
    int across;  // threads that share a group of rows
};

// --- words --------------------------------------------------------------------------------------------------------------
template <int BYTES>
__device__ __forceinline__ void load_piece(unsigned *word, const unsigned char *from) {
    if (BYTES == 16) {
        const uint4 four = __ldg(reinterpret_cast<const uint4 *>(from));
        word[0] = four.x, word[1] = four.y, word[2] = four.z, word[3] = four.w;
    } else if (BYTES == 8) {
        const uint2 two = __ldg(reinterpret_cast<const uint2 *>(from));
        word[0] = two.x, word[1] = two.y;
    } else {
        word[0] = __ldg(reinterpret_cast<const unsigned *>(from));
    }
}
template <int BYTES>
__device__ __forceinline__ void store_piece(unsigned char *to, const unsigned *word) {
    if (BYTES == 16) *reinterpret_cast<uint4 *>(to) = make_uint4(word[0], word[1], word[2], word[3]);
    else if (BYTES == 8) *reinterpret_cast<uint2 *>(to) = make_uint2(word[0], word[1]);
    else *reinterpret_cast<unsigned *>(to) = word[0];
}

// The samples under a vector of outputs and beside it, of one row.
struct Window {
    unsigned word[WINDOW_WORDS];

    // Sample i, from -CHANNELS to SAMPLES + CHANNELS - 1, as bits; of float64 its word `part`.
    __device__ __forceinline__ unsigned bits(int i, int part = 0) const {
        const int byte = HALO_WORDS * WORD + i * SAMPLE_BYTES;
        const unsigned all = word[byte / WORD + part];
        return SAMPLE_BYTES >= WORD ? all : all >> byte % WORD * 8 & ((1u << SAMPLE_BYTES * 8 % 32) - 1);
    }
    __device__ __forceinline__ void put(int i, unsigned bits, int part = 0) {
        const int byte = HALO_WORDS * WORD + i * SAMPLE_BYTES;
        unsigned &all = word[byte / WORD + part];
        if (SAMPLE_BYTES >= WORD) all = bits;
        else all = all & ~(((1u << SAMPLE_BYTES * 8 % 32) - 1) << byte % WORD * 8) | bits << byte % WORD * 8;
    }
    // What the border gives for sample i outside, of a pixel that lies beside the picture; `inside` is where it would
    // lie if that pixel were mirrored.
    __device__ __forceinline__ void patch(int i, int inside) {
#pragma unroll
        for (int part = 0; part < (SAMPLE_BYTES + WORD - 1) / WORD; ++part)
            put(i, border == Border::zero ? 0 : bits(inside, part), part);
    }
    __device__ __forceinline__ Real sample(int i) const {
        if (SAMPLE_BYTES < WORD && !is_float(static_cast<const INPUT *>(nullptr))) {
            const int byte = HALO_WORDS * WORD + i * SAMPLE_BYTES, at = byte % WORD;
            const unsigned which = SAMPLE_BYTES == 1 ? 0x7440 + at : 0x7410 + at * 0x11;
            return __uint_as_float(__byte_perm(word[byte / WORD], TWO_POW_23_BITS, which)) - TWO_POW_23;
        }
        if (SAMPLE_BYTES == 8) return __hiloint2double(bits(i, 1), bits(i));
        if (SAMPLE_BYTES == 4) return __uint_as_float(bits(i));
#ifdef USES_FLOAT16
        return __half2float(__ushort_as_half(bits(i)));
#else
        return 0;
#endif
    }
};

// What is loaded of a row; under ANYWHERE its samples start `over` bytes later than they do in a window.
struct Loaded {
    unsigned word[LOADED_WORDS];
    int over;
};

#ifdef ANYWHERE
// The same of a thread near the start or the end of the picture: bytes outside, which a whole piece may have, are not read.
__device__ __noinline__ Loaded load_within(const unsigned char *at, int over, const unsigned char *begin,
                                           const unsigned char *end) {
    Loaded row;
    row.over = over;
#pragma unroll 1
    for (int i = 0; i < LOADED_WORDS; ++i) {
        unsigned word = 0;
#pragma unroll
        for (int byte = 0; byte < WORD; ++byte) {
            const unsigned char *const from = at + (i - HALO_WORDS) * WORD + byte;
            if (from >= begin && from < end) word |= static_cast<unsigned>(*from) << 8 * byte;
        }
        row.word[i] = word;
    }
    return row;
}
#endif

struct Thread {
    const unsigned char *image;  // of its samples, in row 0
    const unsigned char *begin;  // of the picture
    long long pitch;             // bytes of a row
    int height, rows_of_load;    // that the words which are loaded of a row may reach into
    bool at_left, at_right;  // its first or last neighbours lie outside
    bool is_idle, is_near_end;

    // Beside the samples of a row lie those of others, but for the first and the last of the picture.
    __device__ __forceinline__ bool leaves_picture(int row) const {
        return IS_ANYWHERE && is_near_end && (row < rows_of_load || row >= height - rows_of_load);
    }

    // No branch, so that the loads of all rows are started one after the other.
    __device__ __forceinline__ void load(Loaded &row, int y) const {
        const int from = source_index<border>(y, height);
        const unsigned char *at = image + from * pitch;
        row.over = 0;
        if (IS_ANYWHERE) {
            const unsigned long long address = reinterpret_cast<unsigned long long>(at);
            row.over = static_cast<int>(address) & (GRANULE - 1);
            at = reinterpret_cast<const unsigned char *>(address & ~static_cast<unsigned long long>(GRANULE - 1));
        }
        const bool is_read = from != OUTSIDE && !is_idle && !leaves_picture(from);
#pragma unroll
        for (int i = 0; i < LOADED_WORDS; ++i) row.word[i] = 0;
#pragma unroll
        for (int i = 0; i < HALO_WORDS; i += HALO_PIECE / WORD)
            if (is_read && (IS_ANYWHERE || !at_left)) load_piece<HALO_PIECE>(row.word + i, at + (i - HALO_WORDS) * WORD);
#pragma unroll
        for (int i = HALO_WORDS; i < LOADED_WORDS - HALO_WORDS; i += GRANULE / WORD)
            if (is_read) load_piece<GRANULE>(row.word + i, at + (i - HALO_WORDS) * WORD);
#pragma unroll
        for (int i = LOADED_WORDS - HALO_WORDS; i < LOADED_WORDS; i += HALO_PIECE / WORD)
            if (is_read && (IS_ANYWHERE || !at_right)) load_piece<HALO_PIECE>(row.word + i, at + (i - HALO_WORDS) * WORD);
    }

    __device__ __forceinline__ Window window(Loaded &row, int y) const;
};

__device__ __forceinline__ Window Thread::window(Loaded &row, int y) const {
#ifdef ANYWHERE
    const int from = source_index<border>(y, height);
    if (from != OUTSIDE && leaves_picture(from)) {
        stay_a_branch();
        row = load_within(image + from * pitch - row.over, row.over, begin, begin + height * pitch);
    }
#endif
    Window window;
#pragma unroll
    for (int i = 0; i < WINDOW_WORDS; ++i)
        window.word[i] = LOADED_WORDS == WINDOW_WORDS
                             ? row.word[i]
                             : __funnelshift_r(row.word[i], row.word[(i + 1) % LOADED_WORDS], row.over * 8);
    // Under the zero border aligned rows are right already: words that were not loaded are 0.
    constexpr bool IS_MIRROR = border == Border::reflect101, PATCHES = IS_ANYWHERE || border != Border::zero;
    if (PATCHES && at_left) {
        stay_a_branch();
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) window.patch(c - CHANNELS, IS_MIRROR ? c + CHANNELS : c);
    }
    if (PATCHES && at_right) {
        stay_a_branch();
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c)
            window.patch(SAMPLES + c, SAMPLES + c - (IS_MIRROR ? 2 : 1) * CHANNELS);
    }
    return window;
}

// --- lanes --------------------------------------------------------------------------------------------------------------
#ifdef PAIRS
typedef unsigned Lane;
constexpr int VALUES = SAMPLES / 2, ROW_LANES = SAMPLES - 2 + 2 * CHANNELS;
__device__ __forceinline__ constexpr int lane_of(int value, int v) { return value / 2 * WORD + value % 2 + v * CHANNELS; }
__device__ __forceinline__ Lane add(Lane a, Lane b) { return add_halves(a, b); }
__device__ __forceinline__ Lane subtract(Lane a, Lane b) { return subtract_halves(a, b); }
__device__ __forceinline__ Lane multiply(Lane a, Lane b) { return multiply_add_halves(a, b, 0); }
__device__ __forceinline__ Lane multiply_add(Lane a, Lane b, Lane c) { return multiply_add_halves(a, b, c); }
__device__ __forceinline__ Lane larger_size(Lane a, Lane b) { return larger_halves(a, b); }
__device__ __forceinline__ Lane larger_lane(Lane a, Lane b) { return larger_halves(a, b); }  // none is below 0
#else
typedef Real Lane;
constexpr int VALUES = SAMPLES, ROW_LANES = SAMPLES + 2 * CHANNELS;
__device__ __forceinline__ constexpr int lane_of(int value, int v) { return value + v * CHANNELS; }
__device__ __forceinline__ Lane add(Lane a, Lane b) { return plain_add(a, b); }
__device__ __forceinline__ Lane subtract(Lane a, Lane b) { return plain_subtract(a, b); }
__device__ __forceinline__ Lane multiply(Lane a, Lane b) { return plain_multiply(a, b); }
__device__ __forceinline__ Lane larger_size(Lane a, Lane b) {
    return is_float(static_cast<const INPUT *>(nullptr)) ? larger_size_or_nan(a, b) : fmax(fabs(a), fabs(b));
}
__device__ __forceinline__ Lane larger_lane(Lane a, Lane b) { return larger_number(a, b); }
#endif

constexpr int MOST_LINES = 6, MOST_DIRECTIONS = 2, RING = 8, OPPOSITE = RING / 2;
#ifndef LINES
#define LINES 0
#define LINE_KINDS {}
#define LINE_TAPS {}
#define LINE_OF_ROW {}
#define ROWS_KINDS {}
#define ROWS_TAPS {}
#endif
__host__ __device__ constexpr Kind line_kind(int line) { constexpr Kind of[MOST_LINES] = LINE_KINDS; return of[line]; }
__host__ __device__ constexpr int line_taps(int line) { constexpr int of[MOST_LINES] = LINE_TAPS; return of[line]; }
__host__ __device__ constexpr Kind rows_kind(int d) { constexpr Kind of[MOST_DIRECTIONS] = ROWS_KINDS; return of[d]; }
__host__ __device__ constexpr int rows_taps(int d) { constexpr int of[MOST_DIRECTIONS] = ROWS_TAPS; return of[d]; }
__host__ __device__ constexpr int line_of_row(int d, int u) {
    constexpr int of[MOST_DIRECTIONS * KERNEL_SIZE] = LINE_OF_ROW;
    return of[d * KERNEL_SIZE + u];
}

struct FlatWeights {
    Lane line[MOST_LINES][KERNEL_SIZE], rows[MOST_DIRECTIONS][KERNEL_SIZE];
    Lane near, far;  // of a ring
};

// Three numbers joined: along a row or across rows.
__device__ __forceinline__ Lane joined(Kind kind, int taps, const Lane (&weight)[KERNEL_SIZE], Lane first, Lane middle,
                                       Lane last) {
    if (kind == Kind::difference) return subtract(last, first);
    if (kind == Kind::beside) return multiply_add(weight[1], middle, add(first, last));
    if (kind == Kind::even) return multiply_add(weight[1], middle, multiply(weight[0], add(first, last)));
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
    Lane line[LINES > 0 ? LINES : 1][VALUES];
    Lane lane[ROW_LANES];

    __device__ __forceinline__ void take(const Window &window, const FlatWeights &weights) {
        Lane taken[ROW_LANES];
#ifdef PAIRS
        unsigned part[2][WINDOW_WORDS];  // bytes 0 and 2 of a word, and 1 and 3
#pragma unroll
        for (int i = 0; i < WINDOW_WORDS; ++i)
            part[0][i] = __byte_perm(window.word[i], 0, 0x4240), part[1][i] = __byte_perm(window.word[i], 0, 0x4341);
#pragma unroll
        for (int i = 0; i < ROW_LANES; ++i) {
            const int byte = HALO_WORDS * WORD - NEIGHBOURS + i;
            const unsigned *const from = part[byte % 2] + byte / WORD;
            taken[i] = byte % WORD < 2 ? from[0] : __byte_perm(from[0], from[1], 0x5432);
        }
#else
#pragma unroll
        for (int i = 0; i < ROW_LANES; ++i) taken[i] = window.sample(i - CHANNELS);
#endif
#pragma unroll
        for (int l = 0; l < LINES; ++l)
#pragma unroll
            for (int n = 0; n < VALUES; ++n)
                line[l][n] = joined(line_kind(l), line_taps(l), weights.line[l], taken[lane_of(n, 0)],
                                    taken[lane_of(n, 1)], taken[lane_of(n, 2)]);
        if (HAS_SAMPLES)
#pragma unroll
            for (int i = 0; i < ROW_LANES; ++i) lane[i] = taken[i];
    }
};

// The response of direction d from its lines.
__device__ __forceinline__ Lane response_of(const FlatWeights &weights, int d, int n, const Row &above, const Row &middle,
                                            const Row &below) {
    return joined(rows_kind(d), rows_taps(d), weights.rows[d], above.line[line_of_row(d, 0)][n],
                  middle.line[line_of_row(d, 1)][n], below.line[line_of_row(d, 2)][n]);
}

__device__ __forceinline__ Lane ring_of_three(const Lane (&ring)[RING], const FlatWeights &weights) {
    Lane largest = Lane(), pair[OPPOSITE];
#pragma unroll
    for (int i = 0; i < OPPOSITE; ++i) {
        const int first = 2 * i;
        pair[i] = add(ring[first], ring[first + 1]);
        const Lane three = add(pair[i], larger_lane(ring[(first + RING - 1) % RING], ring[(first + 2) % RING]));
        largest = i == 0 ? three : larger_lane(largest, three);
    }
    return multiply_add(weights.far, add(add(pair[0], pair[1]), add(pair[2], pair[3])), multiply(weights.near, largest));
}

__device__ __forceinline__ Lane ring_of_differences(const Lane (&ring)[RING], const FlatWeights &weights) {
    Lane apart[OPPOSITE], two[OPPOSITE];
#pragma unroll
    for (int i = 0; i < OPPOSITE; ++i) apart[i] = subtract(ring[i], ring[i + OPPOSITE]);
#pragma unroll
    for (int i = 0; i < OPPOSITE; ++i)
        two[i] = i + 1 < OPPOSITE ? add(apart[i], apart[i + 1]) : subtract(apart[i], apart[0]);
    Lane largest = add(two[0], two[1]);
#pragma unroll
    for (int i = 1; i < OPPOSITE; ++i)
        largest = larger_size(largest, i + 1 < OPPOSITE ? add(two[i], two[i + 1]) : subtract(two[i], two[0]));
    return multiply(weights.near, largest);
}

// Both responses of a gradient.
struct Two {
    Lane first, second;
};
__device__ __forceinline__ Two gradient_of(const FlatWeights &weights, int n, const Row &above, const Row &middle,
                                           const Row &below) {
    Two two;
    two.first = response_of(weights, 0, n, above, middle, below);
    if (form == Form::differences) {
        Lane down[KERNEL_SIZE];
#pragma unroll
        for (int v = 0; v < KERNEL_SIZE; ++v) down[v] = subtract(below.lane[lane_of(n, v)], above.lane[lane_of(n, v)]);
        constexpr int LAST = LINES > 0 ? LINES - 1 : 0;
        two.second = joined(line_kind(LAST), line_taps(LAST), weights.line[LAST], down[0], down[1], down[2]);
    } else {
        two.second = DIRECTIONS == 2 ? response_of(weights, 1, n, above, middle, below) : Lane();
    }
    return two;
}

// --- outputs ------------------------------------------------------------------------------------------------------------
#ifdef PAIRS
// The value n of a row as two bytes, 16 bits apart.
__device__ __forceinline__ unsigned value_of(const FlatWeights &weights, int n, const Row &above, const Row &middle,
                                             const Row &below) {
    if (combine == Combine::magnitude) {
        constexpr float LEVEL = 16777216.0f;
        const Two two = gradient_of(weights, n, above, middle, below);
        unsigned level[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float x = half_as_float(two.first, i), y = half_as_float(two.second, i);
            const float root = fminf(approximate_root(fmaf(x, x, y * y)), 255.0f / LEVEL);
            level[i] = __float_as_uint(fmaf(root, LEVEL, TWO_POW_23));
        }
        return __byte_perm(level[0], level[1], 0x5410);
    }
    Lane value;
    if (HAS_LINES) {
        value = response_of(weights, 0, n, above, middle, below);
        value = store == Store::abs ? value & 0x7FFF7FFFu : not_below_zero(value);
    } else {
        const int left = lane_of(n, 0), centre = lane_of(n, 1), right = lane_of(n, 2);
        const Lane ring[RING] = {above.lane[left],  above.lane[centre], above.lane[right], middle.lane[right],
                                 below.lane[right], below.lane[centre], below.lane[left],  middle.lane[left]};
        value = form == Form::ring_of_three ? ring_of_three(ring, weights) : ring_of_differences(ring, weights);
    }
    return smaller_halves(value, 0x00FF00FFu);
}
#else
#ifdef EXACT_ROOT
typedef unsigned Value;
#else
typedef Real Value;
#endif
// A magnitude stored as float32: the exact root only where the square may have overflowed or vanished.
constexpr bool HAS_QUICK_ROOT =
    combine == Combine::magnitude && OUT_SAMPLE_BYTES == 4 && is_float(static_cast<const INPUT *>(nullptr));

// Whether a square of a magnitude may have overflowed or vanished.
__device__ __forceinline__ bool is_doubtful(float square) {
    constexpr unsigned LEAST = 0x10000000u, LARGEST = 0x7F000000u;  // 2^-95 and 2^127, as bits
    return __float_as_uint(square) - LEAST > LARGEST - LEAST;
}

__device__ __forceinline__ Value value_of(const FlatWeights &weights, int n, const Row &above, const Row &middle,
                                          const Row &below) {
    if (combine == Combine::magnitude) {
        const Two two = gradient_of(weights, n, above, middle, below);
#ifdef EXACT_ROOT
        return whole_length(two.first, two.second);
#else
        return length_of(two.first, two.second);
#endif
    }
    if (HAS_LINES) return response_of(weights, 0, n, above, middle, below);
    const int left = lane_of(n, 0), centre = lane_of(n, 1), right = lane_of(n, 2);
    const Lane ring[RING] = {above.lane[left],  above.lane[centre], above.lane[right], middle.lane[right],
                             below.lane[right], below.lane[centre], below.lane[left],  middle.lane[left]};
    return form == Form::ring_of_three ? ring_of_three(ring, weights) : ring_of_differences(ring, weights);
}

// Values as samples, in words.
__device__ __forceinline__ unsigned level(float value, float limit) {  // in the low bits
    return __float_as_uint(within<store>(value, limit) + TWO_POW_23);
}
__device__ __forceinline__ void pack(const float *value, unsigned *word, const uint8 *) {
#pragma unroll
    for (int i = 0; i < SAMPLES; i += 4)
        word[i / 4] = __byte_perm(__byte_perm(level(value[i], 255.0f), level(value[i + 1], 255.0f), 0x0040),
                                  __byte_perm(level(value[i + 2], 255.0f), level(value[i + 3], 255.0f), 0x0040), 0x5410);
}
__device__ __forceinline__ void pack(const float *value, unsigned *word, const uint16 *) {
#pragma unroll
    for (int i = 0; i < SAMPLES; i += 2)
        word[i / 2] = __byte_perm(level(value[i], 65535.0f), level(value[i + 1], 65535.0f), 0x5410);
}
__device__ __forceinline__ void pack(const unsigned *value, unsigned *word, const uint16 *) {
#pragma unroll
    for (int i = 0; i < SAMPLES; i += 2) word[i / 2] = pack_shorts(value[i], value[i + 1]);
}
__device__ __forceinline__ void pack(const float *value, unsigned *word, const float32 *) {
#pragma unroll
    for (int i = 0; i < SAMPLES; ++i) word[i] = __float_as_uint(stored_float<store>(value[i]));
}
__device__ __forceinline__ void pack(const double *value, unsigned *word, const float64 *) {
#pragma unroll
    for (int i = 0; i < SAMPLES; ++i) {
        const double kept = store == Store::abs ? fabs(value[i]) : value[i];
        word[2 * i] = __double2loint(kept), word[2 * i + 1] = __double2hiint(kept);
    }
}
#ifdef USES_FLOAT16
__device__ __forceinline__ void pack(const float *value, unsigned *word, const float16 *) {
#pragma unroll
    for (int i = 0; i < SAMPLES; i += 2)
        word[i / 2] = pack_halves(stored_float<store>(value[i]), stored_float<store>(value[i + 1]));
}
#endif
#endif

// A row of outputs as words; `mark` becomes a NaN, for good, with a value that is not finite.
__device__ __forceinline__ void emit(const FlatWeights &weights, const Row &above, const Row &middle, const Row &below,
                                     unsigned (&word)[OUT_WORDS], float &mark) {
#ifdef PAIRS
#pragma unroll
    for (int i = 0; i < OUT_WORDS; ++i)
        word[i] = __byte_perm(value_of(weights, 2 * i, above, middle, below),
                              value_of(weights, 2 * i + 1, above, middle, below), 0x6240);
#else
    Value value[SAMPLES];
    if (HAS_QUICK_ROOT) {
        Real first[SAMPLES], second[SAMPLES];
        bool doubt = false;
#pragma unroll
        for (int n = 0; n < SAMPLES; ++n) {
            const Two two = gradient_of(weights, n, above, middle, below);
            first[n] = two.first, second[n] = two.second;
            const float square = fmaf(two.second, two.second, two.first * two.first);
            value[n] = approximate_root(square);
            doubt = doubt || is_doubtful(square);
        }
        if (doubt) {
            stay_a_branch();
#pragma unroll
            for (int n = 0; n < SAMPLES; ++n) value[n] = length_of(first[n], second[n]);
        }
    }
#pragma unroll
    for (int n = 0; n < SAMPLES; ++n) {
        if (!HAS_QUICK_ROOT) value[n] = value_of(weights, n, above, middle, below);
#ifdef MENDS
        mark = fmaf(static_cast<float>(value[n]), 0.0f, mark);
#endif
    }
    pack(value, word, static_cast<const OUTPUT *>(nullptr));
#endif
}

// --- storing ------------------------------------------------------------------------------------------------------------
struct Words {
    unsigned word[OUT_WORDS];
};

__device__ __forceinline__ void store_words(unsigned char *to, const Words &words) {
#pragma unroll
    for (int i = 0; i < OUT_WORDS; i += OUT_GRANULE / WORD) store_piece<OUT_GRANULE>(to + i * WORD, words.word + i);
}

// Samples `first` to `last` - 1 of words whose first sample is for `to`.
__device__ __noinline__ void store_some(unsigned char *to, const Words words, int first, int last) {
#pragma unroll
    for (int i = 0; i < SAMPLES; ++i) {
        if (i < first || i >= last) continue;
        unsigned char *const place = to + i * OUT_SAMPLE_BYTES;
        const unsigned *const word = words.word + i * OUT_SAMPLE_BYTES / WORD;
        const unsigned bits = *word >> i * OUT_SAMPLE_BYTES % WORD * 8;
        if (OUT_SAMPLE_BYTES == 1) *place = static_cast<unsigned char>(bits);
        else if (OUT_SAMPLE_BYTES == 2) *reinterpret_cast<unsigned short *>(place) = static_cast<unsigned short>(bits);
        else
#pragma unroll
            for (int part = 0; part < OUT_SAMPLE_BYTES / WORD; ++part) reinterpret_cast<unsigned *>(place)[part] = word[part];
    }
}

#ifdef ANYWHERE
constexpr int PLACE_WORDS = OUT_GRANULE / WORD;

// Words of both lanes, SHIFT words and `bits` further on.
template <int SHIFT>
__device__ __forceinline__ Words placed_by(const unsigned (&both)[PLACE_WORDS + OUT_WORDS + 1], int bits) {
    Words words;
#pragma unroll
    for (int i = 0; i < OUT_WORDS; ++i)
        words.word[i] = OUT_SAMPLE_BYTES >= WORD || SHIFT == PLACE_WORDS
                            ? both[i + SHIFT]
                            : __funnelshift_r(both[i + SHIFT], both[i + SHIFT + 1], bits);
    return words;
}

// What the 16-byte places of this lane hold, where a row starts `fill` bytes after such a place. All lanes of a warp ask.
__device__ __forceinline__ Words placed(const Words &own, int fill) {
    unsigned both[PLACE_WORDS + OUT_WORDS + 1];  // the last of the lane before, and own
#pragma unroll
    for (int i = 0; i < PLACE_WORDS; ++i)
        both[i] = __shfl_up_sync(0xFFFFFFFFu, own.word[OUT_WORDS - PLACE_WORDS + i], 1);
#pragma unroll
    for (int i = 0; i < OUT_WORDS; ++i) both[PLACE_WORDS + i] = own.word[i];
    both[PLACE_WORDS + OUT_WORDS] = 0;
    const int from = OUT_GRANULE - fill, words = from / WORD, bits = from % WORD * 8;
    if (words == 0) return placed_by<0>(both, bits);
    if (PLACE_WORDS > 1 && words == 1) return placed_by<1>(both, bits);
    if (PLACE_WORDS > 2 && words == 2) return placed_by<(PLACE_WORDS > 2 ? 2 : 0)>(both, bits);
    if (PLACE_WORDS > 2 && words == 3) return placed_by<(PLACE_WORDS > 2 ? 3 : 0)>(both, bits);
    return placed_by<PLACE_WORDS>(both, 0);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    flat_rows(const unsigned char *__restrict__ image, unsigned char *__restrict__ out,
              const __grid_constant__ FlatGeometry size, const __grid_constant__ FlatWeights weights
#ifdef MENDS
              , const Real *plain_weights
#endif
    ) {
#ifdef BATCH
    image += picture_offset(size.height, size.width, CHANNELS) * SAMPLE_BYTES;
    out += picture_offset(size.out_height, size.out_width, CHANNELS) * OUT_SAMPLE_BYTES;
#endif
    const unsigned thread = blockIdx.x * THREADS + threadIdx.x;
    const int place = static_cast<int>(thread % size.across);
    const int first_row = static_cast<int>(thread / size.across) * ROWS;
    if (first_row >= size.out_height) return;

    const int count = size.out_width * CHANNELS;
#ifdef ANYWHERE
    // The first lane of a warp computes again what the last one of the warp before has, and stores none of it. The vectors
    // at the end of a row lie before its last sample, not behind the others.
    const int vector = place / WARP * (WARP - 1) + place % WARP, regular = (count - CHANNELS) / SAMPLES;
    const bool is_regular = vector < regular, is_stored = (place % WARP > 0 || place == 0) && vector < regular + 2;
    const bool stores_places = is_stored && is_regular && vector > 0;
    const bool stores_some = is_stored && (!is_regular || vector == 0 || vector == regular - 1);
    const int start = is_regular ? vector * SAMPLES : count - (vector == regular ? 2 : 1) * SAMPLES;
    const bool is_idle = vector >= regular + 2, is_near_end = vector < 2 || vector >= regular - 2;
#else
    const int start = min(place * SAMPLES, count - SAMPLES);
    const bool is_idle = false, is_near_end = false;
#endif
    const bool has_border = size.padding == 1;
    const Thread part{image + (static_cast<long long>(start) + (1 - size.padding) * CHANNELS) * SAMPLE_BYTES,
                      image,
                      static_cast<long long>(size.width) * NEIGHBOURS,
                      size.height,
                      1 + LOADED_WORDS * WORD / (size.width * NEIGHBOURS),
                      has_border && start == 0,
                      has_border && start == count - SAMPLES,
                      is_idle,
                      is_near_end};
    const long long out_pitch = static_cast<long long>(count) * OUT_SAMPLE_BYTES;
    const int top = first_row - size.padding;

    Loaded before[2], loaded[STEP_ROWS];
    part.load(before[0], top);
    part.load(before[1], top + 1);
#pragma unroll
    for (int i = 0; i < STEP_ROWS; ++i) part.load(loaded[i], top + 2 + i);
    __syncwarp();  // the compiler starts no computation between the loads
    Row rows[KERNEL_SIZE];
    rows[0].take(part.window(before[0], top), weights);
    rows[1].take(part.window(before[1], top + 1), weights);
    float mark = 0.0f;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        Loaded next[STEP_ROWS];
        if (step + 1 < STEPS)
#pragma unroll
            for (int i = 0; i < STEP_ROWS; ++i) part.load(next[i], top + 2 + (step + 1) * STEP_ROWS + i);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < STEP_ROWS; ++i) {
            const int t = step * STEP_ROWS + i, y = first_row + t;
            rows[(t + 2) % 3].take(part.window(loaded[i], top + 2 + t), weights);
            Words own;
            emit(weights, rows[t % 3], rows[(t + 1) % 3], rows[(t + 2) % 3], own.word, mark);
            unsigned char *const row = out + y * out_pitch;
#ifdef ANYWHERE
            const int fill = static_cast<int>(reinterpret_cast<unsigned long long>(row)) & (OUT_GRANULE - 1);
            const Words words = placed(own, fill);
#endif
            if (y >= size.out_height) continue;
#ifdef ANYWHERE
            unsigned char *const to = row + static_cast<long long>(start) * OUT_SAMPLE_BYTES;
            if (stores_places) store_words(to - fill, words);
            if (stores_some) {
                stay_a_branch();
                const int split = SAMPLES - fill / OUT_SAMPLE_BYTES;
                if (!is_regular || vector == 0) store_some(to, own, 0, is_regular ? split : SAMPLES);
                if (vector == regular - 1) store_some(to, own, split, SAMPLES);
            }
#else
            store_words(row + static_cast<long long>(start) * OUT_SAMPLE_BYTES, own);
#endif
        }
        if (step + 1 < STEPS)
#pragma unroll
            for (int i = 0; i < STEP_ROWS; ++i) loaded[i] = next[i];
    }

#ifdef MENDS
    // Each thread mends what it stored: with a shift some of it comes from the lane before.
    const int last_row = min(first_row + ROWS, size.out_height);
#ifdef ANYWHERE
    mark += __shfl_up_sync(0xFFFFFFFFu, mark, 1);
    const bool is_spoilt = is_stored && mark != mark;
#else
    const bool is_spoilt = mark != mark;
#endif
    if (is_spoilt)
#pragma unroll 1
        for (int y = first_row; y < last_row; ++y) {
            OUTPUT *const row = reinterpret_cast<OUTPUT *>(out + y * out_pitch);
            int first = start, last = start + SAMPLES;
#ifdef ANYWHERE
            const int fill = (static_cast<int>(reinterpret_cast<unsigned long long>(row)) & (OUT_GRANULE - 1)) / OUT_SAMPLE_BYTES;
            if (is_regular) first = max(first - fill, 0);
            if (vector < regular - 1) last -= fill;
#endif
            mend_samples(reinterpret_cast<const INPUT *>(image), row, plain_weights, size, y, first, last);
        }
#endif
}
