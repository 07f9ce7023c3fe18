// A ladder of 3×3 convolutions from the textbook kernel to the shipped one: each step one idea more than the last.
//
//   textbook  one thread per output value, one launch per output channel
//   pixel     one thread per output pixel: each sample is read once for its three channels
//   constant  weights as a kernel parameter: multiply-adds take them from the constant bank
//   shared    a tile of the picture in shared memory: each sample is fetched once per block
//   rolling   no tile: a thread walks down a strip, and each row it reads goes into the sums of three output rows at
//             once
//   vector    four pixels per thread, read and written 16 bytes at a time
//   waves     the same kernel, strips as long as fill the GPU with whole waves of blocks
//   sliding   the shipped method: a warp has its rows in shared memory, and copies the next ones while it computes
//             these
// What each gained: docs/kernels.md.
//
// All steps compute the same thing, so that nothing but the idea changes: float32, HWC, 3→3 channels, a zero border of one
// pixel. `textbook` is textbook.cu and `sliding` is sliding.cu; the steps between them are here. What was tried beside
// them, and failed: docs/kernels-tried.md.
//
// Macros that decide what is computed:
//     STRIDE          1 2 3
//     HAS_TILE        flag      for `shared` alone: the tile of a large block at a large stride would not fit
// Macro that says how the arrays lie:
//     WHOLE           0 1       1 where every row of picture and output starts on 16 bytes (`vector` alone)
// Macros that change speed alone: ACROSS, DOWN, the threads of a block

constexpr int KERNEL = 3, RGB = 3, PADDING = 1;
constexpr int WINDOW = KERNEL * RGB;  // samples of a window's row

struct Geometry {
    int height, width, out_height, out_width, rows_per_strip;
};

struct Weights {
    float value[RGB][RGB][KERNEL][KERNEL];  // OIHW
};

__device__ __forceinline__ bool is_inside(int position, int size) { return position >= 0 && position < size; }

// --- one thread per output pixel ----------------------------------------------------------------------------------------
struct Pixel {
    int x, y;
};

// The grid is flat, because the y axis of a grid ends at 65,535 blocks and a picture may be taller.
__device__ __forceinline__ Pixel pixel_of_thread(const Geometry &size) {
    const unsigned blocks_across = (size.out_width + ACROSS - 1) / ACROSS;
    const unsigned across = blockIdx.x % blocks_across, down = blockIdx.x / blocks_across;
    return {static_cast<int>(across * ACROSS + threadIdx.x), static_cast<int>(down * DOWN + threadIdx.y)};
}

__device__ __forceinline__ void store_pixel(const float (&sum)[RGB], float *out, const Pixel &at, const Geometry &size) {
    for (int o = 0; o < RGB; ++o) out[(static_cast<long long>(at.y) * size.out_width + at.x) * RGB + o] = sum[o];
}

// The three sums of an output pixel, each sample read once for all of them; weight(o, i, u, v) gives a weight.
template <typename Weight>
__device__ __forceinline__ void sum_window(const float *image, const Pixel &at, const Geometry &size, float (&sum)[RGB],
                                           Weight weight) {
#pragma unroll
    for (int u = 0; u < KERNEL; ++u) {
        const int row = at.y * STRIDE + u - PADDING;
#pragma unroll
        for (int v = 0; v < KERNEL; ++v) {
            const int column = at.x * STRIDE + v - PADDING;
            const bool inside = is_inside(row, size.height) && is_inside(column, size.width);
            const float *from = image + (static_cast<long long>(row) * size.width + column) * RGB;
#pragma unroll
            for (int i = 0; i < RGB; ++i) {
                const float sample = inside ? from[i] : 0.0f;
#pragma unroll
                for (int o = 0; o < RGB; ++o) sum[o] = fmaf(weight(o, i, u, v), sample, sum[o]);
            }
        }
    }
}

extern "C" __global__ __launch_bounds__(ACROSS *DOWN) void pixel(const float *image, float *out, const Geometry size,
                                                                const Weights *weights) {
    const Pixel at = pixel_of_thread(size);
    if (at.x >= size.out_width || at.y >= size.out_height) return;
    float sum[RGB] = {};
    sum_window(image, at, size, sum, [&](int o, int i, int u, int v) { return weights->value[o][i][u][v]; });
    store_pixel(sum, out, at, size);
}

