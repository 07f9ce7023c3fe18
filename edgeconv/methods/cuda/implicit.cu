// The implicit GEMM in float32: im2col happens in the index of the product, and no column is ever in memory.
//
// A block fetches the patch under its next tile while it multiplies the one before (two patches in shared memory).
// A warp multiplies one row of the tile: a thread holds COLUMNS_A_THREAD columns of the product by all its rows,
// and takes column value k from the patch, where neighbouring columns share most of their samples: 18 reads
// instead of 36 for four pixels at stride 1. Blocks stay on the card and walk the tiles in picture order, so that
// the rows that two tiles share are still in the L2.
//
// Steps, each measured in docs/kernels-tried-gemm.md: patch in shared memory; reads of 16 bytes; two patches and
// asynchronous copies; stores gathered a warp.
// STEP, WARPS, ROWS_A_WARP; the rest as in responses.cuh
#define TILE_ROWS (WARPS * ROWS_A_WARP)
#define PATCH float32
#include "responses.cuh"
#include "patch.cuh"

constexpr int SPAN = ((COLUMNS_A_THREAD - 1) * STEP + KERNEL_SIZE) * RGB;  // samples of a patch row that a thread reads
constexpr int ADVANCE = COLUMNS_A_THREAD * STEP * RGB;                     // distance between two threads' spans
constexpr bool WIDE_READS = ADVANCE % 4 == 0;                              // every span starts on 16 bytes
constexpr int ROWS_AT_ONCE = RESPONSES > 8 ? 1 : ROWS_A_WARP;              // rows share reads while there is room
constexpr int READ = WIDE_READS ? (SPAN + 3) / 4 * 4 : SPAN;

__device__ __forceinline__ void read_span(const float32 *from, float (&samples)[READ]) {
    if (WIDE_READS) {
#pragma unroll
        for (int i = 0; i < READ / 4; ++i) {
            const float4 four = reinterpret_cast<const float4 *>(from)[i];
            samples[4 * i] = four.x;
            samples[4 * i + 1] = four.y;
            samples[4 * i + 2] = four.z;
            samples[4 * i + 3] = four.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < READ; ++i) samples[i] = from[i];
    }
}

// One row of the tile by one warp: the product, the join, and the values of a thread's pixels to `values`.
__device__ __forceinline__ void multiply_row(const float32 (*patch)[PITCH], const Weights &weights, float *values) {
    const int lane = threadIdx.x % WARP;
    float response[DIRECTIONS][OUT_CHANNELS][COLUMNS_A_THREAD] = {};
#pragma unroll
    for (int u = 0; u < KERNEL_SIZE; ++u) {
        float samples[READ];
        read_span(patch[u] + lane * ADVANCE, samples);
#pragma unroll
        for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
            for (int i = 0; i < RGB; ++i)
#pragma unroll
                for (int d = 0; d < DIRECTIONS; ++d)
#pragma unroll
                    for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
                        for (int p = 0; p < COLUMNS_A_THREAD; ++p)
                            if (meets(o, i))
                                response[d][o][p] = fmaf(weights.value[d][o][IN_GROUP == RGB ? i : 0][u][v],
                                                         samples[(p * STEP + v) * RGB + i], response[d][o][p]);
    }
#pragma unroll
    for (int p = 0; p < COLUMNS_A_THREAD; ++p)
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o)
            values[(lane * COLUMNS_A_THREAD + p) * OUT_CHANNELS + o] = join([&](int d) { return response[d][o][p]; });
}

extern "C" __global__ __launch_bounds__(WARPS * WARP, BLOCKS_A_MULTIPROCESSOR) void implicit(const INPUT *image, OUTPUT *out,
                                                                    const Geometry size, const Weights weights) {
    __shared__ alignas(16) PATCH patch[2][PATCH_ROWS][PITCH];
    __shared__ alignas(16) float values[WARPS][TILE_COLUMNS * OUT_CHANNELS];
    const int warp = threadIdx.x / WARP;
    const int across = (size.out_width + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const int tiles = across * ((size.out_height + TILE_ROWS - 1) / TILE_ROWS);

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
        const int x = tile % across * TILE_COLUMNS;
        const int count = min(TILE_COLUMNS, size.out_width - x) * OUT_CHANNELS;
#pragma unroll(ROWS_AT_ONCE)
        for (int i = 0; i < ROWS_A_WARP; ++i) {
            const int row = warp * ROWS_A_WARP + i, y = tile / across * TILE_ROWS + row;
            multiply_row(&patch[now][row * STEP], weights, values[warp]);
            warp_barrier();
            OUTPUT *run = out + (static_cast<long long>(y) * size.out_width + x) * OUT_CHANNELS;
            store_run<TILE_COLUMNS * OUT_CHANNELS>(values[warp], run, y < size.out_height ? count : 0);
            warp_barrier();
        }
        tile = next;
        __syncthreads();
    }
}
