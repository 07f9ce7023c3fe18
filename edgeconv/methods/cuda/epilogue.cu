// What stands before and after a library's convolution or GEMM: two kernels, one thread per pixel or output sample.
//
// stage       a band of the picture, padded by its border and converted to STAGED:
//             staged[row][column][CHANNELS], rows `first_row` to `first_row + rows` of the padded picture
// epilogue    responses[pixel][RESPONSES] → joined and stored samples
//
// Macro that decides what is computed, beside those of responses.cuh:
//     STAGED    float32 float16 float64    type of the staged samples and of the library's responses
// Macro that changes speed alone: THREADS, a block's
#include "responses.cuh"

__device__ __forceinline__ void put(Real value, float32 &place) { place = static_cast<float>(value); }
__device__ __forceinline__ void put(Real value, float64 &place) { place = value; }
#ifdef USES_FLOAT16
__device__ __forceinline__ void put(Real value, float16 &place) { place = __float2half_rn(value); }
#endif

struct StagedPixel {
    STAGED sample[CHANNELS];
};

extern "C" __global__ __launch_bounds__(THREADS) void stage(const INPUT *image, StagedPixel *staged,
                                                           const StridedGeometry size, int first_row, int rows) {
    const unsigned padded_width = size.width + 2 * size.padding;
    const unsigned n = blockIdx.x * THREADS + threadIdx.x;
    if (n >= rows * padded_width) return;
    const int row = source_index<border>(first_row + static_cast<int>(n / padded_width) - size.padding, size.height);
    const int column = source_index<border>(static_cast<int>(n % padded_width) - size.padding, size.width);
    const INPUT *from = image + (static_cast<long long>(row) * size.width + column) * PIXEL_SAMPLES;
    StagedPixel pixel;
#pragma unroll
    for (int i = 0; i < CHANNELS; ++i)
        put(row != OUTSIDE && column != OUTSIDE ? to_real(from[i]) : Real(0), pixel.sample[i]);
    staged[n] = pixel;
}

extern "C" __global__ __launch_bounds__(THREADS) void epilogue(const STAGED *responses, OUTPUT *out, int pixels) {
    const unsigned n = blockIdx.x * THREADS + threadIdx.x;
    if (n >= static_cast<unsigned>(pixels) * OUT_CHANNELS) return;
    const STAGED *response = responses + static_cast<long long>(n / OUT_CHANNELS) * RESPONSES + n % OUT_CHANNELS;
    store_sample<store>(join([&](int d) -> Sum { return to_real(response[d * OUT_CHANNELS]); }), out[n]);
}
