"""Is version B slower than version A? Both run the same public calls by turns, over several pairs of processes.

    a row       a case as plan(image, out=out), with `call=convolve` behind a method's name as convolve(image),
                which finds its plan again and allocates, and under filter `canny` as canny(image, 100, 200, out=out)
    sides       a source folder, a git revision, or the Python interpreter of another environment
    a turn      some milliseconds of one side: the tenth percentile of its runs, what a run takes undisturbed
    one pair    a new process of each side, and turns A B B A, A B B A, …; the ratio B / A of a pair is the median over
                neighbouring turns. A machine that changes its pace in between disturbs one of many ratios.
                Turns are added until the median is known to `TURNS_ERROR`, or the time of the row is up
    ratio       the geometric mean of the pairs' ratios, with an interval of 99 % by Student's t over the pairs. Two
                processes of the same code differ (where pages lie, which cores they get): the turns of one pair alone
                would call that a difference
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
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from edgeconv.bench.candidates import read_word
from edgeconv.bench.grid import ALL, Case, CaseGrid, TimingRules
from edgeconv.bench.intervals import Ratio, mean_of_cases
from edgeconv.bench.surface import cases_of
from edgeconv.bench.synthetic import CANNY, GREY_PREFIX, bench_channels, bench_filter
from edgeconv.core.filters import filter_names
from edgeconv.core.option import AUTO
from edgeconv.core.records import Part, RecordHead, header
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.devices import get_device

HALF_WIDTH = 0.01
LEAST_PAIRS = 5
TURNS = "ABBA"
LEAST_ROUNDS = 5
TURN_SECONDS = 0.01
ROW_SECONDS = 3.0
"""Most of a row in a pair, and no more than its share of the time in which every row is to have `LEAST_PAIRS`."""
TURNS_ERROR = 0.0075
"""Standard error of a pair's ratio by its turns, below which what differs from process to process is larger."""
Ask = Callable[..., dict[str, Any]]
"""What gives a process words by name, and gives back its answer (ab_side.py)."""
BY_CONVOLVE = ":call=convolve"
"""Behind a method's name: the call of a row."""
Verdict = Literal["slower", "faster", "same", "no verdict", "cannot run"]


@dataclass(frozen=True)
class AbCase:
    """One row: a call, its picture and its words."""

    title: str
    call: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    words: dict[str, Any]
    """By name, those of a method's options among them; a filter that has no name is its weights."""


class AbRow(Part):
    """A case, and what a run took in each turn of each pair of processes, in seconds."""

    title: str
    a_seconds: list[list[float]]
    b_seconds: list[list[float]]
    cannot: str | None = None
    """Why a side could not do it."""

    @property
    def ratios(self) -> list[float]:
        """B / A of each pair, above 1 where B is slower."""
        return [float(np.median(np.divide(b, a))) for a, b in zip(self.a_seconds, self.b_seconds, strict=True)]

    @property
    def ratio(self) -> Ratio:
        """Of all pairs."""
        return mean_of_cases(self.ratios)

    @property
    def half_width(self) -> float:
        """Of the interval."""
        return (self.ratio.high - self.ratio.low) / 2

    def verdict(self, margin: float) -> Verdict:
        """On B."""
        if self.cannot is not None:
            return "cannot run"
        return "no verdict" if len(self.a_seconds) < LEAST_PAIRS else verdict_of(self.ratio, margin)


class AbRecord(RecordHead):
    """What `bench ab` measured."""

    kind: Literal["ab"]
    a: str
    b: str
    machine: dict[str, Any]
    rows: list[AbRow]
    planted: float = 0.0
    """By how much B was made slower on purpose, in two older records."""

    @property
    def mean(self) -> Ratio | None:
        """The geometric mean of all rows, over the pairs that measured each of them; None where one has no pair."""
        ratios = [row.ratios for row in self.rows if row.cannot is None]
        pairs = min(map(len, ratios), default=0)
        if not pairs:
            return None
        return mean_of_cases(np.exp(np.mean([np.log(of_row[:pairs]) for of_row in ratios], axis=0)).tolist())


def verdict_of(ratio: Ratio, margin: float) -> Verdict:
    """What an interval says, with a margin of 0.05 for 5 %."""
    if ratio.low > 1 + margin:
        return "slower"
    if ratio.high < 1 / (1 + margin):
        return "faster"
    return "same" if 1 / (1 + margin) <= ratio.low and ratio.high <= 1 + margin else "no verdict"


# --- cases ----------------------------------------------------------------------------------------------------------


def ab_cases(grid: CaseGrid) -> list[AbCase]:
    """Each case of a grid on each of its devices, by each of its methods."""
    return [
        _of_case(case, device, AUTO if word == ALL else word)
        for case, part in cases_of(grid)
        for device, word in product(part.devices, part.methods)
    ]


