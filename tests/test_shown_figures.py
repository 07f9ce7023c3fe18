"""Every figure that a report of a run or of a batch shows stands under its own name, and follows its formula.

All values of a record are made different from each other; then each line is one text and no other, so that two that
are swapped, or one that is taken from elsewhere, show. Tables and spreadsheets: test_export_expected.py.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from batch_folders import a_row
from jsonschema import validate
from run_reports import all_run_reports

from edgeconv.api.figures import speed
from edgeconv.batch.summary import STAGES, BatchSummary, PictureResult, stage_lines, summary_text
from edgeconv.bench.record import metrics_of
from edgeconv.core.cost import Counts
from edgeconv.core.records import plain
from edgeconv.export import rows, tables
from edgeconv.export.schemas import schema
from edgeconv.hardware.device import Roof
from edgeconv.run import report_text
from edgeconv.run.report import RunReport, as_report

SERIES = {
    "median_seconds": 2.2e-3,
    "p10_seconds": 1.1e-3,
    "p90_seconds": 3.3e-3,
    "min_seconds": 0.9e-3,
    "n": 17,
    "stopped_because": "time limit",
}


def test_the_metrics_follow_their_formulas_by_hand() -> None:
    counts = Counts(6_000_000, 2_000_000, 400_000, 15.0)
    assert plain(metrics_of(counts, 1e-3, 2e-4, Roof(1e9, 8e9, ""), 1_200_000)) == pytest.approx(
        {
            "gflops": 6.0,
            "useful_gflops": 2.0,
            "gigabytes_per_second": 0.4,
            "moved_gigabytes_per_second": 1.2,
            "floor_share": 0.2,
            "large_copy_share": 0.4,
            "roofline_share": 0.25,  # 250 µs of arithmetic, 200 µs of copying
            "bound_by": "arithmetic",
        }
    )
    nothing = metrics_of(counts, 1e-3, None, Roof(1e9, 8e9, ""), None)
    assert (nothing.floor_share, nothing.roofline_share, nothing.bound_by) == (None,) * 3
    found = speed(counts, 1e-3, 1e-3, Roof(1e9, 8e9, ""))
    assert (found.kernel_gflops, found.useful_gflops, found.gigabytes_per_second) == pytest.approx((6.0, 2.0, 0.4))
    assert (found.memory_floor_share, found.roofline_share, found.bound_by) == pytest.approx((0.4, 0.4, "memory"))


# --- a run -----------------------------------------------------------------------------------------------------------

PHASES = {"start": 0.11, "decode": 0.022, "set_up": 0.0033, "host_to_device": 4.4e-4, "convolve": 5.5e-5}
PHASES |= {"device_to_host": 6.6e-6, "encode": 0.77}


@pytest.fixture
def one_run() -> RunReport:
    """The report of a run in which no two figures are equal."""
    made = all_run_reports()["cuda_sliding_s2"]
    made["input"] |= {"file": "in.png", "width": 31, "height": 29, "channels": 3, "dtype": "uint16"}
    made["output"] |= {"file": "out.tiff", "width": 15, "height": 14, "channels": 1, "dtype": "float32"}
    made["phases_seconds"], made["whole_run_seconds"] = dict(PHASES), 8.8
    made["wall_seconds"] = 9.7
    made["timing"] |= {"cold_seconds": 9.9e-3, "l2_state": "cold"}
    made["timing"]["kernel"] |= SERIES
    made["timing"]["end_to_end"] |= {**SERIES, "median_seconds": 4.4e-3}
    made["timing"]["parts_seconds"] = {"pad": 1.1e-3, "convolve": 9.9e-4}
    made["speed"] = {
        "kernel_gflops": 1234.56,
        "useful_gflops": 11.0,
        "gigabytes_per_second": 98.76,
        "memory_floor_share": 0.41,
        "roofline_share": 0.63,
        "bound_by": "memory",
        "end_to_end_gflops": 567.89,
        "roof": {"copy_bytes_per_second": 3.21e11, "fma_flops_per_second": 6.54e12, "how": "measured"},
    }
    made["method"]["workspace_bytes"] = 4321
    made["check"] |= {"passed": True, "max_abs_error": 0.125, "relative_error": 3e-7, "checked_samples": 1717}
    made["check"] |= {"checked_share": 0.25, "exact": False, "arithmetic": "float32"}
    made["check"]["bound_by_channel"] = [0.5]
    return as_report(made)


def test_each_line_of_a_runs_report(one_run: RunReport) -> None:
    shown = {row.label: row.text for row in report_text.table(one_run)}
    assert shown["picture"] == "in.png  31×29×3 uint16"
    assert shown["output"] == "out.tiff  15×14×1 float32"
    assert shown["phases"] == (
        "start 110 ms  decode 22 ms  set_up 3.3 ms  host_to_device 440 µs  convolve 55 µs  device_to_host 6.6 µs  "
        "encode 770 ms; whole run 8.8 s; 9.7 s with timed runs and check"
    )
    assert shown["kernel"] == "cold 9.9 ms; median 2.2 ms (p10 1.1 ms, p90 3.3 ms, n 17, L2 cold)"
    assert shown["parts"] == "pad 1.1 ms, convolve 990 µs, each by itself"
    assert shown["end to end"] == "4.4 ms, host array to host array"
    assert shown["speed"] == "1,235 nominal GFLOPS (end to end 567.9), 98.76 GB/s"
    assert shown["roofline"] == (
        "63 % (bound by memory), memory 41 %; measured here 321 GB/s copy, 6,540 GFLOPS of float32 multiply-adds"
    )
    assert shown["workspace"] == "4,321 bytes"
    assert shown["check"].startswith("right: largest error 0.125 (3e-07 relative) against float64; 1,717 samples")
    assert "(25 % of the output)" in shown["check"]
    assert shown["exactness"].endswith(": 0.5")


def test_a_run_without_samples_has_no_figures_in_the_table(one_run: RunReport) -> None:
    """Its other cells: test_export_expected.py."""
    bare = copy.deepcopy(one_run)
    bare.timing.kernel, bare.speed = None, None
    with_samples, without = rows.run_tables([one_run])[0], rows.run_tables([bare])[0]
    missing = {
        "median",
        "of copy speed",
        "nominal GFLOPS",
        "GB/s",
        "of roofline",
        "bound by",
        "nominal GFLOPS, end to end",
        "samples",
    }
    assert set(with_samples.header) - set(without.header) == missing
    assert tables.NOTHING not in (*with_samples.rows[0], *without.rows[0])
    bare.check = None
    said = [report_text.summary(report)[0].text for report in (one_run, bare)]
    assert [text.endswith(" with measuring") for text in said] == [True, False]


# --- a batch ---------------------------------------------------------------------------------------------------------


def outcome(state: Any, error: str | None = None, notes: tuple[str, ...] = (), **seconds: float) -> PictureResult:
    status = "done" if state == "skipped" else state
    return PictureResult(a_row(f"{state}.png", status=status, error=error, notes=notes), state != "skipped", seconds)


def test_the_sums_of_a_batch_by_hand() -> None:
    summary = BatchSummary(11, 3, "opencv", "cpu", "a reason", "out/ledger", earlier_outputs=6, passed_over={".txt": 2})
    for each in (
        *[outcome("done", notes=("alpha dropped",), read=0.5, decode=1.0, encode=0.25)] * 4,
        *[outcome("skipped", read=0.125, notes=("alpha dropped", "grey"))] * 3,
        *[outcome("failed", "odd", decode=0.5)] * 2,
    ):
        summary.count(each, 8.0)
    assert (summary.done, summary.skipped, summary.failed, summary.finished) == (4, 3, 2, 9)
    assert summary.pictures_per_second == 0.5
    assert (summary.start_up_seconds, summary.steady_pictures_per_second) == (8.0, 0.0)  # all came at once
    sums = dict.fromkeys(STAGES, 0.0) | {"read": 2.375, "decode": 5.0, "encode": 1.0}
    assert summary.stage_seconds == sums
    assert summary.slowest_stage == "decode"
    assert summary.notes == {"alpha dropped": 7, "grey": 3}
    assert len(summary.failures) == 2
    made = plain(summary)
    assert (made["pictures_per_second"], made["slowest_stage"], made["skipped"]) == (0.5, "decode", 3)
    assert made["failures"] == [{"input": "failed.png", "error": "odd"}] * 2
    assert (made["earlier_outputs"], made["passed_over"]) == (6, {".txt": 2})
    validate(made, schema("batch"))
    summary.peak_bytes = {"cpu": 3 * 2**20, "cuda": 5 * 2**20}
    lines = summary_text(summary).splitlines()
    assert lines[0] == "pictures  11: 4 done, 3 unchanged since an earlier run, 2 failed, 2 not started"
    assert lines[1] == "left out  6 outputs of earlier runs in the same folder"
    assert "time      8 s, 0.5 pictures/s with 3 workers" in lines
    assert "memory    at most 3 MiB (cpu), 5 MiB (cuda)" in lines
    assert "note      alpha dropped: 7" in lines


def test_the_speed_after_the_first_picture_leaves_the_start_up_out() -> None:
    summary = BatchSummary(3, 1, "opencv", "cpu", "a reason", "out/ledger")
    for seconds in (3.0, 4.0, 5.0):
        summary.count(outcome("done"), seconds)
    assert (summary.start_up_seconds, summary.steady_pictures_per_second) == (3.0, 1.0)
    assert "time      5 s, 0.6 pictures/s with 1 worker, 1/s after the first" in summary_text(summary).splitlines()


def test_each_stage_that_took_time_has_its_share() -> None:
    shown = stage_lines({"read": 1.0, "decode": 2.0, "set_up": 0.0, "convolve": 5.0, "write": 2.0})
    assert [line.split() for line in shown] == [
        ["read", "1", "s", "10", "%"],
        ["decode", "2", "s", "20", "%"],
        ["convolve", "5", "s", "50", "%"],
        ["write", "2", "s", "20", "%"],
    ]
