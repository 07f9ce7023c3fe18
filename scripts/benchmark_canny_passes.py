"""Measure the passes of Canny on a GPU: each alone is the time of the first so many, less those before it.

    python3 scripts/benchmark_canny_passes.py --output docs/results/canny_passes_NAME.json

The pictures are those of benchmark_canny.py. Times are medians by CUDA events with a cold L2, beside a copy of the
picture: as many bytes read as written. Each result is compared with OpenCV's before it is timed. Compare within a run
only.
"""

from __future__ import annotations

import json
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import committed
import numpy as np
from benchmark_canny import CASES, HIGH, LOW, Case, by_opencv
from script_options import Arguments, stopped

from edgeconv.methods.cuda.canny import plan_canny
from edgeconv.run.report import header
from edgeconv.runtime.devices import get_device

PASSES = ("first_pass", "label", "join", "expand")
SAMPLES = 15


def measure(case: Case, size: int) -> dict[str, Any]:
    """One row."""
    import cupy

    name, drawn, settings = case
    picture, device = drawn(size), get_device("cuda")
    plan = plan_canny(picture.shape, picture.dtype, settings)
    image, out = cupy.asarray(picture), cupy.empty(picture.shape[:2], np.uint8)
    if not np.array_equal(cupy.asnumpy(plan.run(image, out)), by_opencv(picture, settings)):
        raise stopped(f"{name} at {size}: the edges are not OpenCV's.")
    passes = plan.passes(image, out)

    def first_of_them(count: int) -> None:
        for launch in passes[:count]:
            launch()

    calls = [device.floor(picture.nbytes, picture.nbytes)]
    calls += [partial(first_of_them, count) for count in range(1, len(passes) + 1)]
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(SAMPLES):
        for call, found in zip(calls, samples, strict=True):
            found.append(1e6 * device.time_once(call))
    copy, *until = (statistics.median(found) for found in samples)
    row: dict[str, Any] = {"case": name, "size": size, "copy_us": round(copy, 2)}
    for which, before, after in zip(PASSES, (0.0, *until), until, strict=False):
        row[f"{which}_us"] = round(after - before, 2)
    row["whole_us"] = round(until[-1], 2)
    print(row, flush=True)
    return row


def main() -> None:
    """Measure, print and write the record."""
    parser = Arguments(__doc__)
    parser.add_argument("--sizes", default="1024,4096", help="Sides of the pictures, with commas.")
    parser.add_argument("--output", type=Path, required=True, help="Write the figures to this file, as JSON.")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    record: dict[str, Any] = {
        **header(),
        "kind": "canny passes",
        "device": get_device("cuda").describe(),
        "low": LOW,
        "high": HIGH,
        "rows": [measure(case, size) for case in CASES for size in sizes],
    }
    committed.write(asked.output, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
