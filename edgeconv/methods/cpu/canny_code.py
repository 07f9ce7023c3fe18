"""The machine code of Canny for one type of pictures, written as LLVM IR: four functions over one block of arguments.

    work(arguments, worker, first, stop)    strips of rows: stage, smooth, gradient, thin, hysteresis in each, and the
                                            output as far as it is known by then; then `go_on` from there
    go_on(arguments, worker, strip)         hysteresis of this strip and of others, where something beside them changed
    grow(arguments, worker, strip)          that of one strip
    alone(arguments)                        all of it, by one thread

The picture passes through the caches once: a strip's rows, its bits and its part of the output are done by one thread
while they are there. A strip is *ready* then. What is left is what edges do across strips: a strip takes over the bits
of the rows beside it from strips that are ready, lets its own grow, corrects the output, and makes the strips beside it
*stale* if their neighbouring row has changed.

Any thread goes on in any strip that is ready and stale, as soon as it is, and nobody waits. Whoever makes a strip stale
tries it afterwards. If it is *taken* by another thread just then, that one looks once more after it has given it back;
if it is not ready, the thread that makes it ready makes it stale as well.
"""

from __future__ import annotations

from llvmlite import ir

from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.emit import I32, I64, POINTER, Emitter, Value, vector_type
from edgeconv.methods.cpu.canny_frame import CannyFrame
from edgeconv.methods.cpu.canny_hysteresis import CannyHysteresis
from edgeconv.methods.cpu.canny_layout import WORD_BITS, CannyArgument, CannyShape, StripState
from edgeconv.methods.cpu.canny_rows import CannyRows

I1, I8 = ir.IntType(1), ir.IntType(8)
BYTE_BITS = 8

WORK, GO_ON, GROW, ALONE = "work", "go_on", "grow", "alone"


def write(shape: CannyShape) -> str:
    """LLVM IR of the module."""
    module = ir.Module(name="canny")
    go_on = _write_go_on(module, shape, _write_grow(module, shape))
    _write_alone(module, _write_work(module, shape, go_on))
    return str(module)


def _write_work(module: ir.Module, shape: CannyShape, go_on: ir.Function) -> ir.Function:
    frame = CannyFrame(module, WORK, shape, [I64, I64])
    first, stop = frame.more
    e = frame.e
    with e.count(first, stop) as strip:
        _write_strip(frame, strip)
        e.block.fence("seq_cst")  # stores past the caches are seen by others only after a fence
        frame.exchange(StripState.READY, strip, e.block.trunc(frame[CannyArgument.RUN], I32))
        frame.exchange(StripState.STALE, strip, I32(1))
        for neighbour, exists in _neighbours(frame, strip):
            with e.block.if_then(exists):
                frame.exchange(StripState.STALE, neighbour, I32(1))
        e.block.call(go_on, [frame.arguments, frame.worker, strip])
    e.block.ret_void()
    return e.function


def _neighbours(frame: CannyFrame, strip: Value) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    """The strip above and the one below, and whether there are such."""
    e, one = frame.e, frame.e.int64(1)
    above, below = e.block.sub(strip, one), e.block.add(strip, one)
    has_above = e.block.icmp_signed(">", strip, e.int64(0))
    return (above, has_above), (below, e.block.icmp_signed("<", below, frame[CannyArgument.STRIPS]))


def _write_strip(frame: CannyFrame, strip: Value) -> None:
    e, one = frame.e, frame.e.int64(1)
    start, count = frame.rows_of(strip)
    hysteresis = CannyHysteresis(frame, strip)
    _clear_row(frame, hysteresis, e.int64(0))
    _clear_row(frame, hysteresis, e.block.add(count, one))
    _write_bits(frame, hysteresis, start, e.block.add(start, count))
    hysteresis.sweep(count)
    hysteresis.queue_all(count)
    hysteresis.spread_queued()
    with e.count(e.int64(0), count) as number:
        bits = e.address_of_int64(hysteresis.strong, hysteresis.place(e.block.add(number, one)))
        _store_row(frame, bits, e.block.add(start, number))


