"""Tables to read and to commit: the fastest first, then times, shares and GFLOPS per group, then each row's metrics."""

from __future__ import annotations

from collections.abc import Sequence

from edgeconv.core.safe_text import visible
from edgeconv.export import tables
from edgeconv.export.document import Block, Heading, Items, Sentence, Tabled, Warned, document
from edgeconv.export.kinds import AnyRecord
from edgeconv.export.tables import Table
from edgeconv.io.files import utf8


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See Exporter.load."""
    return {".md": utf8("\n".join(map(_drawn, document(records))))}


def as_text(table: Table) -> str:
    """A table under its title."""
    return _table(table, 2)


def _drawn(block: Block) -> str:
    """A block as lines of Markdown; an empty line follows it."""
    match block:
        case Heading(level, text):
            return f"{'#' * level} {visible(text)}\n"
        case Sentence(text, strong):
            return f"**{visible(text)}**\n" if strong else f"{visible(text)}\n"
        case Items(lines):
            return "".join(f"- {visible(line)}\n" for line in lines)
        case Warned(text):
            return f"**Note:** {visible(text)}.\n"
        case Tabled(table, level):
            return _table(table, level)


def _table(table: Table, level: int) -> str:
    return f"{'#' * level} {visible(table.title)}\n\n{tables.lines_of(table.header, table.rows)}"
