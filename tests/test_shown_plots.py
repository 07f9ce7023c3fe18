"""Every number that a plot or a page shows, against values by hand: points, lines, bars, labels, captions and cells.

The record has two strides, two sizes and four candidates whose figures are all different from each other, so that two
that are swapped, one that is scaled wrongly or one that is taken from elsewhere show.
"""

from __future__ import annotations

import copy
from typing import Any

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

from edgeconv.bench.record import BenchRecord
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
    ("draw", "values", "label", "x_label"),
    [
        (figures.gflops, RATES, "GFLOPS (nominal)", "side of the picture"),
        (
            figures.times,
            {name: value * 1e6 for name, value in SECONDS.items()},
            "median time, µs",
            "side of the picture",
        ),
    ],
    ids=["gflops", "times"],
)
def test_points_over_size(record: BenchRecord, draw: Any, values: dict[str, float], label: str, x_label: str) -> None:
    (drawing,) = draw(record)
    assert len(drawing.figure.axes) == len(STRIDES)
    for axis, stride in zip(drawing.figure.axes, STRIDES, strict=True):
        names = [name for name in values if name != "copy" or draw is figures.times]
        found = lines_of(axis)
        assert list(found) == names
        for name in names:
            expected = [(size, values[name] * scale(size, stride)) for size in SIZES]
            assert np.allclose(found[name], expected, rtol=1e-12), name
        assert (axis.get_title(), axis.get_ylabel(), axis.get_xlabel()) == (f"stride {stride}", label, x_label)
        assert axis.get_xticks().tolist() == list(SIZES)
        assert ticks(axis.get_xticklabels()) == ["8", "16"]
        assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert legend_of(drawing) == names
    assert ("Dotted: the fewest bytes read and written" in drawing.caption) == (draw is figures.times)


def test_a_candidate_without_a_time_has_no_line_and_no_share(record: BenchRecord) -> None:
    for row in record.rows:
        if row.candidate == "peer":
            changed(row, lead_l2_state=None, timings={}, metrics={})
    (drawing,) = figures.gflops(record)
    assert list(lines_of(drawing.figure.axes[0])) == ["own"]
    (drawing,) = figures.floor(record)
    assert ticks(drawing.figure.axes[0].get_yticklabels()) == ["own"]


def test_shares_of_the_floor(record: BenchRecord) -> None:
    (drawing,) = figures.floor(record)
    axis, bar = drawing.figure.axes
    assert (bar.get_ylabel(), ticks(bar.get_yticklabels())[::2]) == ("share of the floor", ["0%", "50%", "100%"])
    expected = [[0.31, 0.31, 0.031, 0.0155], [0.62, 0.62, 0.062, 0.031]]
    assert np.allclose(axis.images[0].get_array(), expected, rtol=1e-12)
    assert axis.images[0].get_clim() == (0, 1)
    cells = {text.get_position(): (text.get_text(), text.get_color()) for text in axis.texts}
    shown = [["31%", "31%", "3.1%", "1.6%"], ["62%", "62%", "6.2%", "3.1%"]]
    assert cells == {
        (x, y): (shown[y][x], "white" if expected[y][x] < 0.6 else "black") for y in range(2) for x in range(4)
    }
    assert ticks(axis.get_yticklabels()) == ["own", "peer"]
    assert ticks(axis.get_xticklabels()) == ["8\ns1", "16\ns1", "8\ns2", "16\ns2"]
    assert axis.get_yticks().tolist() == [0, 1]
    assert axis.get_xticks().tolist() == [0, 1, 2, 3]


def test_a_share_that_was_not_measured_is_left_white(record: BenchRecord) -> None:
    row = next(row for row in record.rows if row.candidate == "own")
    row.metrics[row.lead_l2_state].floor_share = None
    axis, _ = figures.floor(record)[0].figure.axes
    assert np.ma.getmaskarray(axis.images[0].get_array())[0].tolist() == [True, False, False, False]
    assert (0, 0) not in {text.get_position() for text in axis.texts}
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
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert axis.get_ylabel() == "GFLOPS (nominal)"
    assert drawing.title == "Roofline, CPU"


def test_no_roofline_where_nothing_but_the_copy_was_timed(record: BenchRecord) -> None:
    record.rows = [row for row in record.rows if row.candidate == "copy"]
    assert figures.roofline(record) == []


