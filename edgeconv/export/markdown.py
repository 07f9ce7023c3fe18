"""Tables to read and to commit, every column of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgeconv.core.text import visible
from edgeconv.export.document import Document, documents
from edgeconv.export.schemas import AnyRecord
from edgeconv.export.tables import lines_of
from edgeconv.io.files import utf8
from edgeconv.page import Table


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See EXPORTERS."""
    return {".md": utf8("\n".join(block for document in documents(records) for block in _blocks(document)))}


def as_text(table: Table) -> str:
    """A table under its title."""
    return f"## {visible(table.title)}\n\n{lines_of(table.header, table.rows)}"


def _blocks(document: Document) -> Iterator[str]:
    """An empty line stands between them."""
    yield f"# {visible(document.title)}\n"
    yield f"{visible(document.facts)}\n"
    for warning in document.warnings:
        yield f"**Note:** {visible(warning)}.\n"
    if document.summary:
        yield _items(document.summary)
    yield from map(as_text, document.tables)
    for title, lines in document.notes.items():
        yield f"## {title}\n\n{_items(lines)}"


def _items(lines: Sequence[str]) -> str:
    return "".join(f"- {visible(line)}\n" for line in lines)
