// How rows of the picture come into the slots of sliding.cu, and staged rows go to the output, wherever rows start.
//
// A row is copied in whole chunks of 16 bytes, as they lie in memory: those that hold a byte of the row that the warp
// needs. In its slot each byte lies in the lines of shared memory as it does in those of the picture: else a line that
// arrives takes two writes there (measured: some 10 % of the time). So the samples start at a place of their own in every
// slot, the row's lead:
//
//     ALIGNED_IN 1     LEAD, the same for all, known to the compiler: lanes read up to 16 bytes at a time
//     ALIGNED_IN 0     0 to 127, kept beside the slots: lanes read words and shift them (Row)
//
// A chunk that holds nothing of the picture becomes zeros. What else stands outside the picture is put into the slot after
// the row has arrived, from its other samples. Output rows too are staged as they will lie in their chunks, and leave as
// whole ones; the samples before the first and after the last of them go one by one.
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
    const unsigned *leads;

    __device__ __forceinline__ Row row(int i) const {
        const unsigned char *const slot = slots + i * ROW_BYTES;
        if (ALIGNED_IN) return {slot, 0};
        const unsigned lead = leads[i];
        return {slot + lead / WORD * WORD, lead % WORD * 8};
    }
    // Where the span starts in row i.
    __device__ __forceinline__ INPUT *samples(int i) const {
        return reinterpret_cast<INPUT *>(slots + i * ROW_BYTES + (ALIGNED_IN ? LEAD : leads[i]));
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
    int rows_at_ends;  // of the picture, first and last: whose chunks may reach outside it
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
    span.rows_at_ends = ALIGNED_IN ? 0 : row_bytes < CHUNK ? CHUNK : 1;
    return span;
}

// Where a zero border and rows on whole chunks meet, no chunk is partly outside.
constexpr bool PATCHES = !(ALIGNED_IN && border == Border::zero);

// A row whose chunks may reach outside the picture, sample by sample. `start` is where the span starts.
__device__ __forceinline__ void copy_samples(unsigned char *slot, const unsigned char *start, int lead, int lane, int from, int to) {
#pragma unroll 1
    for (int at = from + lane * SAMPLE_BYTES; at < to; at += WARP * SAMPLE_BYTES)
        *reinterpret_cast<INPUT *>(slot + lead + at) = *reinterpret_cast<const INPUT *>(start + at);
}

// A warp starts the copy of row `source` of the picture, or puts zeros there.
__device__ __forceinline__ void fetch_row(unsigned char *slot, unsigned *lead_of_row, int source, const INPUT *image, int lane,
                                          const Span &span, const Geometry &size) {
    const long long row_bytes = static_cast<long long>(size.width) * PIXEL_BYTES;
    const unsigned char *const start = reinterpret_cast<const unsigned char *>(image) + (source * row_bytes + span.first);
    const int lead = ALIGNED_IN ? LEAD : static_cast<int>(reinterpret_cast<unsigned long long>(start) % LINE);
    if (!ALIGNED_IN && lane == 0) *lead_of_row = lead;
    const int begin = lead + span.from, end = source == OUTSIDE ? 0 : lead + span.to;
    if (!ALIGNED_IN && source != OUTSIDE && (source < span.rows_at_ends || source >= size.height - span.rows_at_ends)) {
        copy_samples(slot, start, lead, lane, span.from, span.to);
        return;
    }
    const int first = lead / CHUNK * CHUNK + lane * CHUNK;
#pragma unroll
    for (int i = 0; i < ROW_BYTES - (ALIGNED_IN ? LEAD / CHUNK * CHUNK : 0); i += WARP * CHUNK) {
        const int at = first + i;
        if (at < ROW_BYTES) copy_chunk(slot + at, start - lead + at, at + CHUNK > begin && at < end);
    }
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

    __device__ __forceinline__ unsigned char *row(int y) const {
        return stage + y * STAGE_ROW_BYTES + (ALIGNED_OUT ? 0 : (first + y * pitch) % CHUNK / WORD * WORD);
    }
};

// A warp writes a staged row of `bytes` bytes: what is whole chunks of the output, and the samples before and after them,
// half a warp each.
__device__ __forceinline__ void write_row(unsigned char *to, const unsigned char *staged, int bytes, int lane) {
    const int lead = ALIGNED_OUT ? 0 : static_cast<int>(reinterpret_cast<unsigned long long>(to) % CHUNK);
    const unsigned skew = lead % WORD;  // bytes by which samples lie further on in the words of the output
    const int begin = min(-lead & (CHUNK - 1), bytes), end = begin + (bytes - begin) / CHUNK * CHUNK;
#pragma unroll
    for (int i = 0; i < OUT_ROW_BYTES; i += WARP * CHUNK) {
        const int at = begin + i + lane * CHUNK;
        if (at >= end) continue;
        const unsigned char *const from = staged + at + skew;  // a whole chunk
        uint4 chunk = *reinterpret_cast<const uint4 *>(from);
        if (!ALIGNED_OUT && sizeof(OUTPUT) < WORD) {
            const unsigned before = skew == 0 ? 0 : reinterpret_cast<const unsigned *>(from)[-1], shift = (WORD - skew) * 8;
            chunk = make_uint4(__funnelshift_rc(before, chunk.x, shift), __funnelshift_rc(chunk.x, chunk.y, shift),
                               __funnelshift_rc(chunk.y, chunk.z, shift), __funnelshift_rc(chunk.z, chunk.w, shift));
        }
        __stcs(reinterpret_cast<uint4 *>(to + at), chunk);
    }
    if (ALIGNED_OUT) return;
    const bool is_first = lane < CHUNK;
    const int at = lane % CHUNK * static_cast<int>(sizeof(OUTPUT)) + (is_first ? 0 : end);
    if (at < (is_first ? begin : bytes))
        *reinterpret_cast<OUTPUT *>(to + at) = *reinterpret_cast<const OUTPUT *>(staged + at);
}
