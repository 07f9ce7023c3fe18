"""The machine code of Canny for one type of pictures, written as LLVM IR: three functions over one block of arguments.

    work(arguments, worker, first, stop)    strips of rows: stage, smooth, gradient, thin, hysteresis in each, and the
                                            output as far as it is known by then; then `go_on` from there
    go_on(arguments, worker, strip)         hysteresis of this strip and of others, where something beside them changed
    alone(arguments)                        all of it, by one thread

The picture passes through the caches once: a strip's rows, its bits and its part of the output are done by one thread
while they are there. A strip is *ready* then. What is left is what edges do across strips: a strip takes over the bits
of the rows beside it from strips that are ready, lets its own grow, corrects the output, and makes the strips beside it
*stale* if their neighbouring row has changed.

Any thread goes on in any strip that is ready and stale, as soon as it is, and nobody waits. Whoever makes a strip stale
tries it afterwards. If it is *taken* by another thread just then, that one looks once more after it has given it back;
if it is not ready, the thread that makes it ready makes it stale as well.

Hysteresis looks at words of 64 pixels of a row: which weak pixels touch a strong one of this word or of the eight words
around it, and, from those, which pixels of the word are connected within it. That is done in two ways:

    sweep    all words of the strip, a register of them at once, down and then up; again, while that changes many
    queue    words that can grow, one by one; where one has grown, those around it that can grow now are queued

The sweeps do most of it in the time that the queue would take for a few words in a hundred. The queue does the rest,
edges that turn back again and again, in a time that is at most proportional to the pixels: a word is queued only when a
pixel beside it has become strong. It is in the queue once at most, which therefore has a place for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_

from llvmlite import ir

from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.emit import I1, Array, Value
from edgeconv.hardware.cpu.processor import WORK
from edgeconv.methods.cpu.canny_layout import (
    WORD_BITS,
    WORD_BYTES,
    CannyArgument,
    CannyShape,
    StripState,
)
from edgeconv.methods.cpu.canny_rows import CannyRows, CannyUnit

GO_ON = "go_on"
BYTE_BITS = 8
LOWEST_BIT, HIGHEST_BIT, ALL_BITS = 1, -(2 ** (WORD_BITS - 1)), -1

SWEEP_AGAIN = 16
"""Sweeps go on while they change more than one in this many registers of words."""


def write(shape: CannyShape) -> str:
    """LLVM IR of the module."""
    module = ir.Module(name="canny")
    go_on = _write_go_on(CannyUnit(module, GO_ON, shape, 1))
    work = CannyUnit(module, WORK, shape, 2)
    _write_work(work, go_on)
    return work.text_with_alone(CannyArgument.STRIPS)


# --- hysteresis of one strip ------------------------------------------------------------------------------------------


class CannyHysteresis:
    """Writes the hysteresis of one strip into a function; places are words from the strip's bit row 0 on."""

    def __init__(self, unit: CannyUnit, strip: Value) -> None:
        self.unit, self.pitch = unit, unit[CannyArgument.WORDS] + 2  # from one bit row to the next
        self.lanes = unit.shape.vector_bytes // WORD_BYTES
        self.weak = unit.strip_bits(CannyArgument.WEAK_ADDRESS, strip)
        self.strong = unit.strip_bits(CannyArgument.STRONG_ADDRESS, strip)
        self.queue, self.queued = unit.queue()
        self.length = unit.variable(0)

    def place(self, row: Value) -> Value:
        """The place of the first word of a bit row; the one before it is the row's own."""
        return row * self.pitch + 1

    # --- sweeps ---------------------------------------------------------------------------------------------------

    def sweep(self, rows: Value) -> None:
        """Down and up over all words of the strip, as long as that changes many."""
        unit = self.unit
        start, stop = self._words_of(rows)
        words = stop - start
        last = start + ((words - 1) & -self.lanes)
        many = words // (self.lanes * SWEEP_AGAIN)
        with unit.repeat() as leave:
            changed = unit.variable(0)

            def grow(place: Value) -> None:
                undecided = self._undecided(place, self.lanes)
                with unit.where(undecided.differs(0).any()):
                    before = self.strong.at(place).load(self.lanes)
                    touched = undecided & self._around(place, before)
                    with unit.where(touched.differs(0).any()):
                        self.strong.at(place).store(_connected(undecided | before, before | touched))
                        changed.value += 1

            with unit.count(start, stop, self.lanes) as place:
                grow(place)
            with unit.count(start, stop, self.lanes) as mirrored:
                grow((start + last) - mirrored)
            leave(changed.value <= many)

    # --- queue ----------------------------------------------------------------------------------------------------

    def queue_all(self, rows: Value) -> None:
        """Queue the words of the strip that can grow, and those of the same register that might."""
        with self.unit.count(*self._words_of(rows), self.lanes) as place:
            undecided = self._undecided(place, self.lanes)
            with self.unit.where(undecided.differs(0).any()):
                touched = undecided & self._around(place, self.strong.at(place).load(self.lanes))
                words = touched.differs(0).any().select(self.unit.int64(self.lanes), 0)
                with self.unit.count(place, place + words) as one:
                    self._queue_reached(one, ALL_BITS)

    def queue_beside(self, row: Value, other_row: Value, other: Array) -> None:
        """Take over another strip's bits to the row beside this one's first or last, and queue what can grow of that.

        `row` is the one beside, `other_row` the strip's first or last, `other` where the other strip's row begins.
        """
        ahead = self.place(other_row) - self.place(row)
        with self.unit.count(0, self.unit[CannyArgument.WORDS]) as word:
            place = self.place(row) + word
            found = other.at(word).load_shared("monotonic")
            gained = found & ~self.strong[place]
            with self.unit.where(gained.differs(0)):
                self.strong[place] = found
                facing = place + ahead
                self._queue_reached(facing, _widened(gained))
                self._queue_across_ends((facing,), gained)

    @contextmanager
    def spread_queued(self) -> Iterator[tuple[Value, Value, Value]]:
        """Take words out of the queue, the last one first, until it is empty.

        What is written inside is done for each: its place, the word that it has become, and the bits that are new.
        """
        with self.unit.repeat() as leave:
            length = self.length.value
            leave(length.equals(0))
            last = length - 1
            self.length.value = last
            place = self.queue[last].unsigned("int64")
            self.queued[place] = self.queued[place].like(0)
            before = self.strong[place]
            undecided = self._undecided(place)
            grown = _connected(undecided | before, before | (undecided & self._around(place, before)))
            gained = grown & ~before
            self.strong.at(place).store_shared(grown, "monotonic")
            yield place, grown, gained
            rows = (place - self.pitch, place, place + self.pitch)
            for at in (rows[0], rows[2]):
                self._queue_reached(at, _widened(gained))
            self._queue_across_ends(rows, gained)

    def _queue_across_ends(self, places: tuple[Value, ...], gained: Value) -> None:
        """Queue the words left and right of these, where the first or the last bit has been gained."""
        for bit, facing, step in ((LOWEST_BIT, HIGHEST_BIT, -1), (HIGHEST_BIT, LOWEST_BIT, 1)):
            with self.unit.where((gained & bit).differs(0)):
                for at in places:
                    self._queue_reached(at + step, facing)

    def _queue_reached(self, place: Value, reached: Value | int) -> None:
        """Queue a word that has weak pixels among the bits reached, if it is not queued yet.

        There is no branch, as none could be foreseen: what is stored beyond the end of the queue is not in it.
        """
        can_grow = (self._undecided(place) & reached).differs(0)
        is_queued, length = self.queued[place], self.length.value
        self.queue[length] = place.narrow("int32")
        grows = can_grow.unsigned("uint8")
        self.queued[place] = is_queued | grows
        self.length.value = length + (grows & (is_queued ^ 1)).unsigned("int64")

    # --- words ----------------------------------------------------------------------------------------------------

    def _words_of(self, rows: Value) -> tuple[Value, Value]:
        """The first word of the strip's own rows, and the one after their last."""
        return self.place(self.unit.int64(1)), (rows + 1) * self.pitch

    def _around(self, place: Value, own: Value) -> Value:
        """Pixels of words that have a strong pixel beside them, above, below or across a corner, or are strong."""
        lanes = 0 if own.ir.type == ir.IntType(WORD_BITS) else own.lanes
        above, below = place - self.pitch, place + self.pitch

        def strong(at: Value) -> Value:
            return self.strong.at(at).load(lanes) if lanes else self.strong[at]

        left, right = (reduce(or_, [strong(at + distance) for at in (above, place, below)]) for distance in (-1, 1))
        column = reduce(or_, [strong(above), own, strong(below)])
        return _widened(column) | left >> (WORD_BITS - 1) | (right & 1) << (WORD_BITS - 1)

    def _undecided(self, place: Value, lanes: int = 0) -> Value:
        """Weak pixels that are not connected to a strong one yet, of one word or of a register of them."""
        weak, strong = ((bits.at(place).load(lanes) if lanes else bits[place]) for bits in (self.weak, self.strong))
        return weak & ~strong


