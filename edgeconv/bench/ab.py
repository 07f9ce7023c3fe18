"""Is version B slower than version A? Both run the same public calls by turns, over several pairs of processes.

    sides       a source folder, a git revision, or the Python interpreter of another environment
    one pair    a new process of each; every case is timed by turns, A B B A, and a process says its tenth percentile:
                what a run takes where nothing disturbs it
    ratio       B / A of each pair; the geometric mean of all pairs, with an interval of 99 % by Student's t over the
                pairs. Two processes of the same code differ (where pages lie, which cores they get): samples of one
                pair alone would call that a difference
    enough      pairs are added until half of the interval is below `HALF_WIDTH`, or the time is up
    verdict     slower where the whole interval is above 1 + margin, faster where it is below 1 / (1 + margin), same
                where it is between both, and no verdict otherwise

Sources: the turns, Georges, Buytaert and Eeckhout, Statistically rigorous Java performance evaluation, 2007 (several
processes, intervals over them); Student, The probable error of a mean, Biometrika 1908.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np

from edgeconv.bench.ab_cases import AbCase
from edgeconv.bench.intervals import Ratio, mean_of_cases
from edgeconv.core.records import Part
from edgeconv.core.timing import Clock
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.run.report import header
from edgeconv.runtime.devices import get_device

HALF_WIDTH = 0.01
LEAST_PAIRS = 5
TURN_SECONDS = 0.05
TURNS = "ABBA"
PERCENTILE = 10
Verdict = Literal["slower", "faster", "same", "no verdict", "cannot run"]


class AbRow(Part):
    """A case, and what each pair of processes took, in seconds of a run."""

    title: str
    a_seconds: list[float]
    b_seconds: list[float]
    copy_seconds: list[float]
    """A copy of as many bytes, by both."""
    cannot: str | None = None
    """Why a side could not do it."""

    @property
    def ratio(self) -> Ratio:
        """B / A, above 1 where B is slower."""
        return mean_of_cases([b / a for a, b in zip(self.a_seconds, self.b_seconds, strict=True)])

    @property
    def is_settled(self) -> bool:
        """Whether more pairs would say no more."""
        return len(self.a_seconds) >= LEAST_PAIRS and self.ratio.high - self.ratio.low < 2 * HALF_WIDTH

    def verdict(self, margin: float) -> Verdict:
        """On B."""
        if self.cannot is not None:
            return "cannot run"
        if len(self.a_seconds) < LEAST_PAIRS:
            return "no verdict"
        return verdict_of(self.ratio, margin)


class AbRecord(Part):
    """What `bench ab` measured."""

    schema_version: int
    edgeconv_version: str
    created_utc: str
    kind: Literal["ab"]
    a: str
    b: str
    machine: dict[str, Any]
    planted: float
    """By how much B was made slower on purpose."""
    rows: list[AbRow]

    @property
    def mean(self) -> Ratio | None:
        """The geometric mean of all rows, over the pairs that measured each of them; None where one has no pair."""
        rows = [row for row in self.rows if row.cannot is None]
        pairs = min((len(row.a_seconds) for row in rows), default=0)
        if not pairs:
            return None
        logs = [np.log(row.b_seconds[:pairs]) - np.log(row.a_seconds[:pairs]) for row in rows]
        return mean_of_cases(np.exp(np.mean(logs, axis=0)).tolist())


def verdict_of(ratio: Ratio, margin: float) -> Verdict:
    """What an interval says, with a margin of 0.05 for 5 %."""
    if ratio.low > 1 + margin:
        return "slower"
    if ratio.high < 1 / (1 + margin):
        return "faster"
    return "same" if 1 / (1 + margin) <= ratio.low and ratio.high <= 1 + margin else "no verdict"


# --- sides --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """A version: an interpreter, and a folder that it finds the package in (None: its own)."""

    name: str
    python: str
    folder: Path | None


@contextmanager
def side_of(word: str) -> Iterator[Side]:
    """The side that a word names; a git revision is unpacked for as long. Raises UsageError for what is neither."""
    path = Path(word)
    if path.is_dir():
        if not (path / "edgeconv" / "__init__.py").is_file():
            raise UsageError(f"Folder '{word}' holds no package edgeconv.")
        yield Side(word, sys.executable, path.resolve())
    elif path.is_file() and os.access(path, os.X_OK):
        yield Side(word, str(path.absolute()), None)
    else:
        words = ["git", "archive", "--end-of-options", word, "edgeconv"]
        found = None if shutil.which("git") is None else subprocess.run(words, capture_output=True, check=False)
        if found is None or found.returncode:
            raise UsageError(f"'{word}' is not a source folder, an interpreter, or a git revision of this folder.")
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
                archive.extractall(folder, filter="data")
            yield Side(word, sys.executable, Path(folder))


class SideProcess:
    """A process of a side."""

    def __init__(self, side: Side, place: str) -> None:
        here = Path(__file__).with_name("ab_side.py").read_text(encoding="utf-8")
        path = {} if side.folder is None else {"PYTHONPATH": str(side.folder)}
        self._name = side.name
        self._process = subprocess.Popen(
            [side.python, "-c", here],
            cwd=place,  # which holds nothing that could be imported
            env={**os.environ, **path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **words: Any) -> dict[str, Any]:
        """Its answer; raises UnavailableError where it has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(words) + "\n")
            stdin.flush()
            answer: dict[str, Any] = json.loads(stdout.readline())
        except (OSError, ValueError):
            raise UnavailableError(f"The process of '{self._name}' ended before its time.") from None
        return answer

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


