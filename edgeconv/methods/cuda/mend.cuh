// Beside a NaN or an infinity: what the tensor cores or a form spoil there is computed again, sample by sample.
//
// A product of the tensor cores multiplies by zero weights what stands beside a window in the same fragment, and a NaN or
// an infinity times zero is NaN; a form subtracts infinities that the plain sum adds, and may overflow. So a warp or a
// block that stores outputs which are not all finite comes back at its end and looks for them: each is summed again from
// its window in device memory. That takes long, and is rare. Until then a flag in shared memory remembers it, as a
// register that every sample has to go through costs more.
//
// Included after sums.cuh. Any stride.

__device__ __forceinline__ bool is_finite(float value) {
    return (__float_as_uint(value) & EXPONENT_BITS) != EXPONENT_BITS;
}
__device__ __forceinline__ bool is_finite(double value) { return value - value == 0; }

// What remembers outputs that are not finite, packed in words: 0, and for good a NaN once there was one.
__device__ __forceinline__ void mark_not_finite(unsigned outputs, unsigned &mark) {
    if (sizeof(OUTPUT) == 2) mark_halves_not_finite(outputs, mark);
    else mark = __float_as_uint(fmaf(__uint_as_float(outputs), 0.0f, __uint_as_float(mark)));
}
__device__ __forceinline__ bool is_marked(unsigned mark) { return (mark & 0x7FFF7FFFu) != 0; }

// Output sample o of pixel (x, y), at `place`, where it is not finite. `weights` is (directions, out, in group, 3, 3).
__device__ __forceinline__ void mend_sample(const INPUT *image, OUTPUT &place, const Real *weights,
                                            const StridedGeometry &size, int y, int x, int o) {
    if (is_finite(to_real(place))) return;
    const Real value = join([&](int d) {
        const Real *weight = weights + (d * OUT_CHANNELS + o) * IN_GROUP * KERNEL_SIZE * KERNEL_SIZE;
        Sum response = 0;
#pragma unroll 1
        for (int tap = 0; tap < IN_GROUP * KERNEL_SIZE * KERNEL_SIZE; ++tap) {
            const int u = tap / KERNEL_SIZE % KERNEL_SIZE, v = tap % KERNEL_SIZE;
            const int row = source_index<border>(y * size.stride + u - size.padding, size.height);
            const int column = source_index<border>(x * size.stride + v - size.padding, size.width);
            if (row == OUTSIDE || column == OUTSIDE) continue;
            const int channel = IN_GROUP == CHANNELS ? tap / (KERNEL_SIZE * KERNEL_SIZE) : o;
            const long long pixel = static_cast<long long>(row) * size.width + column;
            response = multiply_add(weight[tap], to_real(image[pixel * PIXEL_SAMPLES + channel]), response);
        }
        return response;
    });
    store_sample<store>(value, place);
}

// The output samples of a rectangle, by `threads` threads of which this is `thread`; what was stored must be visible.
__device__ __noinline__ void mend(const INPUT *image, OUTPUT *out, const Real *weights, const StridedGeometry size,
                                  int first_y, int rows, int first_x, int columns, int thread, int threads) {
    const long long samples = static_cast<long long>(columns) * OUT_CHANNELS;
#pragma unroll 1
    for (long long i = thread; i < rows * samples; i += threads) {
        const int y = first_y + static_cast<int>(i / samples), x = first_x + static_cast<int>(i % samples / OUT_CHANNELS);
        const int o = static_cast<int>(i % OUT_CHANNELS);
        mend_sample(image, out[(static_cast<long long>(y) * size.out_width + x) * OUT_SAMPLES + o], weights, size, y, x, o);
    }
}

// Samples `first` to `last` - 1 of output rows, by one thread, which stored them.
__device__ __forceinline__ void mend_samples(const INPUT *image, OUTPUT *out, const Real *weights,
                                             const StridedGeometry &size, int first_y, int rows, int first, int last) {
#pragma unroll 1
    for (int y = first_y; y < min(first_y + rows, size.out_height); ++y)
#pragma unroll 1
        for (int i = first; i < last; ++i) {
            OUTPUT &place = out[static_cast<long long>(y) * size.out_width * OUT_CHANNELS + i];
            mend_sample(image, place, weights, size, y, i / OUT_CHANNELS, i % OUT_CHANNELS);
        }
}
