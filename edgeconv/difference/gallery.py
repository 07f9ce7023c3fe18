"""The pairs of two folders as a gallery: how each status is written, and thumbnails of at most THUMBNAIL pixels a side.

A single differing pixel stays visible in the map: it is ringed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from edgeconv.difference import maps
from edgeconv.difference.figures import Box
from edgeconv.difference.inputs import Input
from edgeconv.difference.scale import scale_for
from edgeconv.difference.tiles import webp
from edgeconv.page import data_address

THUMBNAIL = 256
RING_PIXELS = 7
"""Radius of a ring in a thumbnail; a region that is not larger is ringed."""
HOW = {"quality": 80}
"""Of a WebP to look at."""
REFERENCE, NEW, MAP = "reference", "new", "difference"
"""What a thumbnail shows."""

WORDS = {
    "unreadable": ("!", "cannot be read"),
    "layout": ("⇔", "other size or type"),
    "changed": ("≠", "changed"),
    "new": ("+", "new"),
    "missing": ("−", "missing"),
}
"""(sign, word) of the statuses that are listed: all but "same"."""

Thumbnails = dict[str, str]
"""Addresses of pictures within the page, by what they show."""


def changed_thumbnails(reference: Input, new: Input, regions: Sequence[Box]) -> Thumbnails:
    """The reference, the new picture, and where they differ, with rings around what is tiny."""
    import cv2

    before, after = reference.load().pixels, new.load().pixels
    low, high = maps.display_range(before)
    factor = _factor(before.shape)
    shrunk = maps.shrunk_view(maps.view(before, low, high), factor)
    classes = maps.shrunk_map(maps.class_map(before, after), factor)
    painted = maps.overlay(shrunk, classes, scale_for(before.dtype))
    for box in regions:
        if max(box.right - box.left, box.bottom - box.top) < RING_PIXELS * factor:
            middle = (box.left + box.right) // 2 // factor, (box.top + box.bottom) // 2 // factor
            cv2.circle(painted, middle, RING_PIXELS, (255, 255, 255), 1, cv2.LINE_AA)
    pictures = {REFERENCE: thumbnail(before, low, high), NEW: thumbnail(after, low, high), MAP: webp(painted, HOW)}
    return {label: data_address("image/webp", picture) for label, picture in pictures.items()}


def alone(pixels: NDArray[Any]) -> str:
    """The address of a thumbnail of a picture that nothing is compared with."""
    return data_address("image/webp", thumbnail(pixels, *maps.display_range(pixels)))


def thumbnail(pixels: NDArray[Any], low: float, high: float, side: int = THUMBNAIL) -> bytes:
    """A picture (HWC) as a WebP of at most `side` pixels a side."""
    return webp(maps.shrunk_view(maps.view(pixels, low, high), _factor(pixels.shape, side)), HOW)


def _factor(shape: tuple[int, ...], side: int = THUMBNAIL) -> int:
    return max(1, -(-max(shape[:2]) // side))
