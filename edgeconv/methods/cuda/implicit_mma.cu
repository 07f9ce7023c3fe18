// The implicit GEMM on the tensor cores: TF32 or half products, float32 sums.
//
// As implicit.cu, but a warp multiplies 16 pairs of neighbouring output pixels at once. A row of the product's
// left matrix is what lies under a pair, (STEP + 3) · 3 samples of three patch rows; its columns are the responses
// of both pixels, zero weights standing where a sample lies under one of them only. So two samples that lie side
// by side feed one instruction operand, and each operand is one read of 8 bytes (TF32) or 4 (half), with no bank
// conflict along a row. Because of the shared zero weights a NaN or an infinity reaches one pixel further.
//
// mma.sync m16n8k8 (TF32) and m16n8k16 (half); operand layouts: PTX ISA, "Matrix fragments for mma". The order of
// the 27 (45) products is free, so samples (2s, 2s + 1) of a row are put where lane s % 4 wants its operands.
// `table` holds the weights in fragment order, made by implicit.py: [n tile][k step][lane][2] 32-bit words.
// STEP, WARPS, ROWS_A_WARP, PATCH (float32 for TF32); the rest as in responses.cuh
#define TILE_ROWS (WARPS * ROWS_A_WARP)
#include "responses.cuh"
#include "patch.cuh"

constexpr bool HALF = sizeof(PATCH) == 2;
constexpr int PAIRS_A_STEP = HALF ? 8 : 4;                       // pairs of samples that one k step takes
constexpr int PAIRS_A_ROW = ((STEP + KERNEL_SIZE) * RGB + 1) / 2;
constexpr int PAIRS = PAIRS_A_ROW * KERNEL_SIZE;
constexpr int K_STEPS = (PAIRS + PAIRS_A_STEP - 1) / PAIRS_A_STEP;
constexpr int N_TILE = 8;
constexpr int N_TILES = (2 * RESPONSES + N_TILE - 1) / N_TILE;
constexpr int M_PIXELS = 32;                                     // 16 pairs
constexpr int ADVANCE = 2 * STEP * RGB;                          // samples between two pairs of output pixels
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

// The operands of one k step, for the pairs of pixels at `corner` and eight pairs on. A TF32 word is a sample (k and
// k + 4 of the instruction lie side by side), a half word is two.
constexpr int READS = HALF ? 2 : 1;
__device__ __forceinline__ void read_operands(const float32 *corner, const int (&offset)[1], Fragment &a) {
    const float2 upper = *reinterpret_cast<const float2 *>(corner + offset[0]);
    const float2 lower = *reinterpret_cast<const float2 *>(corner + offset[0] + 8 * ADVANCE);
    a.word[0] = to_tf32(upper.x);
    a.word[1] = to_tf32(lower.x);
    a.word[2] = to_tf32(upper.y);
    a.word[3] = to_tf32(lower.y);
}
#ifdef USES_FLOAT16
__device__ __forceinline__ void read_operands(const float16 *corner, const int (&offset)[2], Fragment &a) {
#pragma unroll
    for (int r = 0; r < READS; ++r) {
        a.word[2 * r] = *reinterpret_cast<const unsigned *>(corner + offset[r]);
        a.word[2 * r + 1] = *reinterpret_cast<const unsigned *>(corner + offset[r] + 8 * ADVANCE);
    }
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
#endif
}

// Where pair s of samples lies in the patch, from the corner of a pair of pixels. Pairs past the last have zero
// weights and read the first.
__device__ __forceinline__ int pair_offset(int s) {
    return s < PAIRS ? s / PAIRS_A_ROW * PITCH + s % PAIRS_A_ROW * 2 : 0;
}

// From the sums as the instruction leaves them to joined values of 32 pixels in a row.
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
    warp_barrier();
    if (DIRECTIONS == 1) return;
    float value[OUT_CHANNELS];
#pragma unroll
    for (int o = 0; o < OUT_CHANNELS; ++o)
        value[o] = join([&](int d) { return values[lane * RESPONSES + d * OUT_CHANNELS + o]; });
    warp_barrier();
#pragma unroll
    for (int o = 0; o < OUT_CHANNELS; ++o) values[lane * OUT_CHANNELS + o] = value[o];
    warp_barrier();
}

extern "C" __global__ __launch_bounds__(WARPS * WARP, BLOCKS_A_MULTIPROCESSOR) void implicit_mma(const INPUT *image, OUTPUT *out,
                                                                        const Geometry size, const uint2 *table) {
    __shared__ alignas(16) PATCH patch[2][PATCH_ROWS][PITCH];
    __shared__ alignas(16) float values[WARPS][M_PIXELS * RESPONSES];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int group = lane / 4, quarter = lane % 4;
    const int across = (size.out_width + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const int tiles = across * ((size.out_height + TILE_ROWS - 1) / TILE_ROWS);

    // Past the last column lie up to seven samples that zero weights meet: they must not be a NaN.
    for (int r = threadIdx.x; r < 2 * PATCH_ROWS; r += WARPS * WARP)
        for (int e = PATCH_COLUMNS * RGB; e < PITCH; ++e) patch[r / PATCH_ROWS][r % PATCH_ROWS][e] = 0.0f;

    unsigned b[N_TILES][K_STEPS][2];
#pragma unroll
    for (int n = 0; n < N_TILES; ++n)
#pragma unroll
        for (int k = 0; k < K_STEPS; ++k) {
            const uint2 words = table[(n * K_STEPS + k) * WARP + lane];
            b[n][k][0] = words.x;
            b[n][k][1] = words.y;
        }
    int offset[K_STEPS][READS];
#pragma unroll
    for (int k = 0; k < K_STEPS; ++k)
#pragma unroll
        for (int r = 0; r < READS; ++r)
            offset[k][r] = pair_offset(k * PAIRS_A_STEP + r * 4 + quarter) + group * ADVANCE;

    int tile = blockIdx.x;
    fill_patch(image, patch[0], size, tile / across * TILE_ROWS, tile % across * TILE_COLUMNS);
    end_copies();
    for (int now = 0; tile < tiles; now ^= 1) {
        const int next = tile + gridDim.x;
        if (next < tiles)
            fill_patch(image, patch[now ^ 1], size, next / across * TILE_ROWS, next % across * TILE_COLUMNS);
        end_copies();
        wait_for_older_copies();
        __syncthreads();
#pragma unroll 1
        for (int i = 0; i < ROWS_A_WARP; ++i) {
            const int row = warp * ROWS_A_WARP + i, y = tile / across * TILE_ROWS + row;
#pragma unroll
            for (int m = 0; m < TILE_COLUMNS / M_PIXELS; ++m) {
                const PATCH *corner = &patch[now][row * STEP][m * M_PIXELS * STEP * RGB];
                float sums[N_TILES][4] = {};
#pragma unroll
                for (int k = 0; k < K_STEPS; ++k) {
                    Fragment a;
                    read_operands(corner, offset[k], a);
#pragma unroll
                    for (int n = 0; n < N_TILES; ++n) multiply(sums[n], a, b[n][k]);
                }
                gather_responses(sums, values[warp]);
                const int x = tile % across * TILE_COLUMNS + m * M_PIXELS;
                const int count = y < size.out_height ? min(M_PIXELS, size.out_width - x) * OUT_CHANNELS : 0;
                OUTPUT *run = out + (static_cast<long long>(y) * size.out_width + x) * OUT_CHANNELS;
                store_run<M_PIXELS * OUT_CHANNELS>(values[warp], run, count);
                warp_barrier();
            }
        }
        tile = next;
        __syncthreads();
    }
}
