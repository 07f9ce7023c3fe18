// sliding_direct: one thread per output pixel, all its channels; every sample is read where it lies.
//
// For any stride, padding, border, size and alignment: what sliding.cu's strips do not cover (strides above 3, pictures
// too small to be worth a ring, and sums that float32 does not hold) runs here. Nine pixels of three samples for each
// thread, multiply-adds in the order direction, row, column, channel. One launch, nothing materialised.
//
// Macros that decide what is computed: those of responses.cuh, and
//     STRIDE    any
#include "picture.cuh"

constexpr Border border = Border::BORDER;
constexpr Combine combine = Combine::COMBINE;
constexpr Store store = Store::STORE;
#include "sums.cuh"

struct Weights {
    float value[DIRECTIONS][OUT_CHANNELS][IN_GROUP][KERNEL_SIZE][KERNEL_SIZE];
};

extern "C" __global__ void sliding_direct(const INPUT *__restrict__ image, OUTPUT *__restrict__ out,
                                          const __grid_constant__ Geometry size,
                                          const __grid_constant__ Weights weights) {
    // A flat grid, because the y axis of a grid ends at 65,535 blocks and a picture may be taller.
    const unsigned blocks_across = (size.out_width + blockDim.x - 1) / blockDim.x;
    const int x = (blockIdx.x % blocks_across) * blockDim.x + threadIdx.x;
    const int y = (blockIdx.x / blocks_across) * blockDim.y + threadIdx.y;
    if (x >= size.out_width || y >= size.out_height) return;

    float window[KERNEL_SIZE][KERNEL_SIZE][RGB];
#pragma unroll
    for (int u = 0; u < KERNEL_SIZE; ++u) {
        const int row = source_index<border>(y * STRIDE + u - size.padding, size.height);
#pragma unroll
        for (int v = 0; v < KERNEL_SIZE; ++v) {
            const int column = source_index<border>(x * STRIDE + v - size.padding, size.width);
            const bool inside = row != OUTSIDE && column != OUTSIDE;
            const INPUT *pixel = image + (static_cast<long long>(row) * size.width + column) * RGB;
#pragma unroll
            for (int i = 0; i < RGB; ++i) window[u][v][i] = inside ? to_float(pixel[i]) : 0.0f;
        }
    }

    OUTPUT *const pixel = out + (static_cast<long long>(y) * size.out_width + x) * OUT_CHANNELS;
#pragma unroll
    for (int o = 0; o < OUT_CHANNELS; ++o) {
        const float value = join([&](int d) {
            Sum response = 0;
#pragma unroll
            for (int u = 0; u < KERNEL_SIZE; ++u)
#pragma unroll
                for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
                    for (int i = 0; i < IN_GROUP; ++i)
                        response = multiply_add(weights.value[d][o][i][u][v], window[u][v][IN_GROUP == 1 ? o : i], response);
            return response;
        });
        store_sample<store>(value, pixel[o]);
    }
}
