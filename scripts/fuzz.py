"""Fuzz the numbers, or the reader of pictures: random cases, each judged by what shares no line with the package.

    python3 scripts/fuzz.py --seconds 60 --device cpu [--seed S] [--jobs N] [--record FILE.json]
    python3 scripts/fuzz.py --device cuda --seed S --case K          one case, as a failure's line says
    python3 scripts/fuzz.py reader --seconds 300 --seed S            damaged pictures of every format
    python3 scripts/fuzz.py reader --seed S --case K

It prints counts for each class, the first failures each with the command that repeats it, and ends with 1 where there
are any. Workers are processes, so a crash of native code or a case without an end is a finding like any other and the
run goes on behind it; those of the reader have a limit of memory. What is drawn: tests/fuzz/cases.py; what is right:
tests/fuzz/oracle.py; both for the reader: tests/reader_fuzz.py.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from script_options import PROJECT, Arguments

sys.path[:0] = [str(PROJECT / "tests" / "fuzz"), str(PROJECT / "tests"), str(PROJECT)]

READER = "reader"
NEEDED = {"cpu": ("numpy", "cv2", "llvmlite"), "cuda": ("numpy", "cupy"), READER: ("numpy", "cv2", "PIL", "tifffile")}
SHOWN_GROUPS = 60
RECORDED_FAILURES = 200
END_SECONDS = 60.0
"""How long a worker may take for one case, or to begin."""
CASES_A_SEED = 10**9
"""Of the reader, whose cases have one number."""
READER_BYTES = 2**30
"""What a reader's process may take above what the libraries take before the first case."""
SCHEMA_VERSION = 1


# ---- cases: `subject` is cpu, cuda or reader


def run_case(subject: str, seed: int, index: int, found: Any) -> str:
    """Run one case and count it; what it was, for a person."""
    if subject != READER:
        case = import_module("cases").draw(subject, seed, index)
        import_module("fuzzing").run_one(case, found)
        return str(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's and Pillow's, about what they could still read
        try:
            kind, outcome = import_module("reader_fuzz").run(seed * CASES_A_SEED + index)
        except Exception as error:  # whatever it is, it is a finding
            fail(subject, seed, index, found, type(error).__name__, str(error))
        else:
            found.outcomes[outcome] += 1
            found.classes[kind][outcome] += 1
    return f"damaged picture {index} of seed {seed}"


def fail(subject: str, seed: int, index: int, found: Any, kind: str, reason: str) -> None:
    """Count a case that failed."""
    if subject != READER:
        case = import_module("cases").draw(subject, seed, index)
        found.fail(case, import_module("fuzzing").CRASHED, kind, reason)
        return
    found.outcomes["failed"] += 1
    repeat = f"python3 scripts/fuzz.py reader --seed {seed} --case {index}"
    case = f"damaged picture {index} of seed {seed}"
    found.failures.append({"index": index, "group": kind, "case": case, "what": reason, "repeat": repeat})


def numbers(subject: str, worker: int, jobs: int, start: int) -> Iterator[int]:
    """The cases of one worker of several, from `start` on."""
    if subject != READER:
        yield from import_module("fuzzing").indices(subject, worker, jobs, start)
    yield from (index for index in count(start) if index % jobs == worker)


def limit_memory() -> None:
    """Load what reads, then let this process take no more than so much above that."""
    import resource

    reader = import_module("reader_fuzz")
    for kind in reader.whole_files():
        reader.whole_pixels(kind)
    if sys.platform == "linux":
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + READER_BYTES, taken + READER_BYTES))


# ---- processes


