"""Every number that a plot or a page shows, against values by hand: points, lines, bars, labels, captions and cells.

The record has two strides, two sizes and four candidates whose figures are all different from each other, so that two
that are swapped, one that is scaled wrongly or one that is taken from elsewhere show.
"""

from __future__ import annotations

import copy
from itertools import product
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from bench_records import TimedMethod, changed, measured_once
from command import PROJECT
from contrast import PAGES, contrast
from run_reports import all_run_reports
from undrawn import undrawn

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import Phases
from edgeconv.core.cost import Roof
from edgeconv.export import figures, ladder_figures, plot, run_figures
from edgeconv.export.colours import FLOOR, INK, SERIES, colour_of
from edgeconv.export.kinds import read
from edgeconv.methods import METHODS
from edgeconv.run.report import PHASES, RunReport, as_report

SIZES, STRIDES = (8, 16), (1, 2)
SECONDS = {"copy": 1e-6, "own": 3e-6, "peer": 5e-6}
RATES = {"copy": 99.0, "own": 40.0, "peer": 24.0}
SHARES = {"copy": 1.0, "own": 0.31, "peer": 0.62}


def scale(size: int, stride: int) -> int:
    """By which the figures of a work differ from the next one's: 1, 2, 10, 20."""
    return size // 8 * (10 if stride == 2 else 1)


@pytest.fixture
def record() -> BenchRecord:
    peer = TimedMethod("peer", [4e-3])
    peer.kind = "peer"
    made = measured_once(TimedMethod("own", [2e-3]), peer)
    plain = made.rows
    made.rows = []
    for stride in STRIDES:
        for row in copy.deepcopy(plain):
            case, name, state = row.case, row.candidate, row.lead_l2_state
            by = scale(case.size, stride)
            case.stride = stride
            row.timings[state].median_seconds = SECONDS[name] * by
            changed(row.metrics[state], gflops=RATES[name] * by, floor_share=SHARES[name] / (by if by > 2 else 1))
            row.counts.intensity_flops_per_byte = {"own": 4.0, "peer": 7.0}.get(name, 1.0) + stride
            made.rows.append(row)
    made.roofs = {"cpu": Roof(2e10, 3e12, "made up")}
    made.files = [
        changed(copy.copy(entry), stride=stride, decode_seconds=2e-6 * entry.size, encode_seconds=5e-6 * entry.size)
        for stride in STRIDES
        for entry in made.files
    ]
    return made


