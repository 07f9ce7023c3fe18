"""Draw the window's main views for README.md and docs/view.md, off the screen, from the project's picture.

    python3 scripts/view_screenshots.py [--folder docs/view]

    threshold.webp   input beside a mask of its edges, light         difference.webp  two filters subtracted, dark
    pixels.webp      single pixels with their values, light          panel.webp       figures, as narrow as they go

Figures in the pictures are those of the machine that draws them. Single pixels are stored without loss, views of the
whole window at seven tenths of their size, to stay small.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from script_options import PROJECT, Arguments, stopped

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QT_LOGGING_RULES"] = "qt.qpa.*=false"

import numpy as np
from PIL import Image

from edgeconv import convolve
from edgeconv.core.optional import import_problem, install
from edgeconv.io.image import read_image, write_image
from edgeconv.view.compute import Workshop
from edgeconv.view.parameters import Parameters
from edgeconv.view.sources import INPUT, OUTPUT, ViewSource
from edgeconv.view.state import find_mode

if TYPE_CHECKING:
    from PySide6.QtGui import QPixmap

    from edgeconv.view.qt.window import ViewWindow

PICTURE = PROJECT / "images" / "input_1024.png"
SIZE = (1280, 800)
EXACT = {"lossless": True, "quality": 100}
SMALL, SHARP = {"quality": 22}, {"quality": 35}
SHARE = 0.7
"""Of their size, at which views of the whole window are kept: what a page shows of them."""
SEEN, PIXEL_ZOOM = (572, 46), 58.0
"""The middle of what pixels.webp shows, and how large."""
LOOK_MILLISECONDS = 10
PARTS = {"pixels": ("canvas", EXACT), "panel": ("tabs", SHARP)}
"""Pictures of a part of the window, and how they are stored: at their own size."""


def wait_for(condition: Callable[[], bool]) -> None:
    """Let the window live until `condition` holds."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop, looking = QEventLoop(), QTimer()
    looking.timeout.connect(lambda: loop.quit() if condition() else None)
    looking.start(LOOK_MILLISECONDS)
    loop.exec()


def settle(window: ViewWindow) -> None:
    """Until everything that was asked for has come and is drawn."""
    wait_for(lambda: window.settled and not window.tasks.busy)
    wait_for(lambda: window.grab() is not None and window.canvas.complete)


def keep(shot: QPixmap, path: Path) -> None:
    """A small WebP of what was grabbed."""
    from PySide6.QtGui import QImage

    image = shot.toImage().convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    pixels = rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3)
    shown = Image.fromarray(pixels)
    if path.stem not in PARTS:
        size = (round(shown.width * SHARE), round(shown.height * SHARE))
        shown = shown.resize(size, Image.Resampling.LANCZOS)
    shown.save(path, "WEBP", method=6, **PARTS.get(path.stem, ("", SMALL))[1])
    print(f"{path} ({path.stat().st_size // 1024} KiB)")


def threshold(window: ViewWindow) -> None:
    """Input beside a mask of its edges."""
    window.set_look("light")
    window.set_parameters(Parameters(filter="sobel", channels="luma", method="sliding", device="cpu", threshold=90.0))
    window.show_mode("split")
    settle(window)


def difference(window: ViewWindow) -> None:
    """Two filters subtracted."""
    window.set_look("dark")
    other = Path(tempfile.gettempdir()) / "sobel.png"
    write_image(convolve(read_image(PICTURE).pixels, "sobel", channels="each", device="cpu"), other)
    window.open_pictures([str(other)])
    window.open_pictures([str(PICTURE)])
    window.set_parameters(Parameters(filter="prewitt", channels="each", device="cpu"))
    window.model.show(left=ViewSource("file", str(other)))
    window.show_mode("difference")
    settle(window)
    other.unlink()


def pixels(window: ViewWindow) -> None:
    """Single pixels with their values."""
    window.set_look("light")
    window.model.show(find_mode("side"), INPUT, OUTPUT)
    window.set_parameters(Parameters(filter="sharpen", channels="each", device="cpu"))
    window.tabs.setCurrentWidget(window.history)
    window.show_mode("side")
    settle(window)
    canvas = window.canvas
    canvas.look(replace(canvas.viewport, centre_x=SEEN[0], centre_y=SEEN[1]).at_zoom(PIXEL_ZOOM))
    canvas.hovered.emit(SEEN)
    settle(window)


def panel(window: ViewWindow) -> None:
    """Figures, as narrow as they go."""
    window.set_look("light")
    window.tabs.setCurrentWidget(window.speed)
    window.show_mode("single")
    window.set_parameters(Parameters(filter="sobel", channels="each", device="cpu"))
    width = window.side.minimumWidth()
    window.splitter.setSizes([window.width() - width, width])
    settle(window)


SHOTS: dict[str, Callable[[ViewWindow], None]] = {
    "threshold": threshold,
    "difference": difference,
    "pixels": pixels,
    "panel": panel,
}
"""The last changes the window's layout."""


def main() -> int:
    """Draw them all."""
    parser = Arguments(__doc__)
    parser.add_argument("--folder", type=Path, default=PROJECT / "docs" / "view", help="Where the pictures go.")
    folder = parser.parse_args().folder
    if problem := import_problem("PySide6.QtWidgets"):
        raise stopped(f"{problem}. Use: {install('gui')}")
    from edgeconv.view.qt.app import open_window
    from edgeconv.view.qt.memory import PLACE_VARIABLE

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as settings:
        os.environ[PLACE_VARIABLE] = str(Path(settings) / "settings.ini")
        window = open_window([str(PICTURE)], {"device": "cpu"}, Workshop())
        window.resize(*SIZE)
        for name, prepare in SHOTS.items():
            prepare(window)
            seen = getattr(window, PARTS[name][0]) if name in PARTS else window
            keep(seen.grab(), folder / f"{name}.webp")
        window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
