"""Pictures that are read in parts, told by content: TIFF (tiff.py), Zarr (zarr.py), what libvips reads (vips.py)."""

from __future__ import annotations

from pathlib import Path

from edgeconv.core.optional import import_problem, install
from edgeconv.errors import ImageReadError, UnavailableError
from edgeconv.io.formats import SIGNATURE_BYTES, format_of
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.run.sources import vips
from edgeconv.run.sources.base import TileSource
from edgeconv.run.sources.tiff import open_tiff
from edgeconv.run.sources.zarr import is_zarr, open_zarr

OF_VIPS = ("PNG", "JPEG", "WebP")
"""Formats of io/formats that libvips reads too; where it is installed, it reads others."""


def open_source(path: Path, rules: ReadRules = DEFAULT_RULES) -> TileSource:
    """Open a picture, upright; with `rules.rgb` grey is given as three equal channels.

    Raises ImageReadError for what is missing, damaged, of another kind or decoded in parts above `rules.max_pixels`,
    UnavailableError where the package that reads it is not installed or does not start.
    """
    if is_zarr(path):
        _require("Zarr by tiles", "large", "zarr")
        return open_zarr(path, rules)
    format = _format_in(path)
    if format == "TIFF":
        _require("TIFF by tiles", "large", "tifffile", "imagecodecs", "zarr")
        source = open_tiff(path, rules)
        if source.orientation == 1:
            return source
        source.close()
        _require(f"{path}: a TIFF that is turned (orientation {source.orientation}) by tiles", "vips", "pyvips")
        return vips.open_vips(path, rules)
    problem = import_problem("pyvips")
    if format in OF_VIPS:
        _require("PNG, JPEG or WebP by tiles", "vips", "pyvips")
    elif problem or not path.is_file() or vips.format_of(path) is None:
        beyond = f" ({problem}: JPEG 2000, JPEG XL and slides need the extra vips: {install('vips')})"
        raise ImageReadError(
            f"{path}: is not a picture that can be read by tiles: convert it to TIFF, or leave the tile options out"
            f"{beyond if problem else ''}."
        )
    return vips.open_vips(path, rules)


def _format_in(path: Path) -> str | None:
    """The name of a file's format, by its first bytes; None of a folder. Raises ImageReadError."""
    try:
        if path.is_file():
            with path.open("rb") as stream:
                entry = format_of(stream.read(SIGNATURE_BYTES))
            return None if entry is None else entry.name
        path.stat()
    except FileNotFoundError:
        raise ImageReadError(f"{path}: there is no such file: check the name.") from None
    except OSError as error:
        reason = error.strerror or error
        raise ImageReadError(f"{path}: cannot be read ({reason}): check its name and permissions.") from None
    return None


def _require(what: str, extra: str, *packages: str) -> None:
    """Raise UnavailableError where a package is not installed or does not start."""
    problems = [problem for problem in map(import_problem, packages) if problem]
    if problems:
        brings = " (it brings libvips)" if extra == "vips" else ""
        raise UnavailableError(f"{what}: {' and '.join(problems)}: {install(extra)}{brings}.")
