"""Responses of a block of pixels: samples multiplied by weights and added up, in one of two ways.

pixels side by side     a register holds pixels of one response; each tap is loaded once and added to every response
                        of the pass that has it; a weight is an immediate vector of the code
outputs side by side    of a bank: a register holds outputs of one pixel; a tap is one sample in every lane, and its
                        weights are loaded from a table, once for all pixels of the block
"""

from __future__ import annotations

from collections.abc import Callable

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.emit import I64, POINTER, Value, is_float, splat
from edgeconv.methods.cpu.frame import FunctionFrame
from edgeconv.methods.cpu.lowering import Tap
from edgeconv.methods.cpu.passes import BankPasses


class Sums:
    """Writes the code of a block's sums."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.e, self.lowering, self.layout = frame.e, frame.lowering, frame.layout

    def responses(self, address: Callable[[Tap], Value]) -> list[list[Value]]:
        """Sums of every result and direction, pixels side by side."""
        results = range(len(self.lowering.results))
        found: list[list[Value]] = []
        for start in range(0, len(results), self.layout.results_per_pass):
            found += self._pass(address, results[start : start + self.layout.results_per_pass])
        return found

    def _pass(self, address: Callable[[Tap], Value], numbers: range) -> list[list[Value]]:
        """Sums of these results; each tap is loaded once for all of them."""
        e, lowering, lanes = self.e, self.lowering, self.layout.block_pixels
        responses = {
            (number, direction): dict(response)
            for number in numbers
            for direction, response in enumerate(lowering.results[number])
        }
        sums: dict[tuple[int, int], Value] = {}
        for tap in every_tap(len(lowering.planes)):
            sample: Value | None = None
            for place, response in responses.items():
                weight = response.get(tap)
                if weight is None:
                    continue
                if sample is None:
                    loaded = e.load(address(tap), lowering.staged, lanes)
                    sample = e.convert(loaded, lowering.staged, lowering.sum)
                factor = splat(lowering.sum, lanes, weight)
                sums[place] = self._multiply_add(sample, factor, sums.get(place))
        nothing = splat(lowering.sum, lanes, 0)
        return [
            [sums.get((number, direction), nothing) for direction in range(len(lowering.results[number]))]
            for number in numbers
        ]

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
