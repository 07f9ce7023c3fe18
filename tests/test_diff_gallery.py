"""The page of two folders: a gallery with thumbnails that opens its pairs in the viewer, by clicks and by keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from command import edgeconv
from picture_files import smooth_image

from edgeconv.io.encoding import write_image

LISTED = "[...document.querySelectorAll('.pair .name')].map((e) => e.textContent)"
OPEN = "document.getElementById('open-pair').innerText"


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The page of two folders with pairs of every status."""
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    picture = smooth_image(60, 90)
    for name, rows, step in (("little.png", 60, 1), ("much.png", 20, 9), ("same.png", 0, 0)):
        changed = picture.copy()
        changed[:rows] += step
        write_image(picture, old / name)
        write_image(changed, new / name)
    write_image(picture[:, ::-1], new / "added.png")
    write_image(picture[::-1], old / "gone.png")
    write_image(picture, old / "grown.png")
    write_image(np.repeat(picture, 2, axis=0), new / "grown.png")
    (old / "torn.png").write_bytes((old / "same.png").read_bytes()[:200])
    write_image(picture, new / "torn.png")
    assert edgeconv("diff", "old", "new", "--html", "page.html", cwd=tmp_path).code == 2
    browser.problems.clear()
    browser.open(tmp_path / "page.html")
    yield browser
    assert browser.problems == []


def test_pairs_are_listed_with_status_by_colour_sign_and_word(page: Browser) -> None:
    assert page.run(LISTED) == ["torn.png", "grown.png", "much.png", "little.png", "added.png", "gone.png"]
    words = page.run("[...document.querySelectorAll('.pair .status')].map((e) => e.innerText)")
    assert words == [
        "! unreadable", "⇔ other size or type", "≠ changed", "≠ changed", "+ new", "− missing"
    ]  # fmt: skip
    colours = page.run("[...document.querySelectorAll('.pair')].map((e) => getComputedStyle(e).borderLeftColor)")
    assert len(set(colours)) == 4


@pytest.mark.slow
def test_thumbnails_come_into_view_and_show_the_pictures(page: Browser) -> None:
    images = "[...document.querySelectorAll('.pair:nth-child(1) img')]"
    page.run("document.getElementById('pairs').scrollTo(0, 10000)")
    page.wait_until(f"{images}.length === 10 && {images}.every((e) => e.complete && e.naturalWidth === 90)")
    kinds = page.run("[...document.querySelectorAll('li:nth-child(3) img')].map((e) => e.alt)")
    assert kinds == ["reference", "new", "difference"]


@pytest.mark.slow
def test_enter_opens_a_changed_pair_and_keys_go_on_and_back(page: Browser) -> None:
    assert page.run(OPEN) == "much.png"  # what has changed most
    page.run("document.querySelector('li:nth-child(4) .pair').focus()")
    page.press("Enter")
    page.drawn()
    assert page.run(OPEN) == "little.png"
    assert page.run("document.activeElement.id") == "stage"
    page.key("j")  # round to the first
    assert page.run(OPEN) == "much.png"
    figures = "[...document.querySelectorAll('section.set')].filter((e) => !e.hidden).map((e) => e.innerText)"
    assert [text.partition("\n")[0] for text in page.run(figures)] == ["much.png"]
    page.key("Escape")
    assert page.run("document.activeElement.querySelector('.name').innerText") == "much.png"


def test_what_cannot_be_compared_is_shown_with_the_reason_and_not_opened(page: Browser) -> None:
    shown = "document.querySelector('li:nth-child({}) .pair')"
    grown = shown.format(2)
    assert "90×120×3" in page.run(f"{grown}.querySelector('.detail').textContent")
    assert page.run(f"[...{grown}.querySelectorAll('img')].map((e) => e.alt)") == ["reference", "new"]
    disabled = page.run(f"[{','.join(map(shown.format, range(1, 7)))}].map((e) => e.disabled)")
    assert disabled == [True, True, False, False, True, True]
