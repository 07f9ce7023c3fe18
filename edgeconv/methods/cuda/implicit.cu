// The implicit GEMM in float32 or float64: im2col happens in the index of the GEMM, and no column is ever in memory.
//
// A block makes one tile of TILE_ROWS × TILE_COLUMNS output pixels. It fetches the piece of the picture under the tile,
//
//     patch[r][LEAD + CHANNELS·j + channel]    patch row r, patch column j, float32
//
// where output pixel (y, x) of the tile has its corner at patch row y · STEP and patch column x · STEP. STEP is the
// stride up to 3; at larger strides the windows do not touch, and only what lies under them is fetched, three by three.
// float32 pictures are copied asynchronously, past the registers: 16 bytes at a time where every row starts on 16 bytes
// (ALIGNED), as LEAD samples before the patch make a chunk of the picture a chunk of the patch; else 4 bytes at a time.
//
// Then each warp multiplies ROWS_PER_WARP output rows. A thread holds COLUMNS_PER_THREAD columns of the result by all
// its rows, and takes column value k from the patch, where neighbouring columns share most of their samples: 18 reads
// instead of 36 for four pixels at stride 1. While one block fetches, others of its multiprocessor multiply.
//
// What was tried, with figures: docs/kernels-tried.md.
//
// Variants, by macro: float32 sums, or float64 (WIDE_SUMS); ALIGNED, or not; STEP 1, 2, 3.
//
// Macros that decide what is computed: those of responses.cuh.
// Macros that say how the picture lies:
//     STEP       1 2 3       the stride inside a patch
//     ALIGNED    0 1         1 where every row of a float32 picture starts on 16 bytes
//     LEAD       0 to 3      samples between such a place and the patch's first
// Macros that change speed alone: WARPS, ROWS_PER_WARP, COLUMNS_PER_THREAD, BLOCKS_PER_MULTIPROCESSOR (ImplicitShape)
#include "responses.cuh"

// --- the patch under a tile ------------------------------------------------------------------------------------------
constexpr int TILE_COLUMNS = WARP * COLUMNS_PER_THREAD;
constexpr int TILE_ROWS = WARPS * ROWS_PER_WARP;
constexpr int PATCH_ROWS = (TILE_ROWS - 1) * STEP + KERNEL_SIZE;
constexpr int PATCH_SAMPLES = ((TILE_COLUMNS - 1) * STEP + KERNEL_SIZE) * CHANNELS;  // of a patch row
constexpr int CHUNK = 4;  // samples of an aligned copy
constexpr int CHUNKS = (LEAD + PATCH_SAMPLES + CHUNK - 1) / CHUNK;
constexpr int PITCH = (LEAD + PATCH_SAMPLES + 3 + 7) / 8 * 8;  // whole 16-byte reads may run past the last sample

__device__ __forceinline__ void copy_chunk(const float32 *from, float32 *to) {
    copy_value(reinterpret_cast<const float4 *>(from), reinterpret_cast<float4 *>(to));
}
template <typename Sample>
__device__ __forceinline__ void copy_chunk(const Sample *, float32 *) {}  // only float32 pictures are ALIGNED

// The first output pixel of a block's tile. Neighbouring blocks take neighbouring tiles of a row, so that blocks under
// way together read whole rows of the picture, and the rows that two tiles share while they are in the L2.
struct Tile {
    int y, x;
};
__device__ __forceinline__ Tile tile_of_block(const StridedGeometry &size) {
    const unsigned across = (size.out_width + TILE_COLUMNS - 1) / TILE_COLUMNS;
    return {static_cast<int>(blockIdx.x / across) * TILE_ROWS, static_cast<int>(blockIdx.x % across) * TILE_COLUMNS};
}

// Place i along a patch axis, as a distance in the picture from the axis' first place.
__device__ __forceinline__ int spread(int i, int stride) {
    return stride > KERNEL_SIZE ? i / KERNEL_SIZE * stride + i % KERNEL_SIZE : i;
}

// Fetch the patch of a tile; each warp takes one row at a time.
__device__ __forceinline__ void fill_patch(const INPUT *image, float32 (*patch)[PITCH], const StridedGeometry &size,
                                           const Tile &tile) {
    const int lane = threadIdx.x % WARP;
    const int top = tile.y * size.stride - size.padding, left = tile.x * size.stride - size.padding;
    const long long row_samples = static_cast<long long>(size.width) * PIXEL_SAMPLES;
    const long long left_sample = static_cast<long long>(left) * PIXEL_SAMPLES;  // a row may have more than 2^31 of them
    const bool whole = size.stride <= KERNEL_SIZE && left >= 0 &&
                       left_sample + PATCH_SAMPLES / CHANNELS * PIXEL_SAMPLES <= row_samples;
    for (int r = threadIdx.x / WARP; r < PATCH_ROWS; r += WARPS) {
        const int row = source_index<border>(top + spread(r, size.stride), size.height);
        const INPUT *from = image + row * row_samples;
        float32 *const to = patch[r] + LEAD;
        if (row != OUTSIDE && whole && ALIGNED) {
#pragma unroll
            for (int chunk = lane; chunk < CHUNKS; chunk += WARP)
                copy_chunk(from + left_sample - LEAD + chunk * CHUNK, to - LEAD + chunk * CHUNK);
        } else if (row != OUTSIDE && whole) {
#pragma unroll
            for (int e = lane; e < PATCH_SAMPLES; e += WARP)
                copy_sample(from + left_sample + place_in_row(e), to + e);
        } else {
            for (int e = lane - LEAD; e < (ALIGNED ? CHUNKS * CHUNK - LEAD : PATCH_SAMPLES); e += WARP) {
                const bool inside = e >= 0 && e < PATCH_SAMPLES;
                const int column =
                    inside ? source_index<border>(left + spread(e / CHANNELS, size.stride), size.width) : OUTSIDE;
                if (row == OUTSIDE || column == OUTSIDE)
                    to[e] = 0.0f;
                else
                    copy_sample(from + static_cast<long long>(column) * PIXEL_SAMPLES + e % CHANNELS, to + e);
            }
        }
    }
}

// --- the products ----------------------------------------------------------------------------------------------------
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
