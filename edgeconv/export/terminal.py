"""What records have to say on a terminal: tables that fit its width, titles in bold. Drawn by Rich, which Typer brings.

Cells are broken, never cut. Every text is made visible before it is drawn, so that the result holds no other escape
sequences than ours.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from edgeconv.core.safe_text import visible
from edgeconv.export.document import Block, Heading, Items, Sentence, Tabled, Warned, document
from edgeconv.export.kinds import AnyRecord
from edgeconv.export.tables import NOTHING, Table

FIGURE = re.compile(r"[\d.,+−-]+( ?[%×]| [µm]?s)?( .*⚑)?")
"""What stands under its like: columns of these are set to the right."""
LONG_WORD = 14
"""A word of up to so many characters is not broken where there is room elsewhere."""
Justify = Literal["left", "right"]


def drawn(records: Sequence[AnyRecord], columns: int, colours: bool) -> str:
    """All of them, in lines of at most `columns` characters."""
    return draw(document(records), columns, colours)


def draw(blocks: Iterable[Block], columns: int, colours: bool) -> str:
    """Blocks in lines of at most `columns` characters; without colours there are no escape sequences at all."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=columns,
        force_terminal=colours,
        color_system="standard" if colours else None,
        no_color=not colours,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    for block in blocks:
        _put(console, block)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _put(console: Console, block: Block) -> None:
    match block:
        case Heading(level, text):
            console.print(Text(visible(text), style="bold underline" if level == 1 else "bold"), end="\n\n")
        case Sentence(text, strong):
            console.print(Text(visible(text), style="bold" if strong else ""), end="\n\n")
        case Items(lines):
            for line in lines:
                console.print(Padding(Text(visible(line)), (0, 0, 0, 2)))
            console.print()
        case Warned(text):
            console.print(Text(f"Note: {visible(text)}.", style="yellow"), end="\n\n")
        case Tabled(table, _):
            console.print(Text(visible(table.title), style="bold"))
            console.print(_table(table))


def _table(table: Table) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=True)
    for place, name in enumerate(table.header):
        cells = [row[place] for row in table.rows]
        figures = all(cell == NOTHING or FIGURE.fullmatch(cell) for cell in cells)
        longest = max(len(word) for text in (name, *cells) for word in visible(text).split() or [""])
        justify: Justify = "right" if figures and place else "left"
        shown.add_column(Text(visible(name)), justify=justify, overflow="fold", min_width=min(longest, LONG_WORD))
    for row in table.rows:
        shown.add_row(*(Text(visible(cell)) for cell in row))
    return shown