def _of_case(case: Case, device: str, word: str) -> AbCase:
    method, options = read_word(word.replace(BY_CONVOLVE, ""))
    call = "convolve" if BY_CONVOLVE in word else "plan"
    plain, drawn, side = case.filter.removeprefix(GREY_PREFIX), case.drawn, case.size
    shape = (side, side, bench_channels(case.filter))
    words: dict[str, Any] = {"device": device}
    if plain == CANNY:
        return AbCase(f"{case} {device}", CANNY, device, shape, case.dtype, words)
    kernels = plain if plain in filter_names() else bench_filter(case.filter, case.channels).kernels[0].tolist()
    words |= {"method": method, **options, "filter": kernels, "channels": case.channels, "stride": case.stride}
    words["border"] = TimingRules().border  # said, since another version may have another default
    said = [str(case), device, word]
    if drawn is not None:
        shape = (drawn.height, drawn.width, shape[2])
        rules = {"padding": drawn.padding, "border": drawn.border, "output_mode": drawn.output_mode}
        said += [f"{drawn.height}x{drawn.width}", *rules.values()]
        words |= {**rules, "padding": int(drawn.padding) if drawn.padding.isdecimal() else drawn.padding}
    return AbCase(" ".join(said), call, device, shape, case.dtype, words)


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
        words = ["git", "archive", "--format=zip", "--end-of-options", word, "edgeconv"]
        found = None if shutil.which("git") is None else subprocess.run(words, capture_output=True, check=False)
        if found is None or found.returncode:
            raise UsageError(f"'{word}' is not a source folder, an interpreter, or a git revision of this folder.")
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(BytesIO(found.stdout)) as archive:
                archive.extractall(folder)
            yield Side(word, sys.executable, Path(folder))


@contextmanager
def process_of(side: Side, place: str) -> Iterator[Ask]:
    """A process of a side in a folder, as what asks it; that raises UnavailableError where the process has ended."""
    here = Path(__file__).with_name("ab_side.py").read_text(encoding="utf-8")
    path = {} if side.folder is None else {"PYTHONPATH": str(side.folder)}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([side.python, "-c", here], cwd=place, env={**os.environ, **path}, **pipes)

    def ask(**words: Any) -> dict[str, Any]:
        assert process.stdout is not None
        try:
            print(json.dumps(words), file=process.stdin, flush=True)
            answer: dict[str, Any] = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            raise UnavailableError(f"The process of '{side.name}' ended before its time.") from None
        return answer

    try:
        yield ask
    finally:
        process.communicate()


# --- pairs --------------------------------------------------------------------------------------------------------


def compare_sides(
    a: Side,
    b: Side,
    cases: Sequence[AbCase],
    seconds: float,
    progress: Callable[[int, int, str], None] = lambda settled, total, note: None,
) -> AbRecord:
    """Pairs of processes until every row is settled, or the time is up and each row has one.

    `progress` is told how many rows are settled, of how many, and which pair this is.
    """
    rows = [AbRow(case.title, [], []) for case in cases]
    end = time.monotonic() + seconds
    share = min(ROW_SECONDS, seconds / (LEAST_PAIRS * len(cases)))

    def wants(row: AbRow) -> bool:
        pairs = len(row.a_seconds)
        if row.cannot is not None:
            return False
        return not pairs or (time.monotonic() < end and (pairs < LEAST_PAIRS or row.half_width >= HALF_WIDTH))

    while any(map(wants, rows)):
        with ExitStack() as stack:
            place = stack.enter_context(tempfile.TemporaryDirectory())  # which holds nothing that could be imported
            asks = {name: stack.enter_context(process_of(side, place)) for name, side in (("A", a), ("B", b))}
            for case, row in zip(cases, rows, strict=True):
                if wants(row):
                    _measure_row(asks, case, row, share)
                    progress(sum(not wants(each) for each in rows), len(rows), f"pair {len(row.a_seconds)}")
    measured = {case.device for case, row in zip(cases, rows, strict=True) if row.cannot is None}
    machine = {device: get_device(device).describe() for device in sorted(measured)}
    return AbRecord(**header(), kind="ab", a=a.name, b=b.name, machine=machine, rows=rows)


def _measure_row(asks: dict[str, Ask], case: AbCase, row: AbRow, seconds: float) -> None:
    """A pair more for a row."""
    for name, ask in asks.items():
        answer = ask(case=asdict(case))
        if "cannot" in answer:
            row.cannot = f"{name}: {answer['cannot']}"
            return
    end, found = time.monotonic() + seconds, {name: list[float]() for name in asks}
    while len(found["A"]) < LEAST_ROUNDS * 2 or (time.monotonic() < end and _error(found) > TURNS_ERROR):
        for name in TURNS:
            found[name].append(asks[name](turn=TURN_SECONDS)["seconds"])
    row.a_seconds.append(found["A"])
    row.b_seconds.append(found["B"])


def _error(found: dict[str, list[float]]) -> float:
    """The standard error of the median of B / A by its quartiles, as of a normal distribution."""
    low, high = np.percentile(np.log(found["B"]) - np.log(found["A"]), (25, 75))
    return float(0.93 * (high - low) / np.sqrt(len(found["A"])))
