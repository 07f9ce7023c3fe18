"""PNG, JPEG, WebP, rotated TIFF, JPEG 2000, JPEG XL and slides, through libvips (pyvips).

Such files have no order in which parts could be fetched, or one that libvips alone knows. It decodes what is no larger
than 100 MB into memory, and anything else into a temporary file of its own (in the folder that TMPDIR names), as large
as the picture: then any part can be fetched, and memory stays bounded. Pixels were found the same as those of whole
pictures. Damage that libvips even warns of is an error.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import ImageReadError, one_line
from edgeconv.io.formats import png
from edgeconv.io.formats.base import BadPicture
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import FRAMES_NOTE, PROFILE_NOTE
from edgeconv.run.sources.base import PART_BYTES, TileSource, check_decoded, check_sides, unusable

LOADERS = {
    "VipsForeignLoadPngFile": "PNG",
    "VipsForeignLoadJpegFile": "JPEG",
    "VipsForeignLoadWebpFile": "WebP",
    "VipsForeignLoadTiffFile": "TIFF",
    "VipsForeignLoadJp2kFile": "JPEG 2000",
    "VipsForeignLoadJxlFile": "JPEG XL",
    "VipsForeignLoadOpenslideFile": "slide",
}
"""libvips's loaders whose pictures are read, and what their files are called here."""

TYPES = {"uchar": "uint8", "ushort": "uint16", "float": "float32"}
COLOURS = {"srgb": 3, "rgb16": 3, "b-w": 1, "grey16": 1}
"""Bands of a colour by libvips's interpretation; others (CMYK, Lab) are refused."""

WINDOW_BYTES = 72 * 2**20
"""libvips looks at its temporary file through windows with margins of up to 10 MB above and below a part, and lets go
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


def open_vips(path: Path, rules: ReadRules) -> VipsSource:
    """Open a picture, upright. Raises ImageReadError."""
    import pyvips

    pyvips.cache_set_max(0)  # parts are fetched once: what it would keep is memory that nobody counts
    format = format_of(path) or "picture"
    try:
        if format == "PNG":  # libvips takes all pixels for a whole file
            with path.open("rb") as stream:
                png.check_end(stream)
        image = pyvips.Image.new_from_file(str(path), access="random", fail_on="warning")
        return VipsSource(path, format, image, rules)
    except BadPicture as bad:
        raise unusable(path, format, bad.reason, bad.remedy) from None
    except OSError as error:
        raise ImageReadError(f"{path}: cannot be read ({error.strerror}): check its name and permissions.") from None
    except pyvips.Error as error:
        raise unusable(path, format, f"it cannot be opened ({_text(error)})") from None


class VipsSource(TileSource):
    """One picture of libvips."""

    def __init__(self, path: Path, format: str, image: Any, rules: ReadRules) -> None:
        self.format = format
        turned = image.get("orientation") if image.get_typeof("orientation") else 1
        image = image.autorot()
        check_sides(path, format, image.height, image.width)
        check_decoded(path, format, image.height * image.width, rules, "the picture")
        colours = COLOURS.get(image.interpretation)
        if colours is None or image.format not in TYPES or image.bands not in (colours, colours + 1):
            what = f"{image.bands} bands of {image.format}, {image.interpretation}"
            raise unusable(path, format, f"its layout ({what}) is not supported", CONVERT)
        super().__init__(path, colours, np.dtype(TYPES[image.format]), image.bands, rules.rgb)
        self._image = image
        self.height, self.width = image.height, image.width
        self.chunk = max(1, min(4 * PART_BYTES // (self._stored_bytes * self.width), self.height)), self.width
        notes = {
            f"orientation {turned} applied": turned != 1,
            FRAMES_NOTE: bool(image.get_typeof("n-pages")) and image.get("n-pages") > 1,
            PROFILE_NOTE: bool(image.get_typeof("icc-profile-data")),
        }
        self.notes = self.notes_of(notes, alpha=image.bands > colours)

    @property
    def loading_bytes(self) -> int:
        decoded = self.height * self.width * self._stored_bytes
        held = decoded + DECODING_BYTES if decoded <= IN_MEMORY_BYTES else 0
        return super().loading_bytes + max(held, WINDOW_BYTES)

    def load(self, rows: range, columns: range) -> NDArray[Any]:
        import pyvips

        image, size = self._image, (len(rows), len(columns))
        try:
            fetched = pyvips.Region.new(image).fetch(columns.start, rows.start, size[1], size[0])
        except pyvips.Error as error:  # a file is decoded as a whole, so no place can be named
            raise unusable(self.path, self.format, f"it cannot be decoded ({_text(error)})") from None
        return self.as_given(np.frombuffer(fetched, self.dtype).reshape(*size, image.bands))

    def close(self) -> None:
        """Let go of the picture, and with it of libvips's temporary file."""
        self._image = None


def _text(error: object) -> str:
    """libvips's own message on one line."""
    return one_line(getattr(error, "detail", "") or error)