def _widened(words: Value) -> Value:
    """Their bits and those beside them."""
    return words | (words << 1 | words >> 1)


def _connected(weak: Value, seeds: Value) -> Value:
    """All bits of the runs of `weak` that hold a seed."""
    # A carry goes from a seed to the end of its run, and turns every bit there but further seeds.
    turned = (weak + seeds) ^ weak
    grown = (turned | seeds) & weak
    # Downwards by distances of 1, 2, 4, ...; `open_` tells that no bit is missing on the way.
    open_, distance = weak, 1
    while distance < WORD_BITS:
        grown = grown | open_ & grown >> distance
        open_ = open_ & open_ >> distance
        distance *= 2
    return grown


# --- strips -----------------------------------------------------------------------------------------------------------


def _write_work(unit: CannyUnit, go_on: ir.Function) -> None:
    first, stop = unit.more
    with unit.count(first, stop) as strip:
        _write_strip(unit, strip)
        unit.block.fence("seq_cst")  # stores past the caches are seen by others only after a fence
        unit.state(StripState.READY, strip).swap("xchg", unit[CannyArgument.RUN].narrow("int32"))
        unit.state(StripState.STALE, strip).swap("xchg", 1)
        for neighbour, exists in _neighbours(unit, strip):
            with unit.where(exists):
                unit.state(StripState.STALE, neighbour).swap("xchg", 1)
        unit.block.call(go_on, [unit.words.address, unit.worker.ir, strip.ir])


