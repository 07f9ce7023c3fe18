"""Every number that a plot shows, against values by hand; what is drawn of many candidates; names from outside.

The record has two strides, two sizes and four candidates whose figures are all different from each other, so that two
that are swapped, one that is scaled wrongly or one that is taken from elsewhere show.
"""

from __future__ import annotations

import copy
import re
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
from bench_records import Peer, TimedMethod, changed, measured_once
from command import PROJECT
from contrast import PAGES, contrast
from run_reports import all_run_reports

from edgeconv.bench.record import BenchRecord
from edgeconv.export.document import documents
from edgeconv.export.drawing import PALETTE, SERIES, Bars, Curve, Drawing, Lines, colours_of, svg
from edgeconv.export.figures import MOST_CURVES, of_bench, of_ladder, of_runs
from edgeconv.export.schemas import read
from edgeconv.run.report import as_report

RESULTS = PROJECT / "docs" / "results"
SIZES, STRIDES = (8, 16), (1, 2)
SECONDS = {"copy": 1e-6, "own": 3e-6, "peer": 5e-6}
SVG = "{http://www.w3.org/2000/svg}"


def scale(size: int, stride: int) -> int:
    """By which the times of a case differ from the next one's: 1, 2, 10, 20."""
    return size // 8 * (10 if stride == 2 else 1)


@pytest.fixture
def record() -> BenchRecord:
    made = measured_once(TimedMethod("own", [2e-3]), Peer("peer", [4e-3]))
    plain, made.rows = made.rows, []
    for stride in STRIDES:
        for row in copy.deepcopy(plain):
            case, by = row.case, scale(row.case.size, stride)
            case.stride = stride
            seconds = SECONDS[row.candidate] * by
            changed(row.timings[row.lead_l2_state], median_seconds=seconds, samples_seconds=[seconds] * 5)
            changed(row.metrics[row.lead_l2_state], floor_share=0.31 * stride)
            row.counts.nominal_flops = 1000 * by * by
            made.rows.append(row)
    return made


def texts(drawn: Drawing) -> list[str]:
    """What an SVG says."""
    return ["".join(found.itertext()) for found in ElementTree.fromstring(svg(drawn)).iter(f"{SVG}text")]


def figures_of(bars: Drawing) -> dict[str, tuple[float, str]]:
    assert isinstance(bars, Bars)
    return {label: (value, bars.text(value)) for label, value in bars.values.items()}


# --- a bench ---------------------------------------------------------------------------------------------------------


def test_gflops_over_size_with_a_copy_as_the_limit(record: BenchRecord) -> None:
    first, second, lead, near = of_bench(record)
    for drawn, stride in ((first, 1), (second, 2)):
        assert isinstance(drawn, Lines)
        assert [curve.label for curve in drawn.curves] == ["limit: a plain copy", "own", "peer"]
        for curve, seconds in zip(drawn.curves, SECONDS.values(), strict=True):
            by = {size: scale(size, stride) for size in SIZES}
            assert curve.points == pytest.approx({size: 1e-6 * by[size] / seconds for size in SIZES})
        assert drawn.title.endswith(f"stride {stride}")
    title = "CPU, float32, random, mix, stride {}, 16"
    ahead = (pytest.approx(5 / 3), "1.67 ×")
    assert figures_of(lead) == {f"{title.format(stride)}, over peer": ahead for stride in STRIDES}
    assert figures_of(near) == {title.format(1): (0.31, "31 %"), title.format(2): (0.62, "62 %")}


