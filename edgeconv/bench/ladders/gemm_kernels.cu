// A ladder of matrix products, C = A · B, row-major, A (m × k), B (k × n): each step one idea more than the last.
//
//   plain          one thread per element of C, every operand from global memory
//   shared         square tiles of A and B in shared memory: an operand is read from global memory as many times less
//                  often as a tile is wide
//   registers      a block of C in each thread's registers, 16-byte reads: an operand read from shared memory feeds 8
//                  products
//   double_buffer  two buffers: the next tiles are copied, asynchronously, while these are multiplied
//   cublas         the vendor's product
// What each gained: docs/kernels.md.
//
// In `registers` and `double_buffer` a block makes TILE_M × TILE_N elements, TILE_K deep per step, each thread
// THREAD_M × THREAD_N of them, and all reads and copies are 16 bytes: a thread takes its rows of A several depths at a
// time, its columns of B one depth after the other. A warp makes a part of the tile that is 8 lanes high and 4 wide;
// neighbouring lanes have neighbouring rows, and columns in runs of RUN, lane after lane. The rows of A's tile are one run
// longer than they need be, so that 8 of them lie in all banks.
//
// Macros that decide what is computed:
//     REAL      float double
//     WHOLE     0 1             1 where m, n and k are multiples of the tile: no bounds are tested then
// Macros that change speed alone: TILE (plain, shared); TILE_M, TILE_N, TILE_K, THREAD_M, THREAD_N,
// BLOCKS_PER_MULTIPROCESSOR (the others)
//
// Idea of `registers` and `double_buffer`: NVIDIA's CUTLASS, "Efficient GEMM in CUDA".

#ifdef TILE
extern "C" __global__ __launch_bounds__(TILE * TILE) void plain(const REAL *a, const REAL *b, REAL *c, int m, int n,
                                                               int k) {
    const int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    if (row >= m || column >= n) return;
    REAL sum = 0;
    for (int i = 0; i < k; ++i) sum += a[static_cast<long long>(row) * k + i] * b[static_cast<long long>(i) * n + column];
    c[static_cast<long long>(row) * n + column] = sum;
}

extern "C" __global__ __launch_bounds__(TILE * TILE) void shared(const REAL *a, const REAL *b, REAL *c, int m, int n,
                                                                int k) {
    __shared__ REAL tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    REAL sum = 0;
    for (int first = 0; first < k; first += TILE) {
        const bool has_a = row < m && first + x < k, has_b = column < n && first + y < k;
        tile_a[y][x] = has_a ? a[static_cast<long long>(row) * k + first + x] : REAL(0);
        tile_b[y][x] = has_b ? b[static_cast<long long>(first + y) * n + column] : REAL(0);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[static_cast<long long>(row) * n + column] = sum;
}
#else
constexpr int WARP = 32, LANES_DOWN = 8, LANES_ACROSS = 4;
constexpr int RUN = 16 / sizeof(REAL);  // elements of a 16-byte read
constexpr int THREADS = (TILE_M / THREAD_M) * (TILE_N / THREAD_N);
constexpr int WARP_M = LANES_DOWN * THREAD_M, WARP_N = LANES_ACROSS * THREAD_N;
constexpr int WARPS_ACROSS = TILE_N / WARP_N;
constexpr int PITCH_A = TILE_K + RUN;
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0, "warps divide the tile");
static_assert(TILE_K % RUN == 0 && THREAD_N % RUN == 0, "a thread's depths and columns are whole 16-byte reads");
static_assert(TILE_M * TILE_K % (THREADS * RUN) == 0 && THREADS * RUN % TILE_K == 0, "threads share A's copies evenly");
static_assert(TILE_K * TILE_N % (THREADS * RUN) == 0 && THREADS * RUN % TILE_N == 0, "threads share B's copies evenly");

struct alignas(16) Run {
    REAL value[RUN];
};

// Copy one element or one run to shared memory, past the registers; elements outside the matrix are zero.
__device__ __forceinline__ void copy_one(const REAL *from, REAL *to, bool inside) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from), "n"(sizeof(REAL)), "r"(inside ? static_cast<int>(sizeof(REAL)) : 0));
#else
    *to = inside ? *from : REAL(0);
#endif
}
__device__ __forceinline__ void copy_run(const REAL *from, REAL *to) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from));
#else
    *reinterpret_cast<Run *>(to) = *reinterpret_cast<const Run *>(from);
#endif
}
__device__ __forceinline__ void end_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
template <int NEWER>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(NEWER) : "memory");
#endif
}

struct Matrices {
    const REAL *a, *b;
    int m, n, k;
};

