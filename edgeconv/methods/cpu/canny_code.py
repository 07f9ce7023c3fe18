"""The machine code of Canny for one type of pictures, written as LLVM IR: five functions over one block of arguments.

    work(arguments, worker, first, stop)      strips of rows: stage, smooth, gradient, thin, hysteresis within them, and
                                              the output as far as it is known by then
    seams(arguments, worker, first, stop)     strips beside which something has changed: hysteresis goes on in them
    seam(arguments, worker, strip)            one of those
    settle(arguments)                         by one thread alone, until nothing changes
    alone(arguments)                          all of it, by one thread

The picture passes through the caches once: a strip's rows, its bits and its part of the output are done by one thread
while they are there. What is left then is what edges do across strips: a strip takes over the bits of the rows beside
it, lets its own grow, corrects the output, and tells its neighbours if their neighbouring row has changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from edgeconv.hardware.cpu.emit import I32, I64, POINTER, Emitter, Value, vector_type
from edgeconv.hardware.cpu.jit import CACHE_LINE_BYTES
from edgeconv.methods.cpu.canny_frame import CannyFrame
from edgeconv.methods.cpu.canny_hysteresis import CannyHysteresis
from edgeconv.methods.cpu.canny_layout import WORD_BITS, CannyArgument, CannyShape
from edgeconv.methods.cpu.canny_rows import CannyRows

I1, I8 = ir.IntType(1), ir.IntType(8)

WORK, SEAMS, SEAM, SETTLE, ALONE = "work", "seams", "seam", "settle", "alone"


def write(shape: CannyShape) -> str:
    """LLVM IR of the module."""
    module = ir.Module(name="canny")
    work = _write_work(module, shape)
    seam = _write_seam(module, shape)
    _write_seams(module, seam)
    settle = _write_settle(module, seam)
    _write_alone(module, work, settle)
    return str(module)


def _write_work(module: ir.Module, shape: CannyShape) -> ir.Function:
    frame = CannyFrame(module, WORK, shape, [I64, I64])
    first, stop = frame.more
    e = frame.e
    with e.count(first, stop) as strip:
        _write_strip(frame, strip)
    e.block.fence("seq_cst")  # stores past the caches are seen by others only after a fence
    e.block.ret_void()
    return e.function


def _write_strip(frame: CannyFrame, strip: Value) -> None:
    e, one = frame.e, frame.e.int64(1)
    start, count = frame.rows_of(strip)
    hysteresis = CannyHysteresis(frame, strip)
    _clear_row(frame, hysteresis, e.int64(0))
    _clear_row(frame, hysteresis, e.block.add(count, one))
    _write_bits(frame, hysteresis, start, e.block.add(start, count))
    hysteresis.sweep(count)
    with e.count(one, e.block.add(count, one)) as row:
        hysteresis.queue_row(row)
    hysteresis.spread_queued()
    with e.count(e.int64(0), count) as number:
        bits = e.address_of_int64(hysteresis.strong, hysteresis.place(e.block.add(number, one)))
        _store_row(frame, bits, e.block.add(start, number))
    e.block.store(I32(1), e.address(frame.pointer(CannyArgument.STALE_ADDRESS), "i32", strip))


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
        shift = e.block.trunc(e.block.and_(x, e.int64(7)), I8)
        bit = e.block.and_(e.block.lshr(byte, shift), I8(1))
        e.block.store(e.block.neg(bit), frame.bytes_on(out, x))


def _store_blocks(
    frame: CannyFrame, bits: Value, out: Value, start: Value, stop: Value, aligned_bytes: int | None = None
) -> None:
    """The same in whole registers; with `aligned_bytes` past the caches."""
    e, lanes = frame.e, frame.shape.vector_bytes
    with e.count(start, stop, lanes) as x:
        place = frame.bytes_on(bits, e.block.lshr(x, e.int64(3)))
        flags = e.block.bitcast(e.block.load(place, typ=ir.IntType(lanes), align=1), ir.VectorType(I1, lanes))
        e.store(e.block.sext(flags, vector_type("u8", lanes)), frame.bytes_on(out, x), "u8", aligned_bytes)


def _write_seam(module: ir.Module, shape: CannyShape) -> ir.Function:
    frame = CannyFrame(module, SEAM, shape, [I64])
    (strip,) = frame.more
    e, one = frame.e, frame.e.int64(1)
    stale = e.address(frame.pointer(CannyArgument.STALE_ADDRESS), "i32", strip)
    was_stale = e.block.atomic_rmw("xchg", stale, I32(0), "seq_cst")
    with e.block.if_then(e.block.icmp_signed("!=", was_stale, I32(0))):
        start, count = frame.rows_of(strip)
        first_grew, last_grew = e.variable(e.int64(0)), e.variable(e.int64(0))

        def on_growth(place: Value, grown: Value) -> None:
            row = e.block.udiv(place, hysteresis.pitch)
            for edge, grew in ((one, first_grew), (count, last_grew)):
                is_edge = e.block.zext(e.block.icmp_signed("==", row, edge), I64)
                e.block.store(e.block.or_(e.block.load(grew, typ=I64), is_edge), grew)
            _correct_word(frame, e.block.add(start, e.block.sub(row, one)), row, place, hysteresis)

        hysteresis = CannyHysteresis(frame, strip)
        above, below = e.block.sub(strip, one), e.block.add(strip, one)
        with e.block.if_then(e.block.icmp_signed(">", strip, e.int64(0))):
            _take_over(frame, above, frame[CannyArgument.STRIP_ROWS], hysteresis, e.int64(0))
        has_below = e.block.icmp_signed("<", below, frame[CannyArgument.STRIPS])
        with e.block.if_then(has_below):
            _take_over(frame, below, one, hysteresis, e.block.add(count, one))
        with e.count(e.int64(0), e.int64(2)) as end:
            hysteresis.queue_row(e.block.select(e.block.icmp_signed("==", end, e.int64(0)), one, count))
        hysteresis.spread_queued(on_growth)
        for grew, exists, neighbour in (
            (first_grew, e.block.icmp_signed(">", strip, e.int64(0)), above),
            (last_grew, has_below, below),
        ):
            tell = e.block.and_(e.block.icmp_signed("!=", e.block.load(grew, typ=I64), e.int64(0)), exists)
            with e.block.if_then(tell):
                place = e.address(frame.pointer(CannyArgument.STALE_ADDRESS), "i32", neighbour)
                e.block.atomic_rmw("xchg", place, I32(1), "seq_cst")
                e.block.atomic_rmw("add", frame.argument_address(CannyArgument.PENDING), one, "seq_cst")
    e.block.ret_void()
    return e.function


def _take_over(frame: CannyFrame, other: Value, other_row: Value, hysteresis: CannyHysteresis, own_row: Value) -> None:
    """Copy a bit row of another strip, which may be growing, to this strip's row beside it."""
    e = frame.e
    source = e.address_of_int64(frame.strip_bits(CannyArgument.STRONG_ADDRESS, other), hysteresis.place(other_row))
    target = e.address_of_int64(hysteresis.strong, hysteresis.place(own_row))
    with e.count(e.int64(0), frame[CannyArgument.WORDS]) as word:
        e.block.store(frame.shared_word(e.address_of_int64(source, word)), e.address_of_int64(target, word))


