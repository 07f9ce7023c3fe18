"""What may be shown: records of `edgeconv bench`, its ladders, and reports of `edgeconv run`; read and told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeconv.bench import record as bench
from edgeconv.bench.ladders import conv, gemm
from edgeconv.bench.record import Record, read_kinds
from edgeconv.run import report

RUN = "run"
LADDERS = (conv.KIND, gemm.KIND)
KINDS = {
    bench.KIND: ("a record of edgeconv bench", bench.SCHEMA_VERSION),
    **{kind: (f"a record of edgeconv {kind}", report.SCHEMA_VERSION) for kind in LADDERS},
    RUN: ("a report of edgeconv run", report.SCHEMA_VERSION),
}
"""By the file's own word: what that is, and the version of its schema."""


@dataclass(frozen=True)
class Shown:
    """Files by kind, each in their order."""

    benches: list[Record]
    ladders: list[Record]
    runs: list[Record]


def read(path: Path) -> Record:
    """A file of one of the kinds; raises UsageError for any other."""
    return read_kinds(path, KINDS)


def split(records: Sequence[Record]) -> Shown:
    """Told apart by their kind."""
    return Shown(
        benches=[record for record in records if record["kind"] == bench.KIND],
        ladders=[record for record in records if record["kind"] in LADDERS],
        runs=[record for record in records if record["kind"] == RUN],
    )