def work(
    subject: str, seed: int, worker: int, jobs: int, start: int, seconds: float, current: Any, sender: Any
) -> None:
    """A worker process: its share of the cases, one at least, then one message with all that it found."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    found, deadline = import_module("fuzzing").Fuzzed(), time.monotonic() + seconds
    if subject == READER:
        limit_memory()
    for index in numbers(subject, worker, jobs, start):
        current.value = index
        run_case(subject, seed, index, found)
        if time.monotonic() >= deadline:
            break
    sender.send(found)


class FuzzProcesses:
    """The workers; one that dies or stays with a case is replaced by another that goes on behind that case."""

    def __init__(self, subject: str, seed: int, jobs: int, seconds: float, target: Callable[..., None] = work) -> None:
        self._context = multiprocessing.get_context("spawn")  # a fork would share what CUDA holds
        self._subject, self._seed, self._jobs, self._target = subject, seed, jobs, target
        self._deadline = time.monotonic() + seconds
        self.found = import_module("fuzzing").Fuzzed()

    def run(self) -> Any:
        """All of it; what was found."""
        running = [self._start(worker, 0) for worker in range(self._jobs)]
        while running:
            worker, process, receiver, current, seen, since = running.pop(0)
            if current.value != seen:
                seen, since = current.value, time.monotonic()
            was_alive = process.is_alive()  # asked first: what it said before it ended is there to be read then
            if receiver.poll(0.5 / self._jobs):
                try:
                    self.found.join(receiver.recv())
                    process.join()
                    continue
                except EOFError:
                    process.join()
            elif was_alive and time.monotonic() - since < END_SECONDS:
                running.append((worker, process, receiver, current, seen, since))
                continue
            reason = f"did not end within {END_SECONDS:.0f} s"
            if process.is_alive():
                process.kill()
                process.join()
            else:
                reason = f"ended the process with code {process.exitcode}"
            fail(self._subject, self._seed, current.value, self.found, "end of the process", reason)
            if time.monotonic() < self._deadline:
                running.append(self._start(worker, current.value + 1))
        return self.found

    def _start(self, worker: int, start: int) -> tuple[int, Any, Any, Any, int, float]:
        receiver, sender = self._context.Pipe(duplex=False)
        current = self._context.Value("q", max(start - 1, 0))
        seconds = max(0.0, self._deadline - time.monotonic())
        arguments = (self._subject, self._seed, worker, self._jobs, start, seconds, current, sender)
        process = self._context.Process(target=self._target, args=arguments, daemon=True)
        process.start()
        sender.close()  # so that the end of the process is the end of the pipe
        return worker, process, receiver, current, -1, time.monotonic()


# ---- what is said of it


def facts(subject: str) -> dict[str, Any]:
    """The machine and what ran on it."""
    from edgeconv.hardware.versions import installed_versions
    from edgeconv.runtime.devices import get_device

    machine = get_device("cuda" if subject == "cuda" else "cpu").describe()
    return {"device": subject, "machine": machine, "versions": installed_versions() | {"pillow": version("pillow")}}


def groups_of(found: Any) -> dict[str, int]:
    """How many failures each group has, most first."""
    return dict(Counter(failure["group"] for failure in found.failures).most_common())


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
    for group, number in list(groups.items())[:SHOWN_GROUPS]:
        first = min((entry for entry in found.failures if entry["group"] == group), key=lambda entry: entry["index"])
        print(f"{number:6,}  {group}\n        {first['case']}\n        {first['what']}\n        {first['repeat']}")
    if len(groups) > SHOWN_GROUPS:
        print(f"  and {len(groups) - SHOWN_GROUPS} more groups")


def record_of(found: Any, subject: str, seed: int, seconds: float, jobs: int) -> dict[str, Any]:
    """The run as JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "seed": seed,
        "seconds": round(seconds, 1),
        "jobs": jobs,
        **facts(subject),
        "cases": sum(found.outcomes.values()),
        "outcomes": dict(found.outcomes),
        "counts": {kind: dict(counted.most_common()) for kind, counted in found.classes.items()},
        "failure_groups": groups_of(found),
        "failures": sorted(found.failures, key=lambda entry: entry["index"])[:RECORDED_FAILURES],
    }


def main() -> int:
    """Parse, run, print; 1 where a case failed."""
    parser = Arguments(__doc__)
    parser.add_argument("what", choices=("numbers", READER), nargs="?", default="numbers", help="What is fuzzed.")
    parser.add_argument("--seconds", type=float, default=60.0, help="How long new cases are drawn.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="What computes numbers.")
    parser.add_argument("--seed", type=int, default=0, help="Which cases are drawn.")
    parser.add_argument("--jobs", type=int, default=1, help="Processes; cases do not depend on their number.")
    parser.add_argument("--case", type=int, help="Run this case alone.")
    parser.add_argument("--record", type=Path, help="Write counts and failures to this file, as JSON.")
    asked = parser.parse_args()
    if asked.jobs < 1 or asked.seed < 0 or (asked.case is not None and asked.case < 0):
        parser.error("--jobs is a whole number from 1, --seed and --case from 0")
    subject = READER if asked.what == READER else asked.device
    if missing := [name for name in NEEDED[subject] if find_spec(name) is None]:
        parser.error(f"'{subject}' needs {', '.join(missing)}, which this Python does not have")

    started = time.monotonic()
    if asked.case is not None:
        found = import_module("fuzzing").Fuzzed()
        print(run_case(subject, asked.seed, asked.case, found))
        for failure in found.failures:
            print(f"      {failure['what']}")
        print(", ".join(found.outcomes))
    else:
        found = FuzzProcesses(subject, asked.seed, asked.jobs, asked.seconds).run()
        show(found, time.monotonic() - started)
    if asked.record is not None:
        from edgeconv.io.files import write_bytes_atomically

        text = json.dumps(record_of(found, subject, asked.seed, time.monotonic() - started, asked.jobs), indent=1)
        write_bytes_atomically(asked.record, (text + "\n").encode())
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
