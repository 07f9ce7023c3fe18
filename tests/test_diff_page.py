"""The page of `edgeconv diff --html` in a real headless Chromium, opened from disk with the network off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from diff_page import Shown, make_page

from edgeconv.difference import results
from edgeconv.difference.inputs import ArrayInput
from edgeconv.difference.scale import scale_for
from edgeconv.errors import UsageError

HEIGHT, WIDTH = 300, 520
"""More than one tile each way, neither a multiple of a tile, three levels."""
SPOT = (123, 300)
"""y, x of the pixel that the second input changes alone."""


def pictures(dtype: str, channels: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise; other noise; and the first again with one pixel changed in its last channel."""
    rng = np.random.default_rng(7)
    shape = (HEIGHT, WIDTH, channels)
    if dtype.startswith("u"):
        one, other = rng.integers(0, np.iinfo(dtype).max, (2, *shape), endpoint=True).astype(dtype)
    else:
        one, other = rng.normal(0, 1, (2, *shape)).astype(dtype)
    changed = one.copy()
    changed[(*SPOT, channels - 1)] = 77
    return one, other, changed


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Shown:
    reference, *others = pictures("uint8")
    make_page(tmp_path / "page.html", reference, *others)
    browser.requests.clear()
    browser.problems.clear()
    browser.open(tmp_path / "page.html")
    return Shown(browser, reference, tuple(others))


def test_it_opens_from_disk_and_asks_for_nothing_else(shown: Shown, tmp_path: Path) -> None:
    assert shown.browser.requests == [(tmp_path / "page.html").as_uri()]
    assert shown.browser.problems == []
    assert shown.browser.run("document.getElementById('verdict').innerText").startswith("Differs 2 of 2 differ")
    assert shown.browser.run("document.getElementById('mode-map').checked")
    assert shown.browser.run("document.getElementById('legend').innerText").startswith("levels of 255")
    largest = np.abs(shown.others[0].astype(int) - shown.reference).max(axis=2)
    shown.values(*np.unravel_index(int(largest.argmax()), largest.shape)[::-1])
    assert shown.browser.run("document.querySelectorAll('section.set table').length") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "channels"), [("uint8", 1), ("uint16", 3), ("float16", 1), ("float32", 3), ("float64", 1)]
)
def test_the_cursor_shows_the_exact_values(browser: Browser, tmp_path: Path, dtype: str, channels: int) -> None:
    all_three = pictures(dtype, channels)
    x, y = WIDTH // 2, HEIGHT // 2
    if dtype.startswith("f"):
        all_three[0][y, x + 1, 0] = np.nan
        all_three[1][y, x + 1, 0] = np.inf
    make_page(tmp_path / "page.html", *all_three)
    browser.open(tmp_path / "page.html")
    shown = Shown(browser, all_three[0], all_three[1:])
    shown.keys("b")
    x, y = shown.pixel_at(0.5, 0.5)
    # Across the edge of a tile: 256 is the first pixel of the second.
    steps = [("ArrowRight", 1, 0), *[("ArrowLeft", -1, 0)] * 6, ("ArrowDown", 0, 1)]
    for key, dx, dy in steps:
        shown.keys(key)
        x, y = x + dx, y + dy
        rows = shown.values(x, y)
        for row, picture in zip(rows, all_three, strict=True):
            cells = [float(cell.replace("−", "-")) for cell in row[1 : 1 + channels]]
            np.testing.assert_array_equal(np.array(cells).astype(picture.dtype), picture[y, x])
    assert browser.problems == []


def pixel(picture: np.ndarray, place: tuple[int, int]) -> tuple[int, ...]:
    """The values at x, y."""
    return tuple(picture[place[1], place[0]].tolist())


CORNER = (0.02, 0.02)
"""Where the mouse rests, so that the cursor's frame covers nothing that is looked at."""

ZOOM_IN = ("1", "+", "+", "+", "+")
"""From any scale to 16 screen pixels a pixel."""


@pytest.mark.slow
def test_side_by_side_shows_the_same_place_of_every_picture(shown: Shown) -> None:
    shown.keys("d", *ZOOM_IN)
    _, _, width, height = shown.stage()
    across = min(width / 2 / WIDTH, height / HEIGHT) >= min(width / WIDTH, height / 2 / HEIGHT)
    places = [(0.205, 0.37), (0.705, 0.37)] if across else [(0.41, 0.185), (0.41, 0.685)]
    pixels = [shown.pixel_at(*place) for place in places]
    assert len(set(pixels)) == 1
    shown.pixel_at(*CORNER)
    for chosen in shown.others:
        for place, picture in zip(places, (shown.reference, chosen), strict=True):
            assert shown.colour_at(*place) == pixel(picture, pixels[0])
        shown.keys("]")


