"""The pairs of two folders as a gallery: what the list shows of each, with thumbnails that a browser loads when seen.

A thumbnail is a WebP of at most THUMBNAIL pixels a side, as base64 in a script block of its own that the browser does
not run: `<script type="text/plain" id="thumb-PAIR-PLACE">`, PLACE 0 for the reference, 1 for the new picture, 2 for the
heat map. A single differing pixel stays visible in that, as in every map (maps.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from edgeconv.core.safe_text import visible
from edgeconv.difference import maps
from edgeconv.difference.figures import Box
from edgeconv.difference.inputs import Input
from edgeconv.difference.scale import scale_for
from edgeconv.difference.tiles import script_block, webp

THUMBNAIL = 256
RING_PIXELS = 7
"""Radius of a ring in a thumbnail; a region that is not larger is ringed."""
HOW = {"quality": 80}
"""Of a WebP to look at."""
REFERENCE, NEW, MAP = range(3)

Thumbnails = tuple[tuple[int, bytes], ...]
"""(place, WebP)."""


@dataclass(frozen=True)
class GalleryEntry:
    """One pair in the list."""

    name: str
    status: str
    detail: str
    set: int | None = None
    """The set that the viewer opens for it; None where nothing can be compared, or the page has not its pictures."""
    thumbnails: Thumbnails = ()

    def blocks(self, number: int) -> list[bytes]:
        """Its thumbnails as script blocks."""
        return [script_block(f"thumb-{number}-{place}", data) for place, data in self.thumbnails]

    def record(self) -> dict[str, Any]:
        """What the gallery's script reads."""
        return {
            "name": visible(self.name),
            "status": self.status,
            "detail": visible(self.detail),
            "set": self.set,
            "thumbs": [place for place, _ in self.thumbnails],
        }


def changed_thumbnails(reference: Input, new: Input, regions: Sequence[Box]) -> Thumbnails:
    """The reference, the new picture, and where they differ, with rings around what is tiny."""
    import cv2

    before, after = reference.load().pixels, new.load().pixels
    classes = maps.class_map(before, after)
    factor = _factor(classes.shape)
    heat = maps.heat(maps.shrunk_map(classes, factor), scale_for(before.dtype))
    for box in regions:
        if max(box.right - box.left, box.bottom - box.top) < RING_PIXELS * factor:
            middle = (box.left + box.right) // 2 // factor, (box.top + box.bottom) // 2 // factor
            cv2.circle(heat, middle, RING_PIXELS, (255, 255, 255), 1, cv2.LINE_AA)
    low, high = maps.display_range(before)
    return (
        (REFERENCE, thumbnail(before, low, high)),
        (NEW, thumbnail(after, low, high)),
        (MAP, webp(heat, HOW)),
    )


def thumbnail(pixels: NDArray[Any], low: float, high: float, side: int = THUMBNAIL) -> bytes:
    """A picture (HWC) as a WebP of at most `side` pixels a side."""
    return webp(maps.shrunk_view(maps.view(pixels, low, high), _factor(pixels.shape, side)), HOW)


def alone(place: int, pixels: NDArray[Any]) -> Thumbnails:
    """The thumbnail of a picture that nothing is compared with."""
    return ((place, thumbnail(pixels, *maps.display_range(pixels))),)


def _factor(shape: tuple[int, ...], side: int = THUMBNAIL) -> int:
    return max(1, -(-max(shape[:2]) // side))
