"""Each plot as SVG and as PNG on white; the same record gives the same SVG."""

from __future__ import annotations

from collections.abc import Sequence

from edgeconv.export.document import documents
from edgeconv.export.drawing import png, svg
from edgeconv.export.kinds import AnyRecord


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See Exporter.load: of several records the files are numbered; reports of runs stand in one drawing together."""
    files = {}
    found = list(documents(records))
    for number, document in enumerate(found, 1):
        place = f"_{number}" if len(found) > 1 else ""
        for drawing in document.drawings:
            files[f"{place}_{drawing.name}.svg"] = svg(drawing).encode()
            files[f"{place}_{drawing.name}.png"] = png(drawing)
    return files