def _write_bits(frame: CannyFrame, hysteresis: CannyHysteresis, start: Value, stop: Value) -> None:
    """The bits of edge pixels of rows `start` to `stop`: one row behind their codes, which are one behind staging."""
    e, one, height = frame.e, frame.e.int64(1), frame[CannyArgument.HEIGHT]
    rows = CannyRows(frame)
    reach = frame.shape.reach
    first_staged = e.maximum(e.block.sub(start, e.int64(2)), e.int64(0))
    to_stage = e.variable(first_staged)
    to_stage_raw = e.variable(e.maximum(e.block.sub(first_staged, e.int64(reach)), e.int64(0)))

    def staged_up_to(last: Value) -> None:
        with e.count(e.block.load(to_stage, typ=I64), e.block.add(last, one)) as row:
            if frame.shape.blur:
                end = e.minimum(e.block.add(row, e.int64(reach + 1)), height)
                with e.count(e.block.load(to_stage_raw, typ=I64), end) as raw_row:
                    rows.stage_raw(raw_row)
                e.block.store(end, to_stage_raw)
            rows.stage(row)
            e.block.store(e.block.add(row, one), to_stage)

    with e.count(e.block.sub(start, one), e.block.add(stop, one)) as row:
        outside = e.block.icmp_unsigned(">=", row, height)  # -1 too
        with e.block.if_else(outside) as (is_outside, is_inside):
            with is_outside:
                rows.no_codes(row)
            with is_inside:
                staged_up_to(e.minimum(e.block.add(row, one), e.block.sub(height, one)))
                rows.gradient(row)
        before = e.block.sub(row, one)
        with e.block.if_then(e.block.icmp_signed(">=", before, start)):
            place = hysteresis.place(e.block.add(e.block.sub(before, start), one))
            rows.thin(before, e.address_of_int64(hysteresis.weak, place), e.address_of_int64(hysteresis.strong, place))


def _clear_row(frame: CannyFrame, hysteresis: CannyHysteresis, row: Value) -> None:
    """No strong pixel is known beside the strip: other strips are not done yet."""
    e = frame.e
    start = hysteresis.place(row)
    with e.count(start, e.block.add(start, frame[CannyArgument.WORDS])) as place:
        e.block.store(e.int64(0), e.address_of_int64(hysteresis.strong, place))


def _store_row(frame: CannyFrame, bits: Value, row: Value) -> None:
    """A row of the output; past the caches where the plan wants that and the row starts a cache line."""
    e, width = frame.e, frame[CannyArgument.WIDTH]
    out = frame.bytes_on(frame.pointer(CannyArgument.OUT_ADDRESS), e.block.mul(row, width))
    beside_line = e.block.and_(e.block.ptrtoint(out, I64), e.int64(CACHE_LINE_BYTES - 1))
    is_line = e.block.icmp_signed("==", beside_line, e.int64(0))
    is_wanted = e.block.icmp_signed("!=", frame[CannyArgument.STREAMING], e.int64(0))
    lines = e.block.and_(width, e.int64(-CACHE_LINE_BYTES))
    streamed = e.block.select(e.block.and_(is_line, is_wanted), lines, e.int64(0))
    _store_blocks(frame, bits, out, e.int64(0), streamed, frame.shape.vector_bytes)
    _store_pixels(frame, bits, out, streamed, width)


def _store_pixels(frame: CannyFrame, bits: Value, out: Value, start: Value, stop: Value) -> None:
    """255 where a bit is 1, else 0, for pixels from `start`, a whole number of registers, to `stop`."""
    e = frame.e
    whole = e.block.and_(stop, e.int64(-frame.shape.vector_bytes))
    _store_blocks(frame, bits, out, start, whole)
    with e.count(whole, stop) as x:
        byte = e.block.load(frame.bytes_on(bits, e.block.lshr(x, e.int64(3))), typ=I8)
        _store_bit(e, byte, e.block.and_(x, e.int64(BYTE_BITS - 1)), frame.bytes_on(out, x))


def _store_blocks(
    frame: CannyFrame, bits: Value, out: Value, start: Value, stop: Value, aligned_bytes: int | None = None
) -> None:
    """The same in whole registers; with `aligned_bytes` past the caches."""
    e, lanes = frame.e, frame.shape.vector_bytes
    with e.count(start, stop, lanes) as x:
        place = frame.bytes_on(bits, e.block.lshr(x, e.int64(3)))
        flags = e.block.bitcast(e.block.load(place, typ=ir.IntType(lanes), align=1), ir.VectorType(I1, lanes))
        e.store(e.block.sext(flags, vector_type("u8", lanes)), frame.bytes_on(out, x), "u8", aligned_bytes)


def _write_go_on(module: ir.Module, shape: CannyShape, grow: ir.Function) -> ir.Function:
    frame = CannyFrame(module, GO_ON, shape, [I64])
    (start,) = frame.more
    e, one = frame.e, frame.e.int64(1)
    lowest, highest = e.variable(start), e.variable(start)
    has_grown = e.variable(e.int64(0))

    def try_strip(strip: Value) -> None:
        stale = e.block.icmp_signed("!=", frame.state(StripState.STALE, strip), I32(0))
        with e.block.if_then(e.block.and_(stale, frame.is_ready(strip))):
            was_taken = frame.exchange(StripState.TAKEN, strip, I32(1))
            with e.block.if_then(e.block.icmp_signed("==", was_taken, I32(0))):
                e.block.call(grow, [frame.arguments, frame.worker, strip])
                frame.exchange(StripState.TAKEN, strip, I32(0))
                e.block.store(one, has_grown)
                e.block.store(e.minimum(e.block.load(lowest, typ=I64), strip), lowest)
                e.block.store(e.maximum(e.block.load(highest, typ=I64), strip), highest)

    # Down and up again over the strips that have been grown here, and the next ones: what they have made stale.
    with e.repeat() as leave:
        e.block.store(e.int64(0), has_grown)
        first = e.maximum(e.block.sub(e.block.load(lowest, typ=I64), one), e.int64(0))
        beyond = e.block.add(e.block.load(highest, typ=I64), e.int64(2))
        stop = e.minimum(beyond, frame[CannyArgument.STRIPS])
        with e.count(first, stop) as strip:
            try_strip(strip)
        last = e.block.sub(stop, one)
        with e.count(first, stop) as strip:
            try_strip(e.block.sub(e.block.add(first, last), strip))
        leave(e.block.icmp_signed("==", e.block.load(has_grown, typ=I64), e.int64(0)))
    e.block.ret_void()
    return e.function


