// sliding_direct: one thread per output pixel, all its channels; every sample is read where it lies.
//
// For any stride, padding, border, size and alignment: what sliding.cu's strips do not cover (strides above 3, pictures
// too small to be worth a ring, and sums that float32 does not hold) runs here. Nine pixels for each thread,
// multiply-adds in the order direction, row, column, channel. Nothing materialised; one launch, or of a filter bank one
// for as many outputs as their weights fit the arguments.
//
// Where windows do not touch, a thread reads the three pixels of a row as the two to five aligned units of memory that
// hold them, and shifts them into place: a load for each sample would look up the same lines again and again.
//
// Macros that decide what is computed: those of responses.cuh, and
//     STRIDE    any
//     BATCH     flag    pictures lie one behind another, each has a line of the grid's y axis
#include "picture.cuh"

constexpr Border border = Border::BORDER;
constexpr Combine combine = Combine::COMBINE;
constexpr Store store = Store::STORE;
#include "sums.cuh"

struct Weights {
    Real value[DIRECTIONS][OUT_CHANNELS][IN_GROUP][KERNEL_SIZE][KERNEL_SIZE];
};

static_assert(IN_GROUP == CHANNELS || OUT_CHANNELS == CHANNELS, "channels filtered separately: an output of each");
constexpr int UNROLLED_OUTPUTS = OUT_CHANNELS <= 4 ? OUT_CHANNELS : 2;  // the code of a bank would fill the caches

// --- a row of a window in whole units ------------------------------------------------------------------------------------
constexpr int WORD = 4;
constexpr int SAMPLE_BYTES = sizeof(INPUT);
constexpr int RUN_BYTES = KERNEL_SIZE * CHANNELS * SAMPLE_BYTES;  // of a row of a window
constexpr int UNIT = SAMPLE_BYTES == 1 ? 8 : 16;  // the largest of which a run always meets as many
constexpr int UNITS = (UNIT - SAMPLE_BYTES + RUN_BYTES + UNIT - 1) / UNIT;
constexpr int UNIT_WORDS = UNIT / WORD, RUN_WORDS = (RUN_BYTES + WORD - 1) / WORD;
#ifdef TRY_PLAIN
constexpr bool IN_UNITS = false;
#else
constexpr bool IN_UNITS = STRIDE > KERNEL_SIZE && PIXEL_SAMPLES == CHANNELS && (RUN_BYTES + UNIT - 1) / UNIT == UNITS;
#endif

struct Run {
    unsigned word[UNITS * UNIT_WORDS];
};

__device__ __forceinline__ void read_unit(const unsigned char *from, unsigned *word) {
    if (UNIT == 16) {
        const uint4 four = __ldg(reinterpret_cast<const uint4 *>(from));
        word[0] = four.x, word[1] = four.y, word[2] = four.z, word[3] = four.w;
    } else {
        const uint2 two = __ldg(reinterpret_cast<const uint2 *>(from));
        word[0] = two.x, word[1] = two.y;
    }
}

// Move a run that starts `skew` bytes after it to the front: by `WORDS` words, where they are part of it; by all of it.
template <int WORDS>
__device__ __forceinline__ void shift_words(Run &run, unsigned skew) {
#pragma unroll
    for (int i = 0; i < RUN_WORDS + WORDS && i + WORDS < UNITS * UNIT_WORDS; ++i)
        run.word[i] = skew & WORDS * WORD ? run.word[i + WORDS] : run.word[i];
}
__device__ __forceinline__ void shift(Run &run, unsigned skew) {
    if (UNIT == 16) shift_words<2>(run, skew);
    shift_words<1>(run, skew);
    if (SAMPLE_BYTES < WORD)
#pragma unroll
        for (int i = 0; i < RUN_WORDS; ++i)
            run.word[i] = __funnelshift_r(run.word[i], i + 1 < UNITS * UNIT_WORDS ? run.word[i + 1] : 0u, skew % WORD * 8);
}

__device__ __forceinline__ Real sample_of(const Run &run, int i, const uint8 *) {
    return static_cast<Real>(run.word[i / 4] >> i % 4 * 8 & 0xFF);
}
__device__ __forceinline__ Real sample_of(const Run &run, int i, const uint16 *) {
    return static_cast<Real>(run.word[i / 2] >> i % 2 * 16 & 0xFFFF);
}
__device__ __forceinline__ Real sample_of(const Run &run, int i, const float32 *) {
    return __uint_as_float(run.word[i]);
}
__device__ __forceinline__ Real sample_of(const Run &run, int i, const float64 *) {
    return static_cast<Real>(__hiloint2double(static_cast<int>(run.word[2 * i + 1]), static_cast<int>(run.word[2 * i])));
}
#ifdef USES_FLOAT16
__device__ __forceinline__ Real sample_of(const Run &run, int i, const float16 *) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(run.word[i / 2] >> i % 2 * 16)));
}
#endif

