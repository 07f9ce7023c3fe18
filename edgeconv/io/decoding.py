"""Which decoder keeps every bit of a file, and its call: OpenCV, Pillow, or a reader of ours (NPY, PNM).

    OpenCV    all that it decodes without a fault; the faults that it does not report are sent elsewhere or undone here
    Pillow    GIF, of which OpenCV leaves missing parts black; TIFFs of 8 bits that are compressed, tiled or have
              straight alpha (formats/tiff.py); JPEGs in CMYK, which OpenCV makes one level too bright

OpenCV always gets bytes, so that no path passes through it. `import cv2` comes late: `import edgeconv` must not pay
for it. What a decoder prints is returned beside the pixels (formats/messages.py).
"""

from __future__ import annotations

import io
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.errors import one_line
from edgeconv.io.formats import Format, png, tiff
from edgeconv.io.formats.base import AGAIN, BadPicture, Header
from edgeconv.io.formats.messages import LISTENER

TURNS: dict[int, tuple[bool, tuple[int, ...]]] = {
    1: (False, ()),
    2: (False, (1,)),
    3: (False, (0, 1)),
    4: (False, (0,)),
    5: (True, ()),
    6: (True, (1,)),
    7: (True, (0, 1)),
    8: (True, (0,)),
}
"""EXIF orientations: whether height and width change places, and the axes that are mirrored after that."""

logging.getLogger("PIL").addHandler(logging.NullHandler())  # errors are reported by our own one-line message
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.TiffImagePlugin")  # odd tags spoil no pixel


