"""Times, numbers and counts as text for a person: a suitable unit, significant digits, separators, plurals."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from edgeconv.errors import UsageError


def seconds_text(seconds: float) -> str:
    """Three significant digits in seconds, milliseconds or microseconds, whichever suits."""
    rounded = float(f"{seconds:.3g}")  # 0.9996 ms is shown as 1 ms, never as 1,000 µs
    scale, unit = (1.0, "s") if rounded >= 1 else (1e-3, "ms") if rounded >= 1e-3 else (1e-6, "µs")
    return f"{digits_text(seconds / scale, 3)} {unit}"


def duration_text(seconds: float) -> str:
    """`42 s`, `3 min 05 s` or `2 h 07 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def local_time_text(moment: str) -> str:
    """A moment of a record (ISO 8601) in the reader's time: `2026-11-25 23:05 UTC`."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M %Z}"


def digits_text(value: float, digits: int) -> str:
    """`digits` significant digits; from 1,000 on a whole number with separators. Never an exponent, and 0 is only 0."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if float(text) >= 1000 else f"{Decimal(text):f}"


def share_text(share: float) -> str:
    """Per cent with two significant digits, from the whole on with three: `0.88 %`, `4.9 %`, `14 %`, `120 %`."""
    return f"{digits_text(100 * share, 2 if share < 1 else 3)} %"


def bytes_text(count: float) -> str:
    """Three significant digits in KiB, MiB or GiB: `12.3 KiB`, `1.5 GiB`."""
    unit, size = next(((unit, size) for unit, size in (("G", 2**30), ("M", 2**20)) if count >= size), ("K", 2**10))
    return f"{digits_text(count / size, 3)} {unit}iB"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 region`, `2,000 regions`; `plural` where an s at the end is not enough."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


BYTE_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def parse_bytes(text: str, option: str = "") -> int:
    """A number of bytes: `1048576`, `1024K`, `512M`, `2G` or `2GiB` (powers of two).

    Raises UsageError, which begins with the name of the `option`.
    """
    short = text[:-2] if text[-2:].upper() == "IB" and text[-3:-2].upper() in BYTE_UNITS else text
    digits, unit = (short[:-1], short[-1:].upper()) if short[-1:].upper() in BYTE_UNITS else (short, "")
    if not digits.isdecimal():
        raise UsageError(f"{option} '{text}' is not a number of bytes: write 512M, 2G or a whole number.".lstrip())
    return int(digits) * BYTE_UNITS.get(unit, 1)
