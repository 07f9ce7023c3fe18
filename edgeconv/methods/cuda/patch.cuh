// The piece of the picture under a tile of output pixels, in shared memory: what the implicit GEMM reads its
// columns from.
//
//     patch[r][3·j + channel]    r < PATCH_ROWS, j < PATCH_COLUMNS, rows PITCH apart, type PATCH
//
// Output pixel (y, x) of the tile has its corner at patch row y · STEP and column x · STEP. STEP is the stride up
// to 3; at larger strides the windows do not touch, and only what lies under them is fetched, three by three.
// float32 pictures are copied asynchronously, past the registers, 4 bytes at a time: so any row alignment will do.
//
// STEP 1, 2, 3    TILE_ROWS    PATCH float32 or float16

constexpr int COLUMNS_A_THREAD = STEP == 1 ? 4 : STEP == 2 ? 2 : 1;  // keeps a patch row near 1.5 KB at every stride
constexpr int TILE_COLUMNS = WARP * COLUMNS_A_THREAD;
constexpr int PATCH_ROWS = (TILE_ROWS - 1) * STEP + KERNEL_SIZE;
constexpr int PATCH_COLUMNS = (TILE_COLUMNS - 1) * STEP + KERNEL_SIZE;
constexpr int PITCH = (PATCH_COLUMNS * RGB + 7) / 8 * 8;  // whole 16-byte reads may run past the last column

__device__ __forceinline__ void copy_sample(const float32 *from, float32 *to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from));
#else
    *to = *from;
#endif
}
template <typename Sample>
__device__ __forceinline__ void copy_sample(const Sample *from, float32 *to) { *to = to_float(*from); }
#ifdef USES_FLOAT16
template <typename Sample>
__device__ __forceinline__ void copy_sample(const Sample *from, float16 *to) { *to = __float2half_rn(to_float(*from)); }
__device__ __forceinline__ void copy_sample(const float16 *from, float16 *to) { *to = *from; }
#endif

// Close a group of asynchronous copies; wait until at most one group, the newest, is still on its way.
__device__ __forceinline__ void end_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
__device__ __forceinline__ void wait_for_older_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

// Place i along a patch axis, as a distance in the picture from the axis' first place.
__device__ __forceinline__ int spread(int i, int stride) {
    return stride > KERNEL_SIZE ? i / KERNEL_SIZE * stride + i % KERNEL_SIZE : i;
}

// Fetch the patch of the tile whose first output pixel is (tile_y, tile_x); a warp takes a row at a time.
__device__ __forceinline__ void fill_patch(const INPUT *image, PATCH (*patch)[PITCH], const Geometry &size, int tile_y,
                                           int tile_x) {
    const int lane = threadIdx.x % WARP;
    const int top = tile_y * size.stride - size.padding, left = tile_x * size.stride - size.padding;
    const bool whole = size.stride <= KERNEL_SIZE && left >= 0 && left + PATCH_COLUMNS <= size.width;
    for (int r = threadIdx.x / WARP; r < PATCH_ROWS; r += WARPS) {
        const int row = source_index<border>(top + spread(r, size.stride), size.height);
        const INPUT *from = image + static_cast<long long>(row) * size.width * RGB;
        if (row == OUTSIDE) {
            for (int e = lane; e < PATCH_COLUMNS * RGB; e += WARP) patch[r][e] = 0.0f;
        } else if (whole) {
#pragma unroll
            for (int e = lane; e < PATCH_COLUMNS * RGB; e += WARP)
                copy_sample(from + left * RGB + e, &patch[r][e]);
        } else {
            for (int e = lane; e < PATCH_COLUMNS * RGB; e += WARP) {
                const int column = source_index<border>(left + spread(e / RGB, size.stride), size.width);
                if (column == OUTSIDE)
                    patch[r][e] = 0.0f;
                else
                    copy_sample(from + column * RGB + e % RGB, &patch[r][e]);
            }
        }
    }
}
