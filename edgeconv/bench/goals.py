"""The bars that the project sets itself, as one table, and what a record says about each: figure beside goal.

A goal stands for every size and stride that it names. The figure is that of the fastest of its candidates there:

    floor      share of the floor                                                        at least
    roofline   share of the roofline                                                     at least
    rivals     its time over that of the fastest rival                                   at most
    call       seconds per call, back to back on a stream                                at most
    own bytes  its time over that of its own bytes at the copy's bandwidth               at most
    lead       the fastest rival's time over its own, geometric mean of all of the goal  at least
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import fastest, geometric_mean, median

Figure = Callable[[BenchRow, BenchRow | None, list[BenchRow]], float | None]
"""Of the fastest candidate, the fastest rival and all rows of a case."""

Measure = Literal["floor", "roofline", "rivals", "call", "own bytes", "lead"]
AT_MOST: tuple[Measure, ...] = ("rivals", "call", "own bytes")

ALL_SIZES = (128, 512, 1024, 2048, 4096)
ALL_STRIDES = (1, 2, 3)
OWN_CUDA = ("sliding", "im2col", "implicit")
CUDA_RIVALS = ("cudnn", "cudnn:find", "cudnn-graph", "torch", "torch-nchw", "cupy-ndimage", "jax", "npp", "cvcuda")
CPU_RIVALS = ("torch", "openvino", "onnxruntime")
EVERYTHING_CUDA = (*CUDA_RIVALS, "triton", "torch-compile", "jax-shifts", "numba")
"""Libraries, and what a person writes in a language for kernels."""
EVERYTHING_CPU = (
    *("opencv-filter2d", "torch", "torch-nchw", "jax", "openvino", "onnxruntime"),
    *("torch-compile", "jax-shifts", "numba", "halide"),
)
MICROSECOND = 1e-6


@dataclass(frozen=True)
class Goal:
    """One bar."""

    measure: Measure
    bar: float
    device: str
    dtype: str
    filter: str
    channels: str
    sizes: tuple[int, ...] = (4096,)
    strides: tuple[int, ...] = (1,)
    candidates: tuple[str, ...] = ("sliding",)
    rivals: tuple[str, ...] = ()
    binds: str = ""
    """What binds it where it is missed: the profiler's figures, or a count (docs/kernels-tried.md has the rest)."""

    @property
    def case(self) -> str:
        """What it is about, in a few words."""
        return f"{self.device.upper()}, {self.dtype}, {self.filter}, {self.channels}"

    @property
    def words(self) -> str:
        """The bar, in words."""
        sign = "≤" if self.measure in AT_MOST else "≥"
        bar = f"{self.bar / MICROSECOND:g} µs" if self.measure == "call" else f"{self.bar:g}"
        return f"{self.measure} {sign} {bar}"


@dataclass(frozen=True)
class GoalResult:
    """What a record says about a goal at a size and stride; `size` and `stride` are None for a mean over all."""

    goal: Goal
    size: int | None
    stride: int | None
    candidate: str
    figure: float
    rivals: tuple[str, ...] = ()
    """Those of the goal's that have a time there."""

    @property
    def words(self) -> str:
        """The bar and whom it was held against, in words."""
        return f"{self.goal.words} ({', '.join(self.rivals)})" if self.rivals else self.goal.words

    @property
    def met(self) -> bool:
        """Whether the bar is reached."""
        at_most = self.goal.measure in AT_MOST
        return self.figure <= self.goal.bar if at_most else self.figure >= self.goal.bar

    @property
    def short_by(self) -> float:
        """By how much of the bar it is missed; 0 where it is met."""
        return 0.0 if self.met else abs(self.figure / self.goal.bar - 1)


