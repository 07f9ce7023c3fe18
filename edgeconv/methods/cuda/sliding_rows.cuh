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
// else after the row has arrived, from its other samples. Output rows leave as whole chunks of 16 bytes of the output,
// and the samples before the first and after the last of them one by one.
//
// Included by sliding.cu. Not for itself: names of sliding.cu are used throughout.

// --- a row in its slot ------------------------------------------------------------------------------------------------
#ifdef TRY_NO_SHIFT
constexpr bool SHIFTS = false;
#else
constexpr bool SHIFTS = !ALIGNED_IN && SAMPLE_BYTES < WORD;
#endif
  // samples may start anywhere in a word

// A row for those who read windows: thread 0's window starts LEAD bytes and `shift` bits after `bytes`, a whole word.
struct Row {
    const unsigned char *bytes;
    unsigned shift;
    bool odd;

    // The word that starts at `byte`, as if shift were 0.
    __device__ __forceinline__ unsigned word(int byte) const {
        const unsigned *const at = reinterpret_cast<const unsigned *>(bytes + byte);
        return SHIFTS ? __funnelshift_r(at[0], at[1], shift) : at[0];
    }
};

// The input rows of a step.
struct StepRows {
    const unsigned char *slots;
    const int *leads;

    __device__ __forceinline__ Row row(int i) const {
        const unsigned char *const slot = slots + i * ROW_BYTES;
        if (ALIGNED_IN) return {slot, 0, false};
        const int lead = leads[i];
        return {slot + lead / WORD * WORD, static_cast<unsigned>(lead) % WORD * 8, (lead & WORD) != 0};
    }
};

// --- from the picture into the ring -----------------------------------------------------------------------------------
// What a block takes from every row of its strip: `columns` columns of the padded picture, of which bytes `from` to `to`
// lie in the row, and `before` and `after` samples left and right of it. Found once, and kept in shared memory:
// registers are for the sums.
struct Span {
    int position;     // padded column of the first sample, less the padding; negative left of the picture
    int columns;
    long long first;  // byte of the row where the span starts; negative left of the picture
    int from, to;
    int before, after;

};
__device__ __forceinline__ Span span_of(int first_x, const Geometry &size) {
    Span span;
    const int outputs = min(size.out_width - first_x, THREADS * THREAD_PIXELS);
    span.columns = (outputs - 1) * STRIDE + KERNEL_SIZE;
    span.position = first_x * STRIDE - size.padding;
    span.first = static_cast<long long>(span.position) * PIXEL_BYTES;
    const long long bytes = span.columns * PIXEL_BYTES;
    const long long until = static_cast<long long>(size.width) * PIXEL_BYTES - span.first;
    span.from = static_cast<int>(min(max(-span.first, 0ll), bytes));
    span.to = static_cast<int>(min(max(until, 0ll), bytes));
    span.before = span.from / SAMPLE_BYTES;
    span.after = span.columns * CHANNELS - span.to / SAMPLE_BYTES;
    return span;
}

// Whole chunks outside the picture are never copied, and with ALIGNED_IN no chunk is partly outside: zeros stay.
constexpr bool BORDER_STAYS = ALIGNED_IN && border == Border::zero;

__device__ __forceinline__ void fill_zeros(unsigned char *from, int bytes, int thread, int threads) {
#pragma unroll 1
    for (int at = thread * CHUNK; at < bytes; at += threads * CHUNK)
        *reinterpret_cast<uint4 *>(from + at) = make_uint4(0, 0, 0, 0);
}

__device__ __noinline__ void copy_samples(unsigned char *to, const unsigned char *from, int bytes, int thread, int threads) {
    for (int i = thread; i * SAMPLE_BYTES < bytes; i += threads)
        reinterpret_cast<INPUT *>(to)[i] = reinterpret_cast<const INPUT *>(from)[i];
}

// The chunks of a row that are copied: bytes `begin` to `end` of its slot, from `from` on.
struct Chunks {
    int lead, begin, end;
    const unsigned char *from;
};

// Find them for row `source` of the picture. A chunk that reaches beyond the picture's first or last sample is left out,
// and its samples are copied here by `threads` threads of which this is `thread`.
__device__ __forceinline__ Chunks chunks_of(unsigned char *slot, const INPUT *image, int source, const Span &span,
                                            const Geometry &size, int thread, int threads) {
    const unsigned char *const picture = reinterpret_cast<const unsigned char *>(image);
    const long long row_bytes = static_cast<long long>(size.width) * PIXEL_BYTES;
    const unsigned char *const start = picture + source * row_bytes + span.first;  // the slot has it at `lead`
    const int lead = ALIGNED_IN ? LEAD : static_cast<int>(reinterpret_cast<unsigned long long>(start) % LINE);
    int begin = (lead + span.from) / CHUNK * CHUNK, end = round_up(lead + span.to, CHUNK);
    const unsigned char *const slot_in_picture = start - lead;
    if (!ALIGNED_IN) {
        if (slot_in_picture + begin < picture) {
            begin += CHUNK;
            copy_samples(slot + lead + span.from, start + span.from, min(begin - lead, span.to) - span.from, thread, threads);
        }
        if (slot_in_picture + end > picture + size.height * row_bytes) {
            end -= CHUNK;
            const int rest = max(end - lead, span.from);
            copy_samples(slot + lead + rest, start + rest, span.to - rest, thread, threads);
        }
    }
    if (span.from >= span.to) end = begin;
    return {lead, begin, max(begin, end), slot_in_picture + begin};
}

// What this thread put into shared memory comes before copies that start later.
__device__ __forceinline__ void fence_before_copies() {
#ifdef BULK_READS
    fence_before_bulk();
#endif
}

