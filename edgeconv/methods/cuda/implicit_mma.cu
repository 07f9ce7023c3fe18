// The implicit GEMM on the tensor cores: TF32 or half products, float32 sums.
//
// As implicit.cu, but a warp multiplies 16 groups of GROUP neighbouring output pixels at once. A row of the left matrix
// is what lies under a group: of three patch rows the 16-byte chunks from the group's start on, LEAD samples early. The
// columns of the right matrix are the responses of all pixels of the group, zero weights standing where a sample is not
// under a pixel; so a NaN reaches as far as its chunk, and mend.cuh computes again what it spoils. A chunk of 16 groups
// is what one half of an ldmatrix reads, and the groups start 48 (144 at stride 3) bytes apart, so that no two share a
// bank.
//
// mma.sync m16n8k8 (TF32) and m16n8k16 (HALF), ldmatrix; layouts: PTX ISA, "Matrix fragments for mma". The order of
// the products is free: sample t of chunk c feeds lane t of its quad, and `table` holds the weights in that order, made
// by implicit.py: [n tile][k step][lane][2] 32-bit words.
//
// Variants, by macro: HALF or TF32; weights in registers (KEPT_WEIGHTS, while they are few) or read again from the L1.
//
// Macros that decide what is computed, beside those of responses.cuh:
//     HALF       0 1         operands rounded to TF32, or to half
// Macros that say how the picture lies: STEP, ALIGNED, LEAD, as in implicit.cu
// Macros that change speed alone: WARPS, ROWS_PER_WARP, COLUMNS_PER_THREAD, BLOCKS_PER_MULTIPROCESSOR (ImplicitShape)
#define TILE_ROWS (WARPS * ROWS_PER_WARP)
#include "responses.cuh"
#include "patch.cuh"
#include "mend.cuh"

constexpr int GROUP = STEP == 2 ? 2 : 4;
constexpr int GROUP_STRIDE = GROUP * STEP * CHANNELS;
static_assert(GROUP_STRIDE % CHUNK == 0, "groups start on whole chunks");
constexpr int GROUP_SAMPLES = LEAD + ((GROUP - 1) * STEP + KERNEL_SIZE) * CHANNELS;  // of a patch row
constexpr int GROUP_CHUNKS = (GROUP_SAMPLES + CHUNK - 1) / CHUNK;
constexpr int PRODUCT_CHUNKS = GROUP_CHUNKS * KERNEL_SIZE;
constexpr int CHUNKS_PER_STEP = HALF ? 4 : 2;
constexpr int K_STEPS = (PRODUCT_CHUNKS + CHUNKS_PER_STEP - 1) / CHUNKS_PER_STEP;
constexpr int M_TILE = 16, N_TILE = 8;
constexpr int M_PIXELS = M_TILE * GROUP;
constexpr int COLUMNS = GROUP * RESPONSES;
constexpr int N_TILES = (COLUMNS + N_TILE - 1) / N_TILE;
static_assert(TILE_COLUMNS % M_PIXELS == 0, "a row of the strip is whole products");
// The weights stay in registers while there are few; else they are read again, from the L1, for each product.
constexpr bool KEPT_WEIGHTS = N_TILES * K_STEPS * 2 <= 64;
// Products whose responses are gathered before they are stored: a whole row while it fits 1.5 KB per warp.
constexpr int GATHERED = DIRECTIONS == 1 && RESPONSES <= 3 ? TILE_COLUMNS / M_PIXELS : 1;