def test_bars_of_a_whole_pictures_phases(record: BenchRecord) -> None:
    """Decoding takes 2 µs a pixel of the side, encoding 5 µs, and the method what it takes."""
    first, second = figures.waterfall(record)
    for drawing, stride in ((first, 1), (second, 2)):
        (axis,) = drawing.figure.axes
        assert ticks(axis.get_yticklabels()) == ["8 cpu", "16 cpu"]
        bars = {(round(bar.get_y() + bar.get_height() / 2), to_hex(bar.get_facecolor())): bar for bar in axis.patches}
        notes = []
        for place, size in enumerate(SIZES):
            parts = {"decode": 2.0 * size, "convolve": 3.0 * scale(size, stride), "encode": 5.0 * size}
            total, left = sum(parts.values()), 0.0
            notes.append(total)
            for name, microseconds in parts.items():
                bar = bars.pop((place, figures.PHASE_COLOURS[name].lower()))
                assert (bar.get_x(), bar.get_width()) == pytest.approx((left / total, microseconds / total))
                left += microseconds
        assert bars == {}
        assert [text.get_text() for text in axis.texts] == [
            f"{float(f'{total / 1e3:.3g}'):g} ms  own" for total in notes
        ]
        assert [text.get_position() for text in axis.texts] == [(1.01, 0), (1.01, 1)]
        assert axis.get_xlim() == (0, 1)
        assert axis.yaxis_inverted()
        assert axis.xaxis.get_major_formatter()(0.25, 0) == "25%"
        assert drawing.title.endswith(f"stride {stride}")
        assert legend_of(drawing) == ["decode", "convolve", "encode"]


def test_bars_of_cudnns_algorithms(record: BenchRecord) -> None:
    """In the order of the ranking, then what was only measured; the fastest in green; those without a time left out."""
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
    assert [to_hex(bar.get_facecolor()).upper() for bar in axis.patches] == ["#0072B2", "#009E73", "#0072B2"]
    assert ticks(axis.get_yticklabels()) == ["FMA\nSLOW", "FMA\nFAST", "TENSOR\nFAST"]
    assert axis.yaxis_inverted()
    assert axis.get_xlabel() == "measured time, µs"
    assert (drawing.name, drawing.title) == ("cudnn_1", "cuDNN's ranking, 16, stride 1, float32, own")
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
    assert [bar.get_y() + bar.get_height() / 2 for bar in axis.patches] == pytest.approx([0] * 4 + [1] * 4)
    assert legend_of(phases) == ["start", "decode", "set up", "convolve"]

    (axis,) = rates.figure.axes
    assert lines_of(axis) == {"kernel": [(1000, 0), (2000, 1)], "end to end": [(30.4, 0), (60.8, 1)]}
    notes = [(text.get_text(), text.xy) for text in axis.texts]
    assert notes == [("1,000", (1000, 0)), ("2,000", (2000, 1)), ("30.4", (30.4, 0)), ("60.8", (60.8, 1))]
    assert axis.get_xscale() == "log"
    assert legend_of(rates) == ["kernel", "end to end"]

    (axis,) = shares.figure.axes
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([0.2, 0.4, 0.3, 0.6])
    middles = [bar.get_y() + bar.get_height() / 2 for bar in axis.patches]
    assert middles == pytest.approx([-0.19, 0.81, 0.19, 1.19])
    assert [text.get_text() for text in axis.texts] == ["20%", "40%", "30%", "60%"]
    assert legend_of(shares) == ["of the memory floor", "of the roofline"]
    assert axis.xaxis.get_major_formatter()(0.5, 0) == "50%"
    for drawing, label in ((rates, "GFLOPS (nominal)"), (shares, "share of what this machine was measured to do")):
        (axis,) = drawing.figure.axes
        assert axis.get_xlabel() == label
        assert all(line.get_visible() for line in axis.get_xgridlines()), "bars are read along the grid"
        assert ticks(axis.get_yticklabels()) == ["cuda sliding", "cuda cudnn"]
        assert axis.yaxis_inverted()


def test_a_run_without_samples_or_roof_has_no_bar(reports: list[RunReport]) -> None:
    reports[0].speed.roofline_share = None
    reports[1].speed = None
    (phases, rates) = run_figures.draw_runs(reports)
    assert len(phases.figure.axes[0].texts) == 2
    assert ticks(rates.figure.axes[0].get_yticklabels()) == ["cuda sliding"]
    reports[0].speed = None
    assert [drawing.name for drawing in run_figures.draw_runs(reports)] == ["run_phases"]


