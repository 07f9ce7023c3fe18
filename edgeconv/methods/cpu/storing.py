"""From responses to stored samples: join the directions, round and clip, put the channels side by side.

The rules are those of filters.py and output.py, in vectors. Magnitudes are computed in float32, scaled where squares
could overflow, and by the whole square where a 16-bit sample needs it.
"""

from __future__ import annotations

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.hardware.cpu.emit import UNSIGNED_MAX, Value, is_float, splat
from edgeconv.hardware.cpu.scalars import Scalar
from edgeconv.methods.cpu.frame import FunctionFrame

BEYOND_16_BITS = 2**16
EXPONENT_BITS, ONE_TWICE = 0x7F800000, 0x7F000000
"""Of a float32: its exponent; what the bits of 2^k and of 2^-k add up to."""
LEAST_SCALE, LARGEST_SCALE = 0x01000000, 0x7E000000


class Storing:
    """Writes the code that makes samples of a block's responses."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.e, self.lowering, self.layout = frame.e, frame.lowering, frame.layout

    def samples(self, responses: list[Value]) -> Value:
        """The stored samples of one result, from its responses in every direction."""
        return self._stored(self._join(responses))

    def interleaved(self, results: tuple[Value, ...], part: int, lanes: int) -> Value:
        """Register `part` of three that hold the channels of `lanes` pixels side by side."""
        samples = range(part * lanes, (part + 1) * lanes)
        picks = [(self.lowering.result_of_output[i % RGB_CHANNELS], i // RGB_CHANNELS) for i in samples]
        return self.e.shuffle(results, picks)

    def _join(self, responses: list[Value]) -> tuple[Value, Scalar]:
        """One value from all directions, and its type."""
        e, scalar = self.e, self.lowering.sum
        if self.lowering.combine == "magnitude":
            return self._length(responses[0], responses[1])
        joined = responses[0]
        for response in responses[1:]:
            if is_float(scalar):  # a NaN stays one
                above = e.block.fcmp_ordered(">", response, joined)
                taken = e.block.or_(above, e.block.fcmp_unordered("uno", response, response))
                joined = e.block.select(taken, response, joined)
            else:
                joined = e.call("llvm.smax", scalar, joined, response)
        return joined, scalar

    def _length(self, first: Value, second: Value) -> tuple[Value, Scalar]:
        """sqrt(first² + second²), and its type."""
        e, scalar, lowering = self.e, self.lowering.sum, self.lowering
        if scalar == "f64":
            return self._root_of_squares(first, second, scalar), scalar
        if scalar == "i32" and lowering.stored == "u16":
            return self._whole_length(first, second), scalar
        gx, gy = (e.convert(response, scalar, "f32") for response in (first, second))
        if is_float(scalar) and is_float(lowering.stored):
            return self._scaled_length(gx, gy), "f32"
        return self._root_of_squares(gx, gy, "f32"), "f32"

    def _root_of_squares(self, first: Value, second: Value, scalar: Scalar) -> Value:
        e = self.e
        square = e.call("llvm.fmuladd", scalar, first, first, e.block.fmul(second, second))
        return e.call("llvm.sqrt", scalar, square)

    def _scaled_length(self, first: Value, second: Value) -> Value:
        """The length in float32; scaled by a power of two, so that squares neither overflow nor vanish.

        Where they would do neither, the result is that of the plain formula, bit for bit.
        """
        e, lanes = self.e, self.layout.block_pixels
        bits = (
            e.block.and_(e.same_bits(value, "i32"), splat("i32", lanes, EXPONENT_BITS)) for value in (first, second)
        )
        exponent = e.call("llvm.smax", "i32", *bits)
        scale = e.call("llvm.smin", "i32", exponent, splat("i32", lanes, LARGEST_SCALE))
        scale = e.call("llvm.smax", "i32", scale, splat("i32", lanes, LEAST_SCALE))
        down = e.same_bits(e.block.sub(splat("i32", lanes, ONE_TWICE), scale), "f32")
        root = self._root_of_squares(e.block.fmul(first, down), e.block.fmul(second, down), "f32")
        return e.block.fmul(root, e.same_bits(scale, "f32"))

    def _whole_length(self, first: Value, second: Value) -> Value:
        """The nearest whole number to the length of two whole numbers, up to 65,536, as int32.

        float32 does not hold its square, so the estimate may be one off near a half. What is left of the square tells,
        and int32 holds that although it does not hold the square.
        """
        e, lanes = self.e, self.layout.block_pixels
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
        lowering, e, lanes = self.lowering, self.e, self.layout.block_pixels
        if lowering.output_mode == "abs" and lowering.combine != "magnitude":  # a magnitude has no sign
            value = e.call("llvm.fabs" if is_float(scalar) else "llvm.abs", scalar, value)
        if is_float(lowering.stored):
            return e.convert(value, scalar, lowering.stored)
        white, black = splat(scalar, lanes, UNSIGNED_MAX[lowering.stored]), splat(scalar, lanes, 0)
        if is_float(scalar):
            value = e.block.select(e.block.fcmp_ordered("<", value, white), value, white)
            if lowering.output_mode == "clip":
                value = e.block.select(e.block.fcmp_ordered(">", value, black), value, black)
            return e.narrow(e.round_to_int(value, scalar), lowering.stored)
        if lowering.output_mode == "clip":
            value = e.call("llvm.smax", scalar, value, black)
        return e.narrow(e.call("llvm.umin", scalar, value, white), lowering.stored)