// The four words of two chunks for a lane: sample lane % 4 of groups lane / 4 and lane / 4 + 8, of the first chunk and
// of the second. `corner` is where the first group starts in the first of its three patch rows.
__device__ __forceinline__ const float32 *chunk_of(const float32 *corner, int group, int chunk) {
    const int inside = chunk < PRODUCT_CHUNKS ? chunk : 0;  // chunks past the last have zero weights
    return corner + inside / GROUP_CHUNKS * PITCH + inside % GROUP_CHUNKS * CHUNK + group * GROUP_STRIDE;
}
__device__ __forceinline__ void read_chunks(const float32 *corner, int chunk, float (&sample)[4]) {
    const int lane = threadIdx.x % WARP;
    load_matrices(chunk_of(corner, lane % M_TILE, lane < M_TILE ? chunk : chunk + 1), sample);
}

// The left matrix of a k step as one lane holds it.
struct Fragment {
    unsigned word[4];
};
__device__ __forceinline__ void read_fragment(const float32 *corner, int k, Fragment &a) {
    float sample[4];
    read_chunks(corner, k * CHUNKS_PER_STEP, sample);
#if HALF
    float next[4];
    read_chunks(corner, k * CHUNKS_PER_STEP + 2, next);
    a.word[0] = pack_halves(sample[0], sample[2]);
    a.word[1] = pack_halves(sample[1], sample[3]);
    a.word[2] = pack_halves(next[0], next[2]);
    a.word[3] = pack_halves(next[1], next[3]);
#else
#pragma unroll
    for (int i = 0; i < 4; ++i) a.word[i] = to_tf32(sample[i]);
#endif
}

__device__ __forceinline__ void multiply(float (&sums)[4], const Fragment &a, const unsigned (&b)[2]) {
#if HALF
    mma_halves(sums, a.word, b);
#else
    mma_tf32(sums, a.word, b);
#endif
}

// The weights of n tile `n`, all k steps.
__device__ __forceinline__ void read_weights(const uint2 *table, int n, unsigned (&b)[K_STEPS][2]) {
#pragma unroll
    for (int k = 0; k < K_STEPS; ++k) {
        const uint2 words = __ldg(&table[(n * K_STEPS + k) * WARP + threadIdx.x % WARP]);
        b[k][0] = words.x;
        b[k][1] = words.y;
    }
}

// The sums of n tile `n`, as the instruction leaves them, to values[group · COLUMNS + column].
__device__ __forceinline__ void put_sums(const float (&sums)[4], int n, float *values) {
    const int lane = threadIdx.x % WARP, column = n * N_TILE + lane % 4 * 2;
    if (column >= COLUMNS) return;
    reinterpret_cast<float2 *>(values)[(lane / 4 * COLUMNS + column) / 2] = {sums[0], sums[1]};
    reinterpret_cast<float2 *>(values)[((lane / 4 + 8) * COLUMNS + column) / 2] = {sums[2], sums[3]};
}

// All responses of 16 groups, from the corner of the first. With kept weights a fragment is read for all n tiles and
// let go; else all fragments stay while the weights of one n tile after the other pass.
__device__ __forceinline__ void multiply_groups(const float32 *corner, const uint2 *table,
                                                const unsigned (&kept)[KEPT_WEIGHTS ? N_TILES : 1][K_STEPS][2],
                                                float *values) {
    if (KEPT_WEIGHTS) {
        float sums[N_TILES][4] = {};
#pragma unroll
        for (int k = 0; k < K_STEPS; ++k) {
            Fragment a;
            read_fragment(corner, k, a);
#pragma unroll
            for (int n = 0; n < N_TILES; ++n) multiply(sums[n], a, kept[KEPT_WEIGHTS ? n : 0][k]);
        }
#pragma unroll
        for (int n = 0; n < N_TILES; ++n) put_sums(sums[n], n, values);
    } else {
        Fragment a[K_STEPS];
#pragma unroll
        for (int k = 0; k < K_STEPS; ++k) read_fragment(corner, k, a[k]);
#pragma unroll 1
        for (int n = 0; n < N_TILES; ++n) {
            unsigned b[K_STEPS][2];
            read_weights(table, n, b);
            float sums[4] = {};
#pragma unroll
            for (int k = 0; k < K_STEPS; ++k) multiply(sums, a[k], b[k]);
            put_sums(sums, n, values);
        }
    }
}

