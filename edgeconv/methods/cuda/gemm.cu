// The project's GEMM over the columns of a band, with the join and the store in it: see gemm.cuh.
//
// Each warp multiplies WARP_PIXELS columns; `leading` is a multiple of what a block takes, so that no read leaves the
// workspace.
//
// Macros that decide what is computed, beside those of responses.cuh:
//     COLUMN    uint8 uint16 float16 float32    type of the columns
// Macros that change speed alone: THREADS, a block's; PIXELS_PER_THREAD (gemm.cuh)
#include "responses.cuh"
#include "gemm.cuh"

extern "C" __global__ __launch_bounds__(THREADS) void gemm(const COLUMN *columns, OUTPUT *out, const Weights weights,
                                                          long long first, int count, long long leading) {
    __shared__ alignas(16) Real values[THREADS / WARP][WARP_PIXELS * OUT_CHANNELS];
    const int warp = threadIdx.x / WARP;
    const int place = (blockIdx.x * (THREADS / WARP) + warp) * WARP_PIXELS;
    multiply_columns(columns, leading, place, max(count - place, 0), out + (first + place) * OUT_SAMPLES, weights,
                     values[warp]);
}
