"""What a person sees while and after a bench: a line for each case, and a short summary."""

from __future__ import annotations

import copy
from itertools import product

import pytest
from bench_records import FEW, TimedMethod, WrongMethod, measured, measured_once, use

from edgeconv.bench import candidates, runner
from edgeconv.bench.grid import CaseGrid, GridPart
from edgeconv.bench.intervals import Ratio
from edgeconv.bench.summary import is_reduced
from edgeconv.core.exactness import HALF, TWOFOLD_HALF
from edgeconv.export.spoken import MOST_LINES, case_line, faster_text, lead_lines, summary_lines


class Rival(TimedMethod):
    kind = "peer"


@pytest.mark.parametrize(
    ("ratio", "interval", "text"),
    [
        (7.39, None, "7.4 × faster"),
        (6.0, None, "6.0 × faster"),
        (16.04, None, "16 × faster"),
        (1.0, None, "1.0 × faster"),
        (0.8, None, "1.2 × slower"),
        (2.0, Ratio(2.0, 1.9, 2.1), "2.00 × [1.90, 2.10] faster"),
        (0.5, Ratio(0.5, 0.4, 0.8), "2.00 × [1.25, 2.50] slower"),
        (0.5, Ratio(0.5, 0.0, float("inf")), "2.00 × (few samples) slower"),
    ],
)
def test_a_ratio_in_words(ratio: float, interval: Ratio | None, text: str) -> None:
    assert faster_text(ratio, interval) == text


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
    told = "quick 2 ms, 4.00 × [4.00, 4.00] faster than rival, 50% of the floor (hasty wrong)"
    assert order == [f"{size} s1 float32 random mix on cpu{end}" for size in (8, 16) for end in ("", f": {told}")]


def test_a_case_without_a_peer_or_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = measured(monkeypatch, TimedMethod("quick", [2e-3]))
    assert case_line(alone.rows[:2]) == "8 s1 float32 random mix on cpu: quick 2 ms, 50% of the floor"
    wrong = measured(monkeypatch, WrongMethod("hasty", [1e-6]))
    assert case_line(wrong.rows[:2]) == "8 s1 float32 random mix on cpu: no method was timed (hasty wrong)"


def test_a_summary_has_a_line_for_each_kind_of_case(monkeypatch: pytest.MonkeyPatch) -> None:
    record = measured(monkeypatch, TimedMethod("quick", [2e-3]), Rival("rival", [8e-3, 8e-3, 8e-3, 8e-3, 8e-3, 2e-3]))
    head, line = summary_lines(record)
    assert head.startswith("6 rows timed in ")
    assert line == (
        "CPU, float32, random, mix, stride 1: quick, 4.0 × faster than the fastest peer (geometric mean of 2 sizes), "
        "50% of the floor"
    )
    assert lead_lines(record) == [
        "CPU, float32, random, mix, stride 1: the fastest method is 4.0 × faster than the fastest peer "
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


@pytest.mark.parametrize(("arithmetic", "reduced"), [(HALF, True), (TWOFOLD_HALF, False)])
def test_a_method_that_states_a_narrow_arithmetic_does_not_lead(monkeypatch, arithmetic, reduced: bool) -> None:
    """It is right by its own bounds, and its time stands in the tables, but it is set against nobody."""
    require = candidates.require

    def narrow(name, device, options):
        method = require(name, device, options)
        prepare = method.prepare
        return type("Narrow", (), {"prepare": lambda self, *words: replace_arithmetic(prepare(*words))})()

    def replace_arithmetic(plan):
        plan.arithmetic = arithmetic
        return plan

    monkeypatch.setattr(candidates, "require", narrow)
    row = measured(monkeypatch, TimedMethod("narrow", [2e-3])).rows[1]
    assert row.status == "measured"
    assert is_reduced(row) is reduced
    assert (row.differs == "half precision or less: tensor cores, half operands, float32 sums") is reduced