def decode(data: bytes, entry: Format, header: Header) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The upright pixels (HWC, RGB or grey, alpha last where it is stored) and the lines that the decoder printed.

    Samples have the full range of their type. Raises BadPicture, MemoryError.
    """
    try:
        with LISTENER.turn(alone=False) as turn:
            pixels = _decode(data, entry, header)
        if turn.disturbed and not turn.was_alone:  # only a turn alone can tell whose the warnings were
            del pixels  # two at once would be twice the memory
            with LISTENER.turn(alone=True) as turn:
                pixels = _decode(data, entry, header)
    except BadPicture:
        if header.rare_compression is None:
            raise
        reason = f"its compression ({header.rare_compression}) is not supported here, or its contents are damaged"
        raise BadPicture(reason, tiff.BY_TILES if entry.name == "TIFF" else f"{AGAIN}, or convert it to PNG") from None
    turned_already = entry.name == "TIFF" and header.decoder == "opencv"  # even when asked not to
    transposed, flipped = TURNS[1 if turned_already else header.orientation]
    if transposed or flipped:
        with failures("turned", AGAIN) as cv2:
            pixels = cv2.transpose(pixels) if transposed else pixels
            pixels = cv2.flip(pixels, {(0,): 0, (1,): 1, (0, 1): -1}[flipped]) if flipped else pixels
    if header.largest is not None:
        pixels = _stretched(pixels, header.largest)
    return pixels if pixels.ndim == 3 else pixels[:, :, np.newaxis], turn.lines


def _decode(data: bytes, entry: Format, header: Header) -> NDArray[Any]:
    """The pixels, HWC or HW, as stored, with the values that the file has."""
    if entry.decode is not None and (own := entry.decode(data, header)) is not None:
        rest = png.without_pixels(data) if entry.name == "PNG" else None
        # OpenCV complains of the other chunks of a PNG, and may even refuse the file for them.
        if rest is None or opencv().imdecode(np.frombuffer(rest, np.uint8), 0) is not None:
            return own
    data, by_pillow = data[: header.file_bytes], header.decoder == "pillow"
    as_stored = entry.name in ("TIFF", "AVIF")
    with failures("decoded", AGAIN) as cv2:
        flags = (cv2.IMREAD_GRAYSCALE if header.grey else cv2.IMREAD_COLOR_RGB) | cv2.IMREAD_ANYDEPTH
        flags |= cv2.IMREAD_IGNORE_ORIENTATION
        if as_stored:  # OpenCV's own conversion corrupts 16-bit TIFF and AVIF with alpha
            flags = cv2.IMREAD_UNCHANGED
        elif by_pillow:  # for libjpeg's warnings, which Pillow hides
            flags = cv2.IMREAD_REDUCED_GRAYSCALE_8
        pixels: Any = None
        if not by_pillow or entry.name == "JPEG":
            pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
            if pixels is None:
                raise BadPicture("it cannot be decoded, so its contents are damaged")
        if by_pillow:
            pixels = _by_pillow(data, entry, header)
        elif as_stored and pixels.shape[2:] in ((3,), (4,)):
            pixels = swap_red_and_blue(pixels[:, :, :RGB_CHANNELS])
        decoded: NDArray[Any] = pixels
        return decoded


@cache
def opencv() -> Any:
    """The module cv2, imported late, with its own, lower size limits lifted and its log silent, unless that was set."""
    for limit in ("PIXELS", "WIDTH", "HEIGHT"):
        os.environ.setdefault(f"OPENCV_IO_MAX_IMAGE_{limit}", str(2**40))
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")  # errors are reported by our own one-line message
    import cv2

    return cv2


@contextmanager
def failures(what: str, remedy: str) -> Iterator[Any]:
    """The module cv2, whose errors in the block become MemoryError, or BadPicture: it cannot be `what`."""
    cv2 = opencv()
    try:
        yield cv2
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError from None
        raise BadPicture(f"it cannot be {what} ({one_line(error)})", remedy) from None


def swap_red_and_blue(pixels: NDArray[Any]) -> NDArray[Any]:
    """RGB from BGR and back."""
    if pixels.dtype == np.float64:  # which cvtColor does not have
        return np.ascontiguousarray(pixels[:, :, ::-1])
    cv2 = opencv()
    swapped: NDArray[Any] = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2BGR)
    return swapped


def _by_pillow(data: bytes, entry: Format, header: Header) -> NDArray[Any]:
    """Decode with Pillow to grey or RGB as the file has them, whatever its alpha channel says.

    The class of the format is called, not `Image.open`, whose own limit of pixels is below ours. A colour of a CMYK
    JPEG is 255 · (1 - C/255) · (1 - K/255), to nearest; transparent pixels of a GIF have their colour of the palette.
    """
    name = entry.name.capitalize() if entry.name != "GIF" else "Gif"
    data = tiff.for_pillow(data) if entry.name == "TIFF" else data
    from PIL.ImageFile import ImageFile

    try:
        plugin = import_module(f"PIL.{name}ImagePlugin")
        with getattr(plugin, f"{name}ImageFile")(io.BytesIO(data)) as image:
            if image.size != (header.width, header.height):
                raise BadPicture("it states two sizes")
            image.load_prepare = partial(ImageFile.load_prepare, image)  # a TIFF's own has Pillow's limit of pixels
            if image.mode in ("LA", "La"):
                return np.asarray(image.getchannel(0))
            is_plain = image.mode in ("L", "RGB", "RGBA", "RGBX")
            return np.asarray(image if is_plain else image.convert("RGB"))
    except (BadPicture, MemoryError):
        raise
    except Exception as error:  # its readers raise whatever the damage leads to: KeyError, struct.error, ...
        raise BadPicture(f"it cannot be decoded ({one_line(error)})") from None


def _stretched(pixels: NDArray[Any], largest: int) -> NDArray[Any]:
    """Samples from 0 to `largest` over the full range of their type, to nearest: 10 bits become 16."""
    if pixels.dtype.kind != "u" or (full := np.iinfo(pixels.dtype).max) == largest:
        return pixels
    table = np.rint(np.arange(full + 1.0).clip(max=largest) * full / largest).astype(pixels.dtype)
    stretched: NDArray[Any] = table[pixels]
    return stretched
