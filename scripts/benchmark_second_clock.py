"""Measure kernels of three sizes by `edgeconv bench` and by NVIDIA's nvbench, and set the two times side by side.

    python3 scripts/benchmark_second_clock.py --output docs/results/second_clock_NAME.json

Both flush the last-level cache before each run and time the GPU alone. nvbench is on PyPI as `cuda-bench`. The kernels
are those of `sliding` and `implicit`: float32, 3→3 channels, random weights, stride 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import committed
from script_options import Arguments

from edgeconv.bench.candidates import MethodCandidate, share
from edgeconv.bench.record import read_record
from edgeconv.bench.synthetic import bench_filter
from edgeconv.core.noise import noise_pixels
from edgeconv.core.records import fields_of, to_json
from edgeconv.core.request import make_request
from edgeconv.methods.options import Options
from edgeconv.run.report import header

SIDES = (512, 2048, 4096)
METHODS = ("sliding", "implicit")
GRID = "--strides 1 --dtypes float32 --filters random --channels mix --peers none --devices cuda --no-around --l2 cold"
TIME = "nv/cold/time/gpu/"
TAGS = {"mean_seconds": f"{TIME}mean", "q1_seconds": f"{TIME}q1", "q3_seconds": f"{TIME}q3"}
SAMPLES = "nv/cold/sample_size"


def ours(folder: Path) -> tuple[dict[str, dict[int, float]], dict[str, Any]]:
    """Median seconds by method and side, and the machine."""
    words = [*GRID.split(), "--sizes", ",".join(map(str, SIDES)), "--methods", ",".join(METHODS), "--time-limit", "0.5"]
    command = [sys.executable, "-m", "edgeconv", "bench", *words, "--formats", "json", "-o", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    record = read_record(folder / "bench.json")
    found: dict[str, dict[int, float]] = {}
    for row in record.rows:
        if row.lead_series is not None:
            found.setdefault(row.candidate, {})[row.case.size] = row.lead_series.median_seconds
    return found, {device: fields_of(facts) for device, facts in record.machine.items()}


def run_nvbench(path: Path) -> None:
    """Time the methods by nvbench, in this process, and leave its record at `path`."""
    nvbench, cupy = import_module("cuda.bench"), import_module("cupy")

    def timed(state: Any) -> None:
        side, method = state.get_int64("Side"), state.get_string("Method")
        request = make_request(bench_filter("random", "mix"), channels="mix", stride=1)
        bench = share("cuda", request, noise_pixels(side, side, "float32"))
        stream = cupy.cuda.ExternalStream(state.get_stream().addressof())
        with stream:
            ready = MethodCandidate(method, method, "cuda", Options()).prepare(bench)
            ready.run()
        cupy.cuda.Device().synchronize()

        def launch(launched: Any) -> None:
            with stream:
                ready.run()

        state.exec(launch, batched=False)

    benchmark = nvbench.register(timed)
    benchmark.add_int64_axis("Side", SIDES)
    benchmark.add_string_axis("Method", METHODS)
    nvbench.run_all_benchmarks([sys.argv[0], "--json", str(path), "--devices", "0"])


def theirs(path: Path) -> dict[str, dict[int, dict[str, float]]]:
    """Mean and quartiles, and how many samples, by method and side."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    for state in json.loads(path.read_text("utf-8"))["benchmarks"][0]["states"]:
        axes = {axis["name"]: axis["value"] for axis in state["axis_values"]}
        values = {entry["tag"]: entry["data"][0]["value"] for entry in state["summaries"] if entry.get("data")}
        times = {f"nvbench_{name}": float(values[tag]) for name, tag in TAGS.items() if tag in values}
        times["nvbench_samples"] = int(values[SAMPLES])
        found.setdefault(axes["Method"], {})[int(axes["Side"])] = times
    return found


def main() -> int:
    """Measure by both clocks, print the ratios, and write them."""
    parser = Arguments(__doc__)
    parser.add_argument("--output", type=Path, required=True, help="Write both times to this file, as JSON.")
    parser.add_argument("--nvbench", action="store_true", help="Time by nvbench alone, and write its own record.")
    given = parser.parse_args()
    if given.nvbench:
        run_nvbench(given.output)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own, machine = ours(folder)
        path = folder / "nvbench.json"
        command = [sys.executable, __file__, "--nvbench", "--output", str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        other = theirs(path)
    rows = []
    for method in METHODS:
        for side in SIDES:
            row = {"method": method, "side": side, "edgeconv_median_seconds": own[method][side], **other[method][side]}
            row["ratio"] = round(own[method][side] / other[method][side]["nvbench_mean_seconds"], 4)
            rows.append(row)
            print(row)
    about = {"kind": "second_clock", "nvbench": version("cuda-bench"), "grid": GRID, "machine": machine, "rows": rows}
    committed.write(given.output, to_json({**header(), **about}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