// Join the responses of M_PIXELS pixels where they lie.
__device__ __forceinline__ void join_responses(float *values) {
    const int lane = threadIdx.x % WARP;
    float value[M_PIXELS / WARP][OUT_CHANNELS];
#pragma unroll
    for (int p = 0; p < M_PIXELS / WARP; ++p)
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o)
            value[p][o] = join([&](int d) { return values[(p * WARP + lane) * RESPONSES + d * OUT_CHANNELS + o]; });
    __syncwarp();
#pragma unroll
    for (int p = 0; p < M_PIXELS / WARP; ++p)
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o) values[(p * WARP + lane) * OUT_CHANNELS + o] = value[p][o];
    __syncwarp();
}

extern "C" __global__ __launch_bounds__(WARPS * WARP, BLOCKS_PER_MULTIPROCESSOR) void implicit_mma(
    const INPUT *image, OUTPUT *out, const StridedGeometry size, const uint2 *table, const float *plain_weights) {
    __shared__ alignas(16) float32 patch[PATCH_ROWS][PITCH];
    __shared__ alignas(16) float values[WARPS][GATHERED * M_PIXELS * RESPONSES];
    __shared__ bool is_spoilt[WARPS];
    const int warp = threadIdx.x / WARP;
    if (threadIdx.x % WARP == 0) is_spoilt[warp] = false;
    const Tile tile = tile_of_block(size);
    fill_patch(image, patch, size, tile);
    // Past what a row's copies cover lie samples that zero weights meet: they must not be a NaN.
    for (int r = threadIdx.x; r < PATCH_ROWS; r += WARPS * WARP)
        for (int e = ALIGNED ? CHUNKS * CHUNK : PATCH_SAMPLES; e < PITCH; ++e) patch[r][e] = 0.0f;

    unsigned kept[KEPT_WEIGHTS ? N_TILES : 1][K_STEPS][2];
    if (KEPT_WEIGHTS) {
#pragma unroll
        for (int n = 0; n < N_TILES; ++n) read_weights(table, n, kept[KEPT_WEIGHTS ? n : 0]);
    }
    wait_for_copies();
    __syncthreads();

#pragma unroll 1
    for (int i = 0; i < ROWS_PER_WARP; ++i) {
        const int row = warp * ROWS_PER_WARP + i, y = tile.y + row;
#pragma unroll
        for (int m = 0; m < TILE_COLUMNS / M_PIXELS; ++m) {
            const float32 *corner = &patch[row * STEP][m * M_TILE * GROUP_STRIDE];
            multiply_groups(corner, table, kept, values[warp] + m % GATHERED * M_PIXELS * RESPONSES);
            if (m % GATHERED != GATHERED - 1) continue;
            __syncwarp();
            if (DIRECTIONS > 1) join_responses(values[warp]);
            constexpr int PIXELS = GATHERED * M_PIXELS;
            const int x = tile.x + m / GATHERED * PIXELS;
            const int count = y < size.out_height ? min(PIXELS, size.out_width - x) * OUT_CHANNELS : 0;
            OUTPUT *run = out + (static_cast<long long>(y) * size.out_width + x) * OUT_SAMPLES;
            if (store_run<PIXELS * OUT_CHANNELS>(values[warp], run, count)) is_spoilt[warp] = true;
            __syncwarp();
        }
    }

    if (is_float(static_cast<const INPUT *>(nullptr)) && is_spoilt[warp]) {  // the last row ended with a __syncwarp
        const Tile anew = tile_of_block(size);
        const int y = anew.y + warp * ROWS_PER_WARP;
        mend(image, out, plain_weights, size, y, min(ROWS_PER_WARP, size.out_height - y), anew.x,
             min(TILE_COLUMNS, size.out_width - anew.x), threadIdx.x % WARP, WARP);
    }
}
