"""Text that somebody else chose, made safe to show: names of files, words of an option, messages of a library.

A name may hold whatever a file system takes, and a terminal obeys what it reads: an escape sequence changes the
window's title or hides a line, a line break makes one line two, a mark of writing direction turns `gnp.exe` round. So
each such character is written as `\\u001b`, which a person sees and which JSON reads back. It is done wherever names
leave the program (terminal, logs, JUnit, CSV, Markdown, pages); the ledger and the reports keep names as they are,
in JSON's own escapes.
"""

from __future__ import annotations

import html
import re

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: C0, DEL, and C1, where \x9b alone begins an escape sequence
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that turn the writing direction
    "\u2028\u2029"  # separators of lines and paragraphs
    "\ud800-\udfff]"  # what stands for a byte that is no text
)
"""Sources: ECMA-48; Unicode Standard Annex 9, section 2."""

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # spreadsheets take the wide forms too
"""How a cell begins that a spreadsheet computes. Source: OWASP, CSV Injection."""


def visible(text: object) -> str:
    """A name or a message as part of a line: whatever a terminal would obey is an escape, line breaks too."""
    return _OBEYED.sub(_escaped, str(text))


def visible_lines(text: object) -> str:
    """The same for text of several lines, whose breaks stay."""
    return "\n".join(map(visible, str(text).split("\n")))


def markup(text: object) -> str:
    """The same as part of an HTML page, where it is text and never a tag."""
    return html.escape(visible(text))


def cell(value: object) -> object:
    """A value as a cell of CSV: text as `visible` has it, and none of it a formula; numbers as they are."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
