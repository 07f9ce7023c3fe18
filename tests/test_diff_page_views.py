"""How one moves about on a diff page: place and zoom, fingers, the wheel, and keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from diff_page import Shown, make_page
from picture_files import smooth_image

from edgeconv.difference.scale import scale_for

HEIGHT, WIDTH = 300, 520
SPOT = (120, 300)
MODES = "dbv"


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Shown:
    """A reference, the same brighter by 40, and the reference with one square changed."""
    reference = smooth_image(HEIGHT, WIDTH)
    brighter, changed = reference + np.uint8(40), reference.copy()
    changed[SPOT[0] : SPOT[0] + 20, SPOT[1] : SPOT[1] + 30] += 20
    make_page(tmp_path / "page.html", reference, brighter, changed)
    browser.problems.clear()
    browser.open(tmp_path / "page.html")
    yield Shown(browser, reference, (brighter, changed))
    assert browser.problems == []


def zoom(shown: Shown) -> float:
    return shown.browser.run("parseFloat(document.getElementById('zoom').value)")


def size(shown: Shown, width: int, height: int) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    shown.browser.send("Emulation.setDeviceMetricsOverride", **metrics)
    shown.browser.drawn()


def test_zoom_and_place_survive_every_change_of_view(shown: Shown) -> None:
    shown.keys("b", "1", "+", "+", *["ArrowRight"] * 20)
    scale, place = zoom(shown), shown.pixel_at(0.5, 0.5)
    for key in (*MODES, *reversed(MODES)):
        shown.keys(key)
        assert zoom(shown) == scale, key
    shown.keys("b")
    assert shown.pixel_at(0.5, 0.5) == place


@pytest.mark.slow
def test_what_was_fitted_is_fitted_again(shown: Shown) -> None:
    shown.keys("v")
    try:
        found = {}
        for width in (1200, 700):
            size(shown, width, 900)
            _, _, across, down = shown.stage()
            assert zoom(shown) == pytest.approx(100 * min(across / WIDTH, down / HEIGHT), rel=0.01)
            found[width] = zoom(shown)
        assert found[700] < found[1200]
        shown.keys("+")
        near = zoom(shown)
        size(shown, 1200, 900)
        assert zoom(shown) == near
    finally:
        shown.browser.send("Emulation.clearDeviceMetricsOverride")


def test_from_afar_an_input_is_seen_where_it_differs(shown: Shown) -> None:
    """Of a smaller level only the part that differs is stored."""
    shown.keys("]", "b", " ", "n", *["-"] * 8, *["ArrowLeft"] * 60)
    assert zoom(shown) == 50
    y, x = SPOT[0] + 10, SPOT[1] + 15
    assert shown.colour_at(0.5, 0.5) == pytest.approx(shown.others[1][y, x], abs=6)
    beside = shown.colour_at(0.5 + 20 / shown.stage()[2], 0.5)
    assert beside == pytest.approx(shown.reference[y, x + 40], abs=6)


@pytest.mark.slow
def test_the_map_lies_over_the_dimmed_reference(shown: Shown) -> None:
    shown.keys("]", "v", "n", "1")
    heat = scale_for("uint8").colours[int(scale_for("uint8").classes(np.array([20]))[0])]
    assert shown.has_colour(tuple(heat))
    shown.keys("0")
    place = (0.3, 0.3)
    under = shown.pixel_at(*place)
    shown.pixel_at(0.5, 0.02)
    grey = int(shown.reference[under[1], under[0]].max()) >> 1
    assert shown.colour_at(*place) == pytest.approx((grey, grey, grey), abs=2)


@pytest.mark.slow
def test_keys_in_fields_are_the_fields_own(shown: Shown) -> None:
    shown.keys("b")
    shown.browser.run("document.getElementById('input').focus()")
    before, mode = zoom(shown), shown.browser.run("document.querySelector('[name=mode]:checked').id")
    for key in ("+", "d", "0"):
        shown.browser.key(key)
    assert zoom(shown) == before
    assert shown.browser.run("document.querySelector('[name=mode]:checked').id") == mode


@pytest.mark.slow
def test_the_wheel_scrolls_the_page_until_the_pictures_are_in_focus(shown: Shown) -> None:
    size(shown, 1000, 500)
    try:
        left, top, width, _ = shown.stage()
        place = (left + width / 2, top + 60)
        before = zoom(shown)
        shown.browser.mouse("mouseWheel", *place, deltaX=0, deltaY=120)
        shown.browser.wait_until("window.scrollY > 0")
        assert zoom(shown) == before
        shown.browser.run("window.scrollTo(0, 0)")
        shown.browser.mouse("mouseWheel", *place, deltaX=0, deltaY=-120, modifiers=2)
        shown.browser.wait(lambda: zoom(shown) > before, "Ctrl and the wheel to zoom")
        near = zoom(shown)
        shown.browser.run("document.getElementById('stage').focus({preventScroll: true})")
        shown.browser.mouse("mouseWheel", *place, deltaX=0, deltaY=-120)
        shown.browser.wait(lambda: zoom(shown) > near, "the wheel to zoom")
        assert shown.browser.run("window.scrollY") == 0
    finally:
        shown.browser.send("Emulation.clearDeviceMetricsOverride")


@pytest.fixture
def phone(shown: Shown) -> Iterator[Shown]:
    shown.browser.phone()
    shown.browser.send("Page.reload")
    shown.browser.wait_until("document.readyState === 'complete'")
    shown.browser.drawn()
    yield shown
    shown.browser.no_phone()


@pytest.mark.slow
def test_a_finger_scrolls_the_page_and_two_move_the_pictures(phone: Shown) -> None:
    left, top, width, height = phone.stage()
    middle = (left + width / 2, top + height / 2)
    touch_action = "getComputedStyle(document.getElementById('stage')).touchAction"
    assert phone.browser.run(touch_action) == "pan-y"
    before = zoom(phone)
    phone.browser.touch("touchStart", middle)
    for step in range(1, 9):
        phone.browser.touch("touchMove", (middle[0], middle[1] - 25 * step))
    phone.browser.touch("touchEnd")
    phone.browser.wait_until("window.scrollY > 50")
    still = "new Promise((done) => { const y = scrollY; setTimeout(() => done(y === scrollY), 300); })"
    phone.browser.wait_until(still)  # a page goes on for a while behind a finger
    assert zoom(phone) == before
    phone.browser.run("window.scrollTo(0, 0)")
    phone.browser.touch("touchStart", (middle[0] - 30, middle[1]), (middle[0] + 30, middle[1]))
    for step in range(1, 6):
        places = (middle[0] - 30 - 12 * step, middle[1] + 4 * step), (middle[0] + 30 + 12 * step, middle[1] + 4 * step)
        phone.browser.touch("touchMove", *places)
    phone.browser.touch("touchEnd")
    phone.browser.drawn()
    assert zoom(phone) == pytest.approx(3 * before, rel=0.1)
    assert phone.browser.run("window.scrollY") == 0
    assert phone.browser.run(touch_action) == "none"
    place = phone.browser.run("document.getElementById('stage').getAttribute('aria-label')")
    phone.browser.touch("touchStart", middle)
    phone.browser.touch("touchMove", (middle[0] - 60, middle[1] - 60))
    phone.browser.touch("touchEnd")
    assert phone.browser.run("window.scrollY") == 0
    assert place == phone.browser.run("document.getElementById('stage').getAttribute('aria-label')")
