"""A diff page in the browser: what tests ask of it, with the pictures that it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from browser import Browser

from edgeconv.difference import results
from edgeconv.difference.inputs import ArrayInput


def make_page(path: Path, *pictures: np.ndarray) -> None:
    """The page of `edgeconv diff` for arrays, the first of which is the reference."""
    first, *others = (ArrayInput(f"picture {index}", pixels) for index, pixels in enumerate(pictures))
    results.run(first, others, results.Wanted(html=str(path)))


@dataclass(frozen=True)
class Shown:
    """A page in the browser and the pictures that it was made from."""

    browser: Browser
    reference: np.ndarray
    others: tuple[np.ndarray, ...]

    def values(self, x: int, y: int) -> list[list[str]]:
        """Rows of the table of values once it shows (x, y)."""
        self.browser.wait_until(f"document.getElementById('values').dataset.pixel === '{x},{y}'")
        rows = "[...document.querySelectorAll('#values tbody tr')].map((row) => [...row.cells].map((c) => c.innerText))"
        return self.browser.run(rows)

    def stage(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of the canvas in the window."""
        box = "(({left, top, width, height}) => [left, top, width, height])"
        return tuple(self.browser.run(f"{box}(document.getElementById('canvas').getBoundingClientRect())"))

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where the middle of a pixel of the first pane is in the window, while it shows the whole picture."""
        left, top, width, height = self.stage()
        pane = (
            width / (1 + len(self.others))
            if self.browser.run("document.getElementById('mode-side').checked")
            else width
        )
        rows, columns = self.reference.shape[:2]
        if pane < width and min(pane / columns, height / rows) < min(width / columns, height / 2 / rows):
            pane, height = width, height / (1 + len(self.others))  # panes below each other
        scale = min(pane / columns, height / rows)
        return left + pane / 2 + (x + 0.5 - columns / 2) * scale, top + height / 2 + (y + 0.5 - rows / 2) * scale

    def pixel_at(self, across: float, down: float) -> tuple[int, int]:
        """x, y of the pixel that the viewer says is under the mouse, at shares of the stage's width and height."""
        left, top, width, height = self.stage()
        self.browser.run("delete document.getElementById('values').dataset.pixel")
        self.browser.mouse("mouseMoved", left + across * width, top + down * height)
        self.browser.wait_until("document.getElementById('values').dataset.pixel")
        x, y = self.browser.run("document.getElementById('values').dataset.pixel").split(",")
        self.browser.drawn()
        return int(x), int(y)

    def colour_at(self, across: float, down: float) -> tuple[int, int, int]:
        """What the canvas shows there."""
        _, _, width, height = self.stage()
        place = f"{int(across * width)}, {int(down * height)}, 1, 1"
        pixel = self.browser.run(f"[...document.getElementById('canvas').getContext('2d').getImageData({place}).data]")
        return tuple(pixel[:3])

    def has_colour(self, colour: tuple[int, int, int]) -> bool:
        """Whether any pixel of the canvas has this colour."""
        return self.browser.run(
            "(([r, g, b]) => { const c = document.getElementById('canvas');"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "for (let i = 0; i < d.length; i += 4) if (d[i] === r && d[i + 1] === g && d[i + 2] === b) return true;"
            f"return false; }})({list(colour)})"
        )

    def keys(self, *keys: str) -> None:
        self.browser.run("document.getElementById('stage').focus()")
        for key in keys:
            self.browser.key(key)
