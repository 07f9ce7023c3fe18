"""Compile every CUDA kernel for every architecture with NVRTC, with no GPU, and refuse what spills registers.

    python scripts/compile_kernels.py                          all kernels, all architectures
    python scripts/compile_kernels.py --arch sm_90 --only sliding
    python scripts/compile_kernels.py --arch sm_75 --arch sm_90 --turns    each kernel for one of both

Needs cuda-bindings and the wheels nvidia-cuda-nvrtc and nvidia-cuda-runtime (its headers); no CuPy, no driver.
One line per kernel and architecture: registers per thread, bytes of shared memory per block, local memory and spills
per thread where there are any, the kernel and its macros. Exit code 1 if a kernel spills or does not compile, 4 if
NVRTC is not there.
"""

from __future__ import annotations

import argparse
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

from edgeconv.core.optional import install
from edgeconv.errors import EXIT_DIFFERENT, EXIT_OK, UnavailableError, one_line
from edgeconv.hardware.cuda.kernels import KernelVariant
from edgeconv.hardware.threads import usable_threads

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
"""From the oldest that CUDA 13 compiles for (Turing) to the newest (Blackwell, two of them)."""

ADDED_BY_CUPY = ("-ftz=true", "--device-as-default-execution-space")
SOURCES_AT_ONCE = 4
"""That a process takes: one or two seconds of work, so that all end at nearly the same time."""
VARIANTS = Path(__file__).resolve().parents[1] / "tests" / "kernel_table.py", "variants"
"""The program that finds all kernels, and its word for it."""

FIGURES = {
    "registers": r"Used (\d+) registers",
    "bytes shared": r"(\d+) bytes smem",
    "bytes local": r"(\d+) bytes stack frame",
    "bytes SPILLED": r"(\d+) bytes spill (?:stores|loads)",
}
"""What ptxas says that a kernel takes; local bytes are arrays of a thread that did not fit registers."""


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel for one architecture: its figures, or the compiler's errors."""

    variant: KernelVariant
    architecture: str
    figures: dict[str, int] | None
    log: str

    def __str__(self) -> str:
        macros = " ".join(f"{name}={value}" for name, value in self.variant.defines)
        shown = "DOES NOT COMPILE"
        if self.figures is not None:
            shown = ", ".join(f"{number:,} {words}" for words, number in self.figures.items() if number)
        return f"{self.architecture:<6} {shown} | {self.variant.source} {self.variant.entry} {macros}".rstrip()

    @property
    def wrong(self) -> str | None:
        """Why it is not good, or None."""
        if self.figures is None:
            return f"{self}:\n{self.log}"
        return str(self) if self.figures["bytes SPILLED"] else None


def every_variant() -> list[KernelVariant]:
    """What plans of all CUDA methods, the ladders and the measurement of the roof ask for."""
    done = subprocess.run([sys.executable, *map(str, VARIANTS)], capture_output=True, check=True)
    found: list[KernelVariant] = pickle.loads(done.stdout)
    return found


def parse_log(log: str, entry: str) -> dict[str, int]:
    """`FIGURES` of the kernel `entry` and the functions that it calls; raises ValueError where it is not in the log."""
    sections = re.split(r"Compiling entry function '(\w+)' for '\w+'", log)
    named = dict(zip(sections[1::2], sections[2::2], strict=True))
    if entry not in named:
        raise ValueError(f"ptxas said nothing of '{entry}'")
    return {words: max(map(int, re.findall(pattern, named[entry])), default=0) for words, pattern in FIGURES.items()}


def asked_for(
    variants: Sequence[KernelVariant], architectures: Sequence[str], by_turns: bool
) -> list[tuple[KernelVariant, str]]:
    """Each kernel for every architecture, or by turns for one of them, which its own macros decide."""
    if not by_turns:
        return list(product(variants, architectures))
    return [(each, architectures[crc32(repr(each).encode()) % len(architectures)]) for each in variants]


