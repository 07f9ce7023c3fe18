"""Measure what `auto` takes beside every single choice: calls with arrays of the host, one file, a folder of files.

    python3 scripts/benchmark_auto.py --output docs/results/auto_NAME.json [--sizes 128,512] [--pictures 100]
    python3 scripts/committed.py                   puts it beside the other small records

calls    edgeconv.convolve with NumPy arrays, laplacian8 and all channels mixed, in one process, by turns
file     the whole command `edgeconv run`, a process for each
batch    the whole command `edgeconv batch` on a folder of PNGs, a process for each

A ratio is the time of what `auto` took over that of the best single choice, both as measured when asked for by name;
`auto` itself is timed too. The goal is 1.15. Without a profile of `edgeconv tune` unless EDGECONV_PROFILE names one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from script_options import Arguments, stopped

import edgeconv
from edgeconv.core.noise import noise_pixels
from edgeconv.core.option import AUTO
from edgeconv.core.timing import Budget, Sampler, interleave
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically
from edgeconv.io.image import write_image
from edgeconv.run.report import header
from edgeconv.runtime.auto import runnable
from edgeconv.runtime.devices import get_device
from edgeconv.runtime.forecast import CPU_METHODS, CUDA_METHOD
from edgeconv.runtime.profile import PLACE_VARIABLE

GOAL = 1.15
DTYPES, STRIDES = ("uint8", "uint16", "float32"), (1, 2, 3)
BUDGET = Budget(min_samples=5, max_samples=60, time_limit_seconds=0.12, turns=3)
FILE_SIDES, FILE_REPEATS = (512, 2048), 3
BATCH_REPEATS = 2
DISTINCT = 8
"""Different pictures of a folder; the others are further names of these."""

Choice = tuple[str, str]
"""Method and device; `auto` twice where edgeconv chooses."""


def choices() -> list[Choice]:
    """`auto`, and every method that it may take without a profile."""
    able = [("sliding", "cpu"), ("opencv", "cpu"), ("im2col", "cpu"), (CUDA_METHOD, "cuda")]
    assert {name for name, device in able if device == "cpu"} == set(CPU_METHODS)
    return [(AUTO, AUTO), *(each for each in able if each in runnable())]


def row(part: str, case: str, seconds: dict[Choice, float], taken: Choice, why: str) -> dict[str, Any]:
    """One case of the record, printed as well."""
    single = {each: value for each, value in seconds.items() if each != (AUTO, AUTO)}
    best = min(single, key=lambda each: single[each])
    shown = {" on ".join(each): float(f"{value:.4g}") for each, value in seconds.items()}
    found = {
        "part": part,
        "case": case,
        "taken": " on ".join(taken),
        "best": " on ".join(best),
        "ratio": round(single[taken] / single[best], 3),
        "ratio_of_auto_itself": round(seconds[AUTO, AUTO] / single[best], 3),
        "seconds": shown,
        "why": why,
    }
    times = ", ".join(f"{name} {value * 1e3:.4g}" for name, value in shown.items())
    print(f"{found['ratio']:6.2f}  {part:5} {case:22} took {found['taken']:16} (ms: {times})", flush=True)
    return found


def calls(sizes: list[int]) -> list[dict[str, Any]]:
    """Arrays of the host: every type and stride at every size."""
    rows = []
    for side in sizes:
        for dtype in DTYPES:
            image = noise_pixels(side, side, dtype)
            for stride in STRIDES:
                turns = []
                for method, device in choices():

                    def timed(method: str = method, device: str = device, stride: int = stride) -> float:
                        started = time.perf_counter()
                        edgeconv.convolve(image, "laplacian8", method, stride=stride, device=device)  # noqa: B023
                        return time.perf_counter() - started

                    timed()  # its plan is made
                    turns.append((Sampler(timed, BUDGET), lambda timed=timed: timed()))
                interleave(turns)
                medians = [sampler.series.statistics.median_seconds for sampler, _ in turns]
                plan = edgeconv.plan(image.shape, dtype, stride=stride)
                seconds = dict(zip(choices(), medians, strict=True))
                case = f"{side} {dtype} s{stride}"
                rows.append(row("calls", case, seconds, (plan.method, plan.device), plan.why))
    return rows


def load() -> float | None:
    """Processes that wanted to run in the last minute, so that a reader knows what else was at work."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def command(*words: object) -> tuple[float, str]:
    """Seconds of a whole command, and what it printed."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "edgeconv", *map(str, words)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise stopped(f"edgeconv {' '.join(map(str, words))}: {done.stderr}")
    return time.perf_counter() - started, done.stdout


def turns_of(repeats: int, once: Any) -> dict[Choice, float]:
    """Medians of `once(choice)`, going round all choices."""
    found: dict[Choice, list[float]] = {}
    for _ in range(repeats):
        for choice in choices():
            found.setdefault(choice, []).append(once(*choice))
    return {choice: statistics.median(times) for choice, times in found.items()}


def files(folder: Path) -> list[dict[str, Any]]:
    """One picture, file to file."""
    rows = []
    for side in FILE_SIDES:
        source, target, report = folder / f"{side}.png", folder / "out.png", folder / "out.json"
        write_image(noise_pixels(side, side, "uint8"), source)

        def once(method: str, device: str, source: Path = source, target: Path = target) -> float:
            return command("run", source, "-m", method, "--device", device, "-o", target, "--overwrite")[0]

        seconds = turns_of(FILE_REPEATS, once)
        once(AUTO, AUTO)
        taken = json.loads(report.read_text(encoding="utf-8"))
        choice = (taken["method"]["name"], taken["device"]["kind"])
        rows.append(row("file", f"{side} uint8 png", seconds, choice, taken["method"]["why"]))
    return rows


def batch(folder: Path, pictures: int, side: int) -> list[dict[str, Any]]:
    """A folder of PNGs that compress like photographs."""
    import cv2

    source = folder / "pictures"
    source.mkdir()
    for index in range(pictures):
        path = source / f"{index:04}.png"
        if index < DISTINCT:
            write_image(cv2.GaussianBlur(noise_pixels(side + index, side, "uint8"), (0, 0), 3), path)
        else:
            os.link(source / f"{index % DISTINCT:04}.png", path)

    said: dict[Choice, str] = {}

    def once(method: str, device: str) -> float:
        target = folder / "edges"
        shutil.rmtree(target, ignore_errors=True)
        seconds, said[method, device] = command("batch", source, "-m", method, "--device", device, "-o", target)
        return seconds

    seconds = turns_of(BATCH_REPEATS, once)
    found = re.search(r"^method +(\S+) on (\S+) \((.*)\)$", said[AUTO, AUTO], re.MULTILINE)
    assert found is not None, said[AUTO, AUTO]
    return [row("batch", f"{pictures} of {side} uint8 png", seconds, (found[1], found[2]), found[3])]


def main() -> None:
    """Measure, print and write the record."""
    parser = Arguments(__doc__)
    parser.add_argument("--output", type=Path, required=True, help="Write the figures to this file, as JSON.")
    parser.add_argument("--sizes", default="128,256,512,1024,2048,4096", help="Sides of the pictures, in pixels.")
    parser.add_argument("--pictures", type=int, default=100, help="Pictures of the batch.")
    parser.add_argument("--side", type=int, default=2048, help="Side of the batch's pictures, in pixels.")
    asked = parser.parse_args()
    started, load_before = time.perf_counter(), load()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault(PLACE_VARIABLE, str(folder / "none.json"))
        rows = files(folder) + batch(folder, asked.pictures, asked.side)
        rows += calls([int(size) for size in asked.sizes.split(",")])
    above = [found for found in rows if found["ratio"] > GOAL]
    record: dict[str, Any] = {
        **header(),
        "kind": "auto",
        "versions": installed_versions(),
        "devices": {device: get_device(device).describe() for device in sorted({d for _, d in runnable()})},
        "load_average": {"before": load_before, "after": load()},
        "goal": GOAL,
        "worst_ratio": max(found["ratio"] for found in rows),
        "rows": rows,
        "wall_seconds": round(time.perf_counter() - started, 1),
    }
    write_bytes_atomically(asked.output, (json.dumps(record, indent=1) + "\n").encode())
    print(f"{len(rows) - len(above)} of {len(rows)} within {GOAL}; the worst {record['worst_ratio']}")
    for found in above:
        print(f"  {found['ratio']:.2f}  {found['part']} {found['case']}: took {found['taken']}, best {found['best']}")


if __name__ == "__main__":
    main()
