"""Responses of a block of pixels: vectors of samples, multiplied by constant weights and added up.

Each tap is loaded once and added to every response that has it; a weight is an immediate vector of the code.
"""

from __future__ import annotations

from collections.abc import Callable

from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.emit import Value, is_float, splat
from edgeconv.methods.cpu.frame import FunctionFrame
from edgeconv.methods.cpu.lowering import Tap


class Sums:
    """Writes the code of a block's sums."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.e, self.lowering, self.layout = frame.e, frame.lowering, frame.layout

    def responses(self, address: Callable[[Tap], Value]) -> list[list[Value]]:
        """Sums of every result and direction; each tap is loaded once for all of them."""
        e, lowering, lanes = self.e, self.lowering, self.layout.block_pixels
        sums: dict[tuple[int, int], Value] = {}
        for tap in every_tap(len(lowering.planes)):
            sample: Value | None = None
            for number, result in enumerate(lowering.results):
                for direction, response in enumerate(result):
                    weight = dict(response).get(tap)
                    if weight is None:
                        continue
                    if sample is None:
                        loaded = e.load(address(tap), lowering.staged, lanes)
                        sample = e.convert(loaded, lowering.staged, lowering.sum)
                    place = (number, direction)
                    sums[place] = self._multiply_add(sample, weight, sums.get(place))
        nothing = splat(lowering.sum, lanes, 0)
        return [
            [sums.get((number, direction), nothing) for direction in range(len(result))]
            for number, result in enumerate(lowering.results)
        ]

    def _multiply_add(self, sample: Value, weight: float, total: Value | None) -> Value:
        e, scalar = self.e, self.lowering.sum
        factor = splat(scalar, self.layout.block_pixels, weight)
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
