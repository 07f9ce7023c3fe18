"""Run a case and count it, and which cases are a worker's."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from cases import GROUP, FuzzCase
from subject import FuzzFailure, try_case

WRONG, CRASHED = "wrong", "crashed"
LONGEST_LINE = 600


@dataclass
class Fuzzed:
    """What a run has found so far, ready for JSON."""

    outcomes: Counter[str] = field(default_factory=Counter)
    classes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failures: list[dict[str, Any]] = field(default_factory=list)

    def count(self, case: FuzzCase, outcome: str) -> None:
        self.outcomes[outcome] += 1
        for kind, value in case.classes.items():
            self.classes[kind][value] += 1

    def fail(self, case: FuzzCase, outcome: str, kind: str, reason: str) -> None:
        self.count(case, outcome)
        line = " ".join(reason.split())[:LONGEST_LINE]
        group = f"{kind}: {case.method} {case.dtype}"
        self.failures.append(
            {"index": case.index, "group": group, "case": str(case), "what": line, "repeat": case.command}
        )

    def join(self, other: Fuzzed) -> None:
        self.outcomes.update(other.outcomes)
        self.failures += other.failures
        for kind, counted in other.classes.items():
            self.classes[kind].update(counted)


def run_one(case: FuzzCase, fuzzed: Fuzzed) -> None:
    """Run a case and count it; nothing that it raises gets out but an interruption."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NaN and overflow are asked for here
            fuzzed.count(case, try_case(case))
    except FuzzFailure as failure:
        fuzzed.fail(case, WRONG, failure.kind, str(failure))
    except Exception as error:  # whatever it is, it is a finding: no case asks for what has no meaning
        fuzzed.fail(case, CRASHED, type(error).__name__, f"{type(error).__name__}: {error}")


def indices(subject: str, worker: int, workers: int) -> Iterator[int]:
    """The cases of one worker of several: whole groups of numbers, so that a configuration is compiled once."""
    size = GROUP.get(subject, 1)
    for group in count(worker, workers):
        yield from range(group * size, (group + 1) * size)
