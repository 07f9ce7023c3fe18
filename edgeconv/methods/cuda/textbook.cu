// textbook: one thread per output value, one launch per output channel; picture and weights are read where they lie.
//
// The kernel of a first lesson, and of the lab reports. Nothing is kept from one output value for the next, so each
// reads its 27 samples and 27 weights anew (of a grey picture 9); that neighbours read the same helps only in the caches. What can be gained
// over it, idea by idea: bench/ladders/conv.py.
//
// Macros that decide what is computed: those of responses.cuh.
// Macro that changes speed alone:
//     BLOCK    8 16 32    side of a thread block, which makes BLOCK × BLOCK output pixels
#include "responses.cuh"

extern "C" __global__ __launch_bounds__(BLOCK *BLOCK, 1) void textbook(const INPUT *image, OUTPUT *out,
                                                                       const Real *weights, const StridedGeometry size,
                                                                       int channel) {
    // A flat grid, because the y axis of a grid ends at 65,535 blocks and a picture may be taller.
    const unsigned blocks_across = (size.out_width + BLOCK - 1) / BLOCK;
    const int x = blockIdx.x % blocks_across * BLOCK + threadIdx.x;
    const int y = blockIdx.x / blocks_across * BLOCK + threadIdx.y;
    if (x >= size.out_width || y >= size.out_height) return;

    int row[KERNEL_SIZE], column[KERNEL_SIZE];
    for (int k = 0; k < KERNEL_SIZE; ++k) {
        row[k] = source_index<border>(y * size.stride + k - size.padding, size.height);
        column[k] = source_index<border>(x * size.stride + k - size.padding, size.width);
    }
    const Real value = join([&](int direction) {
        const Real *weight = weights + (direction * OUT_CHANNELS + channel) * IN_GROUP * TAPS;
        Sum response = 0;
#pragma unroll 1  // the loads of all 27 places at once would take more registers than some GPUs have
        for (int i = 0; i < IN_GROUP; ++i)
            for (int u = 0; u < KERNEL_SIZE; ++u)
                for (int v = 0; v < KERNEL_SIZE; ++v, ++weight) {
                    if (row[u] == OUTSIDE || column[v] == OUTSIDE) continue;
                    const long long pixel = static_cast<long long>(row[u]) * size.width + column[v];
                    const int from = IN_GROUP == CHANNELS ? i : channel * CHANNELS / OUT_CHANNELS;
                    const Real sample = to_real(image[pixel * PIXEL_SAMPLES + from]);
                    response = multiply_add(*weight, sample, response);
                }
        return response;
    });
    store_sample<store>(value, out[(static_cast<long long>(y) * size.out_width + x) * OUT_SAMPLES + channel]);
}
