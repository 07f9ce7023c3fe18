"""The real command in a real window on a real X server, driven by the keyboard alone."""

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
