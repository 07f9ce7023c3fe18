"""Draw the pictures of pages and of the window that the documents show, off the screen, from the project's pictures.

    python3 scripts/screenshots.py pages        docs/pages: two pictures, two folders and a run
    python3 scripts/screenshots.py view         docs/view: four views of the window

Pages need Chromium (tests/browser.py finds it) and compare docs/pictures/coast.jpg with parts of it changed. The window
needs the extra 'gui' and shows images/input_1024.png; figures in it are those of the machine that draws them. Single
pixels are stored without loss, the others smaller than they are.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from PIL import Image

from edgeconv import convolve, read_image
from edgeconv.core.optional import import_problem, install
from edgeconv.io.encoding import write_image

if TYPE_CHECKING:
    from edgeconv.view.qt.window import ViewWindow

PROJECT = Path(__file__).resolve().parent.parent
COAST = PROJECT / "docs" / "pictures" / "coast.jpg"
CHART = PROJECT / "images" / "input_1024.png"


# ---- pages

DESK = (1000, 640)
PAGES = ("pair", "folders", "run")
PLACES = {"same": 0, "shore": 40, "sky": 90, "tower": 140, "waves": 200, "rocks": 260, "harbour": 340}
"""Left sides of the parts of the coast that are compared."""


def pages(output: Path) -> None:
    """Make the pages in a folder that goes again, and draw each as it is seen."""
    sys.path.insert(0, str(PROJECT / "tests"))
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        write_folders()
        make_pages()
        with import_module("browser").Browser(Path(scratch) / "profile", *DESK) as browser:
            for name in PAGES:
                take(browser, Path(scratch) / f"{name}.html", output / f"{name}.webp")


def write_folders() -> None:
    """Pictures of both folders: the same, changed by little and by much, new, missing, of another size."""
    coast = read_image(COAST).pixels
    for side in ("old", "new"):
        Path(side).mkdir()
    for number, (name, left) in enumerate(PLACES.items()):
        part = np.ascontiguousarray(coast[60:340, left : left + 300])
        changed = part.copy()
        changed[60 : 60 + 40 * number, 120 : 120 + 60 * number] ^= 24
        if name != "sky":
            write_image(part, Path("old", f"{name}.png"))
        if name != "waves":
            write_image(changed[::2] if name == "rocks" else changed, Path("new", f"{name}.png"))


def make_pages() -> None:
    """pair.html, folders.html and run.html, with the names that a person in that folder would give."""
    shutil.copy(COAST, "coast.jpg")
    asked = (
        ("diff", "old/harbour.png", "new/harbour.png", "--html", "pair.html"),
        ("diff", "old", "new", "--html", "folders.html"),
        ("run", "coast.jpg", "-o", "run.png", "--filter", "sobel", "--channels", "luma", "--quiet"),
        ("report", "run.json", "--html", "run.html"),
    )
    for words in asked:  # a difference ends with 1
        subprocess.run((sys.executable, "-m", "edgeconv", *words), check=False, stdout=subprocess.DEVNULL)


def take(browser: Any, page: Path, path: Path) -> None:
    """Open a page and store what the window shows."""
    width, height = DESK
    browser.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    browser.open(page)
    browser.run("new Promise((done) => setTimeout(done, 500))")  # thumbnails are decoded when they are seen
    drawing = base64.b64decode(browser.send("Page.captureScreenshot", format="png")["data"])
    drawn = cv2.imdecode(np.frombuffer(drawing, np.uint8), cv2.IMREAD_COLOR)
    shown = cv2.resize(drawn, None, fx=0.75, fy=0.75, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(path), shown, [cv2.IMWRITE_WEBP_QUALITY, 20])


# ---- the window

SEEN, PIXEL_ZOOM = (572, 46), 58.0
"""The middle of what pixels.webp shows, and how large."""


def settle(window: ViewWindow) -> None:
    """Let the window live until everything that was asked for has come."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop, looking = QEventLoop(), QTimer()
    looking.timeout.connect(lambda: loop.quit() if window.settled and not window.tasks.busy else None)
    looking.start(10)
    loop.exec()


def keep(seen: Any, path: Path, share: float, **how: Any) -> None:
    """A WebP of a part of the window, at a share of its size."""
    from PySide6.QtGui import QImage

    image = seen.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    shown = Image.fromarray(rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3))
    if share < 1:
        shown = shown.resize((round(shown.width * share), round(shown.height * share)), Image.Resampling.LANCZOS)
    shown.save(path, "WEBP", method=6, **how)


def view(output: Path) -> None:
    """A mask beside its input, two filters subtracted, single pixels with their values, and figures."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["QT_LOGGING_RULES"] = "qt.qpa.*=false"
    if problem := import_problem("PySide6.QtWidgets"):
        raise SystemExit(f"screenshots: error: {problem}. Use: {install('gui')}")
    from PySide6.QtCore import QPointF

    from edgeconv.view.parameters import Parameters
    from edgeconv.view.qt.app import open_window
    from edgeconv.view.qt.window import PLACE_VARIABLE
    from edgeconv.view.render import RenderService
    from edgeconv.view.state import INPUT, OUTPUT, ViewSource

    with tempfile.TemporaryDirectory() as scratch:
        os.environ[PLACE_VARIABLE] = str(Path(scratch) / "settings.ini")
        window = open_window([str(CHART)], {"device": "cpu"}, RenderService())
        window.resize(1280, 800)

        def chosen(mode: str, **words: Any) -> None:
            window.set_parameters(Parameters(device="cpu", **words))
            window.show_mode(mode)
            settle(window)

        chosen("split", filter="sobel", channels="luma", method="sliding", threshold=90.0)
        keep(window, output / "threshold.webp", 0.7, quality=22)

        other = Path(scratch) / "sobel.png"
        write_image(convolve(read_image(CHART).pixels, "sobel", device="cpu"), other, overwrite=True)
        window.open_pictures([str(other)])
        window.open_pictures([str(CHART)])
        window.model.show(left=ViewSource("file", str(other)))
        chosen("difference", filter="prewitt", channels="each")
        keep(window, output / "difference.webp", 0.7, quality=22)

        window.model.show("side", INPUT, OUTPUT)
        window.tabs.setCurrentWidget(window.history)
        chosen("side", filter="sharpen", channels="each")
        canvas = window.canvas
        canvas.centre = QPointF(*SEEN)
        canvas.zoom_to(PIXEL_ZOOM)
        canvas.hovered.emit(SEEN)
        settle(window)
        keep(canvas, output / "pixels.webp", 1, lossless=True, quality=100)

        window.tabs.setCurrentWidget(window.speed)
        chosen("single", filter="sobel", channels="each")
        window.side.setSizes([2 * window.height() // 5, window.height()])
        settle(window)
        keep(window.tabs, output / "panel.webp", 1, quality=35)
        window.close()


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pages", "view"), help="Which pictures.")
    parser.add_argument("--output", type=Path, help="Where they go. Default: where the documents look for them.")
    asked = parser.parse_args()
    output = (asked.output or PROJECT / "docs" / asked.what).resolve()
    output.mkdir(parents=True, exist_ok=True)
    (pages if asked.what == "pages" else view)(output)


if __name__ == "__main__":
    main()
