"""The JSON Schemas in the package, generated from the classes of the records.

python3 -m edgeconv.export.schemas            write them
python3 -m edgeconv.export.schemas --check    only compare; exit code 1 where one is out of date
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from edgeconv.batch.summary import BatchSummary
from edgeconv.bench.ladders.conv import ConvRecord
from edgeconv.bench.ladders.gemm import GemmRecord
from edgeconv.bench.record import BenchRecord
from edgeconv.core.records import Part, schema_text
from edgeconv.diff.folders import FoldersRecord
from edgeconv.diff.ignored import IgnoredRegions
from edgeconv.diff.methods import CompareRecord
from edgeconv.diff.record import DiffRecord
from edgeconv.io.files import parse_json
from edgeconv.run.report import RunReport

PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class RecordSchema:
    """A schema: its file in the package, and the classes that it describes."""

    file: str
    title: str
    kinds: tuple[type[Part], ...]

    def text(self) -> str:
        """As it should be."""
        return schema_text(self.kinds, self.title)

    def stored(self) -> str:
        """As it is in the package."""
        return files("edgeconv").joinpath(self.file).read_text(encoding="utf-8")

    def schema(self) -> dict[str, Any]:
        """The same, as JSON holds it."""
        loaded: dict[str, Any] = parse_json(self.stored())
        return loaded


RUN = RecordSchema("run/report.schema.json", "edgeconv run report", (RunReport,))
BENCH = RecordSchema("bench/bench.schema.json", "edgeconv bench record", (BenchRecord,))
LADDERS = RecordSchema(
    "bench/ladders/ladder.schema.json",
    "record of edgeconv bench gemm or bench conv",
    (GemmRecord, ConvRecord),
)

DIFF = RecordSchema(
    "diff/diff.schema.json",
    "What edgeconv diff and edgeconv compare print with --json",
    (DiffRecord, CompareRecord, FoldersRecord),
)
IGNORED = RecordSchema("diff/ignored.schema.json", "What edgeconv diff --ignore reads", (IgnoredRegions,))
BATCH = RecordSchema("batch/summary.schema.json", "What edgeconv batch prints with --json", (BatchSummary,))
SCHEMAS: tuple[RecordSchema, ...] = (RUN, BENCH, LADDERS, DIFF, IGNORED, BATCH)


def main() -> None:
    """Write the schemas, or with --check end with 1 and the names of those that are out of date."""
    stale = [entry for entry in SCHEMAS if not (PACKAGE / entry.file).exists() or entry.stored() != entry.text()]
    if stale and "--check" in sys.argv:
        sys.exit(f"Out of date: {', '.join(entry.file for entry in stale)}. Run python3 -m edgeconv.export.schemas.")
    for entry in stale:
        (PACKAGE / entry.file).write_text(entry.text(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
