// How rows of the picture come into the slots of sliding.cu, and staged rows go to the output, wherever rows start.
//
// A row is copied in whole chunks of 16 bytes, as they lie in memory: those that hold a byte of the row that the warp
// needs. In its slot each byte lies in the lines of shared memory as it does in those of the picture: else a line that
// arrives takes two writes there (measured: some 10 % of the time). So the samples start at a place of their own in every
// slot, the row's lead:
//
//     ALIGNED_IN 1     LEAD, the same for all, known to the compiler: lanes read up to 16 bytes at a time
//     ALIGNED_IN 0     0 to 127, from the row's address: lanes read words and shift them (Row)
//
// A row above or below the picture is zeros, or another row of it; what stands left and right is put into the slot after the
// row has arrived. Output rows are staged as they will lie in their chunks; samples beside whole chunks go one by one.
//
// Included by sliding.cu, after the constants that say how rows and steps lie.

// --- a row in its slot ------------------------------------------------------------------------------------------------
constexpr bool SHIFTS = !ALIGNED_IN && SAMPLE_BYTES < WORD;  // samples may start anywhere in a word

// A row for those who read windows: lane 0's window starts LEAD bytes and `shift` bits after `bytes`, a whole word.
struct Row {
    const unsigned char *bytes;
    unsigned shift;

    // The word that starts at `byte`, as if shift were 0.
    __device__ __forceinline__ unsigned word(int byte) const {
        const unsigned *const at = reinterpret_cast<const unsigned *>(bytes + byte);
        return SHIFTS ? __funnelshift_r(at[0], at[1], shift) : at[0];
    }
};

// The input rows of a step.
struct StepRows {
    unsigned char *slots;
    int position, height;    // the first of them, as a row of the padded picture less the padding; of the picture
    unsigned origin, pitch;  // where the span starts in row 0 of the picture, and from row to row, modulo 2^32

    // Bytes from the start of slot i to the span.
    __device__ __forceinline__ unsigned lead(int i) const {
        if (ALIGNED_IN) return LEAD;
        const int row = position + place_in_step(i);
        return (origin + (border == Border::zero ? row : source_index<border>(row, height)) * pitch) % LINE;
    }
    __device__ __forceinline__ Row row(int i) const {
        const unsigned char *const slot = slots + i * ROW_BYTES;
        return ALIGNED_IN ? Row{slot, 0} : Row{slot + lead(i) / WORD * WORD, lead(i) % WORD * 8};
    }
    // Where the span starts in row i.
    __device__ __forceinline__ INPUT *samples(int i) const {
        return reinterpret_cast<INPUT *>(slots + i * ROW_BYTES + lead(i));
    }
};

// --- from the picture into the slots ------------------------------------------------------------------------------------
// What a warp takes from every row of its strip: `columns` columns of the padded picture, of which bytes `from` to `to`
// lie in the row, and `before` and `after` samples left and right of it.
struct Span {
    int position;     // padded column of the first sample, less the padding; negative left of the picture
    long long first;  // byte of the row where the span starts; negative left of the picture
    int from, to;
    int before, after;
    int fetched;  // `to`; so far negative that no chunk is copied where nothing of the row is within the span
};
__device__ __forceinline__ Span span_of(int first_x, const Geometry &size) {
    Span span;
    const int columns = (min(size.out_width - first_x, WARP * THREAD_PIXELS) - 1) * STRIDE + KERNEL_SIZE;
    span.position = first_x * STRIDE - size.padding;
    span.first = static_cast<long long>(span.position) * PIXEL_BYTES;
    const long long row_bytes = static_cast<long long>(size.width) * PIXEL_BYTES, bytes = columns * PIXEL_BYTES;
    span.from = static_cast<int>(min(max(-span.first, 0ll), bytes));
    span.to = static_cast<int>(min(max(row_bytes - span.first, 0ll), bytes));
    span.before = span.from / SAMPLE_BYTES;
    span.after = columns * CHANNELS - span.to / SAMPLE_BYTES;
    span.fetched = span.from < span.to ? span.to : -CHUNK;
    return span;
}

