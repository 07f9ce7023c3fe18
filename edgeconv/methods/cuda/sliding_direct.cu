// sliding_direct: one thread per output pixel, all its channels; every sample is read where it lies.
//
// For any stride, padding, border, size and alignment: what sliding.cu's strips do not cover (large strides, pictures
// too small to be worth a ring) runs here. Nine pixels for each thread,
// multiply-adds in the order direction, row, column, channel. Nothing materialised; one launch, or of a filter bank one
// for as many outputs as their weights fit the arguments.
//
// Macros that decide what is computed: those of responses.cuh, and
//     STRIDE    any
//     BATCH     flag    pictures lie one behind another, each has a line of the grid's y axis
#include "sums.cuh"

struct Weights {
    Real value[DIRECTIONS][OUT_CHANNELS][IN_GROUP][KERNEL_SIZE][KERNEL_SIZE];
};

static_assert(IN_GROUP == CHANNELS || OUT_CHANNELS == CHANNELS, "channels filtered separately: an output of each");
constexpr int UNROLLED_OUTPUTS = OUT_CHANNELS <= 4 ? OUT_CHANNELS : 2;  // the code of a bank would fill the caches

extern "C" __global__ void sliding_direct(const INPUT *__restrict__ image, OUTPUT *__restrict__ out,
                                          const __grid_constant__ Geometry size,
                                          const __grid_constant__ Weights weights) {
#ifdef BATCH
    image += picture_offset(size.height, size.width, PIXEL_SAMPLES);
    out += picture_offset(size.out_height, size.out_width, OUT_SAMPLES);
#endif
    // A flat grid, because the y axis of a grid ends at 65,535 blocks and a picture may be taller.
    const unsigned blocks_across = (size.out_width + blockDim.x - 1) / blockDim.x;
    const int x = (blockIdx.x % blocks_across) * blockDim.x + threadIdx.x;
    const int y = (blockIdx.x / blocks_across) * blockDim.y + threadIdx.y;
    if (x >= size.out_width || y >= size.out_height) return;

    Real window[KERNEL_SIZE][KERNEL_SIZE][CHANNELS];
#pragma unroll
    for (int u = 0; u < KERNEL_SIZE; ++u) {
        const int row = source_index<border>(y * STRIDE + u - size.padding, size.height);
#pragma unroll
        for (int v = 0; v < KERNEL_SIZE; ++v) {
            const int column = source_index<border>(x * STRIDE + v - size.padding, size.width);
            const bool inside = row != OUTSIDE && column != OUTSIDE;
            const INPUT *pixel = image + (static_cast<long long>(row) * size.width + column) * PIXEL_SAMPLES;
#pragma unroll
            for (int i = 0; i < CHANNELS; ++i) window[u][v][i] = inside ? to_real(pixel[i]) : Real(0);
        }
    }

    OUTPUT *const pixel = out + (static_cast<long long>(y) * size.out_width + x) * OUT_SAMPLES;
#pragma unroll UNROLLED_OUTPUTS
    for (int o = 0; o < OUT_CHANNELS; ++o) {
        const Real value = join([&](int d) {
            Sum response = 0;
#pragma unroll
            for (int u = 0; u < KERNEL_SIZE; ++u)
#pragma unroll
                for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
                    for (int i = 0; i < IN_GROUP; ++i)
                        response = multiply_add(weights.value[d][o][i][u][v], window[u][v][IN_GROUP == CHANNELS ? i : o], response);
            return response;
        });
        store_sample<store>(value, pixel[o]);
    }
}
