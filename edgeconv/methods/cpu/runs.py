"""Compute a run of pixels: in blocks of one length, and what is left over at its ends.

    row         a run that stays in the caches; the last block is moved back to end where the run ends
    streaming   whole cache lines go past the caches, the ends of the run through a spare row
    direct      the same, reading the picture itself wherever all taps lie inside it
    together    some blocks of many outputs are put together in the spare row, which is then copied out: a bank's, in
                passes of as many outputs as registers hold, and those that start on no cache line

So every sample is computed by the same instructions wherever tiles, strips and threads end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.emit import I64, SCALAR_BYTES, Value
from edgeconv.methods.cpu.frame import FunctionFrame
from edgeconv.methods.cpu.layout import (
    Argument,
    PassFields,
    TileFields,
    fetches_while_computing,
    reach,
    stored_per_pixel,
    tap_step,
)
from edgeconv.methods.cpu.lowering import Tap
from edgeconv.methods.cpu.passes import BankPasses
from edgeconv.methods.cpu.staging import RowStaging
from edgeconv.methods.cpu.storing import Storing
from edgeconv.methods.cpu.sums import Sums, every_tap

COPY_CHUNKS_BYTES = (64, 16, 1)


class Runs:
    """Writes the code that computes runs. `coming` holds the rows to ask for meanwhile, where that is worth it."""

    def __init__(self, frame: FunctionFrame, staging: RowStaging) -> None:
        self.frame, self.e, self.lowering, self.layout = frame, frame.e, frame.lowering, frame.layout
        self.staging, self.sums, self.storing = staging, Sums(frame), Storing(frame)
        self.coming: list[Value] = []

    def window(self, slots: list[Value]) -> Callable[[Tap], Value]:
        """Address of a tap for pixel 0 of the run, in the staged rows."""
        lowering, pitch = self.lowering, self.layout.pitch

        def base(tap: Tap) -> Value:
            phase, shift = tap.v % lowering.stride, tap.v // lowering.stride * tap_step(lowering)
            return self.e.address(
                slots[tap.u], lowering.staged, self.e.int64((tap.plane * lowering.phases + phase) * pitch + shift)
            )

        return base

    def columns(self, slots: list[Value]) -> Callable[[Tap], Value]:
        """Copy the run's samples of every tap into a separate row, and return those rows' addresses."""
        e, lowering, layout = self.e, self.lowering, self.layout
        window = self.window(slots)
        columns = self.frame.bytes_on(self.frame.scratch, e.int64(layout.columns_offset_bytes))

        def base(tap: Tap) -> Value:
            number = (tap.plane * KERNEL_SIZE + tap.u) * KERNEL_SIZE + tap.v
            return self.frame.bytes_on(columns, e.int64(number * layout.columns_pitch_bytes))

        lanes = layout.vector_bytes // SCALAR_BYTES[lowering.staged]
        for tap in every_tap(len(lowering.planes)):
            source, target = window(tap), base(tap)
            with e.count(e.int64(0), self.frame.tile[TileFields.OUT_COUNT], lanes) as x:
                vector = e.load(e.address(source, lowering.staged, x), lowering.staged, lanes)
                e.store(vector, e.address(target, lowering.staged, x), lowering.staged)
        return base

    def respond_row(self, base: Callable[[Tap], Value], out: Value) -> None:
        """Compute a run that stays in the caches."""
        e, block = self.e, self.layout.block_pixels
        count = self.frame.tile[TileFields.OUT_COUNT]
        with e.blocks(e.int64(0), count, block) as x:
            self._respond_block(base, x, self._out_at(out, x), aligned_bytes=None)
        is_short = e.block.icmp_signed("<", count, e.int64(block))
        self._respond_part(base, e.int64(0), e.int64(0), e.block.select(is_short, count, e.int64(0)), out)

    def respond_together(self, base: Callable[[Tap], Value], out: Value) -> None:
        """Compute a run by way of the spare row; a block may go beyond its end there."""
        e, layout, lowering = self.e, self.layout, self.lowering
        count = self.frame.tile[TileFields.OUT_COUNT]
        pixel_bytes = stored_per_pixel(lowering) * SCALAR_BYTES[lowering.stored]
        spare = self.frame.bytes_on(self.frame.scratch, e.int64(layout.spare_offset_bytes))
        if layout.bank is not None:
            taps = self._write_taps(base)
        with e.count(e.int64(0), count, layout.spare_pixels) as start:
            stop = e.minimum(e.block.add(start, e.int64(layout.spare_pixels)), count)
            target = self._out_at(out, start)
            within_line = e.block.and_(e.block.ptrtoint(target, I64), e.int64(CACHE_LINE_BYTES - 1))
            together = self.frame.bytes_on(spare, within_line)  # so that lines of both lie alike
            with e.count(start, stop, layout.block_pixels) as x:
                if fetches_while_computing(lowering, layout):
                    self.staging.fetch_coming(self.coming, x)
                place = self._out_at(together, e.block.sub(x, start))
                if layout.bank is None:
                    self._respond_block(base, x, place, aligned_bytes=None)
                else:
                    self._respond_passes(layout.bank, taps, x, place)
            size_bytes = e.block.mul(e.block.sub(stop, start), e.int64(pixel_bytes))
            self._copy_lines(together, target, size_bytes)

    def _write_taps(self, base: Callable[[Tap], Value]) -> Value:
        """Put the addresses of the taps of the first group for pixel 0 into a table, and return its own."""
        e = self.e
        table = self.frame.bytes_on(self.frame.scratch, e.int64(self.layout.taps_offset_bytes))
        for number, tap in enumerate(every_tap(len(self.lowering.planes))[: self.lowering.taps_per_response]):
            e.block.store(e.block.ptrtoint(base(tap), I64), e.address_of_int64(table, number))
        return table

    def _respond_passes(self, bank: BankPasses, taps: Value, x: Value, out: Value) -> None:
        """Compute the block of pixels at `x`, pass by pass over the outputs, and store it at `out`."""
        e, lowering = self.e, self.lowering
        assert lowering.bank is not None  # it has a layout
        table, weights = (self.frame.pointer(name) for name in (Argument.PASSES_ADDRESS, Argument.WEIGHTS_ADDRESS))
        of_a_direction = lowering.taps_per_response * bank.outputs
        of_a_pass = lowering.bank.directions * of_a_direction
        x_bytes = e.block.mul(x, e.int64(SCALAR_BYTES[lowering.staged]))
        with e.count(e.int64(0), e.int64(lowering.bank.groups * len(bank.starts))) as number:
            fields = e.address_of_int64(table, e.block.mul(number, e.int64(len(PassFields))))
            planes, first = (e.block.load(e.address_of_int64(fields, field), typ=I64) for field in PassFields)
            distance = e.block.add(planes, x_bytes)
            of_pass = e.block.mul(number, e.int64(of_a_pass))
            directions = [
                e.address(weights, lowering.sum, e.block.add(of_pass, e.int64(direction * of_a_direction)))
                for direction in range(lowering.bank.directions)
            ]
            for pixel, values in enumerate(self._bank_values(bank, taps, distance, directions)):
                for vector, value in enumerate(values):
                    place = e.block.add(first, e.int64(pixel * stored_per_pixel(lowering) + vector * bank.lanes))
                    e.store(value, e.address(out, lowering.stored, place), lowering.stored)

    def _bank_values(self, bank: BankPasses, taps: Value, distance: Value, weights: list[Value]) -> list[list[Value]]:
        """Stored samples of every pixel and register; of a maximum, only the largest response so far is held."""
        responses: list[list[list[Value]]] = []
        for of_direction in weights:
            sums = self.sums.bank_responses(bank, taps, distance, of_direction)
            if responses and self.lowering.combine == "maximum":
                (largest,) = responses
                sums = [list(map(self.storing.larger, *pair)) for pair in zip(largest, sums, strict=True)]
                responses.clear()
            responses.append(sums)
        return [
            [self.storing.samples(list(of_register)) for of_register in zip(*of_pixel, strict=True)]
            for of_pixel in zip(*responses, strict=True)
        ]

    def _copy_lines(self, source: Value, target: Value, size_bytes: Value) -> None:
        """Copy bytes that lie alike within cache lines; where stores go past the caches, whole lines do."""
        e = self.e
        if not self.lowering.streaming:
            self._copy_bytes(source, target, size_bytes)
            return
        address = e.block.ptrtoint(target, I64)
        to_line = e.block.and_(e.block.sub(e.int64(0), address), e.int64(CACHE_LINE_BYTES - 1))
        first = e.minimum(to_line, size_bytes)
        lines = e.block.and_(e.block.sub(size_bytes, first), e.int64(-CACHE_LINE_BYTES))
        last = e.block.add(first, lines)
        self._copy_bytes(source, target, first)
        step = self.layout.vector_bytes
        with e.count(first, last, CACHE_LINE_BYTES) as line:
            for part in range(0, CACHE_LINE_BYTES, step):
                at = e.block.add(line, e.int64(part))
                e.store(e.load(e.address(source, "u8", at), "u8", step), e.address(target, "u8", at), "u8", step)
        left = e.block.sub(size_bytes, last)
        self._copy_bytes(self.frame.bytes_on(source, last), self.frame.bytes_on(target, last), left)

    def respond_streaming(self, base: Callable[[Tap], Value], out: Value) -> None:
        """Compute a run whose whole cache lines go past the caches."""
        e = self.e
        count = self.frame.tile[TileFields.OUT_COUNT]
        first, last = self._respond_lines(base, e.int64(0), count, out)
        with self._either(first, e.block.sub(count, last)) as (at_start, length):
            self._respond_part(base, e.block.select(at_start, e.int64(0), last), e.int64(0), length, out)

    def respond_direct(self, picture: Callable[[Tap], Value], staged: Callable[[Tap], Value], out: Value) -> None:
        """The same, reading the picture wherever all taps lie inside it and staged borders elsewhere."""
        e, block = self.e, self.e.int64(self.layout.block_pixels)
        count = self.frame.tile[TileFields.OUT_COUNT]
        start = self.frame.tile[TileFields.GROUPS_START]
        stop = e.minimum(e.block.sub(self.frame.tile[TileFields.GROUPS_STOP], e.int64(reach(self.lowering))), count)
        first, last = self._respond_lines(picture, start, stop, out)
        with self._either(e.block.sub(first, start), e.block.sub(stop, last)) as (at_start, length):
            x = e.block.select(at_start, start, e.block.sub(stop, block))
            skipped = e.block.select(at_start, e.int64(0), e.block.sub(last, x))
            self._respond_part(picture, x, skipped, length, out)
        with self._either(start, e.block.sub(count, stop)) as (at_start, length):
            self._respond_part(staged, e.block.select(at_start, e.int64(0), stop), e.int64(0), length, out)

    def _respond_lines(
        self, base: Callable[[Tap], Value], start: Value, stop: Value, out: Value
    ) -> tuple[Value, Value]:
        """Compute the blocks between `start` and `stop` that begin on cache lines; returns where they do."""
        e, layout = self.e, self.layout
        first = e.block.add(start, self._pixels_to_line(self._out_at(out, start)))
        first = e.minimum(first, stop)
        blocks = e.block.sdiv(e.block.sub(stop, first), e.int64(layout.block_pixels))
        last = e.block.add(first, e.block.mul(blocks, e.int64(layout.block_pixels)))
        with e.count(first, last, layout.block_pixels) as x:
            if fetches_while_computing(self.lowering, layout):
                self.staging.fetch_coming(self.coming, x)
            self._respond_block(base, x, self._out_at(out, x), aligned_bytes=layout.vector_bytes)
        return first, last

    @contextmanager
    def _either(self, at_start: Value, at_end: Value) -> Iterator[tuple[Value, Value]]:
        """Do the same for both ends of a run: (whether it is the start, the length there).

        The ends are written sample by sample: a cached store to a line that is also stored past the caches throws
        the line out of them, which costs hundreds of cycles a row.
        """
        e = self.e
        with e.count(e.int64(0), e.int64(2)) as end:
            is_start = e.block.icmp_signed("==", end, e.int64(0))
            yield is_start, e.block.select(is_start, at_start, at_end)

    def _respond_part(self, base: Callable[[Tap], Value], x: Value, skipped: Value, count: Value, out: Value) -> None:
        """Of the block at `x`, store `count` pixels after the first `skipped`; `count` may be 0."""
        e, lowering = self.e, self.lowering
        spare = self.frame.bytes_on(self.frame.scratch, e.int64(self.layout.spare_offset_bytes))
        with e.block.if_then(e.block.icmp_signed(">", count, e.int64(0))):
            self._respond_block(base, x, spare, aligned_bytes=None)
            pixel_bytes = stored_per_pixel(lowering) * SCALAR_BYTES[lowering.stored]
            target = self._out_at(out, e.block.add(x, skipped))
            self._copy_bytes(self._out_at(spare, skipped), target, e.block.mul(count, e.int64(pixel_bytes)))

    def _out_at(self, out: Value, x: Value) -> Value:
        """Address of pixel `x` of the run that starts at `out`."""
        samples = self.e.block.mul(x, self.e.int64(stored_per_pixel(self.lowering)))
        return self.e.address(out, self.lowering.stored, samples)

    def _copy_bytes(self, source: Value, target: Value, size_bytes: Value) -> None:
        e = self.e
        start: Value = e.int64(0)
        for step in COPY_CHUNKS_BYTES:
            stop = e.block.and_(size_bytes, e.int64(-step))
            with e.count(start, stop, step) as at:
                e.store(e.load(e.address(source, "u8", at), "u8", step), e.address(target, "u8", at), "u8")
            start = stop

    def _pixels_to_line(self, out: Value) -> Value:
        """The first pixel whose stored samples start on a cache line.

        With n samples a line and c a pixel, c·x ≡ −address (mod n); c is odd and n a power of two, so c has an
        inverse modulo n.
        """
        e = self.e
        stored_bytes = SCALAR_BYTES[self.lowering.stored]
        samples_per_line = CACHE_LINE_BYTES // stored_bytes
        inverse = pow(stored_per_pixel(self.lowering), -1, samples_per_line)
        address = e.block.udiv(e.block.ptrtoint(out, I64), e.int64(stored_bytes))
        solution = e.block.mul(e.block.sub(e.int64(0), address), e.int64(inverse))
        return e.block.and_(solution, e.int64(samples_per_line - 1))

    def _respond_block(self, base: Callable[[Tap], Value], x: Value, out: Value, aligned_bytes: int | None) -> None:
        """Compute the block of pixels at `x` of the run and store it at `out`."""
        e, lowering, layout = self.e, self.lowering, self.layout
        lanes = min(layout.vector_bytes // SCALAR_BYTES[lowering.stored], layout.block_pixels)
        waiting: list[list[Value]] = []
        offset = 0
        for start in range(0, layout.block_pixels, layout.sum_pixels):
            here = e.block.add(x, e.int64(start)) if start else x
            waiting.append([self.storing.samples(responses) for responses in self.sums.responses(self._at(base, here))])
            if len(waiting) * layout.sum_pixels < lanes:
                continue
            for parts in zip(*(e.pieces(values, lanes) for values in zip(*waiting, strict=True)), strict=True):
                for vector in self.storing.interleaved(parts):
                    e.store(vector, e.address(out, lowering.stored, e.int64(offset)), lowering.stored, aligned_bytes)
                    offset += lanes
            waiting = []

    def _at(self, base: Callable[[Tap], Value], x: Value) -> Callable[[Tap], Value]:
        return lambda tap: self.e.address(base(tap), self.lowering.staged, x)
