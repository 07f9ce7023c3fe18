"""Measure the floor and kernels on a GPU after the L2 was flushed by writing, and after it was flushed by reading.

    python3 scripts/benchmark_flush.py --output docs/results/flush_NAME.json

`edgeconv bench` flushes by writing more than the L2 holds. Its last lines then wait to be written back, which the next
kernel pays for; lines that were only read are dropped. Both are shown, taken by turns: what a kernel takes after each,
and its share of the floor after the same.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import committed
from script_options import Arguments

from edgeconv.bench.candidates import CopyCandidate, MethodCandidate, share
from edgeconv.bench.synthetic import bench_filter
from edgeconv.core.noise import noise_pixels
from edgeconv.core.records import to_json
from edgeconv.core.request import make_request
from edgeconv.hardware.versions import installed_versions
from edgeconv.methods.options import Options
from edgeconv.run.report import header

SIDES = (512, 1024, 2048, 4096)
CASES = (("float32", "random", "mix", 1), ("float32", "random", "mix", 2), ("uint8", "laplacian8", "each", 1))
SAMPLES = 60
FLUSHES_PER_L2 = 4
"""How many times the size of the L2 is written or read."""


def measured(case: tuple[str, str, str, int], side: int, spare: Any) -> list[dict[str, Any]]:
    """Median seconds of the floor and of `sliding`, after each kind of flush."""
    cupy = import_module("cupy")
    dtype, name, channels, stride = case
    request = make_request(bench_filter(name, channels), channels=channels, stride=stride)
    bench = share("cuda", request, noise_pixels(side, side, dtype))
    candidates = {"floor": CopyCandidate("cuda"), "sliding": MethodCandidate("sliding", "sliding", "cuda", Options())}
    runs = {label: candidate.prepare(bench).run for label, candidate in candidates.items()}
    total = cupy.empty((), cupy.uint64)
    flushes: dict[str, Callable[[], Any]] = {"dirty": lambda: spare.fill(1), "clean": lambda: spare.sum(out=total)}
    times: dict[tuple[str, str], list[float]] = {}
    for number in range(SAMPLES + 1):
        for label, run in runs.items():
            for kind, flush in flushes.items():
                start, stop = cupy.cuda.Event(), cupy.cuda.Event()
                flush()
                flush()
                start.record()
                run()
                stop.record()
                stop.synchronize()
                if number:  # the first is the warm-up
                    seconds = cupy.cuda.get_elapsed_time(start, stop) / 1e3
                    times.setdefault((label, kind), []).append(seconds)
    rows = []
    for kind in flushes:
        floor, own = (statistics.median(times[label, kind]) for label in runs)
        row = {"dtype": dtype, "filter": name, "channels": channels, "stride": stride, "side": side, "flush": kind}
        rows.append({**row, "floor_seconds": floor, "sliding_seconds": own, "share": round(floor / own, 3)})
    return rows


def main() -> int:
    """Measure, print the rows, and write them."""
    parser = Arguments(__doc__)
    parser.add_argument("--output", type=Path, required=True, help="Write the times to this file, as JSON.")
    given = parser.parse_args()
    cupy = import_module("cupy")
    l2_bytes = cupy.cuda.Device().attributes["L2CacheSize"]
    spare = cupy.ones(FLUSHES_PER_L2 * l2_bytes // 8, cupy.uint64)
    rows = []
    for case in CASES:
        for side in SIDES:
            rows += measured(case, side, spare)
            print(*rows[-2:], sep="\n")
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    about = {"kind": "flush", "device": device, "samples": SAMPLES, "versions": installed_versions(), "rows": rows}
    committed.write(given.output, to_json({**header(), **about}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
