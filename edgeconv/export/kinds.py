"""What may be shown: records of `edgeconv bench`, its ladders and pairs, and reports of `edgeconv run`."""

from __future__ import annotations

from pathlib import Path

from edgeconv.bench import record as bench
from edgeconv.bench.ab import AbRecord
from edgeconv.bench.ladders import conv, gemm
from edgeconv.bench.ladders.conv import ConvRecord
from edgeconv.bench.ladders.gemm import GemmRecord
from edgeconv.bench.record import BenchRecord
from edgeconv.core.records import Part
from edgeconv.export.ladders import LadderRecord
from edgeconv.io.records import read_record
from edgeconv.run import report
from edgeconv.run.report import RunReport

AnyRecord = BenchRecord | LadderRecord | AbRecord | RunReport

KINDS: dict[str, type[Part]] = {
    bench.KIND: BenchRecord,
    conv.KIND: ConvRecord,
    gemm.KIND: GemmRecord,
    "ab": AbRecord,
    report.KIND: RunReport,
}
"""By the file's own word."""


def read(path: Path) -> AnyRecord:
    """A file of one of the kinds; raises UsageError for any other."""
    found = read_record(path, KINDS)
    assert isinstance(found, AnyRecord)  # as KINDS has it
    return found
