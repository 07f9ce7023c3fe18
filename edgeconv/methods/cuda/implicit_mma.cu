// The implicit GEMM on the tensor cores: TF32 or half products, float32 sums.
//
// As implicit.cu, but a warp multiplies 16 pairs of neighbouring output pixels at once. A row of the product's
// left matrix is what lies under a pair, (STEP + 3) · 3 samples of three patch rows; its columns are the responses
// of both pixels, zero weights standing where a sample lies under one of them only. So two samples that lie side
// by side feed one instruction operand, and each operand is one read, of 8 bytes or, from a patch of halves, 4. An
// odd LEAD puts one more sample before each row. Because of the zero weights a NaN reaches one pixel further.
//
// mma.sync m16n8k8 (TF32) and m16n8k16 (HALF); operand layouts: PTX ISA, "Matrix fragments for mma". The order of
// the 27 (45) products is free, so samples (2s, 2s + 1) of a row are put where lane s % 4 wants its operands.
// `table` holds the weights in fragment order, made by implicit.py: [n tile][k step][lane][2] 32-bit words.
// HALF 0 or 1, PATCH float32 or (HALF) float16, and as in implicit.cu
#define TILE_ROWS (WARPS * ROWS_A_WARP)
#include "responses.cuh"
#include "patch.cuh"

constexpr int PAIRS_A_STEP = HALF ? 8 : 4;  // pairs of samples that one k step takes
constexpr int ODD = LEAD % 2;
constexpr int PAIRS_A_ROW = (ODD + (STEP + KERNEL_SIZE) * RGB + 1) / 2;
constexpr int PAIRS = PAIRS_A_ROW * KERNEL_SIZE;
constexpr int K_STEPS = (PAIRS + PAIRS_A_STEP - 1) / PAIRS_A_STEP;
constexpr int N_TILE = 8;
constexpr int N_TILES = (2 * RESPONSES + N_TILE - 1) / N_TILE;
constexpr int M_PIXELS = 32;            // 16 pairs
constexpr int ADVANCE = 2 * STEP * RGB;  // samples between two pairs of output pixels
// Products whose responses are gathered before they are stored: a whole row while it fits 1.5 KB a warp.
constexpr int GATHERED = RESPONSES <= 3 ? TILE_COLUMNS / M_PIXELS : 1;
static_assert(TILE_COLUMNS % M_PIXELS == 0, "a tile row is whole products");

// The left matrix as one lane holds it: rows lane / 4 and lane / 4 + 8, two words of each.
struct Fragment {
    unsigned word[4];
};

__device__ __forceinline__ unsigned to_tf32(float value) {
    unsigned bits = __float_as_uint(value);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#endif
    return bits;
}

// Two samples as one word of halves, the first in the low bits.
#if HALF
__device__ __forceinline__ unsigned pack_halves(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
    return word;
#else
    return __half_as_ushort(__float2half_rn(first)) |
           static_cast<unsigned>(__half_as_ushort(__float2half_rn(second))) << 16;
#endif
}
#endif

// The operands of one k step, for the pairs of pixels at `corner` and eight pairs on. TF32 takes the samples of one
// pair as two words (k and k + 4 of the instruction lie side by side), half takes two pairs as a word each.
constexpr int READS = HALF ? 2 : 1;
#if HALF
__device__ __forceinline__ unsigned pair_word(const float32 *pair) {
    const float2 samples = *reinterpret_cast<const float2 *>(pair);
    return pack_halves(samples.x, samples.y);
}
__device__ __forceinline__ unsigned pair_word(const float16 *pair) { return *reinterpret_cast<const unsigned *>(pair); }
__device__ __forceinline__ void read_operands(const PATCH *corner, const int (&offset)[READS], Fragment &a) {
#pragma unroll
    for (int r = 0; r < READS; ++r) {
        a.word[2 * r] = pair_word(corner + offset[r]);
        a.word[2 * r + 1] = pair_word(corner + offset[r] + 8 * ADVANCE);
    }
}
#else
__device__ __forceinline__ void read_operands(const PATCH *corner, const int (&offset)[READS], Fragment &a) {
    const float2 upper = *reinterpret_cast<const float2 *>(corner + offset[0]);
    const float2 lower = *reinterpret_cast<const float2 *>(corner + offset[0] + 8 * ADVANCE);
    a.word[0] = to_tf32(upper.x);
    a.word[1] = to_tf32(lower.x);
    a.word[2] = to_tf32(upper.y);
    a.word[3] = to_tf32(lower.y);
}
#endif

__device__ __forceinline__ void multiply(float (&sums)[4], const Fragment &a, const unsigned (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (HALF)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b[0]), "r"(b[1]));
    else
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b[0]), "r"(b[1]));
#elif !defined(__CUDA_ARCH__)
    host_cuda::multiply(HALF, sums, a.word, b);  // tests/host_cuda writes the instruction out
#endif
}

