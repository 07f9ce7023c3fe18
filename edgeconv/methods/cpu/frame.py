"""What every part of the generated function works with: emitter, arguments, the tile under way, scratch rows."""

from __future__ import annotations

from llvmlite import ir

from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE
from edgeconv.hardware.cpu.emit import I32, I64, POINTER, Emitter, Value
from edgeconv.methods.cpu.layout import ZERO_SLOT, Argument, RowLayout, TileFields
from edgeconv.methods.cpu.lowering import Lowering

ENTRY_POINT, ALONE = "work", "alone"


class FunctionFrame:
    """The function `work` of rowcode.py while it is written."""

    def __init__(self, lowering: Lowering, layout: RowLayout) -> None:
        self.lowering, self.layout = lowering, layout
        self.e = Emitter(ir.Module(name="edgeconv"), ENTRY_POINT, [POINTER, I64, I64, I64])
        self.arguments, worker, self.first_unit, self.stop_unit = self.e.function.args
        self.tile: dict[TileFields, Value] = {}
        scratch = self.pointer(Argument.SCRATCH_ADDRESS)
        self.scratch = self.bytes_on(scratch, self.e.block.mul(worker, self.e.int64(layout.scratch_bytes)))

    def write_alone(self) -> None:
        """Beside `work`, a function that does all units by worker 0: one argument is the fastest call from Python."""
        alone = Emitter(self.e.module, ALONE, [POINTER])
        (arguments,) = alone.function.args
        units = alone.block.load(alone.address_of_int64(arguments, Argument.UNITS), typ=I64)
        alone.block.call(self.e.function, [arguments, alone.int64(0), alone.int64(0), units])
        alone.block.ret_void()

    def argument(self, name: Argument) -> Value:
        """The argument of that name, as int64."""
        return self.e.block.load(self.e.address_of_int64(self.arguments, name), typ=I64)

    def pointer(self, name: Argument) -> Value:
        """The address that the argument of that name holds."""
        return self.e.block.inttoptr(self.argument(name), POINTER)

    def bytes_on(self, base: Value, offset_bytes: Value) -> Value:
        """The address so many bytes on."""
        return self.e.address(base, "u8", offset_bytes)

    def load_tile(self, tile: Value) -> None:
        """Take up the fields of tile number `tile`."""
        e = self.e
        fields = e.address_of_int64(self.pointer(Argument.TILES_ADDRESS), e.block.mul(tile, e.int64(len(TileFields))))
        self.tile = {name: e.block.load(e.address_of_int64(fields, name), typ=I64) for name in TileFields}

    def source_row(self, padded_row: Value) -> Value:
        """Source row of a padded row as int64, or OUTSIDE."""
        e = self.e
        table = self.pointer(Argument.SOURCE_ROWS_ADDRESS)
        return e.block.sext(e.block.load(e.address(table, "i32", padded_row), typ=I32), I64)

    def slot_of(self, padded_row: Value) -> Value:
        """Address of the staged row, or of the zero row."""
        e = self.e
        outside = e.block.icmp_signed("==", self.source_row(padded_row), e.int64(OUTSIDE))
        ring = e.block.srem(padded_row, e.int64(KERNEL_SIZE))
        slot = e.block.select(outside, e.int64(ZERO_SLOT), ring)
        return self.bytes_on(self.scratch, e.block.mul(slot, e.int64(self.layout.slot_bytes)))

    def picture_row(self, padded_row: Value) -> Value:
        """Address in the picture that stands for position 0 of the tile in a padded row, or of the zero row."""
        e = self.e
        source_row = self.source_row(padded_row)
        outside = e.block.icmp_signed("==", source_row, e.int64(OUTSIDE))
        start = e.block.add(
            e.block.mul(e.maximum(source_row, e.int64(0)), self.argument(Argument.IMAGE_ROW_SAMPLES)),
            e.block.sub(self.tile[TileFields.SOURCE_START], self.tile[TileFields.GROUPS_START]),
        )
        row = e.address(self.pointer(Argument.IMAGE_ADDRESS), self.lowering.source, start)
        return e.block.select(outside, self.slot_of(padded_row), row)
