"""Pictures as 8-bit RGB for a screen, and maps of where they differ: one array operation each, no text.

view          a picture as 8-bit RGB; 16 bits by their upper byte, floats from `low` to `high`
class_map     H×W: the class (scale.py) of the largest |difference| of a pixel's channels
sign_map      H×W: the sign of that difference, −1, 0 or 1; 0 too where a NaN has none
heat, signed  those as colours; overlay: heat over the dimmed grey reference
shrunk_view   average over blocks: what a picture looks like from afar
shrunk_map    largest class of a block: a single differing pixel stays visible from any distance
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import bands
from edgeconv.difference.scale import SAME_COLOUR, UNBOUNDED_COLOUR, Scale, magnitude_of, scale_for

ROWS_AT_ONCE = 64

PLUS_ENDS = ((110, 24, 24), (255, 214, 190))
MINUS_ENDS = ((24, 44, 130), (190, 224, 255))
"""Darkest and lightest colour of the signed map, for other > reference and other < reference."""


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


def sign_map(reference: NDArray[Any], other: NDArray[Any]) -> NDArray[np.int8]:
    """The sign of each pixel's largest difference (of equal ones the first channel's), H×W."""
    signs = np.empty(reference.shape[:2], np.int8)
    for start, stop in bands(reference.shape[0], ROWS_AT_ONCE):
        before, after = reference[start:stop], other[start:stop]
        channel = magnitude_of(before, after).argmax(axis=2)[..., None]
        low, high = (np.take_along_axis(pixels, channel, axis=2)[..., 0] for pixels in (before, after))
        signs[start:stop] = (high > low).astype(np.int8) - (high < low).astype(np.int8)
    return signs


def heat(classes: NDArray[np.uint8], scale: Scale) -> NDArray[np.uint8]:
    """A class map in the scale's colours, H×W×3."""
    return np.asarray(scale.colours, np.uint8)[classes]


def signed_colours(scale: Scale) -> NDArray[np.uint8]:
    """3×classes×3: the colours of sign 0, 1 and −1 (as an index from the end) for each class."""
    count = len(scale.labels)
    shares = np.linspace(0, 1, count - 1)[:, None]
    table = np.empty((3, count, 3), np.uint8)
    table[:, 0] = SAME_COLOUR
    table[0, 1:] = scale.colours[1:]
    for sign, (dark, light) in ((1, PLUS_ENDS), (-1, MINUS_ENDS)):
        table[sign, 1:] = np.rint(np.asarray(dark) + shares * (np.asarray(light) - dark))
    if scale.colours[-1] == UNBOUNDED_COLOUR:  # no magnitude, so no sign either
        table[:, -1] = UNBOUNDED_COLOUR
    return table


def signed(classes: NDArray[np.uint8], signs: NDArray[np.int8], scale: Scale) -> NDArray[np.uint8]:
    """A class map coloured by sign: red where the other is larger, blue where it is smaller, H×W×3."""
    return signed_colours(scale)[signs, classes]


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