_GPU_CASES = (
    ("float32", "random", "mix"),
    ("uint8", "laplacian8", "each"),
    ("uint8", "random-whole", "mix"),
    ("uint8", "sobel", "each"),
    ("float16", "random", "mix"),
)
_GENERAL = ("float32", "random", "mix")
_PLAIN = ("uint8", "laplacian8", "each")
_SOBEL = ("uint8", "sobel", "each")

_MEMORY = "memory: bulk copies alone in the same order take 101 µs; rows that strips share come twice"
_LATENCY = "the launch from Python, and at 512 the wait for the first rows"
_SMALLEST = "the smallest sizes, where the launch binds both sides"
_FIRST_ROWS = "at 1024 the wait for the first rows: the floor itself would lead by 1.75 there"
_SAME_MEMORY = "memory, which binds the rival as well: at 0.90 to 0.99 of the floor nothing is left to lead by"

GOALS: tuple[Goal, ...] = (
    Goal("floor", 0.92, "cuda", *_GENERAL, binds=_MEMORY),
    Goal("floor", 0.87, "cuda", *_GENERAL, sizes=(2048,), binds="the kernel's start and end: about 4 µs of 30"),
    Goal("floor", 0.85, "cuda", *_GENERAL, strides=(2, 3)),
    Goal("floor", 0.85, "cuda", *_PLAIN),
    Goal("floor", 0.80, "cuda", "uint8", "random-whole", "mix", candidates=OWN_CUDA),
    Goal(
        "floor",
        0.75,
        "cuda",
        *_SOBEL,
        binds="latency: one square root and one store per sample; no unit is busy for more than half of the time",
    ),
    Goal("floor", 0.80, "cuda", "float16", "random", "mix", candidates=OWN_CUDA),
    *(Goal("call", 6 * MICROSECOND, "cuda", *case, sizes=(128, 512), binds=_LATENCY) for case in _GPU_CASES),
    Goal("rivals", 1.0, "cuda", *_GENERAL, ALL_SIZES, ALL_STRIDES, ("im2col",), ("cudnn", "cudnn:find")),
    Goal("own bytes", 1.5, "cuda", *_GENERAL, ALL_SIZES, ALL_STRIDES, ("im2col",)),
    Goal("floor", 0.80, "cuda", *_GENERAL, candidates=("implicit",)),
    Goal("lead", 4.0, "cuda", *_GENERAL, ALL_SIZES, ALL_STRIDES, OWN_CUDA, CUDA_RIVALS, binds=_SMALLEST),
    Goal("lead", 10.0, "cuda", *_GENERAL, (1024, 2048, 4096), (1,), OWN_CUDA, CUDA_RIVALS),
    Goal("lead", 1.7, "cuda", *_GENERAL, (1024, 2048, 4096), (1,), OWN_CUDA, EVERYTHING_CUDA, _FIRST_ROWS),
    Goal("lead", 1.3, "cuda", *_GENERAL, (1024, 2048, 4096), (2, 3), OWN_CUDA, EVERYTHING_CUDA, _SAME_MEMORY),
    Goal("rivals", 1.0, "cuda", *_GENERAL, (128, 512), ALL_STRIDES, OWN_CUDA, EVERYTHING_CUDA),
    Goal("lead", 1.7, "cuda", *_PLAIN, rivals=EVERYTHING_CUDA),
    Goal("lead", 1.5, "cpu", *_GENERAL, ALL_SIZES, ALL_STRIDES, rivals=EVERYTHING_CPU),
    *(Goal("lead", 1.5, "cpu", *case, (128, 512, 2048, 4096), rivals=EVERYTHING_CPU) for case in (_PLAIN, _SOBEL)),
    Goal("rivals", 0.25, "cpu", *_PLAIN, sizes=(2048, 4096), rivals=("opencv-filter2d",)),
    Goal("floor", 0.50, "cpu", *_PLAIN),
    Goal("rivals", 0.50, "cpu", *_GENERAL, sizes=(1024, 2048, 4096), rivals=CPU_RIVALS),
    Goal("roofline", 0.50, "cpu", *_GENERAL),
    Goal("rivals", 1.0, "cpu", *_GENERAL, sizes=ALL_SIZES, strides=(2, 3), rivals=CPU_RIVALS),
    Goal("floor", 0.60, "cpu", "float32", "laplacian8", "mix"),
    Goal("rivals", 0.35, "cpu", *_SOBEL, sizes=(2048, 4096), rivals=("opencv-filter2d",)),
    *(
        Goal("rivals", 1.0, "cpu", *case, sizes=(128, 512), rivals=("opencv-filter2d",))
        for case in (_GENERAL, _PLAIN, _SOBEL)
    ),
    Goal("rivals", 1.0, "cpu", *_GENERAL, ALL_SIZES, ALL_STRIDES, ("im2col",), ("torch-unfold",)),
)


