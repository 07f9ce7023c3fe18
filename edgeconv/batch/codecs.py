"""How the pictures of a batch are decoded and encoded: by the host, or JPEG by the GPU on request.

    --jpeg-codec host    OpenCV, png.py, ... for all formats
    --jpeg-codec gpu     JPEG by nvImageCodec, to and from GPU memory; all else as above

The codec is a parameter of the batch (settings.py), as the output bytes differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edgeconv.batch.settings import Settings
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.errors import ImageWriteError, UnavailableError, UsageError
from edgeconv.io.encoding import encode_image
from edgeconv.io.formats import WRITTEN, Format
from edgeconv.io.formats.base import Header
from edgeconv.io.gpu_jpeg import require_gpu_jpeg, the_gpu
from edgeconv.io.reading import Picture, decode_image

HOST_NOTE = "JPEG decoded by the host, not by the GPU"


def require_jpeg_codec(settings: Settings, device: str, why: str) -> None:
    """Raise UsageError or UnavailableError where this machine lacks what --jpeg-codec needs.

    `device` is the value of --device as given; the settings have the device that was settled, and `why`.
    """
    if settings.jpeg_codec == "host":
        return
    if device == "cpu":
        raise UsageError("--jpeg-codec gpu needs a GPU: leave --device cpu out, or use --jpeg-codec host.")
    require_gpu_jpeg()
    if settings.device != "cuda":
        raise UnavailableError(
            f"--jpeg-codec gpu needs pictures that are filtered on a GPU, and the device is {settings.device} "
            f"({why}): use --device cuda, or --jpeg-codec host."
        )


def decode(data: bytes, name: str, settings: Settings) -> Picture:
    """A picture from a file's bytes, with its pixels on the GPU if it was decoded there. Raises ImageReadError."""
    if settings.jpeg_codec == "host":
        return decode_image(data, name, settings.rules)
    refused = False

    def by_gpu(data: bytes, header: Header) -> Any:
        nonlocal refused
        pixels = the_gpu().decode(data, header)
        refused = pixels is None and header.gpu_jpeg
        return pixels

    picture = decode_image(data, name, settings.rules, decoder=by_gpu)
    return replace(picture, notes=(*picture.notes, HOST_NOTE)) if refused else picture


def encodes_on_gpu(shape: tuple[int, ...], dtype: Any, settings: Settings) -> bool:
    """Whether `encode` takes an output of this shape from GPU memory."""
    entry: Format | None = WRITTEN.get(f".{settings.format}")
    if settings.jpeg_codec == "host" or entry is None or entry.name != "JPEG":
        return False
    return dtype.name in entry.writes and shape[2:] == (RGB_CHANNELS,) and max(shape[:2]) <= entry.max_side


def encode(output: Any, target: str, settings: Settings) -> bytes | memoryview:
    """The bytes of an output file, from a NumPy array, or a CuPy array as above. Raises ImageWriteError."""
    chosen = settings.request.filter
    if chosen.labels:
        return encode_image(output, target, bank=chosen.filters)
    if encodes_on_gpu(output.shape, output.dtype, settings):
        try:
            return the_gpu().encode(output, settings.quality)
        except RuntimeError as error:
            raise ImageWriteError(f"{target}: JPEG: it cannot be encoded on the GPU ({error}).") from None
    threads, quality, png_level = settings.options.threads, settings.quality, settings.png_level
    return encode_image(output, target, threads=threads, quality=quality, png_level=png_level)
