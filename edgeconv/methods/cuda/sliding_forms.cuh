// The sums of sliding.cu by the forms of core/lowering.py: the same filter for every plane.
//
// A plane is a channel, or the sum of a pixel's channels, each times its share (CHANNEL_SUM). A thread keeps the last
// three rows of its window as lanes, and makes each value of the nine lanes under the filter.
//
// A lane is one sample of a plane, in the type of sums. In float64 whole numbers are lanes as sums with shares alone.
//
// Variants, by macro FORM:
//     taps                    nine products for each direction, or for one of each two that are opposite (BY_SIZE)
//     gradient                differences of two samples first, along each axis, then sums of them across it
//     ring_of_three           the largest of eight directions, see core/lowering.py
//     ring_of_differences     the same
// ONE_BESIDE      flag: under FORM gradient, differences beside the middle one count once
// BY_SIZE         flag: under FORM taps, the largest size of a response is wanted
// CHANNEL_SUM     1: the channels are added as they are; 2: each times its share
//
// Float pictures (MENDS) are computed in the same way. Where a window holds a NaN or an infinity, or a sum overflows, the
// value is not finite, or is right all the same; what is not finite is computed again:
//     ring_of_three           the sum of the ring has every sample and every pair in it: what is not finite there spoils
//                             the value, whatever `largest` is. Another sum of three may be an infinity: a positive one
//                             is the largest, a negative one is less than the others, as the number would be.
//     ring_of_differences     three of four responses have a sample in them, and a maximum keeps NaN and infinite sizes
//     taps                    every response has every sample in it; a response that overflows downwards is not the largest
//     gradient                no maximum drops anything: what is not finite stays so
// Samples under zero weights alone are no part of the operation (api/check.py). Denormal numbers are kept;
// core/lowering.py counts the roundings.
enum class Form { taps, gradient, ring_of_three, ring_of_differences };
constexpr Form form = Form::FORM;

#ifdef CHANNEL_SUM
constexpr int PLANES = 1, SUMMED = CHANNELS;
constexpr bool HAS_SHARES = CHANNEL_SUM == 2;
#else
constexpr int PLANES = CHANNELS, SUMMED = 1;
constexpr bool HAS_SHARES = false;
#endif

constexpr bool FLOAT_SAMPLES = is_float(static_cast<const INPUT *>(nullptr));
constexpr int MOST_KERNELS = 8;

#include "lanes.cuh"

struct Weights {
    Lane share[3];                                      // scaled, see HAS_SCALE; of a float picture what keeps `kernel` below 1
    Lane near, far;                                     // of a ring; of a gradient beside the middle, and in it
    Lane kernel[MOST_KERNELS][KERNEL_SIZE][KERNEL_SIZE];  // of taps
};
typedef Weights Filter;
__device__ __forceinline__ const Filter &filter_of(const Weights &weights, int) { return weights; }
constexpr int PARTS_OF_ROW = 1;

__device__ __forceinline__ Lane ring_of_differences(const Lane (&apart)[OPPOSITE], const Filter &filter) {
    return multiply_add(filter.far, Lane(), multiply(filter.near, largest_of_differences(apart)));
}

// --- a row of a thread's window ---------------------------------------------------------------------------------------------
constexpr int WINDOW_BYTE = LEAD - WINDOW_START;  // of the window's first sample
// A whole number is the bits of its multiple of 2^-149: times a share of up to 2^126 it is a plane's value times 2^-23.
constexpr bool HAS_SCALE = HAS_SHARES && !FLOAT_SAMPLES;
constexpr Lane SCALE = sizeof(Lane) == sizeof(double) ? TWO_POW_52 : TWO_POW_23;  // in float64 2^-1074, 2^1022, 2^-52
// Differences of two samples, or of two sums, are exact with 2^23 on both sides.
constexpr float SAMPLE_ORIGIN = form == Form::gradient || form == Form::ring_of_differences ? 0.0f : TWO_POW_23;

constexpr int VALUES = THREAD_PIXELS * PLANES;
constexpr int ROW_LANES = WINDOW_PIXELS * PLANES;
__device__ __forceinline__ constexpr int lane_of(int value, int v) {
    return (value / PLANES * STRIDE + v) * PLANES + value % PLANES;
}

