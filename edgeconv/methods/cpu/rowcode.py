"""The machine code of one lowering, written as LLVM IR: what one thread does with the units of work that it is given.

A unit is a tile: `strip_rows` output rows of up to `tile_pixels` output pixels; or, where the layout is `row_by_row`, a
strip of whole rows, each tile by tile. For each output row of a tile

    stage      the source rows that it needs and that are not there yet go into scratch rows (staging.py)
    columns    im2col alone: the staged samples are copied out, one column row for each tap (runs.py)
    respond    vectors of pixels, or of a bank's outputs: load taps, multiply, add (sums.py), in passes (passes.py)
    store      join, round, clip, put the channels side by side again (storing.py)

A run of pixels is done in blocks of one length (runs.py); where rows lie is said in layout.py.
"""

from __future__ import annotations

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.emit import I64, Value
from edgeconv.methods.cpu.frame import ALONE, ENTRY_POINT, FunctionFrame
from edgeconv.methods.cpu.layout import Argument, RowLayout, TileFields, fetches_while_computing, stored_per_pixel
from edgeconv.methods.cpu.lowering import Lowering
from edgeconv.methods.cpu.runs import Runs
from edgeconv.methods.cpu.staging import RowStaging

__all__ = ["ALONE", "ENTRY_POINT", "write"]


def write(lowering: Lowering, layout: RowLayout) -> str:
    """LLVM IR of `void work(int64 *arguments, int64 worker, int64 first_unit, int64 stop_unit)`, and of
    `void alone(int64 *arguments)`, which does all units by worker 0.
    """
    return _Writer(lowering, layout).write()


class _Writer:
    """The loops around staging and runs."""

    def __init__(self, lowering: Lowering, layout: RowLayout) -> None:
        self.frame = FunctionFrame(lowering, layout)
        self.e, self.lowering, self.layout = self.frame.e, lowering, layout
        self.staging = RowStaging(self.frame)
        self.runs = Runs(self.frame, self.staging)

    def write(self) -> str:
        e = self.e
        with e.count(self.frame.first_unit, self.frame.stop_unit) as unit:
            if self.layout.row_by_row:
                self._strip_by_rows(unit)
            else:
                tiles = self._tiles()
                self._tile_of_strip(e.block.sdiv(unit, tiles), e.block.srem(unit, tiles))
        if self.lowering.streaming:
            e.block.fence("seq_cst")  # stores past the caches are seen by others only after a fence
        e.block.ret_void()
        self.frame.write_alone()
        return str(e.module)

    def _tile_of_strip(self, strip: Value, tile: Value) -> None:
        """A unit of work: the rows of a tile, one below the other; what two of them read is staged once."""
        e = self.e
        self.frame.load_tile(tile)
        start, stop = self._rows_of(strip)
        next_to_stage = e.variable(e.int64(0))
        e.block.store(e.block.mul(start, e.int64(self.lowering.stride)), next_to_stage)
        with e.count(start, stop) as y:
            first, after = self._source_rows_of(y)
            self._stage(e.maximum(first, e.block.load(next_to_stage, typ=I64)), after)
            e.block.store(after, next_to_stage)
            self._respond_at(y)

    def _strip_by_rows(self, strip: Value) -> None:
        """A unit of work: whole rows, tile by tile, where no two rows read the same."""
        e = self.e
        with e.count(*self._rows_of(strip)) as y, e.count(e.int64(0), self._tiles()) as tile:
            self.frame.load_tile(tile)
            self._stage(*self._source_rows_of(y))
            self._respond_at(y)

    def _tiles(self) -> Value:
        return self.frame.argument(Argument.TILES_PER_STRIP)

    def _rows_of(self, strip: Value) -> tuple[Value, Value]:
        """First output row of a strip, and the one after its last."""
        e, strip_rows = self.e, self.frame.argument(Argument.STRIP_ROWS)
        start = e.block.mul(strip, strip_rows)
        return start, e.minimum(e.block.add(start, strip_rows), self.frame.argument(Argument.OUT_ROWS))

    def _source_rows_of(self, y: Value) -> tuple[Value, Value]:
        """First padded row that output row `y` reads, and the one after its last."""
        first = self.e.block.mul(y, self.e.int64(self.lowering.stride))
        return first, self.e.block.add(first, self.e.int64(KERNEL_SIZE))

    def _stage(self, first: Value, after: Value) -> None:
        with self.e.count(first, after) as row:
            self.staging.stage_row(row)

    def _respond_at(self, y: Value) -> None:
        """Compute the tile's part of output row `y`, whose source rows are staged."""
        e = self.e
        first, after = self._source_rows_of(y)
        slots = [self.frame.slot_of(e.block.add(first, e.int64(u))) for u in range(KERNEL_SIZE)]
        if fetches_while_computing(self.lowering, self.layout):
            self.runs.coming = self.staging.coming_rows(after)
        row_start = e.block.mul(y, self.frame.argument(Argument.OUT_ROW_SAMPLES))
        run_start = e.block.mul(self.frame.tile[TileFields.OUT_START], e.int64(stored_per_pixel(self.lowering)))
        out = e.address(
            self.frame.pointer(Argument.OUT_ADDRESS), self.lowering.stored, e.block.add(row_start, run_start)
        )
        self._respond(first, slots, out)

    def _respond(self, first: Value, slots: list[Value], out: Value) -> None:
        """Compute the tile's part of an output row; `first` is the padded row of its first tap."""
        e = self.e
        if self.lowering.direct:
            rows = [self.frame.picture_row(e.block.add(first, e.int64(u))) for u in range(KERNEL_SIZE)]
            self.runs.respond_direct(self.runs.window(rows), self.runs.window(slots), out)
            return
        base = self.runs.columns(slots) if self.layout.columns else self.runs.window(slots)
        if self.layout.spare_pixels:
            self.runs.respond_together(base, out)
        elif self.lowering.streaming:
            self.runs.respond_streaming(base, out)
        else:
            self.runs.respond_row(base, out)
