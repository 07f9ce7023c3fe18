"""What records have to say on a terminal: tables that fit its width, titles in bold. Drawn by Rich, which Typer brings.

Nothing breaks inside a word that fits the width. A column for which there is no room is named below the table. Every
text is made visible before it is drawn, so that the result holds no other escape sequences than ours.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from edgeconv.core.text import visible
from edgeconv.export.document import Document, documents
from edgeconv.export.schemas import AnyRecord
from edgeconv.page import Table

Justify = Literal["left", "right"]
BETWEEN = 3
"""Blanks between two columns."""
TONES = {"good": "green", "bad": "red", "": ""}


def drawn(records: Sequence[AnyRecord], columns: int, colours: bool) -> str:
    """All of them, in lines of at most `columns` characters."""
    return _printed([part for document in documents(records) for part in _parts(document, columns)], columns, colours)


def draw(table: Table, columns: int, colours: bool) -> str:
    """One table; without colours there are no escape sequences at all."""
    return _printed(list(_table(table, columns)), columns, colours)


def _printed(parts: Sequence[RenderableType], columns: int, colours: bool) -> str:
    stream = io.StringIO()
    system: Literal["standard"] | None = "standard" if colours else None
    console = Console(file=stream, width=columns, force_terminal=colours, color_system=system, legacy_windows=False)
    console.print(*parts, sep="\n")
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _parts(document: Document, columns: int) -> Iterator[RenderableType]:
    yield Text(visible(document.title), style="bold underline")
    yield Text(visible(document.facts) + "\n")
    for warning in document.warnings:
        yield Text(f"Note: {visible(warning)}.\n", style="yellow")
    yield from _items(document.summary)
    for table in document.tables:
        yield from _table(table, columns)
    for title, lines in document.notes.items():
        yield Text(title, style="bold")
        yield from _items(lines)


def _items(lines: Sequence[str]) -> Iterator[RenderableType]:
    yield from (Padding(Text(visible(line)), (0, 0, 0, 2)) for line in lines)
    yield Text("")


def _table(table: Table, columns: int) -> Iterator[RenderableType]:
    widths = _widths(table, columns)
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for kind, name, width in zip(table.kinds, table.header, widths, strict=False):
        justify: Justify = "right" if kind == "figure" else "left"
        drawn.add_column(Text(visible(name)), justify=justify, width=width, overflow="fold")
    for row in table.rows:
        first, *rest = (Text(visible(cell)) for cell in row[: len(widths)])
        first.stylize(TONES[table.tone(row[0])])
        drawn.add_row(first, *rest)
    yield Text(visible(table.title), style="bold")
    yield drawn
    if len(widths) < len(table.header):
        yield Text(f"No room for: {', '.join(map(visible, table.header[len(widths) :]))}.", style="italic")
    yield Text("")


def _widths(table: Table, columns: int) -> list[int]:
    """Of the columns for which there is room: at least their longest words, and from the left what else there is."""
    least, most = [], []
    for place, (kind, name) in enumerate(zip(table.kinds, table.header, strict=True)):
        cells = [visible(row[place]) for row in table.rows]
        words = [word for cell in cells for word in (cell.split() if kind == "words" else [cell])]
        least.append(max(map(cell_len, [*words, *visible(name).split()]), default=0))
        most.append(max(map(cell_len, [*cells, visible(name)])))
    while len(least) > 1 and sum(least) + BETWEEN * (len(least) - 1) > columns:
        least.pop()
    room, widths = columns - sum(least) - BETWEEN * (len(least) - 1), []
    for low, high in zip(least, most, strict=False):
        widths.append(low + max(min(high - low, room), min(0, room)))
        room -= max(0, widths[-1] - low)
    return widths
