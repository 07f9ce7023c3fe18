"""Measure exact figures beside decoding, and how large a page becomes: raw figures to JSON, goals to the screen.

    python3 scripts/benchmark_diff.py --machine NAME              writes docs/results/diff/NAME.json
    python3 scripts/benchmark_diff.py --size 1024 --rounds 3      printed only

Pairs of RGB pictures of 8 bits, PNG: the test picture against itself, against a copy with one level more in 1 % of
its pixels, and against noise, where every pixel differs. Decoding and figures take turns within a round; the figure
of a goal is the median over the rounds of (figures / decoding both, in the same round). Memory is the peak of a
process of its own, less that of the same process with pictures of 16×16 pixels.

    time      exact figures ≤ 1.5 × decoding the two pictures
    memory    ≤ 4 × one decoded picture
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from script_options import PROJECT, Arguments

from edgeconv.core.records import header
from edgeconv.difference.figures import of_pair
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically
from edgeconv.io.image import read_image, write_image
from edgeconv.io.resize import resize
from edgeconv.run import report

RESULTS = PROJECT / "docs" / "results" / "diff"
SOURCE = PROJECT / "images" / "input_2048.png"

TIME_GOAL, MEMORY_GOAL = 1.5, 4.0
CHANGED_SHARE = 0.01
SMALL_SIDE = 16

PEAK_BYTES = """
import re, sys
from pathlib import Path
from edgeconv.difference.inputs import FileInput
from edgeconv.difference.compare import compare
compare(FileInput(sys.argv[1]), [FileInput(sys.argv[2])])
print(1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]))
"""
"""Run in a process of its own, on Linux. (getrusage would give the parent's peak where that was higher.)"""


def others_of(picture: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """What the picture is compared with, by name."""
    rng = np.random.default_rng(0)
    some = picture.copy()
    some[rng.random(picture.shape[:2]) < CHANGED_SHARE] ^= 1
    noise = rng.integers(0, 256, picture.shape, dtype=np.uint8)
    return {"same": picture, "one_percent": some, "noise": noise}


def seconds_of(pair: tuple[Path, Path]) -> tuple[float, float]:
    """(decoding both, exact figures)."""
    started = time.perf_counter()
    reference, other = (read_image(path).pixels for path in pair)
    decoded = time.perf_counter()
    of_pair(reference, other)
    return decoded - started, time.perf_counter() - decoded


def peak_bytes(pair: tuple[Path, Path]) -> int:
    """Peak memory of a fresh process that decodes and compares a pair."""
    words = [sys.executable, "-c", PEAK_BYTES, *map(str, pair)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return int(subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout)


def page_of(pair: tuple[Path, Path], folder: Path) -> dict[str, float]:
    """Size of the page, and seconds for the whole command."""
    page = folder / "page.html"
    words = [sys.executable, "-m", "edgeconv", "diff", *map(str, pair), "--html", str(page), "--overwrite"]
    started = time.perf_counter()
    subprocess.run([*words, "--page-limit", "1G"], capture_output=True, check=False, cwd=PROJECT)
    return {"page_bytes": page.stat().st_size, "whole_command_seconds": time.perf_counter() - started}


def measure(size: int, rounds: int) -> dict[str, Any]:
    """The record."""
    picture = resize(read_image(SOURCE).pixels, size)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        small, reference = folder / "small.png", folder / "reference.png"
        write_image(picture[:SMALL_SIDE, :SMALL_SIDE], small)
        write_image(picture, reference)
        pairs = {}
        for name, other in others_of(picture).items():
            pairs[name] = reference, folder / f"{name}.png"
            write_image(other, pairs[name][1])
        samples: dict[str, list[tuple[float, float]]] = {name: [] for name in pairs}
        for pair in pairs.values():
            seconds_of(pair)  # not timed: first use of libraries
        for _ in range(rounds):
            for name, pair in pairs.items():
                samples[name].append(seconds_of(pair))
        without = peak_bytes((small, small))
        for name, pair in pairs.items():
            peak = peak_bytes(pair)
            results[name] = {
                "figures_over_decoding": statistics.median(figures / decoding for decoding, figures in samples[name]),
                "decoding_seconds": [decoding for decoding, _ in samples[name]],
                "figures_seconds": [figures for _, figures in samples[name]],
                "peak_bytes": peak,
                "peak_over_one_picture": (peak - without) / picture.nbytes,
                "file_bytes": [path.stat().st_size for path in pair],
                **page_of(pair, folder),
            }
    return {
        **header(),
        "kind": "benchmark_diff",
        "versions": installed_versions(),
        "picture": report.describe_pixels(picture),
        "picture_bytes": picture.nbytes,
        "peak_bytes_of_small_pair": without,
        "goals": {"figures_over_decoding": TIME_GOAL, "peak_over_one_picture": MEMORY_GOAL},
        "pairs": results,
    }


def main() -> int:
    """Measure, print, keep; 1 where a goal is missed."""
    parser = Arguments(__doc__)
    parser.add_argument("--machine", help="Write the record of this name under docs/results/diff. Default: none.")
    parser.add_argument("--size", type=int, default=4096, help="Side of the pictures, in pixels.")
    parser.add_argument("--rounds", type=int, default=9, help="Rounds; medians are shown.")
    arguments = parser.parse_args()
    record = measure(arguments.size, arguments.rounds)
    missed = 0
    for name, found in record["pairs"].items():
        ratio, memory = found["figures_over_decoding"], found["peak_over_one_picture"]
        missed += ratio > TIME_GOAL or memory > MEMORY_GOAL
        print(
            f"{name:<12} decoding {1000 * statistics.median(found['decoding_seconds']):.0f} ms, "
            f"figures {1000 * statistics.median(found['figures_seconds']):.0f} ms: {ratio:.2f} × (goal {TIME_GOAL}); "
            f"memory {memory:.2f} × (goal {MEMORY_GOAL:g}); page {found['page_bytes'] / 2**20:.1f} MiB "
            f"in {found['whole_command_seconds']:.1f} s"
        )
    if arguments.machine:
        RESULTS.mkdir(parents=True, exist_ok=True)
        data = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        write_bytes_atomically(RESULTS / f"{arguments.machine}.json", data.encode())
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
