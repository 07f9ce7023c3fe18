// From the responses of one output pixel to stored samples, for the methods that multiply by a weight matrix.
//
//     response[d][o] = Σ over i, u, v of  weights[d][o][i][u][v] · sample
//     value[o]       = the responses of all directions, joined (sums.cuh)
//
// A warp gathers the values of its pixels in shared memory and stores them as one run of the HWC output, so that
// its stores are contiguous whatever the number of channels, and 4 samples wide where the address allows it.
//
// Macros that decide what is computed (a flag is defined, or not); problem_defines() of kernel_args.py gives them:
//     INPUT, OUTPUT    uint8 uint16 float16 float32 float64     sample types of the picture and of the output
//     USES_FLOAT16     flag                                     some type is float16
//     USES_FLOAT64     flag                                     the picture is float64: so are weights and values
//     BORDER           zero replicate reflect reflect101        what stands outside the picture
//     COMBINE          single magnitude maximum                 how the responses of DIRECTIONS become one value
//     STORE            abs clip raw                             how a value becomes a sample
//     DIRECTIONS       1 2 8                                    filters per output channel
//     OUT_CHANNELS     3 1 …                                    output channels that a launch computes
//     IN_CHANNELS      3 1                                      input channels that a launch reads
//     IN_GROUP         3 1                                      input channels that an output channel sums
//     IN_PITCH         3 1                                      samples from one pixel of the picture to the next
//     OUT_PITCH        3 1 …                                    and of the output
//     WIDE_SUMS        flag                                     sums in float64 (sums.cuh)
//     EXACT_ROOT       flag                                     16-bit magnitudes of whole sums are rounded exactly
#include "sums.cuh"

constexpr int WARP = 32;
constexpr int RESPONSES = DIRECTIONS * OUT_CHANNELS;
constexpr int TAPS = KERNEL_SIZE * KERNEL_SIZE;
constexpr int DEPTH = CHANNELS * TAPS;  // samples under a filter, in OIHW's order: channel, row, column

struct Weights {
    Real value[DIRECTIONS][OUT_CHANNELS][IN_GROUP][KERNEL_SIZE][KERNEL_SIZE];
};

// Does input channel i belong to the group of output channel o?
__device__ __forceinline__ constexpr bool meets(int o, int i) { return IN_GROUP == CHANNELS || i == o; }

// Copy one sample of the picture to shared memory as float32 or float64. A sample that has this type already goes past the
// registers.
__device__ __forceinline__ void copy_sample(const Real *from, Real *to) { copy_value(from, to); }
template <typename Sample>
__device__ __forceinline__ void copy_sample(const Sample *from, float32 *to) {
    *to = static_cast<float32>(to_real(*from));
}

struct alignas(4 * sizeof(OUTPUT)) FourSamples {
    OUTPUT sample[4];
};

struct alignas(16) FourValues {
    Real x, y, z, w;
};

// One warp stores `count` values that lie in shared memory (16-byte aligned) as samples from `out` on, pixel by pixel.
template <int CAPACITY>
__device__ __forceinline__ void store_run(const Real *values, OUTPUT *out, int count) {
    const int lane = threadIdx.x % WARP;
    const bool aligned = reinterpret_cast<unsigned long long>(out) % sizeof(FourSamples) == 0;
    if (OUT_CHANNELS == OUT_SAMPLES && CAPACITY % 4 == 0 && count == CAPACITY && aligned) {
#pragma unroll
        for (int i = lane; i < CAPACITY / 4; i += WARP) {
            const FourValues four = reinterpret_cast<const FourValues *>(values)[i];
            FourSamples samples;
            store_sample<store>(four.x, samples.sample[0]);
            store_sample<store>(four.y, samples.sample[1]);
            store_sample<store>(four.z, samples.sample[2]);
            store_sample<store>(four.w, samples.sample[3]);
            reinterpret_cast<FourSamples *>(out)[i] = samples;
        }
    } else {
        for (int i = lane; i < count; i += WARP) store_sample<store>(values[i], out[place_in_output(i)]);
    }
}