def test_points_stand_where_their_axes_say(record: BenchRecord) -> None:
    """Both axes are logarithmic: a tenth between two powers of ten is a tenth of the way."""
    curves = (Curve("a", {10: 1.0, 100: 10.0, 1000: 1000.0}, "series-0"),)
    root = ElementTree.fromstring(svg(Lines("x", "title", "", "across", "up", curves)))
    dots = [(float(dot.get("x", 0)) + 3, float(dot.get("y", 0)) + 3) for dot in root.iter(f"{SVG}rect")]
    ticks = {"".join(text.itertext()): text for text in root.iter(f"{SVG}text")}
    assert np.diff([x for x, _ in dots]) == pytest.approx([(dots[2][0] - dots[0][0]) / 2] * 2, abs=0.2)
    assert np.diff([y for _, y in dots]) == pytest.approx(
        [(dots[2][1] - dots[0][1]) / 3, (dots[2][1] - dots[0][1]) / 1.5], abs=0.2
    )
    assert float(ticks["1,000"].get("y", 0)) == pytest.approx(dots[2][1] + 0.35 * 12, abs=0.2)


def test_no_single_dot_stands_on_a_logarithmic_axis(record: BenchRecord) -> None:
    record.rows = [row for row in record.rows if row.candidate != "peer" or row.case.size == 16]
    assert [curve.label for curve in of_bench(record)[0].curves] == ["limit: a plain copy", "own"]
    record.rows = [row for row in record.rows if row.case.size == 16 and row.case.stride == 1]
    (bars,) = of_bench(record)
    assert figures_of(bars) == {
        "limit: a plain copy": (2e-6, "2 µs"),
        "own": (6e-6, "6 µs"),
        "peer": (10e-6, "10 µs"),
    }


def test_of_many_candidates_the_looked_for_and_the_fastest_are_drawn(record: BenchRecord) -> None:
    own = [row for row in record.rows if row.candidate == "own"]
    record.rows = [row for row in record.rows if row.kind == "copy"]
    names = [*(f"m{number:02}" for number in range(12)), "m00:threads=1", "torch", "jax"]  # from the fastest on
    for (number, name), row in product(enumerate(names), own):
        twin = changed(copy.deepcopy(row), candidate=name)
        seconds = 1e-3 + 1e-4 * number
        changed(twin.lead_series, median_seconds=seconds, samples_seconds=[seconds] * 5)
        record.rows.append(twin)
    drawn = of_bench(record)[0]
    assert isinstance(drawn, Lines)
    shown = [curve.label for curve in drawn.curves[1:]]
    assert shown == ["m00", "m01", "m02", "m03", "m04", "m05", "torch", "jax"]
    assert len(shown) == MOST_CURVES == len({curve.colour for curve in drawn.curves[1:]})
    assert drawn.caption.endswith("7 more candidates in the table.")
    assert set(shown) <= set(texts(drawn)), "a label stands at the end of each line"


@pytest.mark.parametrize("path", sorted(RESULTS.rglob("bench*/**/*.json.xz")), ids=lambda path: path.name)
def test_a_report_has_six_plots_and_four_tables_at_most(path) -> None:
    (made,) = documents([read(path)])
    assert 1 <= len(made.drawings) <= 6
    assert 1 <= len(made.tables) <= 4
    assert len({drawn.name for drawn in made.drawings}) == len(made.drawings)
    for drawn in made.drawings:
        root = ElementTree.fromstring(svg(drawn))
        height = float(root.get("height", 0))
        for text in root.iter(f"{SVG}text"):
            assert 0 <= float(text.get("y", 0)) <= height, (drawn.name, text.text)


def test_drawn_cases_have_one_distribution_of_each_device() -> None:
    (bars,) = of_bench(read(RESULTS / "bench" / "h200" / "surface.json.xz"))
    found = figures_of(bars)
    assert [*found][:: len(found) - 1] == ["100 % and more", "0 to 10 %"]
    assert sum(value for value, _ in found.values()) == 199
    assert found["80 to 90 %"] == (63, "63")


# --- runs and ladders ------------------------------------------------------------------------------------------------