// The sums of a product, as the instruction leaves them, to the responses of 32 pixels in a row.
__device__ __forceinline__ void gather_responses(const float (&sums)[N_TILES][4], float *values) {
    constexpr int COLUMNS = 2 * RESPONSES;  // responses of a pair
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int n = 0; n < N_TILES; ++n) {
        const int column = n * N_TILE + lane % 4 * 2;
        if (column < COLUMNS) {
            reinterpret_cast<float2 *>(values)[(lane / 4 * COLUMNS + column) / 2] = {sums[n][0], sums[n][1]};
            reinterpret_cast<float2 *>(values)[((lane / 4 + 8) * COLUMNS + column) / 2] = {sums[n][2], sums[n][3]};
        }
    }
}

// Join the gathered responses of 32 pixels where they lie.
__device__ __forceinline__ void join_responses(float *values) {
    const int lane = threadIdx.x % WARP;
    float value[OUT_CHANNELS];
#pragma unroll
    for (int o = 0; o < OUT_CHANNELS; ++o)
        value[o] = join([&](int d) { return values[lane * RESPONSES + d * OUT_CHANNELS + o]; });
    __syncwarp();
#pragma unroll
    for (int o = 0; o < OUT_CHANNELS; ++o) values[lane * OUT_CHANNELS + o] = value[o];
    __syncwarp();
}

extern "C" __global__ __launch_bounds__(WARPS * WARP, BLOCKS_A_MULTIPROCESSOR) void implicit_mma(
    const INPUT *image, OUTPUT *out, const Geometry size, int segments, const uint2 *table) {
    __shared__ alignas(16) PATCH ring[RING][PITCH];
    __shared__ alignas(16) float values[WARPS][GATHERED * M_PIXELS * RESPONSES];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const Strip strip = strip_of_block(size, segments);

    // Past the last sample of a row lie some that zero weights meet: they must not be a NaN.
    for (int r = threadIdx.x; r < RING; r += WARPS * WARP)
        for (int e = LEAD + PATCH_SAMPLES; e < PITCH; ++e) ring[r][e] = 0.0f;

    unsigned b[N_TILES][K_STEPS][2];
#pragma unroll
    for (int n = 0; n < N_TILES; ++n)
#pragma unroll
        for (int k = 0; k < K_STEPS; ++k) {
            const uint2 words = table[(n * K_STEPS + k) * WARP + lane];
            b[n][k][0] = words.x;
            b[n][k][1] = words.y;
        }
    // Where this lane's pair s of samples lies: its patch row, and its place in the row from a pair of pixels on.
    // Pairs past the last have zero weights and read the first.
    int patch_row[K_STEPS][READS], place[K_STEPS][READS];
#pragma unroll
    for (int k = 0; k < K_STEPS; ++k)
#pragma unroll
        for (int r = 0; r < READS; ++r) {
            const int s = k * PAIRS_A_STEP + r * 4 + lane % 4;
            patch_row[k][r] = s < PAIRS ? s / PAIRS_A_ROW : 0;
            place[k][r] = (s < PAIRS ? s % PAIRS_A_ROW * 2 : 0) + LEAD - ODD + lane / 4 * ADVANCE;
        }

    fill_rows(image, ring, size, strip, 0, KEPT_ROWS + STEP_ROWS);
    end_copies();
    int filled = KEPT_ROWS + STEP_ROWS;
    for (int y = strip.first_row; y < strip.end_row; y += TILE_ROWS) {
        if (y + TILE_ROWS < strip.end_row) fill_rows(image, ring, size, strip, filled, STEP_ROWS);
        end_copies();
        wait_for_older_copies();
        __syncthreads();
#pragma unroll 1
        for (int i = 0; i < ROWS_A_WARP; ++i) {
            const int row = y + warp * ROWS_A_WARP + i;
            const int slot = (filled - KEPT_ROWS - STEP_ROWS + (warp * ROWS_A_WARP + i) * STEP) % RING;
            int offset[K_STEPS][READS];
#pragma unroll
            for (int k = 0; k < K_STEPS; ++k)
#pragma unroll
                for (int r = 0; r < READS; ++r)
                    offset[k][r] = slot_after(slot, patch_row[k][r]) * PITCH + place[k][r];
#pragma unroll
            for (int m = 0; m < TILE_COLUMNS / M_PIXELS; ++m) {
                float sums[N_TILES][4] = {};
#pragma unroll
                for (int k = 0; k < K_STEPS; ++k) {
                    Fragment a;
                    read_operands(&ring[0][m * M_PIXELS * STEP * RGB], offset[k], a);
#pragma unroll
                    for (int n = 0; n < N_TILES; ++n) multiply(sums[n], a, b[n][k]);
                }
                gather_responses(sums, values[warp] + m % GATHERED * M_PIXELS * RESPONSES);
                if (m % GATHERED != GATHERED - 1) continue;
                __syncwarp();
                if (DIRECTIONS > 1) join_responses(values[warp]);
                constexpr int PIXELS = GATHERED * M_PIXELS;
                const int x = strip.first_column + m / GATHERED * PIXELS;
                const int count = row < strip.end_row ? min(PIXELS, size.out_width - x) * OUT_CHANNELS : 0;
                OUTPUT *run = out + (static_cast<long long>(row) * size.out_width + x) * OUT_CHANNELS;
                store_run<PIXELS * OUT_CHANNELS>(values[warp], run, count);
                __syncwarp();
            }
        }
        filled += STEP_ROWS;
        __syncthreads();
    }
}
