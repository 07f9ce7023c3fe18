// canny, first pass: smoothing, gradient and thinning of uint8 pictures, read once; two bits a pixel come out.
//
// A thread walks down a strip of eight pixels' width and keeps all it needs in registers: no thread waits for another.
// It reads four pixels more to either side, and computes the gradient of one more. Pixels x and x + 4 of a thread are a
// pair, two halves of a word (intrinsics.cuh), which are exact: their sums and differences stay within ±2047, negative
// ones carry the half's sign bit. So a neighbour is another register, and most instructions do two pixels.
//
// With each row of the picture, from top to bottom, by the definitions of edgeconv/core/canny.py:
//     smooth       sums across, then sums of the last rows; whole numbers of 16 bits
//     gradient     difference and sum across (h, s), then over three rows gx and gy; of RGB the channel of the largest size
//     thin         a pixel of the row above, now that its neighbours below are known
// so output is 2 + BLUR/2 rows behind input, and strips begin and end with as many rows more. Of "signs" only bits 15
// and 31 count: a truth value for each number of a pair.
//
// The sector of a gradient is that of the sign of |gy| - t·|gx|, t = 13573/2^15 = 1697/2^12 - 3/2^15, in two steps of half
// precision: the first is exact where it is below 1/2, where alone the second can change the sign. Of numbers up to 1020
// none lies between 1/t and t + 2, so that |gx| - t·|gy| tells the other sector boundary (tests/test_cuda_canny.py).
//
// The map: 16 bits for eight pixels, the last 16 of a row for its last eight. Bit 2·(i / 2) + 8·(i % 2) is set where pixel
// i is an edge pixel, weak or strong, and the next one where it is strong.
//
// Macros that decide what is computed (a flag is defined, or not):
//     CHANNELS    1 3      grey, RGB
//     L2          flag     a magnitude is gx² + gy² instead of |gx| + |gy|
//     BLUR        0 3 5    size of the smoothing
// Macro that says how the picture lies:
//     ALIGNED     0 1      1 where the first pixel of every thread starts on 8 bytes
// Macros that change speed alone: THREADS, MIN_BLOCKS
#include "intrinsics.cuh"

typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned Pair;

constexpr int PAIRS = 4;
constexpr int PIXELS = 2 * PAIRS;  // of a thread in a row
constexpr int WORD = 4;
constexpr int REACH = 4;  // pixels that a thread reads on either side of its own
constexpr int RADIUS = BLUR / 2;
constexpr int HALO_WORDS = REACH * CHANNELS / WORD;
constexpr int INNER_WORDS = PIXELS * CHANNELS / WORD;
constexpr int WORDS = INNER_WORDS + 2 * HALO_WORDS;
constexpr int RAW_WORDS = WORDS + (ALIGNED ? 0 : 1);
constexpr int ROWS = 3;  // of the rings in registers
static_assert(REACH >= 2 + RADIUS, "smoothing, gradient and thinning look that far");

// Sizes in pixels; strips and their threads lie one behind another, whatever the blocks. canny.py fills it.
struct ThinGeometry {
    int height, width, pictures;
    int columns, strips, rows_per_strip;  // threads side by side; strips of a picture
    int row_units;  // 16 bits each: the map from one row to the next
    unsigned low, high;  // thresholds; pairs of equal numbers, or the bits of floats
};

// --- pixels of a thread in registers ----------------------------------------------------------------------------------
// Register i < PAIRS holds pixels i and i + 4, register PAIRS + d - 1 the outer ones -d and 7 + d.
__device__ __forceinline__ constexpr int low_pixel(int i) { return i < PAIRS ? i : PAIRS - 1 - i; }
__device__ __forceinline__ constexpr int high_pixel(int i) { return i + PAIRS; }
__device__ __forceinline__ constexpr int register_of(int pixel) {
    return pixel < 0 ? PAIRS - 1 - pixel : pixel < PAIRS ? pixel : pixel - PAIRS;
}
__device__ __forceinline__ constexpr bool is_high(int pixel) { return pixel >= PAIRS; }