@pytest.mark.slow
def test_blink_shows_the_other_picture_in_the_same_place(shown: Shown) -> None:
    shown.keys("b", *ZOOM_IN)
    place = (0.3, 0.4)
    under = shown.pixel_at(*place)
    shown.pixel_at(*CORNER)
    assert shown.colour_at(*place) == pixel(shown.reference, under)
    shown.keys(" ")
    assert shown.colour_at(*place) == pixel(shown.others[0], under)
    shown.browser.click("#change")
    shown.browser.drawn()
    assert shown.colour_at(*place) == pixel(shown.reference, under)


@pytest.mark.slow
def test_one_differing_pixel_is_seen_in_the_map_of_the_whole_picture(shown: Shown) -> None:
    scale = scale_for("uint8")
    step = int(shown.others[1][(*SPOT, 2)]) - int(shown.reference[(*SPOT, 2)])
    found = int(scale.classes(np.array([abs(step)]))[0])
    shown.keys("]", "v", "0")
    left, top, width, height = shown.stage()
    for _ in range(8):  # at scales between those of the smaller levels too
        assert shown.has_colour(scale.colours[found])
        shown.browser.mouse("mouseWheel", left + 0.02 * width, top + 0.02 * height, deltaX=0, deltaY=70)
        shown.browser.drawn()
    assert shown.browser.run("parseFloat(document.getElementById('zoom').value)") < 60


def test_the_next_region_is_shown_with_its_numbers(shown: Shown) -> None:
    shown.keys("]", "n")
    rows = shown.values(SPOT[1], SPOT[0])
    assert rows[2][1:4] == [str(value) for value in shown.others[1][SPOT]]
    step = int(shown.others[1][(*SPOT, 2)]) - int(shown.reference[(*SPOT, 2)])
    assert rows[2][4] == f"0 0 {step:+}".replace("-", "−")
    assert shown.browser.run("document.getElementById('region').value") == "region 1 of 1"
    spoken = shown.browser.run("document.getElementById('announcer').textContent")
    assert f"x {SPOT[1]}, y {SPOT[0]}. picture 0 " in spoken


@pytest.mark.slow
def test_the_wheel_keeps_the_pixel_under_the_mouse(shown: Shown) -> None:
    shown.keys("v", *ZOOM_IN)
    place = (0.61, 0.43)
    before = shown.pixel_at(*place)
    left, top, width, height = shown.stage()
    at = (left + place[0] * width, top + place[1] * height)
    shown.browser.mouse("mouseWheel", *at, deltaX=0, deltaY=-200)
    shown.browser.wait_until("parseFloat(document.getElementById('zoom').value) > 2000")
    assert shown.pixel_at(*place) == before


@pytest.mark.parametrize(
    "name",
    [
        "<img src=x onerror=\"document.title='taken'\">",
        "\" autofocus onfocus=\"document.title='taken'",
        "<!--<script>document.title='taken'",
        "<!--DATA-->",
    ],
)
def test_text_from_outside_cannot_become_markup(browser: Browser, tmp_path: Path, name: str) -> None:
    """Without a slash, behind which alone a name is shown; wherever the page and its script show it."""
    picture = np.zeros((4, 4, 3), np.uint8)
    inputs = [ArrayInput(f"{name}{number}", picture + number) for number in range(3)]
    page = tmp_path / "page.html"
    results.run(inputs[0], inputs[1:], results.Wanted(html=str(page)), title=name, remarks=[name])
    browser.problems.clear()
    browser.open(page)
    shown = Shown(browser, picture, ())
    shown.values(0, 0)
    for key in ("]", "d", "n"):
        shown.keys(key)
    assert browser.run("document.title") == name
    assert [row[0] for row in shown.values(2, 2)] == [each.name for each in inputs]
    everything = browser.run("document.body.innerText")
    assert everything.count(name) >= 2 * len(inputs)
    assert browser.run("document.querySelectorAll('img, [onfocus]').length") == 0
    assert browser.problems == []


def test_inputs_that_agree_cost_next_to_nothing(tmp_path: Path) -> None:
    reference, _, changed = pictures("uint8")
    make_page(tmp_path / "one.html", reference, reference)
    make_page(tmp_path / "five.html", reference, reference, reference, changed, changed)
    one, five = ((tmp_path / name).stat().st_size for name in ("one.html", "five.html"))
    assert five - one < 0.05 * one


def test_a_page_above_the_limit_is_refused_and_nothing_written(tmp_path: Path) -> None:
    reference, other, _ = pictures("uint8")
    wanted = results.Wanted(html=str(tmp_path / "page.html"), page_limit_bytes=100_000)
    with pytest.raises(UsageError, match="--page-limit"):
        results.run(ArrayInput("a", reference), [ArrayInput("b", other)], wanted)
    assert list(tmp_path.iterdir()) == []
