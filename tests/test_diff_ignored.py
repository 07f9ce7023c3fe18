"""Ignored regions: what is left out, the file of `--ignore`, the page that draws it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from command import edgeconv
from diff_page import Shown
from jsonschema import Draft202012Validator
from picture_files import smooth_image

from edgeconv.export.schemas import schema
from edgeconv.io.encoding import write_image

HEIGHT, WIDTH = 200, 320
ODD = "two \u202e\x1b<.png"
"""A name that a page and a terminal escape."""
SPOTS = ((40, 60), (150, 250))
"""y, x of two squares of 10×10 pixels that differ."""


def pair() -> tuple[np.ndarray, np.ndarray]:
    reference = smooth_image(HEIGHT, WIDTH)
    other = reference.copy()
    for y, x in SPOTS:
        other[y : y + 10, x : x + 10] += 9
    return reference, other


def region(y: int, x: int, **more: str) -> dict[str, object]:
    return {"left": x, "top": y, "right": x + 9, "bottom": y + 9, **more}


def write_regions(path: Path, *regions: dict[str, object]) -> None:
    path.write_text(json.dumps({"schema_version": 1, "kind": "ignored_regions", "regions": regions}), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two pictures that differ in two squares, and the same in two folders."""
    for name, pixels in zip(("old", "new"), pair(), strict=True):
        (tmp_path / name).mkdir()
        for place in (tmp_path / name / "one.png", tmp_path / name / ODD, tmp_path / f"{name}.png"):
            write_image(pixels, place)
    return tmp_path


def test_a_file_of_regions_decides_about_pictures_and_folders(folder: Path) -> None:
    one, two = (region(*spot) for spot in SPOTS)
    for regions, code, differing in (((one,), 1, 300), ((one, two), 0, 0)):
        write_regions(folder / "ignored.json", *regions)
        done = edgeconv("diff", "old.png", "new.png", "--ignore", "ignored.json", "--json", cwd=folder)
        found = json.loads(done.text)["comparisons"][0]
        assert (done.code, found["judged"]["differing_samples"]) == (code, differing)
        assert (found["ignored_samples"], found["ignored_differing_samples"]) == (300 * len(regions), 600 - differing)
    done = edgeconv("diff", "old.png", "new.png", "--ignore", "60,40,10,10;250,150,10,10", cwd=folder)
    assert (done.code, "(allowed: 2 ignored regions)" in done.text) == (0, True)
    write_regions(folder / "ignored.json", one, region(*SPOTS[1], picture=ODD))
    done = edgeconv("diff", "old", "new", "--ignore", "ignored.json", cwd=folder)
    assert done.code == 1
    assert done.text.splitlines()[0].split()[:2] == ["changed", "one.png"]
    assert done.text.splitlines()[-1].endswith("  1 same; 1 changed")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("1,2,0,4", "--ignore '1,2,0,4' is neither a file nor regions"),
        ("[", "'ignored.json' is not JSON"),
        ("{}", "'ignored.json' is not a record of edgeconv ignored_regions"),
        ('{"kind": "ignored_regions", "schema_version": 1, "regions": [{"left": -1}]}', "is damaged"),
        ('{"kind": "ignored_regions", "schema_version": 2, "regions": []}', "schema version 2"),
        (json.dumps({"kind": "ignored_regions", "schema_version": 1, "regions": [region(195, 0)]}), "x 0–9, y 195–204"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(folder: Path, content: str, says: str) -> None:
    (folder / "ignored.json").write_text(content, encoding="utf-8")
    regions = content if content[0].isdigit() else "ignored.json"
    for names in (("old.png", "new.png"), ("old", "new")):
        done = edgeconv("diff", *names, "--ignore", regions, "--html", "page.html", cwd=folder)
        assert (done.code, done.out, len(done.error_lines)) == (2, b"", 1)
        assert says in done.err
        assert not (folder / "page.html").exists()


# --- the page -----------------------------------------------------------------------------------------------------


@pytest.fixture
def shown(browser: Browser, folder: Path) -> Iterator[Shown]:
    assert edgeconv("diff", "old.png", "new.png", "--html", "page.html", cwd=folder).code == 1
    yield from opened(browser, folder)


def opened(browser: Browser, folder: Path) -> Iterator[Shown]:
    browser.problems.clear()
    browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder / "saved"))
    browser.open(folder / "page.html")
    reference, other = pair()
    yield Shown(browser, reference, (other,))
    assert browser.problems == []


def saved(shown: Shown, folder: Path) -> list[dict[str, object]]:
    """What the page saves, by a click on its button."""
    shown.browser.click("#save-regions")
    path = folder / "saved" / "ignored.json"
    shown.browser.wait(path.exists, "the file to be saved")
    content = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator(schema("ignored")).validate(content)
    return content["regions"]


def test_what_is_drawn_with_the_mouse_is_saved_and_then_not_judged(shown: Shown, folder: Path) -> None:
    shown.browser.click("#draw-region")
    assert shown.browser.run("getComputedStyle(document.getElementById('stage')).cursor") == "cell"
    for y, x in SPOTS:
        start, stop = shown.place(x - 3, y - 3), shown.place(x + 12, y + 12)
        shown.browser.drag(start, stop)
    assert shown.browser.run("document.getElementById('ignored-count').value") == "2 ignored"
    assert saved(shown, folder) == [
        {"left": x - 3, "top": y - 3, "right": x + 12, "bottom": y + 12} for y, x in SPOTS
    ]  # fmt: skip
    again = edgeconv("diff", "old.png", "new.png", "--ignore", "saved/ignored.json", "--html", "b.html", cwd=folder)
    assert again.code == 0, again.text
    shown.browser.open(folder / "b.html")
    assert "2 ignored regions" in shown.browser.run("document.getElementById('verdict').innerText")
    assert shown.browser.run("document.getElementById('ignored-count').value") == "2 ignored"
    shown.keys("Escape", "Delete", "Delete")
    assert shown.browser.run("document.getElementById('save-regions').disabled")


@pytest.mark.slow
def test_a_finger_draws(shown: Shown, folder: Path) -> None:
    shown.browser.phone()
    try:
        shown.browser.send("Page.reload")
        shown.browser.wait_until("document.readyState === 'complete'")
        shown.browser.drawn()
        shown.browser.click("#draw-region")
        shown.browser.run("document.getElementById('stage').scrollIntoView()")
        (y, x), _ = SPOTS
        shown.browser.touch("touchStart", shown.place(x, y))
        shown.browser.touch("touchMove", shown.place(x + 20, y + 15))
        shown.browser.touch("touchEnd")
        assert shown.browser.run("document.getElementById('ignored-count').value") == "1 ignored"
        assert len(saved(shown, folder)) == 1
    finally:
        shown.browser.no_phone()


@pytest.mark.slow
def test_of_two_folders_each_region_names_its_picture(browser: Browser, folder: Path) -> None:
    assert edgeconv("diff", "old", "new", "--html", "page.html", cwd=folder).code == 1
    for shown in opened(browser, folder):
        for _ in range(2):
            shown.browser.click("#ignore-difference")
            shown.keys("n")
            shown.browser.click("#ignore-difference")
            shown.browser.click("#ignore-difference")  # the same once more adds nothing
            shown.keys("j")
        assert saved(shown, folder) == [region(*spot, picture=name) for name in ("one.png", ODD) for spot in SPOTS]
    assert edgeconv("diff", "old", "new", "--ignore", "saved/ignored.json", cwd=folder).code == 0
