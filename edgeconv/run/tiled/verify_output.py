"""`--verify-tiles`: the output, read back from its file, byte for byte against a second computation.

whole picture   where memory allows: the picture is read at once and filtered as `edgeconv run` does without tiles,
                with the method's own padding and border. Shows that tiling changed nothing.
other tiles     otherwise: every tile is computed again, shifted by half a tile, so that former tile boundaries lie
                inside tiles. Shows that boundaries, halos and positions have no effect; errors common to both tilings
                are left to the check against the oracle and to the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """Accumulates the comparison of a whole output."""

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
        """Compare one part (HWC; of `written` the first channels, as many as `expected` has)."""
        bits = np.dtype(f"u{expected.dtype.itemsize}")  # so that a NaN equals itself, and −0 differs from 0
        expected_bits = np.ascontiguousarray(expected).view(bits)
        written_bits = np.ascontiguousarray(written[:, :, : expected.shape[2]]).view(bits)
        self.compared_samples += expected_bits.size
        if np.array_equal(expected_bits, written_bits):
            return
        differs = expected_bits != written_bits
        self.differing_samples += int(np.count_nonzero(differs))
        if self.first is None:
            y, x, channel = (int(place) for place in np.unravel_index(int(differs.argmax()), differs.shape))
            values = (f"{array[y, x, channel]:g}" for array in (written, expected))
            self.first = Difference(rows.start + y, columns.start + x, channel, *values)
