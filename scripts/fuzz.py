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

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PROJECT / "tests" / "fuzz"), str(PROJECT / "tests"), str(PROJECT)]

READER = "reader"
RECORDED_FAILURES = 200
END_SECONDS = 60.0
"""How long a worker may take for one case, or to begin."""
CASES_A_SEED = 10**9
"""Of the reader, whose cases have one number."""
READER_BYTES = 2**30
"""What a reader's process may take above what the libraries take before the first case."""
EXIT_INTERRUPTED = 130


# ---- cases: `subject` is cpu, cuda or reader


def name_of(subject: str, seed: int, index: int) -> str:
    """What a case is, for a person."""
    if subject == READER:
        return f"damaged picture {index} of seed {seed}"
    return str(import_module("cases").draw(subject, seed, index))


def run_case(subject: str, seed: int, index: int) -> Any:
    """What was found in one case."""
    found = import_module("fuzzing").Fuzzed()
    if subject != READER:
        import_module("fuzzing").run_one(import_module("cases").draw(subject, seed, index), found)
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's and Pillow's, about what they could still read
        try:
            kind, outcome = import_module("reader_fuzz").run(seed * CASES_A_SEED + index)
        except Exception as error:  # whatever it is, it is a finding
            fail(subject, seed, index, found, type(error).__name__, str(error))
        else:
            found.outcomes[outcome] += 1
            found.classes[kind][outcome] += 1
    return found


def fail(subject: str, seed: int, index: int, found: Any, group: str, reason: str) -> None:
    """Count a case that failed without a word of its own."""
    found.outcomes["failed"] += 1
    repeat = f"{subject if subject == READER else f'--device {subject}'} --seed {seed} --case {index}"
    failure = {"index": index, "group": group, "case": name_of(subject, seed, index), "what": reason}
    found.failures.append(failure | {"repeat": f"python3 scripts/fuzz.py {repeat}"})


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


def serve(subject: str, seed: int, connection: Any) -> None:
    """A process that runs the cases it is given the numbers of, one by one, and answers with what was found in each."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if subject == READER:
        limit_memory()
    for index in iter(connection.recv, None):
        connection.send(run_case(subject, seed, index))


def share(subject: str, seed: int, worker: int, jobs: int, deadline: float, target: Callable[..., None] = serve) -> Any:
    """What was found in the cases of one worker of several, one case at least.

    They run in a process. One that dies or stays with a case is replaced by another that goes on behind that case.
    """
    context = multiprocessing.get_context("spawn")  # a fork would share what CUDA holds
    found, process = import_module("fuzzing").Fuzzed(), None
    for index in import_module("fuzzing").indices(subject, worker, jobs):
        if process is None:
            ours, theirs = context.Pipe()
            process = context.Process(target=target, args=(subject, seed, theirs), daemon=True)
            process.start()
            theirs.close()  # so that the end of the process is the end of the pipe
        reason = f"did not end within {END_SECONDS:.0f} s"
        try:
            ours.send(index)
            if ours.poll(END_SECONDS):
                found.join(ours.recv())
                reason = ""
        except (EOFError, OSError):
            process.join()
            reason = f"ended the process with code {process.exitcode}"
        if reason:
            process.kill()
            process.join()
            process = None
            fail(subject, seed, index, found, "end of the process", reason)
        if time.monotonic() >= deadline:
            break
    if process is not None:
        ours.send(None)
    return found


def run_all(subject: str, seed: int, jobs: int, seconds: float) -> Any:
    """What was found by all workers, each with a thread that waits for its process."""
    found, deadline = import_module("fuzzing").Fuzzed(), time.monotonic() + seconds
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for part in pool.map(lambda worker: share(subject, seed, worker, jobs, deadline), range(jobs)):
                found.join(part)
        except KeyboardInterrupt:
            os._exit(EXIT_INTERRUPTED)  # the threads wait for their processes until the deadline
    return found


# ---- what is said of it


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
    for group, number in groups.items():
        first = min((entry for entry in found.failures if entry["group"] == group), key=lambda entry: entry["index"])
        print(f"{number:6,}  {group}\n        {first['case']}\n        {first['what']}\n        {first['repeat']}")


def record_of(found: Any, subject: str, seed: int, seconds: float, jobs: int) -> dict[str, Any]:
    """The run, its machine and what ran on it, as JSON."""
    from edgeconv.core.records import header
    from edgeconv.hardware.devices import get_device
    from edgeconv.hardware.versions import installed_versions

    return {
        **header(),
        "seed": seed,
        "seconds": round(seconds, 1),
        "jobs": jobs,
        "device": subject,
        "machine": get_device("cuda" if subject == "cuda" else "cpu").describe(),
        "versions": installed_versions() | {"pillow": version("pillow")},
        "cases": sum(found.outcomes.values()),
        "outcomes": dict(found.outcomes),
        "counts": {kind: dict(counted.most_common()) for kind, counted in found.classes.items()},
        "failure_groups": groups_of(found),
        "failures": sorted(found.failures, key=lambda entry: entry["index"])[:RECORDED_FAILURES],
    }


def main() -> int:
    """Parse, run, print; 1 where a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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

    started = time.monotonic()
    if asked.case is not None:
        print(name_of(subject, asked.seed, asked.case), flush=True)
        found = run_case(subject, asked.seed, asked.case)
        for failure in found.failures:
            print(f"      {failure['what']}")
        print(", ".join(found.outcomes))
    else:
        found = run_all(subject, asked.seed, asked.jobs, asked.seconds)
        show(found, time.monotonic() - started)
    if asked.record is not None:
        from edgeconv.io.atomic import write_bytes_atomically

        text = json.dumps(record_of(found, subject, asked.seed, time.monotonic() - started, asked.jobs), indent=1)
        write_bytes_atomically(asked.record, (text + "\n").encode())
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
