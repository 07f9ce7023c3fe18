"""Pictures that are read in parts: one table of kinds. A new kind: a file and a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgeconv.core.optional import import_problem, install
from edgeconv.errors import ImageReadError, UnavailableError
from edgeconv.io.formats import SIGNATURE_BYTES, format_of
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.run.sources import vips
from edgeconv.run.sources.base import TileSource
from edgeconv.run.sources.tiff import TiffSource, open_tiff
from edgeconv.run.sources.zarr import is_zarr, open_zarr


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
    open: Callable[[Path, ReadRules], TileSource]
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


VIPS = SourceKind("PNG, JPEG or WebP", ("pyvips",), "vips", _is_for_vips, vips.open_vips, " (it brings libvips)")
KINDS = (
    SourceKind("TIFF", ("tifffile", "imagecodecs", "zarr"), "large", _has_signature_of("TIFF"), open_tiff),
    SourceKind("Zarr", ("zarr",), "large", is_zarr, open_zarr),
    VIPS,
)


def open_source(path: Path, rules: ReadRules = DEFAULT_RULES) -> TileSource:
    """Open a picture by its content, upright; with `rules.rgb` grey is given as three equal channels.

    Raises ImageReadError for what is missing, damaged, of another kind or decoded in parts above `rules.max_pixels`,
    UnavailableError where the package that reads it is not installed or does not start.
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
    _require(kind, f"{kind.name} by tiles")
    source = kind.open(path, rules)
    if isinstance(source, TiffSource) and source.orientation != 1:
        source.close()
        _require(VIPS, f"{path}: a TIFF that is turned (orientation {source.orientation}) by tiles")
        return vips.open_vips(path, rules)
    return source


def _require(kind: SourceKind, what: str) -> None:
    """Raise UnavailableError where a package that `kind` needs is not installed or does not start."""
    problems = [problem for problem in map(import_problem, kind.packages) if problem]
    if problems:
        raise UnavailableError(f"{what}: {' and '.join(problems)}: {install(kind.extra)}{kind.brings}.")
