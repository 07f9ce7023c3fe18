"""Hysteresis in generated code: strong edge pixels spread over the edge pixels beside them, 64 of a row at a time.

A word is looked at by itself: which of its weak pixels touch a strong one of this word or of the eight words around it,
and, from those, which pixels of the word are connected within it. That is done in two ways:

    sweep    all words of the strip, a register of them at once, down and then up; again, while that changes many
    queue    words that can grow, one by one; where one has grown, those around it that can grow now are queued

The sweeps do most of it in the time that the queue would take for a few words in a hundred. The queue does the rest,
edges that turn back again and again, in a time that is at most proportional to the pixels: a word is queued only when a
pixel beside it has become strong. It is in the queue once at most, which therefore has a place for each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from llvmlite import ir

from edgeconv.hardware.cpu.emit import I32, I64, Value, splat, vector_type
from edgeconv.methods.cpu.canny_frame import CannyFrame
from edgeconv.methods.cpu.canny_layout import WORD_BITS, WORD_BYTES, CannyArgument

LOWEST_BIT, HIGHEST_BIT, ALL_BITS = 1, -(2 ** (WORD_BITS - 1)), -1
I8 = ir.IntType(8)

SWEEP_AGAIN = 16
"""Sweeps go on while they change more than one in so many registers of words."""

OnGrowth = Callable[[Value, Value, Value], None]
"""Told of the place of a word, of the word that it has become, and of the bits that it has gained."""


class CannyHysteresis:
    """Writes the hysteresis of one strip into a function; places are words from the strip's bit row 0 on."""

    def __init__(self, frame: CannyFrame, strip: Value) -> None:
        self.frame, self.e = frame, frame.e
        self.pitch = frame.pitch()
        self.lanes = frame.shape.vector_bytes // WORD_BYTES
        self.weak = frame.strip_bits(CannyArgument.WEAK_ADDRESS, strip)
        self.strong = frame.strip_bits(CannyArgument.STRONG_ADDRESS, strip)
        self.queue = frame.bytes_on(frame.scratch, frame[CannyArgument.QUEUE_OFFSET])
        self.queued = frame.bytes_on(frame.scratch, frame[CannyArgument.QUEUED_OFFSET])
        self.length = self.e.variable(self.e.int64(0))

    def place(self, row: Value) -> Value:
        """The place of the first word of a bit row; the one before it is the row's own."""
        return self.e.block.add(self.e.block.mul(row, self.pitch), self.e.int64(1))

    # --- sweeps ---------------------------------------------------------------------------------------------------

    def sweep(self, rows: Value) -> None:
        """Down and up over all words of the strip, as long as that changes many."""
        e = self.e
        start, stop = self.place(e.int64(1)), e.block.mul(e.block.add(rows, e.int64(1)), self.pitch)
        words = e.block.sub(stop, start)
        last = e.block.add(start, e.block.and_(e.block.sub(words, e.int64(1)), e.int64(-self.lanes)))
        many = e.block.sdiv(words, e.int64(self.lanes * SWEEP_AGAIN))
        with e.repeat() as leave:
            changed = e.variable(e.int64(0))
            with e.count(start, stop, self.lanes) as place:
                self._grow(place, changed)
            with e.count(start, stop, self.lanes) as mirrored:
                self._grow(e.block.sub(e.block.add(start, last), mirrored), changed)
            leave(e.block.icmp_signed("<=", e.block.load(changed, typ=I64), many))

    def _grow(self, place: Value, changed: Value) -> None:
        """Let a register of words grow."""
        e = self.e
        undecided = self._undecided(place, self.lanes)
        with e.block.if_then(self._any(undecided)):
            before = self._strong(place, self.lanes)
            touched = e.block.and_(undecided, self._around(place, before))
            with e.block.if_then(self._any(touched)):
                grown = self._connected(e.block.or_(undecided, before), e.block.or_(before, touched))
                e.block.store(grown, e.address_of_int64(self.strong, place), align=WORD_BYTES)
                e.block.store(e.block.add(e.block.load(changed, typ=I64), e.int64(1)), changed)

    # --- queue ----------------------------------------------------------------------------------------------------

    def queue_all(self, rows: Value) -> None:
        """Queue the words of the strip that can grow, and those of the same register that might."""
        e = self.e
        start, stop = self.place(e.int64(1)), e.block.mul(e.block.add(rows, e.int64(1)), self.pitch)
        with e.count(start, stop, self.lanes) as place:
            undecided = self._undecided(place, self.lanes)
            with e.block.if_then(self._any(undecided)):
                touched = e.block.and_(undecided, self._around(place, self._strong(place, self.lanes)))
                words = e.block.select(self._any(touched), e.int64(self.lanes), e.int64(0))
                with e.count(place, e.block.add(place, words)) as one:
                    self._queue_reached(one, e.int64(ALL_BITS))

    def queue_beside(self, row: Value, other_row: Value, other: Value) -> None:
        """Take over another strip's bits to the row beside this one's first or last, and queue what can grow of that.

        `row` is the one beside, `other_row` the strip's first or last, `other` where the other strip's row begins.
        """
        e = self.e
        ahead = e.block.sub(self.place(other_row), self.place(row))
        with e.count(e.int64(0), self.frame[CannyArgument.WORDS]) as word:
            place = e.block.add(self.place(row), word)
            found = self.frame.shared_word(e.address_of_int64(other, word))
            gained = e.block.and_(found, e.block.not_(self._strong(place)))
            with e.block.if_then(e.block.icmp_signed("!=", gained, e.int64(0))):
                e.block.store(found, e.address_of_int64(self.strong, place))
                facing = e.block.add(place, ahead)
                self._queue_reached(facing, self._widened(gained))
                self._queue_across_ends((facing,), gained)

    def spread_queued(self, on_growth: OnGrowth | None = None) -> None:
        """Take words out of the queue, the last one first, until it is empty."""
        e = self.e
        with e.repeat() as leave:
            length = e.block.load(self.length, typ=I64)
            leave(e.block.icmp_signed("==", length, e.int64(0)))
            last = e.block.sub(length, e.int64(1))
            e.block.store(last, self.length)
            place = e.block.zext(e.block.load(e.address(self.queue, "i32", last), typ=I32), I64)
            e.block.store(I8(0), self.frame.bytes_on(self.queued, place))
            before = self._strong(place)
            undecided = self._undecided(place)
            touched = e.block.and_(undecided, self._around(place, before))
            grown = self._grown(undecided, before, touched)
            gained = e.block.and_(grown, e.block.not_(before))
            self.frame.put_shared(grown, e.address_of_int64(self.strong, place))
            if on_growth is not None:
                on_growth(place, grown, gained)
            self._queue_around(place, gained)

    def _grown(self, undecided: Value, before: Value, touched: Value) -> Value:
        """A word with what is touched and connected to that; along a line down the picture nothing else is."""
        e = self.e
        seeds = e.block.or_(before, touched)
        grown = e.variable(seeds)
        beside = e.block.and_(self._widened(touched), e.block.and_(undecided, e.block.not_(touched)))
        with e.block.if_then(e.block.icmp_signed("!=", beside, e.int64(0))):
            e.block.store(self._connected(e.block.or_(undecided, before), seeds), grown)
        return e.block.load(grown, typ=I64)

    def _queue_around(self, place: Value, gained: Value) -> None:
        """Queue the words around that can grow because of the bits that this one has gained."""
        e = self.e
        rows = (e.block.sub(place, self.pitch), place, e.block.add(place, self.pitch))
        above, _, below = rows
        reached = self._widened(gained)
        for at in (above, below):
            self._queue_reached(at, reached)
        self._queue_across_ends(rows, gained)

    def _queue_across_ends(self, places: tuple[Value, ...], gained: Value) -> None:
        """Queue the words left and right of these, where the first or the last bit has been gained."""
        e = self.e
        for bit, facing, move in (
            (LOWEST_BIT, HIGHEST_BIT, e.block.sub),
            (HIGHEST_BIT, LOWEST_BIT, e.block.add),
        ):
            is_at_end = e.block.icmp_signed("!=", e.block.and_(gained, e.int64(bit)), e.int64(0))
            with e.block.if_then(is_at_end):
                for at in places:
                    self._queue_reached(move(at, e.int64(1)), e.int64(facing))

    def _queue_reached(self, place: Value, reached: Value) -> None:
        """Queue a word that has weak pixels among the bits reached, if it is not queued yet.

        There is no branch, as none could be foreseen: what is stored beyond the end of the queue is not in it.
        """
        e = self.e
        can_grow = e.block.icmp_signed("!=", e.block.and_(self._undecided(place), reached), e.int64(0))
        mark = self.frame.bytes_on(self.queued, place)
        is_queued = e.block.load(mark, typ=I8)
        length = e.block.load(self.length, typ=I64)
        e.block.store(e.block.trunc(place, I32), e.address(self.queue, "i32", length))
        grows = e.block.zext(can_grow, I8)
        e.block.store(e.block.or_(is_queued, grows), mark)
        is_new = e.block.and_(grows, e.block.xor(is_queued, I8(1)))
        e.block.store(e.block.add(length, e.block.zext(is_new, I64)), self.length)

    # --- words ----------------------------------------------------------------------------------------------------

    def _around(self, place: Value, own: Value) -> Value:
        """Pixels of words that have a strong pixel beside them, above, below or across a corner, or are strong."""
        e, lanes = self.e, self._lanes_of(own)
        one, last = self._constant(1, lanes), self._constant(WORD_BITS - 1, lanes)
        above, below = (e.block.sub(place, self.pitch), e.block.add(place, self.pitch))

        def any_of(distance: int) -> Value:
            words = [self._strong(e.block.add(at, e.int64(distance)), lanes) for at in (above, place, below)]
            return reduce(e.block.or_, words)

        column = reduce(e.block.or_, (self._strong(above, lanes), own, self._strong(below, lanes)))
        beside = e.block.or_(self._widened(column), e.block.lshr(any_of(-1), last))
        return e.block.or_(beside, e.block.shl(e.block.and_(any_of(1), one), last))

    def _widened(self, words: Value) -> Value:
        """Their bits and those beside them."""
        e, one = self.e, self._constant(1, self._lanes_of(words))
        return e.block.or_(words, e.block.or_(e.block.shl(words, one), e.block.lshr(words, one)))

    def _connected(self, weak: Value, seeds: Value) -> Value:
        """All bits of the runs of `weak` that hold a seed."""
        e, lanes = self.e, self._lanes_of(weak)
        # A carry goes from a seed to the end of its run, and turns every bit there but further seeds.
        turned = e.block.xor(e.block.add(weak, seeds), weak)
        grown = e.block.and_(e.block.or_(turned, seeds), weak)
        # Downwards by distances of 1, 2, 4, ...; `open_` tells that no bit is missing on the way.
        open_, distance = weak, 1
        while distance < WORD_BITS:
            step = self._constant(distance, lanes)
            grown = e.block.or_(grown, e.block.and_(open_, e.block.lshr(grown, step)))
            open_ = e.block.and_(open_, e.block.lshr(open_, step))
            distance *= 2
        return grown

    def _undecided(self, place: Value, lanes: int = 1) -> Value:
        """Weak pixels that are not connected to a strong one yet."""
        weak = self._words(self.weak, place, lanes)
        return self.e.block.and_(weak, self.e.block.not_(self._strong(place, lanes)))

    def _strong(self, place: Value, lanes: int = 1) -> Value:
        return self._words(self.strong, place, lanes)

    def _words(self, bits: Value, place: Value, lanes: int) -> Value:
        kind = I64 if lanes == 1 else vector_type("i64", lanes)
        return self.e.block.load(self.e.address_of_int64(bits, place), typ=kind, align=WORD_BYTES)

    def _constant(self, value: int, lanes: int) -> Value:
        return self.e.int64(value) if lanes == 1 else splat("i64", lanes, value)

    def _lanes_of(self, words: Value) -> int:
        return 1 if words.type == I64 else int(words.type.count)

    def _any(self, words: Value) -> Value:
        """Whether a bit of a register of words is 1."""
        e = self.e
        lanes = self._lanes_of(words)
        flags = e.block.bitcast(e.block.icmp_signed("!=", words, splat("i64", lanes, 0)), ir.IntType(lanes))
        return e.block.icmp_unsigned("!=", flags, ir.IntType(lanes)(0))
