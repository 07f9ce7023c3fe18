"""Count what each step of the ladder of convolutions asks of one NVIDIA GPU, with Nsight Compute, and keep it as JSON.

    python scripts/profile_conv_ladder.py OUTPUT.json

4096 × 4096, stride 1, the usual thread blocks, one run a step from a cold L2. Needs `ncu` on the path and leave to read
the counters. The script starts itself under `ncu` (with --run) and adds up the launches of a step.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

from script_options import SUPPRESS, Arguments

from edgeconv.bench.ladders.base import ProfiledStep

SIZE, STRIDE = 4096, 1
COUNTERS = {
    "l1_wavefronts": "l1tex__data_pipe_lsu_wavefronts.sum",
    "instructions": "smsp__inst_executed.sum",
    "dram_bytes": "dram__bytes.sum",
    "nanoseconds": "gpu__time_duration.sum",
}
"""Field of the record and name of the counter; a wavefront is what the L1 does in a cycle."""
BUSY = {
    "dram_busy_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_busy_percent": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_busy_percent": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "issue_busy_percent": "sm__inst_issued.avg.pct_of_peak_sustained_active",
}
"""The same for shares, which are the mean of a step's launches."""
RANGE = "step:"


def run_steps() -> None:
    """Each step twice, the second time in a range of its name."""
    import cupy

    from edgeconv.bench.ladders.conv import contenders, make_case
    from edgeconv.runtime.devices import get_device

    device = get_device("cuda")
    work = make_case(SIZE, STRIDE, device)
    for contender in contenders(work, "usual", device):
        contender.run()
        device.synchronize()
        cupy.cuda.nvtx.RangePush(f"{RANGE}{contender.step}")
        contender.run()
        device.synchronize()
        cupy.cuda.nvtx.RangePop()


def parse(text: str) -> list[ProfiledStep]:
    """A row a step from ncu's CSV of raw counters, in the order of the steps."""
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith('"ID"'))
    found: dict[str, list[dict[str, str]]] = {}
    for entry in list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))[1:]:  # the first row has the units
        names = [value for value in entry.values() if value and RANGE in value]
        found.setdefault(names[0].partition(RANGE)[2].partition(":")[0], []).append(entry)

    def values(launches: list[dict[str, str]], counter: str) -> list[float]:
        return [float(launch[counter].replace(",", "")) for launch in launches]

    return [
        ProfiledStep(
            step=step,
            launches=len(launches),
            **{name: sum(values(launches, counter)) for name, counter in COUNTERS.items()},
            **{name: sum(values(launches, counter)) / len(launches) for name, counter in BUSY.items()},
        )
        for step, launches in found.items()
    ]


def main() -> int:
    """Profile and write, or with --run be what is profiled."""
    parser = Arguments(__doc__)
    parser.add_argument("output", type=Path, nargs="?", help="Write the counts to this file, as JSON.")
    parser.add_argument("--run", action="store_true", help=SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run_steps()
        return 0
    from edgeconv.bench.ladders.base import PROFILE, LadderProfile
    from edgeconv.bench.record import to_json
    from edgeconv.run.report import DeviceFacts, header
    from edgeconv.runtime.devices import get_device

    words = ["ncu", "--clock-control", "none", "--cache-control", "all", "--nvtx"]
    words += ["--nvtx-include", f"regex:{RANGE}.*/", "--print-nvtx-rename", "kernel"]
    words += ["--print-units", "base", "--csv", "--page", "raw"]
    words += ["--metrics", ",".join([*COUNTERS.values(), *BUSY.values()]), sys.executable, __file__, "--run"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
        return done.returncode
    machine = DeviceFacts(**get_device("cuda").describe())
    record = LadderProfile(**header(), kind=PROFILE, size=SIZE, stride=STRIDE, machine=machine, rows=parse(done.stdout))
    arguments.output.write_bytes(to_json(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