def _neighbours(unit: CannyUnit, strip: Value) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    """The strip above and the one below, and whether there are such."""
    above, below = strip - 1, strip + 1
    return (above, strip > 0), (below, below < unit[CannyArgument.STRIPS])


def _write_strip(unit: CannyUnit, strip: Value) -> None:
    start, count = unit.rows_of(strip)
    hysteresis = CannyHysteresis(unit, strip)
    for row in (unit.int64(0), count + 1):  # no strong pixel is known beside the strip: other strips are not done yet
        place = hysteresis.place(row)
        with unit.count(place, place + unit[CannyArgument.WORDS]) as word:
            hysteresis.strong[word] = unit.int64(0)
    _write_bits(unit, hysteresis, start, start + count)
    hysteresis.sweep(count)
    hysteresis.queue_all(count)
    with hysteresis.spread_queued():
        pass
    with unit.count(0, count) as number:
        _store_row(unit, hysteresis.strong.at(hysteresis.place(number + 1)), start + number)


def _write_bits(unit: CannyUnit, hysteresis: CannyHysteresis, start: Value, stop: Value) -> None:
    """The bits of edge pixels of rows `start` to `stop`: one row behind their codes, which are one behind staging."""
    rows, reach, height = CannyRows(unit), unit.shape.reach, unit[CannyArgument.HEIGHT]
    first_staged = (start - 2).max(0)
    to_stage = unit.variable(first_staged)
    to_stage_raw = unit.variable((first_staged - reach).max(0))

    def staged_up_to(last: Value) -> None:
        with unit.count(to_stage.value, last + 1) as row:
            if unit.shape.blur:
                end = (row + (reach + 1)).min(height)
                with unit.count(to_stage_raw.value, end) as raw_row:
                    rows.stage_raw(raw_row)
                to_stage_raw.value = end
            rows.stage(row)
            to_stage.value = row + 1

    with unit.count(start - 1, stop + 1) as row:
        is_outside = (row < 0) | (row >= height)
        with unit.block.if_else(is_outside.ir) as (outside, inside):
            with outside:
                rows.no_codes(row)
            with inside:
                staged_up_to((row + 1).min(height - 1))
                rows.gradient(row)
        before = row - 1
        with unit.where(before >= start):
            place = hysteresis.place((before - start) + 1)
            rows.thin(before, hysteresis.weak.at(place), hysteresis.strong.at(place))


def _write_go_on(unit: CannyUnit) -> ir.Function:
    (start,) = unit.more
    lowest, highest, has_grown = unit.variable(start), unit.variable(start), unit.variable(0)
    # Down and up again over the strips that have been grown here, and the next ones: what they have made stale.
    with unit.repeat() as leave:
        has_grown.value = unit.int64(0)
        first = (lowest.value - 1).max(0)
        count = (highest.value + 2).min(unit[CannyArgument.STRIPS]) - first
        turns = count + count
        with unit.count(0, turns) as turn:
            strip = first + turn.min((turns - 1) - turn)
            is_stale = unit.state(StripState.STALE, strip).load_shared().differs(0)
            with unit.where(is_stale & unit.is_ready(strip)):
                taken = unit.state(StripState.TAKEN, strip)
                with unit.where(taken.swap("xchg", 1).equals(0)):
                    _write_grow(unit, strip)
                    taken.swap("xchg", 0)
                    has_grown.value = unit.int64(1)
                    lowest.value = lowest.value.min(strip)
                    highest.value = highest.value.max(strip)
        leave(has_grown.value.equals(0))
    unit.block.ret_void()
    return unit.function


