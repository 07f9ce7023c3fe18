"""The record itself; of several records one file each, numbered."""

from __future__ import annotations

from collections.abc import Sequence

from edgeconv.bench.record import to_json
from edgeconv.export.kinds import AnyRecord


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See Exporter.load."""
    if len(records) == 1:
        return {".json": to_json(records[0])}
    return {f"_{number}.json": to_json(record) for number, record in enumerate(records, 1)}
