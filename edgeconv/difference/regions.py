"""Bounding boxes of connected differing pixels, found band by band so that no label image of a picture is ever held.

Pixels are connected to all eight neighbours. OpenCV labels one band of rows; a union-find joins its labels to the
regions that the band above left open along its last row. A region that does not reach the last row is complete:
only the boxes of the largest are kept, so memory does not grow with the number of regions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_LISTED = 100
"""Boxes that are kept, the largest first; all are counted."""

BAND_PIXELS = 2**20
"""Labelled at once: few enough for a few megabytes, whatever the width, and enough that bands seldom meet."""

LEFT, TOP, RIGHT, BOTTOM, PIXELS = range(5)
"""Columns of an array of boxes; bounds are inclusive."""


@dataclass(frozen=True)
class Region:
    """A connected part of the picture that differs. Bounds are inclusive."""

    left: int
    top: int
    right: int
    bottom: int
    pixels: int


class RegionFinder:
    """Takes the rows of a picture from top to bottom."""

    def __init__(self, width: int, listed: int = MAX_LISTED, band_rows: int | None = None) -> None:
        self._listed = listed
        self._largest = _no_boxes()
        self._complete = 0
        self._open = _no_boxes()
        self._last_row = np.zeros(width, np.int64)
        """1 + the index into `_open` along the last row that was labelled, 0 where nothing differs."""
        self._band = np.zeros((band_rows or max(1, BAND_PIXELS // width), width), bool)
        self._band_top, self._filled = 0, 0

    def add(self, differs: NDArray[np.bool_]) -> None:
        """The next rows, H×W."""
        while len(differs):
            taken = min(len(differs), len(self._band) - self._filled)
            self._band[self._filled : self._filled + taken] = differs[:taken]
            self._filled += taken
            differs = differs[taken:]
            if self._filled == len(self._band):
                self._label_band()

    def finish(self) -> tuple[int, tuple[Region, ...]]:
        """How many regions there are, and the largest of them, by size and then from the top left."""
        if self._filled:
            self._label_band()
        self._complete_regions(self._open)
        self._open = _no_boxes()
        return self._complete, tuple(Region(*map(int, box)) for box in self._largest)

    def _label_band(self) -> None:
        band, top = self._band[: self._filled], self._band_top
        self._band_top, self._filled = top + self._filled, 0
        if not band.any():
            self._complete_regions(self._open)
            self._open = _no_boxes()
            self._last_row[:] = 0
            return
        import cv2

        _, labels, found, _ = cv2.connectedComponentsWithStats(band.view(np.uint8), connectivity=8)
        boxes = np.concatenate([self._open, _boxes_of(found[1:], top)])  # label 0 is what does not differ
        first_row = np.where(labels[0], labels[0] + len(self._open), 0)
        last_row = np.where(labels[-1], labels[-1] + len(self._open), 0).astype(np.int64)

        roots = _joined(len(boxes), self._last_row, first_row)
        absorbed = np.flatnonzero(roots != np.arange(len(boxes)))
        into = roots[absorbed]
        for column, join in ((LEFT, np.minimum), (TOP, np.minimum), (RIGHT, np.maximum), (BOTTOM, np.maximum)):
            join.at(boxes[:, column], into, boxes[absorbed, column])
        np.add.at(boxes[:, PIXELS], into, boxes[absorbed, PIXELS])

        on_last_row = last_row > 0
        still_open, places = np.unique(roots[last_row[on_last_row] - 1], return_inverse=True)
        self._last_row = np.zeros_like(last_row)
        self._last_row[on_last_row] = places + 1
        self._open = boxes[still_open]
        complete = np.ones(len(boxes), bool)
        complete[absorbed] = complete[still_open] = False
        self._complete_regions(boxes[complete])

    def _complete_regions(self, boxes: NDArray[np.int64]) -> None:
        self._complete += len(boxes)
        candidates = np.concatenate([self._largest, boxes])
        order = np.lexsort((candidates[:, LEFT], candidates[:, TOP], -candidates[:, PIXELS]))
        self._largest = candidates[order[: self._listed]]


def _no_boxes() -> NDArray[np.int64]:
    return np.zeros((0, 5), np.int64)


def _boxes_of(found: NDArray[Any], top: int) -> NDArray[np.int64]:
    """Our boxes from OpenCV's left, top, width, height and area within a band whose first row is `top`."""
    left, upper, width, height, pixels = found.astype(np.int64).T
    return np.stack([left, top + upper, left + width - 1, top + upper + height - 1, pixels], axis=1)


def _joined(count: int, upper: NDArray[np.int64], lower: NDArray[Any]) -> NDArray[np.int64]:
    """For each of `count` regions the one that stands for all it is connected to.

    `upper` and `lower` are two rows that meet: 1 + the region's index, or 0.
    """
    parent = np.arange(count)
    for above, below in ((upper, lower), (upper[:-1], lower[1:]), (upper[1:], lower[:-1])):
        meet = (above > 0) & (below > 0)
        for pair in np.unique(np.stack([above[meet], below[meet]], axis=1), axis=0).tolist():
            one, other = (_root(parent, index - 1) for index in pair)
            parent[max(one, other)] = min(one, other)
    for index in np.flatnonzero(parent != np.arange(count)).tolist():
        parent[index] = _root(parent, index)
    return parent


def _root(parent: NDArray[np.int64], index: int) -> int:
    while (above := int(parent[index])) != index:
        parent[index] = parent[above]
        index = above
    return index
