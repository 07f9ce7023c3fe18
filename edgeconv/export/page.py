"""One page that opens from disk with no network: a summary, plots, tables, and the pictures of runs.

Without its script, which sorts and filters tables, all of it can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgeconv.export.colours import PAGE
from edgeconv.export.document import documents
from edgeconv.export.drawing import svg
from edgeconv.export.run_pictures import run_pictures
from edgeconv.export.schemas import AnyRecord
from edgeconv.page import data_address, page

MOST_NAMES = 4
"""Pictures that are not shown and are named."""


def export(records: Sequence[AnyRecord], folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """See Exporter.load; `folders` are those of the records, in which pictures of runs may lie."""
    found = list(documents(records))
    parts = []
    for number, document in enumerate(found, 1):
        shown, missing = run_pictures(document.reports, folders) if document.reports else ([], [])
        names = ", ".join(missing[:MOST_NAMES]) + (", …" if len(missing) > MOST_NAMES else "")
        parts.append(
            {
                "document": document,
                "prefix": f"r{number}-",
                "place": f", {number}" if len(found) > 1 else "",
                "plots": [(drawing, svg(drawing, PAGE, titled=False)) for drawing in document.drawings],
                "pictures": [(title, data_address("image/webp", webp)) for title, webp in shown],
                "missing": names,
            }
        )
    title = "; ".join(dict.fromkeys(document.title for document in found))
    return {".html": page("export/report.html", title=title, parts=parts)}
