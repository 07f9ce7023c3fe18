"""Other sizes of a picture: area averaging downwards, Lanczos upwards, aspect kept.

A size is the longest side in pixels; the other side follows, rounded to nearest and at least 1. `square` cuts the
largest square out of the middle first, so that shapes and the directions of edges stay as they are, which a
stretch would change. The type stays (16 bits stay 16 bits), and every size is made from the original picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import ImageReadError, ImageWriteError, UsageError
from edgeconv.files import STANDARD_STREAM, is_standard_stream, refuse_overwrite
from edgeconv.formats import SUFFIXES
from edgeconv.image import DEFAULT_MAX_PIXELS, MAX_SIDE, read_image, write_image

Interpolation = Literal["auto", "area", "lanczos", "cubic", "linear", "nearest"]
INTERPOLATIONS: tuple[Interpolation, ...] = get_args(Interpolation)

DEFAULT_SIZES = "128:4096"

_SIZED_STEM = re.compile(r"(?P<base>.+)_(?P<size>\d+)")


def parse_sizes(text: str) -> tuple[int, ...]:
    """`128,256` as it stands; `128:4096` doubles from the first as long as the last is not passed.

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


def resize(pixels: NDArray[Any], size: int, *, square: bool = False, interpolation: str = "auto") -> NDArray[Any]:
    """`pixels` (HWC) with a longest side of `size`, in the same type; the same pixels where nothing changes.

    `interpolation` is one of INTERPOLATIONS; `auto` is area downwards and Lanczos (8×8) upwards. Integer results
    are rounded and clipped to the type. Raises UsageError.
    """
    if interpolation not in INTERPOLATIONS:
        raise UsageError(f"Interpolation '{interpolation}' is not one of {', '.join(INTERPOLATIONS)}.")
    if not 1 <= size <= MAX_SIDE:
        raise UsageError(f"Size {size} is not from 1 to {MAX_SIDE:,}.")
    if square:
        pixels = _middle_square(pixels)
    height, width = pixels.shape[:2]
    longest = max(height, width)
    if size == longest:
        return np.ascontiguousarray(pixels)
    if interpolation == "auto":
        interpolation = "area" if size < longest else "lanczos"
    import cv2

    code = {
        "area": cv2.INTER_AREA,
        "lanczos": cv2.INTER_LANCZOS4,
        "cubic": cv2.INTER_CUBIC,
        "linear": cv2.INTER_LINEAR,
        "nearest": cv2.INTER_NEAREST_EXACT,
    }[interpolation]
    sides = tuple(max(1, (2 * side * size + longest) // (2 * longest)) for side in (width, height))
    computed = pixels.astype(np.float32) if pixels.dtype == np.float16 else pixels  # OpenCV has no float16 here
    resized: NDArray[Any] = cv2.resize(np.ascontiguousarray(computed), sides, interpolation=code)
    return resized.reshape(sides[1], sides[0], -1).astype(pixels.dtype, copy=False)


def resize_file(
    source: Path | str,
    sizes: Iterable[int],
    *,
    folder: Path | str | None = None,
    square: bool = False,
    interpolation: str = "auto",
    overwrite: bool = False,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> list[Path]:
    """Write `source` in each of `sizes` as `<stem>_<size>.png` (floats .tiff) and return the files that hold them.

    `folder` is made where it is missing; None is the source's own (the current one for `-`). A stem that ends in
    the picture's own size loses it: input_4096.png gives input_128.png. A size that would be the source file
    itself is left out; a file that already holds the very pixels is left as it is and listed. Raises ImageReadError,
    UsageError, and ImageWriteError before anything is written where a file holds something else and `overwrite` is
    not set.
    """
    picture = read_image(source, max_pixels=max_pixels)
    stem = "stdin" if is_standard_stream(source) else Path(source).stem
    found = _SIZED_STEM.fullmatch(stem)
    if found and int(found["size"]) == max(picture.pixels.shape):
        stem = found["base"]
    into = _folder_for(source, folder)
    done: list[int] = []
    suffix = ".tiff" if picture.pixels.dtype.kind == "f" else ".png"
    targets = {size: into / f"{stem}_{size}{suffix}" for size in sizes}
    for size, target in list(targets.items()):
        if size == max(picture.pixels.shape) and not square and _same_file(source, target):
            del targets[size]
            continue
        refuse_overwrite(source, target)
        if target.exists() and not overwrite:
            if not _holds(target, resize(picture.pixels, size, square=square, interpolation=interpolation)):
                way_out = "pass --overwrite to replace it, or -o for another folder"
                raise ImageWriteError(f"Output '{target}' exists and holds something else: {way_out}.")
            done.append(size)
    for size, target in targets.items():
        if size not in done:
            write_image(resize(picture.pixels, size, square=square, interpolation=interpolation), target)
    return list(targets.values())


def find_pictures(places: Iterable[Path | str]) -> list[Path]:
    """The pictures in `places` (files, or folders that are not searched deeper), sorted within each folder.

    Of one picture in several sizes (`name_128.png`, `name_256.png`) only the largest is taken, so that a folder may
    hold its own results. Raises ImageReadError for a place that is missing and where there is no picture at all.
    """
    pictures: list[Path] = []
    for place in map(Path, places):
        if not place.is_dir():
            pictures.append(place)
            continue
        largest: dict[str, tuple[int, Path]] = {}
        for path in sorted(place.iterdir()):
            if path.suffix.lower() not in SUFFIXES or not path.is_file():
                continue
            found = _SIZED_STEM.fullmatch(path.stem)
            base, size = (found["base"], int(found["size"])) if found else (path.name, 0)
            if base not in largest or size > largest[base][0]:
                largest[base] = (size, path)
        pictures += [path for _, path in largest.values()]
    if not pictures:
        raise ImageReadError(f"{', '.join(map(str, places))}: no picture there: name a folder that holds some.")
    return pictures


def _middle_square(pixels: NDArray[Any]) -> NDArray[Any]:
    """The largest square in the middle; of an odd rest the extra line is cut at the bottom or right."""
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]


def _folder_for(source: Path | str, folder: Path | str | None) -> Path:
    """Where results go, made if it is missing. Raises ImageWriteError."""
    if folder is None:
        return Path() if is_standard_stream(source) else Path(source).parent
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImageWriteError(f"Output folder '{folder}' cannot be made: {error.strerror}.") from None
    return Path(folder)


def _holds(path: Path, pixels: NDArray[Any]) -> bool:
    """Whether `path` is a picture of exactly these samples."""
    try:
        return np.array_equal(read_image(path).pixels, pixels)
    except ImageReadError:
        return False


def _same_file(source: Path | str, target: Path) -> bool:
    return str(source) != STANDARD_STREAM and target.exists() and target.samefile(source)
