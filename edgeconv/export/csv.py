"""One line per row and L2 state: RFC 4180, UTF-8, numbers in full, units in column names, empty for not measured."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from edgeconv.core.safe_text import cell
from edgeconv.export.rows import HEADER, lines_of
from edgeconv.export.schemas import AnyRecord
from edgeconv.io.files import utf8


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See EXPORTERS."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(HEADER)
    for record in records:
        writer.writerows([cell(line.get(name)) for name in HEADER] for line in lines_of(record))
    return {".csv": utf8(text.getvalue())}
