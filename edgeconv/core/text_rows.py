"""Rows of a label and a text, for a person to read: what they say, apart from how wide and how coloured it is shown."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Literal

from edgeconv.core.safe_text import visible

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