def _write_grow(module: ir.Module, shape: CannyShape) -> ir.Function:
    frame = CannyFrame(module, GROW, shape, [I64])
    (strip,) = frame.more
    e, one = frame.e, frame.e.int64(1)
    frame.exchange(StripState.STALE, strip, I32(0))  # before the neighbours' rows are read
    start, count = frame.rows_of(strip)
    first_grew, last_grew = e.variable(e.int64(0)), e.variable(e.int64(0))
    hysteresis = CannyHysteresis(frame, strip)

    def on_growth(place: Value, grown: Value, gained: Value) -> None:
        row = e.block.udiv(place, hysteresis.pitch)
        for edge, grew in ((one, first_grew), (count, last_grew)):
            is_edge = e.block.zext(e.block.icmp_signed("==", row, edge), I64)
            e.block.store(e.block.or_(e.block.load(grew, typ=I64), is_edge), grew)
        x = e.block.mul(e.block.sub(place, hysteresis.place(row)), e.int64(WORD_BITS))
        _correct_pixels(frame, e.block.add(start, e.block.sub(row, one)), x, grown, gained)

    (above, has_above), (below, has_below) = _neighbours(frame, strip)
    for other, exists, own_row, first_or_last, other_row in (
        (above, has_above, e.int64(0), one, frame[CannyArgument.STRIP_ROWS]),
        (below, has_below, e.block.add(count, one), count, one),
    ):
        with e.block.if_then(exists), e.block.if_then(frame.is_ready(other)):
            bits = frame.strip_bits(CannyArgument.STRONG_ADDRESS, other)
            row = e.address_of_int64(bits, hysteresis.place(other_row))
            hysteresis.queue_beside(own_row, first_or_last, row)
    hysteresis.spread_queued(on_growth)
    for other, exists, grew in ((above, has_above, first_grew), (below, has_below, last_grew)):
        has_grown = e.block.icmp_signed("!=", e.block.load(grew, typ=I64), e.int64(0))
        with e.block.if_then(e.block.and_(has_grown, exists)):
            frame.exchange(StripState.STALE, other, I32(1))
    e.block.ret_void()
    return e.function


def _correct_pixels(frame: CannyFrame, row: Value, x: Value, grown: Value, gained: Value) -> None:
    """Store those pixels of a word again that have been gained, eight side by side; the word begins at pixel `x`."""
    e, width = frame.e, frame[CannyArgument.WIDTH]
    out = frame.bytes_on(frame.pointer(CannyArgument.OUT_ADDRESS), e.block.mul(row, width))
    first = e.block.and_(e.block.cttz(gained, I1(0)), e.int64(-BYTE_BITS))
    stop = e.block.sub(e.int64(WORD_BITS), e.block.ctlz(gained, I1(0)))
    with e.count(first, stop, BYTE_BITS) as bit:
        byte = e.block.trunc(e.block.lshr(grown, bit), I8)
        column = e.block.add(x, bit)
        fits = e.block.icmp_signed("<=", e.block.add(column, e.int64(BYTE_BITS)), width)
        with e.block.if_else(fits) as (whole, part):
            with whole:
                flags = e.block.bitcast(byte, ir.VectorType(I1, BYTE_BITS))
                e.store(e.block.sext(flags, vector_type("u8", BYTE_BITS)), frame.bytes_on(out, column), "u8")
            with part, e.count(e.int64(0), e.block.sub(width, column)) as number:
                _store_bit(e, byte, number, frame.bytes_on(out, e.block.add(column, number)))


def _store_bit(e: Emitter, byte: Value, number: Value, out: Value) -> None:
    """255 where a bit is 1, else 0."""
    bit = e.block.and_(e.block.lshr(byte, e.block.trunc(number, I8)), I8(1))
    e.block.store(e.block.neg(bit), out)


def _write_alone(module: ir.Module, work: ir.Function) -> None:
    e = Emitter(module, ALONE, [POINTER])
    (arguments,) = e.function.args
    strips = e.block.load(e.address_of_int64(arguments, CannyArgument.STRIPS), typ=I64)
    e.block.call(work, [arguments, e.int64(0), e.int64(0), strips])
    e.block.ret_void()
