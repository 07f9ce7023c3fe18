// im2col in bands: columns of a band of output pixels, written to memory for a GEMM to read.
//
// One thread an output pixel. A band is any run of output pixels; its columns lie `leading` apart.
// INPUT, COLUMN    sample types of the picture and of the columns; the rest as in responses.cuh
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
