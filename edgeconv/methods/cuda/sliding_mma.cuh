// The sums of sliding.cu on the tensor cores, 32·THREAD_PIXELS pixels per warp: D = A·B + C with m16n8k16.
//
// A row of A is a group of four neighbouring pixels, which start a whole number of words apart: its sixteen samples in
// a row of the picture hold all that some of the group's outputs need of that row. A column of B holds the weights of
// one of those outputs, zero where it does not look. So one product adds one row of the picture to eight columns of
// sixteen groups; for 8-bit samples m16n8k32 adds two rows at once.
//
//     one direction     two products per row: six outputs of two pixels each, two columns idle
//     two directions    three products per row: four outputs each, x and y response side by side in one lane
//
// 8-bit pictures with whole weights: unsigned by signed bytes, exact 32-bit sums.
// float16 pictures: each weight is two halves, high and low part (22 bits, checked when the plan is made); products are
// exact, sums float32. A NaN or an infinity spoils what stands beside it, which mend.cuh computes again.
// 8-bit pictures with other weights: each weight is a whole number of 22 bits, as two halves of which the first stands for
// 2,048 times as much. Each has sums of its own, whole numbers that floats hold, and they are joined at the end. A byte
// with zeros above it is a half already, of its value times 2^-24.
//
// STRIDE 1, OUT_CHANNELS 3. Weights come laid out as the lanes hold them (sliding_packing.py, mma_weights).
//
// Variants, by macro: WHOLE_WEIGHTS or not, INPUT uint8 or float16, as above; DIRECTIONS 1 or 2.
static_assert(STRIDE == 1 && OUT_CHANNELS == CHANNELS, "the layout of the products assumes both");
static_assert(sizeof(INPUT) == sizeof(OUTPUT), "outputs lie as inputs do");

constexpr int GROUP_PIXELS = 4;
constexpr int GROUP_BYTES = GROUP_PIXELS * PIXEL_BYTES;
constexpr int GROUPS = 16;  // rows of A
constexpr int PARTS_OF_ROW = WARP * THREAD_PIXELS / GROUP_PIXELS / GROUPS;
static_assert(PARTS_OF_ROW * GROUPS * GROUP_PIXELS == WARP * THREAD_PIXELS, "a warp has whole products");

constexpr int PRODUCTS = DIRECTIONS == 2 ? 3 : 2;  // per row of the picture
constexpr int PRODUCT_SAMPLES = GROUP_PIXELS * CHANNELS / PRODUCTS;
__host__ __device__ constexpr int first_word(int product) {
    return (LEAD + product * PRODUCT_SAMPLES / CHANNELS * PIXEL_BYTES) / WORD;
}

#ifdef WHOLE_WEIGHTS
constexpr int A_WORDS = 2, B_WORDS = 1, PARTS = 1;
#else
constexpr int A_WORDS = 4, B_WORDS = 2, PARTS = 2;
#endif
constexpr int SUMS = SAMPLE_BYTES == 1 ? PARTS : 1;  // of an output
constexpr int WORDS_READ = 2 * SAMPLE_BYTES;  // of the picture, for the words of A that a lane holds of a row

struct Weights {
    unsigned word[KERNEL_SIZE][PRODUCTS][PARTS][B_WORDS][WARP];
    float scale, limit;  // of bytes as halves: levels that a joined sum of 1 stands for, and the one that is 255 of them
};

// A lane's share of the weights stays in its registers: rows 0 and 1 of the 3×3 filters, then rows 1 and 2, so that two
// rows lie side by side either way.
struct Filter {
    float scale, limit;
    unsigned word[2][PRODUCTS][PARTS][2][B_WORDS];
};
__device__ __forceinline__ Filter filter_of(const Weights &weights, int lane) {
    Filter filter;
    filter.scale = weights.scale, filter.limit = weights.limit;
    const unsigned *words = &weights.word[0][0][0][0][0];
    // Keep the compiler from seeing the constant bank here, which serves one lane at a time: a plain load serves all.
    hide_origin(words);
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
                            words[((((first + u) * PRODUCTS + p) * PARTS + part) * B_WORDS + i) * WARP + lane];
    return filter;
}

// d += a·b. Lane 4·g + t holds: of a, row g (and g + 8) from word t on; of b, column g from word t on; of d, columns
// 2t and 2t + 1 of rows g and g + 8.
__device__ __forceinline__ void multiply(Response (&d)[4], const unsigned (&a)[A_WORDS], const unsigned (&b)[B_WORDS]) {
#ifdef WHOLE_WEIGHTS
    mma_bytes(d, a, b);
#else
    mma_halves(d, a, b);
#endif
}

// The products of two rows, in one instruction where there is one.
__device__ __forceinline__ void multiply(Response (&d)[4], const unsigned (&a)[2][A_WORDS],
                                         const unsigned (&b)[2][B_WORDS]) {
#ifdef WHOLE_WEIGHTS
    mma_bytes(d, a, b);
#else
    multiply(d, a[0], b[0]);
    multiply(d, a[1], b[1]);
#endif
}

// The rows of A that a lane holds of two rows of the picture.
struct Window {
    unsigned word[PRODUCTS][2][A_WORDS];

    __device__ __forceinline__ void read(const Row (&rows)[2], int lane, int part) {
        const int group = lane / 4, pair = lane % 4;  // of the lane: lane = 4 · group + pair
        const int from = (part * GROUPS + group) * GROUP_BYTES + pair * WORD;
#pragma unroll
        for (int p = 0; p < PRODUCTS; ++p)
#pragma unroll
            for (int row = 0; row < 2; ++row)
#pragma unroll
                for (int i = 0; i < WORDS_READ; ++i) {
                    const unsigned samples =
                        rows[row].word(from + i % 2 * (GROUPS / 2) * GROUP_BYTES + (first_word(p) + i / 2 * 4) * WORD);
                    if (WORDS_READ == A_WORDS) {
                        word[p][row][i] = samples;
                    } else {  // four bytes as four halves
                        word[p][row][i] = __byte_perm(samples, 0, 0x4140);
                        word[p][row][i + A_WORDS / 2] = __byte_perm(samples, 0, 0x4342);
                    }
                }
    }
};

