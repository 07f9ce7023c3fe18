"""A screen of one's own (Xvfb), with real mouse and keyboard events through XTEST and pictures of what is seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue

import cv2
import numpy as np
from command import PROJECT

from edgeconv.view.qt.start import plugin_reason

WIDTH, HEIGHT = 1280, 900
SIDE = 60
"""Of the window of the other program."""
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


class OtherProgram:
    """other_program.py on a screen: drags and the clipboard of a process that knows nothing of edgeconv. A context."""

    def __init__(self, screen: Screen) -> None:
        x, y = WIDTH - SIDE, HEIGHT - SIDE  # beside a first window, which leaves a twentieth of the screen
        self._place = x, y, SIDE
        self._environment = window_environment(screen)
        self.middle = x + SIDE // 2, y + SIDE // 2

    def __enter__(self) -> OtherProgram:
        program = Path(__file__).with_name("other_program.py")
        words = [sys.executable, str(program), *map(str, self._place)]
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._process = subprocess.Popen(
            words, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._hear, daemon=True).start()
        assert self.heard() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)

    def heard(self) -> str:
        """The next line that it prints."""
        return self._lines.get(timeout=PATIENCE_SECONDS)

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())

    def tell(self, *words: object) -> None:
        """Give a command, and wait until it is done."""
        assert self._process.stdin is not None
        print(*words, sep="\t", file=self._process.stdin, flush=True)
        assert self.heard() == words[0]


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

    def carry(self, other: OtherProgram, end: tuple[int, int], action: str, steps: int = 12) -> None:
        """Drag what the other program holds to `end`, and let go once it says that it would be taken, if it is to be.

        It says so when that changes, so once in its life.
        """
        from Xlib import X
        from Xlib.ext import xtest

        start = other.middle
        self.move(*start)
        xtest.fake_input(self._display, X.ButtonPress, LEFT_BUTTON)
        for step in range(1, steps + 1):
            self.move(*(a + (b - a) * step // steps for a, b in zip(start, end, strict=True)))
            if step == 1:
                assert other.heard() == "drags"
        if action != "IgnoreAction":
            assert other.heard() == f"may {action}"
        xtest.fake_input(self._display, X.ButtonRelease, LEFT_BUTTON)
        self._display.sync()
        assert other.heard() == f"dropped {action}"

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