#ifdef BULK_READS
// One warp starts the copy of row `position` of the padded picture; `arrival` counts its bytes.
__device__ __forceinline__ void fetch_row(unsigned char *slot, int *lead, int position, int end, const INPUT *image,
                                          int thread, const Span &span, const Geometry &size, Barrier *arrival) {
    const int source = position < end ? source_index<border>(position, size.height) : OUTSIDE;
    if (source == OUTSIDE) {
        if (position < end) fill_zeros(slot, ROW_BYTES, thread % WARP, WARP);
        fence_before_bulk();
        if (elected()) {
            *lead = LEAD;
            expect_bytes(arrival, 0);
        }
        return;
    }
    const Chunks chunks = chunks_of(slot, image, source, span, size, thread % WARP, WARP);
    if (elected()) {
        const int bytes = chunks.end - chunks.begin;
        if (!ALIGNED_IN) *lead = chunks.lead;
        expect_bytes(arrival, bytes);
        if (bytes > 0) start_bulk_read(slot + chunks.begin, chunks.from, bytes, arrival);
    }
}
#else
// All threads of the block start the copy of row `position` of the padded picture.
__device__ __forceinline__ void fetch_row(unsigned char *slot, int *lead, int position, int end, const INPUT *image,
                                          int thread, const Span &span, const Geometry &size) {
    const int source = position < end ? source_index<border>(position, size.height) : OUTSIDE;
    if (source == OUTSIDE) {
        if (position < end) fill_zeros(slot, ROW_BYTES, thread, THREADS);
        if (thread == 0) *lead = LEAD;
        return;
    }
    const Chunks chunks = chunks_of(slot, image, source, span, size, thread, THREADS);
    if (!ALIGNED_IN && thread == 0) *lead = chunks.lead;
#pragma unroll
    for (int i = 0; i < ROW_BYTES; i += THREADS * CHUNK) {
        const int at = i + thread * CHUNK;
        if (at < chunks.end - chunks.begin) __pipeline_memcpy_async(slot + chunks.begin + at, chunks.from + at, CHUNK);
    }
}
#endif

// A warp puts the border's samples of row `position` of the padded picture into its slot; `samples` is where the span
// starts there. They come from the slot too, but for those of a padding so wide that they lie outside the span.
__device__ __noinline__ void fill_border(INPUT *samples, const INPUT *image, int position, int lane, const Span &span, const Geometry &size) {
    const int inside = span.columns * CHANNELS - span.before - span.after;
    for (int i = lane; i < span.before + span.after; i += WARP) {
        const int sample = i < span.before ? i : i + inside;
        const int column = source_index<border>(span.position + sample / CHANNELS, size.width);
        INPUT value = INPUT();
        if (column != OUTSIDE) {
            const long long from = static_cast<long long>(column - span.position) * CHANNELS + sample % CHANNELS;
            if (from >= span.before && from < span.before + inside) {
                value = samples[from];
            } else {
                const int source = source_index<border>(position, size.height);
                value = image[(static_cast<long long>(source) * size.width + column) * CHANNELS + sample % CHANNELS];
            }
        }
        samples[sample] = value;
    }
}

// --- from shared memory to the output ---------------------------------------------------------------------------------
// The 16 bytes that start `skew` bytes (0 to 15, the same for the whole warp) after `staged`, a whole chunk.
__device__ __forceinline__ uint4 chunk_at(const unsigned char *staged, int skew) {
    const uint4 low = *reinterpret_cast<const uint4 *>(staged);
    const uint4 high = *reinterpret_cast<const uint4 *>(staged + (skew > 0 ? CHUNK : 0));
    unsigned word[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    if (skew & 2 * WORD)
#pragma unroll
        for (int i = 0; i < 6; ++i) word[i] = word[i + 2];
    if (skew & WORD)
#pragma unroll
        for (int i = 0; i < 5; ++i) word[i] = word[i + 1];
#ifdef TRY_PLAIN_WRITE
    return low;
#endif
    if (sizeof(OUTPUT) < WORD)
#pragma unroll
        for (int i = 0; i < 4; ++i) word[i] = __funnelshift_r(word[i], word[i + 1], skew % WORD * 8);
    return make_uint4(word[0], word[1], word[2], word[3]);
}

// Write a staged row of `bytes` bytes; neighbouring threads write neighbouring places. Chunks that are whole in memory
// go by one store, and each warp begins on a line.
__device__ __forceinline__ void write_row(unsigned char *to, const unsigned char *staged, int bytes, int thread) {
    const int off_line = ALIGNED_OUT ? 0 : static_cast<int>(reinterpret_cast<unsigned long long>(to) % LINE);
    const int skew = -off_line & (CHUNK - 1);
#pragma unroll
    for (int i = 0; i < OUT_ROW_BYTES + (ALIGNED_OUT ? 0 : LINE - 1); i += THREADS * CHUNK) {
        const int at = i + thread * CHUNK - off_line;
        if (at < 0 || at + CHUNK > bytes) continue;
        const unsigned char *const from = staged + (at - skew);
        __stcs(reinterpret_cast<uint4 *>(to + at), ALIGNED_OUT ? *reinterpret_cast<const uint4 *>(from) : chunk_at(from, skew));
    }
    if (ALIGNED_OUT) return;
    // The ends: sample by sample, half a warp each.
    const int head = min(skew, bytes), tail = max(bytes - (off_line + bytes) % CHUNK, head);
    const int sample = thread % CHUNK * static_cast<int>(sizeof(OUTPUT));
    const int at = thread < CHUNK ? sample : tail + sample;
    if (thread < 2 * CHUNK && at < (thread < CHUNK ? head : bytes))
        *reinterpret_cast<OUTPUT *>(to + at) = *reinterpret_cast<const OUTPUT *>(staged + at);
}
