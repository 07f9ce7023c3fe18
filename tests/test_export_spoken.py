"""What a person sees while and after a bench: a line for each case, and a short summary."""

from __future__ import annotations

import copy
from itertools import product

import pytest
from bench_records import FEW, TimedMethod, WrongMethod, changed, measured, measured_once, use

from edgeconv.bench import candidates, runner
from edgeconv.bench.grid import CaseGrid, GridPart
from edgeconv.bench.intervals import Ratio
from edgeconv.bench.summary import is_reduced
from edgeconv.core.exactness import HALF, TWOFOLD_HALF, is_narrow
from edgeconv.export.spoken import MOST_LINES, case_line, lead_lines, lead_text, summary_lines
from edgeconv.export.tables import fastest


class Rival(TimedMethod):
    kind = "peer"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (Ratio(7.39, 7.3, 7.5, 9), "7.39 × [7.3, 7.5] faster than torch"),
        (Ratio(0.5, 0.49, 0.51, 9), "2 × [1.961, 2.041] slower than torch"),
        (Ratio(1.01, 0.98, 1.04, 9), "as fast as torch (1.01 [0.98, 1.04])"),
        (
            Ratio(203.4, 3.04, 13612.9, 7),
            "no verdict against torch (interval [3.04, 13,613]: a longer --time-limit takes more)",
        ),
        (Ratio(0.5, 0.49, 0.51, 4), "no verdict against torch (4 samples: a longer --time-limit takes more)"),
    ],
)
def test_a_lead_has_an_interval_or_is_none(ratio: Ratio, text: str) -> None:
    assert lead_text(ratio, "torch") == text


def test_no_lead_is_told_of_few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of a case, nor of all sizes together, nor in the table."""
    record = measured(monkeypatch, TimedMethod("quick", [2e-3]), Rival("rival", [8e-3]))
    for row in record.rows:
        if row.case.size == 16 and row.kind == "peer":
            changed(row.lead_series, samples_seconds=[8e-3] * 4, n=4, p10_seconds=None, p90_seconds=None)
    told = [case_line([row for row in record.rows if row.case.size == size]) for size in (8, 16)]
    leads = [*told, *lead_lines(record), summary_lines(record)[1], *(row[-1] for row in fastest(record).rows)]
    assert ["no verdict" in lead for lead in leads] == [False, True, True, True, False, True]
    assert ["faster" in lead for lead in leads] == [True, False, False, False, False, False]


def test_each_case_is_told_as_soon_as_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor takes 1 ms here; the wrong one is named, and has no time."""
    use(monkeypatch, TimedMethod("slow", [3e-3]), TimedMethod("quick", [2e-3]), Rival("rival", [8e-3]),
        WrongMethod("hasty", [1e-6]))  # fmt: skip
    grid = CaseGrid("test", "made up", (GridPart((8, 16), (1,), devices=("cpu",)),))
    order: list[str] = []
    runner.run(
        runner.BenchRun(grid, FEW),
        lambda done, total, note: order.append(note),
        lambda rows: order.append(case_line(rows)),
    )
    told = "quick 2 ms, 4 × [4, 4] faster than rival, 50 % of the floor (hasty wrong)"
    assert order == [f"{size} s1 float32 random mix on cpu{end}" for size in (8, 16) for end in ("", f": {told}")]


def test_a_case_without_a_peer_or_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = measured(monkeypatch, TimedMethod("quick", [2e-3]))
    assert case_line(alone.rows[:2]) == "8 s1 float32 random mix on cpu: quick 2 ms, 50 % of the floor"
    wrong = measured(monkeypatch, WrongMethod("hasty", [1e-6]))
    assert case_line(wrong.rows[:2]) == "8 s1 float32 random mix on cpu: no method was timed (hasty wrong)"


def test_a_summary_has_a_line_for_each_kind_of_case(monkeypatch: pytest.MonkeyPatch) -> None:
    record = measured(monkeypatch, TimedMethod("quick", [2e-3]), Rival("rival", [8e-3]))
    head, line = summary_lines(record)
    assert head.startswith("6 rows timed in ")
    assert line == (
        "CPU, float32, random, mix, stride 1: quick, 4 × [4, 4] faster than the fastest peer "
        "(geometric mean of 2 sizes), 50 % of the floor"
    )
    assert lead_lines(record) == [
        "CPU, float32, random, mix, stride 1, the fastest method: 4 × [4, 4] faster than the fastest peer "
        "(geometric mean of 2 sizes)"
    ]
    record.complete = False
    assert summary_lines(record)[0].endswith(", not complete: --resume goes on")


def test_a_summary_has_25_lines_at_most() -> None:
    for strides, lines, last in ((24, 25, "stride 24: quick"), (30, 25, "and 7 more kinds of cases")):
        record = measured_once(TimedMethod("quick", [2e-3]))
        rows, record.rows = record.rows, []
        for stride, row in product(range(1, strides + 1), rows):
            record.rows.append(copy.deepcopy(row))
            record.rows[-1].case.stride = stride
        found = summary_lines(record)
        assert len(found) == lines <= MOST_LINES
        assert last in found[-1]


def test_a_method_that_states_a_narrow_arithmetic_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is right by its own bounds, and its time stands in the tables, but it is set against nobody."""
    assert (is_narrow(HALF), is_narrow(TWOFOLD_HALF)) == (True, False)
    monkeypatch.setattr(candidates, "is_narrow", lambda arithmetic: True)
    row = measured(monkeypatch, TimedMethod("narrow", [2e-3])).rows[1]
    assert (row.status, is_reduced(row)) == ("measured", True)
