"""Other sizes of a picture: area averaging downwards, Lanczos upwards, aspect kept.

A size is the longest side in pixels; the other side follows, rounded to nearest and at least 1. `square` cuts the
largest square out of the middle first, which keeps shapes and the directions of edges; stretching would change
both. The type stays (16 bits stay 16 bits), and every size is made from the original picture.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import EdgeconvError, ImageReadError, MemoryLimitError, UsageError
from edgeconv.io.encoding import encode_image
from edgeconv.io.files import is_same_file, is_standard_stream
from edgeconv.io.formats import FORMAT_OF_DTYPE, SUFFIXES
from edgeconv.io.outputs import Outputs
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.io.reading import MAX_SIDE, Picture, longest_side, read_image

_SIZED_STEM = re.compile(r"(?P<base>.+)_(?P<size>[1-9]\d*)")
"""What `resize_files` may have named. `IMG_0001` is not: sizes have no leading zeros."""


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
    `folder` is made where it is missing; None is the source's own (the current one for `-`). A stem that ends in
    the picture's own size loses it: input_4096.png gives input_128.png. A size that would be the source file
    itself is left out; a file that already holds the same pixels is left unchanged and listed.
    """
    sources, sizes = tuple(sources), tuple(sizes)
    making: dict[Path, Callable[[], NDArray[Any]]] = {}

    def reason_to_keep(path: Path) -> str | None:
        return None if _holds(path, making[path]()) else "exists and holds something else"

    with Outputs(sources, overwrite, reason_to_keep) as outputs:
        for source in sources:
            try:
                picture = read_image(source, rules)
                making.clear()
                for size, target in _targets(source, picture, sizes, folder, square).items():
                    making[target] = partial(resize, picture.pixels, size, square=square)
                made = [path for path in making if overwrite or not path.is_file() or not _holds(path, making[path]())]
                for path in made:
                    outputs.reserve_in(path.parent, path.name)
                for path in made:
                    outputs.add(path, encode_image(making[path](), path))
                outputs.put()
                yield source, Resized(tuple(making), picture.notes)
            except EdgeconvError as error:
                outputs.discard()
                yield source, error


def _targets(
    source: Path, picture: Picture, sizes: Iterable[int], folder: Path | str | None, square: bool
) -> dict[int, Path]:
    """The file of each size."""
    height, width = picture.pixels.shape[:2]
    is_stream = is_standard_stream(source)
    stem = "stdin" if is_stream else source.stem
    found = _SIZED_STEM.fullmatch(stem)
    if found and int(found["size"]) == max(height, width):
        stem = found["base"]
    into = Path(folder) if folder is not None else Path() if is_stream else source.parent
    suffix = "." + FORMAT_OF_DTYPE[picture.pixels.dtype.name]
    targets = {size: into / f"{stem}_{size}{suffix}" for size in sizes}
    keeps_shape = not square or height == width
    return {
        size: target
        for size, target in targets.items()
        if not (size == max(height, width) and keeps_shape and is_same_file(source, target))
    }


def find_pictures(places: Iterable[Path | str]) -> list[Path]:
    """The pictures in `places` (files, or folders that are not searched deeper), sorted within each folder.

    A folder may hold its own results: `name_128.png` is left out where it has 128 pixels on its longest side and
    there is `name` itself, or a larger size of it. Any other number is part of a name. Raises ImageReadError for a
    folder that cannot be read and where there is no picture at all.
    """
    pictures: list[Path] = []
    for place in map(Path, places):
        if os.path.isdir(place) and not is_standard_stream(place):
            pictures += _originals(place)
        else:
            pictures.append(place)
    if not pictures:
        raise ImageReadError(f"{', '.join(map(str, places))}: no picture there: name a folder that holds some.")
    return pictures


def _originals(folder: Path) -> list[Path]:
    """The pictures of one folder, sorted, without the smaller sizes of others."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    except OSError as error:
        raise ImageReadError(f"{folder}: cannot be read ({error.strerror}): check its permissions.") from None
    sized = {path: found for path in paths if (found := _sized(path))}
    unsized = {path.stem for path in paths if path not in sized}
    largest = {base: 0 for base, _ in sized.values()}
    for base, size in sized.values():
        largest[base] = max(largest[base], size)
    return [
        path
        for path in paths
        if path not in sized or (sized[path][0] not in unsized and sized[path][1] == largest[sized[path][0]])
    ]


def _sized(path: Path) -> tuple[str, int] | None:
    """The base of a stem `base_size` and the size, where the picture (its header alone is read) has that size."""
    found = _SIZED_STEM.fullmatch(path.stem)
    return (found["base"], int(found["size"])) if found and longest_side(path) == int(found["size"]) else None


def _middle_square(pixels: NDArray[Any]) -> NDArray[Any]:
    """The largest centred square; an odd remainder loses its extra line at the bottom or right."""
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]


def _holds(path: Path, pixels: NDArray[Any]) -> bool:
    """Whether `path` is a picture of exactly these samples."""
    try:
        return np.array_equal(read_image(path).pixels, pixels)
    except ImageReadError:
        return False
