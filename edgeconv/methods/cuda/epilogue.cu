// What stands before and after a library's convolution or GEMM: two kernels, one thread per pixel or output sample.
//
// stage       a band of the picture, padded by its border and converted to STAGED:
//             staged[row][column][CHANNELS], rows `first_row` to `first_row + rows` of the padded picture
// epilogue    responses[pixel][RESPONSES] → joined and stored samples
//
// With PLANES both are planes: staged[CHANNELS][row][column], and responses[RESPONSES][pixel] with those of one input
// channel together, as the outputs of a grouped convolution are: all directions of an output, then the next output.
//
// Macros that decide what is computed, beside those of responses.cuh:
//     STAGED    float32 float16 float64    type of the staged samples and of the library's responses
//     PLANES    flag                       channels are planes, each filtered by itself
// Macro that changes speed alone: THREADS, a block's
#include "responses.cuh"

__device__ __forceinline__ void put(Real value, float32 &place) { place = static_cast<float>(value); }
__device__ __forceinline__ void put(Real value, float64 &place) { place = value; }
#ifdef USES_FLOAT16
__device__ __forceinline__ void put(Real value, float16 &place) { place = __float2half_rn(value); }
#endif

#ifdef PLANES
using StagedPixel = STAGED;
constexpr int OUT_GROUP = OUT_CHANNELS / CHANNELS;
#else
struct StagedPixel {
    STAGED sample[CHANNELS];
};
#endif

extern "C" __global__ __launch_bounds__(THREADS) void stage(const INPUT *image, StagedPixel *staged,
                                                           const StridedGeometry size, int first_row, int rows) {
    const unsigned padded_width = size.width + 2 * size.padding;
    const unsigned n = blockIdx.x * THREADS + threadIdx.x;
    if (n >= rows * padded_width) return;
    const int row = source_index<border>(first_row + static_cast<int>(n / padded_width) - size.padding, size.height);
    const int column = source_index<border>(static_cast<int>(n % padded_width) - size.padding, size.width);
    const INPUT *from = image + (static_cast<long long>(row) * size.width + column) * PIXEL_SAMPLES;
    const bool inside = row != OUTSIDE && column != OUTSIDE;
#ifdef PLANES
#pragma unroll
    for (int i = 0; i < CHANNELS; ++i)
        put(inside ? to_real(from[i]) : Real(0), staged[static_cast<long long>(i) * rows * padded_width + n]);
#else
    StagedPixel pixel;
#pragma unroll
    for (int i = 0; i < CHANNELS; ++i) put(inside ? to_real(from[i]) : Real(0), pixel.sample[i]);
    staged[n] = pixel;
#endif
}

extern "C" __global__ __launch_bounds__(THREADS) void epilogue(const STAGED *responses, OUTPUT *out, int pixels) {
    const unsigned n = blockIdx.x * THREADS + threadIdx.x;
    if (n >= static_cast<unsigned>(pixels) * OUT_CHANNELS) return;
    const unsigned pixel = n / OUT_CHANNELS, o = n % OUT_CHANNELS;
#ifdef PLANES
    const unsigned first = o / OUT_GROUP * OUT_GROUP * DIRECTIONS + o % OUT_GROUP;
    const auto response = [&](int d) { return responses[static_cast<long long>(first + d * OUT_GROUP) * pixels + pixel]; };
#else
    const STAGED *of_pixel = responses + static_cast<long long>(pixel) * RESPONSES + o;
    const auto response = [&](int d) { return of_pixel[d * OUT_CHANNELS]; };
#endif
    store_sample<store>(join([&](int d) -> Sum { return to_real(response(d)); }), out[n]);
}
