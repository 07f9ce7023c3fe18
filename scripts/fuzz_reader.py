"""Read damaged pictures of every format for a while, under limits of memory and time, and count what becomes of them.

    python scripts/fuzz_reader.py --seconds 300 --seed 1 --output docs/results/reader_fuzz.json
    python scripts/fuzz_reader.py --case 1000000123              repeat one case

What must hold of a case, and the words that are counted, stand in tests/reader_fuzz.py. Cases run in a process of
their own, so that one that crashes or hangs is named too. `python` is one that has edgeconv installed with the extra
'test': .venv/bin/python after scripts/bootstrap.py. Linux and macOS; exit code 1 where a case failed.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from script_options import Arguments

from edgeconv.errors import one_line_with_class

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

reader_fuzz: Any = import_module("reader_fuzz")

CASES_A_SEED = 10**9
MEMORY_BYTES = 2**30
"""Above what the libraries take before the first case."""
MOST_FAILURES = 20
HANG_SECONDS = 60.0
"""A case takes a millisecond."""
COMMAND = "python scripts/fuzz_reader.py --case {}"


def main() -> int:
    """Parse, fuzz, report."""
    parser = Arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="How long new cases are drawn.")
    parser.add_argument("--seed", type=int, default=0, help="Which cases are drawn.")
    parser.add_argument("--case", type=int, help="Run this case here, and show where it fails.")
    parser.add_argument("--output", type=Path, help="Write the counts to this file, as JSON.")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # NumPy's and Pillow's, about what they could still read
    if arguments.case is not None:
        print(*reader_fuzz.run(arguments.case))
        return 0
    number, until = arguments.seed * CASES_A_SEED, time.monotonic() + arguments.seconds
    counts: Counter[tuple[str, str]] = Counter()
    failures: list[str] = []
    while time.monotonic() < until and len(failures) < MOST_FAILURES:
        number, failure = run_until_one_fails(number, until, counts)
        if failure is not None:
            failures.append(f"{failure}: {COMMAND.format(number - 1)}")
            print(failures[-1], flush=True)
    record = describe(arguments.seed, arguments.seconds, counts, failures)
    print(table(record))
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(record, indent=2) + "\n")
    return 1 if failures else 0


def run_until_one_fails(number: int, until: float, counts: Counter[tuple[str, str]]) -> tuple[int, str | None]:
    """Run cases from `number` on in a child; the number after the last one, and how that failed."""
    at_hand = mmap.mmap(-1, 8)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as answer:
            json.dump(in_child(number, until, at_hand), answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer, killed_where_it_hangs(child, at_hand):
        text = answer.read()
    _, status = os.waitpid(child, 0)
    (last,) = struct.unpack("<q", at_hand[:8])
    if not text:
        why = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        return last + 1, f"the process ended by {why}"
    found, failure = json.loads(text)
    counts.update({(kind, outcome): count for kind, outcome, count in found})
    return last + 1, failure


def in_child(number: int, until: float, at_hand: mmap.mmap) -> tuple[list[tuple[str, str, int]], str | None]:
    """Counts, and the words of the case that failed, which is the last one."""
    import resource

    for kind in reader_fuzz.whole_files():
        reader_fuzz.whole_pixels(kind)
    if sys.platform == "linux":
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY_BYTES, taken + MEMORY_BYTES))
    found: Counter[tuple[str, str]] = Counter()
    failure = None
    while time.monotonic() < until and failure is None:
        at_hand[:8] = struct.pack("<q", number)
        try:
            found[reader_fuzz.run(number)] += 1
        except Exception as error:  # whatever it is, it is a finding
            failure = one_line_with_class(error)
        number += 1
    return [(kind, outcome, count) for (kind, outcome), count in found.items()], failure


@contextmanager
def killed_where_it_hangs(child: int, at_hand: mmap.mmap) -> Iterator[None]:
    """End the child where it stays with one case."""
    seen, since = b"", time.monotonic()

    def look(*_: Any) -> None:
        nonlocal seen, since
        if at_hand[:8] != seen:
            seen, since = at_hand[:8], time.monotonic()
        elif time.monotonic() - since > HANG_SECONDS:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def describe(seed: int, seconds: float, counts: Counter[tuple[str, str]], failures: list[str]) -> dict[str, Any]:
    """The record: counts by kind of file and outcome."""
    import cv2
    import PIL

    kinds = {
        kind: {outcome: counts[kind, outcome] for outcome in reader_fuzz.OUTCOMES} for kind in reader_fuzz.whole_files()
    }
    return {
        "kind": "edgeconv reader fuzz",
        "seed": seed,
        "seconds": seconds,
        "cases": sum(counts.values()),
        "failures": failures,
        "versions": {"opencv": cv2.__version__, "pillow": PIL.__version__},
        "outcomes": kinds,
    }


def table(record: dict[str, Any]) -> str:
    """The counts for a person."""
    lines = [f"{'kind':<22}" + "".join(f"{outcome:>10}" for outcome in reader_fuzz.OUTCOMES)]
    for kind, outcomes in record["outcomes"].items():
        lines.append(f"{kind:<22}" + "".join(f"{count:>10,}" for count in outcomes.values()))
    lines.append(f"{record['cases']:,} cases, {len(record['failures'])} failed")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
