"""Text for a person: names made safe, lines broken to a width, times and counts with a suitable unit.

A file name, an option's value or a library's message may contain any character, and a terminal interprets what it
prints: an escape sequence changes the window's title or hides a line, a line break makes one line two, a bidirectional
mark reverses `gnp.exe`. So each such character is written as `\\u001b`, which is visible and which JSON reads back.
This is done wherever names leave the program (terminal, logs, JUnit, CSV, Markdown, pages); the ledger and the reports
store names unchanged, in JSON's own escapes.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from edgeconv.errors import UsageError

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: C0, DEL, and C1, where \x9b alone begins an escape sequence
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks
    "\u2028\u2029"  # separators of lines and paragraphs
    "\ud800-\udfff]"  # surrogates, which stand for bytes that are not valid text
)
"""Sources: ECMA-48; Unicode Standard Annex 9, section 2."""

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # spreadsheets take the wide forms too
"""First characters of a cell that a spreadsheet evaluates as a formula. Source: OWASP, CSV Injection."""


def visible(text: object) -> str:
    """A name or a message as part of one line: what a terminal would interpret is escaped, line breaks included."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", str(text))


def visible_lines(text: object) -> str:
    """The same for text of several lines, which keeps its line breaks."""
    return "\n".join(map(visible, str(text).split("\n")))


def cell(value: object) -> object:
    """A value as a CSV cell: text as by `visible` and never a formula; numbers unchanged."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


# --- lines of a report ------------------------------------------------------------------------------------------------

Tone = Literal["plain", "good", "bad", "note"]

LEAST_TEXT_COLUMNS = 24
"""Below that a text is not broken any further: in a narrower terminal each line would hold one word."""


@dataclass(frozen=True)
class TextRow:
    """One line of a report, before it is broken."""

    label: str
    text: str
    tone: Tone = "plain"


def wrapped(line: str, columns: int | None) -> list[str]:
    """A line in pieces of at most `columns` characters, further ones indented by 4 more; None breaks nothing.

    It is broken between words alone, so that a path can be copied.
    """
    if columns is None or len(line) <= columns:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    width = max(LEAST_TEXT_COLUMNS, columns)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def broken(rows: list[TextRow], columns: int | None) -> list[tuple[TextRow, list[str]]]:
    """Each row with its label and text as lines of at most `columns` characters; None breaks nothing.

    The first line begins with the label, padded to the longest one; further lines are indented to the text. A word that
    is longer than a line (a path) is not cut, so that it can be copied.
    """
    widest = max((len(visible(row.label)) + 2 for row in rows if row.label), default=0)
    shown = []
    for row in rows:
        text = visible(row.text)
        if columns is None:
            parts = [text]
        else:
            width = max(LEAST_TEXT_COLUMNS, columns - widest)
            parts = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
        shown.append((row, [f"{visible(row.label):<{widest}}{parts[0]}", *(" " * widest + part for part in parts[1:])]))
    return shown


# --- times, numbers and counts ----------------------------------------------------------------------------------------


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
