"""Responses of a block of pixels: samples multiplied by weights and added up, in one of two ways.

pixels side by side     a register holds pixels of one response; each tap is loaded once and added to every response
                        of the pass that has it; a weight is an immediate vector of the code. Taps of equal weights are
                        added before (`equal taps`), and a ring has a sum of its own (`ring of three`, core/forms.py)
outputs side by side    of a bank: a register holds outputs of one pixel; a tap is one sample in every lane, and its
                        weights are loaded from a table, once for all pixels of the block
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

from edgeconv.core.filters import COMPASS_RING
from edgeconv.core.forms import Ring
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.emit import I64, POINTER, Value, is_float, splat
from edgeconv.methods.cpu.frame import FunctionFrame
from edgeconv.methods.cpu.layout import splits_bytes
from edgeconv.methods.cpu.lowering import Tap
from edgeconv.methods.cpu.passes import BankPasses


class Sums:
    """Writes the code of a block's sums."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.e, self.lowering, self.layout = frame.e, frame.lowering, frame.layout

    def responses(self, address: Callable[[Tap], Value]) -> list[list[Value]]:
        """Sums of every result and direction, pixels side by side."""
        if self.lowering.rings:
            return [
                [self._differences(address, ring) if ring.of_differences else self._three(address, ring)]
                for ring in self.lowering.rings
            ]
        results = range(len(self.lowering.results))
        found: list[list[Value]] = []
        for start in range(0, len(results), self.layout.results_per_pass):
            found += self._pass(address, results[start : start + self.layout.results_per_pass])
        return found

    def _pass(self, address: Callable[[Tap], Value], numbers: range) -> list[list[Value]]:
        """Sums of these results; each tap is loaded once for all of them."""
        lowering, lanes = self.lowering, self.layout.sum_pixels
        responses = {
            (number, direction): dict(response)
            for number in numbers
            for direction, response in enumerate(lowering.results[number])
        }
        added = dict(lowering.groups)
        sums: dict[tuple[int, int], Value] = {}
        for tap in every_tap(len(lowering.planes)):
            sample: Value | None = None
            for place, response in responses.items():
                weight = response.get(tap)
                if weight is None:
                    continue
                if sample is None:
                    sample = self._sample(address, tap)
                    for other in added.get(tap, ()):
                        sample = self._add(sample, self._sample(address, other.tap), other.sign)
                factor = splat(lowering.sum, lanes, weight)
                sums[place] = self._multiply_add(sample, factor, sums.get(place))
        nothing = splat(lowering.sum, lanes, 0)
        return [
            [sums.get((number, direction), nothing) for direction in range(len(lowering.results[number]))]
            for number in numbers
        ]

    def _sample(self, address: Callable[[Tap], Value], tap: Tap) -> Value:
        """A block of samples under a tap, in the type of the sums."""
        return self._widened(self.e.load(address(tap), self.lowering.staged, self.layout.sum_pixels))

    def _widened(self, staged: Value) -> Value:
        """Staged samples in the type of the sums."""
        if splits_bytes(self.lowering, self.layout):
            return self.e.split_bytes(staged)
        return self.e.convert(staged, self.lowering.staged, self.lowering.sum)

    def _differences(self, address: Callable[[Tap], Value], ring: Ring) -> Value:
        """The largest of eight directions, of which each has its opposite: `ring of differences` in core/forms.py."""
        e, scalar, lanes = self.e, self.lowering.sum, self.layout.sum_pixels
        samples = [self._sample(address, Tap(ring.plane, u, v)) for u, v in COMPASS_RING]
        half = len(samples) // 2
        apart = [self._add(samples[number], samples[number + half], -1) for number in range(half)]
        sums = [self._add(apart[number], apart[number + 1]) for number in range(half - 1)]
        sums.append(self._add(apart[-1], apart[0], -1))
        responses = [self._add(sums[number], sums[number + 1]) for number in range(half - 1)]
        responses.append(self._add(sums[-1], sums[0], -1))
        sizes = [e.call("llvm.abs", scalar, response) for response in responses]
        largest = reduce(partial(e.call, "llvm.smax", scalar), sizes)
        return largest if ring.near == 1 else e.block.mul(largest, splat(scalar, lanes, ring.near))

    def _three(self, address: Callable[[Tap], Value], ring: Ring) -> Value:
        """The largest of eight directions: near · max(sum of three neighbours) + far · (sum of the ring).

        With pᵢ the sum of the samples at i and i + 1, the sums of three that begin at i - 1 and at i are pᵢ and one of
        its two neighbours: their larger is pᵢ + max(xᵢ₋₁, xᵢ₊₂), and maxima of narrow samples cost least.
        """
        e, lowering, lanes = self.e, self.lowering, self.layout.sum_pixels
        places = len(COMPASS_RING)
        loaded = [e.load(address(Tap(ring.plane, u, v)), lowering.staged, lanes) for u, v in COMPASS_RING]
        samples = [self._widened(value) for value in loaded]
        largest: Value | None = None
        pairs = []
        for first in range(0, places, 2):
            pairs.append(self._add(samples[first], samples[first + 1]))
            beside = e.larger(loaded[first - 1], loaded[(first + 2) % places], lowering.staged)
            three = self._add(pairs[-1], self._widened(beside))
            largest = three if largest is None else e.larger(largest, three, lowering.sum)
        total = self._add(self._add(pairs[0], pairs[1]), self._add(pairs[2], pairs[3]))
        far = self._multiply_add(total, splat(lowering.sum, lanes, ring.far), None) if ring.far else None
        return self._multiply_add(largest, splat(lowering.sum, lanes, ring.near), far)

    def _add(self, first: Value, second: Value, sign: int = 1) -> Value:
        e = self.e
        if is_float(self.lowering.sum):
            return e.block.fadd(first, second) if sign > 0 else e.block.fsub(first, second)
        return e.block.add(first, second) if sign > 0 else e.block.sub(first, second)

    def bank_responses(self, bank: BankPasses, taps: Value, x: Value, weights: Value) -> list[list[Value]]:
        """Sums of one direction for every pixel of the block and every register of outputs, outputs side by side.

        `taps` is a table of the address of every tap for pixel 0, `x` the distance in bytes of the block's first pixel,
        `weights` begin with the first tap's. The taps are a loop, as LLVM would share the samples of neighbouring taps
        if it saw them together, and run out of registers.
        """
        e, lowering, scalar = self.e, self.lowering, self.lowering.sum
        pixels, vectors = range(self.layout.block_pixels), range(bank.vectors)
        nothing = splat(scalar, bank.lanes, 0)
        sums = [[e.variable(nothing) for _ in vectors] for _ in pixels]
        with e.count(e.int64(0), e.int64(lowering.taps_per_response)) as tap:
            row = e.block.inttoptr(e.block.load(e.address_of_int64(taps, tap), typ=I64), POINTER)
            start = e.address(row, "u8", x)
            first = e.address(weights, scalar, e.block.mul(tap, e.int64(bank.outputs)))
            factors = [
                e.load(e.address(first, scalar, e.int64(vector * bank.lanes)), scalar, bank.lanes) for vector in vectors
            ]
            for pixel in pixels:
                sample = e.broadcast(e.address(start, lowering.staged, e.int64(pixel)), lowering.staged, bank.lanes)
                for place, factor in zip(sums[pixel], factors, strict=True):
                    e.block.store(self._multiply_add(sample, factor, e.block.load(place, typ=nothing.type)), place)
        return [[e.block.load(place, typ=nothing.type) for place in places] for places in sums]

    def _multiply_add(self, sample: Value, factor: Value, total: Value | None) -> Value:
        e, scalar = self.e, self.lowering.sum
        if is_float(scalar):
            return (
                e.block.fmul(sample, factor) if total is None else e.call("llvm.fmuladd", scalar, sample, factor, total)
            )
        product = e.block.mul(sample, factor)
        return product if total is None else e.block.add(total, product)


def every_tap(planes: int) -> list[Tap]:
    """All taps of all planes, plane by plane and row by row."""
    sides = range(KERNEL_SIZE)
    return [Tap(plane, u, v) for plane in range(planes) for u in sides for v in sides]
