"""Peak memory of `edgeconv run` on a 4096×4096 8-bit picture, above the interpreter with the same libraries loaded.

    python3 scripts/benchmark_memory.py [--methods opencv,sliding,im2col] [--output docs/results/memory_cpu.json]

The goal is at most 8 × the decoded picture. Each figure is the high-water mark of a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically
from edgeconv.io.image import write_image
from edgeconv.methods import method_names
from edgeconv.run import report

PROJECT = Path(__file__).resolve().parent.parent
SIDE = 4096
PICTURE_BYTES = SIDE * SIDE * 3
GOAL_IN_PICTURES = 8

BASELINE = """
import edgeconv.cli, edgeconv.run.whole, cv2
from edgeconv.runtime.devices import get_device
from edgeconv.methods import find
method = find({method!r}, "cpu").load()
method.unavailable_reason()
print(get_device("cpu").peak_bytes())
"""

RUN = """
import sys
from edgeconv.cli import main
from edgeconv.runtime.devices import get_device
try:
    main()
except SystemExit as end:
    if end.code:
        raise
print(get_device("cpu").peak_bytes())
"""
"""The command, and then the mark of its whole process: the picture, and the instruments that measure afterwards."""


def draw(path: Path) -> None:
    """A picture that compresses like a photograph, from a fixed seed."""
    import cv2
    import numpy as np

    noise = np.random.default_rng(0).integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)
    write_image(cv2.GaussianBlur(noise, (0, 0), 3), path)


def measure(method: str, channels: str, picture: Path, folder: Path) -> dict[str, Any]:
    """Peak of one run, of the interpreter alone, and their difference in decoded pictures."""

    def output_of(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], cwd=PROJECT, capture_output=True, text=True, check=True)
        return done.stdout

    baseline = int(output_of("-c", BASELINE.format(method=method)))
    words = ("run", str(picture), "--device", "cpu", "--method", method, "--channels", channels)
    target = folder / f"{method}_{channels}.png"
    peak = int(output_of("-c", RUN, *words, "-o", str(target)).split()[-1])
    pictures = (peak - baseline) / PICTURE_BYTES
    print(f"{method:<10} {channels:<5} {pictures:5.2f} pictures above the interpreter (goal {GOAL_IN_PICTURES})")
    return {
        "method": method,
        "channels": channels,
        "peak_bytes": peak,
        "interpreter_bytes": baseline,
        "pictures_above_interpreter": pictures,
        "goal_pictures": GOAL_IN_PICTURES,
    }


def main() -> int:
    """Measure every method; 1 where one is above the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(method_names("cpu")))
    parser.add_argument("--output", type=Path, default=PROJECT / "docs" / "results" / "memory_cpu.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        picture = folder / "picture.png"
        draw(picture)
        rows = [
            measure(method, channels, picture, folder)
            for method in arguments.methods.split(",")
            for channels in ("mix", "each")
        ]
    record = {**report.header(), "kind": "memory", "side": SIDE, "versions": installed_versions(), "rows": rows}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomically(arguments.output, report.to_json(record))
    return 0 if all(row["pictures_above_interpreter"] <= GOAL_IN_PICTURES for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
