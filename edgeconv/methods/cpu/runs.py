"""Compute a run of pixels: in blocks of one length, and what is left over at its ends.

    row         a run that stays in the caches; the last block is moved back to end where the run ends
    streaming   whole cache lines go past the caches, the ends of the run through a spare row
    direct      the same, reading the picture itself wherever all taps lie inside it

So every sample is computed by the same instructions wherever tiles, strips and threads end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.emit import I64, Value
from edgeconv.hardware.cpu.jit import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.scalars import SCALAR_BYTES
from edgeconv.methods.cpu.frame import FunctionFrame
from edgeconv.methods.cpu.layout import (
    TileFields,
    fetches_while_computing,
    reach,
    stored_per_pixel,
    tap_step,
)
from edgeconv.methods.cpu.lowering import Tap
from edgeconv.methods.cpu.staging import RowStaging
from edgeconv.methods.cpu.storing import Storing
from edgeconv.methods.cpu.sums import Sums, every_tap

COPY_CHUNK_BYTES = 16


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
        with self.frame.blocks(e.int64(0), count, block) as x:
            self._respond_block(base, x, self._out_at(out, x), aligned_bytes=None)
        is_short = e.block.icmp_signed("<", count, e.int64(block))
        self._respond_part(base, e.int64(0), e.int64(0), e.block.select(is_short, count, e.int64(0)), out)

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
        chunked = e.block.and_(size_bytes, e.int64(-COPY_CHUNK_BYTES))
        for start, stop, step in ((e.int64(0), chunked, COPY_CHUNK_BYTES), (chunked, size_bytes, 1)):
            with e.count(start, stop, step) as at:
                e.store(e.load(e.address(source, "u8", at), "u8", step), e.address(target, "u8", at), "u8")

    def _pixels_to_line(self, out: Value) -> Value:
        """The first pixel whose stored samples start on a cache line.

        With n samples a line and c a pixel, c·x ≡ −address (mod n); c is 1 or 3 and n a power of two, so c has
        an inverse modulo n.
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
        values = [
            self.storing.samples(responses)
            for responses in self.sums.responses(lambda tap: e.address(base(tap), lowering.staged, x))
        ]
        lanes = min(layout.vector_bytes // SCALAR_BYTES[lowering.stored], layout.block_pixels)
        channels = stored_per_pixel(lowering)
        pieces = [e.slices(value, lanes) for value in values]
        for number, parts in enumerate(zip(*pieces, strict=True)):
            for channel_part in range(channels):
                vector = parts[0] if channels == 1 else self.storing.interleaved(parts, channel_part, lanes)
                offset = e.int64((number * channels + channel_part) * lanes)
                e.store(vector, e.address(out, lowering.stored, offset), lowering.stored, aligned_bytes)