extern "C" __global__ __launch_bounds__(ACROSS *DOWN) void constant(const float *image, float *out, const Geometry size,
                                                                   const __grid_constant__ Weights weights) {
    const Pixel at = pixel_of_thread(size);
    if (at.x >= size.out_width || at.y >= size.out_height) return;
    float sum[RGB] = {};
    sum_window(image, at, size, sum, [&](int o, int i, int u, int v) { return weights.value[o][i][u][v]; });
    store_pixel(sum, out, at, size);
}

#ifdef HAS_TILE
extern "C" __global__ __launch_bounds__(ACROSS *DOWN) void shared(const float *image, float *out, const Geometry size,
                                                                 const __grid_constant__ Weights weights) {
    constexpr int ROWS = (DOWN - 1) * STRIDE + KERNEL, SAMPLES = ((ACROSS - 1) * STRIDE + KERNEL) * RGB;
    __shared__ float tile[ROWS][SAMPLES];
    const Pixel at = pixel_of_thread(size);
    const int top = (at.y - static_cast<int>(threadIdx.y)) * STRIDE - PADDING;
    const int left = ((at.x - static_cast<int>(threadIdx.x)) * STRIDE - PADDING) * RGB;
    for (int s = threadIdx.y * ACROSS + threadIdx.x; s < ROWS * SAMPLES; s += ACROSS * DOWN) {
        const int row = top + s / SAMPLES, j = left + s % SAMPLES;
        const bool inside = is_inside(row, size.height) && is_inside(j, size.width * RGB);
        tile[s / SAMPLES][s % SAMPLES] = inside ? image[static_cast<long long>(row) * size.width * RGB + j] : 0.0f;
    }
    __syncthreads();
    if (at.x >= size.out_width || at.y >= size.out_height) return;
    float sum[RGB] = {};
#pragma unroll
    for (int u = 0; u < KERNEL; ++u)
#pragma unroll
        for (int j = 0; j < WINDOW; ++j) {
            const float sample = tile[threadIdx.y * STRIDE + u][threadIdx.x * STRIDE * RGB + j];
#pragma unroll
            for (int o = 0; o < RGB; ++o) sum[o] = fmaf(weights.value[o][j % RGB][u][j / RGB], sample, sum[o]);
        }
    store_pixel(sum, out, at, size);
}
#endif

// --- a thread walks down a strip ----------------------------------------------------------------------------------------
// Sums of output rows that are under way at once: a row of the picture belongs to that many windows, one above the other.
constexpr int OPEN = (KERNEL + STRIDE - 1) / STRIDE;

// Walk down one strip with PIXELS output pixels beside each other. read(row, samples) brings a row of the picture, zeros
// outside, and write(y, sums) takes a finished row.
template <int PIXELS, typename Read, typename Write>
__device__ __forceinline__ void walk(const Geometry &size, const Weights &weights, int strip, Read read, Write write) {
    constexpr int SAMPLES = ((PIXELS - 1) * STRIDE + KERNEL) * RGB;
    const int first = strip * size.rows_per_strip, rows = min(size.rows_per_strip, size.out_height - first);
    float open[OPEN][PIXELS * RGB] = {};  // the row that ends first in front
    for (int y = 1 - OPEN; y < rows; ++y) {
#pragma unroll
        for (int r = 0; r < STRIDE; ++r) {
            const int row = y * STRIDE + KERNEL - STRIDE + r;  // counted from the first window's first
            if (row < 0) continue;
            float samples[SAMPLES];
            read(first * STRIDE + row - PADDING, samples);
#pragma unroll
            for (int ahead = 0; ahead < OPEN; ++ahead) {
                const int u = KERNEL - STRIDE + r - ahead * STRIDE;  // the row's place in that window
                if (u < 0) continue;
#pragma unroll
                for (int p = 0; p < PIXELS; ++p)
#pragma unroll
                    for (int j = 0; j < WINDOW; ++j)
#pragma unroll
                        for (int o = 0; o < RGB; ++o)
                            open[ahead][p * RGB + o] = fmaf(weights.value[o][j % RGB][u][j / RGB],
                                                            samples[p * STRIDE * RGB + j], open[ahead][p * RGB + o]);
            }
        }
        if (y >= 0) write(first + y, open[0]);
#pragma unroll
        for (int ahead = 0; ahead < OPEN; ++ahead)
#pragma unroll
            for (int s = 0; s < PIXELS * RGB; ++s) open[ahead][s] = ahead + 1 < OPEN ? open[ahead + 1][s] : 0.0f;
    }
}

