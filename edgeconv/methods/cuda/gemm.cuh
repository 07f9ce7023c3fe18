// The GEMM behind im2col: weights (directions · out channels × 27) by columns (27 × pixels), then join and store.
//
// The matrix is so small that each thread holds all its rows: a tile of PIXELS columns by RESPONSES rows in registers,
// 27 steps deep, with the weights as constant operands of the multiply-adds. So every column value is read once, 16
// bytes of it at a time (4 float32), and the GEMM is bound by reading the columns. With groups (IN_GROUP 1) an output
// channel meets only the 9 rows of its channel; the others are not multiplied.
//
// Macro that changes speed alone:
//     PIXELS_PER_THREAD    4; 2 where the accumulators of 24 responses need the room; 1 where a picture is so small
//                          that the waits of one thread count, or where sums are float64

static_assert(IN_GROUP == CHANNELS || OUT_CHANNELS == CHANNELS, "channels filtered separately: an output of each");
constexpr int PIXELS = PIXELS_PER_THREAD;  // columns that a thread holds
constexpr int WARP_PIXELS = WARP * PIXELS;

struct alignas(PIXELS * sizeof(COLUMN)) ColumnRun {
    COLUMN sample[PIXELS];
};

// One warp multiplies the WARP_PIXELS columns from place `first` on and stores the first `count` pixels at `out`.
// Columns are aligned to PIXELS samples and may be read past `count`. `values` is shared memory of this warp alone.
__device__ __forceinline__ void multiply_columns(const COLUMN *columns, long long leading, int first, int count,
                                                 OUTPUT *out, const Weights &weights, Real *values) {
    const int lane = threadIdx.x % WARP;
    Sum response[DIRECTIONS][OUT_CHANNELS][PIXELS] = {};
    const COLUMN *mine = columns + first + lane * PIXELS;
#ifdef WIDE_SUMS
#pragma unroll 1  // unrolled, all weights would be kept as float64, in more registers than there are
#else
#pragma unroll
#endif
    for (int i = 0; i < CHANNELS; ++i) {
        ColumnRun run[TAPS];  // nine loads on their way before the first is used
#pragma unroll
        for (int tap = 0; tap < TAPS; ++tap)
            run[tap] = *reinterpret_cast<const ColumnRun *>(mine + (i * TAPS + tap) * leading);
#pragma unroll
        for (int tap = 0; tap < TAPS; ++tap)
#pragma unroll
            for (int p = 0; p < PIXELS; ++p) {
                const Real sample = to_real(run[tap].sample[p]);
#pragma unroll
                for (int d = 0; d < DIRECTIONS; ++d)
#pragma unroll
                    for (int o = 0; o < OUT_CHANNELS; ++o)
                        if (meets(o, i))
                            response[d][o][p] = multiply_add(
                                weights.value[d][o][IN_GROUP == CHANNELS ? i : 0][tap / KERNEL_SIZE][tap % KERNEL_SIZE],
                                sample, response[d][o][p]);
            }
    }
    __syncwarp();  // the run before has been stored
#pragma unroll
    for (int p = 0; p < PIXELS; ++p)
#pragma unroll
        for (int o = 0; o < OUT_CHANNELS; ++o)
            values[(lane * PIXELS + p) * OUT_CHANNELS + o] = join([&](int d) { return response[d][o][p]; });
    __syncwarp();
    store_run<WARP_PIXELS * OUT_CHANNELS>(values, out, min(count, WARP_PIXELS) * OUT_CHANNELS);
}
