"""Measure the methods of two checkouts, case by case, in turns within one run.

    python3 scripts/compare_checkouts.py ../before . --output docs/results/forms_two_cores.json.xz
    python3 scripts/compare_checkouts.py ../before . --device cuda --output docs/results/checkouts_h200.json.xz

Each checkout has a process of its own that imports its package, prepares a plan and times runs when it is told to; the
turns alternate, so that a machine that changes changes both alike. A record has, for each case and side, the least and
the median of all runs, whether both sides gave the same bytes, and their ratios (before / after: above 1 is faster).
On the CPU the cases are those of the engine; with --threads 1 the clock is that of the thread, which others on the
machine hardly disturb. On a GPU they are those of `bench --grid gpu` and some of im2col, textbook and implicit, each
sample with an empty L2.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import committed
from script_options import Arguments

CPU_CASES: tuple[dict[str, Any], ...] = tuple(
    {"dtype": dtype, "filter": name, "channels": channels, "stride": stride, "side": side}
    for dtype, name, channels, stride, side in (
        *(
            ("uint8", name, channels, 1, 4096)
            for name in ("kirsch", "robinson")
            for channels in ("each", "mix", "luma")
        ),
        ("uint8", "laplacian8", "each", 1, 4096),
        ("uint8", "sobel", "each", 1, 4096),
        ("uint8", "random", "mix", 1, 2048),
        ("uint8", "sobel", "luma", 1, 2048),
        *(("uint16", name, "each", 1, 2048) for name in ("kirsch", "robinson", "sobel")),
        *(("float32", name, "each", 1, 2048) for name in ("kirsch", "robinson", "sobel")),
        *((dtype, "laplacian8", "mix", 1, 2048) for dtype in ("uint8", "uint16", "float32")),
        *((dtype, "laplacian8", "mix", stride, 2048) for stride in (2, 3, 4, 6) for dtype in ("uint8", "float32")),
        *(("float32", "random", "mix", stride, side) for side in (512, 2048, 4096) for stride in (1, 2, 3, 4)),
        *((dtype, "sobel", channels, 1, 2048) for dtype, channels in (("uint8", "each"), ("uint8", "mix"))),
        ("uint8", "random", "mix", 3, 2048),
        ("float64", "random", "mix", 1, 2048),
    )
)
CUDA_CASES: tuple[dict[str, Any], ...] = tuple(
    {"dtype": dtype, "filter": name, "channels": channels, "stride": stride, "side": side, "method": method}
    for method, dtype, name, channels, stride, side in (
        *(
            ("sliding", "float32", "random", "mix", stride, side)
            for side in (128, 512, 1024, 2048, 4096)
            for stride in (1, 2, 3)
        ),
        *(
            ("sliding", dtype, name, channels, 1, side)
            for dtype, name, channels in (
                ("uint8", "laplacian8", "each"),
                ("uint8", "random-whole", "mix"),
                ("uint8", "sobel", "each"),
                ("float16", "random", "mix"),
            )
            for side in (128, 512, 4096)
        ),
        *(
            (method, dtype, name, channels, 1, side)
            for method in ("textbook", "im2col", "implicit")
            for dtype, name, channels in (("float32", "random", "mix"), ("uint8", "sobel", "each"))
            for side in (512, 4096)
        ),
    )
)
TURN_SECONDS = 0.03
FEWEST_TURNS, MOST_TURNS = 6, 60
LEAST_SECONDS = {"cpu": 0.0, "cuda": 4e-4}
"""What a sample takes at least: on a GPU its L2 is emptied before."""


def serve() -> None:
    """What runs in each checkout: a line in, a line out."""
    import numpy as np

    from edgeconv.bench.synthetic import bench_filter
    from edgeconv.core.filters import weight_set
    from edgeconv.core.noise import noise_pixels
    from edgeconv.core.problem import make_problem
    from edgeconv.methods import require
    from edgeconv.methods.options import Options
    from edgeconv.runtime.devices import get_device

    timed: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "case" not in asked:
            print(json.dumps([timed() for _ in range(asked["runs"])]), flush=True)
            continue
        case, threads = asked["case"], asked["threads"]
        weights = weight_set(bench_filter(case["filter"], case["channels"]), case["channels"])
        shape = (case["side"], case["side"], 3)
        mode: Any = "abs" if asked["device"] == "cpu" or case["dtype"] == "uint8" else "raw"
        problem = make_problem(shape, case["dtype"], weights, stride=case["stride"], output_mode=mode)
        host = noise_pixels(*shape[:2], case["dtype"])
        device = get_device(asked["device"])
        image = device.empty(problem.input_shape, problem.dtype)
        out = device.empty(problem.output_shape, problem.output_dtype)
        device.copy_in(host, image)
        plan = require(case.get("method", "sliding"), asked["device"]).prepare(problem, Options(threads=threads))
        run = partial(plan.run, image, out)
        run()
        found = np.empty(problem.output_shape, problem.output_dtype)
        device.copy_out(out, found)
        timed = partial(device.time_once, run, "cold") if device.moves_data else partial(_time_on_cpu, run, threads)
        answer = {"sha256": hashlib.sha256(found.tobytes()).hexdigest(), "choice": plan.choice}
        print(json.dumps(answer, default=str), flush=True)


def _time_on_cpu(run: Callable[[], Any], threads: int | None) -> float:
    clock = time.thread_time if threads == 1 else time.perf_counter
    started = clock()
    run()
    return clock() - started


class Side:
    """The process of a checkout."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **words: Any) -> Any:
        """Its answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(words) + "\n")
        stdin.flush()
        return json.loads(stdout.readline())


def compare(case: dict[str, Any], sides: tuple[Side, Side], asked: Any) -> dict[str, Any]:
    """A case of the record."""
    prepared = [side.ask(case=case, threads=asked.threads, device=asked.device) for side in sides]
    once = max(min(min(side.ask(runs=2)) for side in sides), LEAST_SECONDS[asked.device])
    runs = max(1, int(TURN_SECONDS / once))
    turns = min(MOST_TURNS, max(FEWEST_TURNS, int(asked.seconds / (2 * runs * once))))
    samples: tuple[list[float], list[float]] = ([], [])
    for turn in range(turns):
        for number in (0, 1) if turn % 2 else (1, 0):
            samples[number].extend(sides[number].ask(runs=runs))
    before, after = (
        {"least_seconds": min(found), "median_seconds": statistics.median(found), "samples": len(found)}
        for found in samples
    )
    return {
        "case": case,
        "before": {name: float(f"{value:.5g}") for name, value in before.items()},
        "after": {name: float(f"{value:.5g}") for name, value in after.items()},
        "ratio_of_least": round(before["least_seconds"] / after["least_seconds"], 3),
        "ratio_of_medians": round(before["median_seconds"] / after["median_seconds"], 3),
        "same_bytes": prepared[0]["sha256"] == prepared[1]["sha256"],
        "forms": prepared[1]["choice"].get("forms"),
    }


def main() -> None:
    """See the module's docstring."""
    if sys.argv[1:] == ["--serve"]:
        serve()
        return
    parser = Arguments(__doc__)
    parser.add_argument("before", type=Path, help="A checkout of the project.")
    parser.add_argument("after", type=Path, help="Another.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="Where they run.")
    parser.add_argument("--threads", type=int, help="Threads of each plan, 1 for the clock of the thread.")
    parser.add_argument("--seconds", type=float, default=2.0, help="Time for each case.")
    parser.add_argument("--output", type=Path, help="A JSON file to write, packed where it ends with .xz.")
    asked = parser.parse_args()
    sides = (Side(asked.before), Side(asked.after))
    rows = []
    for case in CUDA_CASES if asked.device == "cuda" else CPU_CASES:
        row = compare(case, sides, asked)
        rows.append(row)
        same = "same bytes" if row["same_bytes"] else "other bytes"
        print(" ".join(map(str, case.values())), row["ratio_of_least"], row["ratio_of_medians"], same, flush=True)
    if asked.output:
        head = {"kind": "checkouts", "threads": asked.threads, "cpu": _processor()}
        if asked.device == "cuda":
            head["gpu"] = _gpu()
        lines = ",\n".join(map(json.dumps, rows))
        text = f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}\n'.encode()
        committed.write(asked.output, text)


def _gpu() -> str:
    from edgeconv.runtime.devices import get_device

    return str(get_device("cuda").describe()["name"])


def _processor() -> str:
    from edgeconv.hardware.cpu import jit

    return jit.processor().name


if __name__ == "__main__":
    main()
