"""Pictures against one reference: loaded two at a time, their layouts checked, and every figure as one record.

The record is what text, page, pictures and JSON show. Coordinates count from 0 at the top left; bounds of regions are
inclusive. Infinite figures become null in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.optional import import_problem, install
from edgeconv.core.records import Part, RecordHead, fields_of, header, plain
from edgeconv.core.records import to_json as record_json
from edgeconv.difference.figures import Allowance, Figures, of_pair
from edgeconv.difference.inputs import Input, labels_of, layout_text, require_same_layout
from edgeconv.difference.scale import Scale, scale_for
from edgeconv.errors import UnavailableError, UsageError

SSIM_WINDOW = 7
"""scikit-image's default side, in pixels."""


class ReferencePicture(Part):
    """What all others were compared with."""

    file: str
    layout: str
    notes: tuple[str, ...]

    @property
    def dtype(self) -> str:
        """The type of its samples, which ends the layout."""
        return self.layout.rpartition(" ")[2]


class Comparison(Figures, kw_only=True, omit_defaults=True):
    """One picture against the reference: the figures, and where they are from."""

    file: str
    notes: tuple[str, ...]
    ssim: float | None = None
    """Where it was asked for."""


class Compared(RecordHead):
    """Some pictures against one reference."""

    same: bool
    reference: ReferencePicture
    allowed: Allowance
    difference_classes: tuple[str, ...]
    comparisons: list[Comparison]

    @property
    def scale(self) -> Scale:
        """The classes of difference of this type of sample."""
        return scale_for(self.reference.dtype)

    @property
    def labels(self) -> list[str]:
        """Short names: the reference's, then one per comparison."""
        return labels_of([self.reference.file, *(comparison.file for comparison in self.comparisons)])


class DiffRecord(Compared):
    """What `edgeconv diff` found."""

    kind: Literal["diff"]


def mean_ssim(reference: NDArray[Any], other: NDArray[Any], peak: float) -> float:
    """Mean structural similarity by scikit-image (extra `diff`) of two pictures, HWC; `peak` is the samples' range.

    1 is the same. It stands beside the exact figures and does not affect the verdict: 10,000 pixels off by up to 3
    levels leave 0.999995. Raises UnavailableError without scikit-image, UsageError for what it cannot judge.
    """
    problem = import_problem("skimage.metrics")
    if problem is not None:
        raise UnavailableError(f"--ssim needs the package scikit-image ({problem}): {install('diff')}.")
    from skimage.metrics import structural_similarity

    small = min(reference.shape[:2]) < SSIM_WINDOW
    if small or not (np.isfinite(reference).all() and np.isfinite(other).all()):
        raise UsageError(f"--ssim needs {SSIM_WINDOW}×{SSIM_WINDOW} pixels or more, all finite: leave it out.")
    return float(structural_similarity(reference, other, win_size=SSIM_WINDOW, channel_axis=2, data_range=peak or 1.0))


def compare(
    reference: Input, others: Sequence[Input], allowance: Allowance | None = None, with_ssim: bool = False
) -> DiffRecord:
    """Compare each input with the reference, one after the other, so that no more than two are in memory.

    Raises LayoutError, UsageError, ImageReadError, UnavailableError.
    """
    allowance = allowance or Allowance()
    base = reference.load()
    comparisons = []
    for other in others:
        loaded = other.load()
        require_same_layout(reference.name, base.pixels, other.name, loaded.pixels)
        figures = of_pair(base.pixels, loaded.pixels, allowance)
        ssim = mean_ssim(base.pixels, loaded.pixels, figures.peak) if with_ssim else None
        comparisons.append(Comparison(**fields_of(figures), file=other.name, notes=loaded.notes, ssim=ssim))
        del loaded  # before the next is decoded
    return DiffRecord(
        **header(),
        kind="diff",
        same=all(comparison.same for comparison in comparisons),
        reference=ReferencePicture(reference.name, layout_text(base.pixels), base.notes),
        allowed=allowance,
        difference_classes=scale_for(base.pixels.dtype.name).labels,
        comparisons=comparisons,
    )


def to_json(record: RecordHead) -> str:
    """The record as text; what is infinite or NaN is null."""
    return record_json(json.loads(json.dumps(plain(record)), parse_constant=lambda _: None)).decode().rstrip()
