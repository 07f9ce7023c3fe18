"""Pictures that are read in chunks: one table of kinds. A new kind: a file and a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgeconv.core.optional import import_problem, install
from edgeconv.errors import ImageReadError, UnavailableError
from edgeconv.io.formats import SIGNATURE_BYTES, format_of
from edgeconv.run.tiled.sources import vips
from edgeconv.run.tiled.sources.base import TileSource
from edgeconv.run.tiled.sources.orientation import Upright
from edgeconv.run.tiled.sources.tiff import TiffSource, open_pages, open_tiff
from edgeconv.run.tiled.sources.zarr import is_zarr, open_zarr


@dataclass(frozen=True)
class SourceKind:
    """One line of the table."""

    name: str
    packages: tuple[str, ...]
    """Modules that it needs."""
    extra: str
    """What pip installs them by."""
    claims: Callable[[Path], bool]
    """Whether a file or folder is of this kind, by its content."""
    open: Callable[[Path, bool], TileSource]
    """Takes a path, and whether grey is given as three equal channels."""
    brings: str = ""
    """What else the extra brings."""


def _has_signature_of(*names: str) -> Callable[[Path], bool]:
    def claims(path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            entry = format_of(stream.read(SIGNATURE_BYTES))
        return entry is not None and entry.name in names

    return claims


def _is_for_vips(path: Path) -> bool:
    """Formats of io/formats that libvips reads too, and where it is installed, others that it supports."""
    if _has_signature_of("PNG", "JPEG", "WebP")(path):
        return True
    return path.is_file() and import_problem("pyvips") is None and vips.format_of(path) is not None


KINDS = (
    SourceKind("TIFF", ("tifffile", "imagecodecs"), "large", _has_signature_of("TIFF"), open_tiff),
    SourceKind("Zarr", ("zarr",), "large", is_zarr, open_zarr),
    SourceKind("PNG, JPEG or WebP", ("pyvips",), "vips", _is_for_vips, vips.open_vips, " (it brings libvips)"),
)


def open_source(path: Path, rgb: bool = False) -> TileSource:
    """Open a picture by its content, upright; with `rgb` grey is given as three equal channels.

    Raises ImageReadError for what is missing, damaged or of another kind, UnavailableError where the package that
    reads it is not installed or does not start.
    """
    try:
        kind = next((kind for kind in KINDS if kind.claims(path)), None)
    except OSError as error:
        raise ImageReadError(
            f"{path}: cannot be read ({error.strerror or error}): check its name and permissions."
        ) from None
    if kind is None:
        if not path.exists():
            raise ImageReadError(f"{path}: there is no such file: check the name.")
        problem = import_problem("pyvips")
        beyond = (
            f" ({problem}: JPEG 2000, JPEG XL and slides need the extra vips: {install('vips')})" if problem else ""
        )
        raise ImageReadError(
            f"{path}: is not a picture that can be read by tiles: convert it to TIFF, or leave the tile options out"
            f"{beyond}."
        )
    require(kind)
    source = kind.open(path, rgb)
    if isinstance(source, TiffSource) and source.orientation != 1:
        return Upright(source, source.orientation)
    return source


def open_output(path: Path, channels: int, pictures: int) -> TileSource:
    """Open an output of so many channels in all its pictures. Raises as `open_source`."""
    if pictures == 1:
        return open_source(path)
    return open_zarr(path, channels=channels) if is_zarr(path) else open_pages(path)


def require(kind: SourceKind) -> None:
    """Raise UnavailableError where a package that `kind` needs is not installed or does not start."""
    problems = [problem for problem in map(import_problem, kind.packages) if problem]
    if problems:
        raise UnavailableError(f"{kind.name} by tiles: {' and '.join(problems)}: {install(kind.extra)}{kind.brings}.")
