"""A screen of one's own (Xvfb), with real mouse and keyboard events through XTEST and pictures of what is seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from importlib.util import find_spec

import cv2
import numpy as np
from command import PROJECT

from edgeconv.view.qt.start import plugin_reason

WIDTH, HEIGHT = 1280, 900
PATIENCE_SECONDS = 60
"""Far more than anything takes, for machines that are busy."""
LEFT_BUTTON = 1


def x11_reason() -> str | None:
    """Why there can be no such screen here, or None."""
    if shutil.which("Xvfb") is None:
        return "Xvfb is not installed (apt install xvfb)"
    if find_spec("Xlib") is None:
        return "python-xlib is not installed (extra dev)"
    return plugin_reason("xcb")


def window_environment(screen: Screen, **more: str) -> dict[str, str]:
    """The environment of a program with a window on `screen`."""
    own = {"DISPLAY": screen.name, "QT_QPA_PLATFORM": "xcb", "PYTHONPATH": str(PROJECT)}
    environment = {**os.environ, **own, **more}
    environment.pop("WAYLAND_DISPLAY", None)
    return environment


class Screen:
    """An X server without a window manager. Use as a context."""

    def __enter__(self) -> Screen:
        reading, writing = os.pipe()
        words = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp"]
        self._server = subprocess.Popen(words, pass_fds=[writing], stderr=subprocess.DEVNULL)
        os.close(writing)
        with os.fdopen(reading) as answer:
            self.name = f":{answer.readline().strip()}"
        from Xlib import display

        self._display = display.Display(self.name)
        self._root = self._display.screen().root
        return self

    def __exit__(self, *_: object) -> None:
        self._display.close()
        self._server.terminate()
        self._server.wait(PATIENCE_SECONDS)

    def picture(self) -> np.ndarray:
        """What is on the screen, height × width × 3, RGB."""
        from Xlib import X

        image = self._root.get_image(0, 0, WIDTH, HEIGHT, X.ZPixmap, 0xFFFFFFFF)
        return np.frombuffer(image.data, np.uint8).reshape(HEIGHT, WIDTH, 4)[:, :, 2::-1].copy()

    def find(self, pixels: np.ndarray) -> tuple[int, int]:
        """(x, y) where exactly these pixels are seen; waits until they are."""
        found: list[tuple[int, int]] = []

        def there() -> bool:
            seen = self.picture()
            _, _, place, _ = cv2.minMaxLoc(cv2.matchTemplate(seen, pixels, cv2.TM_SQDIFF))
            x, y = place
            if np.array_equal(seen[y : y + pixels.shape[0], x : x + pixels.shape[1]], pixels):
                found.append((x, y))
            return bool(found)

        self.wait(there, "the pixels that were looked for")
        return found[0]

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Until it holds."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < until, f"{what}: not seen in {PATIENCE_SECONDS} s"
            time.sleep(0.05)

    def focus_window(self) -> None:
        """Give the keyboard to the window, as a window manager does."""
        from Xlib import X

        for window in self._root.query_tree().children:
            geometry = window.get_geometry()
            if window.get_attributes().map_state == X.IsViewable and geometry.width > WIDTH // 2:
                window.set_input_focus(X.RevertToParent, X.CurrentTime)
        self._display.sync()

    def move(self, x: int, y: int) -> None:
        """Move the pointer."""
        from Xlib import X
        from Xlib.ext import xtest

        xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)
        self._display.sync()

    def drag(self, start: tuple[int, int], end: tuple[int, int], steps: int = 8) -> None:
        """Press at one place, move, let go at another."""
        from Xlib import X
        from Xlib.ext import xtest

        self.move(*start)
        xtest.fake_input(self._display, X.ButtonPress, LEFT_BUTTON)
        for step in range(1, steps + 1):
            self.move(*(a + (b - a) * step // steps for a, b in zip(start, end, strict=True)))
        xtest.fake_input(self._display, X.ButtonRelease, LEFT_BUTTON)
        self._display.sync()

    def press(self, *keys: str) -> None:
        """Press keys, named as in X11/keysymdef.h, together, and let them go."""
        from Xlib import XK, X
        from Xlib.ext import xtest

        codes = [self._display.keysym_to_keycode(XK.string_to_keysym(key)) for key in keys]
        for code in codes:
            xtest.fake_input(self._display, X.KeyPress, code)
        for code in reversed(codes):
            xtest.fake_input(self._display, X.KeyRelease, code)
        self._display.sync()