// A warp starts the copies of the chunks that hold its span of a row, which starts lane·CHUNK before `start_and_lane`, into the
// slot at that shared address; those before the row's first sample as well: they lie in the row before.
constexpr int MOST_FETCHED = (WARP - 1) * THREAD_BYTES + WINDOW_PIXELS * PIXEL_BYTES + (ALIGNED_IN ? LEAD % CHUNK : CHUNK - 1);
__device__ __forceinline__ void fetch_inner_row(SharedAddress slot, const unsigned char *start_and_lane, int lane, const Span &span) {
    const unsigned long long address = reinterpret_cast<unsigned long long>(start_and_lane);
    const unsigned char *const from =
        ALIGNED_IN ? start_and_lane - LEAD % CHUNK : reinterpret_cast<const unsigned char *>(address & ~15ull);
    const unsigned low = static_cast<unsigned>(address) - lane * CHUNK;
    const SharedAddress to = slot + lane * CHUNK + (ALIGNED_IN ? LEAD / CHUNK * CHUNK : low % LINE / CHUNK * CHUNK);
    const int end = span.fetched + (ALIGNED_IN ? LEAD % CHUNK : static_cast<int>(low % CHUNK));
#pragma unroll
    for (int i = 0; i < MOST_FETCHED; i += WARP * CHUNK)
        if (i + lane * CHUNK < end) copy_chunk(to + i, from + i);
}

// The same for any row of the picture: only chunks that lie in the picture are copied, and the samples that no such chunk
// holds, up to fifteen bytes before the first and after the last, go one by one.
__device__ __forceinline__ void fetch_any_row(unsigned char *slot, int source, const INPUT *image, int lane, const Span &span,
                                              const Geometry &size) {
    const long long row_bytes = static_cast<long long>(size.width) * PIXEL_BYTES;
    const unsigned char *const picture = reinterpret_cast<const unsigned char *>(image);
    const unsigned char *const end = picture + size.height * row_bytes, *const start = picture + (source * row_bytes + span.first);
    const int lead = ALIGNED_IN ? LEAD : static_cast<int>(reinterpret_cast<unsigned long long>(start) % LINE);
    const int last = lead + span.fetched;
#pragma unroll 1
    for (int at = (lead + span.from) / CHUNK * CHUNK + lane * CHUNK; at < last; at += WARP * CHUNK) {
        const unsigned char *const from = start + (at - lead);
        if (ALIGNED_IN || (from >= picture && from + CHUNK <= end)) copy_chunk(shared_address(slot + at), from);
    }
    if (ALIGNED_IN) return;
    const bool is_first = lane < CHUNK;
    const unsigned char *const stop =
        is_first ? picture + static_cast<int>(-reinterpret_cast<unsigned long long>(picture) % CHUNK) : end;
    const unsigned char *const from =
        (is_first ? picture : end - static_cast<int>(reinterpret_cast<unsigned long long>(end) % CHUNK)) + lane % CHUNK * SAMPLE_BYTES;
    if (from < stop && from < end && from >= start + span.from && from < start + span.to)
        *reinterpret_cast<INPUT *>(slot + (from - start + lead)) = *reinterpret_cast<const INPUT *>(from);
}

__device__ __forceinline__ void fill_zeros(unsigned char *from, int bytes, int lane) {
#pragma unroll 1
    for (int at = lane * CHUNK; at < bytes; at += WARP * CHUNK) *reinterpret_cast<uint4 *>(from + at) = make_uint4(0, 0, 0, 0);
}

// Where a sample outside the picture stands in a span, and where its value does: there too, or nowhere (a zero), or far away
// in the row. In samples from the span's start.
struct BorderSample {
    int to, from;
};
constexpr int NOWHERE = -1, FAR = -2;

// Sample i of those before and after the picture.
__device__ __forceinline__ BorderSample border_sample(int i, const Span &span, int width) {
    if (i >= span.before + span.after) return {NOWHERE, NOWHERE};
    const int inside = (span.to - span.from) / SAMPLE_BYTES;
    const int to = i < span.before ? i : i + inside;
    const int column = source_index<border>(span.position + to / CHANNELS, width);
    if (column == OUTSIDE) return {to, NOWHERE};
    const long long from = static_cast<long long>(column - span.position) * CHANNELS + to % CHANNELS;
    return {to, from >= span.before && from < span.before + inside ? static_cast<int>(from) : FAR};
}

