"""Run compute-sanitizer over one case of each compiled CUDA kernel: memcheck, racecheck, initcheck and synccheck.

    python3 scripts/sanitize_gpu.py --output docs/results/sanitize/h200.json [--tool memcheck] [--sanitizer PATH]
    python3 scripts/sanitize_gpu.py --one-pass         the cases alone, as each tool runs them

Kernels are first compiled by several processes into CuPy's cache, so that the tools only load them. Each tool is one
process that runs all cases, every one compared with the oracle. The summary is printed and written as JSON.
Exit code 0 where nothing was found, 1 where something was, 4 where there is no compute-sanitizer.

Each array has an allocation of its own here, with padding behind it under memcheck: in a pool neighbouring arrays would
hide a read past the end. im2col multiplies whole runs of columns and drops what lies past the last pixel, which
initcheck would report: its workspaces start as zeros under that tool. Outputs start filled, with bytes that the
comparison with the oracle finds where they stay. cuDNN's and cuBLAS's own kernels are not ours to check: the two
kernels around cuDNN are checked on the CPU alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "tests")]

from edgeconv.api import check  # noqa: E402
from edgeconv.errors import UnavailableError  # noqa: E402
from edgeconv.hardware.cuda.kernels import loaded_kernels  # noqa: E402
from edgeconv.hardware.devices import get_device  # noqa: E402
from edgeconv.hardware.versions import installed_versions  # noqa: E402
from edgeconv.io.atomic import write_bytes_atomically  # noqa: E402

kernel_table: Any = import_module("kernel_table")
kernel_work: Any = import_module("kernel_work")
problems: Any = import_module("problems")

TOOLS: dict[str, tuple[str, ...]] = {
    "memcheck": ("--padding", "256"),
    "racecheck": ("--racecheck-report", "all"),
    "initcheck": (),
    "synccheck": (),
}
USUAL_PLACES = "/usr/local/cuda/bin:/opt/cuda/bin"
FOUND_CODE = 9
"""What a tool ends with where it found something, apart from what the cases end with."""
TOOL_VARIABLE = "EDGECONV_SANITIZER"
SUMMARY = re.compile(r"(?:ERROR SUMMARY: |hazards? displayed \()(\d+) errors?(?:, (\d+) warnings?)?")
RAN = re.compile(r"^ran (\d+) cases of (\d+) kernels$", re.MULTILINE)
QUIET_CASE = re.compile(r"^case: .*\n+(?=case: |ran |$)", re.MULTILINE)
"""The name of a case that nothing was said of."""
SHOWN_LINES = 60
PRINTED_REPORTS = 100
"""Of each tool, each with its two call stacks; the others are counted."""
NEVER_WRITTEN = 0xA5
"""What the bytes of an output are before it is written."""
SCHEMA_VERSION = 1
EXIT_FOUND, EXIT_UNAVAILABLE = 1, 4


def summary_of(tool: str, text: str, exit_code: int, seconds: float) -> dict[str, Any]:
    """What one tool said; its first lines where it found anything, or where not all cases ran."""
    told, ran = SUMMARY.search(text), RAN.search(text)
    errors, warnings = (int(number or 0) for number in told.groups()) if told else (0, 0)
    cases, kernels = map(int, ran.groups()) if ran else (0, 0)
    lines = [line.rstrip() for line in QUIET_CASE.sub("", text).splitlines() if line.strip()]
    if told is None:
        lines.insert(0, f"{tool} gave no summary: did it start?")
    clean = told is not None and exit_code == errors == 0 and cases > 0
    return {
        "tool": tool,
        "clean": clean,
        "exit_code": exit_code,
        "errors": errors,
        "warnings": warnings,
        "cases": cases,
        "kernels": kernels,
        "seconds": round(seconds, 1),
        "first_lines": [] if clean and not warnings else lines[:SHOWN_LINES],
    }


def run_case(work: Any, zeroed: bool) -> None:
    """One plan on its pictures, compared with the oracle; raises AssertionError where it is wrong."""
    import cupy

    problem = work.case.problem()
    if zeroed and "im2col" in work.maker:
        cupy.cuda.set_allocator(_zeroed)
    plan = kernel_work.make_plan(work, problem)
    cupy.cuda.set_allocator(None)
    out = cupy.empty((work.pictures, *problem.output_shape), problem.output_dtype)
    out.data.memset(NEVER_WRITTEN, out.nbytes)
    pixels = problems.images_of(problem, work.pictures)
    memory = cupy.empty(work.offset_samples + pixels.size, pixels.dtype)  # ends where the last picture does
    memory[work.offset_samples :] = cupy.asarray(pixels).ravel()
    source, all_or_one = memory[work.offset_samples :].reshape(pixels.shape), slice(None) if work.pictures > 1 else 0
    plan.run(source[all_or_one], out[all_or_one])
    for picture, result in zip(pixels, out.get(), strict=True):
        found = check.check(picture, result, problem, plan.arithmetic, 2000)
        assert found.passed, f"{work}: wrong samples: {found.unexplained_samples}, worst {found.worst}"


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
        print(f"case: {work}", flush=True)
        try:
            run_case(work, zeroed)
        except UnavailableError as reason:
            print(f"passed over: {work}: {reason}")
            continue
        except AssertionError as wrong:
            print(wrong)
            return EXIT_FOUND
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


def run_tool(sanitizer: str, tool: str) -> dict[str, Any]:
    """One tool over all cases."""
    cases = (sys.executable, str(Path(__file__).resolve()), "--one-pass")
    told = ("--print-limit", str(PRINTED_REPORTS), "--error-exitcode", str(FOUND_CODE))
    started = time.monotonic()
    done = subprocess.run(
        (sanitizer, "--tool", tool, *TOOLS[tool], *told, *cases),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, TOOL_VARIABLE: tool, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    return summary_of(tool, text, done.returncode, time.monotonic() - started)


def main() -> int:
    """Parse, run the tools one after the other, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one-pass", action="store_true", help="Run the cases in this process, without a tool.")
    parser.add_argument("--tool", choices=tuple(TOOLS), action="append", help="Only this tool; may be repeated.")
    parser.add_argument("--sanitizer", default="compute-sanitizer", help="The program.")
    parser.add_argument("--output", type=Path, help="Write the summary to this file, as JSON.")
    asked = parser.parse_args()
    if asked.one_pass:
        return one_pass()
    sanitizer = shutil.which(asked.sanitizer) or shutil.which(asked.sanitizer, path=USUAL_PLACES)
    if sanitizer is None:
        print("There is no compute-sanitizer here: install the CUDA toolkit's, or name it with --sanitizer PATH.")
        return EXIT_UNAVAILABLE
    shares = os.cpu_count() or 1
    with ProcessPoolExecutor(shares, mp_context=get_context("spawn")) as pool:
        list(pool.map(compile_share, range(shares), [shares] * shares))
    version = subprocess.run((sanitizer, "--version"), capture_output=True, text=True, check=False).stdout.strip()
    record: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "machine": get_device("cuda").describe(),
        "versions": {**installed_versions(), "compute-sanitizer": version.rpartition("\n")[2]},
        "tools": [],
    }
    for tool in asked.tool or TOOLS:
        found = run_tool(sanitizer, tool)
        verdict = "nothing found" if found["clean"] else "{errors} errors, exit code {exit_code}".format(**found)
        print("{tool}: {cases} cases of {kernels} kernels in {seconds:.0f} s: ".format(**found) + verdict)
        print("\n".join(f"    {line}" for line in found["first_lines"]), flush=True)
        record["tools"].append(found)
        if asked.output is not None:  # after each tool: one that is stopped loses no other's summary
            write_bytes_atomically(asked.output, (json.dumps(record, indent=1) + "\n").encode())
    return 0 if all(found["clean"] for found in record["tools"]) else EXIT_FOUND


if __name__ == "__main__":
    sys.exit(main())
