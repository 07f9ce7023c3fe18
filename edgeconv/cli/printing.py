"""The one door through which commands print: nothing that a terminal would obey passes it but our own colours.

Colours and line breaks are for terminals: a pipe or a file gets plain lines of any length. NO_COLOR (no-color.org) and
TERM=dumb switch colours off; COLUMNS takes the place of the terminal's width.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from edgeconv.core.text import TextRow, broken, visible, visible_lines, wrapped

if TYPE_CHECKING:
    from edgeconv.core.text import Tone

SGR: dict[Tone, str] = {"plain": "1", "good": "1;32", "bad": "1;31", "note": "33"}
"""Select Graphic Rendition of a label: bold, green, red, yellow. Source: ECMA-48."""


def say(line: object, *, err: bool = False) -> None:
    """Print a line on standard output, or on standard error; a terminal gets it broken between words, but no path."""
    width = None if isinstance(line, Path) else columns(sys.stderr if err else sys.stdout)
    _write("\n".join([*wrapped(visible(line), width), ""]), err)


def say_lines(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print text of several lines; whoever built it has made the names in it `visible`, line breaks included."""
    _write(visible_lines(text) + "\n" * nl, err)


def say_drawn(text: str) -> None:
    """Print what was drawn for the terminal, of parts that were made visible before they were coloured."""
    _write(text, False)


def say_error(error: object, picture: object = "") -> None:
    """Print the line of an error, or of one of several pictures, broken and coloured for a terminal."""
    text = str(error)
    if picture and not text.startswith(f"{picture}: "):
        text = f"{picture}: {text}"
    lines = "\n".join([*wrapped(f"edgeconv: error: {visible(text)}", columns(sys.stderr)), ""])
    _write(lines.replace("error:", painted("error:", "bad", sys.stderr), 1), True)


def say_rows(rows: list[TextRow], *, err: bool = False) -> None:
    """Print rows of a label and a text, broken and coloured where a terminal shows them."""
    stream = sys.stderr if err else sys.stdout
    for row, lines in broken(rows, columns(stream)):
        end = len(visible(row.label))
        first = painted(lines[0][:end], row.tone, stream) + lines[0][end:]
        _write("\n".join([first, *lines[1:], ""]), err)


def _write(text: str, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    if stream is not None:  # it was closed before Python started
        draw(text, stream)


def draw(text: str, stream: Any) -> None:
    """Write text as it is, with what a terminal obeys (ending.py)."""
    getattr(stream, "draw", stream.write)(text)
    stream.flush()


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads the stream as it is written."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def columns(stream: TextIO | None) -> int | None:
    """How wide lines may be on a terminal; None where nothing limits them."""
    if not is_terminal(stream):
        return None
    import shutil

    return shutil.get_terminal_size().columns


def has_colours(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that wants colours."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, tone: Tone, stream: TextIO | None) -> str:
    """`text` in the colour of a tone, where the stream is a terminal that wants colours."""
    if not has_colours(stream):
        return text
    return f"\x1b[{SGR[tone]}m{text}\x1b[0m"
