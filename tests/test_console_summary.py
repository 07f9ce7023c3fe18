"""What a person sees while and after a bench: a line for each case, and a table at the end."""

from __future__ import annotations

import copy
from itertools import product

import pytest
from bench_records import FEW, Peer, TimedMethod, WrongMethod, changed, measured, use

from edgeconv.bench import candidates, runner
from edgeconv.bench.grid import CaseGrid, GridPart
from edgeconv.bench.intervals import Ratio
from edgeconv.bench.summary import competes, groups, winners
from edgeconv.core.exactness import HALF, TWOFOLD_HALF, is_narrow
from edgeconv.export.console_summary import MOST_ROWS, case_line, lead_text, summary_lines, summary_tables
from edgeconv.export.rows import every_row
from edgeconv.export.tables import fastest


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (Ratio(7.39, 7.3, 7.5, 9), "7.39 × [7.3, 7.5] faster than torch"),
        (Ratio(0.5, 0.49, 0.51, 9), "2 × [1.961, 2.041] slower than torch"),
        (Ratio(1.01, 0.98, 1.04, 9), "as fast as torch (1.01 [0.98, 1.04])"),
        (Ratio(203.4, 3.04, 13612.9, 7), "no verdict against torch (interval [3.04, 13,613])"),
        (Ratio(0.5, 0.49, 0.51, 4), "no verdict against torch (4 samples)"),
    ],
)
def test_a_lead_has_an_interval_or_is_none(ratio: Ratio, text: str) -> None:
    assert lead_text(ratio, "torch") == text


def test_no_lead_is_told_of_few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of a case, nor in the table."""
    record = measured(monkeypatch, TimedMethod("quick", [2e-3]), Peer("rival", [8e-3]))
    for row in record.rows:
        if row.case.size == 16 and row.kind == "peer":
            changed(row.lead_series, samples_seconds=[8e-3] * 4, n=4, p10_seconds=None, p90_seconds=None)
    told = [case_line([row for row in record.rows if row.case.size == size]) for size in (8, 16)]
    leads = [*told, *(row[0] for row in fastest(record).rows)]
    assert ["no verdict" in lead for lead in leads] == [False, True, False, True]
    assert ["faster" in lead for lead in leads] == [True, False, True, False]
    assert summary_lines(record)[1] == "Where there is no verdict, a longer --time-limit takes more samples."


def test_a_call_from_python_is_never_the_fastest_method(monkeypatch: pytest.MonkeyPatch) -> None:
    record = measured(monkeypatch, TimedMethod("quick", [2e-3]), TimedMethod("quick:call=plan", [1e-3]))
    assert [winner.method.candidate for group in groups(record) for winner in winners(group)] == ["quick", "quick"]
    assert case_line(record.rows[:3]).startswith("8 s1 float32 random mix on cpu: quick 2 ms")
    assert {row[2] for row in every_row(record).rows if row[0] == "fastest"} == {"quick"}


@pytest.mark.parametrize("what", ["border is replicate, not zero", "output is raw, not abs"])
def test_a_peer_that_does_something_else_is_set_against_nobody(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    record = measured(monkeypatch, TimedMethod("quick", [2e-3]), Peer("rival", [1e-3]))
    assert {winner.peer.candidate for group in groups(record) for winner in winners(group)} == {"rival"}
    for row in record.rows:
        row.differs = f"its {what}" if row.kind == "peer" else None
    assert {winner.peer for group in groups(record) for winner in winners(group)} == {None}


def test_each_case_is_told_as_soon_as_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor takes 1 ms here; the wrong one is named, and has no time."""
    use(monkeypatch, TimedMethod("slow", [3e-3]), TimedMethod("quick", [2e-3]), Peer("rival", [8e-3]),
        WrongMethod("hasty", [1e-6]))  # fmt: skip
    grid = CaseGrid("test", "made up", (GridPart((8, 16), (1,), devices=("cpu",)),))
    order: list[str] = []
    runner.run(
        grid,
        FEW,
        progress=lambda done, total, note: order.append(note),
        told=lambda rows: order.append(case_line(rows)),
    )
    told = "quick 2 ms, 4 × [4, 4] faster than rival, 50 % of copy speed (hasty wrong)"
    assert order == [f"{size} s1 float32 random mix on cpu{end}" for size in (8, 16) for end in ("", f": {told}")]


def test_a_case_without_a_peer_or_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = measured(monkeypatch, TimedMethod("quick", [2e-3]))
    assert case_line(alone.rows[:2]) == "8 s1 float32 random mix on cpu: quick 2 ms, 50 % of copy speed"
    wrong = measured(monkeypatch, WrongMethod("hasty", [1e-6]))
    assert case_line(wrong.rows[:2]) == "8 s1 float32 random mix on cpu: no method was timed (hasty wrong)"


def test_a_bench_ends_with_a_table_of_who_is_how_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    record = measured(monkeypatch, TimedMethod("quick", [2e-3]), WrongMethod("hasty", [1e-6]), Peer("rival", [8e-3]))
    (table,) = summary_tables(record)
    assert table.header[:6] == ("verdict", "× fastest", "who", "median", "of copy speed", "size")
    of_case = (
        ("limit", "0.50 ×", "copy", "1 ms ± 0", "100 %"),
        ("fastest", "1.00 ×", "quick", "2 ms ± 0", "50 %"),
        ("right", "4.00 ×", "rival", "8 ms ± 0", "12 %"),
        ("wrong", "–", "hasty", "–", "–"),
    )
    assert [row[:6] for row in table.rows] == [(*row, size) for size in ("8", "16") for row in of_case]
    assert summary_lines(record)[0].startswith("6 rows timed in ")
    record.complete = False
    assert summary_lines(record)[0].endswith(", not complete: --resume goes on")
    changed(record.rows[1].lead_series, p10_seconds=1.5e-3, p90_seconds=2.5e-3)
    assert summary_tables(record)[0].rows[1][3] == "2 ms ± 0.5"


def test_the_table_at_the_end_has_24_lines_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many rows it is that of the fastest method of each case beside the fastest peer."""
    record = measured(monkeypatch, TimedMethod("quick", [2e-3]), TimedMethod("slow", [9e-3]), Peer("rival", [8e-3]))
    rows, record.rows = record.rows, []
    for stride, row in product(range(1, 14), rows):
        record.rows.append(copy.deepcopy(row))
        record.rows[-1].case.stride = stride
    (table,) = summary_tables(record)
    assert len(table.rows) == MOST_ROWS
    assert {(row[0], row[4], row[6]) for row in table.rows} == {("faster", "quick", "rival")}
    assert table.title.endswith(": the first 24 of 26")


def test_a_method_that_states_a_narrow_arithmetic_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is right by its own bounds, and its time stands in the tables, but it is set against nobody."""
    assert (is_narrow(HALF), is_narrow(TWOFOLD_HALF)) == (True, False)
    monkeypatch.setattr(candidates, "is_narrow", lambda arithmetic: True)
    row = measured(monkeypatch, TimedMethod("narrow", [2e-3])).rows[1]
    assert (row.status, competes(row)) == ("measured", False)
