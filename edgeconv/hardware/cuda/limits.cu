// limits.cu: what this GPU can do at most. Two kernels read some number of 16-byte words and write another, and nothing
// beside: what a convolution's bytes cost. The third does multiply-adds of float32, for the roofline.
//
// read_and_write   word w of the target is the OR of words w, w + writes, w + 2 * writes, ... of the source, so that
//                  every read counts and all are coalesced; where there are more words to write than to read, the rest
//                  is written without reading. Threads: a grid of any size goes round all words of the target.
// one_word_each    a thread reads a word, and writes it where there is one to write. All reads are under way at once,
//                  which is what a small picture needs. The source holds zeros: a word of ones, which would be written
//                  in any case, is there only so that no read can be left out.
// fma_chains       every thread runs CHAINS independent chains of STEPS dependent multiply-adds; enough chains hide the
//                  latency of one. `scale` and `shift` come from outside so that nothing can be worked out at compile
//                  time, and the sum is stored so that nothing can be left out. FLOPs: 2 * CHAINS * STEPS per thread.
//
// Macros of all: CHAINS, STEPS (limits.py)

extern "C" __global__ void read_and_write(const uint4* __restrict__ source, uint4* __restrict__ target, long long reads,
                                          long long writes) {
    const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long w = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; w < writes; w += threads) {
        uint4 sum = make_uint4(0, 0, 0, 0);
#pragma unroll 4
        for (long long r = w; r < reads; r += writes) {
            const uint4 word = source[r];
            sum.x |= word.x;
            sum.y |= word.y;
            sum.z |= word.z;
            sum.w |= word.w;
        }
        target[w] = sum;
    }
}

extern "C" __global__ void one_word_each(const uint4* __restrict__ source, uint4* __restrict__ target, long long reads,
                                         long long writes) {
    const long long w = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    uint4 word = make_uint4(0, 0, 0, 0);
    if (w < reads) word = source[w];
    if (w < writes || (word.x & word.y & word.z & word.w) == 0xFFFFFFFFu) target[w < writes ? w : 0] = word;
}

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
