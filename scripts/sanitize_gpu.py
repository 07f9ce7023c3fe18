"""Run compute-sanitizer over one case of each compiled CUDA kernel: memcheck, racecheck, initcheck and synccheck.

    python3 scripts/sanitize_gpu.py --output docs/results/sanitize/h200.json [--tool memcheck] [--sanitizer PATH]
    python3 scripts/sanitize_gpu.py --one-pass         the cases alone, as each tool runs them

Kernels are first compiled by several processes into CuPy's cache, so that the tools only load them. Each tool is one
process that runs all cases, every one compared with the oracle. The summary is printed and written as JSON.
Exit code 0 where nothing was found, 1 where something was, 4 where there is no compute-sanitizer.

Each array has an allocation of its own here, with padding behind it under memcheck: in a pool neighbouring arrays would
hide a read past the end. im2col multiplies whole runs of columns and drops what lies past the last pixel, which
initcheck would report: its workspaces start as zeros under that tool. Of a bulk copy to device memory initcheck sees
the first bytes only, so outputs start filled, with bytes that the comparison with the oracle finds where they stay.
cuDNN's and cuBLAS's own kernels are not ours to check; the two kernels around cuDNN run without it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from script_options import PROJECT, Arguments

TESTS = PROJECT / "tests"
sys.path[:0] = [str(PROJECT), str(TESTS)]

from edgeconv.errors import UnavailableError  # noqa: E402
from edgeconv.hardware.cuda.kernels import loaded_kernels  # noqa: E402
from edgeconv.io.files import write_bytes_atomically  # noqa: E402
from edgeconv.methods.cuda.kernel_args import sample_problems  # noqa: E402
from edgeconv.methods.options import Options  # noqa: E402
from edgeconv.runtime import check  # noqa: E402

kernel_table: Any = import_module("kernel_table")
kernel_work: Any = import_module("kernel_work")
problems: Any = import_module("problems")

TOOLS: dict[str, tuple[str, ...]] = {
    "memcheck": ("--padding", "256"),
    "racecheck": ("--racecheck-report", "all"),
    "initcheck": (),
    "synccheck": (),
}
USUAL_PLACES = ("/usr/local/cuda/bin/compute-sanitizer", "/opt/cuda/bin/compute-sanitizer")
FOUND_CODE = 9
"""What a tool ends with where it found something, apart from what the cases end with."""
TOOL_VARIABLE = "EDGECONV_SANITIZER"
ERRORS = re.compile(r"ERROR SUMMARY: (\d+) error")
HAZARDS = re.compile(r"RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warnings?\)")
RAN = re.compile(r"^ran (\d+) cases of (\d+) kernels$", re.MULTILINE)
CASE_LINE = "case: "
SHOWN_LINES = 60
PRINTED_REPORTS = 100
"""Of each tool, each with its two call stacks; the others are counted."""
NEVER_WRITTEN = 0xA5
"""What the bytes of an output are before it is written."""
SCHEMA_VERSION = 1
EXIT_FOUND, EXIT_UNAVAILABLE = 1, 4


@dataclass(frozen=True)
class ToolSummary:
    """What one tool said."""

    tool: str
    exit_code: int
    errors: int
    warnings: int
    cases: int
    kernels: int
    seconds: float
    first_lines: tuple[str, ...]
    """Of its reports, or of what went wrong, where it is not clean."""

    @property
    def clean(self) -> bool:
        """Whether all cases ran and nothing was found."""
        return self.exit_code == 0 and self.errors == 0 and self.cases > 0


def summary_of(tool: str, text: str, exit_code: int, seconds: float) -> ToolSummary:
    """Read a tool's output."""
    hazards, errors, ran = HAZARDS.search(text), ERRORS.search(text), RAN.search(text)
    found = int(hazards[2]) if hazards else int(errors[1]) if errors else 0
    warned = int(hazards[3]) if hazards else 0
    told = hazards is not None or errors is not None
    clean = told and exit_code == 0 and found == 0 and warned == 0
    lines = [] if clean else told_lines(text)
    if not told:
        lines.insert(0, f"{tool} gave no summary: did it start?")
    return ToolSummary(
        tool=tool,
        exit_code=exit_code if told else exit_code or EXIT_FOUND,
        errors=found,
        warnings=warned,
        cases=int(ran[1]) if ran else 0,
        kernels=int(ran[2]) if ran else 0,
        seconds=round(seconds, 1),
        first_lines=tuple(lines[:SHOWN_LINES]),
    )