def compile_all(
    asked: Sequence[tuple[KernelVariant, str]], each: Callable[..., Iterable[tuple[bool, str]]] = map
) -> list[CompiledKernel]:
    """Kernels with the options that CuPy would give them; `each` is `map`, or that of a pool.

    A source is compiled once for an architecture and its macros, whatever number of kernels it holds. Raises
    UnavailableError where there is no NVRTC.
    """
    sources = [(variant.source, variant.text, variant.options, architecture) for variant, architecture in asked]
    distinct = list(dict.fromkeys(sources))
    logs = dict(zip(distinct, each(_compile, *zip(*distinct, strict=True)), strict=True)) if distinct else {}
    found = []
    for (variant, architecture), source in zip(asked, sources, strict=True):
        good, log = logs[source]
        found.append(CompiledKernel(variant, architecture, parse_log(log, variant.entry) if good else None, log))
    return found


def _compile(name: str, text: str, options: tuple[str, ...], architecture: str) -> tuple[bool, str]:
    """Whether a source compiles, and the log."""
    nvrtc, headers = _nvrtc()
    created, program = nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], [])
    _check(created)
    where = (f"--gpu-architecture={architecture}", f"--include-path={headers}", "--ptxas-options=-v")
    words = [option.encode() for option in (*options, *ADDED_BY_CUPY, *where)]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(words), words)
    sized, size = nvrtc.nvrtcGetProgramLogSize(program)
    _check(sized)
    buffer = bytes(size)
    _check(*nvrtc.nvrtcGetProgramLog(program, buffer))
    _check(*nvrtc.nvrtcDestroyProgram(program))
    return result == nvrtc.nvrtcResult.NVRTC_SUCCESS, buffer.decode(errors="replace").rstrip("\0 \n")


def _nvrtc() -> tuple[Any, str]:
    """The binding, and the folder of CUDA's headers."""
    way_out = install("dev")
    try:
        from cuda.bindings import nvrtc
        from cuda.pathfinder import find_nvidia_header_directory

        nvrtc.nvrtcVersion()
        headers = find_nvidia_header_directory("cudart")
    except Exception as error:  # the binding, the path finder and the loader raise different classes
        raise UnavailableError(f"NVRTC cannot be loaded ({one_line(error)}): {way_out}.") from None
    if headers is None:
        raise UnavailableError(f"CUDA's headers are not installed: {way_out}.")
    return nvrtc, headers


def _check(result: Any) -> None:
    """Raise where a call that only a broken installation fails did fail."""
    if int(result):
        raise UnavailableError(f"NVRTC returned {result.name}: reinstall nvidia-cuda-nvrtc.")


def main() -> int:
    """Compile, print a line for each, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=ARCHITECTURES, help="Only this one; may be repeated.")
    parser.add_argument("--turns", action="store_true", help="Each kernel for one of these only, by turns.")
    parser.add_argument("--only", default="", help="Only kernels whose source file's name has this in it.")
    arguments = parser.parse_args()
    wanted = [variant for variant in every_variant() if arguments.only in variant.source]
    asked = asked_for(wanted, arguments.arch or ARCHITECTURES, arguments.turns)
    try:
        _nvrtc()
        with ProcessPoolExecutor(usable_threads()) as pool:
            compiled = compile_all(asked, partial(pool.map, chunksize=SOURCES_AT_ONCE))
    except UnavailableError as error:
        print(f"compile_kernels: error: {error}", file=sys.stderr)
        return error.exit_code
    print(*compiled, sep="\n")
    wrong = [one.wrong for one in compiled if one.wrong]
    for text in wrong:
        print(f"compile_kernels: error: {text}", file=sys.stderr)
    print(f"{len(wanted)} kernels, {len(wrong)} of {len(compiled)} compilations not good.")
    return EXIT_DIFFERENT if wrong else EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
