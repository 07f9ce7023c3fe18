"""The kinds of records: what may be shown, read by the file's own word, and the JSON Schema of all that is written.

Schemas are made from the classes when they are asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgeconv.batch.summary import BatchSummary
from edgeconv.bench.ab import AbRecord
from edgeconv.bench.ladders.base import LadderRecord
from edgeconv.bench.record import BenchRecord
from edgeconv.core.records import Part, schema_of
from edgeconv.difference.compare import DiffRecord
from edgeconv.difference.folders import FoldersRecord
from edgeconv.difference.ignored import IgnoredRegions
from edgeconv.difference.methods import CompareRecord
from edgeconv.errors import UsageError
from edgeconv.io.records import read_record
from edgeconv.run.report import RunReport

AnyRecord = BenchRecord | LadderRecord | AbRecord | RunReport

KINDS: dict[str, type[Part]] = {
    "bench": BenchRecord,
    "bench conv": LadderRecord,
    "bench gemm": LadderRecord,
    "ab": AbRecord,
    "run": RunReport,
}
"""By the file's own word."""

SCHEMAS: dict[str, tuple[str, tuple[type[Part], ...]]] = {
    "run": ("edgeconv run report", (RunReport,)),
    "bench": ("edgeconv bench record", (BenchRecord,)),
    "ladder": ("record of edgeconv bench gemm or bench conv", (LadderRecord,)),
    "ab": ("record of edgeconv bench ab", (AbRecord,)),
    "diff": ("What edgeconv diff and edgeconv compare print with --json", (DiffRecord, CompareRecord, FoldersRecord)),
    "ignored": ("What edgeconv diff --ignore reads", (IgnoredRegions,)),
    "batch": ("What edgeconv batch prints with --json", (BatchSummary,)),
}
"""Title and classes by name."""


def read(path: Path) -> AnyRecord:
    """A file of one of the kinds; raises UsageError for any other."""
    found = read_record(path, KINDS)
    assert isinstance(found, AnyRecord)  # as KINDS has it
    return found


def schema(name: str) -> dict[str, Any]:
    """The schema of that name; raises UsageError."""
    if name not in SCHEMAS:
        raise UsageError(f"--schema '{name}' is not one of {', '.join(SCHEMAS)}.")
    title, kinds = SCHEMAS[name]
    return schema_of(kinds, title)