def lines_of(axis: Axes) -> dict[str, list[tuple[float, float]]]:
    """The points of each line by its label."""
    return {
        str(line.get_label()): [(float(x), float(y)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
        for line in axis.lines
    }


def ticks(labels: Any) -> list[str]:
    return [label.get_text() for label in labels]


def legend_of(drawing: figures.Drawing) -> list[str]:
    return [text.get_text() for text in drawing.figure.legends[0].get_texts()]


# --- a bench ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "values"),
    [(figures.gflops, RATES), (figures.times, {name: value * 1e6 for name, value in SECONDS.items()})],
    ids=["gflops", "times"],
)
def test_points_over_size(record: BenchRecord, draw: Any, values: dict[str, float]) -> None:
    (drawing,) = draw(record)
    names = [name for name in values if name != "copy" or draw is figures.times]
    for axis, stride in zip(drawing.figure.axes, STRIDES, strict=True):
        found = lines_of(axis)
        assert list(found) == names
        for name in names:
            expected = [(size, values[name] * scale(size, stride)) for size in SIZES]
            assert np.allclose(found[name], expected, rtol=1e-12), name
        assert axis.get_title() == f"stride {stride}"
    assert legend_of(drawing) == names


def test_a_candidate_without_a_time_has_no_line_and_no_share(record: BenchRecord) -> None:
    for row in record.rows:
        if row.candidate == "peer":
            changed(row, lead_l2_state=None, timings={}, metrics={})
    (drawing,) = figures.gflops(record)
    assert list(lines_of(drawing.figure.axes[0])) == ["own"]
    (drawing,) = figures.floor(record)
    assert ticks(drawing.figure.axes[0].get_yticklabels()) == ["own"]


def test_shares_of_the_floor(record: BenchRecord) -> None:
    axis, _ = figures.floor(record)[0].figure.axes
    expected = [[0.31, 0.31, 0.031, 0.0155], [0.62, 0.62, 0.062, 0.031]]
    assert np.allclose(axis.images[0].get_array(), expected, rtol=1e-12)
    assert axis.images[0].get_clim() == (0, 1)
    cells = {text.get_position(): text.get_text() for text in axis.texts}
    shown = [["31 %", "31 %", "3.1 %", "1.6 %"], ["62 %", "62 %", "6.2 %", "3.1 %"]]
    assert cells == {(x, y): shown[y][x] for y in range(2) for x in range(4)}
    assert ticks(axis.get_yticklabels()) == ["own", "peer"]
    assert ticks(axis.get_xticklabels()) == ["8\ns1", "16\ns1", "8\ns2", "16\ns2"]
    row = next(row for row in record.rows if row.candidate == "own")
    row.metrics[row.lead_l2_state].floor_share = None
    axis, _ = figures.floor(record)[0].figure.axes
    assert np.ma.getmaskarray(axis.images[0].get_array())[0].tolist() == [True, False, False, False]
    assert len(axis.texts) == 7


def test_points_under_the_roof(record: BenchRecord) -> None:
    """Roof: 20 GB/s and 3,000 GFLOPS, so the ridge stands at 150 FLOPs a byte; the largest size of each stride."""
    (drawing,) = figures.roofline(record)
    (axis,) = drawing.figure.axes
    roof, *points = axis.lines
    assert np.allclose(roof.get_xdata(), [5 / 3, 150, 450])
    assert np.allclose(roof.get_ydata(), [100 / 3, 3000, 3000])
    found = [(point.get_marker(), float(point.get_xdata()[0]), float(point.get_ydata()[0])) for point in points]
    assert found == [("o", 5, 80), ("x", 8, 48), ("o", 6, 800), ("x", 9, 480)]
    assert legend_of(drawing) == ["own", "peer"]
    assert "20 GB/s copied, 3,000 GFLOPS of float32" in drawing.caption
    record.rows = [row for row in record.rows if row.candidate == "copy"]
    assert figures.roofline(record) == []


def test_bars_of_a_whole_pictures_phases(record: BenchRecord) -> None:
    """Decoding takes 2 µs a pixel of the side, encoding 5 µs, and the method what it takes."""
    for drawing, stride in zip(figures.waterfall(record), STRIDES, strict=True):
        (axis,) = drawing.figure.axes
        assert ticks(axis.get_yticklabels()) == ["8 cpu", "16 cpu"]
        bars = {(round(bar.get_y() + bar.get_height() / 2), to_hex(bar.get_facecolor())): bar for bar in axis.patches}
        for place, size in enumerate(SIZES):
            parts = {"decode": 2.0 * size, "convolve": 3.0 * scale(size, stride), "encode": 5.0 * size}
            total, left = sum(parts.values()), 0.0
            for name, microseconds in parts.items():
                bar = bars.pop((place, figures.PHASE_COLOURS[name].lower()))
                assert (bar.get_x(), bar.get_width()) == pytest.approx((left / total, microseconds / total))
                left += microseconds
            assert axis.texts[place].get_text() == f"{float(f'{total / 1e3:.3g}'):g} ms  own"
        assert bars == {}
        assert drawing.title.endswith(f"stride {stride}")
        assert legend_of(drawing) == ["decode", "convolve", "encode"]


def test_bars_of_cudnns_algorithms(record: BenchRecord) -> None:
    """In the order of the ranking, then what was only measured; those without a time left out."""
    ranked = [{"algorithm": name, "math": "FMA"} for name in ("SLOW", "SKIPPED", "FAST")]
    measured_here = [("FAST", "FMA", 7e-6), ("SLOW", "FMA", 9e-6), ("FAST", "TENSOR", 8e-6), ("SKIPPED", "FMA", None)]
    row = next(row for row in record.rows if row.candidate == "own" and row.case.size == 16)
    row.choice = {
        "ranked": ranked,
        "measured": [{"algorithm": a, "math": m, "time_seconds": seconds} for a, m, seconds in measured_here],
    }
    (drawing,) = figures.cudnn(record)
    (axis,) = drawing.figure.axes
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([9.0, 7.0, 8.0])
    assert ticks(axis.get_yticklabels()) == ["FMA\nSLOW", "FMA\nFAST", "TENSOR\nFAST"]
    row.choice["measured"] = [{**line, "time_seconds": None} for line in row.choice["measured"]]
    assert figures.cudnn(record) == []


# --- runs and ladders ------------------------------------------------------------------------------------------------


@pytest.fixture
def reports() -> list[RunReport]:
    """Two runs in which no two figures are equal."""
    found = []
    for number, name in ((1, "cuda_sliding_s1"), (2, "cuda_cudnn_s1")):
        made = all_run_reports()[name]
        made["speed"] |= {"kernel_gflops": 1000.0 * number, "end_to_end_gflops": 30.4 * number}
        made["speed"] |= {"memory_floor_share": 0.2 * number, "roofline_share": 0.3 * number}
        made["phases_seconds"] = {"start": 0.1, "decode": 0.2 * number, "set_up": 0.3, "convolve": 0.4}
        made["whole_run_seconds"] = 1.25 * number
        found.append(as_report(made))
    return found


def test_the_plots_of_runs(reports: list[RunReport]) -> None:
    phases, rates, shares = run_figures.draw_runs(reports)
    (axis,) = phases.figure.axes
    assert [text.get_text() for text in axis.texts] == ["1.25 s", "2.5 s"]
    assert ticks(axis.get_yticklabels()) == ["cuda sliding", "cuda cudnn"]
    widths = [0.1, 0.2, 0.3, 0.4, 0.1 / 1.2, 0.4 / 1.2, 0.3 / 1.2, 0.4 / 1.2]
    assert [bar.get_width() for bar in axis.patches] == pytest.approx(widths)
    assert legend_of(phases) == ["start", "decode", "set up", "convolve"]

    (axis,) = rates.figure.axes
    assert lines_of(axis) == {"kernel": [(1000, 0), (2000, 1)], "end to end": [(30.4, 0), (60.8, 1)]}
    assert [text.get_text() for text in axis.texts] == ["1,000", "2,000", "30.4", "60.8"]

    (axis,) = shares.figure.axes
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([0.2, 0.4, 0.3, 0.6])
    assert [text.get_text() for text in axis.texts] == ["20 %", "40 %", "30 %", "60 %"]
    assert legend_of(shares) == ["of the memory floor", "of the roofline"]


def test_a_run_without_samples_or_roof_has_no_bar(reports: list[RunReport]) -> None:
    reports[0].speed.roofline_share = None
    reports[1].speed = None
    (phases, rates) = run_figures.draw_runs(reports)
    assert len(phases.figure.axes[0].texts) == 2
    assert ticks(rates.figure.axes[0].get_yticklabels()) == ["cuda sliding"]
    reports[0].speed = None
    assert [drawing.name for drawing in run_figures.draw_runs(reports)] == ["run_phases"]


@pytest.mark.parametrize(("name", "field"), [("conv", "stride"), ("gemm", "dtype")])
def test_the_plot_of_a_ladder_has_the_rate_of_each_step(name: str, field: str) -> None:
    (path,) = (PROJECT / "docs" / "results").glob(f"bench_{name}_h200.json*")
    record = read(path)
    changed(record.rows[3], gflops=None, timing=None, right=False)
    over_size, *bars = ladder_figures.draw_ladder(record)
    values = list(dict.fromkeys(getattr(row, field) for row in record.rows))
    size = max(row.size for row in record.rows)
    for axis, steps, value in zip(over_size.figure.axes, bars, values, strict=True):
        first: dict[tuple[str, int], float | None] = {}
        for row in record.rows:
            if getattr(row, field) == value and row.step != "copy":
                first.setdefault((row.step, row.size), row.gflops)  # the usual blocks come first
        found = {(step, x): y for step, points in lines_of(axis).items() for x, y in points}
        assert found == {key: rate for key, rate in first.items() if rate is not None}
        (axis,) = steps.figure.axes
        shown = zip(ticks(axis.get_yticklabels()), (bar.get_width() for bar in axis.patches), strict=True)
        assert dict(shown) == {step: rate for (step, each), rate in first.items() if each == size}


def test_a_record_gives_the_same_png_and_the_same_svg_with_text_each_time(record: BenchRecord) -> None:
    (drawing,), (again,) = figures.roofline(record), figures.roofline(record)
    data, drawn = plot.png(drawing), plot.svg(drawing)
    assert (data, drawn) == (plot.png(again), plot.svg(again))
    assert b"tEXt" not in data, "no version of a library stands in it, so that the same record gives the same file"
    assert "<text" in drawn
    assert "opacity: 0" in drawn, "the ground of an SVG is the page's"


def test_a_run_of_any_phases_is_drawn() -> None:
    made = next(iter(all_run_reports().values())) | {"phases_seconds": dict.fromkeys(PHASES, 0.125)}
    (drawing,) = run_figures.phases([as_report(made)])
    (axis,) = drawing.figure.axes
    assert len(axis.patches) == len(PHASES) == len({to_hex(bar.get_facecolor()) for bar in axis.patches})


def test_every_colour_can_be_read_on_light_and_on_dark() -> None:
    for colour in (*SERIES, *figures.PHASE_COLOURS.values(), FLOOR, INK):
        for page in PAGES:
            assert contrast(colour, page) >= 3, (colour, page)


def test_a_method_has_one_colour_everywhere(record: BenchRecord) -> None:
    """In every drawing, in whatever order; with options as without."""
    assert {colour_of(name) for name in ("im2col", "im2col:gemm=cublas", "im2col:threads=1")} == {SERIES[1]}
    for device in ("cpu", "cuda"):
        names = [entry.name for entry in METHODS if entry.device == device]
        assert len({colour_of(name) for name in names}) == len(names)
    before = {line.get_label(): line.get_color() for line in figures.gflops(record)[0].figure.axes[0].lines}
    record.rows.reverse()
    assert before == {line.get_label(): line.get_color() for line in figures.gflops(record)[0].figure.axes[0].lines}


# --- names from outside, and what is left out ------------------------------------------------------------------------

DRAWN = {
    "cost $5 and $6.png": "cost $5 and $6.png",
    "a$x_{$.png": "a$x_{$.png",
    "x\x01.png": r"x\u0001.png",
    "\udcff.png": r"\udcff.png",
}


def repeated(record: BenchRecord, name: str, values: list[Any]) -> list[BenchRow]:
    """Its rows once for each of `values` of a field of the work, or of the row itself."""
    found = []
    for value, row in product(values, record.rows):
        twin = copy.deepcopy(row)
        changed(twin if hasattr(twin, name) else twin.case, **{name: value})
        found.append(twin)
    return found


def test_a_name_is_drawn_as_it_stands_wherever_there_are_names(record: BenchRecord) -> None:
    bars = figures.Drawing("bars", "", "", figures.stacked_bars([(name, {"decode": 1.0}, name) for name in DRAWN]))
    record.rows = [row for row in record.rows if row.kind != "peer"] + [
        changed(copy.deepcopy(row), candidate=name) for name in DRAWN for row in record.rows if row.kind == "peer"
    ]
    for drawing in (bars, *(draw(record)[0] for draw in (figures.gflops, figures.roofline, figures.floor))):
        root = ElementTree.fromstring(plot.svg(drawing))
        texts = {"".join(found.itertext()) for found in root.iter("{http://www.w3.org/2000/svg}text")}
        assert set(DRAWN.values()) <= texts, drawing.name


def test_pictures_of_one_name_in_several_folders_keep_their_own_drawings(record: BenchRecord, monkeypatch) -> None:
    undrawn(monkeypatch)
    record.rows = repeated(record, "picture", ["one/photo.png", "two/photo.png", "two/PHOTO.png", "two/other.png"])
    names = [drawing.name.removeprefix("gflops_cpu_") for drawing in figures.gflops(record)]
    photos = ("photo-png_*_1", "photo-png_*_2", "PHOTO-png_*_3", "other-png_*")
    assert names == [photo.replace("*", "float32_random_mix") for photo in photos]
    drawings = figures.draw(record)
    files = {f"_{drawing.name}.{kind}" for drawing in drawings for kind in ("svg", "png")}
    assert set(plot.export([record])) == files
    assert set(plot.export([record, record])) == {f"_{number}{name}" for number in (1, 2) for name in files}
    assert len({drawing.title for drawing in drawings}) == len(drawings)


@pytest.mark.parametrize(
    ("cpu", "cuda", "words"),
    [
        ([1, 1, 1, 1], [2, 2, 2, 2], "At none of the sizes timed on both does the GPU with its bus beat the CPU."),
        ([1, 1, 1, 1], [2, 1, 0.5, 0.5], "beats the CPU from 32 to 64."),
        ([1, 1, 1, 1], [0.5, 2, 2, 0.5], "beats the CPU at 8 and at 64."),
        ([1, 1, 1, None], [2, 2, 0.5, 0.5], "beats the CPU at 32."),
        ([1, 1, 1, 1], [None, None, None, None], "device."),
    ],
)
def test_the_sizes_at_which_a_gpu_pays_are_those_at_which_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, record: BenchRecord, cpu: list, cuda: list, words: str
) -> None:
    sizes = [8, 16, 32, 64]
    seconds = {"cpu": dict(zip(sizes, cpu, strict=True)), "cuda": dict(zip(sizes, cuda, strict=True))}
    for name, values in (("size", sizes), ("device", ["cpu", "cuda"])):
        record.rows = repeated(record, name, values)

    def phases(made: BenchRecord, group: figures.Group, size: int) -> Phases | None:
        found = seconds[group.device][size]
        return None if found is None else Phases("own", {"decode": 0.1, "convolve": found})

    monkeypatch.setattr(figures, "phases", phases)
    assert figures.waterfall(record)[0].caption.endswith(words)


def test_a_plot_has_eight_series_at_most_and_says_which_it_leaves_out(record: BenchRecord) -> None:
    own = [row for row in record.rows if row.candidate == "own"]
    record.rows = [row for row in record.rows if row.kind == "copy"]
    for number, row in product(range(12), own):
        twin = changed(copy.deepcopy(row), candidate=f"m{number:02}")
        seconds = 1e-3 + 1e-4 * (11 - number)
        for series in twin.timings.values():
            changed(series, median_seconds=seconds, samples_seconds=[seconds] * 5)
        record.rows.append(twin)
    for draw in (figures.gflops, figures.times, figures.roofline):
        (drawing,) = draw(record)
        assert [name for name in legend_of(drawing) if name != "copy"] == [f"m{number:02}" for number in range(4, 12)]
        assert drawing.caption.endswith(" Not shown, as they are slower: m00, m01, m02, m03.")
    assert len(figures.floor(record)[0].figure.axes[0].get_yticklabels()) == 12, "a map of numbers has room for all"