// A warp puts them into a row that has arrived, row `position` of the padded picture: each lane its own, or, where there are
// more than lanes or one is far away, whichever there are.
__device__ __noinline__ void patch_widely(INPUT *samples, int position, const INPUT *image, int lane, const Span &span,
                                          const Geometry &size) {
    const int source = source_index<border>(position, size.height);
    if (source == OUTSIDE) return;  // all are zeros already
    for (int i = lane; i < span.before + span.after; i += WARP) {
        const BorderSample sample = border_sample(i, span, size.width);
        const int column = source_index<border>(span.position + sample.to / CHANNELS, size.width);
        const long long far = (static_cast<long long>(source) * size.width + column) * CHANNELS + sample.to % CHANNELS;
        samples[sample.to] = sample.from == NOWHERE ? INPUT() : sample.from == FAR ? image[far] : samples[sample.from];
    }
}
__device__ __forceinline__ void patch(INPUT *samples, const BorderSample &own) {
    if (own.to != NOWHERE) samples[own.to] = own.from == NOWHERE ? INPUT() : samples[own.from];
}

// --- from shared memory to the output ---------------------------------------------------------------------------------
// The places of a step's output rows in the stage. A row lies there as it will in the chunks of the output, but starts with
// a whole word.
struct StagedRows {
    unsigned char *stage;
    unsigned first, pitch;  // of the output, the address of the first row's first byte and from row to row, modulo 2^32

    __device__ __forceinline__ unsigned char *chunks(int y) const { return stage + y * STAGE_ROW_BYTES; }
    __device__ __forceinline__ unsigned char *row(int y) const {
        return chunks(y) + (ALIGNED_OUT ? 0 : (first + y * pitch) % CHUNK / WORD * WORD);
    }
};

// A warp writes a staged row of `bytes` bytes: what is whole chunks of the output, and the samples before and after them,
// half a warp each. `stage` is where the row's chunks start.
__device__ __forceinline__ void write_row(unsigned char *to, const unsigned char *stage, unsigned bytes, unsigned lane) {
    const unsigned long long address = reinterpret_cast<unsigned long long>(to);
    const unsigned lead = ALIGNED_OUT ? 0 : static_cast<unsigned>(address) % CHUNK;
    const unsigned skew = lead % WORD;  // bytes by which samples lie further on in the words of the output
    const unsigned first = (lead + CHUNK - 1) / CHUNK * CHUNK, end = (lead + bytes) / CHUNK * CHUNK;  // of whole chunks
    unsigned char *const chunks = (ALIGNED_OUT ? to : reinterpret_cast<unsigned char *>(address & ~15ull)) + (first + lane * CHUNK);
    const unsigned char *const from = stage + first + lane * CHUNK;
#pragma unroll
    for (unsigned i = 0; i < OUT_ROW_BYTES; i += WARP * CHUNK) {
        if (first + i + lane * CHUNK >= end) continue;
        uint4 chunk = *reinterpret_cast<const uint4 *>(from + i);
        if (!ALIGNED_OUT && sizeof(OUTPUT) < WORD) {
            const unsigned before = reinterpret_cast<const unsigned *>(from + i)[-1], shift = (WORD - skew) * 8;
            chunk = make_uint4(__funnelshift_rc(before, chunk.x, shift), __funnelshift_rc(chunk.x, chunk.y, shift),
                               __funnelshift_rc(chunk.y, chunk.z, shift), __funnelshift_rc(chunk.z, chunk.w, shift));
        }
        __stcs(reinterpret_cast<uint4 *>(chunks + i), chunk);
    }
    if (ALIGNED_OUT) return;
    const bool is_first = lane < CHUNK;
    const unsigned at = lane % CHUNK * sizeof(OUTPUT) + (is_first ? 0 : max(end, first) - lead);
    if (at < (is_first ? min(first - lead, bytes) : bytes))
        *reinterpret_cast<OUTPUT *>(to + at) = *reinterpret_cast<const OUTPUT *>(stage + lead - skew + at);
}