// Pixels `low` and `high` as a pair; constants when unrolled, so that this is one instruction or none.
__device__ __forceinline__ Pair pair_of(const Pair *pairs, int low, int high) {
    const int first = register_of(low), second = register_of(high);
    if (first == second && !is_high(low) && is_high(high)) return pairs[first];
    return pick_bytes(pairs[first], pairs[second], (is_high(low) ? 0x32 : 0x10) | (is_high(high) ? 0x7600 : 0x5400));
}
// The pixels `step` to the right of those of register i.
__device__ __forceinline__ Pair beside(const Pair *pairs, int i, int step) {
    return pair_of(pairs, low_pixel(i) + step, high_pixel(i) + step);
}

constexpr Pair LOW_BYTES = 0x00FF00FF;

// All pixels of a channel as whole numbers: PAIRS registers and `outer` more.
__device__ __forceinline__ void unpack(const unsigned *words, int channel, int outer, Pair *pairs) {
#pragma unroll
    for (int i = 0; i < PAIRS; ++i) {
        // Byte b of a word and of the one four pixels on; the compiler makes the words of two of them once.
        const int byte = i * CHANNELS + channel, word = HALO_WORDS + byte / WORD, b = byte % WORD;
        const unsigned both = pick_bytes(words[word], words[word + INNER_WORDS / 2], b < 2 ? 0x5410 : 0x7632);
        pairs[i] = b % 2 ? pick_bytes(both, 0, 0x4341) : both & LOW_BYTES;
    }
#pragma unroll
    for (int d = 1; d <= outer; ++d) {
        const int left = (REACH - d) * CHANNELS + channel, right = (REACH + PIXELS + d - 1) * CHANNELS + channel;
        const unsigned which = left % WORD | (WORD + right % WORD) << 8;
        pairs[PAIRS + d - 1] = pick_bytes(words[left / WORD], words[right / WORD], which) & LOW_BYTES;
    }
}

// --- reading ------------------------------------------------------------------------------------------------------------
__device__ __forceinline__ int reflected(int position, int size) {  // border reflect101
    if (size == 1) return 0;
    while (position < 0 || position >= size) position = position < 0 ? -position : 2 * (size - 1) - position;
    return position;
}

// A word of which no byte from `end` on is touched.
__device__ __forceinline__ unsigned word_before(const uint8 *at, const uint8 *end) {
    if (at + WORD <= end) return *reinterpret_cast<const unsigned *>(at);
    unsigned word = 0;
#pragma unroll 1
    for (int i = 0; i < WORD && at + i < end; ++i) word |= static_cast<unsigned>(at[i]) << 8 * i;
    return word;
}

// What a thread knows of its place in every row.
struct Place {
    int x;      // first pixel
    int after;  // pixels of the picture to the right of the thread's
    unsigned skew;  // bytes that the outer pixels start past a word
    unsigned edge;  // which bytes of an outer pair, and which of another, make that pair; see outermost
    Pair inside;    // which of the pixels -1 and 8 are in the picture
};

// Start to read a row from pixel x - REACH on. Words that hold no pixel of the picture are left as they are.
__device__ __forceinline__ void read_row(unsigned *raw, const uint8 *row, const Place &place, const uint8 *end) {
    const uint8 *const from = row + static_cast<long long>(place.x - REACH) * CHANNELS;
    if (ALIGNED) {
        const unsigned *const words = reinterpret_cast<const unsigned *>(from);
#pragma unroll
        for (int i = 0; i < HALO_WORDS; ++i) {
            if (place.x > 0) raw[i] = words[i];
            if (place.after > 0) raw[WORDS - HALO_WORDS + i] = words[WORDS - HALO_WORDS + i];
        }
#pragma unroll
        for (int i = HALO_WORDS; i < HALO_WORDS + INNER_WORDS; i += 2) {
            const uint2 two = *reinterpret_cast<const uint2 *>(words + i);
            raw[i] = two.x, raw[i + 1] = two.y;
        }
        return;
    }
    const uint8 *const words = from - place.skew;
    const bool halo_follows = place.after >= REACH, is_skewed = place.skew > 0;
#pragma unroll
    for (int i = 0; i < RAW_WORDS; ++i) {
        constexpr int RIGHT = WORDS - HALO_WORDS;
        if (i < HALO_WORDS && place.x == 0) continue;
        if (i == RIGHT && !halo_follows && !is_skewed) continue;
        if (i > RIGHT && !halo_follows) continue;
        if (i == WORDS && !is_skewed) continue;
        const uint8 *const at = words + i * WORD;
        raw[i] = i >= RIGHT && end ? word_before(at, end) : *reinterpret_cast<const unsigned *>(at);
    }
}