def _correct_word(frame: CannyFrame, row: Value, bit_row: Value, place: Value, hysteresis: CannyHysteresis) -> None:
    """Store the pixels of a word once more."""
    e, width = frame.e, frame[CannyArgument.WIDTH]
    x = e.block.mul(e.block.sub(place, hysteresis.place(bit_row)), e.int64(WORD_BITS))
    out = frame.bytes_on(frame.pointer(CannyArgument.OUT_ADDRESS), e.block.add(e.block.mul(row, width), x))
    count = e.minimum(e.block.sub(width, x), e.int64(WORD_BITS))
    _store_pixels(frame, e.address_of_int64(hysteresis.strong, place), out, e.int64(0), count)


def _write_seams(module: ir.Module, seam: ir.Function) -> None:
    e = Emitter(module, SEAMS, [POINTER, I64, I64, I64])
    arguments, worker, first, stop = e.function.args
    with e.count(first, stop) as strip:
        e.block.call(seam, [arguments, worker, strip])
    e.block.ret_void()


def _write_settle(module: ir.Module, seam: ir.Function) -> ir.Function:
    """Strips down and up again, until none has told another: an edge that crosses many strips does so in one go."""
    e = Emitter(module, SETTLE, [POINTER])
    (arguments,) = e.function.args
    strips = _argument(e, arguments, CannyArgument.STRIPS)
    pending = e.address_of_int64(arguments, CannyArgument.PENDING)
    with e.repeat() as leave:
        e.block.store(e.int64(0), pending)
        with e.count(e.int64(0), strips) as strip:
            e.block.call(seam, [arguments, e.int64(0), strip])
        with e.count(e.int64(0), strips) as strip:
            last = e.block.sub(strips, e.int64(1))
            e.block.call(seam, [arguments, e.int64(0), e.block.sub(last, strip)])
        leave(e.block.icmp_signed("==", e.block.load(pending, typ=I64), e.int64(0)))
    e.block.ret_void()
    return e.function


def _write_alone(module: ir.Module, work: ir.Function, settle: ir.Function) -> None:
    e = Emitter(module, ALONE, [POINTER])
    (arguments,) = e.function.args
    strips = _argument(e, arguments, CannyArgument.STRIPS)
    e.block.call(work, [arguments, e.int64(0), e.int64(0), strips])
    with e.block.if_then(e.block.icmp_signed(">", strips, e.int64(1))):
        e.block.call(settle, [arguments])
    e.block.ret_void()


def _argument(e: Emitter, arguments: Sequence[Value] | Value, name: CannyArgument) -> Value:
    return e.block.load(e.address_of_int64(arguments, name), typ=I64)
