"""Other sizes of a picture: area averaging downwards, Lanczos upwards, aspect kept.

A size is the longest side in pixels; the other side follows, rounded to nearest and at least 1. `square` cuts the
largest square out of the middle first, which keeps shapes and the directions of edges; stretching would change
both. The type stays (16 bits stay 16 bits), and every size is made from the original picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import EdgeconvError, ImageReadError, MemoryLimitError, UsageError
from edgeconv.io.encoding import encode_image
from edgeconv.io.files import is_standard_stream
from edgeconv.io.formats import FORMAT_OF_DTYPE, SUFFIXES
from edgeconv.io.outputs import Outputs
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.io.reading import MAX_SIDE, read_image


@dataclass(frozen=True)
class Resized:
    """The resized files of one picture."""

    files: tuple[Path, ...]
    """The files that hold its sizes, in the order of the sizes."""
    notes: tuple[str, ...]
    """What was done to it beyond decoding and resizing, one phrase each."""


def parse_sizes(text: str) -> tuple[int, ...]:
    """`128,256` lists sizes; `128:4096` doubles from the first up to at most the last.

    Both may be joined by commas; a size that comes twice counts once. Raises UsageError.
    """
    sizes: dict[int, None] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d+)\s*(?::\s*(\d+)\s*)?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last <= MAX_SIDE:
            raise UsageError(f"Sizes '{text}' are not like 128,256 or 128:4096, each from 1 to {MAX_SIDE:,}.")
        while first <= last:
            sizes[first] = None
            first *= 2
    return tuple(sizes)


def resize(pixels: NDArray[Any], size: int, *, square: bool = False) -> NDArray[Any]:
    """`pixels` (HWC) with a longest side of `size`, in the same type; the same pixels where nothing changes.

    Integer results are rounded and clipped to the type. Raises UsageError, MemoryLimitError.
    """
    if not 1 <= size <= MAX_SIDE:
        raise UsageError(f"Size {size} is not from 1 to {MAX_SIDE:,}.")
    if square:
        pixels = _middle_square(pixels)
    height, width = pixels.shape[:2]
    longest = max(height, width)
    if size == longest:
        return np.ascontiguousarray(pixels)
    import cv2

    code = cv2.INTER_AREA if size < longest else cv2.INTER_LANCZOS4
    new_width, new_height = (max(1, (2 * side * size + longest) // (2 * longest)) for side in (width, height))
    try:
        computed = pixels.astype(np.float32) if pixels.dtype == np.float16 else pixels  # OpenCV has no float16 here
        resized: NDArray[Any] = cv2.resize(np.ascontiguousarray(computed), (new_width, new_height), interpolation=code)
        return resized.reshape(new_height, new_width, -1).astype(pixels.dtype, copy=False)
    except (MemoryError, cv2.error) as error:
        if isinstance(error, cv2.error) and error.code != cv2.Error.StsNoMem:
            raise
        needed = new_height * new_width * pixels[0, 0].nbytes
        raise MemoryLimitError(
            f"Size {size}: not enough memory for {new_width:,}×{new_height:,} pixels ({needed:,} bytes): "
            "choose a smaller size."
        ) from None


def resize_files(
    sources: Iterable[Path],
    sizes: Iterable[int],
    *,
    folder: Path | str | None = None,
    square: bool = False,
    overwrite: bool = False,
    rules: ReadRules = DEFAULT_RULES,
) -> Iterator[tuple[Path, Resized | EdgeconvError]]:
    """Write each picture in each of `sizes` as `<stem>_<size>.png` (float32 .tiff, float16 .npy).

    Gives each source with its files, or with the error that left it without any and that stops no other picture.
    `folder` is made where it is missing; None is the source's own (the current one for `-`).
    """
    sources, sizes = tuple(sources), tuple(sizes)
    with Outputs(sources, overwrite) as outputs:
        for source in sources:
            try:
                picture = read_image(source, rules)
                is_stream = is_standard_stream(source)
                stem = "stdin" if is_stream else source.stem
                into = Path(folder) if folder is not None else Path() if is_stream else source.parent
                suffix = FORMAT_OF_DTYPE[picture.pixels.dtype.name]
                targets = {size: into / f"{stem}_{size}.{suffix}" for size in sizes}
                for target in targets.values():
                    outputs.reserve(target.name, target.parent)
                for size, target in targets.items():
                    outputs.add(target, encode_image(resize(picture.pixels, size, square=square), target))
                outputs.put()
                yield source, Resized(tuple(targets.values()), picture.notes)
            except EdgeconvError as error:
                outputs.discard()
                yield source, error


def find_pictures(places: Iterable[Path | str]) -> list[Path]:
    """The pictures in `places` (files, or folders that are not searched deeper), sorted within each folder.

    Raises ImageReadError for a folder that cannot be read, or if there is no picture at all.
    """
    pictures: list[Path] = []
    for place in map(Path, places):
        if is_standard_stream(place) or not place.is_dir():
            pictures.append(place)
            continue
        try:
            pictures += sorted(path for path in place.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
        except OSError as error:
            raise ImageReadError(f"{place}: cannot be read ({error.strerror}): check its permissions.") from None
    if not pictures:
        raise ImageReadError(f"{', '.join(map(str, places))}: no picture there: name a folder that holds some.")
    return pictures


def _middle_square(pixels: NDArray[Any]) -> NDArray[Any]:
    """The largest centred square; an odd remainder loses its extra line at the bottom or right."""
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]
