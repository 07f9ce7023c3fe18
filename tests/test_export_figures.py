"""Drawings of records: what they say is so, names from outside stay text, and none takes another's file."""

from __future__ import annotations

import copy
from itertools import product
from xml.etree import ElementTree

import pytest
from bench_records import TimedMethod, changed, measured_once
from undrawn import undrawn

from edgeconv.bench import record
from edgeconv.bench.summary import Phases
from edgeconv.export import find_exporter

pytest.importorskip("matplotlib")

from edgeconv.export import figures  # it needs matplotlib
from edgeconv.export.plot import svg


@pytest.fixture
def result() -> record.BenchRecord:
    """A method and a peer, sizes 8 and 16."""
    peer = TimedMethod("peer", [4e-3])
    peer.kind = "peer"
    return measured_once(TimedMethod("own", [2e-3]), peer)


def repeated(result: record.BenchRecord, name: str, values: list, outside: bool = False) -> record.BenchRecord:
    """All rows once for each of `values` of a field of the work, or of the row itself."""
    again = copy.deepcopy(result)
    again.rows = []
    for value, row in product(values, result.rows):
        twin = copy.deepcopy(row)
        setattr(twin if outside else twin.case, name, value)
        again.rows.append(twin)
    return again


def texts(drawing: figures.Drawing) -> list[str]:
    """Every text of a drawing, as its SVG has it."""
    root = ElementTree.fromstring(svg(drawing))
    return ["".join(found.itertext()) for found in root.iter("{http://www.w3.org/2000/svg}text")]


# --- names from outside ---------------------------------------------------------------------------------------------


DRAWN = {
    "cost $5 and $6.png": "cost $5 and $6.png",
    "a$x_{$.png": "a$x_{$.png",
    r"one$ and \$.png": r"one$ and \$.png",
    "x\x01.png": r"x\u0001.png",
    "\udcff.png": r"\udcff.png",
}


def test_a_name_is_drawn_as_it_stands_wherever_there_are_names(result) -> None:
    bars = figures.stacked_bars([(name, {"decode": 1.0}, f"1 s  {name}") for name in DRAWN])
    expected = {*DRAWN.values(), *(f"1 s  {drawn}" for drawn in DRAWN.values())}
    assert expected <= set(texts(figures.Drawing("bars", "", "", bars)))
    peers = [row for row in result.rows if row.kind == "peer"]
    result.rows = [row for row in result.rows if row.kind != "peer"]
    result.rows += [changed(copy.deepcopy(row), candidate=name) for name, row in product(DRAWN, peers)]
    for plot in (figures.gflops, figures.times, figures.roofline, figures.floor):
        (drawing,) = plot(result)
        assert set(DRAWN.values()) <= set(texts(drawing)), drawing.name


def test_pictures_of_one_name_in_several_folders_keep_their_own_drawings(result, monkeypatch) -> None:
    undrawn(monkeypatch)
    twice = repeated(result, "picture", ["one/photo.png", "two/photo.png", "two/PHOTO.png", "two/other.png"])
    drawings = figures.gflops(twice)
    names = [drawing.name.removeprefix("gflops_cpu_") for drawing in drawings]
    photos = ("photo-png_*_1", "photo-png_*_2", "PHOTO-png_*_3", "other-png_*")
    rest = "_".join(getattr(result.rows[0].case, word) for word in ("dtype", "filter", "channels"))
    assert names == [photo.replace("*", rest) for photo in photos]
    files = find_exporter("plot").load()([twice])
    assert len(files) == 2 * len(figures.draw(twice))


# --- captions and titles --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpu", "cuda", "words"),
    [
        ([1, 1, 1, 1], [2, 2, 2, 2], "At none of the sizes timed on both does the GPU with its bus beat the CPU."),
        ([1, 1, 1, 1], [2, 1, 0.5, 0.5], "beats the CPU from 32 to 64."),
        ([1, 1, 1, 1], [2, 0.5, 0.5, 2], "beats the CPU from 16 to 32."),
        ([1, 1, 1, 1], [0.5, 2, 2, 0.5], "beats the CPU at 8 and at 64."),
        ([1, 1, 1, None], [2, 2, 0.5, 0.5], "beats the CPU at 32."),
        ([1, 1, 1, 1], [None, None, None, None], "device."),
    ],
)
def test_the_sizes_at_which_a_gpu_pays_are_those_at_which_it_is_faster(
    monkeypatch, result, cpu: list, cuda: list, words: str
) -> None:
    sizes = [8, 16, 32, 64]
    seconds = {"cpu": dict(zip(sizes, cpu, strict=True)), "cuda": dict(zip(sizes, cuda, strict=True))}
    both = repeated(repeated(result, "size", sizes), "device", ["cpu", "cuda"], outside=True)

    def phases(made: record.BenchRecord, group: figures.Group, size: int) -> Phases | None:
        found = seconds[group.device][size]
        return None if found is None else Phases("own", {"decode": 0.1, "convolve": found})

    monkeypatch.setattr(figures, "phases", phases)
    (drawing,) = figures.waterfall(both)
    assert drawing.caption.endswith(words)


def test_no_two_drawings_have_one_title(result) -> None:
    strides = repeated(result, "stride", [1, 2, 3])
    strides.files = [changed(copy.copy(entry), stride=stride) for stride in (1, 2, 3) for entry in result.files]
    titles = [drawing.title for drawing in figures.draw(strides)]
    assert sum(title.startswith("Where the time goes") for title in titles) == 3
    assert len(titles) == len(set(titles))


def test_a_plot_has_eight_series_at_most_and_says_which_it_leaves_out(result) -> None:
    record = copy.deepcopy(result)
    record.rows = [row for row in result.rows if row.kind == "copy"]
    for number, row in product(range(12), [row for row in result.rows if row.candidate == "own"]):
        twin = changed(copy.deepcopy(row), candidate=f"m{number:02}")
        seconds = 1e-3 + 1e-4 * (11 - number)
        for series in twin.timings.values():
            changed(series, median_seconds=seconds, samples_seconds=[seconds] * 5)
        record.rows.append(twin)
    left = " Not shown, as they are slower: m00, m01, m02, m03."
    for plot in (figures.gflops, figures.times, figures.roofline):
        (drawing,) = plot(record)
        shown = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
        assert [name for name in shown if name != "copy"] == [f"m{number:02}" for number in range(4, 12)]
        assert drawing.caption.endswith(left)
    (heat,) = figures.floor(record)
    assert len(heat.figure.axes[0].get_yticklabels()) == 12, "a map of numbers has room for all"
