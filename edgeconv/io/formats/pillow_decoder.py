"""Decoding by Pillow: GIF, and the 8-bit TIFFs and CMYK JPEGs that OpenCV decodes incorrectly.

Pillow warns of and refuses pictures above its own `Image.MAX_IMAGE_PIXELS`, which is below edgeconv's limit and does
not follow `--max-pixels`. While a picture is open here that check is off, as its size was checked before. Pillow's
warnings about unknown tags are suppressed too: damage that matters is an error.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import one_line
from edgeconv.io.formats.base import BadPicture, Header
from edgeconv.io.formats.shared_setting import PutBack, SharedSetting
from edgeconv.io.formats.straight_alpha import with_straight_alpha
from edgeconv.io.formats.tiff import without_the_rest

logging.getLogger("PIL").addHandler(logging.NullHandler())  # errors are reported by our own one-line message

MODES_AS_STORED = ("L", "RGB", "RGBA", "RGBX", "RGBa")
"""Modes whose first channels are the colours as the file has them."""

MULTIPLIED, STRAIGHT = "RGBa", "RGBA"
"""Prefixes of Pillow's raw modes: with the first it divides colours by their alpha, with the second it does not."""


def decode_tiff(data: bytes, header: Header) -> NDArray[Any]:
    """Decode an 8-bit TIFF, upright, HWC or HW; colours stay as stored, whatever the alpha channel says.

    Raises BadPicture, MemoryError.
    """
    from PIL import ImageOps

    with _opened(io.BytesIO(without_the_rest(with_straight_alpha(data))), "TIFF") as stored:
        if stored.width * stored.height != header.width * header.height:
            raise BadPicture("its directory states two sizes")
        stored.tile = [_as_stored(piece) for piece in stored.tile]
        image = ImageOps.exif_transpose(stored)
        if image.mode in ("LA", "La"):
            image = image.getchannel(0)
        return np.asarray(image if image.mode in MODES_AS_STORED else image.convert("RGB"))


def decode_cmyk_jpeg(data: bytes) -> NDArray[Any]:
    """Decode a JPEG in CMYK or YCCK to RGB, as stored, HWC: R = 255 · (1 - C/255) · (1 - K/255), to nearest.

    OpenCV's own conversion is one level too bright for nearly every sample. Raises BadPicture, MemoryError.
    """
    with _opened(io.BytesIO(data), "JPEG") as stored:
        return np.asarray(stored.convert("RGB"))


def decode_gif(data: bytes, header: Header) -> NDArray[Any]:
    """The first frame of a GIF by its palette, HWC; transparent pixels have the colour that stands for them.

    Raises BadPicture, MemoryError.
    """
    with _opened(io.BytesIO(data[: header.file_bytes]), "GIF") as stored:
        return np.asarray(stored.convert("RGB"))


def _as_stored(piece: Any) -> Any:
    """A tile of a file as Pillow describes it (decoder, place, offset, arguments), read without dividing by alpha."""
    decoder, place, offset, arguments = piece
    if not isinstance(arguments, tuple) or not str(arguments[0]).startswith(MULTIPLIED):
        return piece
    arguments = (arguments[0].replace(MULTIPLIED, STRAIGHT), *arguments[1:])
    # a named tuple from Pillow 11 on
    return piece._replace(args=arguments) if hasattr(piece, "_replace") else (decoder, place, offset, arguments)


@contextmanager
def _opened(stream: IO[bytes], format: str) -> Iterator[Any]:
    """A `PIL.Image` of `stream`, whose every failure is BadPicture or MemoryError."""
    from PIL import Image, UnidentifiedImageError

    with _LIMIT_LIFTED:
        try:
            with Image.open(stream, formats=[format]) as image:
                yield image
        except (BadPicture, MemoryError):
            raise
        except UnidentifiedImageError:  # its message has the address of our stream, which varies
            raise BadPicture("it cannot be decoded (its header is damaged or not complete)") from None
        except Exception as error:  # its readers raise whatever the damage leads to: KeyError, struct.error, ...
            raise BadPicture(f"it cannot be decoded ({one_line(error)})") from None


def _lift_limit() -> PutBack:
    """Switch off Pillow's size limit and warnings."""
    from PIL import Image

    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    filters = warnings.catch_warnings()
    filters.__enter__()
    warnings.filterwarnings("ignore", module=r"PIL\.")

    def put_back() -> None:
        Image.MAX_IMAGE_PIXELS = limit
        filters.__exit__(None, None, None)

    return put_back


_LIMIT_LIFTED = SharedSetting(_lift_limit)
