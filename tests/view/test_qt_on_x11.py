"""The real command in a real window on a real X server, driven by the mouse and the keyboard alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from problems import random_image
from x11 import PATIENCE_SECONDS, Screen, window_environment, x11_reason

from edgeconv import convolve
from edgeconv.io.encoding import write_image

pytestmark = pytest.mark.skipif(x11_reason() is not None, reason=str(x11_reason()))

PIXELS = random_image(160, 240, np.uint8)
CORNER = np.s_[100:, 150:]
"""A part of the picture that no name, bar or knob covers."""


@contextmanager
def a_window(screen: Screen, folder: Path, *words: object, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command with a window on a screen, its settings in `folder`."""
    own = window_environment(screen, EDGECONV_VIEW_SETTINGS=str(folder / "settings.ini"), **environment)
    command = [sys.executable, "-m", "edgeconv", "view", "--device", "cpu", *map(str, words)]
    window = subprocess.Popen(command, env=own)
    try:
        yield window
    finally:
        window.kill()
        window.wait(PATIENCE_SECONDS)


def test_open_part_drag_type_undo_and_quit(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    write_image(PIXELS, path)
    with Screen() as screen, a_window(screen, tmp_path, path, "--filter", "sobel") as window:
        sobel = convolve(PIXELS, "sobel", device="cpu")
        x, y = screen.find(np.ascontiguousarray(sobel[CORNER]))
        left, top = x - 150, y - 100
        screen.focus_window()

        screen.press("2")  # split, with the bar in the middle of the picture
        middle = left + 120
        screen.find(np.ascontiguousarray(PIXELS[130:, 20:100]))
        screen.find(np.ascontiguousarray(sobel[130:, 140:]))

        screen.drag((middle, top + 140), (middle + 80, top + 140))
        screen.find(np.ascontiguousarray(PIXELS[130:, 20:190]))
        seen = screen.picture()[top + 130 : top + 160, left : left + 240]
        assert np.array_equal(seen[:, 210:], sobel[130:, 210:]), "right of the bar is the output"
        assert not np.array_equal(seen[:, 20:190], sobel[130:, 20:190]), "left of it no longer"

        screen.press("1")
        screen.press("F7")  # the knobs: the filter first, then the kernel's nine cells
        screen.press("Tab")
        screen.press("5")  # what the cell held is selected, so it is replaced
        kernel = [[5, 0, 1], [-2, 0, 2], [-1, 0, 1]]
        screen.find(np.ascontiguousarray(convolve(PIXELS, kernel, device="cpu")[CORNER]))

        screen.press("Control_L", "z")
        screen.find(np.ascontiguousarray(sobel[CORNER]))
        screen.press("Control_L", "q")
        assert window.wait(PATIENCE_SECONDS) == 0
    assert "sobel" in (tmp_path / "settings.ini").read_text(), "the window remembered"


IDENTITY = ("--filter", "identity", "--channels", "each")


@pytest.mark.parametrize("density", ["1.25", pytest.param("2", marks=pytest.mark.slow)])
def test_one_to_one_is_one_pixel_of_the_screen_whatever_its_density(tmp_path: Path, density: str) -> None:
    path, pixels = tmp_path / "picture.png", np.ascontiguousarray(PIXELS[CORNER])
    write_image(PIXELS, path)
    with Screen() as screen, a_window(screen, tmp_path, path, *IDENTITY, QT_SCALE_FACTOR=density) as window:
        place = screen.find(pixels)
        screen.focus_window()
        screen.press("0")  # all of it, enlarged
        screen.wait(lambda: not np.array_equal(seen_at(screen, place, pixels), pixels), "another zoom")
        screen.press("9")
        assert screen.find(pixels) == place
        screen.press("Control_L", "q")
        assert window.wait(PATIENCE_SECONDS) == 0


def seen_at(screen: Screen, place: tuple[int, int], like: np.ndarray) -> np.ndarray:
    x, y = place
    return screen.picture()[y : y + like.shape[0], x : x + like.shape[1]]