def told_lines(text: str) -> list[str]:
    """The lines of an output, without the names of cases that nothing was said of."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    following = [*lines, ""][1:]
    return [
        line
        for line, after in zip(lines, following, strict=True)
        if not line.startswith(CASE_LINE) or not after.startswith((CASE_LINE, "ran "))
    ]


# --- the cases ------------------------------------------------------------------------------------------------------


def stages_alone(problem: Any, channels: int) -> Any:
    """The plan of `cudnn` with nothing where cuDNN convolves: its own two kernels, before and after."""
    from edgeconv.methods.cuda import cudnn

    class StagesAlone(cudnn.CudnnPlan):
        def _make_work(self, math: str) -> None:
            self._work = SimpleNamespace(convolution=SimpleNamespace(set_math=lambda value: None))  # type: ignore[assignment]

        def _choose(self, options: Any) -> None:
            self._taken = SimpleNamespace(math=None)  # type: ignore[assignment]
            self._result.fill(0)

        def _describe(self, math: str) -> None:
            pass

        def _handle(self) -> Any:
            return SimpleNamespace(set_stream=lambda stream: None)

        def _convolve(self, handle: Any, source: int, result: int) -> None:
            pass

    return StagesAlone(problem, Options(), direct=False, channels=channels)


def _random_image(problem: Any, offset_samples: int = 0) -> Any:
    """A picture, so many samples into an allocation of its own that ends where it does."""
    import cupy

    image = problems.image_of(problem)
    memory = cupy.empty(offset_samples + image.size, image.dtype)
    memory[offset_samples:] = cupy.asarray(image).ravel()
    return memory[offset_samples:].reshape(image.shape)


def run_case(work: Any, zeroed: bool) -> None:
    """One plan on one picture, compared with the oracle; raises AssertionError where it is wrong."""
    import cupy

    problem = work.case.problem()
    if zeroed and "im2col" in work.maker:
        cupy.cuda.set_allocator(_zeroed)
    plan = kernel_work.make_plan(work, problem)
    cupy.cuda.set_allocator(None)
    out = cupy.empty(problem.output_shape, problem.output_dtype)
    out.data.memset(NEVER_WRITTEN, out.nbytes)
    image = _random_image(problem, work.offset_samples)
    plan.run(image, out)
    found = check.check(image.get(), out.get(), problem, plan.arithmetic, 2000)
    assert found.passed, f"{work}: {found.unexplained_samples} wrong samples, worst {found.worst}"


def _zeroed(size: int) -> Any:
    import cupy

    memory = cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)
    memory.memset(0, size)
    return memory


def one_pass() -> int:
    """All cases in this process; 1 at the first that is wrong."""
    import cupy

    cupy.cuda.set_allocator(None)  # no pool
    zeroed, ran = os.environ.get(TOOL_VARIABLE) == "initcheck", 0
    for work in kernel_table.works_for_a_gpu():
        print(f"{CASE_LINE}{work}", flush=True)
        try:
            run_case(work, zeroed)
        except UnavailableError as reason:
            print(f"passed over: {work}: {reason}")
            continue
        except AssertionError as wrong:
            print(wrong)
            return EXIT_FOUND
        ran += 1
    for problem in sample_problems():
        for channels in (3, 4, 8):
            plan = stages_alone(problem, channels)
            plan.run(_random_image(problem), cupy.empty(problem.output_shape, problem.output_dtype))
            ran += 1
    cupy.cuda.Device().synchronize()
    print(f"ran {ran} cases of {loaded_kernels()} kernels")
    return 0


def compile_share(share: int, shares: int) -> None:
    """Compile what a part of the cases needs, into CuPy's cache; a process of its own."""
    for work in kernel_table.works_for_a_gpu()[share::shares]:
        try:
            kernel_work.make_plan(work, work.case.problem())
        except UnavailableError:
            continue


