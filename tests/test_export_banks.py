"""Filter banks in tables and plots: limits, shares and leads against numbers worked out by hand."""

from __future__ import annotations

import pytest
from bench_records import FEW, Peer, TimedMethod, use

from edgeconv.bench import runner
from edgeconv.bench.grid import CaseGrid, GridPart
from edgeconv.bench.record import BenchRecord
from edgeconv.export.banks import bank_map, bank_series
from edgeconv.export.drawing import Lines
from edgeconv.export.figures import of_bench
from edgeconv.hardware.device import Roof

SIDE = 4


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> BenchRecord:
    """Banks of 1 and 2 filters on RGB and grey pictures of 4×4, under a roof of 1 GB/s and 1 GFLOPS."""
    device = use(monkeypatch, TimedMethod("ours", [4e-6]), Peer("theirs", [10e-6]))
    device.floor_seconds = 1e-6
    monkeypatch.setattr(device, "roof", lambda: Roof(1e9, 1e9, "made up"))
    names = ("bank-c3-k2", "bank-c3-k1", "bank-c1-k1", "bank-c1-k2")
    banks = GridPart((SIDE,), filters=names, dtypes=("float32",), devices=("cpu",))
    return runner.run(CaseGrid("test", "made up", (banks,)), FEW)


def test_limits_shares_and_leads_by_hand(record: BenchRecord) -> None:
    """16 pixels: 4·C bytes in and 4·K out, 18·C·K operations for each, at a byte and an operation per nanosecond."""
    grey, colour = bank_series(record)
    assert (grey.title, colour.title) == ("grey float32, 4×4, stride 1", "RGB float32, 4×4, stride 1")
    for series in (grey, colour):
        channels = series.in_channels
        assert list(series.rows) == [1, 2]
        for filters in series.rows:
            memory, arithmetic = series.limits_seconds(filters)
            assert memory == pytest.approx(16 * 4 * (channels + filters) * 1e-9)
            assert arithmetic == pytest.approx(16 * 18 * channels * filters * 1e-9)
    table = bank_map(colour)
    assert table.header[1:] == ("memory", "arithmetic", "`ours`", "`theirs`", "of the limit", "lead over libraries")
    # 0.256 µs and 0.864 µs for one filter, 0.320 µs and 1.728 µs for two, of which our 4 µs are 22 % and 43 %
    assert table.rows == (
        ("1", "0.256", "0.864", "4", "10", "22 %", "2.5 [2.5, 2.5]"),
        ("2", "0.32", "1.73", "4", "10", "43 %", "2.5 [2.5, 2.5]"),
    )


def test_a_plot_has_every_candidate_under_both_limits(record: BenchRecord) -> None:
    grey, colour = of_bench(record)
    assert isinstance(colour, Lines)
    operations = [16 * 18 * 3 * filters for filters in (1, 2)]
    found = {curve.label: list(curve.points.values()) for curve in colour.curves}
    assert list(found) == ["limit: memory", "limit: arithmetic", "ours", "theirs"]
    assert found["ours"] == pytest.approx([work / 4e-6 / 1e9 for work in operations])
    assert found["limit: arithmetic"] == pytest.approx([1.0, 1.0])
    assert found["limit: memory"] == pytest.approx([operations[0] / (16 * 4 * 4), operations[1] / (16 * 4 * 5)])
    assert grey.title == "Filter banks, grey float32, 4×4, stride 1, CPU"
