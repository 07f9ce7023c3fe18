// The sums of sliding.cu on the tensor cores, a warp 32·LANE_PIXELS pixels: D = A·B + C with m16n8k16.
//
// A row of A is a group of four neighbouring pixels, which start a whole number of words apart: its sixteen samples in
// a row of the picture hold all that some of the group's outputs need of that row. A column of B holds the weights of
// one of those outputs, zero where it does not look. So a product adds one row of the picture to eight columns of
// sixteen groups; for 8-bit samples m16n8k32 adds two rows at once.
//
//     one direction     two products a row: six outputs of two pixels each, two columns idle
//     two directions    three products a row: four outputs each, x and y response side by side in one lane
//
// 8-bit pictures with whole weights: unsigned by signed bytes, exact 32-bit sums. float16 pictures: each weight is two
// halves, high and low part (22 bits, checked when the plan is made); products are exact, sums float32. A NaN or an
// infinity spoils what stands beside it, which mend.cuh computes again.
//
// STRIDE 1, OUT_CHANNELS 3. Weights come laid out as the lanes hold them (sliding.py, mma_weights).
static_assert(STRIDE == 1 && OUT_CHANNELS == RGB, "the layout of the products assumes both");
static_assert(sizeof(INPUT) == sizeof(OUTPUT), "outputs lie as inputs do");

constexpr int GROUP_PIXELS = 4;
constexpr int GROUP_BYTES = GROUP_PIXELS * PIXEL_BYTES;
constexpr int GROUPS = 16;  // rows of A
constexpr int PARTS_OF_ROW = WARP * LANE_PIXELS / GROUP_PIXELS / GROUPS;
static_assert(PARTS_OF_ROW * GROUPS * GROUP_PIXELS == WARP * LANE_PIXELS, "a warp has whole products");

constexpr int PRODUCTS = DIRECTIONS == 2 ? 3 : 2;  // a row of the picture
constexpr int PRODUCT_SAMPLES = GROUP_PIXELS * RGB / PRODUCTS;
__host__ __device__ constexpr int first_word(int product) {
    return (LEAD + product * PRODUCT_SAMPLES / RGB * PIXEL_BYTES) / WORD;
}

#ifdef WHOLE_WEIGHTS
constexpr int A_WORDS = 2, B_WORDS = 1, PARTS = 1;
#else
constexpr int A_WORDS = 4, B_WORDS = 2, PARTS = 2;
#endif

struct Weights {
    unsigned word[KERNEL_SIZE][PRODUCTS][PARTS][B_WORDS][WARP];
};

// A lane's share of the weights stays in its registers: rows 0 and 1 of the 3×3 filters, then rows 1 and 2, so that two
// rows lie side by side either way.
struct Filter {
    unsigned word[2][PRODUCTS][PARTS][2][B_WORDS];
};
__device__ __forceinline__ Filter filter_of(const Weights &weights, int lane) {
    Filter filter;
    const unsigned *words = &weights.word[0][0][0][0][0];
#ifdef __CUDA_ARCH__
    // Keep the compiler from seeing the constant bank here, which serves one lane at a time: a plain load serves all.
    asm("" : "+l"(words));
#endif
#pragma unroll
    for (int first = 0; first < 2; ++first)
#pragma unroll
        for (int p = 0; p < PRODUCTS; ++p)
#pragma unroll
            for (int part = 0; part < PARTS; ++part)
#pragma unroll
                for (int u = 0; u < 2; ++u)
#pragma unroll
                    for (int i = 0; i < B_WORDS; ++i)
                        filter.word[first][p][part][u][i] =
                            words[((((first + u) * PRODUCTS + p) * PARTS + part) * B_WORDS + i) * WARP + lane % WARP];
    return filter;
}

