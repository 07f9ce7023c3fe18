"""Other sizes of a picture: area averaging downwards, Lanczos upwards, aspect kept.

A size is the longest side in pixels; the other side follows, rounded to nearest and at least 1. `square` cuts the
largest square out of the middle first, which keeps shapes and the directions of edges; stretching would change
both. The type stays (16 bits stay 16 bits), and every size is made from the original picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import MemoryLimitError, UsageError
from edgeconv.io.encoding import encode_image
from edgeconv.io.files import is_standard_stream
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.io.outputs import Outputs
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.io.reading import MAX_SIDE, read_image


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


def resize_file(
    source: Path,
    sizes: Iterable[int],
    *,
    folder: Path | str | None = None,
    square: bool = False,
    overwrite: bool = False,
    rules: ReadRules = DEFAULT_RULES,
) -> tuple[list[Path], tuple[str, ...]]:
    """Write a picture in each of `sizes` as `<stem>_<size>.png` (float32 .tiff, float16 .npy), all or none.

    Returns the files and what was done to the picture beyond decoding and resizing. `folder` is made where it is
    missing; None is the source's own (the current one for `-`). Raises EdgeconvError.
    """
    is_stream = is_standard_stream(source)
    stem, beside = ("stdin", Path()) if is_stream else (source.stem, source.parent)
    picture = read_image(source, rules)
    suffix = FORMAT_OF_DTYPE[picture.pixels.dtype.name]
    with Outputs([source], overwrite) as outputs:
        into = beside if folder is None else folder
        files = {size: outputs.reserve_in(into, f"{stem}_{size}.{suffix}") for size in sizes}
        for size, file in files.items():
            outputs.add(file, encode_image(resize(picture.pixels, size, square=square), file))
        outputs.put()
    return list(files.values()), picture.notes


def _middle_square(pixels: NDArray[Any]) -> NDArray[Any]:
    """The largest centred square; an odd remainder loses its extra line at the bottom or right."""
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]
