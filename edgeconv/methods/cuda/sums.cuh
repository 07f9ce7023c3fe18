// Sums of products, and how the responses of an output become one value: in float32, or in float64 where float32 does
// not hold the sums of a whole-number picture (exactness.py decides; WIDE_SUMS).
//
//     value = response | sqrt(response[0]² + response[1]²) | max over d of response[d]
//
// Denormal numbers are kept (intrinsics.cuh).
//
// WIDE_SUMS     sums in float64
// EXACT_ROOT    16-bit output of a magnitude of whole sums: rounded by the whole square, which float32 does not hold
#include "picture.cuh"

#ifdef WIDE_SUMS
typedef double Sum;
#else
typedef float Sum;
#endif

__device__ __forceinline__ float multiply_add(float weight, float sample, float sum) {
    return fused_multiply_add(weight, sample, sum);
}
template <typename Operand>
__device__ __forceinline__ double multiply_add(Operand weight, Operand sample, double sum) {
    return fma(static_cast<double>(weight), static_cast<double>(sample), sum);
}

// --- magnitudes ---------------------------------------------------------------------------------------------------------
constexpr unsigned EXPONENT_BITS = 0x7F800000u;
constexpr unsigned ONE_TWICE = 0x7F000000u;  // the bits of 2^k and of 2^-k add up to it
constexpr unsigned LEAST_SCALE = 0x01000000u, LARGEST_SCALE = 0x7E000000u;

// sqrt(first² + second²). For float outputs both are scaled by a power of two first, so that squares neither overflow nor
// vanish; where they would do neither, the result is that of the plain formula, bit for bit. The sums of a whole-number
// output are below 2^24 (exactness.py), and what vanishes rounds to 0 anyway. Half a level of 8 bits is 2^13 times further
// from the root of a whole square than the approximate root is. A half has as many bits less, and ends before squares do.
__device__ __forceinline__ float length_of(float first, float second) {
    constexpr bool IS_HALF = is_float(static_cast<const OUTPUT *>(nullptr)) && sizeof(OUTPUT) == 2;
    if (sizeof(OUTPUT) == sizeof(uint8) || IS_HALF) return approximate_root(fmaf(second, second, first * first));
    if (!is_float(static_cast<const OUTPUT *>(nullptr))) return sqrtf(fmaf(second, second, first * first));
    const unsigned exponent =
        max(__float_as_uint(first) & EXPONENT_BITS, __float_as_uint(second) & EXPONENT_BITS);
    const unsigned scale = min(max(exponent, LEAST_SCALE), LARGEST_SCALE);
    const float down = __uint_as_float(ONE_TWICE - scale);
    const float x = plain_multiply(first, down), y = plain_multiply(second, down);
    return plain_multiply(sqrtf(fmaf(y, y, x * x)), __uint_as_float(scale));
}
__device__ __forceinline__ double length_of(double first, double second) {
#ifdef USES_FLOAT64
    return hypot(first, second);
#else
    return sqrt(fma(second, second, first * first));
#endif
}

// The nearest whole number to sqrt(first² + second²), of whole numbers below 2^22; of larger ones something past 16 bits.
// The estimate is brought down by more than its error, so that it is right or one too low near a half: the square that is
// left over tells, and 32-bit integers hold it although they do not hold the square.
__device__ __forceinline__ unsigned whole_length(float first, float second) {
    constexpr float DOWN = 1.0f - 1.0f / 2097152.0f;  // by 2^-21, as the root's error is at most 2^-22
    constexpr float WHOLE_ORIGIN = 12582912.0f;  // 1.5·2^23: a sum added to it is the low bits
    const float root = approximate_root(fmaf(second, second, first * first));
    const unsigned length = __float_as_uint(fmaf(root, DOWN, TWO_POW_23)) - TWO_POW_23_BITS;
    const unsigned x = __float_as_uint(first + WHOLE_ORIGIN) - __float_as_uint(WHOLE_ORIGIN);
    const unsigned y = __float_as_uint(second + WHOLE_ORIGIN) - __float_as_uint(WHOLE_ORIGIN);
    const unsigned left = length * length + length - (x * x + y * y);  // negative beyond (length + ½)² - ¼
    return length + (left >> 31);
}

// The larger of two responses; a NaN stays one. (fmaxf would drop it, and -ftz=true make denormal numbers equal.)
__device__ __forceinline__ Sum larger(Sum a, Sum b) { return larger_or_nan(a, b); }

// A value as a float that is stored as the value would be: past the range of whole samples their limit will do.
template <typename Output>
__device__ __forceinline__ float storable(double value, const Output *) {
    constexpr double BEYOND = 65536.0;
    return static_cast<float>(fmin(fmax(rint(value), -BEYOND), BEYOND));
}
__device__ __forceinline__ float storable(double value, const float32 *) { return static_cast<float>(value); }
__device__ __forceinline__ double storable(double value, const float64 *) { return value; }
template <typename Output>
__device__ __forceinline__ float storable(float value, const Output *) {
    return value;
}

// The value of an output sample; response(d) gives the response of direction d.
template <typename Response>
__device__ __forceinline__ Real join(Response response) {
    Sum value = response(0);
    if (combine == Combine::magnitude) {
#if defined(EXACT_ROOT) && !defined(WIDE_SUMS)
        return static_cast<float>(whole_length(value, response(DIRECTIONS - 1)));
#else
        value = length_of(value, response(DIRECTIONS - 1));
#endif
    } else {
#pragma unroll
        for (int d = 1; d < DIRECTIONS; ++d) value = larger(value, response(d));
    }
    return storable(value, static_cast<const OUTPUT *>(nullptr));
}
