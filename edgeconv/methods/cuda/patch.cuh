// The piece of the picture under a strip of output pixels, in shared memory: what the implicit GEMM reads its columns
// from.
//
//     ring[q % RING][LEAD + 3·j + channel]    patch row q of the block's strip, patch column j, type PATCH
//
// A block walks down a strip TILE_COLUMNS wide, TILE_ROWS output rows a step. Output pixel (y, x) of the strip has
// its corner at patch row y · STEP and patch column x · STEP. The ring holds the rows of a step and those of the next,
// so that each row of the picture is fetched once, while the step before it is multiplied. STEP is the stride up to
// 3; at larger strides the windows do not touch, and only what lies under them is fetched, three by three.
//
// float32 pictures are copied asynchronously, past the registers. Where every row starts on 16 bytes (ALIGNED), 16
// bytes at a time: LEAD samples then stand before the patch, so that a chunk of the picture is a chunk of the ring.
// Else 4 bytes at a time, and LEAD is 0.
//
// STEP 1, 2, 3    TILE_ROWS, WARPS    PATCH float32 or float16    ALIGNED 0 or 1, LEAD 0 to 3

constexpr int COLUMNS_A_THREAD = STEP == 1 ? 4 : STEP == 2 ? 2 : 1;  // keeps a patch row near 1.5 KB at every stride
constexpr int TILE_COLUMNS = WARP * COLUMNS_A_THREAD;
constexpr int STEP_ROWS = TILE_ROWS * STEP;      // patch rows that a step adds
constexpr int KEPT_ROWS = KERNEL_SIZE - STEP;    // patch rows that it shares with the step before
constexpr int RING = 2 * STEP_ROWS + KEPT_ROWS;
constexpr int PATCH_SAMPLES = ((TILE_COLUMNS - 1) * STEP + KERNEL_SIZE) * RGB;  // of a patch row
constexpr int CHUNK = 4;                         // samples of an aligned copy
constexpr int CHUNKS = (LEAD + PATCH_SAMPLES + CHUNK - 1) / CHUNK;
constexpr int PITCH = (LEAD + PATCH_SAMPLES + 3 + 7) / 8 * 8;  // whole 16-byte reads may run past the last sample

__device__ __forceinline__ void copy_sample(const float32 *from, float32 *to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from));
#else
    *to = *from;
#endif
}
__device__ __forceinline__ void copy_chunk(const float32 *from, float32 *to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from));
#else
    *reinterpret_cast<float4 *>(to) = *reinterpret_cast<const float4 *>(from);
#endif
}
template <typename Sample, typename Patch>
__device__ __forceinline__ void copy_chunk(const Sample *, Patch *) {}  // only float32 pictures are ALIGNED
template <typename Sample>
__device__ __forceinline__ void copy_sample(const Sample *from, float32 *to) {
    *to = to_float(*from);
}
#ifdef USES_FLOAT16
template <typename Sample>
__device__ __forceinline__ void copy_sample(const Sample *from, float16 *to) {
    *to = __float2half_rn(to_float(*from));
}
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

// The part of the output that a block makes: rows `first_row` to `end_row` of one strip. The rows of a strip are
// shared out evenly among `segments` blocks.
struct Strip {
    int first_row, end_row, first_column;
};
__device__ __forceinline__ Strip strip_of_block(const Geometry &size, int segments) {
    const int segment = blockIdx.x % segments;
    return {static_cast<int>(static_cast<long long>(size.out_height) * segment / segments),
            static_cast<int>(static_cast<long long>(size.out_height) * (segment + 1) / segments),
            static_cast<int>(blockIdx.x / segments) * TILE_COLUMNS};
}

// Place i along a patch axis, as a distance in the picture from the axis' first place.
__device__ __forceinline__ int spread(int i, int stride) {
    return stride > KERNEL_SIZE ? i / KERNEL_SIZE * stride + i % KERNEL_SIZE : i;
}

// Fetch `count` patch rows of a strip from row `first` on; a warp takes a row at a time.
__device__ __forceinline__ void fill_rows(const INPUT *image, PATCH (*ring)[PITCH], const Geometry &size,
                                          const Strip &strip, int first, int count) {
    const int lane = threadIdx.x % WARP;
    const int top = strip.first_row * size.stride - size.padding;
    const int left = strip.first_column * size.stride - size.padding;
    const bool whole = size.stride <= KERNEL_SIZE && left >= 0 && left * RGB + PATCH_SAMPLES <= size.width * RGB;
    for (int q = first + threadIdx.x / WARP; q < first + count; q += WARPS) {
        const int row = source_index<border>(top + spread(q, size.stride), size.height);
        const INPUT *from = image + static_cast<long long>(row) * size.width * RGB;
        PATCH *const to = ring[q % RING] + LEAD;
        if (row != OUTSIDE && whole && ALIGNED) {
#pragma unroll
            for (int chunk = lane; chunk < CHUNKS; chunk += WARP)
                copy_chunk(from + left * RGB - LEAD + chunk * CHUNK, to - LEAD + chunk * CHUNK);
        } else if (row != OUTSIDE && whole) {
#pragma unroll
            for (int e = lane; e < PATCH_SAMPLES; e += WARP) copy_sample(from + left * RGB + e, to + e);
        } else {
            for (int e = lane - LEAD; e < PATCH_SAMPLES; e += WARP) {
                const bool before = e < 0;
                const int column = before ? OUTSIDE : source_index<border>(left + spread(e / RGB, size.stride), size.width);
                if (row == OUTSIDE || column == OUTSIDE)
                    to[e] = 0.0f;
                else
                    copy_sample(from + column * RGB + e % RGB, to + e);
            }
        }
    }
}

// The ring slot of a patch row, from that of an earlier row less than a ring away.
__device__ __forceinline__ int slot_after(int slot, int rows) {
    return slot + rows >= RING ? slot + rows - RING : slot + rows;
}
