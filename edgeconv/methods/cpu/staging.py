"""Stage a source row: bring what the taps read of it into a scratch row.

Channels apart (or summed, where the lowering is collapsed), horizontal phases of the stride apart, borders filled in.
Inside the picture whole vectors are taken apart by shuffles; the borders, and rows too short or strided too wide for
vectors, go one by one, as a table of picks says.
"""

from __future__ import annotations

from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.emit import I32, I64, SCALAR_BYTES, Value, is_float, splat
from edgeconv.methods.cpu.apart import every, loaded_in_parts, part_lanes
from edgeconv.methods.cpu.frame import FunctionFrame
from edgeconv.methods.cpu.layout import (
    WIDEST_VECTOR_STRIDE,
    Argument,
    Pick,
    TileFields,
    channels_per_pixel,
    fetches_while_computing,
    source_bytes_per_position,
)

FETCH_AHEAD_BYTES = 4096
"""Distance of prefetches while staging: measured, docs/cpu-engine.md."""


class RowStaging:
    """Writes the code that stages rows, and that asks for the rows to come."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.frame, self.e, self.lowering, self.layout = frame, frame.e, frame.lowering, frame.layout

    def stage_row(self, padded_row: Value) -> None:
        """Stage one row of the padded picture; a row outside it stays what the zero row is."""
        e = self.e
        source_row = self.frame.source_row(padded_row)
        with e.block.if_then(e.block.icmp_signed("!=", source_row, e.int64(OUTSIDE))):
            row = e.address(
                self.frame.pointer(Argument.IMAGE_ADDRESS),
                self.lowering.source,
                e.block.mul(source_row, self.frame.argument(Argument.IMAGE_ROW_SAMPLES)),
            )
            slot = self.frame.slot_of(padded_row)
            if self.lowering.stride <= WIDEST_VECTOR_STRIDE:
                self._stage_groups(row, slot)
            self._stage_picks(row, slot)

    def _stage_groups(self, row: Value, slot: Value) -> None:
        """Vectors of groups; a group is `stride` whole pixels and gives one position of every phase."""
        e, lowering = self.e, self.lowering
        lanes = self.layout.vector_bytes // SCALAR_BYTES[lowering.source]
        channels = channels_per_pixel(lowering)
        start, stop = self.frame.tile[TileFields.GROUPS_START], self.frame.tile[TileFields.GROUPS_STOP]
        # Where taps read the picture itself, only the vectors next to the borders are wanted: the first and the last.
        step: Value | int = lanes
        if lowering.direct:
            step = e.maximum(e.block.sub(stop, e.block.add(start, e.int64(lanes))), e.int64(1))
        with e.blocks(start, stop, lanes, step) as group:
            pixel = e.block.add(
                self.frame.tile[TileFields.SOURCE_START],
                e.block.mul(e.block.sub(group, start), e.int64(lowering.stride)),
            )
            first = e.address(row, lowering.source, e.block.mul(pixel, e.int64(channels)))
            if lowering.streaming and not fetches_while_computing(lowering, self.layout):
                for line in range(0, lanes * source_bytes_per_position(lowering), CACHE_LINE_BYTES):
                    e.prefetch(self.frame.bytes_on(first, e.int64(FETCH_AHEAD_BYTES + line)))
            part = part_lanes(self.layout.vector_bytes, lowering.source)
            loaded = loaded_in_parts(e, first, lowering.source, channels * lowering.stride, lanes, part)
            by_channel = [every(e, loaded, channel, channels, part) for channel in range(channels)]
            for phase in range(lowering.phases):
                picked = [every(e, vectors, phase, lowering.stride, part)[0] for vectors in by_channel]
                samples = [e.convert(vector, lowering.source, lowering.staged) for vector in picked]
                self._put_planes(slot, e.block.add(group, e.int64(phase * self.layout.pitch)), samples)

    def _put_planes(self, slot: Value, position: Value, samples: list[Value]) -> None:
        """Sum the channels of each plane, with their shares if they have any, and store them at `position`."""
        e, lowering = self.e, self.lowering
        if lowering.shares:
            samples = [self._weighted(samples)]
        for number, channels in enumerate(lowering.planes if not lowering.shares else ((0,),)):
            total = samples[channels[0]]
            for channel in channels[1:]:
                add = e.block.fadd if is_float(lowering.staged) else e.block.add
                total = add(total, samples[channel])
            plane = e.int64(number * lowering.phases * self.layout.pitch)
            e.store(total, e.address(slot, lowering.staged, e.block.add(position, plane)), lowering.staged)

    def _weighted(self, samples: list[Value]) -> Value:
        """The one plane of `weighted channel`."""
        e, scalar = self.e, self.lowering.staged
        total: Value | None = None
        for sample, share in zip(samples, self.lowering.shares, strict=True):
            factor = splat(scalar, sample.type.count, share)
            if total is None:
                total = e.block.fmul(sample, factor)
            else:
                total = e.call("llvm.fmuladd", scalar, sample, factor, total)
        return total

    def _stage_picks(self, row: Value, slot: Value) -> None:
        """The borders, and all of a row too short for vectors or strided too wide."""
        e, lowering = self.e, self.lowering
        table = self.frame.pointer(Argument.PICKS_ADDRESS)
        channels = channels_per_pixel(lowering)
        nothing = splat(lowering.staged, 1, 0)
        with e.count(self.frame.tile[TileFields.PICKS_START], self.frame.tile[TileFields.PICKS_STOP]) as number:
            pick = e.address(table, "i32", e.block.mul(number, e.int64(len(Pick))))
            position, source = (
                e.block.sext(e.block.load(e.address(pick, "i32", e.int64(field)), typ=I32), I64) for field in Pick
            )
            outside = e.block.icmp_signed("==", source, e.int64(OUTSIDE))
            pixel = e.block.select(outside, e.int64(0), source)
            samples = []
            for channel in range(channels):
                index = e.block.add(e.block.mul(pixel, e.int64(channels)), e.int64(channel))
                loaded = e.convert(
                    e.load(e.address(row, lowering.source, index), lowering.source, 1), lowering.source, lowering.staged
                )
                samples.append(e.block.select(outside, nothing, loaded))
            self._put_planes(slot, position, samples)

    def coming_rows(self, padded_row: Value) -> list[Value]:
        """Where the source rows that the next output row stages begin, for this tile."""
        e, lowering = self.e, self.lowering
        rows = []
        for ahead in range(min(lowering.stride, KERNEL_SIZE)):
            skipped = max(0, lowering.stride - KERNEL_SIZE)
            source_row = self.frame.source_row(e.block.add(padded_row, e.int64(skipped + ahead)))
            inside = e.maximum(source_row, e.int64(0))
            start = e.block.add(
                e.block.mul(inside, self.frame.argument(Argument.IMAGE_ROW_SAMPLES)),
                e.block.mul(self.frame.tile[TileFields.SOURCE_START], e.int64(channels_per_pixel(lowering))),
            )
            rows.append(e.address(self.frame.pointer(Argument.IMAGE_ADDRESS), lowering.source, start))
        return rows

    def fetch_coming(self, coming: list[Value], x: Value) -> None:
        """Ask for the part of the coming rows that the block at `x` stands over, while this block computes."""
        e, lowering, layout = self.e, self.lowering, self.layout
        block_bytes = source_bytes_per_position(lowering) * layout.block_pixels
        for row in coming:
            first = self.frame.bytes_on(row, e.block.mul(x, e.int64(source_bytes_per_position(lowering))))
            for line in range(0, block_bytes, CACHE_LINE_BYTES):
                e.prefetch(self.frame.bytes_on(first, e.int64(line)))