@pytest.mark.parametrize("name", ["conv", "gemm"])
def test_the_plot_of_a_ladder_has_the_rate_of_each_step(name: str) -> None:
    (path,) = (PROJECT / "docs" / "results").glob(f"bench_{name}_h200.json*")
    record = read(path)
    changed(record.rows[3], gflops=None, timing=None, right=False)
    drawing, *bars = ladder_figures.draw_ladder(record)
    field = "stride" if name == "conv" else "dtype"
    values = list(dict.fromkeys(getattr(row, field) for row in record.rows))
    assert [axis.get_title() for axis in drawing.figure.axes] == [
        f"stride {value}" if name == "conv" else value for value in values
    ]
    for axis, value in zip(drawing.figure.axes, values, strict=True):
        first: dict[tuple[str, int], float | None] = {}
        for row in record.rows:
            if getattr(row, field) == value:
                first.setdefault((row.step, row.size), row.gflops)  # the usual blocks come first
        found = {(step, x): y for step, points in lines_of(axis).items() for x, y in points}
        assert found == {key: rate for key, rate in first.items() if rate is not None and key[0] != "copy"}
        assert axis.get_yscale() == ("log" if name == "conv" else "linear")
        assert axis.get_ylabel() == "GFLOPS"
        if name == "gemm":
            assert axis.get_ylim()[0] == 0
    size = max(row.size for row in record.rows)
    assert [drawing.title for drawing in bars] == [
        f"Each step of edgeconv bench {name}, {size}×{size}, "
        f"{f'stride {value}' if name == 'conv' else value}, NVIDIA H200"
        for value in values
    ]
    for drawing, value in zip(bars, values, strict=True):
        (axis,) = drawing.figure.axes
        rates = {}
        for row in record.rows:
            if (getattr(row, field), row.size) == (value, size) and row.step != "copy" and row.gflops is not None:
                rates.setdefault(row.step, row.gflops)
        assert dict(zip(ticks(axis.get_yticklabels()), (bar.get_width() for bar in axis.patches), strict=True)) == rates
        assert axis.yaxis_inverted(), "the first step is on top"


def test_a_record_gives_the_same_png_on_white_and_the_same_svg_with_text_each_time(record: BenchRecord) -> None:
    import cv2

    (drawing,), (again,) = figures.roofline(record), figures.roofline(record)
    data, drawn = plot.png(drawing), plot.svg(drawing)
    assert (data, drawn) == (plot.png(again), plot.svg(again))
    assert b"tEXt" not in data, "no version of a library stands in it, so that the same record gives the same file"
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert pixels[0, 0].tolist() == [255, 255, 255, 255]
    assert "<text" in drawn
    assert "opacity: 0" in drawn, "the ground of an SVG is the page's"


def test_files_of_one_record_have_no_number_and_of_several_have(
    record: BenchRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    undrawn(monkeypatch)
    names = {drawing.name for drawing in figures.draw(record)}
    assert set(plot.export([record])) == {f"_{name}.{kind}" for name in names for kind in ("svg", "png")}
    assert set(plot.export([record, record])) == {
        f"_{number}_{name}.{kind}" for number in (1, 2) for name in names for kind in ("svg", "png")
    }


def test_a_run_of_any_phases_is_drawn() -> None:
    made = next(iter(all_run_reports().values())) | {"phases_seconds": dict.fromkeys(PHASES, 0.125)}
    (drawing,) = run_figures.phases([as_report(made)])
    (axis,) = drawing.figure.axes
    assert len(axis.patches) == len(PHASES) == len({to_hex(bar.get_facecolor()) for bar in axis.patches})


def test_every_colour_can_be_read_on_light_and_on_dark() -> None:
    for colour in (*SERIES, *figures.PHASE_COLOURS.values(), FLOOR, INK):
        for page in PAGES:
            assert contrast(colour, page) >= 3, (colour, page)
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#3a3d41", "#0d1117") == pytest.approx(1.73, abs=0.01), "what axes were drawn in before"


def test_a_method_has_one_colour_everywhere(record: BenchRecord) -> None:
    """In every drawing, whatever else is in it and in whatever order; with options as without."""
    assert {colour_of(name) for name in ("im2col", "im2col:gemm=cublas", "im2col:threads=1")} == {SERIES[1]}
    for entry in METHODS:
        assert (
            sum(colour_of(other.name) == colour_of(entry.name) for other in METHODS if other.device == entry.device)
            == 1
        )
    before = {line.get_label(): line.get_color() for line in figures.gflops(record)[0].figure.axes[0].lines}
    record.rows.reverse()
    assert before == {line.get_label(): line.get_color() for line in figures.gflops(record)[0].figure.axes[0].lines}
