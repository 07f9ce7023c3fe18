"""Each cell of the ladders' tables on a page and in a spreadsheet: a record in which no two figures are equal.

Their tables in the documents are made anew from committed records by test_project.py.
"""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from bench_records import changed

from edgeconv.bench.ladders.conv import STEPS as CONV_STEPS
from edgeconv.bench.ladders.conv import ConvRecord
from edgeconv.bench.ladders.gemm import REALS, GemmRecord
from edgeconv.bench.ladders.gemm import STEPS as GEMM_STEPS
from edgeconv.core.records import as_type
from edgeconv.export import ladders
from edgeconv.export.rows import every_row
from edgeconv.export.rows import export as export_csv

CONV = ["copy", *(step.name for step in CONV_STEPS)]
GEMM = [step.name for step in GEMM_STEPS]
SIZES = (1024, 4096)


def row(step: str, block: str | None, microseconds: float, **rest: Any) -> dict[str, Any]:
    timing = {"median_seconds": microseconds * 1e-6, "p10_seconds": 1.5e-9, "p90_seconds": 2.5e-9, "n": 7}
    timing |= {"min_seconds": 1e-9, "stopped_because": "sample limit", "samples_seconds": [microseconds * 1e-6] * 7}
    clocks = {"sm_clock_min_mhz": None, "sm_clock_max_mhz": None, "last_card_reading": None}
    return {
        "step": step,
        "idea": "",
        "block": block,
        "right": True,
        "relative_error": 3e-7,
        "l2_state": "cold",
        "timing": timing,
        "allowed_error": 1e-6,
        "machine": {**clocks, "others_busy_share": None, "flags": []},
        **rest,
    }


HEAD = {
    "schema_version": 1,
    "edgeconv_version": "0",
    "created_utc": "2001-02-03T04:05:06+00:00",
    "machine": {"name": "made-up GPU"},
}
HEAD |= {"versions": {}, "roof": {"copy_bytes_per_second": 1.0, "fma_flops_per_second": 1.0, "how": ""}}


@pytest.fixture
def conv() -> ConvRecord:
    """Step n takes n + 1 µs at 4096, a tenth at 1024; a quarter at stride 2; ten times with other blocks."""
    rows = []
    for stride in (1, 2):
        for size in SIZES:
            for number, step in enumerate(CONV):
                by = (1.0 if size == 4096 else 0.1) / (1 if stride == 1 else 4)
                figures = {"size": size, "stride": stride, "gflops": None if step == "copy" else 1000.0 * number + size}
                figures |= {"share_of_floor": number / 100 + 0.01, "gain": None if number < 2 else number / 4}
                block = None if step in ("copy", "sliding") else "16×16"
                rows.append(row(step, block, (number + 1) * by, **figures))
                if block:
                    rows.append(row(step, "8×8", (number + 1) * by * 10, **{**figures, "gflops": 5.0}))
    return as_type({**HEAD, "kind": "bench conv", "rows": rows}, ConvRecord)


@pytest.fixture
def gemm() -> GemmRecord:
    """Step n takes 2^(5 - n) ms at 4096 in float32, and a half in float64."""
    rows = []
    for dtype in REALS:
        for size in SIZES:
            for number, step in enumerate(GEMM):
                by = (1 if size == 4096 else 3) / (1 if dtype == "float32" else 2)
                figures = {"size": size, "dtype": dtype, "gflops": 100.0 * number + size, "share_of_vendor": number / 8}
                figures["share_of_peak"] = number / 16 if dtype == "float32" else None
                rows.append(row(step, None if step == "cublas" else "64×64×8", 1e3 * 2 ** (5 - number) * by, **figures))
    return as_type({**HEAD, "kind": "bench gemm", "rows": rows}, GemmRecord)


def test_the_tables_of_a_report(conv: ConvRecord, gemm: GemmRecord) -> None:
    conv.rows = [each for each in conv.rows if (each.step, each.size) != ("waves", 1024)]
    wrong = next(each for each in conv.rows if each.step == "pixel")
    changed(wrong, timing=None, gflops=None, right=False, relative_error=None, gain=None)
    rates = {line[:2]: line[2:] for line in ladders.by_size(conv).rows}
    assert rates["pixel", "stride 1"] == ("–", "6,096")
    assert rates["waves", "stride 1"][0] == "–"
    every = every_row(conv)
    assert len(every.rows) == len(conv.rows)
    assert every.header == ("verdict", "who", "median", "of copy speed", "size", "case", "GFLOPS", "gain", "samples",
                            "L2", "relative error")  # fmt: skip
    assert every.rows[2] == (
        "right", "textbook 8×8", "2 µs ± 0.0005", "2 %", "1024", "stride 1", "5", "–", "7", "cold", "3e-07"
    )  # fmt: skip
    wrong = ("WRONG", "pixel 16×16", "–", "3 %", "1024", "stride 1", "–", "–", "–", "cold", "–")
    assert every.rows[3] == wrong
    products = every_row(gemm)
    assert products.rows[3][1:8] == (
        "double_buffer 64×64×8",
        "12 ms ± 0.0000005",
        "1024",
        "float32",
        "1,324",
        "38 %",
        "19 %",
    )


def test_each_column_of_the_spreadsheet(conv: ConvRecord, gemm: GemmRecord) -> None:
    lines = list(csv.DictReader(io.StringIO(export_csv([conv, gemm])[".csv"].decode())))
    assert len(lines) == len(conv.rows) + len(gemm.rows)
    shown = {
        "machine": "made-up GPU",
        "created_utc": "2001-02-03T04:05:06+00:00",
        "device": "cuda",
        "kind": "bench conv",
        "l2_state": "cold",
    }
    shown |= {"entrant": "textbook 16×16", "size": "1024", "stride": "1", "dtype": "float32", "status": "measured"}
    shown |= {"gflops": "2024.0", "floor_share": "0.02", "relative_error": "3e-07", "n": "7"}
    shown |= {"p10_seconds": "1.5e-09", "p90_seconds": "2.5e-09", "end_to_end_seconds": "", "flags": ""}
    assert {name: lines[1][name] for name in shown} == shown
    assert float(lines[1]["median_seconds"]) == pytest.approx(2e-7)
    assert lines[0]["entrant"] == "copy"
    product = lines[len(conv.rows)]
    assert (product["stride"], product["dtype"], product["floor_share"]) == ("", "float32", "")
    changed(conv.rows[1], right=False, timing=None)
    (first, second, *_) = csv.DictReader(io.StringIO(export_csv([conv])[".csv"].decode()))
    assert (first["status"], second["status"], second["median_seconds"]) == ("measured", "wrong", "")
