"""How outputs are stored: parsing of `--format`, `--quality`, `--png-level` and `--jpeg-codec`.

A picture has one output file and one row in the ledger, so a filter bank gives one file with all: TIFF or NPY.
"""

from __future__ import annotations

from pathlib import PurePath, PurePosixPath

from edgeconv.core.chains import Chain
from edgeconv.core.filters import Filter
from edgeconv.core.option import listed
from edgeconv.errors import UsageError
from edgeconv.io.formats import WRITTEN
from edgeconv.io.image import ALL_OF_A_BANK, QUALITY_FLAGS
from edgeconv.io.png import LEVELS

BANK_FORMAT = "tiff"
"""Of a filter bank's outputs unless another is asked for."""


def parse_format(text: str | None) -> str | None:
    """A suffix of the table of formats, given with or without its dot, without it. Raises UsageError."""
    if text is None:
        return None
    suffix = "." + text.lower().lstrip(".")
    if suffix not in WRITTEN:
        known = ", ".join(sorted(known.lstrip(".") for known in WRITTEN))
        raise UsageError(f"--format '{text}' is not one of {known}.")
    return suffix.lstrip(".")


def format_of_name(name: str | None) -> str | None:
    """The suffix of an output's name without its dot, where it is that of a format."""
    suffix = PurePath(name or "").suffix.lower()
    return suffix.lstrip(".") if suffix in WRITTEN else None


def settle_bank(format: str | None, chosen: Filter | Chain, template: str) -> str | None:
    """The format that outputs of `chosen` get: as asked for, and of a bank TIFF where nothing was. Raises UsageError.

    `template` is that of `--name`, which may end in a format's suffix.
    """
    if not chosen.labels:
        return format
    named = PurePosixPath(template).suffix.lower().removeprefix(".")
    asked = format or (named if f".{named}" in WRITTEN else None) or BANK_FORMAT
    if WRITTEN[f".{asked}"].name not in ALL_OF_A_BANK:
        raise UsageError(
            f"A batch writes one file for each picture, and {asked} holds one of the {chosen.filters} that a filter "
            "bank gives: use --format tiff (a page each) or npy."
        )
    return format or (None if asked == named else asked)


def parse_quality(quality: int | None, format: str | None) -> int | None:
    """1 to 100, for a lossy format. Raises UsageError."""
    if quality is None:
        return None
    able = sorted(suffix.lstrip(".") for suffix, entry in WRITTEN.items() if entry.name in QUALITY_FLAGS)
    if format not in able:
        raise UsageError(f"--quality applies to lossy formats: use it with --format {listed(tuple(able))}.")
    if not 1 <= quality <= 100:
        raise UsageError(f"--quality {quality} is not a whole number from 1 to 100.")
    return quality


def parse_png_level(level: int | None, format: str | None) -> int | None:
    """A level of png.py, where outputs are or may be PNG. Raises UsageError."""
    if level is None:
        return None
    if format not in (None, "png"):
        raise UsageError(f"--png-level is for PNG, and --format is {format}: leave one of the two out.")
    if level not in LEVELS:
        raise UsageError(f"--png-level {level} is not a whole number from {LEVELS[0]} to {LEVELS[-1]}.")
    return level
