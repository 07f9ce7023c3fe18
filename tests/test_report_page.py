"""The page of `edgeconv report` in a real browser: a summary first, tables that sort and filter, all by keyboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Browser
from command import PROJECT, edgeconv

from edgeconv.bench.goals import outcomes
from edgeconv.export.schemas import read as read_record

RECORD = PROJECT / "docs" / "results" / "bench" / "h200" / "gpu_earlier.json.xz"
CELLS = "[...document.querySelectorAll('#r1-1 tbody tr')].filter((r) => !r.hidden).map((r) => r.cells[{}].innerText)"


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The page of a committed record."""
    folder = tmp_path_factory.mktemp("report")
    assert edgeconv("report", RECORD, "--html", "page.html", cwd=folder).code == 0
    browser.problems.clear()
    browser.requests.clear()
    browser.open(folder / "page.html")
    yield browser
    assert browser.problems == []
    asked = [address for address in browser.requests if not address.startswith("data:")]
    assert asked == [(folder / "page.html").as_uri()]


def test_a_summary_of_one_screen_comes_first_and_missed_goals_with_their_reasons(page: Browser) -> None:
    found = outcomes(read_record(RECORD))
    missed = [outcome for outcome in found if not outcome.met]
    text = page.run("document.querySelector('main .summary').innerText")
    assert f"{len(found)} goals: {len(missed)} MISSED, {len(found) - len(missed)} met" in text
    top, bottom = page.run(
        "(({top, bottom}) => [top, bottom])(document.querySelector('.summary').getBoundingClientRect())"
    )
    assert top < 300
    assert bottom - top < 900
    goals = page.run("[...document.querySelectorAll('#r1-2 tbody tr')].map((row) => row.innerText)")
    assert len(goals) == len(found)
    for outcome, row in zip(missed, goals, strict=False):
        assert row.startswith("MISSED")
        assert outcome.goal.binds in row


def test_a_page_has_six_plots_four_tables_and_nine_columns_at_most(page: Browser) -> None:
    """And a side of less than 8,000 pixels, whatever the record; more columns come when asked for."""
    assert page.run("document.querySelectorAll('.plots svg').length") == 6
    assert page.run("document.querySelectorAll('table').length") == 4
    assert page.run("document.documentElement.scrollHeight") < 8000
    page.run("document.querySelector('details').open = true")
    shown = "[...document.querySelectorAll('#r1-3 thead th')].filter((e) => e.checkVisibility()).length"
    assert page.run(shown) == 9
    page.click("#r1-3 .all input")
    assert page.run(shown) > 12


def test_a_heading_sorts_by_the_keyboard(page: Browser) -> None:
    page.run("document.querySelector('#r1-1 th:nth-child(6) button').focus()")
    assert page.run("document.activeElement.innerText").startswith("median")
    seconds = "((t) => parseFloat(t.replace(',', '')) * {'µs': 1e-6, ms: 1e-3, s: 1}[t.split(' ')[1]])"
    for sign in (1, -1):
        page.press("Enter")
        found = page.run(f"{CELLS.format(5)}.map({seconds})")
        assert found == sorted(found, reverse=sign < 0)
        assert len(found) > 12
    assert page.run("document.querySelector('#r1-1 [aria-sort]').ariaSort") == "descending"


def test_a_long_table_is_filtered_by_what_is_typed(page: Browser) -> None:
    everything = page.run(CELLS.format(2))
    page.run("document.querySelector('#r1-1 input').focus()")
    for letter in "uint8":
        page.key(letter)
    left = page.run(CELLS.format(2))
    assert 0 < len(left) < len(everything)
    assert all("uint8" in cell for cell in left)
    for _ in "uint8":
        page.press("Backspace")
    assert page.run(f"{CELLS.format(2)}.length") == len(everything)