# --- the tools ------------------------------------------------------------------------------------------------------


def find_sanitizer(asked: str | None) -> str | None:
    """The program: as asked, on the path, or where the toolkit puts it."""
    for place in (asked,) if asked else (shutil.which("compute-sanitizer"), *USUAL_PLACES):
        if place is not None and os.access(place, os.X_OK):
            return place
    return None


def run_tool(sanitizer: str, tool: str) -> ToolSummary:
    """One tool over all cases."""
    cases = (sys.executable, str(Path(__file__).resolve()), "--one-pass")
    told = ("--print-limit", str(PRINTED_REPORTS), "--error-exitcode", str(FOUND_CODE))
    command = (sanitizer, "--tool", tool, *TOOLS[tool], *told, *cases)
    started = time.monotonic()
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, TOOL_VARIABLE: tool, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    return summary_of(tool, text, done.returncode, time.monotonic() - started)


def facts(sanitizer: str) -> dict[str, Any]:
    """The machine and the versions."""
    import cupy

    told = subprocess.run((sanitizer, "--version"), capture_output=True, text=True, check=False).stdout
    return {
        "gpu": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "cuda_driver": cupy.cuda.runtime.driverGetVersion(),
        "cuda_runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "compute_sanitizer": next((line for line in told.splitlines() if "ersion" in line), told.strip()),
    }


def write_record(path: Path, known: dict[str, Any], summaries: list[ToolSummary]) -> None:
    """The summaries so far, as JSON."""
    record = {"schema_version": SCHEMA_VERSION, **known, "tools": [asdict(summary) for summary in summaries]}
    write_bytes_atomically(path, (json.dumps(record, indent=1) + "\n").encode())


def main() -> int:
    """Parse, run the tools one after the other, print and write."""
    parser = Arguments(__doc__)
    parser.add_argument("--one-pass", action="store_true", help="Run the cases in this process, without a tool.")
    parser.add_argument(
        "--tool", choices=tuple(TOOLS), action="append", help="Only this tool: {choices}; may be repeated."
    )
    parser.add_argument("--sanitizer", help="The program, where it is not on the path.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="Processes that compile beforehand.")
    parser.add_argument("--output", type=Path, help="Write the summary to this file, as JSON.")
    asked = parser.parse_args()
    if asked.one_pass:
        return one_pass()
    sanitizer = find_sanitizer(asked.sanitizer)
    if sanitizer is None:
        print("There is no compute-sanitizer here: install the CUDA toolkit's, or name it with --sanitizer PATH.")
        return EXIT_UNAVAILABLE
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        list(pool.map(compile_share, range(asked.jobs), [asked.jobs] * asked.jobs))
    known, summaries = facts(sanitizer), []
    for tool in asked.tool or TOOLS:
        summary = run_tool(sanitizer, tool)
        summaries.append(summary)
        verdict = "nothing found" if summary.clean else f"{summary.errors} errors, exit code {summary.exit_code}"
        print(f"{tool}: {summary.cases} cases of {summary.kernels} kernels in {summary.seconds:.0f} s: {verdict}")
        print("\n".join(f"    {line}" for line in summary.first_lines), flush=True)
        if asked.output is not None:  # after each tool: one that is stopped loses no other's summary
            write_record(asked.output, known, summaries)
    return 0 if all(summary.clean for summary in summaries) else EXIT_FOUND


if __name__ == "__main__":
    sys.exit(main())
