"""A real headless Chromium, driven over its DevTools pipe with nothing but the standard library.

Chromium reads commands from file descriptor 3 and writes answers and events to 4, each a JSON text ended by NUL
(--remote-debugging-pipe; protocol: https://chromedevtools.github.io/devtools-protocol/).
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from meet import patience

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    " ": (32, " "),
    "End": (35, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "Delete": (46, ""),
    "Backspace": (8, ""),
}
"""Virtual key code of a key, and the text that it types."""


def chromium() -> str | None:
    """The browser's path, or None where there is none."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


class Browser:
    """One window. Use as a context."""

    def __init__(self, profile: Path, width: int = 1200, height: int = 900) -> None:
        program = chromium()
        assert program is not None
        words = [
            program,
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-sandbox",  # a container's root has no other way
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            f"--window-size={width},{height}",
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()

        def connect() -> None:
            # First out of the way of each other: either may already be 3 or 4.
            high_read, high_write = os.dup2(to_read, 62), os.dup2(to_write, 63)
            os.dup2(high_read, 3)
            os.dup2(high_write, 4)

        self._process = subprocess.Popen(
            words,
            preexec_fn=connect,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        """Every address that the page asked for."""
        self.problems: list[str] = []
        """Exceptions and console errors of the page."""
        (page, *_) = [t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        attached = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.send(f"{domain}.enable")
        self.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = None
            self.send("Browser.close")
            self._process.wait(patience())
        finally:
            self._process.kill()
            os.close(self._in)
            os.close(self._out)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def open(self, page: Path) -> None:
        """Load a page from disk and wait until the viewer has drawn it."""
        self.send("Page.navigate", url=page.resolve().as_uri())
        self.wait_until("document.readyState === 'complete'")
        self.drawn()

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def wait_until(self, script: str) -> None:
        """Until an expression is true."""
        self.wait(lambda: bool(self.run(script)), script)

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Until `done`."""
        end = time.monotonic() + patience()
        while not done():
            assert time.monotonic() < end, f"waited too long for {what}"
            time.sleep(0.02)

    def drawn(self) -> None:
        """Wait until every visible tile is drawn."""
        frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.run(frames)
        self.wait_until("document.documentElement.dataset.state === 'drawn'")

    def key(self, key: str, shift: bool = False) -> None:
        """Press and release a key, named as in KeyboardEvent.key."""
        text = {"text": key} if len(key) == 1 else {}
        modifiers = 8 if shift else 0
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)
        self.drawn()

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event at a place of the window: mouseMoved, mousePressed, mouseReleased, mouseWheel."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str) -> None:
        """Bring an element into view and press the left button in its middle."""
        element = f"document.querySelector({selector!r})"
        self.run(f"{element}.scrollIntoView({{block: 'nearest'}})")
        middle = "(({left, top, width, height}) => [left + width / 2, top + height / 2])"
        x, y = self.run(f"{middle}({element}.getBoundingClientRect())")
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def press(self, key: str, shift: bool = False) -> None:
        """Press and release a key as a keyboard does, by its name in KEYS or a letter, so that controls obey it."""
        code, text = KEYS.get(key, (ord(key.upper()) if len(key) == 1 else 0, key))
        more: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.send("Input.dispatchKeyEvent", type="keyDown", **more, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **more)

    def drag(self, start: tuple[float, float], stop: tuple[float, float]) -> None:
        """Press, move and release the left button."""
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1)
        self.mouse("mouseMoved", *stop, button="left", buttons=1)
        self.mouse("mouseReleased", *stop, button="left", clickCount=1)
        self.drawn()

    def touch(self, kind: str, *places: tuple[float, float]) -> None:
        """A touch event with a finger at each place: touchStart, touchMove; touchEnd has none."""
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        self.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    def phone(self, width: int = 390, height: int = 800) -> None:
        """A window as narrow as a phone's, with fingers in place of a mouse."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=True)
        self.send("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)

    def no_phone(self) -> None:
        """Undo `phone`."""
        self.send("Emulation.setTouchEmulationEnabled", enabled=False)
        self.send("Emulation.clearDeviceMetricsOverride")

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + patience()
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            received = os.read(self._in, 1 << 20)
            assert received, "the browser has ended"
            self._unread += received
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"])[:800])
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
