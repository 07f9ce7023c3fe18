// The implicit GEMM in float32 or float64: im2col happens in the index of the GEMM, and no column is ever in memory.
//
// A block makes one tile: it fetches the patch under it (patch.cuh), and each warp multiplies ROWS_PER_WARP output
// rows. A thread holds COLUMNS_PER_THREAD columns of the result by all its rows, and takes column value k from the patch,
// where neighbouring columns share most of their samples: 18 reads instead of 36 for four pixels at stride 1. While
// one block fetches, others of its multiprocessor multiply.
//
// What was tried, with figures: docs/kernels-tried.md.
//
// Variants, by macro: float32 sums, or float64 (WIDE_SUMS); ALIGNED rows fetched 16 bytes at a time, or samples one by
// one; STEP 1, 2, 3.
//
// Macros that decide what is computed: those of responses.cuh.
// Macros that say how the picture lies:
//     STEP       1 2 3       the stride inside a patch (patch.cuh)
//     ALIGNED    0 1         1 where every row of a float32 picture starts on 16 bytes
//     LEAD       0 to 3      samples between such a place and the patch's first
// Macros that change speed alone: WARPS, ROWS_PER_WARP, COLUMNS_PER_THREAD, BLOCKS_PER_MULTIPROCESSOR (ImplicitShape)
#define TILE_ROWS (WARPS * ROWS_PER_WARP)
#include "responses.cuh"
#include "patch.cuh"

static_assert(IN_GROUP == CHANNELS || OUT_CHANNELS == CHANNELS, "channels filtered separately: an output of each");
constexpr int SPAN = ((COLUMNS_PER_THREAD - 1) * STEP + KERNEL_SIZE) * CHANNELS;  // samples of a patch row that a thread reads
constexpr int ADVANCE = COLUMNS_PER_THREAD * STEP * CHANNELS;                     // distance between two threads' spans
constexpr bool WIDE_READS = ADVANCE % 4 == 0;                              // every span starts on 16 bytes, LEAD early
constexpr int SKIPPED = WIDE_READS ? LEAD : 0;
constexpr int READ = WIDE_READS ? (SKIPPED + SPAN + 3) / 4 * 4 : SPAN;
constexpr int ROWS_AT_ONCE = RESPONSES > 8 ? 1 : ROWS_PER_WARP;              // rows share reads while there is room

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
        for (int i = 0; i < READ; ++i) samples[i] = from[LEAD + i];
    }
}

// One output row by one warp: multiply, join, and put the values of each thread's pixels into `values`.
__device__ __forceinline__ void multiply_row(const float32 (*patch)[PITCH], const Weights &weights, float *values) {
    const int lane = threadIdx.x % WARP;
    Sum response[DIRECTIONS][OUT_CHANNELS][COLUMNS_PER_THREAD] = {};
#pragma unroll
    for (int u = 0; u < KERNEL_SIZE; ++u) {
        float samples[READ];
        read_span(patch[u] + lane * ADVANCE, samples);
#pragma unroll
        for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
            for (int i = 0; i < CHANNELS; ++i)
#pragma unroll
                for (int d = 0; d < DIRECTIONS; ++d)
#pragma unroll
                    for (int o = 0; o < OUT_CHANNELS; ++o)
#pragma unroll
                        for (int p = 0; p < COLUMNS_PER_THREAD; ++p)
                            if (meets(o, i))
                                response[d][o][p] =
                                    multiply_add(weights.value[d][o][IN_GROUP == CHANNELS ? i : 0][u][v],
                                                 samples[SKIPPED + (p * STEP + v) * CHANNELS + i], response[d][o][p]);
    }
#pragma unroll
    for (int p = 0; p < COLUMNS_PER_THREAD; ++p)
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o)
            values[(lane * COLUMNS_PER_THREAD + p) * OUT_CHANNELS + o] = join([&](int d) { return response[d][o][p]; });
}

extern "C" __global__ __launch_bounds__(WARPS * WARP, BLOCKS_PER_MULTIPROCESSOR) void implicit(
    const INPUT *image, OUTPUT *out, const StridedGeometry size, const Weights weights) {
    __shared__ alignas(16) float32 patch[PATCH_ROWS][PITCH];
    __shared__ alignas(16) float values[WARPS][TILE_COLUMNS * OUT_CHANNELS];
    const int warp = threadIdx.x / WARP;
    const Tile tile = tile_of_block(size);
    fill_patch(image, patch, size, tile);
    wait_for_copies();
    __syncthreads();

    const int count = min(TILE_COLUMNS, size.out_width - tile.x) * OUT_CHANNELS;
#pragma unroll(ROWS_AT_ONCE)
    for (int i = 0; i < ROWS_PER_WARP; ++i) {
        const int row = warp * ROWS_PER_WARP + i, y = tile.y + row;
        multiply_row(&patch[row * STEP], weights, values[warp]);
        __syncwarp();
        OUTPUT *run = out + (static_cast<long long>(y) * size.out_width + tile.x) * OUT_SAMPLES;
        store_run<TILE_COLUMNS * OUT_CHANNELS>(values[warp], run, y < size.out_height ? count : 0);
        __syncwarp();
    }
}