// A one in every sample of a word that lies from byte `from` to `from` + PIXEL_BYTES of the window, else zero: as the
// bytes that dp4a and dp2a take.
__device__ __forceinline__ constexpr unsigned ones(int word, int from) {
    unsigned mask = 0;
    for (int i = 0; i < WORD / SAMPLE_BYTES; ++i) {
        const int byte = word * WORD + i * SAMPLE_BYTES;
        if (byte >= from && byte < from + PIXEL_BYTES) mask |= 1u << 8 * i;
    }
    return mask;
}

// The sum of the channels of pixel `i` of a window.
__device__ __forceinline__ Lane add_channels(const Window &window, int i) {
    if (FLOAT_SAMPLES) {
        Lane sum = window.sample(i * SUMMED);
#pragma unroll
        for (int c = 1; c < SUMMED; ++c) sum = plain_add(sum, window.sample(i * SUMMED + c));
        return sum;
    }
    const int from = WINDOW_BYTE + i * PIXEL_BYTES;
    unsigned bits = TWO_POW_23_BITS;
#pragma unroll
    for (int word = from / WORD; word * WORD < from + PIXEL_BYTES; ++word)
        bits = SAMPLE_BYTES == 1 ? dot_of_bytes(window.word[word], ones(word, from), bits)
                                 : dot_of_shorts(window.word[word], ones(word, from), bits);
    return __uint_as_float(bits) - SAMPLE_ORIGIN;
}

// Sample `i` of a window, for a share to multiply it.
__device__ __forceinline__ Lane term(const Window &window, int i) {
    return FLOAT_SAMPLES ? window.sample(i) : window.sample_bits(i);
}

struct PlaneRow {
    Lane lane[ROW_LANES];
    Lane across[VALUES];  // of a gradient: right of the centre less left of it

    __device__ __forceinline__ void take(const Window &window, const Filter &filter) {
#pragma unroll
        for (int i = 0; i < ROW_LANES; ++i) {
            if (SUMMED == 1) {
                lane[i] = FLOAT_SAMPLES ? window.sample(i) : window.sample_above(i) - SAMPLE_ORIGIN;
            } else if (HAS_SHARES) {
                lane[i] = plain_multiply(filter.share[0], term(window, i * SUMMED));
#pragma unroll
                for (int c = 1; c < SUMMED; ++c)
                    lane[i] = fused_multiply_add(filter.share[c], term(window, i * SUMMED + c), lane[i]);
            } else {
                lane[i] = add_channels(window, i);
            }
        }
        if (form == Form::gradient)
#pragma unroll
            for (int n = 0; n < VALUES; ++n) across[n] = subtract(lane[lane_of(n, 2)], lane[lane_of(n, 0)]);
    }
};

// --- from three rows to samples -------------------------------------------------------------------------------------------
// Row `u` of kernel `d` over the window of a value, added to `sum`.
__device__ __forceinline__ Lane add_taps(const Filter &filter, int d, int u, const PlaneRow &row, int value, Lane sum) {
#pragma unroll
    for (int v = 0; v < KERNEL_SIZE; ++v)
        sum = fused_multiply_add(filter.kernel[d][u][v], row.lane[lane_of(value, v)], sum);
    return sum;
}
__device__ __forceinline__ Lane taps(const Filter &filter, int d, const PlaneRow &above, const PlaneRow &middle,
                                     const PlaneRow &below, int value) {
    return add_taps(filter, d, 2, below, value, add_taps(filter, d, 1, middle, value, add_taps(filter, d, 0, above, value, 0)));
}

// The largest of the responses, or of their sizes.
__device__ __forceinline__ Lane largest_of_taps(const Filter &filter, const PlaneRow &above, const PlaneRow &middle,
                                                const PlaneRow &below, int value) {
#ifdef BY_SIZE
    Lane largest = 0;
#pragma unroll
    for (int d = 0; d < DIRECTIONS / 2; ++d) largest = larger_size(largest, taps(filter, d, above, middle, below, value));
#else
    Lane largest = taps(filter, 0, above, middle, below, value);
#pragma unroll
    for (int d = 1; d < DIRECTIONS; ++d) largest = larger(largest, taps(filter, d, above, middle, below, value));
#endif
    return largest;
}

// Three differences, as one direction of a gradient.
__device__ __forceinline__ Lane smooth(const Filter &filter, Lane first, Lane middle, Lane last) {
#ifdef ONE_BESIDE
    return fused_multiply_add(filter.far, middle, add(first, last));
#else
    return fused_multiply_add(filter.far, middle, plain_multiply(filter.near, add(first, last)));
#endif
}