// The words of a row that was read, as if it had started on a word.
__device__ __forceinline__ void align_row(const unsigned *raw, unsigned *words, const uint8 *row, const Place &place,
                                          int width) {
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        words[i] = ALIGNED ? raw[i] : __funnelshift_r(raw[i], raw[i + 1], place.skew * 8);
    if (!ALIGNED && place.after > 0 && place.after < REACH) {
        // The picture ends among the outer pixels.
#pragma unroll
        for (int word = 0; word < HALO_WORDS; ++word) {
            unsigned bytes = 0;
#pragma unroll
            for (int i = 0; i < WORD; ++i) {
                const int byte = word * WORD + i, column = place.x + PIXELS + byte / CHANNELS;
                const int source = BLUR ? reflected(column, width) : min(column, width - 1);
                bytes |= static_cast<unsigned>(row[static_cast<long long>(source) * CHANNELS + byte % CHANNELS]) << 8 * i;
            }
            words[WORDS - HALO_WORDS + word] = bytes;
        }
    }
}

// An outer pair whose pixels beyond the left or the right edge of the picture come from `instead`.
__device__ __forceinline__ Pair outermost(Pair outer, Pair instead, const Place &place) {
    return pick_bytes(outer, instead, place.edge);
}

// --- smoothing ----------------------------------------------------------------------------------------------------------
constexpr int SMOOTH_PAIRS = PAIRS + 2;  // with the outer pixels that the gradient needs
#if BLUR
// Sums across, of pixels that the border reflects.
__device__ __forceinline__ void sum_across(Pair *pairs, const Place &place, Pair *sums) {
#pragma unroll
    for (int d = 1; d <= RADIUS; ++d)
        pairs[PAIRS + d - 1] = outermost(pairs[PAIRS + d - 1], pair_of(pairs, d, PIXELS - 1 - d), place);
#pragma unroll
    for (int i = 0; i < SMOOTH_PAIRS; ++i) {
        const Pair near = beside(pairs, i, -1) + beside(pairs, i, 1);
        if (BLUR == 3)
            sums[i] = near + 2 * pairs[i];
        else
            sums[i] = beside(pairs, i, -2) + beside(pairs, i, 2) + 4 * near + 6 * pairs[i];
    }
}

// Sums down, divided and rounded: whole numbers again.
__device__ __forceinline__ Pair divided(Pair sum) {
    if (BLUR == 3) return (sum + 0x00080008u) >> 4 & LOW_BYTES;
    return pick_bytes(sum + 0x00800080u, 0, 0x4341);
}

// The last sums of a thread: binomials of 3 rows, and of those again for 5. Of three channels they take more registers
// than there are, so they stay in shared memory, where only their own thread looks at them.
constexpr int SUMS = CHANNELS * SMOOTH_PAIRS, LEVELS = RADIUS;
#if CHANNELS > 1
__shared__ Pair last_sums[LEVELS][2][SUMS][THREADS];
#endif
struct Smoothing {
#if CHANNELS == 1
    Pair last_sums[LEVELS][ROWS][SUMS];
#endif
    // The smoothed pair i of a channel, RADIUS rows above the row whose sums across are given.
    __device__ __forceinline__ Pair next(Pair sum, int channel, int i, int step, int now) {
        const int k = channel * SMOOTH_PAIRS + i;
#pragma unroll
        for (int level = 0; level < LEVELS; ++level) {
#if CHANNELS > 1
            Pair &oldest = last_sums[level][step % 2][k][threadIdx.x];
            const Pair outer = oldest + sum, middle = last_sums[level][(step + 1) % 2][k][threadIdx.x];
            oldest = sum;
#else
            last_sums[level][now][k] = sum;
            const Pair outer = last_sums[level][(now + ROWS - 2) % ROWS][k] + sum;
            const Pair middle = last_sums[level][(now + ROWS - 1) % ROWS][k];
#endif
            sum = outer + 2 * middle;
        }
        return divided(sum);
    }
};
#endif

