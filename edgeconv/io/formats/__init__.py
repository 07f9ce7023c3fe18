"""The table of picture formats: how each is recognised by its first bytes, what it can hold, how it is encoded.

A new format costs one file, with its `read_header`, and one line here. The modules here parse headers and check that
files are complete; decoding.py and encoding.py call the decoders and encoders. Formats that hold nothing which those
that are written cannot hold are read only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from edgeconv.io.formats import avif, by_pillow, jpeg, jpeg2000, npy, png, pnm, tiff, webp
from edgeconv.io.formats.base import Header, Sides

UNLIMITED = 2**31 - 1


@dataclass(frozen=True)
class Format:
    """One line of the table."""

    name: str
    suffixes: tuple[str, ...]
    signatures: tuple[tuple[int, bytes], ...]
    """(offset, bytes): a file that has any of them at its offset is of this format."""
    read_header: Callable[[bytes, Sides], Header]
    """Checks the structure of a whole file and returns its header; raises BadPicture."""
    writes: tuple[str, ...] = ()
    """Sample types that it can hold without conversion; none for a format that is only read."""
    max_side: int = UNLIMITED
    """The longest side that the format or its encoder can store, in pixels."""
    decode: Callable[[bytes, Header], NDArray[Any] | None] | None = None
    """Its own decoder to HWC or HW, as stored; None, or giving None, where a library decodes it.

    Raises BadPicture, MemoryError."""


FORMATS = (
    Format("PNG", (".png",), ((0, png.SIGNATURE),), png.read_header, ("uint8", "uint16"), 1_000_000, png.decode),
    Format("JPEG", (".jpg", ".jpeg"), ((0, jpeg.SIGNATURE),), jpeg.read_header, ("uint8",), 65_500),
    Format(
        "TIFF",
        (".tif", ".tiff"),
        tuple((0, signature) for signature in tiff.SIGNATURES),
        tiff.read_header,
        ("uint8", "uint16", "float32", "float64"),
        UNLIMITED,
    ),
    Format("WebP", (".webp",), ((8, b"WEBP"),), webp.read_header, ("uint8",), 16_383),
    Format("BMP", (".bmp",), ((0, b"BM"),), by_pillow.read_bmp, ("uint8",), UNLIMITED),
    Format(
        "NPY",
        (".npy",),
        ((0, npy.SIGNATURE),),
        npy.read_header,
        ("uint8", "uint16", "float16", "float32", "float64"),
        UNLIMITED,
        npy.decode,
    ),
    Format("GIF", (".gif",), ((0, b"GIF87a"), (0, b"GIF89a")), by_pillow.read_gif),
    Format(
        "PNM",
        (".ppm", ".pgm", ".pbm", ".pnm"),
        tuple((0, each + space) for each in pnm.SIGNATURES for space in pnm.AFTER_SIGNATURE),
        pnm.read_header,
        decode=pnm.decode,
    ),
    Format("JPEG 2000", (".jp2", ".jpf"), ((0, jpeg2000.FILE_SIGNATURE),), jpeg2000.read_header),
    Format("AVIF", (".avif",), tuple((4, each) for each in avif.SIGNATURES), avif.read_header),
)

SUFFIXES = {suffix: entry for entry in FORMATS for suffix in entry.suffixes}
WRITTEN = {suffix: entry for suffix, entry in SUFFIXES.items() if entry.writes}
"""Those that outputs may have."""
FORMAT_OF_DTYPE = {"uint8": "png", "uint16": "png", "float32": "tiff", "float64": "tiff", "float16": "npy"}
"""The format of an output that is not named: the most common one without loss."""
SIGNATURE_BYTES = 16
"""Bytes of a file that suffice to recognise its format."""
NAMES = ", ".join(entry.name for entry in FORMATS)


def format_of(data: bytes) -> Format | None:
    """The format whose first bytes `data` has, whatever the file is called; None for anything else."""
    for entry in FORMATS:
        if any(data.startswith(signature, place) for place, signature in entry.signatures):
            return entry
    return None
