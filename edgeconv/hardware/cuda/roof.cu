// roof.cu: how many float32 multiply-adds per second this GPU does, for the roofline.
//
// Every thread runs CHAINS independent chains of STEPS dependent multiply-adds in registers; enough chains hide
// the latency of one. `scale` and `shift` come from outside so that nothing can be worked out at compile time, and
// the sum is stored so that nothing can be left out. FLOPs: 2 * CHAINS * STEPS per thread.
//
// Macros that decide what is computed: CHAINS, STEPS (roof.py)

extern "C" __global__ void fma_chains(float* result, float scale, float shift) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    float value[CHAINS];
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain) value[chain] = static_cast<float>(thread + chain);
#pragma unroll 16
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
        for (int chain = 0; chain < CHAINS; ++chain) value[chain] = fmaf(value[chain], scale, shift);
    }
    float sum = 0.0f;
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain) sum += value[chain];
    result[thread] = sum;
}