#ifdef EXACT_ROOT
typedef unsigned Value, Packed;
__device__ __forceinline__ Packed packed(Value value) { return value; }
#else
typedef Lane Value;
typedef Real Packed;
__device__ __forceinline__ Packed packed(Value value) { return storable(value, static_cast<const OUTPUT *>(nullptr)); }
#endif

// Put one row into the stage, as samples; `mark` becomes NaN with a value that is not finite (MENDS).
__device__ __forceinline__ void stage_row(unsigned char *staged, int lane, const PlaneRow &above, const PlaneRow &middle,
                                          const PlaneRow &below, const Filter &filter, Lane &mark) {
    Value value[VALUES];
    Lane down[ROW_LANES];
    if (form == Form::gradient)
#pragma unroll
        for (int i = 0; i < ROW_LANES; ++i) down[i] = subtract(below.lane[i], above.lane[i]);
#pragma unroll
    for (int n = 0; n < VALUES; ++n) {
        const int left = lane_of(n, 0), centre = lane_of(n, 1), right = lane_of(n, 2);
        const Lane ring[RING] = {above.lane[left],  above.lane[centre], above.lane[right], middle.lane[right],
                                 below.lane[right], below.lane[centre], below.lane[left],  middle.lane[left]};
        Lane apart[OPPOSITE];
#pragma unroll
        for (int i = 0; i < OPPOSITE; ++i) apart[i] = subtract(ring[i], ring[i + OPPOSITE]);
        if (form == Form::ring_of_three) {
            value[n] = ring_of_three(ring, filter.near, filter.far);
        } else if (form == Form::ring_of_differences) {
            value[n] = ring_of_differences(apart, filter);
        } else if (combine == Combine::maximum) {
            value[n] = largest_of_taps(filter, above, middle, below, n);
        } else {
            Lane first, second = 0;
            if (form == Form::gradient) {
                first = smooth(filter, above.across[n], middle.across[n], below.across[n]);
                second = smooth(filter, down[left], down[centre], down[right]);
            } else {
                first = taps(filter, 0, above, middle, below, n);
                if (DIRECTIONS == 2) second = taps(filter, 1, above, middle, below, n);
            }
#ifdef EXACT_ROOT
            value[n] = whole_length(first, second);
#else
            value[n] = combine == Combine::magnitude ? length(first, second) : first;
#endif
        }
#ifdef MENDS
        mark = fused_multiply_add(value[n], Lane(), mark);
#elif !defined(EXACT_ROOT)
        if (HAS_SCALE) value[n] *= SCALE;
#endif
    }

    unsigned word[THREAD_OUT_WORDS];
#pragma unroll
    for (int i = 0; i < THREAD_SAMPLES / PACKED; ++i) {
        Packed sample[PACKED];
#pragma unroll
        for (int k = 0; k < PACKED; ++k) {
            const int place = i * PACKED + k;  // outputs of a pixel are those of its planes, or all of its one plane
            sample[k] = packed(value[place / OUT_CHANNELS * PLANES + (PLANES == 1 ? 0 : place % OUT_CHANNELS)]);
        }
#ifdef EXACT_ROOT
        word[i] = pack_shorts(sample[0], sample[1]);
#else
        pack_into(word + i * PACKED_WORDS, sample);
#endif
    }
    put(staged, lane, word);
}

// A thread's part of a strip, going down: the rows of the picture that outputs under way have in common.
struct Column {
    PlaneRow kept[2];

    __device__ __forceinline__ void start() { kept[0] = kept[1] = PlaneRow(); }

    // Take the input rows of a step, put the output rows that end with them into the stage.
    __device__ __forceinline__ void step(const StepRows &rows, const StagedRows &staged, int lane, int,
                                         const Filter &filter, int) {
        constexpr int LAST = STRIDE < KERNEL_SIZE ? 0 : 2;  // of the rows of an output, that which ends it
        Lane mark = 0;
#pragma unroll
        for (int y = 0; y < STEP_ROWS; ++y)
#pragma unroll
            for (int i = 0; i < ROWS_OF_OUTPUT; ++i) {
                Window window;
                window.read(rows.row(y * ROWS_OF_OUTPUT + i), lane);
                PlaneRow row;
                row.take(window, filter);
                if (i == LAST) stage_row(staged.row(y), lane, kept[0], kept[1], row, filter, mark);
                if (STRIDE == 1) kept[0] = kept[1], kept[1] = row;
                if (STRIDE > 1 && i < 2) kept[i] = row;
            }
#ifdef MENDS
        if (!is_finite(mark)) block_is_spoilt = 1;
#endif
    }
};
