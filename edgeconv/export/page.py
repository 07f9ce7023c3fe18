"""One page that opens from disk with no network: a summary, plots, tables, and the pictures of runs; or plots alone.

Without its script, which sorts and filters tables, all of the page can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from edgeconv.export.document import documents
from edgeconv.export.drawing import PAGE, svg
from edgeconv.export.run_pictures import run_pictures
from edgeconv.export.schemas import AnyRecord
from edgeconv.page import data_address, page


def export(records: Sequence[AnyRecord], folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """See EXPORTERS; `folders` are those of the records, in which pictures of runs may lie."""
    parts = [(document, *run_pictures(document.reports, folders)) for document in documents(records)]
    title = "; ".join(dict.fromkeys(document.title for document, *_ in parts))
    drawn, address = partial(svg, palette=PAGE, titled=False), partial(data_address, "image/webp")
    return {".html": page("export/report.html", title=title, parts=parts, svg=drawn, address=address)}


def plots(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """Each plot as SVG; of several records the files are numbered, and reports of runs stand in one drawing."""
    found = list(documents(records))
    return {
        f"{f'_{number}' if len(found) > 1 else ''}_{drawing.name}.svg": svg(drawing).encode()
        for number, document in enumerate(found, 1)
        for drawing in document.drawings
    }
