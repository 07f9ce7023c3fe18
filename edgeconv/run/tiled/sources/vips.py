"""PNG, JPEG, WebP, JPEG 2000, JPEG XL and slides by pieces, through libvips (pyvips).

Such files have no order in which pieces could be fetched, or one that libvips alone knows. It decodes what is no larger
than 100 MB into memory, and anything else into a temporary file of its own (in the folder that TMPDIR names), as large
as the picture: then any piece can be fetched, and memory stays bounded. Pixels were found the same as through the door
for whole pictures (image.py). Damage that libvips even warns of is an error.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import GREY_CHANNELS
from edgeconv.errors import ImageReadError, one_line
from edgeconv.io.formats import png
from edgeconv.io.formats.base import BadPicture
from edgeconv.io.image import DEPTH_NOTE, FRAMES_NOTE, GREY_NOTE, PROFILE_NOTE
from edgeconv.run.tiled.grid import even_cuts
from edgeconv.run.tiled.sources.base import ChunkLayout, TileSource, as_given, check_size, given_channels, unusable

LOADERS = {
    "VipsForeignLoadPngFile": "PNG",
    "VipsForeignLoadJpegFile": "JPEG",
    "VipsForeignLoadWebpFile": "WebP",
    "VipsForeignLoadJp2kFile": "JPEG 2000",
    "VipsForeignLoadJxlFile": "JPEG XL",
    "VipsForeignLoadOpenslideFile": "slide",
}
"""libvips's loaders whose pictures are read, and what their files are called here."""

TYPES = {"uchar": "uint8", "ushort": "uint16", "float": "float32"}
COLOURS = {"srgb": 3, "rgb16": 3, "b-w": 1, "grey16": 1}
"""Bands of a colour by libvips's interpretation; others (CMYK, Lab) are refused."""

PIECE_BYTES = 4 * 2**20
"""Of rows that are fetched at once."""

WINDOW_BYTES = 72 * 2**20
"""libvips looks at its temporary file through windows with margins of up to 10 MB above and below a piece, and lets go
of them late: on two threads up to 46 MiB each were measured (narrow tiles of wide pictures), and this leaves a margin.
"""

IN_MEMORY_BYTES = 100 * 2**20
"""A decoded picture up to there is held in memory (VIPS_DISC_THRESHOLD's default)."""
DECODING_BYTES = 40 * 2**20
"""Beside a picture that is held in memory: 22 MiB and more were measured while a wide JPEG was decoded."""

CONVERT = "convert it to RGB or grey of 8 or 16 bits"


def format_of(path: Path) -> str | None:
    """What a file is, where libvips would take one of `LOADERS` for it; else None."""
    import pyvips

    found = pyvips.vips_lib.vips_foreign_find_load(os.fsencode(path))
    if found == pyvips.ffi.NULL:
        pyvips.vips_lib.vips_error_clear()
        return None
    return LOADERS.get(pyvips.ffi.string(found).decode())


def open_vips(path: Path, rgb: bool = False) -> VipsSource:
    """Open a picture, upright. Raises ImageReadError."""
    import pyvips

    pyvips.cache_set_max(0)  # pieces are fetched once: what it would keep is memory that nobody counts
    format = format_of(path) or "picture"
    if format == "PNG":
        _check_end(path)  # libvips takes all pixels for a whole file
    try:
        image = pyvips.Image.new_from_file(str(path), access="random", fail_on="warning")
        turned = image.get("orientation") if image.get_typeof("orientation") else 1
        return VipsSource(path, format, image.autorot(), turned, rgb)
    except pyvips.Error as error:
        raise unusable(path, format, f"it cannot be opened ({_words(error)})") from None


def _check_end(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            png.check_end(stream)
    except BadPicture as bad:
        raise unusable(path, "PNG", bad.reason, bad.remedy) from None
    except OSError as error:
        raise ImageReadError(f"{path}: cannot be read ({error.strerror}): check its name and permissions.") from None


class VipsSource(TileSource):
    """One picture of libvips."""

    def __init__(self, path: Path, format: str, image: Any, turned: int, rgb: bool) -> None:
        super().__init__(path)
        self._image = image
        check_size(path, format, image.height, image.width)
        colours = COLOURS.get(image.interpretation)
        if colours is None or image.format not in TYPES or image.bands not in (colours, colours + 1):
            what = f"{image.bands} bands of {image.format}, {image.interpretation}"
            raise unusable(path, format, f"its layout ({what}) is not supported", CONVERT)
        dtype = np.dtype(TYPES[image.format])
        pixel_bytes = image.bands * dtype.itemsize
        self._colours, self._dtype = colours, dtype
        self.layout = ChunkLayout(
            height=image.height,
            width=image.width,
            channels=given_channels(colours, rgb),
            dtype=dtype,
            format=format,
            notes=_notes(image, colours, turned, dtype, rgb),
            row_cuts=even_cuts(image.height, max(1, PIECE_BYTES // (pixel_bytes * image.width))),
            column_cuts=(0, image.width),
            stored_bytes_a_pixel=pixel_bytes,
            loader_bytes=_loader_bytes(pixel_bytes * image.width * image.height),
        )

    def load(self, row: int, column: int) -> NDArray[Any]:
        import pyvips

        rows, _ = self.span(row, column)
        image = self._image
        try:
            fetched = pyvips.Region.new(image).fetch(0, rows.start, image.width, len(rows))
        except pyvips.Error as error:
            raise self.damaged(row, column, error) from None
        pixels = np.frombuffer(fetched, self._dtype).reshape(len(rows), image.width, image.bands)
        return as_given(pixels[:, :, : self._colours], self.layout.channels)

    def damaged(self, row: int, column: int, reason: object) -> ImageReadError:
        """See Source.damaged: a file is decoded as a whole, so no place can be named."""
        return unusable(self.path, self.layout.format, f"it cannot be decoded ({_words(reason)})")

    def close(self) -> None:
        """Let go of the picture, and with it of libvips's temporary file."""
        self._image = None


def _notes(image: Any, colours: int, turned: int, dtype: np.dtype[Any], rgb: bool) -> tuple[str, ...]:
    notes = []
    if colours == GREY_CHANNELS and rgb:
        notes.append(GREY_NOTE)
    if image.bands > colours:
        notes.append("alpha channel dropped")
    if turned != 1:
        notes.append(f"orientation {turned} applied")
    if image.get_typeof("n-pages") and image.get("n-pages") > 1:
        notes.append(FRAMES_NOTE)
    if image.get_typeof("icc-profile-data"):
        notes.append(PROFILE_NOTE)
    if dtype == np.uint16:
        notes.append(DEPTH_NOTE)
    return tuple(notes)


def _loader_bytes(decoded_bytes: int) -> int:
    """What libvips takes for a picture of so many bytes: in memory as a whole, or through windows."""
    held = decoded_bytes + DECODING_BYTES if decoded_bytes <= IN_MEMORY_BYTES else 0
    return max(held, WINDOW_BYTES)


def _words(error: object) -> str:
    """libvips's own words on one line."""
    return one_line(getattr(error, "detail", "") or error)