// --- gradient and size --------------------------------------------------------------------------------------------------
constexpr Pair TWO = 0x40004000;

struct Across {  // of a row and a channel, with the outer pair: difference and sum of the pixels beside
    Pair h[PAIRS + 1], s[PAIRS + 1];
};
__device__ __forceinline__ void look_across(const Pair *pairs, Across &row) {
#pragma unroll
    for (int i = 0; i <= PAIRS; ++i) {
        const Pair left = beside(pairs, i, -1), right = beside(pairs, i, 1);
        row.h[i] = subtract_halves(right, left);
        row.s[i] = multiply_add_halves(pairs[i], TWO, add_halves(left, right));
    }
}

#ifdef L2
struct Size {
    float low, high;  // in units of 2^-48
};
__device__ __forceinline__ Size size_of(Pair gx, Pair gy) {
    const float x0 = half_as_float(gx, 0), x1 = half_as_float(gx, 1);
    const float y0 = half_as_float(gy, 0), y1 = half_as_float(gy, 1);
    return {fmaf(x0, x0, y0 * y0), fmaf(x1, x1, y1 * y1)};
}
// The signs of a < b.
__device__ __forceinline__ unsigned less(Size a, Size b) {
    return pick_bytes(__float_as_uint(a.low - b.low), __float_as_uint(a.high - b.high), 0x7632);
}
__device__ __forceinline__ Size larger(Size a, Size b, unsigned) { return {fmaxf(a.low, b.low), fmaxf(a.high, b.high)}; }
__device__ __forceinline__ Size excess(Size a, Size b) {
    return {fmaxf(a.low - b.low, 0.0f), fmaxf(a.high - b.high, 0.0f)};
}
__device__ __forceinline__ Size masked(Size a, Pair mask) {
    return {mask & 0xFFFF ? a.low : 0.0f, mask >> 16 ? a.high : 0.0f};
}
__device__ __forceinline__ Size both_low(Size a, Size b) { return {a.low, b.low}; }
__device__ __forceinline__ Size both_high(Size a, Size b) { return {a.high, b.high}; }
__device__ __forceinline__ Size threshold_of(unsigned bits) { return {__uint_as_float(bits), __uint_as_float(bits)}; }
constexpr unsigned NOTHING_ABOVE = 0x3F800000;  // larger than any size
#else
typedef Pair Size;
__device__ __forceinline__ Size size_of(Pair gx, Pair gy) {
    return add_halves(absolute_halves(gx), absolute_halves(gy));
}
// The signs of a < b: a difference of 0 is positive.
__device__ __forceinline__ unsigned less(Size a, Size b) { return subtract_halves(a, b); }
__device__ __forceinline__ Size larger(Size a, Size b, unsigned b_is) { return (b & b_is) | (a & ~b_is); }
__device__ __forceinline__ Size excess(Size a, Size b) { return excess_of_halves(a, b); }
__device__ __forceinline__ Size masked(Size a, Pair mask) { return a & mask; }
__device__ __forceinline__ Size both_low(Size a, Size b) { return pick_bytes(a, b, 0x5410); }
__device__ __forceinline__ Size both_high(Size a, Size b) { return pick_bytes(a, b, 0x7632); }
__device__ __forceinline__ Size threshold_of(unsigned bits) { return bits; }
constexpr unsigned NOTHING_ABOVE = 0x07FF07FF;  // larger than any size
#endif

// A row of sizes: register i holds pixels i - 1 and i + 3. Up to the lower threshold a size is 0: no pixel that counts
// is smaller than it, whatever it was.
struct Gradient {
    Pair gx[PAIRS], gy[PAIRS];
    Size size[PAIRS + 2];
    unsigned exceeds[PAIRS];  // signs: larger than the pixel above
};
__device__ __forceinline__ void find_gradient(const Across *above, const Across *middle, const Across *below,
                                              const Place &place, Size low, const Gradient &row_above, Gradient &row) {
    Size outer;
#pragma unroll
    for (int i = 0; i <= PAIRS; ++i) {
        Pair gx, gy;
        Size size;
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) {
            const Pair x = add_halves(multiply_add_halves(middle[c].h[i], TWO, above[c].h[i]), below[c].h[i]);
            const Pair y = subtract_halves(below[c].s[i], above[c].s[i]);
            const Size its = size_of(x, y);
            if (c == 0) {
                gx = x, gy = y, size = its;
                continue;
            }
            const unsigned larger_one = pick_bytes(less(size, its), 0, 0xBB99);  // in all bits of a number
            gx = (x & larger_one) | (gx & ~larger_one);
            gy = (y & larger_one) | (gy & ~larger_one);
            size = larger(size, its, larger_one);
        }
        size = excess(size, low);
        if (i < PAIRS) {
            row.gx[i] = gx, row.gy[i] = gy, row.size[i + 1] = size;
            row.exceeds[i] = less(row_above.size[i + 1], size);
        } else {
            outer = masked(size, place.inside);
        }
    }
    row.size[0] = both_low(outer, row.size[PAIRS]);
    row.size[PAIRS + 1] = both_high(row.size[1], outer);
}