typedef Response Responses[PRODUCTS][SUMS][4];

__device__ __forceinline__ void clear(Responses &sum) {
#pragma unroll
    for (int p = 0; p < PRODUCTS; ++p)
#pragma unroll
        for (int s = 0; s < SUMS; ++s)
#pragma unroll
            for (int i = 0; i < 4; ++i) sum[p][s][i] = START;
}

#if !defined(MENDS) && !defined(WHOLE_WEIGHTS)
// Value i of an output row's sums, as the low byte of the float 2^23 more.
__device__ __forceinline__ unsigned joined_byte(const Response (&sums)[SUMS][4], int i, const Filter &filter) {
    const float value = fmaf(sums[0][i], 2048.0f, sums[1][i]);
    return __float_as_uint(fmaf(within<store>(value, filter.limit), filter.scale, TWO_POW_23));
}
#endif

// Put two samples, the first in the low bits of `both`, beside each other into a staged row.
__device__ __forceinline__ void put_pair(OUTPUT *at, unsigned both) {
    if (2 * sizeof(OUTPUT) == WORD) *reinterpret_cast<unsigned *>(at) = both;
    else *reinterpret_cast<unsigned short *>(at) = static_cast<unsigned short>(both);
}

// Put one complete row of responses into the stage, as samples; `mark` remembers one that is not finite (mend.cuh).
__device__ __forceinline__ void stage_row(unsigned char *staged, int lane, int part, const Responses &sum,
                                          const Filter &filter, unsigned &mark) {
    const int group = lane / 4, pair = lane % 4;  // of the lane: lane = 4 · group + pair
    const bool has_output = pair < PRODUCT_SAMPLES * DIRECTIONS / 2;
    OUTPUT *const to = reinterpret_cast<OUTPUT *>(staged) +
                       (part * GROUPS + group) * GROUP_PIXELS * CHANNELS + (3 - DIRECTIONS) * pair;
    const auto place = [&](int p, int half) { return to + half * (GROUPS / 2) * GROUP_PIXELS * CHANNELS + p * PRODUCT_SAMPLES; };
#pragma unroll
    for (int p = 0; p < PRODUCTS; ++p)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const Response first = sum[p][0][2 * half], second = sum[p][0][2 * half + 1];
            if (DIRECTIONS == 2) {
                OUTPUT &sample = *place(p, half);
#ifdef WHOLE_WEIGHTS
                sample = length_byte(first, second);
#elif defined(MENDS)
                store_sample<store>(length(to_value(first), to_value(second)), sample);
                mark_not_finite(static_cast<unsigned>(__half_as_ushort(sample)), mark);
#else
                static_assert(DIRECTIONS == 1, "bytes as halves have one direction");
#endif
                continue;
            }
            unsigned both;  // all lanes pack, so that only the store depends on the lane
#ifdef WHOLE_WEIGHTS
            const bool positive = store == Store::abs;
            both = pack_clipped(positive ? abs(first) : first, positive ? abs(second) : second, 0);
#elif defined(MENDS)
            const float value[2] = {first, second};
            both = pack(value, static_cast<const OUTPUT *>(nullptr));
            mark_not_finite(both, mark);
#else
            both = __byte_perm(joined_byte(sum[p], 2 * half, filter), joined_byte(sum[p], 2 * half + 1, filter), 0x0040);
#endif
            if (has_output) put_pair(place(p, half), both);
        }
}

// A warp's part of a strip, going down by pairs of rows: the windows of the pair before, from which the rows of the
// output are summed anew. They take fewer registers than the sums under way would.
static_assert(STEP_ROWS % 2 == 0, "a step is pairs of rows");
struct Column {
    Window before;

    __device__ __forceinline__ void start() { before = Window(); }

    // Take the input rows of a step, put the output rows that end with them, from `first_row` on, into the stage.
    __device__ __forceinline__ void step(const StepRows &rows, const StagedRows &staged, int lane, int part,
                                         const Filter &filter, int first_row) {
#pragma unroll
        for (int y = 0; y < STEP_ROWS; y += 2) {
            Window two;
            two.read({rows.row(y), rows.row(y + 1)}, lane, part);
            if (SUMS == 1 && y == 0 && first_row < 0) {  // above the strip's outputs: only read
                before = two;
                continue;
            }
            Responses first, second;
            clear(first), clear(second);
#pragma unroll
            for (int half = 0; half < PARTS; ++half)
#pragma unroll
                for (int p = 0; p < PRODUCTS; ++p) {
                    multiply(first[p][half % SUMS], before.word[p], filter.word[0][p][half]);
                    multiply(first[p][half % SUMS], two.word[p][0], filter.word[1][p][half][1]);
                }
            unsigned mark = 0;
            stage_row(staged.row(y), lane, part, first, filter, mark);
#pragma unroll
            for (int half = 0; half < PARTS; ++half)
#pragma unroll
                for (int p = 0; p < PRODUCTS; ++p) {
                    multiply(second[p][half % SUMS], two.word[p], filter.word[1][p][half]);
                    multiply(second[p][half % SUMS], before.word[p][1], filter.word[0][p][half][0]);
                }
            stage_row(staged.row(y + 1), lane, part, second, filter, mark);
#ifdef MENDS
            if (is_marked(mark)) block_is_spoilt = 1;
#endif
            before = two;
        }
    }
};
