// How rows of the picture come into the ring of sliding.cu, and staged rows go to the output, wherever rows start.
//
// A row is copied in whole chunks of 16 bytes, as they lie in memory: those that hold a byte of the row that the block
// needs. In its slot of the ring each byte lies in the lines of shared memory as it does in those of the picture (a copy
// whose two sides lie differently is cut into single sectors, three times as many requests: measured). So the samples
// start at a place of their own in every slot, the row's lead:
//
//     ALIGNED_IN 1     LEAD, the same for all, known to the compiler: threads read up to 16 bytes at a time
//     ALIGNED_IN 0     0 to 127, kept beside the slot: threads read words and shift them (Row)
//
// What stands outside the picture is put into the slot: with a zero border and ALIGNED_IN once, as no copy reaches there;
// else after the row has arrived, from its other samples. Output rows too are staged as they will lie in their lines, and
// leave as whole chunks; the samples before the first and after the last of them go one by one.
//
// Included by sliding.cu, after the constants that say how rows and steps lie.

// --- a row in its slot ------------------------------------------------------------------------------------------------
constexpr bool SHIFTS = !ALIGNED_IN && SAMPLE_BYTES < WORD;  // samples may start anywhere in a word

// A row for those who read windows: thread 0's window starts LEAD bytes and `shift` bits after `bytes`, a whole word.
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
    const unsigned char *slots;
    const unsigned *leads;

    __device__ __forceinline__ Row row(int i) const {
        const unsigned char *const slot = slots + i * ROW_BYTES;
        if (ALIGNED_IN) return {slot, 0};
        const unsigned lead = leads[i];
        return {slot + lead / WORD * WORD, lead % WORD * 8};
    }
};

// --- from the picture into the ring -----------------------------------------------------------------------------------
// What a block takes from every row of its strip: `columns` columns of the padded picture, of which bytes `from` to `to`
// lie in the row, and `before` and `after` samples left and right of it. Found once, and kept in shared memory: registers
// are for the sums. With ALIGNED_IN little of it is wanted for each row, and uniform registers hold that: `usual`.
struct Span {
    int position;     // padded column of the first sample, less the padding; negative left of the picture
    int columns;
    long long first;  // byte of the row where the span starts; negative left of the picture
    unsigned from, to;
    int before, after;
    unsigned inner_rows;  // of the picture, from row FIRST_INNER on: those whose chunks lie inside the picture for certain
};
constexpr int FIRST_INNER = ALIGNED_IN ? 0 : 1;

__device__ __forceinline__ Span span_of(int first_x, const Geometry &size) {
    Span span;
    const int outputs = min(size.out_width - first_x, THREADS * THREAD_PIXELS);
    span.columns = (outputs - 1) * STRIDE + KERNEL_SIZE;
    span.position = first_x * STRIDE - size.padding;
    span.first = static_cast<long long>(span.position) * PIXEL_BYTES;
    const long long row_bytes = static_cast<long long>(size.width) * PIXEL_BYTES, bytes = span.columns * PIXEL_BYTES;
    span.from = static_cast<unsigned>(min(max(-span.first, 0ll), bytes));
    span.to = static_cast<unsigned>(min(max(row_bytes - span.first, 0ll), bytes));
    span.before = static_cast<int>(span.from) / SAMPLE_BYTES;
    span.after = span.columns * CHANNELS - static_cast<int>(span.to) / SAMPLE_BYTES;
    const bool has_chunks = span.from < span.to && row_bytes >= CHUNK;
    span.inner_rows = has_chunks ? static_cast<unsigned>(max(size.height - 2 * FIRST_INNER, 0)) : 0;
    return span;
}

// Whole chunks outside the picture are never copied, and with ALIGNED_IN no chunk is partly outside: zeros stay.
constexpr bool BORDER_STAYS = ALIGNED_IN && border == Border::zero;

// What this thread put into shared memory comes before copies that start later.
__device__ __forceinline__ void fence_before_copies() {
#ifdef BULK_READS
    fence_before_bulk();
#endif
}