extern "C" __global__ __launch_bounds__(ACROSS) void rolling(const float *image, float *out, const Geometry size,
                                                            const __grid_constant__ Weights weights) {
    const unsigned blocks_across = (size.out_width + ACROSS - 1) / ACROSS;
    const int x = blockIdx.x % blocks_across * ACROSS + threadIdx.x;
    if (x >= size.out_width) return;
    const int left = (x * STRIDE - PADDING) * RGB;
    const auto read = [&](int row, float (&samples)[WINDOW]) {
        const float *from = image + static_cast<long long>(row) * size.width * RGB + left;
#pragma unroll
        for (int j = 0; j < WINDOW; ++j)
            samples[j] = is_inside(row, size.height) && is_inside(left + j, size.width * RGB) ? from[j] : 0.0f;
    };
    const auto write = [&](int y, const float (&sum)[RGB]) { store_pixel(sum, out, {x, y}, size); };
    walk<1>(size, weights, blockIdx.x / blocks_across, read, write);
}

constexpr int PIXELS = 4, VECTOR = 4;  // so that a thread's output is whole float4s
constexpr int LEAD = (PADDING * RGB + VECTOR - 1) / VECTOR * VECTOR;  // from an aligned place to the first pixel
constexpr int SKIPPED = LEAD - PADDING * RGB;
constexpr int VECTOR_SAMPLES = ((PIXELS - 1) * STRIDE + KERNEL) * RGB;
constexpr int VECTORS = (SKIPPED + VECTOR_SAMPLES + VECTOR - 1) / VECTOR;

extern "C" __global__ __launch_bounds__(ACROSS) void vector(const float *image, float *out, const Geometry size,
                                                           const __grid_constant__ Weights weights) {
    const unsigned blocks_across = (size.out_width + ACROSS * PIXELS - 1) / (ACROSS * PIXELS);
    const int x = (blockIdx.x % blocks_across * ACROSS + threadIdx.x) * PIXELS;
    if (x >= size.out_width) return;
    const int left = x * STRIDE * RGB - LEAD;
    // A float4 lies inside a row or outside it, never half, where rows are whole float4s.
    const auto read = [&](int row, float (&samples)[VECTOR_SAMPLES]) {
        const float *from = image + static_cast<long long>(row) * size.width * RGB + left;
        float held[VECTORS * VECTOR];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            const int at = left + k * VECTOR;
            if (WHOLE) {
                const bool inside = is_inside(row, size.height) && is_inside(at, size.width * RGB);
                float4 four = {0.0f, 0.0f, 0.0f, 0.0f};
                if (inside) four = *reinterpret_cast<const float4 *>(from + k * VECTOR);
                held[k * VECTOR] = four.x, held[k * VECTOR + 1] = four.y;
                held[k * VECTOR + 2] = four.z, held[k * VECTOR + 3] = four.w;
            } else {
#pragma unroll
                for (int j = 0; j < VECTOR; ++j) {
                    const bool inside = is_inside(row, size.height) && is_inside(at + j, size.width * RGB);
                    held[k * VECTOR + j] = inside ? from[k * VECTOR + j] : 0.0f;
                }
            }
        }
#pragma unroll
        for (int j = 0; j < VECTOR_SAMPLES; ++j) samples[j] = held[SKIPPED + j];
    };
    const auto write = [&](int y, const float (&sum)[PIXELS * RGB]) {
        float *to = out + (static_cast<long long>(y) * size.out_width + x) * RGB;
#pragma unroll
        for (int s = 0; s < PIXELS * RGB; s += VECTOR) {
            if (WHOLE) {
                *reinterpret_cast<float4 *>(to + s) = float4{sum[s], sum[s + 1], sum[s + 2], sum[s + 3]};
            } else {
#pragma unroll
                for (int j = s; j < s + VECTOR; ++j)
                    if (x + j / RGB < size.out_width) to[j] = sum[j];
            }
        }
    };
    walk<PIXELS>(size, weights, blockIdx.x / blocks_across, read, write);
}