// --- thinning -----------------------------------------------------------------------------------------------------------
constexpr Pair LARGE = 0x78007800;  // 2^15: numbers far enough from the smallest halves
constexpr Pair MINUS_TANGENT = 0xB6A1B6A1, TANGENT_REST = 0x06000600;  // -1697/2^12 and 3/2^15

// The signs of a < t·b; both were multiplied by LARGE.
__device__ __forceinline__ unsigned below_tangent(Pair a, Pair b) {
    return multiply_add_halves(b, TANGENT_REST, multiply_add_halves(b, MINUS_TANGENT, a));
}

// Eight pixels of the map: those of `row`, which lies between two others.
__device__ __forceinline__ uint16 thinned(const Gradient &above, const Gradient &row, const Gradient &below, Size high) {
    constexpr unsigned FIRST_BITS = 0x10011001;  // of pixels 5, 1, 4, 0
    unsigned bits = 0, signs = 0, strong_signs = 0;
    unsigned left = less(row.size[0], row.size[1]);  // larger than the neighbour on the left
#pragma unroll
    for (int i = 0; i < PAIRS; ++i) {
        const Size size = row.size[i + 1];
        const Pair x = multiply_halves(absolute_halves(row.gx[i]), LARGE);
        const Pair y = multiply_halves(absolute_halves(row.gy[i]), LARGE);
        const unsigned flat = below_tangent(y, x), steep = below_tangent(x, y), falling = row.gx[i] ^ row.gy[i];
        const unsigned next_left = less(size, row.size[i + 2]);
        const unsigned across = left & ~next_left & flat;
        const unsigned down = row.exceeds[i] & ~below.exceeds[i] & steep;
        const unsigned backward = less(above.size[i], size) & less(below.size[i + 2], size);
        const unsigned forward = less(above.size[i + 2], size) & less(below.size[i], size);
        const unsigned diagonal = ((forward & falling) | (backward & ~falling)) & ~(flat | steep);
        const unsigned edge = across | down | diagonal, strong = less(high, size);
        left = next_left;
        if (i % 2 == 0) {
            signs = edge, strong_signs = strong;
            continue;
        }
        bits |= pick_bytes(signs, edge, 0xFDB9) & FIRST_BITS << (i - 1);
        bits |= pick_bytes(strong_signs, strong, 0xFDB9) & FIRST_BITS << i;
    }
    bits &= bits << 1 | 0x55555555u;  // strong ones are edge pixels
    return static_cast<uint16>(pick_bytes(bits | bits >> 8, 0, 0x4420));
}

