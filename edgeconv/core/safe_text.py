"""Untrusted text made safe to display: file names, option values, messages of libraries.

A file name may contain any character that the file system accepts, and a terminal interprets what it prints: an escape
sequence changes the window's title or hides a line, a line break makes one line two, a bidirectional mark reverses
`gnp.exe`. So each such character is written as `\\u001b`, which is visible and which JSON reads back. This is done
wherever names leave the program (terminal, logs, JUnit, CSV, Markdown, pages); the ledger and the reports store names
unchanged, in JSON's own escapes.
"""

from __future__ import annotations

import html
import re

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
    return _OBEYED.sub(_escaped, str(text))


def visible_lines(text: object) -> str:
    """The same for text of several lines, which keeps its line breaks."""
    return "\n".join(map(visible, str(text).split("\n")))


def markup(text: object) -> str:
    """The same for an HTML page, with `<`, `>`, `&` and quotes escaped."""
    return html.escape(visible(text))


def cell(value: object) -> object:
    """A value as a CSV cell: text as by `visible` and never a formula; numbers unchanged."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
