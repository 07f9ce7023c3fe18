"""Grids by name, and the project's own bars: each reads the figure that it says, and grids measure what bars need."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from bench_records import TimedMethod, measured_once
from command import PROJECT

from edgeconv.bench import goals, record
from edgeconv.bench.ab import BY_CONVOLVE
from edgeconv.bench.candidates import ORACLE, method_candidates
from edgeconv.bench.goals import GOALS, Goal, outcomes
from edgeconv.bench.grid import GRIDS, CaseGrid, Draw, GridPart, TimingRules, cases, chosen_grid, parse_rules
from edgeconv.bench.peers import PEERS, peer_candidates
from edgeconv.bench.record import Train
from edgeconv.bench.synthetic import LARGEST_WEIGHTS, bench_channels, bench_filter, is_bench_filter
from edgeconv.core.choices import DEVICES
from edgeconv.core.noise import noise_pixels
from edgeconv.errors import UsageError
from edgeconv.export import tables
from edgeconv.methods import method_names
from edgeconv.options import BenchFiltering, GridAxes, Timing


@pytest.mark.parametrize("entry", GRIDS, ids=lambda entry: entry.name)
def test_named_grids_name_only_what_there_is(entry: CaseGrid) -> None:
    for part in entry.parts:
        for device in part.devices:
            method_candidates([word.replace(BY_CONVOLVE, "") for word in part.methods], device)
            peer_candidates(part.peers, device)


def test_cases_come_once_and_small_sizes_first() -> None:
    grid = CaseGrid("own", "", (GridPart(sizes=(64, 8), strides=(2, 1)), GridPart(sizes=(128, 8, 16), strides=(1,))))
    found = [(case.size, case.stride, part) for case, part in cases(grid)]
    first, second = grid.parts
    expected = [(8, 2, first), (8, 1, first), (64, 2, first), (64, 1, first), (16, 1, second), (128, 1, second)]
    assert found == expected


def test_words_take_the_place_of_a_grids_own() -> None:
    words = {"sizes": "128:512", "strides": "1,3", "filters": "sobel,scharr", "methods": "sliding"}
    part = chosen_grid(GridAxes("quick", **words)).parts[0]
    assert part.sizes == (128, 256, 512)
    assert (part.strides, part.filters, part.methods) == ((1, 3), ("sobel", "scharr"), ("sliding",))
    assert part.peers == chosen_grid(GridAxes("quick")).parts[0].peers
    part = chosen_grid(GridAxes("lab", devices="all", peers="none")).parts[0]
    assert (part.devices, part.peers, part.sizes) == (DEVICES, (), chosen_grid(GridAxes("lab")).parts[0].sizes)


def test_a_file_shares_what_stands_at_its_top_or_draws_its_cases(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('strides = [2]\n[[part]]\nsizes = "64:128"\n[[part]]\nsizes = [32]\nstrides = 1\n')
    read = chosen_grid(GridAxes(str(path)))
    assert (read.name, read.summary) == ("mine", "from mine.toml")
    assert [(part.sizes, part.strides) for part in read.parts] == [((64, 128), (2,)), ((32,), (1,))]
    path.write_text('seed = 3\ncases = 5\ndtypes = "all"\nfilters = ["all", "own-whole"]\n')
    read = chosen_grid(GridAxes(str(path), seed=4))
    assert read.draw == Draw(4, 5)
    assert read.parts[0].dtypes == chosen_grid(GridAxes("surface")).parts[0].dtypes


def test_the_file_in_the_documentation_is_read(tmp_path) -> None:
    page = (PROJECT / "docs" / "bench.md").read_text(encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(page.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    first, second = chosen_grid(GridAxes(str(path))).parts
    assert (first.sizes[-1], first.strides, second.peers) == (4096, (1, 2), ("all",))
    assert first.methods == second.methods == ("all", "im2col:gemm=cublas")


def test_method_words_carry_options() -> None:
    words = ["cudnn:find:math=tf32", "im2col:gemm=cublas", "sliding:threads=1", "textbook:block=8"]
    found = method_candidates(words, "cuda")
    assert [candidate.label for candidate in found] == words
    assert (found[0].options.cudnn_find, found[0].options.math) == (True, "tf32")
    assert (found[1].options.gemm, found[2].options.threads, found[3].options.block) == ("cublas", 1, 8)
    assert [candidate.label for candidate in method_candidates(words, "cpu")] == ["sliding:threads=1"]


def test_all_methods_are_those_that_run_here_without_the_oracle() -> None:
    found = method_candidates(["all", "opencv"], "cpu")
    labels = [candidate.label for candidate in found]
    assert labels == [name for name in method_names("cpu") if name != ORACLE]


@pytest.mark.parametrize(
    "word",
    ["nothing", "sliding:math=double", "textbook:block=7", "sliding:threads=0", "sliding:fast", "sliding:call=plan"],
)
def test_method_words_that_mean_nothing_are_refused(word: str) -> None:
    with pytest.raises(UsageError):
        method_candidates([word], "cpu")


@pytest.mark.parametrize(
    ("name", "channels", "shape", "of_picture"),
    [
        *((name, "mix", (1, 3, 3, 3, 3), 3) for name in LARGEST_WEIGHTS),
        *((name, channels, (1, 3, 3), 3) for name in LARGEST_WEIGHTS for channels in ("each", "luma")),
        ("bank-c1-k1", "mix", (1, 1, 1, 3, 3), 1),
        ("bank-c3-k16", "mix", (1, 16, 3, 3, 3), 3),
        ("grey-sobel", "mix", (2, 3, 3), 1),
        ("sobel", "mix", (2, 3, 3), 3),
    ],
)
def test_weights_suit_their_name_and_channels_and_are_always_the_same(name, channels, shape, of_picture) -> None:
    kernels = bench_filter(name, channels).kernels
    assert (kernels.shape, bench_channels(name), is_bench_filter(name)) == (shape, of_picture, True)
    assert (kernels == bench_filter(name, channels).kernels).all()
    assert abs(kernels).max() <= LARGEST_WEIGHTS.get(name, 2)
    assert name != "random-whole" or (kernels == kernels.round()).all()


@pytest.mark.parametrize(
    "name", ["bank-c2-k4", "bank-c3-k0", "bank-c3-k257", "bank-c3-k04", "grey-", "grey-grey-sobel"]
)
def test_names_that_are_no_banks_are_refused_with_how_they_are_named(name) -> None:
    with pytest.raises(UsageError, match="bank-c3-kK"):
        chosen_grid(GridAxes("quick", filters=name))


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("uint8", 0, 255), ("uint16", 0, 65535), ("float32", -1, 1), ("float64", -1, 1)]
)
def test_noise_fills_its_range(dtype, low, high) -> None:
    pixels = noise_pixels(64, 65, dtype)
    assert (pixels.shape, pixels.dtype) == ((64, 65, 3), dtype)
    assert pixels.min() <= low + (high - low) * 0.01
    assert pixels.max() >= high - (high - low) * 0.01


def test_rules_come_from_the_options() -> None:
    rules = parse_rules(Timing("warm", "5%", 0.5, 4, "full"), BenchFiltering())
    assert (rules.l2_states, rules.budget.noise_target, rules.budget.min_samples) == (("warm",), 0.05, 4)
    assert parse_rules(Timing(noise="0.5"), BenchFiltering()).budget.noise_target == 0.5
    assert rules.border == TimingRules().border == "zero", "which every peer can do"


# --- the project's own bars ------------------------------------------------------------------------------------------

CASE = "cpu float32 random mix"


@pytest.fixture
def result() -> record.BenchRecord:
    """A copy takes 1 ms, own 2 ms, other 4 ms, at 8 and 16."""
    return measured_once(TimedMethod("own", [2e-3]), TimedMethod("other", [4e-3]))


@pytest.mark.parametrize(
    ("goal", "found"),
    [
        (Goal("floor", 0.6, CASE, (8, 16, 32), by=("own", "other")), [(8, "own", 0.5, False), (16, "own", 0.5, False)]),
        (Goal("floor", 0.4, CASE, (8,), by=("own",)), [(8, "own", 0.5, True)]),
        (Goal("rivals", 0.5, CASE, (8,), by=("own",), against=("other", "absent")), [(8, "own", 0.5, True)]),
        (Goal("rivals", 1, CASE, (8,), by=("own",), against=("absent",)), []),
        (Goal("lead", 2.0, CASE, (8, 16), by=("own",), against=("other",)), [(None, "2 cases", 2.0, True)]),
        (Goal("call", 6e-6, CASE, (8,), by=("own",)), [(8, "own", 5e-6, True)]),
        (Goal("own bytes", 0.9, CASE, (8,), by=("own",)), [(8, "own", 1.0, False)]),
    ],
    ids=lambda value: value.measure if isinstance(value, Goal) else None,
)
def test_a_bar_reads_the_figure_that_it_names(monkeypatch, result, goal: Goal, found: list[tuple[Any, ...]]) -> None:
    for row in result.rows:
        row.launch = Train(1e-6, 5e-6)
        row.moved_bytes = (1 if row.kind == "copy" else 2) * row.counts.fewest_bytes
    monkeypatch.setattr(goals, "GOALS", (goal,))
    seen = [(each.size, each.candidate, pytest.approx(each.figure), each.met) for each in outcomes(result)]
    assert seen == found
    for row in result.rows:
        row.case.channels = "luma"
    assert outcomes(result) == [], "other work meets nothing"


def test_bars_as_a_table(monkeypatch, result) -> None:
    """Who did not take part is not named."""
    floor = Goal("floor", 0.6, CASE, sizes=(8, 32), by=("own", "other"), binds="noise")
    rivals = Goal("rivals", 0.5, CASE, sizes=(8,), by=("own",), against=("other", "absent"))
    monkeypatch.setattr(goals, "GOALS", (floor, rivals))
    shown = {row[4]: row for row in tables.goals(result).rows}
    assert shown["floor ≥ 0.6"][2:] == ("8", "1", "floor ≥ 0.6", "own", "0.5", "17 %", "noise")
    assert shown["rivals ≤ 0.5 (other)"][0] == "met"


@pytest.mark.parametrize(("grid", "device"), [("gpu", "cuda"), ("processor", "cpu")])
def test_the_named_grids_measure_every_bar(grid: str, device: str) -> None:
    chosen = chosen_grid(GridAxes(grid))
    measured = {
        (f"{device} {case.dtype} {case.filter} {case.channels}", case.size, case.stride) for case, _ in cases(chosen)
    }
    known = {entry.label for part in chosen.parts for entry in method_candidates(part.methods, device)}
    known |= {entry.name for entry in PEERS if entry.device == device}
    for goal in GOALS:
        if goal.on.startswith(device):
            assert set(product((goal.on,), goal.sizes, goal.strides)) <= measured, goal
            assert set(goal.against) <= known | {"cudnn"}, goal
