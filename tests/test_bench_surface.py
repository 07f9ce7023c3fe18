"""The grid that is drawn at random, and what a record of it says: numbers by hand."""

from __future__ import annotations

import dataclasses
import json

import jsonschema
import numpy as np
import pytest
from bench_records import ROOF, Peer, TimedMethod, use
from command import PROJECT, edgeconv

from edgeconv.bench import runner, surface
from edgeconv.bench.grid import CaseGrid, Draw, TimingRules, chosen_grid
from edgeconv.bench.measure import request_for
from edgeconv.bench.record import BenchRecord
from edgeconv.bench.synthetic import bench_channels
from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.core.timing import Budget
from edgeconv.export.console_summary import summary_tables as tables_of
from edgeconv.export.schemas import read, schema
from edgeconv.options import GridAxes


def drawn_grid(seed: int, number: int, **part: object) -> CaseGrid:
    grid = chosen_grid(GridAxes("surface"))
    return dataclasses.replace(grid, draw=Draw(seed, number), parts=(dataclasses.replace(grid.parts[0], **part),))


def test_the_seed_of_a_committed_record_draws_its_cases_and_another_seed_others() -> None:
    record = read(PROJECT / "docs" / "results" / "bench" / "two-core-xeon-avx512" / "surface.json.xz")
    drawn = {case: case.drawn for case in surface.drawn_cases(record.grid)}
    for row in record.rows:
        found = drawn[row.case.named]
        assert (row.case.height, row.case.width) == (found.height, found.width)
        assert (row.case.border, row.case.output_mode) == (found.border, found.output_mode)
    assert set(surface.drawn_cases(drawn_grid(8, 50))).isdisjoint(drawn)


def test_the_whole_surface_is_drawn_from() -> None:
    """Of 600 cases; and each of them is a problem that can be stated."""
    cases = surface.drawn_cases(drawn_grid(1, 600))
    drawn = [case.drawn for case in cases]
    assert {case.dtype for case in cases} == set(INPUT_DTYPES)
    assert {case.channels for case in cases} == set(CHANNELS)
    assert {case.stride for case in cases} == {1, 2, 3, 4, 5, 6}
    assert {each.border for each in drawn} == set(BORDERS)
    assert {each.output_mode for each in drawn} == {"abs", "clip", "raw"}
    assert {each.padding for each in drawn} == {"same", *surface.OTHER_PADDINGS}
    assert all(any(part in case.filter for case in cases) for part in ("grey-", "/"))
    assert {each.width % 16 for each in drawn} == set(range(16))
    large = [each for each in drawn if each.height * each.width >= surface.MEGAPIXEL]
    assert 0.7 < len(large) / len(drawn) < 0.85
    assert min(min(each.height, each.width) for each in drawn) < 16
    for case in cases:
        shape = (case.drawn.height, case.drawn.width, bench_channels(case.filter))
        problem = request_for(case, case.drawn).problem(shape, np.dtype(case.dtype))
        assert problem.input_bytes + problem.output_bytes <= 2 * surface.MOST_BYTES
        assert surface.operation_bytes_per_pixel(problem) >= 0


def test_axes_of_the_command_are_what_is_drawn_from() -> None:
    axes = GridAxes(grid="surface", dtypes="uint8", filters="sobel", strides="2", sizes="5,9", seed=3, cases=4)
    cases = [case for case, _ in surface.cases_of(chosen_grid(axes))]
    assert len(cases) == 4
    assert {(case.dtype, case.filter.removeprefix("grey-"), case.stride) for case in cases} == {("uint8", "sobel", 2)}
    assert all(5 <= case.size <= 9 for case in cases)


def made_up(monkeypatch: pytest.MonkeyPatch, seconds: float, peer_seconds: float) -> BenchRecord:
    """Five small uint8 laplacians; the copy takes a millisecond, the roof is 10^9 FLOPs a second."""
    use(monkeypatch, TimedMethod("own", [seconds]), Peer("peer", [peer_seconds]))
    grid = drawn_grid(
        3, 5, sizes=(20, 60), dtypes=("uint8",), filters=("laplacian8",), channels=("each",), strides=(1,),
        devices=("cpu",), peers=(),
    )  # fmt: skip
    rules = TimingRules(budget=Budget(min_samples=5, max_samples=5, time_limit_seconds=1000.0))
    return runner.run(grid, rules)


def test_the_share_is_that_of_the_larger_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    record = made_up(monkeypatch, seconds=2e-3, peer_seconds=5e-3)
    found = surface.shares(record, "cpu")
    assert len(found) == 5
    for share in found:
        case = share.row.case
        arithmetic = case.output_height * case.output_width * 3 * 9 * 2 / (ROOF.fma_flops_per_second * 2)
        assert share.limit_seconds == pytest.approx(max(1e-3, arithmetic))  # nine taps in 16 bits
        assert share.share == pytest.approx(share.limit_seconds / 2e-3)
        assert share.lead == pytest.approx(2.5)
    (everything,) = tables_of(record)[0].rows
    assert (everything[:2], everything[-3:]) == (("cpu", "5"), ("2.5 [2.5, 2.5]", "5", "0"))
    low, quarter, half = map(float, everything[2:5])
    assert low <= quarter <= half
    record = made_up(monkeypatch, seconds=2e-3, peer_seconds=1e-3)
    assert tables_of(record)[0].rows[0][-1] == "5", "the peer was faster"


def test_the_command_draws_checks_measures_and_says_the_distribution(monkeypatch, tmp_path) -> None:
    use(monkeypatch, TimedMethod("own", [2e-3]))
    words = ("--grid", "surface", "--seed", "5", "--cases", "4", "--sizes", "8,40", "--peers", "none")
    words += ("--devices", "cpu", "--time-limit", "0.002", "--samples", "5", "--formats", "json,html,markdown")
    done = edgeconv("bench", *words, cwd=tmp_path)
    assert done.code == 0, done.err
    shown = (done.text, *((tmp_path / "results" / f"bench.{end}").read_text("utf-8") for end in ("md", "html")))
    assert all("Share of the limit, 4 cases drawn from seed 5" in text for text in shown)
    record = json.loads((tmp_path / "results" / "bench.json").read_text(encoding="utf-8"))
    jsonschema.validate(record, schema("bench"))
    assert record["grid"]["draw"] == {"seed": 5, "cases": 4}
    assert {(row["status"], row["reason"]) for row in record["rows"]} == {("measured", None)}
    again = edgeconv("bench", *words, "--resume", cwd=tmp_path)
    assert again.code == 0, again.err
