"""The window's figures of speed, each against a value by hand: a run in which no two figures are equal."""

from __future__ import annotations

import pytest
from bench_records import changed
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot
from run_reports import all_run_reports
from windows import pixels_of

from edgeconv.run.report import RunReport, as_report
from edgeconv.view.parameters import Parameters
from edgeconv.view.qt.history import HistoryPanel
from edgeconv.view.qt.speed import COLOURS, PhaseBar, SpeedPanel, speed_rows
from edgeconv.view.state import MeasuredRun

PHASES = {"decode": 0.01, "host_to_device": 0.02, "convolve": 0.05}


@pytest.fixture
def record() -> RunReport:
    made = all_run_reports()["cuda_sliding_s2"]
    series = {"median_seconds": 2.2e-3, "p10_seconds": 1.1e-3, "p90_seconds": 3.3e-3, "n": 17}
    series |= {"min_seconds": 1e-9, "stopped_because": "sample limit", "samples_seconds": [1e-9]}
    made["timing"] |= {"kernel": series, "end_to_end": {**series, "median_seconds": 4.4e-3}, "cold_seconds": 9.9e-3}
    made["speed"] |= {"kernel_gflops": 1234.56, "gigabytes_per_second": 98.765, "bound_by": "memory"}
    made["speed"] |= {"memory_floor_share": 0.41, "roofline_share": 0.63}
    made["speed"]["roof"] = {"copy_bytes_per_second": 3.21e11, "fma_flops_per_second": 6.5432e12, "how": ""}
    made["check"] |= {"passed": True, "max_abs_error": 0.125, "checked_share": 0.25}
    made["phases_seconds"] = dict(PHASES)
    made["method"]["why"] = "for a reason"
    return as_report(made)


def test_each_line_of_the_speed_panel(record: RunReport) -> None:
    found = dict(speed_rows(record))
    assert found == {
        "kernel": "2.2 ms, median of 17",
        "p10 to p90": "1.1 ms to 3.3 ms",
        "cold": "9.9 ms",
        "end to end": "4.4 ms",
        "memory": "98.77 GB/s, 41 % of the floor",
        "roofline": "63 %, bound by memory",
        "roof here": "321 GB/s, 6,543 GFLOPS",
        "error": "right, largest 0.125 against float64 on 25 %",
    }


def test_what_was_not_measured_has_no_line(record: RunReport) -> None:
    changed(record.check, passed=False, max_abs_error=None, checked_share=1.0)
    assert dict(speed_rows(record))["error"] == "WRONG, largest infinite against float64 on 100 %"
    changed(record.timing, kernel=None, end_to_end=None)
    changed(record, speed=None, check=None)
    assert list(dict(speed_rows(record))) == ["cold"]


def test_the_head_of_the_speed_panel(qtbot: QtBot, record: RunReport) -> None:
    panel = SpeedPanel()
    qtbot.addWidget(panel)
    run = MeasuredRun(1, "a.png", Parameters(), record)
    panel.show_run(run)
    panel.show()
    for part in (panel.gflops, panel.method, panel.phases, panel.phases_text):
        assert panel.isAncestorOf(part), "it is seen nowhere"
        assert part.isVisible()
    assert panel.gflops.text() == "1,235 GFLOPS"
    assert panel.method.text() == f"{run.method_label} · for a reason"
    assert panel.phases.toolTip() == "decode: 10 ms\nhost to device: 20 ms\nconvolve: 50 ms"
    assert panel.phases.accessibleDescription() == panel.phases.toolTip()
    panel.show_run(MeasuredRun(2, "a.png", Parameters(), changed(record, speed=None)))
    assert panel.gflops.text() == "–"


def test_the_bar_is_cut_by_the_phases_shares(qtbot: QtBot) -> None:
    """An eighth, two and five, of 160 pixels."""
    bar = PhaseBar()
    qtbot.addWidget(bar)
    bar.resize(160, PhaseBar.HEIGHT)
    bar.show_phases(PHASES)
    row = pixels_of(bar.grab().toImage())[PhaseBar.HEIGHT // 2]
    curves = [QColor(colour).getRgb()[:3] for colour in COLOURS[:3]]
    expected = {5: 0, 18: 0, 22: 1, 58: 1, 62: 2, 158: 2}
    scale = len(row) // 160
    assert {x: tuple(row[x * scale][:3]) for x in expected} == {x: curves[which] for x, which in expected.items()}


def test_each_cell_of_the_history(qtbot: QtBot, record: RunReport) -> None:
    panel = HistoryPanel()
    qtbot.addWidget(panel)
    record.method.name, record.device.kind = "sliding", "cuda"
    panel.show_runs([MeasuredRun(7, "a.png", Parameters(), record)])
    table = panel.model()
    shown = [table.index(0, column).data() for column in range(table.columnCount())]
    assert shown == ["7", Parameters().summary(), "sliding CUDA", "2.2 ms", "1,235"]
