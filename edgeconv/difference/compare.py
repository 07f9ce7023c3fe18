"""Pictures against one reference: loaded two at a time, their layouts checked, and every figure as one record.

The record is what text, page, pictures and JSON show. Coordinates count from 0 at the top left; bounds of regions are
inclusive. Infinite figures become null in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from edgeconv.core.records import Part, RecordHead, fields_of, header, plain
from edgeconv.core.records import to_json as record_json
from edgeconv.difference.figures import Allowance, Figures, of_pair
from edgeconv.difference.inputs import Input, labels_of, layout_text, require_same_layout
from edgeconv.difference.scale import Scale, scale_for


class ReferencePicture(Part):
    """What all others were compared with."""

    file: str
    layout: str
    notes: tuple[str, ...]

    @property
    def dtype(self) -> str:
        """The type of its samples, which ends the layout."""
        return self.layout.rpartition(" ")[2]


class Comparison(Figures, kw_only=True):
    """One picture against the reference: the figures, and where they are from."""

    file: str
    notes: tuple[str, ...]


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


def compare(reference: Input, others: Sequence[Input], allowance: Allowance | None = None) -> DiffRecord:
    """Compare each input with the reference, one after the other, so that no more than two are in memory.

    Raises LayoutError, UsageError, ImageReadError.
    """
    allowance = allowance or Allowance()
    base = reference.load()
    comparisons = []
    for other in others:
        loaded = other.load()
        require_same_layout(reference.name, base.pixels, other.name, loaded.pixels)
        figures = of_pair(base.pixels, loaded.pixels, allowance)
        comparisons.append(Comparison(**fields_of(figures), file=other.name, notes=loaded.notes))
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