def outcomes(record: BenchRecord) -> list[GoalResult]:
    """Every goal that the record has rows for, in the table's order."""
    return [outcome for goal in GOALS for outcome in _of_goal(record, goal)]


def _of_goal(record: BenchRecord, goal: Goal) -> Iterator[GoalResult]:
    leads = []
    met_in_all: set[str] = set()
    for stride in goal.strides:
        for size in goal.sizes:
            rows = [row for row in record.rows if _is_about(row, goal, size, stride)]
            own = fastest(row for row in rows if row.candidate in goal.candidates)
            rival = fastest(row for row in rows if row.candidate in goal.rivals)
            present = {row.candidate for row in rows} & set(goal.rivals)
            if own is None or (goal.rivals and rival is None):
                continue
            if goal.measure == "lead" and rival is not None:
                leads.append(median(rival) / median(own))
                met_in_all |= present
                continue
            figure = _FIGURES[goal.measure](own, rival, rows)
            if figure is not None:
                yield GoalResult(goal, size, stride, own.candidate, figure, _in_order(goal, present))
    mean = geometric_mean(leads)
    if mean is not None:
        yield GoalResult(goal, None, None, f"{len(leads)} cases", mean, _in_order(goal, met_in_all))


def _in_order(goal: Goal, present: set[str]) -> tuple[str, ...]:
    return tuple(name for name in goal.rivals if name in present)


def _is_about(row: BenchRow, goal: Goal, size: int, stride: int) -> bool:
    case = row.case
    asked = (goal.device, goal.dtype, goal.filter, goal.channels, size, stride)
    found = (row.device, case.dtype, case.filter, case.channels, case.size, case.stride)
    return asked == found and case.picture is None and row.lead_series is not None


def _share(
    name: Literal["floor_share", "roofline_share"],
) -> Callable[[BenchRow, BenchRow | None, list[BenchRow]], float | None]:
    def figure(own: BenchRow, rival: BenchRow | None, rows: list[BenchRow]) -> float | None:
        return None if own.lead_metrics is None else getattr(own.lead_metrics, name)

    return figure


def _rivals(own: BenchRow, rival: BenchRow | None, rows: list[BenchRow]) -> float | None:
    return None if rival is None else median(own) / median(rival)


def _call(own: BenchRow, rival: BenchRow | None, rows: list[BenchRow]) -> float | None:
    return None if own.launch is None else own.launch.stream_seconds


def _own_bytes(own: BenchRow, rival: BenchRow | None, rows: list[BenchRow]) -> float | None:
    """The copy moves its bytes in its time, so in proportion the method's own in theirs."""
    copy = fastest(row for row in rows if row.kind == "copy")
    if copy is None or not own.moved_bytes or not copy.moved_bytes:
        return None
    return median(own) / (median(copy) * float(own.moved_bytes) / float(copy.moved_bytes))


_FIGURES: dict[Measure, Figure] = {
    "floor": _share("floor_share"),
    "roofline": _share("roofline_share"),
    "rivals": _rivals,
    "call": _call,
    "own bytes": _own_bytes,
}