// d += a·b. Lane 4·g + t holds: of a, row g (and g + 8) from word t on; of b, column g from word t on; of d, columns
// 2t and 2t + 1 of rows g and g + 8.
#ifdef __CUDA_ARCH__
#ifdef WHOLE_WEIGHTS
__device__ __forceinline__ void multiply(Response (&d)[4], const unsigned (&a)[A_WORDS], const unsigned (&b)[B_WORDS]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#else
    asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(d[0]), "+r"(d[1])
        : "r"(a[0]), "r"(b[0]));
    asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(d[2]), "+r"(d[3])
        : "r"(a[1]), "r"(b[0]));
#endif
}
#else
__device__ __forceinline__ void multiply(Response (&d)[4], const unsigned (&a)[A_WORDS], const unsigned (&b)[B_WORDS]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int half = 0; half < 2; ++half)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
}
#endif
#else
// The same product written out, for tests on a CPU: tests/host_cuda shows every lane what the others hold.
__device__ __forceinline__ Response dot_word(unsigned a, unsigned b) {
    Response sum = 0;
#ifdef WHOLE_WEIGHTS
    for (int i = 0; i < WORD; ++i) sum += static_cast<int>(a >> 8 * i & 0xFF) * static_cast<signed char>(b >> 8 * i);
#else
    for (int i = 0; i < 2; ++i)
        sum += __half2float(__ushort_as_half(static_cast<unsigned short>(a >> 16 * i))) *
               __half2float(__ushort_as_half(static_cast<unsigned short>(b >> 16 * i)));
#endif
    return sum;
}
__device__ __forceinline__ void multiply(Response (&d)[4], const unsigned (&a)[A_WORDS], const unsigned (&b)[B_WORDS]) {
    const int lane = threadIdx.x % WARP, group = lane / 4, pair = lane % 4;
    const auto *lanes = host_cuda::share_words(a, b);
    for (int i = 0; i < B_WORDS; ++i)
        for (int t = 0; t < 4; ++t)
            for (int half = 0; half < 2; ++half)
                for (int k = 0; k < 2; ++k)
                    d[2 * half + k] +=
                        dot_word(lanes[group * 4 + t].a[2 * i + half], lanes[(2 * pair + k) * 4 + t].b[i]);
    __syncwarp();
}
#endif

// The products of two rows, in one instruction where there is one.
__device__ __forceinline__ void multiply(Response (&d)[4], const unsigned (&a)[2][A_WORDS],
                                         const unsigned (&b)[2][B_WORDS]) {
#if defined(WHOLE_WEIGHTS) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0][0]), "r"(a[0][1]), "r"(a[1][0]), "r"(a[1][1]), "r"(b[0][0]), "r"(b[1][0]));
#else
    multiply(d, a[0], b[0]);
    multiply(d, a[1], b[1]);
#endif
}

// The rows of A that a lane holds of two rows of the picture.
struct Window {
    unsigned word[PRODUCTS][2][A_WORDS];

    __device__ __forceinline__ void read(const unsigned char *rows, int lane, int part) {
        const int group = lane % WARP / 4, pair = lane % 4;
        const unsigned char *const from =
            rows + ((lane / WARP * PARTS_OF_ROW + part) * GROUPS + group) * GROUP_BYTES + pair * WORD;
#pragma unroll
        for (int p = 0; p < PRODUCTS; ++p)
#pragma unroll
            for (int row = 0; row < 2; ++row)
#pragma unroll
                for (int i = 0; i < A_WORDS; ++i)
                    word[p][row][i] = *reinterpret_cast<const unsigned *>(
                        from + row * ROW_BYTES + i % 2 * (GROUPS / 2) * GROUP_BYTES + (first_word(p) + i / 2 * 4) * WORD);
    }
};

typedef Response Responses[PRODUCTS][4];

__device__ __forceinline__ void clear(Responses &sum) {
#pragma unroll
        for (int p = 0; p < PRODUCTS; ++p)
#pragma unroll
            for (int i = 0; i < 4; ++i) sum[p][i] = START;
}

#ifdef MENDS
// The same for two halves in a word, by one instruction each.
__device__ __forceinline__ void mark_if_not_finite(unsigned halves, unsigned &mark) {
#ifdef __CUDA_ARCH__
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(mark) : "r"(halves), "r"(0));
#else
    if ((halves & 0x7C00u) == 0x7C00u || (halves & 0x7C000000u) == 0x7C000000u) mark = 0x7FFF7FFFu;
