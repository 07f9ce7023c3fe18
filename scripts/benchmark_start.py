"""How long the first commands take beside the shortest script of OpenCV that does the same, by turns, minima.

    python3 scripts/benchmark_start.py [--turns 9]

The picture is docs/pictures/coast.jpg. Machine code is in the cache, but for `first run`, which has an empty one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "coast.jpg"
FILTER = "import cv2; a = cv2.imread({0!r}); cv2.imwrite('o.png', cv2.convertScaleAbs(cv2.Sobel(a, cv2.CV_16S, 1, 0)))"
DIFFER = "import cv2; d = cv2.absdiff(cv2.imread('a.png'), cv2.imread('b.png')); print(d.max(), (d != 0).sum())"
PAIR = (
    "import cv2; a = cv2.resize(cv2.imread({0!r}), (512, 512)); cv2.imwrite('a.png', a); cv2.imwrite('b.png', 255 - a)"
)
BARE = ("--samples", "0", "--check", "none")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9, help="Of each command.")
    turns = parser.parse_args().turns
    python, edgeconv = (sys.executable, "-c"), (sys.executable, "-m", "edgeconv")
    run = (*edgeconv, "run", str(PICTURE), "-o", "edges.png", "--overwrite")
    calls = {
        "OpenCV: read, Sobel, write": (*python, FILTER.format(str(PICTURE))),
        "edgeconv run, not measured": (*run, *BARE),
        "edgeconv run": run,
        "edgeconv run, first run": (*run, *BARE),
        "OpenCV: difference of a pair": (*python, DIFFER),
        "edgeconv diff": (*edgeconv, "diff", "a.png", "b.png"),
        "import numpy": (*python, "import numpy"),
        "edgeconv --help": (*edgeconv, "--help"),
    }
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run((*python, PAIR.format(str(PICTURE))), cwd=folder, check=True)
        for turn in range(turns):
            for name, call in calls.items():
                cache = {"EDGECONV_CACHE": os.path.join(folder, f"cache-{turn}")} if "first" in name else {}
                began = time.perf_counter()
                subprocess.run(call, cwd=folder, env=os.environ | cache, capture_output=True, check=False)
                seconds[name] = min(seconds.get(name, 1e9), time.perf_counter() - began)
    beside = 1.0
    for name, least in seconds.items():
        beside = beside if name.startswith("edgeconv") else least
        print(f"{name:<30} {1e3 * least:6.0f} ms  {least / beside:5.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
