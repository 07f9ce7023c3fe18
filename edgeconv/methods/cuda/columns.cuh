// im2col: the samples under the filter at each output pixel, as columns in memory.
//
// columns[k][n] with k = (channel · 3 + row) · 3 + column, 27 deep (9 of one channel), and n an output pixel of the band or tile;
// `leading` is the distance between two k. Neighbouring threads take neighbouring pixels, so each of the 27
// stores of a warp is contiguous. Columns have the type COLUMN: the picture's for the project's GEMM
// (an 8-bit picture moves a quarter of the bytes), float32 for the vendor's.

template <typename Column>
__device__ __forceinline__ void convert(INPUT sample, Column &column) { column = to_real(sample); }
__device__ __forceinline__ void convert(INPUT sample, INPUT &column) { column = sample; }

// Write the column of output pixel (y, x) at place n.
__device__ __forceinline__ void write_column(const INPUT *image, COLUMN *columns, long long leading, int n, int y,
                                             int x, const StridedGeometry &size) {
    const int top = y * size.stride - size.padding, left = x * size.stride - size.padding;
    const bool inside = top >= 0 && left >= 0 && top + KERNEL_SIZE <= size.height && left + KERNEL_SIZE <= size.width;
    COLUMN *column = columns + n;
    if (inside) {
        const INPUT *corner = image + (static_cast<long long>(top) * size.width + left) * PIXEL_SAMPLES;
        INPUT samples[KERNEL_SIZE][KERNEL_SIZE * CHANNELS];
#pragma unroll
        for (int u = 0; u < KERNEL_SIZE; ++u)
#pragma unroll
            for (int j = 0; j < KERNEL_SIZE * CHANNELS; ++j)
                samples[u][j] = corner[(static_cast<long long>(u) * size.width + j / CHANNELS) * PIXEL_SAMPLES + j % CHANNELS];
#pragma unroll
        for (int k = 0; k < DEPTH; ++k)
            convert(samples[k / KERNEL_SIZE % KERNEL_SIZE][k % KERNEL_SIZE * CHANNELS + k / TAPS], column[k * leading]);
        return;
    }
    for (int u = 0; u < KERNEL_SIZE; ++u) {
        const int row = source_index<border>(top + u, size.height);
        for (int v = 0; v < KERNEL_SIZE; ++v) {
            const int from = source_index<border>(left + v, size.width);
            const bool outside = row == OUTSIDE || from == OUTSIDE;
            const INPUT *pixel = image + (static_cast<long long>(row) * size.width + from) * PIXEL_SAMPLES;
            for (int i = 0; i < CHANNELS; ++i) {
                COLUMN &place = column[(i * TAPS + u * KERNEL_SIZE + v) * leading];
                if (outside)
                    place = COLUMN(0);
                else
                    convert(pixel[i], place);
            }
        }
    }
}
