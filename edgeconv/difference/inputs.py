"""The pictures to compare: decoded on demand, so that only two need to be in memory at a time.

Sizes, types and numbers of channels must agree; a conversion that makes types agree is never guessed, only done on
request:

    float32   integers become floats of the same value; float64 is rounded
    unit      integers become floats from 0 to 1, by the largest value of their type
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import LayoutError
from edgeconv.io.files import is_standard_stream
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.io.reading import Picture, read_pages


@dataclass(frozen=True)
class ArrayInput:
    """A picture in memory, ready to be compared."""

    name: str
    pixels: NDArray[Any]
    """HWC: uint8, uint16, float16, float32 or float64."""
    notes: tuple[str, ...] = ()
    """What was done to it beyond decoding, one phrase each."""

    def load(self) -> ArrayInput:
        """The picture itself."""
        return self


@dataclass(frozen=True)
class FileInput:
    """A picture file, decoded each time, all pages of a TIFF; standard input is read once and stored."""

    name: str
    convert: str | None = None
    rules: ReadRules = DEFAULT_RULES

    def load(self) -> ArrayInput:
        """Decode and convert. Raises what `read_pages` raises."""
        picture = self._standard_input if is_standard_stream(self.name) else read_pages(self.name, self.rules)
        pixels = picture.pixels if self.convert is None else CONVERSIONS[self.convert](picture.pixels)
        said = () if pixels is picture.pixels else (f"converted to {self.convert}",)
        return ArrayInput(self.name, pixels, (*picture.notes, *said))

    @cached_property
    def _standard_input(self) -> Picture:
        return read_pages(self.name, self.rules)


Input = ArrayInput | FileInput


def _to_float32(pixels: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):  # a float64 beyond float32 becomes infinite
        return pixels.astype(np.float32, copy=False)


def _to_unit(pixels: NDArray[Any]) -> NDArray[Any]:
    if pixels.dtype.kind == "f":
        return _to_float32(pixels)
    return pixels.astype(np.float32) / np.float32(np.iinfo(pixels.dtype).max)


CONVERSIONS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {"float32": _to_float32, "unit": _to_unit}
"""By the value of `--convert`. A conversion that has nothing to do returns its argument."""


def layout_text(pixels: NDArray[Any]) -> str:
    """Such as `640×480×3 uint8`: width, height, channels, type."""
    height, width, channels = pixels.shape
    return f"{width}×{height}×{channels} {pixels.dtype.name}"


def require_same_layout(reference_name: str, reference: NDArray[Any], name: str, pixels: NDArray[Any]) -> None:
    """Raise LayoutError, naming what differs and what may be done about it."""
    if reference.shape == pixels.shape and reference.dtype == pixels.dtype:
        return
    if reference.shape[:2] != pixels.shape[:2]:
        way_out = "compare pictures of one size"
    else:
        ways = []
        if reference.shape[2] != pixels.shape[2]:
            ways.append("--rgb")
        if reference.dtype != pixels.dtype:
            ways.append("--convert with float32 (same values) or unit (0 to 1)")
        way_out = f"pass {' and '.join(ways)}"
    raise LayoutError(f"{name} is {layout_text(pixels)}, {reference_name} is {layout_text(reference)}: {way_out}.")


def labels_of(names: Sequence[str]) -> list[str]:
    """Short distinct labels: the last parts of the paths, as many as are needed to tell them apart."""
    parts = [name.replace("\\", "/").strip("/").split("/") for name in names]
    for kept in range(1, max(map(len, parts)) + 1):
        short = ["/".join(part[-kept:]) for part in parts]
        if len(set(short)) == len(set(names)):
            return short
    return list(names)
