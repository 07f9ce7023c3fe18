"""A block of pixels in registers: from samples to responses, and from those to stored samples.

pixels side by side     a register holds pixels of one response; each tap is loaded once and added to every response
                        of the pass that has it; a weight is an immediate vector of the code. Taps of equal weights are
                        added before (`equal taps`), and a ring has a sum of its own (core/lowering.py)
outputs side by side    of a bank: a register holds outputs of one pixel; a tap is one sample in every lane, and its
                        weights are loaded from a table, once for all pixels of the block

Directions are then joined, rounded, clipped, and channels put side by side by the rules of filters.py and output.py.
Magnitudes are computed in float32 or float64, scaled where squares could overflow, and by the whole square where a
16-bit sample needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from itertools import accumulate
from typing import NamedTuple

from edgeconv.core.filters import COMPASS_RING
from edgeconv.core.lowering import Ring, Tap, Term, terms_of
from edgeconv.hardware.cpu import x86
from edgeconv.hardware.cpu.emit import UNSIGNED_MAX, Array, Emitter, Value, is_float, shuffle
from edgeconv.hardware.cpu.processor import Scalar
from edgeconv.methods.cpu.layout import BankPasses, RowLayout

Samples = Callable[[Tap], Value]
"""The staged samples under a tap, of pixels side by side."""

BEYOND_16_BITS = 2**16


class FloatScales(NamedTuple):
    """Bits of a float type, as integers of its length."""

    bits: Scalar
    exponent: int
    """Those of its exponent."""
    one_twice: int
    """What the bits of 2^k and of 2^-k add up to."""
    least: int
    largest: int
    """The bits of the powers of two that squares are scaled by; both have an inverse that is a normal number."""


SCALES_OF_FLOAT: dict[str, FloatScales] = {
    "float32": FloatScales("int32", 0xFF << 23, 2 * 127 << 23, 2 << 23, 252 << 23),
    "float64": FloatScales("int64", 0x7FF << 52, 2 * 1023 << 52, 2 << 52, 2044 << 52),
}


class Sums:
    """Writes the code of a block's sums, and of what is stored of them."""

    def __init__(self, e: Emitter, layout: RowLayout) -> None:
        self.e, self.layout, self.lowering = e, layout, layout.lowering

    # --- responses ------------------------------------------------------------------------------------------------

    def responses(self, samples: Samples) -> list[list[list[Value]]]:
        """Sums of every row of those computed together, every result and direction, pixels side by side."""
        if rings := self.lowering.rings:
            return [[[self._three(samples, ring)] for ring in rings]]
        numbers, step = range(len(self.lowering.results)), self.layout.results_per_pass
        passes = [self._pass(samples, numbers[start : start + step]) for start in numbers[::step]]
        return [[sums for of_rows in passes for sums in of_rows[row]] for row in range(self.layout.rows_together)]

    def _pass(self, samples: Samples, numbers: range) -> list[list[list[Value]]]:
        """Sums of these results, by row; each tap is loaded once for all of them."""
        results = [self.lowering.responses[number] for number in numbers]
        terms = terms_of(results, len(self.lowering.planes), together="equal taps" in self.lowering.forms)
        responses = sum(map(len, results))
        sums: list[list[Value | None]] = [[None] * responses for _ in range(self.layout.rows_together)]
        sample_of = cache(lambda tap: self._widened(samples(tap)))
        for row, (weights, ((first, _), *others)) in self._turns(terms):
            sample = sample_of(first._replace(u=first.u + row))
            for tap, sign in others:
                further = sample_of(tap._replace(u=tap.u + row))
                sample = sample + further if sign > 0 else sample - further
            for place, weight in enumerate(weights):
                if weight:
                    sums[row][place] = sample.times(weight, sums[row][place])
        nothing = self.e.splat(self.lowering.sums, self.layout.sum_pixels, 0)
        each = iter([nothing if total is None else total for of_row in sums for total in of_row])
        return [[[next(each) for _ in result] for result in results] for _ in sums]

    def _turns(self, terms: list[Term]) -> list[tuple[int, Term]]:
        """The terms of each row: in one order, whatever number of rows is computed together.

        Two rows take turns, so that a sample that both have serves both as soon as it is loaded.
        """
        last = list(accumulate((max((tap.plane, tap.u) for tap, _ in taps) for _, taps in terms), max))
        rows = range(self.layout.rows_together)
        turns = sorted((plane, u + row, row, number) for row in rows for number, (plane, u) in enumerate(last))
        return [(row, terms[number]) for _, _, row, number in turns]

    def _widened(self, staged: Value) -> Value:
        """Staged samples in the type of the sums."""
        if self.layout.splits_bytes:
            return staged.split_bytes()
        return staged.convert(self.lowering.staged, self.lowering.sums)

    def _three(self, of_tap: Samples, ring: Ring) -> Value:
        """The largest of eight directions: near · max(sum of three neighbours) + far · (sum of the ring).

        With pᵢ the sum of the samples at i and i + 1, the sums of three that begin at i - 1 and at i are pᵢ and one of
        its two neighbours: their larger is pᵢ + max(xᵢ₋₁, xᵢ₊₂), and maxima of narrow samples cost least.
        """
        places = len(COMPASS_RING)
        loaded = [of_tap(Tap(ring.plane, u, v)) for u, v in COMPASS_RING]
        samples = [self._widened(value) for value in loaded]
        largest: Value | None = None
        pairs = []
        for first in range(0, places, 2):
            pairs.append(samples[first] + samples[first + 1])
            one, other = loaded[first - 1], loaded[(first + 2) % places]
            beside = one.call("llvm.umax", other) if self.lowering.staged in UNSIGNED_MAX else one.max(other)
            three = pairs[-1] + self._widened(beside)
            largest = three if largest is None else largest.max(three)
        total = (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
        assert largest is not None  # a ring has places
        return largest.times(ring.near, total * ring.far if ring.far else None)

    def bank_responses(self, bank: BankPasses, taps: Array, x_bytes: Value, weights: Array) -> list[list[Value]]:
        """Sums of one direction for every pixel of the block and every register of outputs, outputs side by side.

        `taps` is a table of the address of every tap for pixel 0, `x_bytes` the distance of the block's first pixel,
        `weights` begin with the first tap's. The taps are a loop, as LLVM would share the samples of neighbouring taps
        if it saw them together, and run out of registers.
        """
        e, lowering = self.e, self.lowering
        nothing = e.splat(lowering.sums, bank.lanes, 0)
        sums = [[e.variable(nothing) for _ in range(bank.vectors)] for _ in range(self.layout.block_pixels)]
        with e.count(0, e.int64(lowering.taps_per_response)) as tap:
            start = e.array(taps[tap], lowering.staged).bytes_on(x_bytes)
            first = weights.at(tap * bank.outputs)
            factors = [first.at(vector * bank.lanes).load(bank.lanes) for vector in range(bank.vectors)]
            for pixel, of_pixel in enumerate(sums):
                sample = start.at(pixel).broadcast(bank.lanes)
                for place, factor in zip(of_pixel, factors, strict=True):
                    place.value = sample.times(factor, place.value)
        return [[place.value for place in of_pixel] for of_pixel in sums]

    # --- stored samples -------------------------------------------------------------------------------------------

    def stored(self, responses: list[Value]) -> Value:
        """The stored samples of one result, from its responses in every direction: the output mode's rule."""
        lowering, value = self.lowering, self._join(responses)
        signed, mode = not lowering.never_negative, lowering.output_mode
        if mode == "abs" and signed:
            value = abs(value)
        if is_float(lowering.stored):
            source = lowering.sums if value.is_float == is_float(lowering.sums) else "float32"
            return value.convert(source, lowering.stored)
        white = UNSIGNED_MAX[lowering.stored]
        if value.is_float:
            value = (value < white).select(value, white)
            if mode == "clip" and signed:
                value = value.max(0)
            return self._narrowed(value.round_to_int())
        if mode == "clip" and signed:
            value = value.max(0)
        return self._narrowed(value.call("llvm.umin", white))

    def _narrowed(self, value: Value) -> Value:
        """Integers that fit, as stored."""
        if self.layout.splits_bytes:
            return value.narrow("uint16").join_bytes()
        return value.narrow(self.lowering.stored)

    def larger(self, first: Value, second: Value) -> Value:
        """The larger of two responses; a NaN stays one."""
        if not first.is_float:
            return first.max(second)
        return ((second > first) | second.is_nan()).select(second, first)

    def _join(self, responses: list[Value]) -> Value:
        """One value from all directions."""
        if self.lowering.combine == "magnitude":
            return self._length(responses[0], responses[1])
        if not self.lowering.by_size:
            return reduce(self.larger, responses)
        sizes = [abs(response) for response in responses]
        if not is_float(self.lowering.sums):
            return reduce(Value.max, sizes)
        # The bits of floats from zero on are in their order, as integers, with infinity and NaN above all.
        bits = SCALES_OF_FLOAT[self.lowering.sums].bits
        return reduce(Value.max, [size.bits(bits) for size in sizes]).bits(self.lowering.sums)

    def _length(self, first: Value, second: Value) -> Value:
        """sqrt(first² + second²), rounded to integers where those are stored and it takes no float."""
        lowering, sums = self.lowering, self.lowering.sums
        if sums == "float64":
            scaled = lowering.source == "float64"
            return _scaled_length(first, second, sums) if scaled else _root_of_squares(first, second)
        if sums == "int16" and lowering.stored == "uint8" and self.layout.is_x86:
            return self._length_for_bytes(first, second)
        if sums == "int32" and lowering.stored == "uint16":
            return _integer_length(first, second)
        gx, gy = (response.convert(sums, "float32") for response in (first, second))
        if is_float(sums) and is_float(lowering.stored):
            return _scaled_length(gx, gy, "float32")
        return _root_of_squares(gx, gy)

    def _length_for_bytes(self, first: Value, second: Value) -> Value:
        """The length of two 16-bit numbers, rounded: right up to 255, and above 255 where it should be.

        It takes no square root, which is slow and right to 24 bits. Below 256 the root of an integer is no closer
        to a half than 0.125 / 255.5, a relative 2^-19: one step of Newton's method from an estimate of 11 bits, which
        leaves 2^-21, is rounded to the same byte.
        """
        register_bytes = self.layout.vector_bytes
        halves = []
        for whole in x86.squares_of_pairs(self.e, first, second, register_bytes):
            square = whole.convert("int32", "float32")
            inverse = x86.inverse_root(self.e, square.max(1.0), register_bytes)
            root = square * inverse
            left = (-root).times(root, square)
            halves.append(left.times(inverse * 0.5, root).round_to_int())
        return x86.join_halves(self.e, halves, register_bytes)

    def interleaved(self, results: tuple[Value, ...]) -> list[Value]:
        """Registers that hold the channels of pixels side by side, from one for each result (of the same pixels)."""
        rows = [[results[result]] for result in self.lowering.result_of_output]
        unit = 1
        while len(rows) % 2 == 0:  # neighbours in pairs, then pairs in pairs: fewer shuffles than all at once
            rows = [_alternating([rows[i], rows[i + 1]], unit) for i in range(0, len(rows), 2)]
            unit *= 2
        return _alternating(rows, unit)


def _alternating(rows: list[list[Value]], unit: int) -> list[Value]:
    """`unit` samples of each row in turn; a row is several registers."""
    count, registers, lanes = len(rows), len(rows[0]), rows[0][0].lanes
    if count == 1:
        return rows[0]
    if unit >= lanes:
        wide = unit // lanes
        return [register for at in range(0, registers, wide) for row in rows for register in row[at : at + wide]]
    sources = list(dict.fromkeys(register for row in rows for register in row))  # equal outputs are one register
    mixed = []
    for start in range(0, count * registers * lanes, lanes):
        picks = []
        for sample in range(start, start + lanes):
            turn, within = divmod(sample, unit)
            place = turn // count * unit + within
            register = rows[turn % count][place // lanes]
            picks.append((sources.index(register), place % lanes))
        mixed.append(shuffle(sources, picks))
    return mixed


def _root_of_squares(first: Value, second: Value) -> Value:
    return first.times(first, second * second).call("llvm.sqrt")


def _scaled_length(first: Value, second: Value, scalar: Scalar) -> Value:
    """The length of two floats; scaled by a power of two, so that squares neither overflow nor vanish.

    Where they would do neither, the result is that of the plain formula, bit for bit.
    """
    scales = SCALES_OF_FLOAT[scalar]
    gx, gy = (value.bits(scales.bits) & scales.exponent for value in (first, second))
    scale = gx.max(gy).min(scales.largest).max(scales.least)
    down = (scale.like(scales.one_twice) - scale).bits(scalar)
    return _root_of_squares(first * down, second * down) * scale.bits(scalar)


def _integer_length(first: Value, second: Value) -> Value:
    """The nearest integer to the length of two integers, up to 65,536, as int32.

    float32 does not hold its square, so the estimate may be one off near a half. What is left of the square tells,
    and int32 holds that although it does not hold the square.
    """
    gx, gy = (response.convert("int32", "float32") for response in (first, second))
    estimate = _root_of_squares(gx, gy)
    is_beyond = estimate >= BEYOND_16_BITS
    length = is_beyond.select(estimate.like(BEYOND_16_BITS), estimate).round_to_int()
    square = first * first + second * second
    longer = length + 1
    left = square - length * longer
    shorter = length - 1
    is_long = (left <= length.like(0) - (length + length)) & (length > 0)
    corrected = is_long.select(shorter, length)
    corrected = (left > 0).select(longer, corrected)
    return is_beyond.select(length.like(BEYOND_16_BITS), corrected)
