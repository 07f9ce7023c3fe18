// Pictures as kernels see them: sample types, borders, and the rule by which a value becomes a stored sample.
//
// HWC, three channels or one, C-contiguous. INPUT and OUTPUT are macros that carry NumPy's type names
// (-DINPUT=uint8), BORDER, COMBINE and STORE the names of geometry.py, filters.py and output.py.
// Offsets into a picture are 64 bits: a picture may be larger than 2^31 bytes.
#ifdef USES_FLOAT16
#include <cuda_fp16.h>
typedef __half float16;
#endif
#include "intrinsics.cuh"

typedef unsigned char uint8;
typedef unsigned short uint16;
typedef float float32;
typedef double float64;

// What a sample, a weight and a value are computed as: float, or double for float64 pictures.
#ifdef USES_FLOAT64
typedef double Real;
#else
typedef float Real;
#endif

// Sizes in pixels; picture_geometry() of kernel_args.py fills it. The stride is a macro where it changes the code.
struct Geometry {
    int height, width, out_height, out_width, padding;
};
struct StridedGeometry : Geometry {
    int stride;
};

enum class Border { zero, replicate, reflect, reflect101 };
enum class Combine { single, magnitude, maximum };
enum class Store { abs, clip, raw };
constexpr Border border = Border::BORDER;
constexpr Combine combine = Combine::COMBINE;
constexpr Store store = Store::STORE;

constexpr int KERNEL_SIZE = 3;
constexpr int CHANNELS = IN_CHANNELS;   // of a pixel that are read: all, or the one that a launch is for
constexpr int PIXEL_SAMPLES = IN_PITCH;  // samples from one pixel to the next
constexpr int OUT_SAMPLES = OUT_PITCH;   // and of the output, of which a launch may write some

// How far sample i of a run of pixels lies from its first, of the picture and of the output.
__device__ __forceinline__ constexpr int place_in_row(int i) {
    return PIXEL_SAMPLES == CHANNELS ? i : i / CHANNELS * PIXEL_SAMPLES + i % CHANNELS;
}
__device__ __forceinline__ constexpr int place_in_output(int i) {
    return OUT_SAMPLES == OUT_CHANNELS ? i : i / OUT_CHANNELS * OUT_SAMPLES + i % OUT_CHANNELS;
}

// Samples before this block's picture in a batch, whose pictures each have a line of the grid's y axis.
__device__ __forceinline__ long long picture_offset(int height, int width, int channels) {
    return static_cast<long long>(blockIdx.y) * height * width * channels;
}

constexpr int OUTSIDE = -1;  // what source_index returns for a sample that the zero border supplies

// Where a position of the padded axis lies in the picture: geometry.border_indices, one position at a time.
template <Border border>
__device__ __forceinline__ int source_index(int position, int size) {
    if (position >= 0 && position < size) return position;
    if (border == Border::zero) return OUTSIDE;
    if (border == Border::replicate) return position < 0 ? 0 : size - 1;
    const long long last = border == Border::reflect ? 2ll * size - 1 : 2ll * (size - 1);
    // One fold is all that it takes within a picture's length of it, and no division.
    const unsigned at = static_cast<unsigned>(position), end = static_cast<unsigned>(last);  // what is beyond wraps
    const unsigned once = position >= 0 ? end - at : border == Border::reflect ? ~at : 0u - at;
    if (once < static_cast<unsigned>(size)) return static_cast<int>(once);
    const long long period = border == Border::reflect ? last + 1 : last;
    if (period == 0) return 0;  // reflect101 of a single pixel is that pixel
    long long folded = position % period;
    if (folded < 0) folded += period;
    return static_cast<int>(folded < size ? folded : last - folded);
}

__host__ __device__ constexpr bool is_float(const uint8 *) { return false; }
__host__ __device__ constexpr bool is_float(const uint16 *) { return false; }
__host__ __device__ constexpr bool is_float(const float32 *) { return true; }
__host__ __device__ constexpr bool is_float(const float64 *) { return true; }

__device__ __forceinline__ float to_real(uint8 sample) { return sample; }
__device__ __forceinline__ float to_real(uint16 sample) { return sample; }
__device__ __forceinline__ float to_real(float32 sample) { return sample; }
__device__ __forceinline__ Real to_real(float64 sample) { return static_cast<Real>(sample); }

// The bits of the float 2^23: added to a smaller number they leave its nearest whole number (ties to even) in
// the low bits, and bits put below them are that whole number plus 2^23. Both are cheaper than a conversion.
constexpr float TWO_POW_23 = 8388608.0f;
constexpr unsigned TWO_POW_23_BITS = 0x4B000000u;
constexpr double TWO_POW_52 = 4503599627370496.0;
constexpr int TWO_POW_52_HIGH_BITS = 0x43300000;

// |value| by its sign bit: fabsf turns denormal numbers into zeros under -ftz=true.
__device__ __forceinline__ float absolute(float value) { return __uint_as_float(__float_as_uint(value) & 0x7FFFFFFFu); }

// output.store, one value at a time.
template <Store store>
__device__ __forceinline__ float stored_float(float value) {
    return store == Store::abs ? absolute(value) : value;
}

// A value made to fit an integer sample that ends at `limit`; not yet rounded.
template <Store store>
__device__ __forceinline__ float within(float value, float limit) {
    return fminf(store == Store::abs ? fabsf(value) : fmaxf(value, 0.0f), limit);
}

// The nearest whole number to a value from 0 to 2^22.
__device__ __forceinline__ unsigned rounded(float value) {
    return __float_as_uint(value + TWO_POW_23) - TWO_POW_23_BITS;
}

template <Store store>
__device__ __forceinline__ void store_sample(float value, uint8 &out) {
    out = static_cast<uint8>(rounded(within<store>(value, 255.0f)));
}
template <Store store>
__device__ __forceinline__ void store_sample(float value, uint16 &out) {
    out = static_cast<uint16>(rounded(within<store>(value, 65535.0f)));
}
template <Store store>
__device__ __forceinline__ void store_sample(float value, float32 &out) {
    out = stored_float<store>(value);
}
template <Store store>
__device__ __forceinline__ void store_sample(double value, float64 &out) {
    out = store == Store::abs ? fabs(value) : value;
}
#ifdef USES_FLOAT16
__host__ __device__ constexpr bool is_float(const float16 *) { return true; }
__device__ __forceinline__ float to_real(float16 sample) { return __half2float(sample); }
template <Store store>
__device__ __forceinline__ void store_sample(float value, float16 &out) {
    out = __float2half_rn(stored_float<store>(value));
}
#endif