extern "C" __global__ void sliding_direct(const INPUT *__restrict__ image, OUTPUT *__restrict__ out,
                                          const __grid_constant__ Geometry size,
                                          const __grid_constant__ Weights weights) {
#ifdef BATCH
    image += picture_offset(size.height, size.width, PIXEL_SAMPLES);
    out += picture_offset(size.out_height, size.out_width, OUT_SAMPLES);
#endif
    // A flat grid, because the y axis of a grid ends at 65,535 blocks and a picture may be taller.
    const unsigned blocks_across = (size.out_width + blockDim.x - 1) / blockDim.x;
    const int x = (blockIdx.x % blocks_across) * blockDim.x + threadIdx.x;
    const int y = (blockIdx.x / blocks_across) * blockDim.y + threadIdx.y;
    if (x >= size.out_width || y >= size.out_height) return;

    Real window[KERNEL_SIZE][KERNEL_SIZE][CHANNELS];
    const int left = x * STRIDE - size.padding;
    const long long row_bytes = static_cast<long long>(size.width) * PIXEL_SAMPLES * SAMPLE_BYTES;
    const unsigned char *const picture = reinterpret_cast<const unsigned char *>(image);
    const unsigned char *start[KERNEL_SIZE];  // of each row of the window; null above and below the picture
    bool in_units = IN_UNITS && left >= 0 && left + KERNEL_SIZE <= size.width;
#pragma unroll
    for (int u = 0; IN_UNITS && u < KERNEL_SIZE; ++u) {
        const int row = source_index<border>(y * STRIDE + u - size.padding, size.height);
        start[u] = row == OUTSIDE ? nullptr : picture + row * row_bytes + static_cast<long long>(left) * CHANNELS * SAMPLE_BYTES;
        const unsigned char *const unit = start[u] - reinterpret_cast<unsigned long long>(start[u]) % UNIT;
        in_units &= row == OUTSIDE || (unit >= picture && unit + UNITS * UNIT <= picture + size.height * row_bytes);
    }
    if (in_units) {
        Run run[KERNEL_SIZE];
#pragma unroll
        for (int u = 0; u < KERNEL_SIZE; ++u)
#pragma unroll
            for (int i = 0; i < UNITS; ++i) {
                unsigned *const word = run[u].word + i * UNIT_WORDS;
                if (start[u] != nullptr)
                    read_unit(start[u] - reinterpret_cast<unsigned long long>(start[u]) % UNIT + i * UNIT, word);
                else
                    for (int k = 0; k < UNIT_WORDS; ++k) word[k] = 0;
            }
#pragma unroll
        for (int u = 0; u < KERNEL_SIZE; ++u) {
            shift(run[u], static_cast<unsigned>(reinterpret_cast<unsigned long long>(start[u]) % UNIT));
#pragma unroll
            for (int i = 0; i < KERNEL_SIZE * CHANNELS; ++i)
                window[u][i / CHANNELS][i % CHANNELS] = sample_of(run[u], i, static_cast<const INPUT *>(nullptr));
        }
    } else {
#pragma unroll
        for (int u = 0; u < KERNEL_SIZE; ++u) {
            const int row = source_index<border>(y * STRIDE + u - size.padding, size.height);
#pragma unroll
            for (int v = 0; v < KERNEL_SIZE; ++v) {
                const int column = source_index<border>(left + v, size.width);
                const bool inside = row != OUTSIDE && column != OUTSIDE;
                const INPUT *at = image + (static_cast<long long>(row) * size.width + column) * PIXEL_SAMPLES;
#pragma unroll
                for (int i = 0; i < CHANNELS; ++i) window[u][v][i] = inside ? to_real(at[i]) : Real(0);
            }
        }
    }

    OUTPUT *const pixel = out + (static_cast<long long>(y) * size.out_width + x) * OUT_SAMPLES;
#pragma unroll UNROLLED_OUTPUTS
    for (int o = 0; o < OUT_CHANNELS; ++o) {
        const Real value = join([&](int d) {
            Sum response = 0;
#pragma unroll
            for (int u = 0; u < KERNEL_SIZE; ++u)
#pragma unroll
                for (int v = 0; v < KERNEL_SIZE; ++v)
#pragma unroll
                    for (int i = 0; i < IN_GROUP; ++i)
                        response = multiply_add(weights.value[d][o][i][u][v], window[u][v][IN_GROUP == CHANNELS ? i : o], response);
            return response;
        });
        store_sample<store>(value, pixel[o]);
    }
}
