"""PNG, JPEG, WebP and turned TIFF, through libvips (pyvips).

Such files have no order in which parts could be fetched, or one that libvips alone knows. It decodes what is no larger
than 100 MB into memory, and anything else into a temporary file of its own (in the folder that TMPDIR names), as large
as the picture: then any part can be fetched, and memory stays bounded. Pixels were found the same as those of whole
pictures. Damage that libvips even warns of is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import one_line
from edgeconv.io.formats import png
from edgeconv.io.formats.base import BadPicture
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import FRAMES_NOTE, PROFILE_NOTE, check_sides
from edgeconv.run.sources.base import PART_BYTES, TileSource

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


class VipsSource(TileSource):
    """One picture of libvips, upright."""

    def __init__(self, path: Path, format: str, rules: ReadRules) -> None:
        """Raises BadPicture, OSError and pyvips.Error."""
        import pyvips

        pyvips.cache_set_max(0)  # parts are fetched once: what it would keep is memory that nobody counts
        if format == "PNG":  # libvips takes all pixels for a whole file
            with path.open("rb") as stream:
                png.check_end(stream)
        image = pyvips.Image.new_from_file(str(path), access="random", fail_on="warning")
        turned = image.get("orientation") if image.get_typeof("orientation") else 1
        image = image.autorot()
        check_sides(rules.max_pixels, image.width, image.height)
        colours = COLOURS.get(image.interpretation)
        if colours is None or image.format not in TYPES or image.bands not in (colours, colours + 1):
            what = f"{image.bands} bands of {image.format}, {image.interpretation}"
            raise BadPicture(f"its layout ({what}) is not supported", "convert it to RGB or grey of 8 or 16 bits")
        super().__init__(path, colours, np.dtype(TYPES[image.format]), image.bands, rules.rgb)
        self._image: Any = image
        self.format, self.height, self.width = format, image.height, image.width
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

    def stored(self, rows: range, columns: range) -> NDArray[Any]:
        import pyvips

        size = len(rows), len(columns)
        try:
            fetched = pyvips.Region.new(self._image).fetch(columns.start, rows.start, size[1], size[0])
        except pyvips.Error as error:  # a file is decoded as a whole, so no place can be named
            raise BadPicture(f"it cannot be decoded ({one_line(error)})") from None
        return np.frombuffer(fetched, self.dtype).reshape(*size, self._image.bands)

    def close(self) -> None:
        """Let go of the picture, and with it of libvips's temporary file."""
        self._image = None
