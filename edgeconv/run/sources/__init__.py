"""Pictures that are read in parts, told by content: TIFF (tiff.py), Zarr (zarr.py), what libvips reads (vips.py)."""

from __future__ import annotations

from pathlib import Path

from edgeconv.core.optional import import_problem, install
from edgeconv.errors import EdgeconvError, ImageReadError, UnavailableError, one_line
from edgeconv.io.files import is_zarr
from edgeconv.io.formats import SIGNATURE_BYTES, format_of
from edgeconv.io.formats.base import BadPicture
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.run.sources.base import TileSource, refused
from edgeconv.run.sources.tiff import TiffSource
from edgeconv.run.sources.vips import VipsSource
from edgeconv.run.sources.zarr import ZarrSource

LARGE = ("tifffile", "imagecodecs", "zarr")
PACKAGES = {
    "Zarr": ("large", LARGE[-1:]),
    "TIFF": ("large", LARGE),
    **dict.fromkeys(("PNG", "JPEG", "WebP", "turned TIFF"), ("vips", ("pyvips",))),
}
"""By format: the extra that has the packages by which it is read, and these packages."""


def open_source(path: Path, rules: ReadRules = DEFAULT_RULES) -> TileSource:
    """Open a picture, upright; with `rules.rgb` grey is given as three equal channels.

    Raises ImageReadError for what is missing, damaged, of another kind or decoded in parts above `rules.max_pixels`,
    UnavailableError where the package that reads it is not installed or does not start.
    """
    format = "picture"
    try:
        format = _format_in(path)
        _require(format)
        if format == "Zarr":
            return ZarrSource(path, rules)
        if format == "TIFF":
            source = TiffSource(path, rules)
            if source.orientation == 1:
                return source
            source.close()
            _require("turned TIFF")
        return VipsSource(path, format, rules)
    except (EdgeconvError, MemoryError):
        raise
    except FileNotFoundError:
        raise ImageReadError(f"{path}: there is no such file: check the name.") from None
    except OSError as error:
        reason = error.strerror or error
        raise ImageReadError(f"{path}: cannot be read ({reason}): check its name and permissions.") from None
    except BadPicture as bad:
        raise refused(path, format, bad) from None
    except Exception as error:  # whatever damage makes of a library: TiffFileError, struct.error, KeyError, …
        raise refused(path, format, BadPicture(f"it cannot be opened ({one_line(error)})")) from None


def _format_in(path: Path) -> str:
    """The name of a picture's format, by its first bytes. Raises OSError, and ImageReadError for any other file."""
    if is_zarr(path):
        return "Zarr"
    path.stat()
    if path.is_file():
        with path.open("rb") as stream:
            entry = format_of(stream.read(SIGNATURE_BYTES))
        if entry is not None and entry.name in PACKAGES:
            return entry.name
    raise ImageReadError(
        f"{path}: is not a picture that can be read by tiles: convert it to TIFF, or leave the tile options out."
    )


def _require(format: str) -> None:
    """Raise UnavailableError where a package is not installed or does not start."""
    extra, packages = PACKAGES[format]
    problems = [problem for problem in map(import_problem, packages) if problem]
    if problems:
        brings = " (it brings libvips)" if extra == "vips" else ""
        raise UnavailableError(f"{format} by tiles: {' and '.join(problems)}: {install(extra)}{brings}.")
