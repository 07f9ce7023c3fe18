"""The real command in a real window on a real X server, driven by the mouse and the keyboard alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import PROJECT
from problems import random_image
from x11 import PATIENCE_SECONDS, Screen, x11_reason

from edgeconv.api import convolve
from edgeconv.io.image import write_image

pytestmark = pytest.mark.skipif(x11_reason() is not None, reason=str(x11_reason()))

PIXELS = random_image(160, 240, np.uint8)
CORNER = np.s_[100:, 150:]
"""A part of the picture that no name, bar or knob covers."""


def test_open_part_drag_type_undo_and_quit(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    write_image(PIXELS, path)
    settings = tmp_path / "settings.ini"
    with Screen() as screen:
        environment = {
            **os.environ,
            "DISPLAY": screen.name,
            "QT_QPA_PLATFORM": "xcb",
            "EDGECONV_VIEW_SETTINGS": str(settings),
            "PYTHONPATH": str(PROJECT),
        }
        environment.pop("WAYLAND_DISPLAY", None)
        words = [sys.executable, "-m", "edgeconv", "view", str(path), "--device", "cpu", "--filter", "sobel"]
        window = subprocess.Popen(words, env=environment)
        try:
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
        finally:
            window.kill()
    assert "sobel" in settings.read_text(), "the window remembered"
