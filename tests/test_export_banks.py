"""Filter banks in tables and plots: limits, shares and leads against numbers worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench_records import FEW, TimedMethod, grid, use
from command import script

from edgeconv.bench import runner
from edgeconv.bench.grid import CaseGrid, GridPart
from edgeconv.bench.record import BenchRecord, read_record
from edgeconv.bench.summary import median
from edgeconv.core.cost import Roof
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.export import figures
from edgeconv.export.banks import bank_map, bank_series

SIDE = 4
PROJECT = Path(__file__).resolve().parent.parent
BYTES_PER_SECOND, FLOPS_PER_SECOND = 1e9, 1e9


class Library(TimedMethod):
    """Another library, as far as tables go."""

    kind = "peer"


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> BenchRecord:
    """Banks of 1 and 2 filters on RGB and grey pictures of 4×4, under a roof of 1 GB/s and 1 GFLOPS."""
    device = use(monkeypatch, TimedMethod("ours", [4e-6]), Library("theirs", [10e-6]))
    device.floor_seconds = 1e-6
    monkeypatch.setattr(device, "roof", lambda: Roof(BYTES_PER_SECOND, FLOPS_PER_SECOND, "made up"))
    names = ("bank-c3-k2", "bank-c3-k1", "bank-c1-k1", "bank-c1-k2")
    banks = GridPart((SIDE,), filters=names, dtypes=("float32",), devices=("cpu",))
    return runner.run(runner.BenchRun(CaseGrid("test", "made up", (banks,)), FEW))


def test_limits_shares_and_leads_by_hand(record: BenchRecord) -> None:
    """16 pixels: 4·C bytes in and 4·K out, 18·C·K operations for each, at a byte and an operation per nanosecond."""
    grey, colour = bank_series(record)
    assert (grey.title, colour.title) == ("grey float32, 4×4, stride 1", "RGB float32, 4×4, stride 1")
    found = {(point.in_channels, point.filters): point for series in (grey, colour) for point in series.points}
    for (channels, filters), point in found.items():
        assert point.memory_seconds == pytest.approx(16 * 4 * (channels + filters) * 1e-9)
        assert point.arithmetic_seconds == pytest.approx(16 * 18 * channels * filters * 1e-9)
    assert list(found) == [(1, 1), (1, 2), (3, 1), (3, 2)]
    table = bank_map(colour)
    assert table.header == (
        "filters",
        "memory",
        "arithmetic",
        "`ours`",
        "`theirs`",
        "of the limit",
        "lead over libraries",
    )
    # 0.256 µs and 0.864 µs for one filter, 0.320 µs and 1.728 µs for two, of which our 4 µs are 22 % and 43 %
    assert table.rows == (
        ("1", "0.256", "0.864", "4", "10", "22%", "2.5 [2.5, 2.5]"),
        ("2", "0.32", "1.73", "4", "10", "43%", "2.5 [2.5, 2.5]"),
    )


def test_a_plot_has_every_candidate_under_both_limits(record: BenchRecord) -> None:
    (drawing,) = figures.banks(record)
    assert drawing.name == "banks_cpu_float32_4_1"
    grey, colour = drawing.figure.axes
    lines = {line.get_label(): [float(value) for value in line.get_ydata()] for line in colour.get_lines()}
    operations = [16 * 18 * 3 * filters for filters in (1, 2)]
    assert list(lines) == ["limit: memory", "limit: arithmetic", "ours", "theirs"]
    assert lines["ours"] == pytest.approx([work / 4e-6 / 1e9 for work in operations])
    assert lines["theirs"] == pytest.approx([work / 10e-6 / 1e9 for work in operations])
    assert lines["limit: arithmetic"] == pytest.approx([1.0, 1.0])
    assert lines["limit: memory"] == pytest.approx(
        [work / (16 * 4 * (3 + filters)) for work, filters in zip(operations, (1, 2), strict=True)]
    )
    assert [text.get_text() for text in colour.get_xticklabels()] == ["1", "2"]
    assert grey.get_title() == "grey float32"


def test_a_record_without_banks_has_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, TimedMethod("ours", [4e-6]))
    plain = runner.run(runner.BenchRun(grid(8), FEW))
    assert bank_series(plain) == []
    assert figures.banks(plain) == []


def test_what_the_page_says_in_words_is_what_its_records_hold() -> None:
    words = re.sub(r"\s+", " ", (PROJECT / "docs" / "banks.md").read_text(encoding="utf-8"))
    results = PROJECT / "docs" / "results"
    record = read_record(results / "bench" / "h200" / "bank.json.xz")
    roof = record.roofs["cuda"]
    assert f"to copy {roof.copy_bytes_per_second / 1e12:.2f} TB/s" in words
    assert f"{roof.fma_flops_per_second / 1e12:.1f} TFLOPS of float32" in words
    assert f"{roof.fma_flops_per_second / roof.copy_bytes_per_second:.0f} operations in the time of a byte" in words

    points = [point for series in bank_series(record) for point in series.points]
    fastest = [
        next(row for row in point.timed if row.kind == "method" and row.options.math == "fma") for point in points
    ]
    won = [row.candidate == "sliding" for row in fastest]
    assert f"fastest method at {sum(won)} of the {len(points)} points" in words
    others = [
        (point.filters, point.in_channels, row.candidate)
        for point, row, is_won in zip(points, fastest, won, strict=True)
        if not is_won
    ]
    assert others == [(3, 1, "implicit"), (6, 1, "implicit")]  # as the sentence goes on
    halves = [
        point.filters
        for point, ours in zip(points, fastest, strict=True)
        if (by_halves := point.row("implicit:math=half")) is not None
        and point.in_channels == RGB_CHANNELS
        and median(by_halves) < median(ours)
    ]
    assert f"passes `sliding` for {halves[0]} to {halves[-1]} filters on RGB" in words
    libraries = [
        next(row for row in point.timed if row.kind == "peer" or row.candidate.startswith("cudnn")) for point in points
    ]
    leads = [median(theirs) / median(ours) for theirs, ours in zip(libraries, fastest, strict=True)]
    assert f"takes {min(leads):.1f} to {max(leads):.0f} times as long" in words
    shares = {
        (point.in_channels, point.filters): f"{100 * point.limit_seconds / median(row):.0f} %"
        for point, row in zip(points, fastest, strict=True)
    }
    assert f"comes to {shares[1, 64]} of memory's limit at 64 filters and {shares[1, 256]} at 256" in words
    assert f"On RGB it stays at {shares[3, 64]} at 64 filters" in words

    tried = script("committed").record("tried/cuda_bank")
    steps = tried["microseconds_by_steps_of_a_strip_of_two_rows"]
    rgb, grey = steps["3x64, 8 lanes, 3 pixels, 2 warps"], steps["1x64, 8 lanes, 2 pixels, 2 warps"]
    assert min(rgb, key=rgb.get) == "6"
    assert f"of 6 steps take {rgb['6']:.0f} µs, of 64 steps {rgb['64']:.0f}" in words
    assert f"a single step is best, {grey['1']:.0f} in place of {grey['64']:.0f}" in words
    small = tried["microseconds_of_small_pictures"]
    direct, shared = (small[way]["512x512 3x64"] for way in ("one thread per pixel", "lanes share pixels"))
    assert f"took {direct:.0f} µs; by the lanes of a warp it is {shared:.0f}" in words