// --- the pass -----------------------------------------------------------------------------------------------------------
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    canny_thin(const uint8 *__restrict__ image, uint16 *__restrict__ map, const __grid_constant__ ThinGeometry size) {
    unsigned index = blockIdx.x * THREADS + threadIdx.x;
    const unsigned column = index % size.columns;
    index /= size.columns;
    const int first_y = static_cast<int>(index % size.strips) * size.rows_per_strip;
    const int picture = static_cast<int>(index / size.strips);
    if (picture >= size.pictures) return;
    const unsigned row_bytes = size.width * CHANNELS;  // 32 bits, which a multiplication takes at once
    image += static_cast<long long>(picture) * size.height * row_bytes;

    Place place;
    place.x = min(static_cast<int>(column) * PIXELS, size.width - PIXELS);
    place.after = size.width - PIXELS - place.x;
    const bool at_left = place.x == 0, at_right = place.after == 0;
    place.edge = (at_left ? 0x54 : 0x10) | (at_right ? 0x7600 : 0x3200);
    place.inside = (at_left ? 0 : 0xFFFFu) | (at_right ? 0 : 0xFFFF0000u);
    const unsigned next_is_last = place.after == 1 ? 0x7610 : 0x3210;
    const Size low = threshold_of(size.low), high = threshold_of(size.high), nothing_above = threshold_of(NOTHING_ABOVE);

    const int rows = min(size.rows_per_strip, size.height - first_y);
    const int steps = rows + 2 * (2 + RADIUS);
    const auto start_of = [&](int step) {
        const int y = first_y - 2 - RADIUS + step;
        const unsigned source = BLUR ? reflected(y, size.height) : max(min(y, size.height - 1), 0);
        return image + static_cast<unsigned long long>(source) * row_bytes;
    };
    const uint8 *const end = image + static_cast<long long>(row_bytes) * size.height;
    const auto start_row = [&](unsigned *raw, const uint8 *row) {
        // Rows may start anywhere in a word, so the skew is that of the row.
        if (!ALIGNED) place.skew = static_cast<unsigned>(reinterpret_cast<unsigned long long>(row + place.x * CHANNELS)) % WORD;
        const bool is_last = row + row_bytes == end;
        if (!ALIGNED && is_last)
            read_row(raw, row, place, end);
        else
            read_row(raw, row, place, nullptr);
    };

    unsigned raw[RAW_WORDS] = {};
    const uint8 *row = start_of(0);
    start_row(raw, row);
    uint16 *to = map + (static_cast<long long>(picture) * size.height + first_y) * size.row_units + column;
    Across across[ROWS][CHANNELS];
    Gradient gradient[ROWS];
#if BLUR
    Smoothing smoothing;
#endif
#pragma unroll 1
    for (int first = 0; first < steps; first += ROWS) {
#pragma unroll
        for (int now = 0; now < ROWS; ++now) {
            const int step = first + now;
            if (step >= steps) break;
            const int before = (now + ROWS - 1) % ROWS, two_before = (now + ROWS - 2) % ROWS;
            unsigned words[WORDS];
            align_row(raw, words, row, place, size.width);
            row = start_of(min(step + 1, steps - 1));
            unsigned next[RAW_WORDS];  // what is not read has no value, and is not looked at
            start_row(next, row);      // arrives while this row is computed
#pragma unroll
            for (int i = 0; i < RAW_WORDS; ++i) raw[i] = next[i];

            const int smooth_y = first_y - 2 + step - 2 * RADIUS;
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c) {
                Pair pairs[PAIRS + REACH];
                unpack(words, c, 2 + RADIUS, pairs);
#if BLUR
                Pair sums[SMOOTH_PAIRS];
                sum_across(pairs, place, sums);
#pragma unroll
                for (int i = 0; i < SMOOTH_PAIRS; ++i) pairs[i] = smoothing.next(sums[i], c, i, step, now);
#endif
                pairs[PAIRS] = outermost(pairs[PAIRS], pair_of(pairs, 0, PIXELS - 1), place);
                if (!ALIGNED) pairs[PAIRS + 1] = pick_bytes(pairs[PAIRS + 1], pairs[PAIRS], next_is_last);
                look_across(pairs, across[now][c]);
            }
#if BLUR
            // Beyond the first and the last row of the smoothed picture stands that row again.
            if (smooth_y == 0) {
                stay_a_branch();
#pragma unroll
                for (int c = 0; c < CHANNELS; ++c) across[before][c] = across[now][c];
            }
            if (smooth_y == size.height) {
                stay_a_branch();
#pragma unroll
                for (int c = 0; c < CHANNELS; ++c) across[now][c] = across[before][c];
            }
#endif
            const bool outside = smooth_y <= 0 || smooth_y > size.height;  // the row of the gradient
            find_gradient(across[two_before], across[before], across[now], place, outside ? nothing_above : low,
                          gradient[before], gradient[now]);
            if (step < 2 * RADIUS + 4) continue;
            *to = thinned(gradient[two_before], gradient[before], gradient[now], high);
            to += size.row_units;
        }
    }
}