__device__ __forceinline__ void fill_zeros(unsigned char *from, int bytes, int thread, int threads) {
#pragma unroll 1
    for (int at = thread * CHUNK; at < bytes; at += threads * CHUNK)
        *reinterpret_cast<uint4 *>(from + at) = make_uint4(0, 0, 0, 0);
}

// The chunks of a row that are copied: bytes `begin` to `end` of its slot, from `from` on.
struct Chunks {
    unsigned lead, begin, end;
    const unsigned char *from;
};

// Those that hold what the block needs of row `source` of the picture.
__device__ __forceinline__ Chunks chunks_of(const INPUT *image, int source, const Span &span, const Geometry &size) {
    const long long row_bytes = static_cast<long long>(size.width) * PIXEL_BYTES;
    const unsigned char *const start = reinterpret_cast<const unsigned char *>(image) + (source * row_bytes + span.first);
    const unsigned lead = ALIGNED_IN ? LEAD : static_cast<unsigned>(reinterpret_cast<unsigned long long>(start)) % LINE;
    const unsigned begin = (lead + span.from) / CHUNK * CHUNK, end = (lead + span.to + CHUNK - 1) / CHUNK * CHUNK;
    return {lead, begin, end, start - lead + begin};
}

// The samples at bytes `begin` to `end` of a slot; `threads` threads of which this is `thread` copy them.
__device__ __forceinline__ void copy_samples(unsigned char *slot, const unsigned char *from, unsigned begin, unsigned end,
                                             int thread, int threads) {
    for (unsigned at = begin + thread * SAMPLE_BYTES; at < end; at += threads * SAMPLE_BYTES)
        *reinterpret_cast<INPUT *>(slot + at) = *reinterpret_cast<const INPUT *>(from + at);
}

// The chunks of a row that is not an inner one. `threads` threads of which this is `thread` fill its slot with zeros where
// none of the picture stands there, and copy the samples of a chunk that reaches beyond the picture's first or last sample.
__device__ __noinline__ Chunks special_row(unsigned char *slot, int position, int end, const INPUT *image, const Span &span,
                                           const Geometry &size, int thread, int threads) {
    const int source = position < end ? source_index<border>(position, size.height) : OUTSIDE;
    if (source == OUTSIDE) {
        if (position < end) fill_zeros(slot, ROW_BYTES, thread, threads);
        fence_before_copies();
        return {LEAD, 0, 0, nullptr};
    }
    Chunks chunks = chunks_of(image, source, span, size);
    if (span.from == span.to) chunks.end = chunks.begin;
    if (!ALIGNED_IN && span.from < span.to) {
        const unsigned char *const picture = reinterpret_cast<const unsigned char *>(image);
        const unsigned char *const slot_in_picture = chunks.from - chunks.begin;
        const unsigned from = chunks.lead + span.from, to = chunks.lead + span.to;
        if (chunks.from < picture) chunks.begin += CHUNK, chunks.from += CHUNK;
        if (slot_in_picture + chunks.end > picture + static_cast<long long>(size.height) * size.width * PIXEL_BYTES)
            chunks.end = max(chunks.end - CHUNK, chunks.begin);
        copy_samples(slot, slot_in_picture, from, min(chunks.begin, to), thread, threads);
        copy_samples(slot, slot_in_picture, max(chunks.end, from), to, thread, threads);
    }
    return chunks;
}

// The chunks of row `position` of the padded picture; what no chunk brings, one warp of the block or all of it put there.
__device__ __forceinline__ Chunks find_row(unsigned char *slot, int position, int end, const INPUT *image, const Span &usual,
                                           const Span &span, const Geometry &size, int thread, int threads) {
    if (position < end && static_cast<unsigned>(position - FIRST_INNER) < usual.inner_rows)
        return chunks_of(image, position, usual, size);
    return special_row(slot, position, end, image, span, size, thread, threads);
}

