"""What Pillow is asked for: the 8-bit TIFFs that OpenCV gets wrong, and the size of a picture from its header alone.

Pillow warns of and refuses pictures above its own `Image.MAX_IMAGE_PIXELS`, which lies below edgeconv's limit and
knows nothing of `--max-pixels`. While a picture is open here that check is off: its size was compared with our limit
before, or no pixel is decoded at all. Its warnings of odd tags are kept from the screen too: damage that matters is an
error. (What libtiff prints by itself cannot be kept back in one thread alone.)
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.formats.base import BadPicture, Header
from edgeconv.formats.straight_alpha import with_straight_alpha

MODES_AS_STORED = ("L", "RGB", "RGBA", "RGBX", "RGBa")
"""Modes whose first channels are the colours as the file has them."""

MULTIPLIED, STRAIGHT = "RGBa", "RGBA"
"""How samples of a file begin whose colours Pillow would divide by their alpha, and how where it leaves them alone."""

_lock = threading.Lock()
_open_here = 0
_limit_before: int | None = None
_filters_before = warnings.catch_warnings()


def decode_tiff(data: bytes, header: Header) -> NDArray[Any]:
    """Decode an 8-bit TIFF, upright, HWC or HW; colours stay as stored, whatever alpha beside them says.

    Raises BadPicture, MemoryError.
    """
    from PIL import ImageOps

    with _opened(io.BytesIO(with_straight_alpha(data)), "TIFF") as stored:
        if stored.width * stored.height != header.width * header.height:
            raise BadPicture("its directory states two sizes")
        stored.tile = [_as_stored(piece) for piece in stored.tile]
        image = ImageOps.exif_transpose(stored)
        if image.mode in ("LA", "La"):
            image = image.getchannel(0)
        return np.asarray(image if image.mode in MODES_AS_STORED else image.convert("RGB"))


def _as_stored(piece: Any) -> Any:
    """A piece of a file as Pillow describes it (decoder, place, offset, arguments), read without any division."""
    decoder, place, offset, arguments = piece
    if not isinstance(arguments, tuple) or not str(arguments[0]).startswith(MULTIPLIED):
        return piece
    arguments = (arguments[0].replace(MULTIPLIED, STRAIGHT), *arguments[1:])
    # a named tuple from Pillow 11 on
    return piece._replace(args=arguments) if hasattr(piece, "_replace") else (decoder, place, offset, arguments)


def read_size(stream: IO[bytes], format: str) -> tuple[int, int]:
    """Width and height as the header of a picture of `format` (a name of the table) says. Raises BadPicture."""
    with _opened(stream, format.upper()) as image:
        size: tuple[int, int] = image.size
        return size


@contextmanager
def _opened(stream: IO[bytes], format: str) -> Iterator[Any]:
    """A `PIL.Image` of `stream`, whose every failure is BadPicture or MemoryError."""
    from PIL import Image

    with _left_in_peace():
        try:
            with Image.open(stream, formats=[format]) as image:
                yield image
        except (BadPicture, MemoryError):
            raise
        except Exception as error:  # its readers let out whatever the damage leads to: KeyError, struct.error, ...
            words = " ".join(str(error).split())[:120] or type(error).__name__
            raise BadPicture(f"it cannot be decoded ({words})") from None


@contextmanager
def _left_in_peace() -> Iterator[None]:
    """Put Pillow's limit and warnings out of the way, and back when the last of the threads in here leaves."""
    global _open_here, _limit_before, _filters_before
    from PIL import Image

    with _lock:
        if _open_here == 0:
            _limit_before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
            _filters_before = warnings.catch_warnings()
            _filters_before.__enter__()
            warnings.filterwarnings("ignore", module=r"PIL\.")
        _open_here += 1
    try:
        yield
    finally:
        with _lock:
            _open_here -= 1
            if _open_here == 0:
                Image.MAX_IMAGE_PIXELS = _limit_before
                _filters_before.__exit__(None, None, None)
