// im2col and GEMM in one launch: every block has a band of columns, small enough that all of them stay in the L2.
//
// A block writes the columns of TILE output pixels to its part of the workspace, waits, multiplies them from there, and
// goes on to its next tile. The columns are as real as in im2col.cu (the same function writes them), but they are
// written over before they leave the L2, and launches and half-empty ends of many small bands fall away.
//
// Macros that decide what is computed, beside those of responses.cuh:
//     COLUMN    uint8 uint16 float16 float32    type of the columns
// Macros that change speed alone:
//     TILE                         output pixels of a block's step
//     THREADS                      of a block, a multiple of 32
//     PIXELS_PER_THREAD            see gemm.cuh
//     BLOCKS_PER_MULTIPROCESSOR    that must fit: caps the registers
#include "responses.cuh"
#include "columns.cuh"
#include "gemm.cuh"

static_assert(TILE % WARP_PIXELS == 0, "a warp multiplies whole runs, and reads past the last pixel only inside the tile");

extern "C" __global__ __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) void im2col_gemm(
    const INPUT *image, OUTPUT *out, COLUMN *workspace, const StridedGeometry size, const Weights weights) {
    __shared__ alignas(16) Real values[THREADS / WARP][WARP_PIXELS * OUT_CHANNELS];
    const int warp = threadIdx.x / WARP;
    COLUMN *const columns = workspace + static_cast<long long>(blockIdx.x) * TILE * DEPTH;
    const long long pixels = static_cast<long long>(size.out_height) * size.out_width;
    for (long long first = static_cast<long long>(blockIdx.x) * TILE; first < pixels;
         first += static_cast<long long>(gridDim.x) * TILE) {
        const int count = static_cast<int>(min(static_cast<long long>(TILE), pixels - first));
        const int first_y = static_cast<int>(first / size.out_width);
        const int first_x = static_cast<int>(first % size.out_width);
        for (int n = threadIdx.x; n < count; n += THREADS) {
            const unsigned across = static_cast<unsigned>(first_x) + n;
            write_column(image, columns, TILE, n, first_y + across / size.out_width, across % size.out_width, size);
        }
        __syncthreads();
        for (int place = warp * WARP_PIXELS; place < TILE; place += THREADS / WARP * WARP_PIXELS)
            multiply_columns(columns, TILE, place, max(count - place, 0), out + (first + place) * OUT_SAMPLES,
                             weights, values[warp]);
        __syncthreads();
    }
}
