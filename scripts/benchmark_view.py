"""Measure how soon the window shows a filtered picture, and how long its event loop is held up: figures to JSON.

    python3 scripts/benchmark_view.py --machine NAME       writes docs/results/view/NAME.json
    python3 scripts/benchmark_view.py --rounds 3           printed only

Opening: `edgeconv view images/input_2048.png` in a process of its own, off the screen, with empty settings, until the
output has been painted. "Process" counts from the start of the process, "application" from the command's first line.
Stall: a window shows a 4096×4096 picture and is told to compute it by each method; a timer of one millisecond ticks on
the interface thread meanwhile, and the longest time between two ticks is the longest stall, painting and measuring the
speed included. Other work on the machine adds to both, so each process waits for a quiet moment, what was idle is kept,
and goals are for medians of several rounds; all are kept.

    opening    ≤ 1 s after the process has started, ≤ 2 s with it
    stall      ≤ 50 ms
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from script_options import PROJECT, Arguments

from edgeconv.bench.watch import read_cpu_use
from edgeconv.core.noise import noise_pixels
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically
from edgeconv.io.image import write_image
from edgeconv.run import report
from edgeconv.runtime.devices import get_device

RESULTS = PROJECT / "docs" / "results" / "view"
SOURCE = PROJECT / "images" / "input_2048.png"
STALL_SIDE = 4096
METHODS = ("opencv", "sliding", "im2col", "reference")

QUIET_SHARE, QUIET_PATIENCE_SECONDS, LOOK_SECONDS = 0.9, 4.0, 0.4
"""Each process begins once so much of the machine has been idle for a moment, or patience is over."""

APPLICATION_GOAL, PROCESS_GOAL, STALL_GOAL = 1.0, 2.0, 0.05

OPENING = """
import time
began = time.perf_counter()
import sys
from edgeconv.hardware.process import seconds_since_process_start
before = seconds_since_process_start() - (time.perf_counter() - began)
from edgeconv.cli import main
from edgeconv.view.qt import start
require_qt = start.require_qt
def watch():
    require_qt()
    from edgeconv.view.qt.window import ViewWindow
    class Watched(ViewWindow):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.first_view.connect(self.seen)
        def seen(self):
            seconds = time.perf_counter() - began
            print(seconds, before + seconds, flush=True)
            self.close()
    from edgeconv.view.qt import app
    app.ViewWindow = Watched
start.require_qt = watch
sys.argv = ["edgeconv", "view", *sys.argv[1:]]
main()
"""
"""The command itself, with someone who watches its window."""

STALLS = """
import json, sys, time
from PySide6.QtCore import QEventLoop, Qt, QTimer
from edgeconv.view.parameters import Parameters
from edgeconv.view.qt.app import open_window
from edgeconv.view.render import RenderService
window = open_window([sys.argv[1]], {"device": "cpu"}, RenderService())
longest, last = 0.0, time.perf_counter()
def tick():
    global longest, last
    now = time.perf_counter()
    longest, last = max(longest, now - last), now
ticking = QTimer(timerType=Qt.TimerType.PreciseTimer)
ticking.timeout.connect(tick)
ticking.start(1)
def settle():
    loop, looking = QEventLoop(), QTimer()
    looking.timeout.connect(lambda: loop.quit() if window.settled and not window.tasks.busy else None)
    looking.start(20)
    loop.exec()
settle()
found = {}
for method in sys.argv[2:]:
    longest, last = 0.0, time.perf_counter()
    window.set_parameters(Parameters(filter="laplacian4", method=method, device="cpu"))
    settle()
    found[method] = longest
window.close()
print(json.dumps(found))
"""


def run_python(code: str, *arguments: str) -> str:
    """What a process of its own prints last, off the screen and with empty settings."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"QT_QPA_PLATFORM": "offscreen", "EDGECONV_VIEW_SETTINGS": str(Path(folder) / "settings.ini")}
        environment = {**os.environ, **own, "PYTHONPATH": str(PROJECT)}
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
    return done.stdout.splitlines()[-1]


def idle_share() -> float:
    """The share of the processors' time that nobody used for a moment just now; all of it where nobody tells."""
    before = read_cpu_use()
    time.sleep(LOOK_SECONDS)
    after = read_cpu_use()
    if before is None or after is None:
        return 1.0
    return 1 - (after.busy_seconds - before.busy_seconds) / ((after.wall_seconds - before.wall_seconds) * after.cores)


def wait_for_quiet() -> float:
    """Wait until the machine is idle, though not for ever; returns the share that is idle."""
    until = time.monotonic() + QUIET_PATIENCE_SECONDS
    while (share := idle_share()) < QUIET_SHARE and time.monotonic() < until:
        pass
    return share


def measure(rounds: int) -> dict[str, Any]:
    """Openings and stalls by turns."""
    application, process, idle_shares = [], [], []
    stalls: dict[str, list[float]] = {method: [] for method in METHODS}
    with tempfile.TemporaryDirectory() as folder:
        large = str(Path(folder) / "large.npy")
        write_image(noise_pixels(STALL_SIDE, STALL_SIDE, "uint8"), large)
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            idle_shares.append(wait_for_quiet())
            since_first_line, since_start = map(float, run_python(OPENING, str(SOURCE)).split())
            application.append(since_first_line)
            process.append(since_start)
            for method in METHODS:
                idle_shares.append(wait_for_quiet())
                stalls[method].append(json.loads(run_python(STALLS, large, method))[method])
    return {
        "idle_shares_before": idle_shares,
        "opening": {
            "picture": SOURCE.name,
            "application_seconds": application,
            "process_seconds": process,
            "application_goal_seconds": APPLICATION_GOAL,
            "process_goal_seconds": PROCESS_GOAL,
        },
        "stall": {"side": STALL_SIDE, "longest_seconds": stalls, "goal_seconds": STALL_GOAL},
    }


def summary(record: dict[str, Any]) -> str:
    """Medians and the most, with their goals."""
    opening, stall = record["opening"], record["stall"]
    lines = [
        f"opening, {name}: median {statistics.median(opening[f'{name}_seconds']):.2f} s, "
        f"most {max(opening[f'{name}_seconds']):.2f} s (goal {opening[f'{name}_goal_seconds']} s)"
        for name in ("application", "process")
    ]
    lines += [
        f"longest stall, {method}: median {statistics.median(seconds) * 1e3:.0f} ms, most {max(seconds) * 1e3:.0f} ms "
        f"(goal {stall['goal_seconds'] * 1e3:.0f} ms)"
        for method, seconds in stall["longest_seconds"].items()
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure, print, and write where a machine is named."""
    parser = Arguments(__doc__)
    parser.add_argument("--machine", help="Write the record of this name under docs/results/view. Default: none.")
    parser.add_argument("--rounds", type=int, default=5, help="Rounds; medians are shown.")
    arguments = parser.parse_args()
    record = {
        **report.header(),
        "kind": "view",
        "machine": get_device("cpu").describe(),
        "versions": installed_versions() | {"PySide6-Essentials": version("PySide6-Essentials")},
        **measure(arguments.rounds),
    }
    print(summary(record))
    if arguments.machine:
        path = RESULTS / f"{arguments.machine}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(path, report.to_json(record))
        print(path.relative_to(PROJECT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
