"""Fuzz the numbers: random calls of every method, each output judged by an oracle that shares no line with the package.

    python3 scripts/fuzz.py --seconds 60 --device cpu [--seed S] [--jobs N] [--record FILE.json]
    python3 scripts/fuzz.py --device cuda --seed S --case K          one case, as a failure's line says

It prints counts for each class, the first failures each with the command that repeats it, and ends with 1 where there
are any. Workers are processes, so a crash of native code is a finding like any other and the run goes on behind it.
What is drawn: tests/fuzz/cases.py; what is right: tests/fuzz/oracle.py.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from script_options import PROJECT, Arguments

sys.path[:0] = [str(PROJECT / "tests" / "fuzz"), str(PROJECT)]

NEEDED = {"cpu": ("numpy", "cv2", "llvmlite"), "cuda": ("numpy", "cupy")}
SHOWN_GROUPS = 60
RECORDED_FAILURES = 200
END_SECONDS = 60.0
"""How long a worker may take for its last case, past the end of the time."""
SCHEMA_VERSION = 1


def work(device: str, seed: int, worker: int, jobs: int, start: int, seconds: float, current: Any, sender: Any) -> None:
    """A worker process: its share of the cases, then one message with all that it found."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    fuzzing = import_module("fuzzing")

    def about_to_run(index: int) -> None:
        current.value = index

    numbers = fuzzing.indices(device, worker, jobs, start)
    sender.send(fuzzing.run_until(time.monotonic() + seconds, device, seed, numbers, about_to_run))


class FuzzProcesses:
    """The workers; one that dies is replaced by another that goes on behind the case that killed it."""

    def __init__(self, device: str, seed: int, jobs: int, seconds: float, target: Callable[..., None] = work) -> None:
        self._context = multiprocessing.get_context("spawn")  # a fork would share what CUDA holds
        self._device, self._seed, self._jobs, self._target = device, seed, jobs, target
        self._seconds, self._deadline = seconds, 0.0
        self.found = import_module("fuzzing").Fuzzed()

    def run(self) -> Any:
        """All of it; what was found."""
        self._deadline = time.monotonic() + self._seconds
        running = [self._start(worker, 0) for worker in range(self._jobs)]
        while running:
            worker, process, receiver, current = running.pop(0)
            left = self._deadline + END_SECONDS - time.monotonic()
            was_alive = process.is_alive()  # asked first: what it said before it ended is there to be read then
            if receiver.poll(min(0.5, max(left, 0.0))):
                try:
                    self.found.join(receiver.recv())
                    process.join()
                    continue
                except EOFError:
                    process.join()
            elif was_alive and left > 0:
                running.append((worker, process, receiver, current))
                continue
            if process.is_alive():
                process.kill()
                process.join()
                self._lost(current.value, f"did not end within {END_SECONDS:.0f} s")
                continue
            self._lost(current.value, f"ended the process with code {process.exitcode}")
            if time.monotonic() < self._deadline:
                running.append(self._start(worker, current.value + 1))
        return self.found

    def _start(self, worker: int, start: int) -> tuple[int, Any, Any, Any]:
        receiver, sender = self._context.Pipe(duplex=False)
        current = self._context.Value("q", max(start - 1, 0))
        seconds = max(0.0, self._deadline - time.monotonic())
        arguments = (self._device, self._seed, worker, self._jobs, start, seconds, current, sender)
        process = self._context.Process(target=self._target, args=arguments, daemon=True)
        process.start()
        sender.close()  # so that the end of the process is the end of the pipe
        return worker, process, receiver, current

    def _lost(self, index: int, reason: str) -> None:
        case = import_module("cases").draw(self._device, self._seed, index)
        self.found.fail(case, import_module("fuzzing").CRASHED, "end of the process", reason)