#ifdef BULK_READS
// One warp starts the copy of row `position` of the padded picture; `arrival` counts its bytes.
__device__ __forceinline__ void fetch_row(unsigned char *slot, unsigned *lead, int position, int end, const INPUT *image,
                                          int thread, const Span &usual, const Span &span, const Geometry &size,
                                          Barrier *arrival) {
    const Chunks chunks = find_row(slot, position, end, image, usual, span, size, thread % WARP, WARP);
    if (elected()) {
        const unsigned bytes = chunks.end - chunks.begin;
        if (!ALIGNED_IN) *lead = chunks.lead;
        expect_bytes(arrival, bytes);
        if (bytes > 0) start_bulk_read(slot + chunks.begin, chunks.from, bytes, arrival);
    }
}
#else
// All threads of the block start the copy of row `position` of the padded picture.
__device__ __forceinline__ void fetch_row(unsigned char *slot, unsigned *lead, int position, int end, const INPUT *image,
                                          int thread, const Span &usual, const Span &span, const Geometry &size) {
    const Chunks chunks = find_row(slot, position, end, image, usual, span, size, thread, THREADS);
    if (!ALIGNED_IN && thread == 0) *lead = chunks.lead;
#pragma unroll
    for (unsigned i = 0; i < ROW_BYTES; i += THREADS * CHUNK) {
        const unsigned at = i + thread * CHUNK;
        if (at < chunks.end - chunks.begin) __pipeline_memcpy_async(slot + chunks.begin + at, chunks.from + at, CHUNK);
    }
}
#endif

// Where the border's sample `i` of a span stands, in samples from the span's start, and where its value does: there
// too, or nowhere (a zero), or far away in the row.
struct BorderSample {
    int to, from;
};
constexpr int NOWHERE = -1, FAR = -2;

__device__ __forceinline__ BorderSample border_sample(int i, const Span &span, int width) {
    const int inside = span.columns * CHANNELS - span.before - span.after;
    const int to = i < span.before ? i : i + inside;
    const int column = source_index<border>(span.position + to / CHANNELS, width);
    if (column == OUTSIDE) return {to, NOWHERE};
    const long long from = static_cast<long long>(column - span.position) * CHANNELS + to % CHANNELS;
    return {to, from >= span.before && from < span.before + inside ? static_cast<int>(from) : FAR};
}

// A warp puts the border's samples of row `position` of the padded picture into its slot, for a padding of many samples;
// `samples` is where the span starts there.
__device__ __noinline__ void fill_wide_border(INPUT *samples, const INPUT *image, int position, int lane, const Span &span,
                                              const Geometry &size) {
    for (int i = lane; i < span.before + span.after; i += WARP) {
        const BorderSample sample = border_sample(i, span, size.width);
        INPUT value = INPUT();
        if (sample.from >= 0) {
            value = samples[sample.from];
        } else if (sample.from == FAR) {
            const int row = source_index<border>(position, size.height);
            const int column = source_index<border>(span.position + sample.to / CHANNELS, size.width);
            value = image[(static_cast<long long>(row) * size.width + column) * CHANNELS + sample.to % CHANNELS];
        }
        samples[sample.to] = value;
    }
}

// The same for a border of at most a sample per lane, none of them far: `own` is the lane's, its `to` NOWHERE for none.
// A warp finds them once, and whether there are more.
__device__ __noinline__ void find_border(BorderSample *samples, bool *more, int lane, const Span &span, int width) {
    const int count = span.before + span.after;
    if (lane == 0) *more = count > WARP;
    __syncwarp();
    samples[lane] = lane < count ? border_sample(lane, span, width) : BorderSample{NOWHERE, NOWHERE};
    if (samples[lane].from == FAR) *more = true;
}
__device__ __forceinline__ void fill_border(INPUT *samples, const BorderSample &own) {
    if (own.to != NOWHERE) samples[own.to] = own.from == NOWHERE ? INPUT() : samples[own.from];
}

