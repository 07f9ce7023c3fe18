"""The page of two folders: a gallery with thumbnails that opens its pairs in the viewer, by clicks and by keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from command import edgeconv
from picture_files import smooth_image

from edgeconv.difference.gallery import GalleryEntry, alone
from edgeconv.difference.inputs import ArrayInput
from edgeconv.difference.page import Page
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import decode_image

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
    assert page.run(LISTED) == ["torn.png", "grown.png", "added.png", "gone.png", "much.png", "little.png"]
    words = page.run("[...document.querySelectorAll('.pair .status')].map((e) => e.innerText)")
    assert words == [
        "! cannot be read", "⇔ other size or type", "+ new", "− missing", "≠ changed", "≠ changed"
    ]  # fmt: skip
    colours = page.run("[...document.querySelectorAll('.pair')].map((e) => getComputedStyle(e).borderLeftColor)")
    assert len(set(colours)) == 4
    assert page.run("document.getElementById('listed').value") == "6 of 7"


@pytest.mark.slow
def test_thumbnails_come_into_view_and_show_the_pictures(page: Browser) -> None:
    images = "[...document.querySelectorAll('.pair:nth-child(1) img')]"
    page.run("document.getElementById('pairs').scrollTo(0, 10000)")
    page.wait_until(f"{images}.length === 10 && {images}.every((e) => e.complete && e.naturalWidth === 90)")
    kinds = page.run("[...document.querySelectorAll('li:nth-child(5) img')].map((e) => e.alt)")
    assert kinds == ["reference", "new", "difference"]


@pytest.mark.slow
def test_filters_search_and_order(page: Browser) -> None:
    page.click("#statuses [value=new]")
    assert "added.png" not in page.run(LISTED)
    page.click("#statuses [value=same]")
    assert "same.png" in page.run(LISTED)
    page.run("document.getElementById('search').focus()")
    for letter in "LITT":
        page.key(letter)
    assert page.run(LISTED) == ["little.png"]
    for _ in "LITT":
        page.press("Backspace")
    choose = "s.value = 'name'; s.dispatchEvent(new Event('change'))"
    page.run(f"(() => {{ const s = document.getElementById('sort'); {choose}; }})()")
    assert page.run(LISTED) == ["torn.png", "grown.png", "little.png", "much.png", "gone.png", "same.png"]


@pytest.mark.slow
def test_enter_opens_and_keys_go_on_and_back(page: Browser) -> None:
    page.run("document.querySelector('li:nth-child(5) .pair').focus()")
    page.press("Enter")
    page.drawn()
    assert page.run(OPEN) == "much.png"
    page.key("j")
    assert page.run(OPEN) == "little.png"
    page.key("j")  # round to the first that can be looked at
    assert page.run(OPEN).startswith("grown.png: ")
    assert "90×120×3" in page.run("document.getElementById('reason').innerText")
    page.key("k")
    page.key("k")
    assert page.run(OPEN) == "much.png"
    figures = "[...document.querySelectorAll('section.set')].filter((e) => !e.hidden).map((e) => e.innerText)"
    assert [text.partition("\n")[0] for text in page.run(figures)] == ["much.png"]
    assert not page.run("document.getElementById('modes-label').hidden")
    page.key("Escape")
    assert page.run("document.activeElement.querySelector('.name').innerText") == "much.png"


@pytest.mark.slow
@pytest.mark.parametrize(("place", "name", "source"), [(3, "added.png", "new"), (4, "gone.png", "old")])
def test_new_and_missing_pictures_can_be_looked_at(
    page: Browser, tmp_path: Path, place: int, name: str, source: str
) -> None:
    page.click(f"li:nth-child({place}) .pair")
    page.drawn()
    assert page.run(OPEN) == name == page.run("document.querySelector('.pair[aria-current] .name').textContent")
    assert page.run("document.activeElement.id") == "stage"
    assert page.run("document.getElementById('modes-label').hidden")
    pixel = decode_image((tmp_path / source / name).read_bytes(), name).pixels[30, 45]
    page.wait_until("document.getElementById('values').dataset.pixel === '45,30'")
    page.wait_until(f"document.querySelector('#values tbody').innerText.includes({chr(9).join(map(str, pixel))!r})")
    assert page.run("document.querySelectorAll('#values tbody tr').length") == 1


@pytest.mark.slow
def test_of_five_thousand_pairs_the_thumbnails_in_view_are_loaded(browser: Browser, tmp_path: Path) -> None:
    picture = smooth_image(40, 60)
    made = Page("many", 2**28)
    assert made.add("one", ArrayInput("one", picture))
    small = alone(0, picture)
    for number in range(5000):
        made.list_pair(GalleryEntry(f"{number:04}.png", "new", "", number, (0,), small))
    (tmp_path / "page.html").write_bytes(made.encode("many", False))
    browser.open(tmp_path / "page.html")
    loaded = "document.querySelectorAll('.pair img[src]').length"
    assert browser.run("document.querySelectorAll('.pair').length") == 5000
    before = browser.run(loaded)
    assert 0 < before <= 120
    browser.run("document.getElementById('pairs').scrollTo(0, 1e9)")
    browser.wait_until(f"{loaded} > {before}")
    browser.run("document.getElementById('search').focus()")
    for letter in "0007":
        browser.key(letter)
    assert browser.run(LISTED) == ["0007.png"]