def facts(device: str) -> dict[str, Any]:
    """The machine and what ran on it."""
    versions = {"python": platform.python_version()}
    for name in ("edgeconv", "numpy", "llvmlite", "opencv-python-headless", "cupy-cuda12x", "cupy-cuda13x"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    names = {"machine": platform.machine(), "system": platform.system(), "cores": os.cpu_count()}
    if device == "cuda":
        import cupy

        names["gpu"] = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        versions["cupy"] = cupy.__version__
        versions["cuda_runtime"] = str(cupy.cuda.runtime.runtimeGetVersion())
        versions["cuda_driver"] = str(cupy.cuda.runtime.driverGetVersion())
    return {"device": device, **names, "versions": versions}


def groups_of(found: Any) -> dict[str, int]:
    """How many failures each group has, most first."""
    counted: dict[str, int] = {}
    for failure in found.failures:
        counted[failure["group"]] = counted.get(failure["group"], 0) + 1
    return dict(sorted(counted.items(), key=lambda item: -item[1]))


def show(found: Any, seconds: float) -> None:
    """The counts and the first failures, for a person."""
    total = sum(found.outcomes.values())
    print(f"{total:,} cases in {seconds:.0f} s: " + ", ".join(f"{n:,} {name}" for name, n in found.outcomes.items()))
    for kind, counted in found.classes.items():
        print(f"  {kind}: " + ", ".join(f"{value} {count:,}" for value, count in counted.most_common()))
    if not found.failures:
        return
    groups = groups_of(found)
    print(f"{len(found.failures):,} failures in {len(groups)} groups, the first of each:")
    for group, count in list(groups.items())[:SHOWN_GROUPS]:
        first = min((entry for entry in found.failures if entry["group"] == group), key=lambda entry: entry["index"])
        print(f"{count:6,}  {group}\n        {first['case']}\n        {first['what']}\n        {first['repeat']}")
    if len(groups) > SHOWN_GROUPS:
        print(f"  and {len(groups) - SHOWN_GROUPS} more groups")


def record_of(found: Any, device: str, seed: int, seconds: float, jobs: int) -> dict[str, Any]:
    """The run as JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "seed": seed,
        "seconds": round(seconds, 1),
        "jobs": jobs,
        **facts(device),
        "cases": sum(found.outcomes.values()),
        "outcomes": dict(found.outcomes),
        "counts": {kind: dict(counted.most_common()) for kind, counted in found.classes.items()},
        "failure_groups": groups_of(found),
        "failures": sorted(found.failures, key=lambda entry: entry["index"])[:RECORDED_FAILURES],
    }


def main() -> int:
    """Parse, run, print; 1 where a case failed."""
    parser = Arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="How long new cases are drawn.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="What computes: {choices}.")
    parser.add_argument("--seed", type=int, default=0, help="Which cases are drawn.")
    parser.add_argument("--jobs", type=int, default=1, help="Processes; cases do not depend on their number.")
    parser.add_argument("--case", type=int, help="Run this case alone.")
    parser.add_argument("--record", type=Path, help="Write counts and failures to this file, as JSON.")
    asked = parser.parse_args()
    if asked.jobs < 1 or asked.seed < 0 or (asked.case is not None and asked.case < 0):
        parser.error("--jobs is a whole number from 1, --seed and --case from 0")

    missing = [name for name in NEEDED[asked.device] if find_spec(name) is None]
    if missing:
        parser.error(f"--device {asked.device} needs {', '.join(missing)}, which this Python does not have")

    started = time.monotonic()
    if asked.case is not None:
        case = import_module("cases").draw(asked.device, asked.seed, asked.case)
        print(case)
        found = import_module("fuzzing").Fuzzed()
        import_module("fuzzing").run_one(case, found)
        for failure in found.failures:
            print(f"      {failure['what']}")
        print(", ".join(found.outcomes))
    else:
        found = FuzzProcesses(asked.device, asked.seed, asked.jobs, asked.seconds).run()
        show(found, time.monotonic() - started)
    if asked.record is not None:
        from edgeconv.io.files import write_bytes_atomically

        text = json.dumps(record_of(found, asked.device, asked.seed, time.monotonic() - started, asked.jobs), indent=1)
        write_bytes_atomically(asked.record, (text + "\n").encode())
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