// --- from shared memory to the output ---------------------------------------------------------------------------------
// The places of a step's output rows in the stage. A row lies there as it will in the lines of the output.
struct StagedRows {
    unsigned char *stage;
    unsigned first, pitch;  // of the output, the address of the first row's first byte and from row to row, modulo 2^32

    __device__ __forceinline__ unsigned char *row(int y) const {
        return stage + y * STAGE_ROW_BYTES + (ALIGNED_OUT ? 0 : (first + y * pitch) % CHUNK);
    }
};

// How far into a word a staged row starts, in bytes; and where the words lie that its warps share, behind the row.
__device__ __forceinline__ unsigned skew_of(const unsigned char *staged) {
    return static_cast<unsigned>(reinterpret_cast<unsigned long long>(staged)) % WORD;
}
__device__ __forceinline__ Joint *joints_of(unsigned char *staged) {
    const unsigned lead = static_cast<unsigned>(reinterpret_cast<unsigned long long>(staged)) % CHUNK;
    return reinterpret_cast<Joint *>(staged - lead + OUT_ROW_BYTES + CHUNK);
}

// One warp puts the words of a staged row together that two warps share, and the last one.
__device__ __forceinline__ void join_warps(unsigned char *staged, int lane) {
    if (lane > 0 && lane < JOINTS) {
        const Joint joint = joints_of(staged)[lane];
        const unsigned skew = skew_of(staged);
        *reinterpret_cast<unsigned *>(staged - skew + lane * WARP * THREAD_OUT_BYTES) =
            __funnelshift_rc(joint.left, joint.right, (WORD - skew) * 8);
    }
}

// What of a row of `bytes` bytes that goes to `to` is whole chunks there.
struct WholeChunks {
    unsigned begin, end;
    __device__ __forceinline__ WholeChunks(const unsigned char *to, unsigned bytes) : begin(0), end(bytes) {
        if (ALIGNED_OUT) return;
        const unsigned address = static_cast<unsigned>(reinterpret_cast<unsigned long long>(to));
        begin = min(-address % CHUNK, bytes);
        end = max(bytes - min((address + bytes) % CHUNK, bytes), begin);
    }
};

// A warp writes the samples before and after them, half a warp each.
__device__ __forceinline__ void write_ends(unsigned char *to, const unsigned char *staged, const WholeChunks &whole,
                                           unsigned bytes, unsigned lane) {
    const bool first = lane < CHUNK;
    const unsigned at = lane % CHUNK * sizeof(OUTPUT) + (first ? 0 : whole.end);
    if (at < (first ? whole.begin : bytes))
        *reinterpret_cast<OUTPUT *>(to + at) = *reinterpret_cast<const OUTPUT *>(staged + at);
}

#ifdef BULK_WRITES
// One warp starts the copy of a staged row of `bytes` bytes.
__device__ __forceinline__ void write_row(unsigned char *to, unsigned char *staged, unsigned bytes, int thread) {
    const WholeChunks whole(to, bytes);
    if (SHARES_WORDS) {
        join_warps(staged, thread % WARP);
        fence_before_bulk();
        __syncwarp();
    }
    if (elected() && whole.begin < whole.end) start_bulk_write(to + whole.begin, staged + whole.begin, whole.end - whole.begin);
    if (!ALIGNED_OUT) write_ends(to, staged, whole, bytes, thread % WARP);
}
#else
// All threads of the block write a staged row; neighbouring threads write neighbouring chunks.
__device__ __forceinline__ void write_row(unsigned char *to, const unsigned char *staged, unsigned bytes, int thread) {
    const WholeChunks whole(to, bytes);
#pragma unroll
    for (unsigned i = 0; i < OUT_ROW_BYTES; i += THREADS * CHUNK) {
        const unsigned at = whole.begin + i + thread * CHUNK;
        if (at < whole.end) __stcs(reinterpret_cast<uint4 *>(to + at), *reinterpret_cast<const uint4 *>(staged + at));
    }
    if (!ALIGNED_OUT && thread < WARP) write_ends(to, staged, whole, bytes, thread);
}
#endif
