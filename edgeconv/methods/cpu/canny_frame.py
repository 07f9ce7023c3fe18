"""What every function of Canny's code works with: arguments, a worker's scratch, rows and bits by their addresses."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from llvmlite.ir.instructions import StoreAtomicInstr

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.emit import I32, I64, POINTER, SCALAR_BYTES, Emitter, Value
from edgeconv.methods.cpu.canny_layout import (
    INT32_BYTES,
    PARITIES,
    STATE_FIELDS,
    SUM_TYPE,
    WORD_BYTES,
    CannyArgument,
    CannyShape,
    StripState,
)


class CannyFrame:
    """One function over (arguments, worker, ...) while it is written."""

    def __init__(self, module: ir.Module, name: str, shape: CannyShape, more: Sequence[ir.Type]) -> None:
        self.shape = shape
        self.e = Emitter(module, name, [POINTER, I64, *more])
        self.arguments, self.worker, *self.more = self.e.function.args
        self._known: dict[CannyArgument, Value] = {}
        # Read once at the start: no pass moves a load out of a loop.
        for argument in CannyArgument:
            self._known[argument] = self.e.block.load(self.argument_address(argument), typ=I64)
        scratch = self.e.block.mul(self.worker, self[CannyArgument.SCRATCH_BYTES])
        self.scratch = self.bytes_on(self.pointer(CannyArgument.SCRATCH_ADDRESS), scratch)

    def __getitem__(self, argument: CannyArgument) -> Value:
        """The argument of that name, as int64."""
        return self._known[argument]

    def argument_address(self, argument: CannyArgument) -> Value:
        """Where the argument stands."""
        return self.e.address_of_int64(self.arguments, argument)

    def pointer(self, argument: CannyArgument) -> Value:
        """The address that the argument of that name holds."""
        return self.e.block.inttoptr(self[argument], POINTER)

    def bytes_on(self, base: Value, offset_bytes: Value | int) -> Value:
        """The address so many bytes on."""
        offset = self.e.int64(offset_bytes) if isinstance(offset_bytes, int) else offset_bytes
        return self.e.address(base, "u8", offset)

    def table(self, argument: CannyArgument, index: Value | int) -> Value:
        """An element of a table of int32, as int64."""
        e = self.e
        place = e.int64(index) if isinstance(index, int) else index
        return e.block.sext(e.block.load(e.address(self.pointer(argument), "i32", place), typ=I32), I64)

    # --- rows -----------------------------------------------------------------------------------------------------

    def raw_plane(self, slot: Value, channel: int) -> Value:
        """Address of pixel 0 of a channel in a slot of `raw`."""
        return self._plane(self.e.int64(0), slot, channel)

    def staged_plane(self, slot: Value, channel: int) -> Value:
        """Address of pixel 0 of a channel in a slot of `staged`."""
        return self._plane(self[CannyArgument.STAGED_OFFSET], slot, channel)

    def _plane(self, section: Value, slot: Value, channel: int) -> Value:
        e, shape = self.e, self.shape
        number = e.block.add(e.block.mul(slot, e.int64(shape.channels)), e.int64(channel))
        start = e.block.add(section, e.block.mul(number, self[CannyArgument.PLANE_BYTES]))
        return self.bytes_on(self.bytes_on(self.scratch, start), shape.block * SCALAR_BYTES[shape.source])

    def sums(self) -> list[Value]:
        """Addresses of the vertical sums of pixels 0 and 1."""
        spare = self.shape.half * SCALAR_BYTES[SUM_TYPE[self.shape.source]]
        start = self.bytes_on(self.scratch, self[CannyArgument.SUMS_OFFSET])
        parts = [self.e.block.mul(self[CannyArgument.SUMS_BYTES], self.e.int64(parity)) for parity in range(PARITIES)]
        return [self.bytes_on(self.bytes_on(start, part), spare) for part in parts]

    def codes(self, row: Value) -> list[Value]:
        """Addresses of the codes of pixels 0 and 1 of a row; -1 is the row above the picture."""
        e, shape = self.e, self.shape
        slot = e.block.srem(e.block.add(row, e.int64(KERNEL_SIZE)), e.int64(KERNEL_SIZE))
        start = self.bytes_on(self.scratch, self[CannyArgument.RING_OFFSET])
        numbers = [e.block.add(e.block.mul(slot, e.int64(PARITIES)), e.int64(parity)) for parity in range(PARITIES)]
        parts = [e.block.mul(self[CannyArgument.RING_BYTES], number) for number in numbers]
        return [self.bytes_on(self.bytes_on(start, part), shape.half * SCALAR_BYTES[shape.code]) for part in parts]

    # --- bits -----------------------------------------------------------------------------------------------------

    def pitch(self) -> Value:
        """Words from one bit row to the next."""
        return self.e.block.add(self[CannyArgument.WORDS], self.e.int64(2))

    def strip_bits(self, bits: CannyArgument, strip: Value) -> Value:
        """Address of bit row 0 of a strip."""
        return self.e.address_of_int64(self.pointer(bits), self.e.block.mul(strip, self[CannyArgument.STRIP_WORDS]))

    def rows_of(self, strip: Value) -> tuple[Value, Value]:
        """The first row of a strip, and how many it has."""
        e = self.e
        start = e.block.mul(strip, self[CannyArgument.STRIP_ROWS])
        left = e.block.sub(self[CannyArgument.HEIGHT], start)
        return start, e.minimum(self[CannyArgument.STRIP_ROWS], left)

    def state(self, field: StripState, strip: Value) -> Value:
        """A field of a strip's state; what its writer wrote before it is seen after it."""
        return self.e.block.load_atomic(self._state(field, strip), "seq_cst", INT32_BYTES, typ=I32)

    def exchange(self, field: StripState, strip: Value, value: Value) -> Value:
        """Replace a field of a strip's state, and give what stood there before."""
        return self.e.block.atomic_rmw("xchg", self._state(field, strip), value, "seq_cst")

    def is_ready(self, strip: Value) -> Value:
        """Whether the strip's rows have been done in this run."""
        run = self.e.block.trunc(self[CannyArgument.RUN], I32)
        return self.e.block.icmp_signed("==", self.state(StripState.READY, strip), run)

    def _state(self, field: StripState, strip: Value) -> Value:
        e = self.e
        place = e.block.add(e.block.mul(strip, e.int64(STATE_FIELDS)), e.int64(field))
        return e.address(self.pointer(CannyArgument.STATES_ADDRESS), "i32", place)

    def shared_word(self, address: Value) -> Value:
        """A word that another thread may write meanwhile."""
        return self.e.block.load_atomic(address, "monotonic", WORD_BYTES, typ=I64)

    def put_shared(self, value: Value, address: Value, order: str = "monotonic") -> None:
        """Write a word that another thread may read meanwhile."""
        # llvmlite's own store_atomic asks for the type that a pointer points to, which pointers have no more.
        stored = StoreAtomicInstr(self.e.block.block, value, address, order, value.type.width // 8)
        self.e.block._insert(stored)
