"""Draw the screenshots of pages in docs/pages: two pictures, two folders and a run, on a desk and on a phone.

    python3 scripts/page_screenshots.py                        writes docs/pages/NAME.webp
    PYTHONPATH=OTHER python3 scripts/page_screenshots.py --suffix _before     the pages of another version, beside them

Needs Chromium (tests/browser.py finds it). What is compared is docs/pictures/coast.jpg with parts of it changed.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from script_options import PROJECT, Arguments

from edgeconv.diff.request import run_request
from edgeconv.diff.results import Wanted
from edgeconv.io.image import read_image, write_image

sys.path.insert(0, str(PROJECT / "tests"))

Browser: Any = import_module("browser").Browser

OUTPUT = PROJECT / "docs" / "pages"
PICTURE = PROJECT / "docs" / "pictures" / "coast.jpg"
WIDTH, HEIGHT = 1000, 640
PHONE_WIDTH, PHONE_HEIGHT = 390, 720
SHOWN = 0.75
"""Of their size, and with loss, to stay small."""
QUALITY = 20


def main() -> int:
    """Make the pages in a folder that goes again, and draw each as it is seen."""
    parser = Arguments(__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="Where the pictures go.")
    parser.add_argument("--suffix", default="", help="What ends each name.")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        draw_folders(folder)
        make_pages(folder)
        with Browser(folder / "profile", WIDTH, HEIGHT) as browser:
            for name, page, phone in (
                ("pair", "pair.html", False),
                ("pair_phone", "pair.html", True),
                ("folders", "many.html", False),
                ("run", "run.html", False),
            ):
                take(browser, folder / page, phone, arguments.output / f"{name}{arguments.suffix}.webp")
    return 0


def make_pages(folder: Path) -> None:
    """pair.html, many.html and run.html, with the names that a person in that folder would give."""
    with contextlib.chdir(folder):
        run_request(["old/harbour.png", "new/harbour.png"], None, None, False, Wanted(html="pair.html"))
        run_request(["old", "new"], None, None, False, Wanted(html="many.html"))
        edgeconv = (sys.executable, "-m", "edgeconv")
        shutil.copy(PICTURE, "coast.jpg")
        run = (*edgeconv, "run", "coast.jpg", "-o", "out/", "--filter", "sobel", "--channels", "luma")
        subprocess.run((*run, "--quiet"), check=True)
        (made,) = Path("out").glob("*.json")
        subprocess.run((*edgeconv, "report", made, "--html", "run.html"), check=True, stdout=subprocess.DEVNULL)


def draw_folders(folder: Path) -> None:
    """Pictures of both folders: the same, changed by little and by much, new, missing, of another size."""
    coast = read_image(PICTURE).pixels
    parts = {name: np.ascontiguousarray(coast[60:340, left : left + 300]) for name, left in PLACES.items()}
    for side in ("old", "new"):
        (folder / side).mkdir()
    for number, (name, part) in enumerate(parts.items()):
        changed = part.copy()
        changed[60 : 60 + 40 * number, 120 : 120 + 60 * number] ^= 24
        if name != "sky":
            write_image(part, folder / "old" / f"{name}.png")
        if name != "waves":
            write_image(changed[::2] if name == "rocks" else changed, folder / "new" / f"{name}.png")


PLACES = {"same": 0, "shore": 40, "sky": 90, "tower": 140, "waves": 200, "rocks": 260, "harbour": 340}


def take(browser: Browser, page: Path, phone: bool, path: Path) -> None:
    """Open a page, choose the swipe view where there is one, and store what the window shows."""
    size = (PHONE_WIDTH, PHONE_HEIGHT) if phone else (WIDTH, HEIGHT)
    browser.send("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=phone)
    browser.send("Emulation.setTouchEmulationEnabled", enabled=phone)
    browser.open(page)
    if page.name == "pair.html":
        browser.run("document.getElementById('mode-swipe').click()")
        browser.drawn()
        # The version before has no such buttons.
        browser.run("document.getElementById('draw-region')?.click()")
        browser.run("document.getElementById('ignore-difference')?.click()")
        browser.key("0")
    browser.run("new Promise((done) => setTimeout(done, 500))")  # thumbnails are decoded when they are seen
    drawing = path.with_suffix(".png")
    browser.screenshot(drawing)
    import cv2

    shown = cv2.resize(cv2.imread(str(drawing)), None, fx=SHOWN, fy=SHOWN, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(path), shown, [cv2.IMWRITE_WEBP_QUALITY, QUALITY])
    drawing.unlink()


if __name__ == "__main__":
    sys.exit(main())
