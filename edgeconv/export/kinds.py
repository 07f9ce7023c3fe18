"""What may be shown: records of `edgeconv bench`, its ladders, and reports of `edgeconv run`; read and told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeconv.bench import record as bench
from edgeconv.bench.ladders import conv, gemm
from edgeconv.bench.ladders.conv import ConvRecord
from edgeconv.bench.ladders.gemm import GemmRecord
from edgeconv.bench.record import BenchRecord
from edgeconv.core.records import Part
from edgeconv.export.ladders import LadderRecord as LadderRecord
from edgeconv.io.records import read_record
from edgeconv.run import report
from edgeconv.run.report import RunReport

AnyRecord = BenchRecord | LadderRecord | RunReport

KINDS: dict[str, type[Part]] = {
    bench.KIND: BenchRecord,
    conv.KIND: ConvRecord,
    gemm.KIND: GemmRecord,
    report.KIND: RunReport,
}
"""By the file's own word."""


@dataclass(frozen=True)
class Shown:
    """Files by kind, each in their order."""

    benches: list[BenchRecord]
    ladders: list[LadderRecord]
    runs: list[RunReport]


def read(path: Path) -> AnyRecord:
    """A file of one of the kinds; raises UsageError for any other."""
    found = read_record(path, KINDS)
    assert isinstance(found, AnyRecord)  # as KINDS has it
    return found


def split(records: Sequence[AnyRecord]) -> Shown:
    """Told apart by their kind."""
    return Shown(
        benches=[record for record in records if isinstance(record, BenchRecord)],
        ladders=[record for record in records if isinstance(record, LadderRecord)],
        runs=[record for record in records if isinstance(record, RunReport)],
    )
