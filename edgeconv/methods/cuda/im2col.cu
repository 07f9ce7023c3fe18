// im2col in bands: columns of a band of output pixels, written to memory for a GEMM to read.
//
// One thread per output pixel. A band is any run of output pixels; its columns lie `leading` apart.
//
// Macros that decide what is computed, beside those of responses.cuh:
//     COLUMN    uint8 uint16 float16 float32    type of the columns: the picture's, or float32 for the vendor's GEMM
// Macro that changes speed alone: THREADS, a block's
#include "responses.cuh"
#include "columns.cuh"

extern "C" __global__ __launch_bounds__(THREADS, 4) void im2col(const INPUT *image, COLUMN *columns,
                                                            const StridedGeometry size, long long first, int count,
                                                            long long leading) {
    const int n = blockIdx.x * THREADS + threadIdx.x;
    if (n >= count) return;
    const int first_y = static_cast<int>(first / size.out_width), first_x = static_cast<int>(first % size.out_width);
    const unsigned across = static_cast<unsigned>(first_x) + n;
    write_column(image, columns, leading, n, first_y + across / size.out_width, across % size.out_width, size);
}