def _write_grow(unit: CannyUnit, strip: Value) -> None:
    unit.state(StripState.STALE, strip).swap("xchg", 0)  # before the neighbours' rows are read
    start, count = unit.rows_of(strip)
    one = unit.int64(1)
    first_grew, last_grew = unit.variable(0), unit.variable(0)
    hysteresis = CannyHysteresis(unit, strip)
    (above, has_above), (below, has_below) = _neighbours(unit, strip)
    for other, exists, own_row, first_or_last, other_row in (
        (above, has_above, unit.int64(0), one, unit[CannyArgument.STRIP_ROWS]),
        (below, has_below, count + 1, count, one),
    ):
        with unit.where(exists), unit.where(unit.is_ready(other)):
            bits = unit.strip_bits(CannyArgument.STRONG_ADDRESS, other)
            hysteresis.queue_beside(own_row, first_or_last, bits.at(hysteresis.place(other_row)))
    with hysteresis.spread_queued() as (place, grown, gained):
        row = place // hysteresis.pitch
        for edge, grew in ((one, first_grew), (count, last_grew)):
            grew.value |= row.equals(edge).unsigned("int64")
        x = (place - hysteresis.place(row)) * WORD_BITS
        _correct_pixels(unit, start + (row - 1), x, grown, gained)
    for other, exists, grew in ((above, has_above, first_grew), (below, has_below, last_grew)):
        with unit.where(grew.value.differs(0) & exists):
            unit.state(StripState.STALE, other).swap("xchg", 1)


# --- pixels -----------------------------------------------------------------------------------------------------------


def _store_row(unit: CannyUnit, bits: Array, row: Value) -> None:
    """A row of the output; past the caches where the plan wants that and the row starts a cache line."""
    width, lanes = unit[CannyArgument.WIDTH], unit.shape.vector_bytes
    out = unit.at(CannyArgument.OUT_ADDRESS).at(row * width)
    is_line = (out.number & (CACHE_LINE_BYTES - 1)).equals(0)
    is_wanted = unit[CannyArgument.STREAMING].differs(0)
    streamed = (is_line & is_wanted).select(width & -CACHE_LINE_BYTES, 0)
    stop = width & -lanes
    bits = bits.of("uint8")
    for first, after, aligned_bytes in ((unit.int64(0), streamed, lanes), (streamed, stop, None)):
        with unit.count(first, after, lanes) as x:
            flags = unit.block.load(bits.at(x >> 3).address, typ=ir.IntType(lanes), align=1)
            out.at(x).store(_pixels(Value(unit, flags), lanes), aligned_bytes)
    with unit.count(stop, width) as x:
        out[x] = _pixel(bits[x >> 3], x & (BYTE_BITS - 1))


def _correct_pixels(unit: CannyUnit, row: Value, x: Value, grown: Value, gained: Value) -> None:
    """Store those pixels of a word again that have been gained, eight side by side; the word begins at pixel `x`."""
    width = unit[CannyArgument.WIDTH]
    out = unit.at(CannyArgument.OUT_ADDRESS).at(row * width)
    first = gained.call("llvm.cttz", flags=(I1(0),)) & -BYTE_BITS
    stop = unit.int64(WORD_BITS) - gained.call("llvm.ctlz", flags=(I1(0),))
    with unit.count(first, stop, BYTE_BITS) as bit:
        byte = (grown >> bit).narrow("uint8")
        column = x + bit
        with unit.block.if_else((column + BYTE_BITS <= width).ir) as (whole, part):
            with whole:
                out.at(column).store(_pixels(byte, BYTE_BITS))
            with part, unit.count(0, width - column) as number:
                out[column + number] = _pixel(byte, number)


def _pixels(bits: Value, lanes: int) -> Value:
    """255 where a bit is 1, else 0."""
    return bits.bits(ir.VectorType(I1, lanes)).signed("uint8")


def _pixel(byte: Value, number: Value) -> Value:
    """The same for one bit of a byte."""
    return -(byte >> number.narrow("uint8") & 1)
