"""CUDA plans to run on the CPU, and the process with the sanitizers that runs them (host_cuda/run_on_cpu.py)."""

from __future__ import annotations

import atexit
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from cpu_problems import Case

from edgeconv.bench.ladders.conv import STEPS, ConvBlock, prepare
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import FOLDER, KernelVariant
from edgeconv.hardware.cuda.limits import ONE_WORD_EACH
from edgeconv.methods import refuse
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.cuda.sliding import plan_for_large
from edgeconv.methods.cuda.sliding_choice import choose_strips
from edgeconv.methods.options import Options

TESTS = Path(__file__).resolve().parent
PROGRAM = TESTS / "host_cuda" / "run_on_cpu.py"
CUDA_METHODS = "edgeconv.methods.cuda"
SLIDING = f"{CUDA_METHODS}.sliding:CudaSliding"
LARGE_SLIDING = "kernel_work:large_sliding"
TEXTBOOK = f"{CUDA_METHODS}.textbook:Textbook"
IM2COL = f"{CUDA_METHODS}.im2col:CudaIm2col"
IMPLICIT = f"{CUDA_METHODS}.implicit:Implicit"
CONV_STEP = "kernel_work:conv_step"
CUDNN = f"{CUDA_METHODS}.cudnn:CuDNN"

SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


@dataclass(frozen=True)
class Work:
    """One plan to run: `maker` is `module:name` of a Method, or of a function of a problem, options and `words`."""

    maker: str
    case: Case
    options: Options = field(default_factory=Options)
    offset_samples: int = 0
    """Where the arrays start past an aligned address."""
    words: tuple[Any, ...] = ()
    pictures: int = 1
    """More than one: a batch, of a Method."""

    def __str__(self) -> str:
        maker = " ".join([self.maker.rpartition(".")[2], *map(str, self.words)])
        batch = f" batch of {self.pictures}" if self.pictures > 1 else ""
        return f"{maker} {self.case} {self.options.math} offset {self.offset_samples}{batch}"


@dataclass(frozen=True)
class FloorWords:
    """Words of 16 bytes for the kernels of the floor to read and to write."""

    reads: int
    writes: int

    def source(self) -> np.ndarray:
        """Random words, none of them all ones."""
        return np.random.default_rng(1).integers(0, 2**31, (self.reads, 4), np.uint32)

    def grids(self, variant: KernelVariant, threads: int) -> tuple[int, ...]:
        """Numbers of blocks with fewer and more threads than words, where a kernel takes any."""
        return (-(-max(self.reads, self.writes) // threads),) if variant is ONE_WORD_EACH else (1, 3, 7, 64)

    def expected(self, entry: str) -> np.ndarray:
        """The target of a kernel."""
        words, target = self.source(), np.zeros((self.writes, 4), np.uint32)
        for first in range(0, self.reads, self.writes):
            part = words[first : first + self.writes]
            target[: len(part)] |= part
            if entry == ONE_WORD_EACH.entry:
                break
        return target


FLOORS = tuple(FloorWords(*counts) for counts in ((1, 1), (900, 100), (1000, 1000), (300, 700)))


def conv_step(problem: Problem, options: Options, name: str, block: ConvBlock) -> Plan:
    """A step of the ladder of convolutions, as a maker."""
    return prepare(next(step for step in STEPS if step.name == name), problem, block)


def large_sliding(problem: Problem, options: Options) -> Plan:
    """What `sliding` prepares where the picture is large enough for strips, for any picture, as a maker."""
    return plan_for_large(problem, choose_strips(problem))


def make_plan(work: Work, problem: Problem) -> Plan:
    """The plan of `work.maker` for `problem`; raises UnavailableError where the method does not compute it."""
    module, _, name = work.maker.partition(":")
    maker = getattr(import_module(module), name)
    if isinstance(maker, type) and issubclass(maker, Method):
        method = maker()
        refuse(work.maker, problem, method.reason(problem, work.options))
        plan = method.prepare(problem, work.options, work.pictures)
        assert plan.pictures == work.pictures, "it takes no batches"
        return plan
    made: Plan = maker(problem, work.options, *work.words)
    return made


@dataclass(frozen=True)
class Ended:
    """How the process ended; `text` is what it printed, sanitizer reports included."""

    code: int
    text: str


@cache
def sanitizer_library() -> str | None:
    """The path of g++'s libasan, or None where there is no g++ with sanitizers."""
    if sys.platform != "linux" or shutil.which("g++") is None:
        return None
    found = subprocess.run(("g++", "-print-file-name=libasan.so"), capture_output=True, text=True, check=True)
    path = Path(found.stdout.strip())
    return str(path.resolve()) if path.is_absolute() and path.exists() else None


@dataclass(frozen=True)
class Job:
    """What run_on_cpu.py does in one process: a list of whatever it takes, and the environment of that process."""

    works: list[Any]
    environment: dict[str, str]


@cache
def _runner() -> subprocess.Popen[bytes]:
    """The process with the sanitizers, one for all tests of this one."""
    environment = {
        **os.environ,
        **SANITIZER_OPTIONS,
        "LD_PRELOAD": sanitizer_library() or "",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    runner = subprocess.Popen(
        (sys.executable, str(PROGRAM)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    atexit.register(runner.communicate)
    return runner


def run_on_cpu(works: Sequence[Any], libraries: Path, sources: Path = FOLDER) -> Ended:
    """Run all of it in one process; compiled kernels are kept in `libraries`, their text comes from `sources`.

    `works` is a list of whatever run_on_cpu.py takes.
    """
    environment = {"HOST_CUDA_LIBRARIES": str(libraries), "HOST_CUDA_SOURCES": str(sources)}
    runner = _runner()
    assert runner.stdin is not None
    assert runner.stdout is not None
    pickle.dump(Job(list(works), environment), runner.stdin)
    runner.stdin.flush()
    ended: Ended = pickle.load(runner.stdout)
    return ended


def all_right(works: Sequence[Any], libraries: Path) -> None:
    """Run all of it; a failure shows what was printed."""
    ended = run_on_cpu(works, libraries)
    assert ended.code == 0, ended.text


@dataclass(frozen=True)
class Fault:
    """A mistake put into a copy of a kernel's source, and how it must be detected."""

    what: str
    work: Any
    source: str
    pattern: str
    instead: str
    shows: str


def assert_detected(folder: Path, libraries: Path, fault: Fault) -> None:
    """Run the work with the mistake; it must end as `shows` matches."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    text = (folder / fault.source).read_text(encoding="utf-8")
    faulty, changes = re.subn(fault.pattern, fault.instead, text)
    assert changes, f"{fault.source} has changed: nothing matches {fault.pattern}"
    (folder / fault.source).write_text(faulty, encoding="utf-8")
    ended = run_on_cpu([fault.work], libraries, folder)
    assert ended.code != 0, f"it was not detected: {ended.text}"
    assert re.search(fault.shows, ended.text), ended.text
