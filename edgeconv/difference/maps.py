"""Pictures as 8-bit RGB for a screen, and maps of where they differ: one array operation each, no text.

view          a picture as 8-bit RGB; 16 bits by their upper byte, floats from `low` to `high`
class_map     H×W: the class (scale.py) of the largest |difference| of a pixel's channels
heat          that in colours; overlay: over the dimmed grey reference
shrunk_view   average over blocks: what a picture looks like from afar
shrunk_map    largest class of a block: a single differing pixel stays visible from any distance
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import bands
from edgeconv.difference.scale import Scale, magnitude_of, scale_for

ROWS_AT_ONCE = 64


def display_range(reference: NDArray[Any]) -> tuple[float, float]:
    """(low, high): the values that are shown black and white. Integers: the type's; floats: the reference's."""
    if reference.dtype.kind == "u":
        return 0.0, float(np.iinfo(reference.dtype).max)
    finite = reference[np.isfinite(reference)].astype(np.float64)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return (low, high) if high > low else (low, low + 1)


def view(pixels: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """A picture, HWC with 1 or 3 channels, as H×W×3 for a screen. NaN is black."""
    shown = np.empty((*pixels.shape[:2], 3), np.uint8)
    for start, stop in bands(pixels.shape[0], ROWS_AT_ONCE):
        strip = pixels[start:stop]
        if strip.dtype == np.uint16:
            strip = strip >> 8
        elif strip.dtype.kind == "f":
            inside = np.clip(np.nan_to_num(strip.astype(np.float64), nan=low), low, high)
            strip = np.rint((inside - low) * (255 / (high - low)))
        shown[start:stop] = strip
    return shown


def class_map(reference: NDArray[Any], other: NDArray[Any]) -> NDArray[np.uint8]:
    """The class of each pixel's largest |difference|, H×W."""
    scale = scale_for(reference.dtype)
    found = np.empty(reference.shape[:2], np.uint8)
    for start, stop in bands(reference.shape[0], ROWS_AT_ONCE):
        magnitude = magnitude_of(reference[start:stop], other[start:stop]).max(axis=2)
        found[start:stop] = scale.classes(magnitude)
    return found


def heat(classes: NDArray[np.uint8], scale: Scale) -> NDArray[np.uint8]:
    """A class map in the scale's colours, H×W×3."""
    return np.asarray(scale.colours, np.uint8)[classes]


def overlay(reference_view: NDArray[np.uint8], classes: NDArray[np.uint8], scale: Scale) -> NDArray[np.uint8]:
    """Differing pixels in heat colours over the reference in grey at half brightness, H×W×3."""
    dimmed = np.repeat((reference_view.max(axis=2) >> 1)[..., None], 3, axis=2)
    differs = classes > 0
    dimmed[differs] = np.asarray(scale.colours, np.uint8)[classes[differs]]
    return dimmed


def shrunk_view(shown: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """The mean of each factor×factor block (smaller at the right and bottom edge), HWC."""
    import cv2

    height, width = shown.shape[:2]
    padded = np.pad(shown, ((0, -height % factor), (0, -width % factor), (0, 0)), mode="edge")
    sides = padded.shape[1] // factor, padded.shape[0] // factor
    shrunk: NDArray[np.uint8] = cv2.resize(padded, sides, interpolation=cv2.INTER_AREA)
    return shrunk


def shrunk_map(classes: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """The largest class of each factor×factor block (smaller at the right and bottom edge), H×W."""
    height, width = classes.shape
    padded = np.pad(classes, ((0, -height % factor), (0, -width % factor)))
    blocks = padded.reshape(padded.shape[0] // factor, factor, padded.shape[1] // factor, factor)
    largest: NDArray[np.uint8] = blocks.max(axis=(1, 3))
    return largest