// The tiles of A and B that start at depth `first`.
__device__ __forceinline__ void copy_tiles(const Matrices &in, int top, int left, int first, REAL (*tile_a)[PITCH_A],
                                           REAL (*tile_b)[TILE_N]) {
    if (WHOLE) {
        constexpr int ROWS_A = THREADS * RUN / TILE_K, ROWS_B = THREADS * RUN / TILE_N;  // that all threads copy at once
        const int row = threadIdx.x * RUN / TILE_K, depth = threadIdx.x * RUN % TILE_K;
        const REAL *from_a = in.a + static_cast<long long>(top + row) * in.k + first + depth;
#pragma unroll
        for (int r = 0; r < TILE_M; r += ROWS_A, from_a += static_cast<long long>(ROWS_A) * in.k)
            copy_run(from_a, &tile_a[r + row][depth]);
        const int line = threadIdx.x * RUN / TILE_N, column = threadIdx.x * RUN % TILE_N;
        const REAL *from_b = in.b + static_cast<long long>(first + line) * in.n + left + column;
#pragma unroll
        for (int r = 0; r < TILE_K; r += ROWS_B, from_b += static_cast<long long>(ROWS_B) * in.n)
            copy_run(from_b, &tile_b[r + line][column]);
        return;
    }
    for (int e = threadIdx.x; e < TILE_M * TILE_K; e += THREADS) {
        const int row = e / TILE_K, depth = e % TILE_K;
        const bool inside = top + row < in.m && first + depth < in.k;
        const long long place = inside ? static_cast<long long>(top + row) * in.k + first + depth : 0;
        copy_one(in.a + place, &tile_a[row][depth], inside);
    }
    for (int e = threadIdx.x; e < TILE_K * TILE_N; e += THREADS) {
        const int depth = e / TILE_N, column = e % TILE_N;
        const bool inside = first + depth < in.k && left + column < in.n;
        const long long place = inside ? static_cast<long long>(first + depth) * in.n + left + column : 0;
        copy_one(in.b + place, &tile_b[depth][column], inside);
    }
}

// Where this thread's part of the tile starts: its rows are LANES_DOWN apart, its runs of columns LANES_ACROSS · RUN.
struct Part {
    int row, column;
};
__device__ __forceinline__ Part part_of_thread() {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    return {warp / WARPS_ACROSS * WARP_M + lane / LANES_ACROSS,
            warp % WARPS_ACROSS * WARP_N + lane % LANES_ACROSS * RUN};
}

__device__ __forceinline__ void multiply_tiles(const REAL (*tile_a)[PITCH_A], const REAL (*tile_b)[TILE_N],
                                               const Part &part, REAL (&sum)[THREAD_M][THREAD_N]) {
#pragma unroll
    for (int first = 0; first < TILE_K; first += RUN) {
        Run depths[THREAD_M];
#pragma unroll
        for (int y = 0; y < THREAD_M; ++y)
            depths[y] = *reinterpret_cast<const Run *>(&tile_a[part.row + y * LANES_DOWN][first]);
#pragma unroll
        for (int i = 0; i < RUN; ++i) {
            Run columns[THREAD_N / RUN];
#pragma unroll
            for (int r = 0; r < THREAD_N / RUN; ++r)
                columns[r] = *reinterpret_cast<const Run *>(&tile_b[first + i][part.column + r * LANES_ACROSS * RUN]);
#pragma unroll
            for (int y = 0; y < THREAD_M; ++y)
#pragma unroll
                for (int x = 0; x < THREAD_N; ++x) sum[y][x] += depths[y].value[i] * columns[x / RUN].value[x % RUN];
        }
    }
}

__device__ __forceinline__ void store_part(const REAL (&sum)[THREAD_M][THREAD_N], const Part &part, int top, int left,
                                           REAL *c, int m, int n) {
#pragma unroll
    for (int y = 0; y < THREAD_M; ++y) {
        const int row = top + part.row + y * LANES_DOWN;
#pragma unroll
        for (int x = 0; x < THREAD_N; x += RUN) {
            const int column = left + part.column + x / RUN * LANES_ACROSS * RUN;
            REAL *to = c + static_cast<long long>(row) * n + column;
            if (WHOLE) {
                Run run;
#pragma unroll
                for (int i = 0; i < RUN; ++i) run.value[i] = sum[y][x + i];
                *reinterpret_cast<Run *>(to) = run;
            } else {
#pragma unroll
                for (int i = 0; i < RUN; ++i)
                    if (row < m && column + i < n) to[i] = sum[y][x + i];
            }
        }
    }
}

extern "C" __global__ __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) void registers(const REAL *a, const REAL *b,
                                                                                      REAL *c, int m, int n, int k) {
    __shared__ alignas(16) REAL tile_a[TILE_M][PITCH_A];
    __shared__ alignas(16) REAL tile_b[TILE_K][TILE_N];
    const Matrices in = {a, b, m, n, k};
    const int top = blockIdx.y * TILE_M, left = blockIdx.x * TILE_N;
    const Part part = part_of_thread();
    REAL sum[THREAD_M][THREAD_N] = {};
    for (int first = 0; first < k; first += TILE_K) {
        copy_tiles(in, top, left, first, tile_a, tile_b);
        end_copies();
        wait_for_copies<0>();
        __syncthreads();
        multiply_tiles(tile_a, tile_b, part, sum);
        __syncthreads();
    }
    store_part(sum, part, top, left, c, m, n);
}

extern "C" __global__ __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) void double_buffer(const REAL *a,
                                                                                          const REAL *b, REAL *c,
                                                                                          int m, int n, int k) {
    __shared__ alignas(16) REAL tile_a[2][TILE_M][PITCH_A];
    __shared__ alignas(16) REAL tile_b[2][TILE_K][TILE_N];
    const Matrices in = {a, b, m, n, k};
    const int top = blockIdx.y * TILE_M, left = blockIdx.x * TILE_N;
    const Part part = part_of_thread();
    REAL sum[THREAD_M][THREAD_N] = {};
    copy_tiles(in, top, left, 0, tile_a[0], tile_b[0]);
    end_copies();
    for (int first = 0, now = 0; first < k; first += TILE_K, now ^= 1) {
        wait_for_copies<0>();
        __syncthreads();  // this tile has come, and the one before has been multiplied by all
        if (first + TILE_K < k) copy_tiles(in, top, left, first + TILE_K, tile_a[now ^ 1], tile_b[now ^ 1]);
        end_copies();
        multiply_tiles(tile_a[now], tile_b[now], part, sum);
    }
    store_part(sum, part, top, left, c, m, n);
}
#endif
