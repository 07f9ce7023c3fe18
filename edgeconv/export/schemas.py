"""The JSON Schemas of everything that is written or read as JSON, made from the classes when they are asked for."""

from __future__ import annotations

from typing import Any

from edgeconv.batch.summary import BatchSummary
from edgeconv.bench.ab import AbRecord
from edgeconv.bench.ladders.conv import ConvRecord
from edgeconv.bench.ladders.gemm import GemmRecord
from edgeconv.bench.record import BenchRecord
from edgeconv.core.records import Part, schema_of
from edgeconv.diff.folders import FoldersRecord
from edgeconv.diff.ignored import IgnoredRegions
from edgeconv.diff.methods import CompareRecord
from edgeconv.diff.record import DiffRecord
from edgeconv.errors import UsageError
from edgeconv.run.report import RunReport

SCHEMAS: dict[str, tuple[str, tuple[type[Part], ...]]] = {
    "run": ("edgeconv run report", (RunReport,)),
    "bench": ("edgeconv bench record", (BenchRecord,)),
    "ladder": ("record of edgeconv bench gemm or bench conv", (GemmRecord, ConvRecord)),
    "ab": ("record of edgeconv bench ab", (AbRecord,)),
    "diff": ("What edgeconv diff and edgeconv compare print with --json", (DiffRecord, CompareRecord, FoldersRecord)),
    "ignored": ("What edgeconv diff --ignore reads", (IgnoredRegions,)),
    "batch": ("What edgeconv batch prints with --json", (BatchSummary,)),
}
"""Title and classes by name."""


def schema(name: str) -> dict[str, Any]:
    """The schema of that name; raises UsageError."""
    if name not in SCHEMAS:
        raise UsageError(f"--schema '{name}' is not one of {', '.join(SCHEMAS)}.")
    title, kinds = SCHEMAS[name]
    return schema_of(kinds, title)
