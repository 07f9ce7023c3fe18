"""`--verify-tiles`: the output, read back from its file, byte for byte against a second computation.

whole picture   where memory allows: the picture is read at once and filtered as `edgeconv run` does without tiles,
                with the method's own padding and border. Proves that tiling changed nothing.
other tiles     else: every tile anew, cut half a tile further on, so that what was a seam lies inside a tile.
                Proves that seams, halos and places do not show; what both ways of cutting would get wrong alike
                is left to the check against the oracle and to the tests.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.run.tiled.grid import Span

Against = Literal["whole picture", "other tiles"]


@dataclass(frozen=True)
class Difference:
    """The first sample that differs, in rows and then columns of the part that was compared."""

    y: int
    x: int
    channel: int
    written: str
    expected: str

    def __str__(self) -> str:
        return f"(y {self.y}, x {self.x}, channel {self.channel}): {self.written} in the file, {self.expected} expected"


class OutputComparison:
    """Gathers the comparison of a whole output."""

    def __init__(self, against: Against) -> None:
        self.against = against
        self.compared_samples = 0
        self.differing_samples = 0
        self.first: Difference | None = None
        self.seconds = 0.0

    @property
    def passed(self) -> bool:
        """Whether every sample was the same."""
        return self.differing_samples == 0

    def compare(self, rows: Span, columns: Span, written: NDArray[Any], expected: NDArray[Any]) -> None:
        """Compare one part (HWC; of `written` as many channels count as `expected` has)."""
        bits = np.dtype(f"u{expected.dtype.itemsize}")  # so that a NaN is the same as itself, and −0 is not 0
        ours = np.ascontiguousarray(expected).view(bits)
        theirs = np.ascontiguousarray(written[:, :, : expected.shape[2]]).view(bits)
        self.compared_samples += ours.size
        if np.array_equal(ours, theirs):
            return
        differs = ours != theirs
        self.differing_samples += int(np.count_nonzero(differs))
        if self.first is None:
            y, x, channel = (int(place) for place in np.unravel_index(int(differs.argmax()), differs.shape))
            values = (f"{array[y, x, channel]:g}" for array in (written, expected))
            self.first = Difference(rows.start + y, columns.start + x, channel, *values)

    def to_dict(self) -> dict[str, Any]:
        """For the report."""
        return {
            "against": self.against,
            "passed": self.passed,
            "compared_samples": self.compared_samples,
            "differing_samples": self.differing_samples,
            "first": None if self.first is None else asdict(self.first),
            "seconds": self.seconds,
        }
