"""Each plot as SVG; the same record gives the same files."""

from __future__ import annotations

from collections.abc import Sequence

from edgeconv.export.document import documents
from edgeconv.export.drawing import svg
from edgeconv.export.schemas import AnyRecord


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See EXPORTERS: of several records the files are numbered; reports of runs stand in one drawing together."""
    found = list(documents(records))
    return {
        f"{f'_{number}' if len(found) > 1 else ''}_{drawing.name}.svg": svg(drawing).encode()
        for number, document in enumerate(found, 1)
        for drawing in document.drawings
    }
