"""From responses to stored samples: join the directions, round and clip, put the channels side by side.

The rules are those of filters.py and output.py, in vectors. Magnitudes are computed in float32 or float64, scaled where
squares could overflow, and by the whole square where a 16-bit sample needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce

from edgeconv.hardware.cpu import x86
from edgeconv.hardware.cpu.emit import UNSIGNED_MAX, Scalar, Value, is_float, splat
from edgeconv.methods.cpu.frame import FunctionFrame
from edgeconv.methods.cpu.layout import splits_bytes

BEYOND_16_BITS = 2**16


@dataclass(frozen=True)
class FloatScales:
    """Bits of a float type, as whole numbers of its length."""

    bits: Scalar
    exponent: int
    """Those of its exponent."""
    one_twice: int
    """What the bits of 2^k and of 2^-k add up to."""
    least: int
    largest: int
    """The bits of the powers of two that squares are scaled by; both have an inverse that is a normal number."""


SCALES_OF_FLOAT: dict[Scalar, FloatScales] = {
    "f32": FloatScales("i32", 0xFF << 23, 2 * 127 << 23, 2 << 23, 252 << 23),
    "f64": FloatScales("i64", 0x7FF << 52, 2 * 1023 << 52, 2 << 52, 2044 << 52),
}


class Storing:
    """Writes the code that makes samples of a block's responses."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.e, self.lowering, self.layout = frame.e, frame.lowering, frame.layout

    def samples(self, responses: list[Value]) -> Value:
        """The stored samples of one result, from its responses in every direction."""
        return self._stored(self._join(responses))

    def interleaved(self, results: tuple[Value, ...]) -> list[Value]:
        """Registers that hold the channels of pixels side by side, from one for each result (of the same pixels)."""
        rows = [[results[result]] for result in self.lowering.result_of_output]
        unit = 1
        while len(rows) % 2 == 0:  # neighbours in pairs, then pairs in pairs: fewer shuffles than all at once
            rows = [self._alternating([rows[i], rows[i + 1]], unit) for i in range(0, len(rows), 2)]
            unit *= 2
        return self._alternating(rows, unit)

    def _alternating(self, rows: list[list[Value]], unit: int) -> list[Value]:
        """`unit` samples of each row in turn; a row is several registers."""
        count, registers, lanes = len(rows), len(rows[0]), rows[0][0].type.count
        if count == 1:
            return rows[0]
        if unit >= lanes:
            wide = unit // lanes
            return [register for at in range(0, registers, wide) for row in rows for register in row[at : at + wide]]
        sources: dict[int, Value] = {id(register): register for row in rows for register in row}
        number_of = {key: number for number, key in enumerate(sources)}  # equal outputs are one register
        mixed = []
        for start in range(0, count * registers * lanes, lanes):
            picks = []
            for sample in range(start, start + lanes):
                turn, within = divmod(sample, unit)
                place = turn // count * unit + within
                register = rows[turn % count][place // lanes]
                picks.append((number_of[id(register)], place % lanes))
            mixed.append(self.e.shuffle(list(sources.values()), picks))
        return mixed

    def _join(self, responses: list[Value]) -> tuple[Value, Scalar]:
        """One value from all directions, and its type."""
        scalar = self.lowering.sum
        if self.lowering.combine == "magnitude":
            return self._length(responses[0], responses[1])
        if self.lowering.by_size:
            return self._largest_size([self._size(response, scalar) for response in responses], scalar), scalar
        return reduce(self.larger, responses), scalar

    def _largest_size(self, sizes: list[Value], scalar: Scalar) -> Value:
        """The largest of numbers from zero on; a NaN stays one.

        The bits of such floats are in the order of the numbers, as whole numbers, with infinity and NaN above all.
        """
        e = self.e
        if not is_float(scalar):
            return reduce(self.larger, sizes)
        bits = SCALES_OF_FLOAT[scalar].bits
        largest = reduce(partial(e.call, "llvm.smax", bits), [e.same_bits(size, bits) for size in sizes])
        return e.same_bits(largest, scalar)

    def _size(self, value: Value, scalar: Scalar) -> Value:
        return self.e.call("llvm.fabs" if is_float(scalar) else "llvm.abs", scalar, value)

    def larger(self, first: Value, second: Value) -> Value:
        """The larger of two responses; a NaN stays one."""
        e, scalar = self.e, self.lowering.sum
        if not is_float(scalar):
            return e.call("llvm.smax", scalar, first, second)
        above = e.block.fcmp_ordered(">", second, first)
        return e.block.select(e.block.or_(above, e.block.fcmp_unordered("uno", second, second)), second, first)

    def _length(self, first: Value, second: Value) -> tuple[Value, Scalar]:
        """sqrt(first² + second²), and its type."""
        e, scalar, lowering = self.e, self.lowering.sum, self.lowering
        if scalar == "f64":
            if lowering.source == "f64":
                return self._scaled_length(first, second, scalar), scalar
            return self._root_of_squares(first, second, scalar), scalar
        if scalar == "i16" and lowering.stored == "u8" and self.layout.is_x86:
            return self._length_for_bytes(first, second), scalar
        if scalar == "i32" and lowering.stored == "u16":
            return self._whole_length(first, second), scalar
        gx, gy = (e.convert(response, scalar, "f32") for response in (first, second))
        if is_float(scalar) and is_float(lowering.stored):
            return self._scaled_length(gx, gy, "f32"), "f32"
        return self._root_of_squares(gx, gy, "f32"), "f32"

    def _root_of_squares(self, first: Value, second: Value, scalar: Scalar) -> Value:
        e = self.e
        square = e.call("llvm.fmuladd", scalar, first, first, e.block.fmul(second, second))
        return e.call("llvm.sqrt", scalar, square)

    def _length_for_bytes(self, first: Value, second: Value) -> Value:
        """The length of two 16-bit numbers, rounded: right up to 255, and above 255 where it should be.

        It takes no square root, which is slow and right to 24 bits. Below 256 the root of a whole number is no closer
        to a half than 0.125 / 255.5, a relative 2^-19: one step of Newton's method from an estimate of 11 bits, which
        leaves 2^-21, is rounded to the same byte.
        """
        e, register_bytes = self.e, self.layout.vector_bytes
        halves = []
        for whole in x86.squares_of_pairs(e, first, second, register_bytes):
            square, lanes = e.convert(whole, "i32", "f32"), whole.type.count
            inverse = x86.inverse_root(e, e.larger(square, splat("f32", lanes, 1.0), "f32"), register_bytes)
            root = e.block.fmul(square, inverse)
            left = e.call("llvm.fmuladd", "f32", e.block.fneg(root), root, square)
            root = e.call("llvm.fmuladd", "f32", left, e.block.fmul(inverse, splat("f32", lanes, 0.5)), root)
            halves.append(e.round_to_int(root, "f32"))
        return x86.join_halves(e, halves, register_bytes)

    def _scaled_length(self, first: Value, second: Value, scalar: Scalar) -> Value:
        """The length of two floats; scaled by a power of two, so that squares neither overflow nor vanish.

        Where they would do neither, the result is that of the plain formula, bit for bit.
        """
        e, lanes, scales = self.e, first.type.count, SCALES_OF_FLOAT[scalar]
        whole = scales.bits
        bits = (
            e.block.and_(e.same_bits(value, whole), splat(whole, lanes, scales.exponent)) for value in (first, second)
        )
        exponent = e.call("llvm.smax", whole, *bits)
        scale = e.call("llvm.smin", whole, exponent, splat(whole, lanes, scales.largest))
        scale = e.call("llvm.smax", whole, scale, splat(whole, lanes, scales.least))
        down = e.same_bits(e.block.sub(splat(whole, lanes, scales.one_twice), scale), scalar)
        root = self._root_of_squares(e.block.fmul(first, down), e.block.fmul(second, down), scalar)
        return e.block.fmul(root, e.same_bits(scale, scalar))

    def _whole_length(self, first: Value, second: Value) -> Value:
        """The nearest whole number to the length of two whole numbers, up to 65,536, as int32.

        float32 does not hold its square, so the estimate may be one off near a half. What is left of the square tells,
        and int32 holds that although it does not hold the square.
        """
        e, lanes = self.e, first.type.count
        beyond, nothing = splat("f32", lanes, BEYOND_16_BITS), splat("i32", lanes, 0)
        gx, gy = (e.convert(response, "i32", "f32") for response in (first, second))
        estimate = self._root_of_squares(gx, gy, "f32")
        is_beyond = e.block.fcmp_ordered(">=", estimate, beyond)
        length = e.round_to_int(e.block.select(is_beyond, beyond, estimate), "f32")
        square = e.block.add(e.block.mul(first, first), e.block.mul(second, second))
        longer = e.block.add(length, splat("i32", lanes, 1))
        left = e.block.sub(square, e.block.mul(length, longer))
        shorter = e.block.sub(length, splat("i32", lanes, 1))
        is_long = e.block.icmp_signed("<=", left, e.block.sub(nothing, e.block.add(length, length)))
        is_long = e.block.and_(is_long, e.block.icmp_signed(">", length, nothing))
        corrected = e.block.select(is_long, shorter, length)
        corrected = e.block.select(e.block.icmp_signed(">", left, nothing), longer, corrected)
        return e.block.select(is_beyond, splat("i32", lanes, BEYOND_16_BITS), corrected)

    def _stored(self, value_and_type: tuple[Value, Scalar]) -> Value:
        """The output mode's rule (output.py)."""
        value, scalar = value_and_type
        lowering, e, lanes = self.lowering, self.e, value.type.count
        if lowering.output_mode == "abs" and not lowering.never_negative:
            value = self._size(value, scalar)
        if is_float(lowering.stored):
            return e.convert(value, scalar, lowering.stored)
        white, black = splat(scalar, lanes, UNSIGNED_MAX[lowering.stored]), splat(scalar, lanes, 0)
        if is_float(scalar):
            value = e.block.select(e.block.fcmp_ordered("<", value, white), value, white)
            if lowering.output_mode == "clip" and not lowering.never_negative:
                value = e.block.select(e.block.fcmp_ordered(">", value, black), value, black)
            return self._narrowed(e.round_to_int(value, scalar))
        if lowering.output_mode == "clip" and not lowering.never_negative:
            value = e.call("llvm.smax", scalar, value, black)
        return self._narrowed(e.call("llvm.umin", scalar, value, white))

    def _narrowed(self, value: Value) -> Value:
        """Whole numbers that fit, as stored."""
        if splits_bytes(self.lowering, self.layout):
            return self.e.join_bytes(self.e.narrow(value, "u16"))
        return self.e.narrow(value, self.lowering.stored)
