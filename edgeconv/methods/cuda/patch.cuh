// The piece of the picture under a tile of output pixels, in shared memory: what the implicit GEMM reads its columns
// from.
//
//     patch[r][LEAD + CHANNELS·j + channel]    patch row r, patch column j, float32
//
// A block makes a tile of TILE_ROWS × TILE_COLUMNS output pixels. Output pixel (y, x) of the tile has its corner at
// patch row y · STEP and patch column x · STEP. STEP is the stride up to 3; at larger strides the windows do not touch,
// and only what lies under them is fetched, three by three.
//
// float32 pictures are copied asynchronously, past the registers. Where every row starts on 16 bytes (ALIGNED), 16
// bytes at a time: LEAD samples then stand before the patch, so that a chunk of the picture is a chunk of the patch.
// Else 4 bytes at a time, and LEAD is 0.
//
// Macros: STEP, ALIGNED, LEAD, WARPS, COLUMNS_PER_THREAD as in implicit.cu; TILE_ROWS, output rows of a block.

constexpr int TILE_COLUMNS = WARP * COLUMNS_PER_THREAD;
constexpr int PATCH_ROWS = (TILE_ROWS - 1) * STEP + KERNEL_SIZE;
constexpr int PATCH_SAMPLES = ((TILE_COLUMNS - 1) * STEP + KERNEL_SIZE) * CHANNELS;  // of a patch row
constexpr int CHUNK = 4;                         // samples of an aligned copy
constexpr int CHUNKS = (LEAD + PATCH_SAMPLES + CHUNK - 1) / CHUNK;
constexpr int PITCH = (LEAD + PATCH_SAMPLES + 3 + 7) / 8 * 8;  // whole 16-byte reads may run past the last sample

__device__ __forceinline__ void copy_chunk(const float32 *from, float32 *to) { copy_16_bytes(from, to); }
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
    const bool whole = size.stride <= KERNEL_SIZE && left >= 0 && left_sample + PATCH_SAMPLES / CHANNELS * PIXEL_SAMPLES <= row_samples;
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
