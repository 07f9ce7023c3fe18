// The project's GEMM over the columns of a band, with the join and the store in it: see gemm.cuh.
//
// One warp WARP_PIXELS columns; `leading` is a multiple of what a block takes, so that no read leaves the workspace.
#include "responses.cuh"
#include "gemm.cuh"

extern "C" __global__ __launch_bounds__(THREADS) void gemm(const COLUMN *columns, OUTPUT *out, const Weights weights,
                                                          long long first, int count, long long leading) {
    __shared__ alignas(16) float values[THREADS / WARP][WARP_PIXELS * OUT_CHANNELS];
    const int warp = threadIdx.x / WARP;
    const int place = (blockIdx.x * (THREADS / WARP) + warp) * WARP_PIXELS;
    multiply_columns(columns, leading, place, max(count - place, 0), out + (first + place) * OUT_CHANNELS, weights,
                     values[warp]);
}
