"""Hysteresis in generated code: strong edge pixels spread over the edge pixels beside them, 64 pixels of a row at a time.

A word is looked at by itself: which of its weak pixels touch a strong one of this word or of the eight words around it,
and, from those, which pixels of the word are connected within it. Where a word has grown, those of the words around it
that can now grow are queued. A word is in the queue once at most, so that the queue has a place for each; and it is
only queued when a pixel beside it has become strong, so all work together is at most proportional to the pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir

from edgeconv.hardware.cpu.emit import I32, I64, Value
from edgeconv.methods.cpu.canny_frame import CannyFrame
from edgeconv.methods.cpu.canny_layout import INT32_BYTES, WORD_BITS, WORD_BYTES, CannyArgument

LOWEST_BIT, HIGHEST_BIT = 1, -(2 ** (WORD_BITS - 1))
I8 = ir.IntType(8)

OnGrowth = Callable[[Value, Value], None]
"""Told of the place of a word and of the word that it has become."""


class CannyHysteresis:
    """Writes the hysteresis of one strip into a function; places are words from the strip's bit row 0 on."""

    def __init__(self, frame: CannyFrame, strip: Value, on_growth: OnGrowth | None = None) -> None:
        self.frame, self.e = frame, frame.e
        self.pitch = frame.pitch()
        self.weak = frame.strip_bits(CannyArgument.WEAK_ADDRESS, strip)
        self.strong = frame.strip_bits(CannyArgument.STRONG_ADDRESS, strip)
        self.queue = frame.bytes_on(frame.scratch, frame[CannyArgument.QUEUE_OFFSET])
        self.queued = frame.bytes_on(frame.scratch, frame[CannyArgument.QUEUED_OFFSET])
        self.length = self.e.variable(self.e.int64(0))
        self.on_growth = on_growth

    def place(self, row: Value) -> Value:
        """The place of the first word of a bit row; the one before it is the row's own."""
        return self.e.block.add(self.e.block.mul(row, self.pitch), self.e.int64(1))

    def spread_all(self, rows: Value) -> None:
        """Look at every word of the strip, row by row, and then at those that have to be looked at again."""
        e = self.e
        with e.count(e.int64(1), e.block.add(rows, e.int64(1))) as row:
            self._spread_row(row, only_back=True)
        self.spread_queued()

    def spread_from_beside(self, rows: Value) -> None:
        """Look at the first and the last row of the strip, where pixels may have become strong beside it."""
        self._spread_row(self.e.int64(1), only_back=False)
        self._spread_row(rows, only_back=False)
        self.spread_queued()

    def spread_queued(self) -> None:
        """Take words out of the queue, the last one first, until it is empty."""
        e = self.e
        with e.repeat() as leave:
            length = e.block.load(self.length, typ=I64)
            leave(e.block.icmp_signed("==", length, e.int64(0)))
            last = e.block.sub(length, e.int64(1))
            e.block.store(last, self.length)
            place = e.block.zext(e.block.load(e.address(self.queue, "i32", last), typ=I32), I64)
            e.block.store(I8(0), self.frame.bytes_on(self.queued, place))
            with self._undecided(place) as undecided:
                self._visit(place, undecided, only_back=False)

    def _spread_row(self, row: Value, only_back: bool) -> None:
        e = self.e
        first = self.place(row)
        with e.count(first, e.block.add(first, self.frame[CannyArgument.WORDS])) as place:
            with self._undecided(place) as undecided:
                self._visit(place, undecided, only_back)

    @contextmanager
    def _undecided(self, place: Value) -> Iterator[Value]:
        """Where a word has weak pixels that are not connected to a strong one yet: which."""
        e = self.e
        undecided = self._weak_alone(place)
        with e.block.if_then(e.block.icmp_signed("!=", undecided, e.int64(0))):
            yield undecided

    def _weak_alone(self, place: Value) -> Value:
        weak = self.e.block.load(self._word(self.weak, place), typ=I64)
        return self.e.block.and_(weak, self.e.block.not_(self._strong(place)))

    def _visit(self, place: Value, undecided: Value, only_back: bool) -> None:
        """Let a word grow; with `only_back` the words after it in reading order are looked at later in any case."""
        e = self.e
        before = self._strong(place)
        touched = e.block.and_(undecided, self._around(place, before))
        with e.block.if_then(e.block.icmp_signed("!=", touched, e.int64(0))):
            weak = e.block.or_(undecided, before)
            grown = self._connected(weak, e.block.or_(before, touched))
            self.frame.put_shared(grown, self._word(self.strong, place))
            if self.on_growth is not None:
                self.on_growth(place, grown)
            self._queue_around(place, e.block.and_(grown, e.block.not_(before)), only_back)

    def _around(self, place: Value, own: Value) -> Value:
        """Pixels of a word that have a strong pixel beside them, above, below or across a corner, or are strong."""
        e, one, last = self.e, self.e.int64(1), self.e.int64(WORD_BITS - 1)
        above, below = (e.block.sub(place, self.pitch), e.block.add(place, self.pitch))

        def any_of(distance: int) -> Value:
            words = [self._strong(e.block.add(at, e.int64(distance))) for at in (above, place, below)]
            return e.block.or_(e.block.or_(words[0], words[1]), words[2])

        column = e.block.or_(e.block.or_(self._strong(above), own), self._strong(below))
        beside = e.block.or_(self._widened(column), e.block.lshr(any_of(-1), last))
        return e.block.or_(beside, e.block.shl(e.block.and_(any_of(1), one), last))

    def _widened(self, word: Value) -> Value:
        """Its bits and those beside them."""
        e, one = self.e, self.e.int64(1)
        return e.block.or_(word, e.block.or_(e.block.shl(word, one), e.block.lshr(word, one)))

    def _connected(self, weak: Value, seeds: Value) -> Value:
        """All bits of the runs of `weak` that hold a seed."""
        e = self.e
        # A carry goes from a seed to the end of its run, and turns every bit there but further seeds.
        turned = e.block.xor(e.block.add(weak, seeds), weak)
        grown = e.block.and_(e.block.or_(turned, seeds), weak)
        # Downwards by distances of 1, 2, 4, ...; `open_` tells that no bit is missing on the way.
        open_, distance = weak, 1
        while distance < WORD_BITS:
            step = e.int64(distance)
            grown = e.block.or_(grown, e.block.and_(open_, e.block.lshr(grown, step)))
            open_ = e.block.and_(open_, e.block.lshr(open_, step))
            distance *= 2
        return grown

    def _queue_around(self, place: Value, gained: Value, only_back: bool) -> None:
        """Queue the words around that can grow because of the bits that this one has gained."""
        e, zero = self.e, self.e.int64(0)
        above, below = (e.block.sub(place, self.pitch), e.block.add(place, self.pitch))
        reached = self._widened(gained)
        self._queue_if(above, reached)
        if not only_back:
            self._queue_if(below, reached)
        lowest = e.block.icmp_signed("!=", e.block.and_(gained, e.int64(LOWEST_BIT)), zero)
        with e.block.if_then(lowest):
            for at in (above, place) if only_back else (above, place, below):
                self._queue_if(e.block.sub(at, e.int64(1)), e.int64(HIGHEST_BIT))
        with e.block.if_then(e.block.icmp_signed("<", gained, zero)):
            for at in (above,) if only_back else (above, place, below):
                self._queue_if(e.block.add(at, e.int64(1)), e.int64(LOWEST_BIT))

    def _queue_if(self, place: Value, reached: Value) -> None:
        """Queue a word that has weak pixels among the bits reached, unless it is queued already."""
        e = self.e
        can_grow = e.block.icmp_signed("!=", e.block.and_(self._weak_alone(place), reached), e.int64(0))
        with e.block.if_then(can_grow):
            mark = self.frame.bytes_on(self.queued, place)
            with e.block.if_then(e.block.icmp_unsigned("==", e.block.load(mark, typ=I8), I8(0))):
                e.block.store(I8(1), mark)
                length = e.block.load(self.length, typ=I64)
                e.block.store(e.block.trunc(place, I32), e.address(self.queue, "i32", length))
                e.block.store(e.block.add(length, e.int64(1)), self.length)

    def _word(self, bits: Value, place: Value) -> Value:
        return self.e.address_of_int64(bits, place)

    def _strong(self, place: Value) -> Value:
        return self.e.block.load(self._word(self.strong, place), typ=I64)