def test_the_plots_of_runs() -> None:
    found = []
    for number, name in ((1, "cuda_sliding_s1"), (2, "cuda_cudnn_s1")):
        made = all_run_reports()[name]
        made["speed"] |= {"kernel_gflops": 1000.0 * number, "memory_floor_share": 0.2 * number}
        made["whole_run_seconds"] = 1.25 * number
        found.append(as_report(made))
    rates, near, whole = of_runs(found)
    assert figures_of(rates) == {"cuda sliding": (1000, "1,000"), "cuda cudnn": (2000, "2,000")}
    assert figures_of(near) == {"cuda sliding": (0.2, "20 %"), "cuda cudnn": (0.4, "40 %")}
    assert figures_of(whole) == {"cuda sliding": (1.25, "1.25 s"), "cuda cudnn": (2.5, "2.5 s")}
    found[1].speed.memory_floor_share = 1.5  # in a cache, of which the roof is none
    found[0].speed = None
    assert [drawn.name for drawn in of_runs(found)] == ["run_whole"], "one bar alone says nothing"


@pytest.mark.parametrize(("name", "field"), [("conv", "stride"), ("gemm", "dtype")])
def test_the_plot_of_a_ladder_has_the_rate_of_each_step(name: str, field: str) -> None:
    made = read(RESULTS / f"bench_{name}_h200.json.xz")
    changed(made.rows[3], gflops=None, timing=None, right=False)
    drawn = of_ladder(made)
    size = max(row.size for row in made.rows)
    values = dict.fromkeys(getattr(row, field) for row in made.rows)
    for lines, bars, value in zip(drawn[::2], drawn[1::2], values, strict=True):
        first: dict[tuple[str, int], float | None] = {}
        for row in made.rows:
            if getattr(row, field) == value and row.step != "copy":
                first.setdefault((row.step, row.size), row.gflops)  # the usual blocks come first
        found = {(curve.label, place): rate for curve in lines.curves for place, rate in curve.points.items()}
        rated = {key: rate for key, rate in first.items() if rate is not None}
        lone = {step for step, _ in rated if sum(step == other for other, _ in rated) == 1}  # no line
        assert found == {key: rate for key, rate in rated.items() if key[0] not in lone}
        assert {label: rate for label, (rate, _) in figures_of(bars).items()} == {
            step: rate for (step, each), rate in first.items() if each == size
        }


# --- files, colours and names ----------------------------------------------------------------------------------------


def test_every_colour_can_be_read_on_light_and_on_dark() -> None:
    for name, page in product((*SERIES, PALETTE["ink"], PALETTE["soft"]), PAGES):
        assert contrast(name, page) >= 3, (name, page)
    style = (PROJECT / "edgeconv" / "export" / "report.html").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--(series-\d): (#\w+);", part)) for part in style.split("@media", 2)[:2])
    for colours, page in ((light, PAGES[0]), (dark, PAGES[1])):
        assert len(colours) == len(SERIES)
        assert min(contrast(colour, page) for colour in colours.values()) >= 4.5, "labels are text"


def test_no_two_candidates_of_a_drawing_have_one_colour() -> None:
    names = ["sliding", "sliding:threads=1", "torch", "opencv-filter2d", "opencv", "jax", "im2col", "halide"]
    assert len(set(colours_of(names).values())) == len(names)
    assert colours_of(["sliding:threads=1"])["sliding:threads=1"] == colours_of(["torch", "sliding"])["sliding"]


@pytest.mark.parametrize(
    "name", ["cost $5 and $6.png", "a<b>&'\"c", "x\x01.png", "\udcff.png", "名前.png", "long " * 30]
)
def test_a_name_is_drawn_as_it_stands(name: str) -> None:
    bars = Bars("bars", name, "", "across", {name: 1.0, "other": 2.0}, str)
    lines = Lines("lines", name, "", "across", "up", (Curve(name, {1: 1.0, 2: 2.0}, "series-0"),))
    shown = {"x\x01.png": r"x\u0001.png", "\udcff.png": r"\udcff.png"}.get(name, name)
    for drawn in (bars, lines):
        assert shown in texts(drawn)