# --- pairs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """How many pairs of processes there are."""

    seconds: float
    """After which no row gets a further one; each has the first."""
    exactly: int | None = None
    """So many for each row, however long that takes."""
    planted: float = 0.0
    """By how much B is made slower on purpose."""
    told: Callable[[int, str], None] = lambda settled, note: None
    """Hears how many rows are settled, and which pair this is."""
    clock: Clock = time.monotonic


def compare_sides(a: Side, b: Side, cases: Sequence[AbCase], pairs: Pairs) -> AbRecord:
    """Pairs of processes until every row is settled or the time is up."""
    rows = [AbRow(case.title, [], [], []) for case in cases]
    end = pairs.clock() + pairs.seconds

    def wants(row: AbRow) -> bool:
        if row.cannot is not None or pairs.exactly is not None:
            return row.cannot is None and len(row.a_seconds) < (pairs.exactly or 0)
        return not row.a_seconds or (pairs.clock() < end and not row.is_settled)

    while any(map(wants, rows)):
        with ExitStack() as stack:
            place = stack.enter_context(tempfile.TemporaryDirectory())
            processes = [stack.enter_context(closing(SideProcess(side, place))) for side in (a, b)]
            for case, row in zip(cases, rows, strict=True):
                if wants(row):
                    _measure_row(processes, case, row, pairs.planted)
                    pairs.told(sum(not wants(each) for each in rows), f"pair {len(row.a_seconds)}")
    measured = {case.device for case, row in zip(cases, rows, strict=True) if row.cannot is None}
    machine = {device: get_device(device).describe() for device in sorted(measured)}
    return AbRecord(**header(), kind="ab", a=a.name, b=b.name, machine=machine, planted=pairs.planted, rows=rows)


def _measure_row(processes: Sequence[SideProcess], case: AbCase, row: AbRow, planted: float) -> None:
    """A pair more for a row."""
    for name, process, slower in zip("AB", processes, (0.0, planted), strict=True):
        answer = process.ask(case={**asdict(case), "slower": slower})
        if "cannot" in answer:
            row.cannot = f"{name}: {answer['cannot']}"
            return
    found: dict[str, list[float]] = {"A": [], "B": [], "copy": []}
    for name in TURNS:
        answer = processes["AB".index(name)].ask(seconds=TURN_SECONDS)
        found[name] += answer["samples"]
        found["copy"] += answer["copy"]
    for seconds, name in ((row.a_seconds, "A"), (row.b_seconds, "B"), (row.copy_seconds, "copy")):
        seconds.append(float(f"{np.percentile(found[name], PERCENTILE):.6g}"))