#endif
}
__device__ __forceinline__ bool is_marked(unsigned mark) { return (mark & 0x7FFF7FFFu) != 0; }  // zeros, or NaN
#endif

// Put one finished row of responses into the stage, as samples; `mark` remembers one that is not finite (mend.cuh).
__device__ __forceinline__ void finish(unsigned char *staged, int lane, int part, const Responses &sum, unsigned &mark) {
    const int group = lane % WARP / 4, pair = lane % 4;
    const bool has_output = pair < PRODUCT_SAMPLES * DIRECTIONS / 2;
    OUTPUT *const to = reinterpret_cast<OUTPUT *>(staged) +
                       ((lane / WARP * PARTS_OF_ROW + part) * GROUPS + group) * GROUP_PIXELS * RGB + (3 - DIRECTIONS) * pair;
#pragma unroll
        for (int p = 0; p < PRODUCTS; ++p)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const Response first = sum[p][2 * half], second = sum[p][2 * half + 1];
                OUTPUT *const at = to + half * (GROUPS / 2) * GROUP_PIXELS * RGB + p * PRODUCT_SAMPLES;
                if (DIRECTIONS == 2) {
#ifdef WHOLE_WEIGHTS
                    *at = length_byte(first, second);
#else
                    const float value = length(to_value(first), to_value(second));
                    store_sample<store>(value, *at);
                    mark_if_not_finite(static_cast<unsigned>(__half_as_ushort(*at)), mark);
#endif
                    continue;
                }
                // All lanes pack, so that only the store itself depends on the lane.
#ifdef WHOLE_WEIGHTS
                const bool positive = store == Store::abs;
                const unsigned short both = static_cast<unsigned short>(
                    pack_clipped(positive ? abs(first) : first, positive ? abs(second) : second, 0));
                if (has_output) *reinterpret_cast<unsigned short *>(at) = both;
#else
                const float value[2] = {first, second};
                const unsigned both = pack(value, static_cast<const OUTPUT *>(nullptr));
                mark_if_not_finite(both, mark);
                if (has_output) *reinterpret_cast<unsigned *>(at) = both;
#endif
            }
}

// A warp's part of a strip, going down by pairs of rows: the windows of the pair before, from which the rows of the
// output are summed anew. They take fewer registers than the sums under way would.
static_assert(STEP_ROWS % 2 == 0, "a step is pairs of rows");
struct Column {
    Window before;

    __device__ __forceinline__ void start() { before = Window(); }

    // Take the input rows of a step, put the output rows that end with them into the stage.
    __device__ __forceinline__ void step(const unsigned char *rows, unsigned char *staged, int lane, int part,
                                         const Filter &filter) {
#pragma unroll
        for (int y = 0; y < STEP_ROWS; y += 2) {
            Window two;
            two.read(rows + y * ROW_BYTES, lane, part);
            Responses first, second;
            clear(first), clear(second);
#pragma unroll
            for (int half = 0; half < PARTS; ++half)
#pragma unroll
                for (int p = 0; p < PRODUCTS; ++p) {
                    multiply(first[p], before.word[p], filter.word[0][p][half]);
                    multiply(first[p], two.word[p][0], filter.word[1][p][half][1]);
                }
            unsigned mark = 0;
            finish(staged + y * OUT_ROW_BYTES, lane, part, first, mark);
#pragma unroll
            for (int half = 0; half < PARTS; ++half)
#pragma unroll
                for (int p = 0; p < PRODUCTS; ++p) {
                    multiply(second[p], two.word[p], filter.word[1][p][half]);
                    multiply(second[p], before.word[p][1], filter.word[0][p][half][0]);
                }
            finish(staged + (y + 1) * OUT_ROW_BYTES, lane, part, second, mark);
#ifdef MENDS
            if (is_marked(mark)) block_is_spoilt = 1;
#endif
            before = two;
        }
    }
};
