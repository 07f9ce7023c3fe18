"""How long a method will take for a job on this machine, from a few constants: what `auto` goes by without a profile.

    one picture      start + work of a first run             a process that filters one picture of a file
    many pictures    start + pictures · work                 a batch, all threads busy with one picture each
    calls            work                                    calls with arrays, in a process that lives on

    work, CPU        call + wake + max(bytes / rate, FLOPs / rate) + first touch of output pages
    work, GPU        call + bytes up / bus + kernel + bytes down / bus + first touch of output pages

Decoding and encoding are the same whatever method is chosen, and are left out. The constants are of one H200 with 16
cores of its host and of two cores of an EPYC; on other machines they are a rough guess, which `edgeconv tune` replaces
by measurements. A method without a line here is the fastest in no case that was measured.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Literal

from edgeconv.core.choices import DeviceName
from edgeconv.core.cost import count
from edgeconv.core.exactness import sums_for
from edgeconv.core.forms import operations_per_pixel
from edgeconv.core.problem import Problem
from edgeconv.hardware.pool import PARALLEL_BYTES
from edgeconv.methods.cuda.sliding_arithmetic import form_for

Purpose = Literal["one picture", "many pictures", "calls"]
"""`one picture`: a file in a process of its own. `many pictures`: files. `calls`: arrays of the host, in a process that
lives on, so that no start is counted."""


@dataclass(frozen=True)
class CpuConstants:
    """A method on the CPU."""

    start_seconds: float
    """Imports and the first compilation."""
    again_seconds: float
    """Compilation for another problem, where the compiler is loaded."""
    call_seconds: float
    flops_per_thread: float
    """Useful FLOPs a second in float32; half of it in float64."""
    flops_per_thread_8_bit: float
    memory_share: float = 1.0
    """Of the rate at which memory can be read and written."""
    most_threads: int = 64
    """Beyond which it gets no faster."""
    computes_all: bool = False
    """Whether it computes every pixel whatever the stride."""
    takes_forms: bool = False
    """Whether it computes by the forms of core/forms.py, where they save operations."""


CPU_METHODS: dict[str, CpuConstants] = {
    # start: set_up of docs/results/run/two-core-epyc.json.xz, cpu_*_s1; rates: two Zen 5 cores and 16 of a
    # Xeon (records that later ones replaced); calls: calls_h200_host of docs/results/small.json.xz,
    # and the smallest pictures of the bench
    "sliding": CpuConstants(0.106, 0.05, 7e-6, 100e9, 200e9, takes_forms=True),
    "im2col": CpuConstants(0.131, 0.07, 7e-6, 60e9, 110e9, memory_share=0.45),
    "opencv": CpuConstants(0.006, 0.001, 40e-6, 16e9, 16e9, most_threads=2, computes_all=True),
}
COMPILER = "llvmlite"
"""The module whose being loaded tells that the compiler has started in this process."""
COMPILED = ("sliding", "im2col")

FIRST_RUN = 4
"""How much longer a first run takes, in which every page is new: cold_seconds of two-core-epyc.json.xz there."""

BYTES_PER_THREAD = 21e9
MOST_CPU_BYTES = 120e9
"""Bytes read and written a second: two cores and sixteen of docs/results/bench, float32 of 2048 and 4096."""
WAKE_SECONDS = 5e-6
"""For each thread that is woken."""
ROOT_FLOPS = 12
"""What a square root of two responses costs, as FLOPs: sobel beside laplacian8 on two Zen 5 cores."""

FLOPS_OF_OPERATION = 2
"""An operation of a form takes the time of a multiply-add, which counts as two."""

FRESH_BYTES = 32 * 2**20
"""The allocator gives a new array above this fresh pages at every call (glibc, M_MMAP_THRESHOLD at its largest)."""
FRESH_SECONDS_PER_BYTE = 90e-12
"""62 ps on sixteen cores, 123 on two, for the kernel to clear a page when it is first written."""

CUDA_METHOD = "sliding"
CUDA_START_SECONDS = 0.7
"""CuPy, the driver, a context and the first kernels, and taking it all down: whole commands beside those of the CPU."""
CUDA_AGAIN_SECONDS = 0.3
"""Compilation for another problem, where CuPy is loaded: set_up of cuda_sliding_s1 of docs/results/run/h200.json.xz."""
CUDA_CALL_SECONDS = 30e-6
"""Two copies, a launch and a wait: end to end of the smallest pictures in docs/results/bench/h200/gpu.json.xz."""
CUDA_BYTES_PER_SECOND = 3.5e12
"""Of sliding's kernels, in GPU memory: docs/results/bench/h200."""
CUDA_FLOPS_PER_SECOND = 30e12
BUS_BYTES_PER_THREAD, MOST_BUS_BYTES = 5e9, 28e9
"""Ordinary memory over the bus, through page-locked slots of so many threads: host_to_device of
docs/results/batch.json.xz, h200 (one thread for each picture); page-locked memory takes 55e9."""
MOST_BUS_THREADS = 8
STAGED_BYTES = 2 * 2**20
DIRECT_BUS_BYTES = 10e9
"""Smaller arrays are one copy of the driver."""


@dataclass(frozen=True)
class Forecast:
    """What a method is expected to take for a job."""

    method: str
    device: DeviceName
    work_seconds: float
    """Of one picture or call, without its start."""
    start_seconds: float = 0.0
    """What the process pays once for it; 0 where that is not counted."""
    bus_seconds: float = 0.0
    """The part of the work that is the way to the GPU and back."""
    pictures: int = 1

    @property
    def seconds(self) -> float:
        """Of the job."""
        return self.start_seconds + self.pictures * self.work_seconds


def forecasts(problem: Problem, purpose: Purpose, pictures: int | None, threads: int) -> list[Forecast]:
    """One for each method with constants, the fastest first.

    `pictures` are those of a batch, or of one call; None: so many of a batch that no start counts.
    """
    several = 1 if pictures is None else pictures
    found = [
        Forecast(name, "cpu", _cpu_work(known, problem, purpose, several, threads), _cpu_start(name, known, purpose))
        for name, known in CPU_METHODS.items()
    ]
    found.append(_cuda(problem, purpose, several, threads))
    if purpose == "many pictures":
        found = [
            replace(one, pictures=several, start_seconds=0.0 if pictures is None else one.start_seconds)
            for one in found
        ]
    return sorted(found, key=lambda one: one.seconds)


def break_even(cpu: Forecast, cuda: Forecast) -> float | None:
    """From how many pictures on the GPU ends first; None where it never does."""
    saved = cpu.work_seconds - cuda.work_seconds
    return (cuda.start_seconds - cpu.start_seconds) / saved if saved > 0 else None


def _cpu_start(name: str, known: CpuConstants, purpose: Purpose) -> float:
    if purpose == "calls":
        return 0.0
    return known.again_seconds if name in COMPILED and COMPILER in sys.modules else known.start_seconds


def _cpu_work(known: CpuConstants, problem: Problem, purpose: Purpose, pictures: int, threads: int) -> float:
    in_call = pictures if purpose == "calls" else 1
    moved = in_call * _moved_bytes(problem)
    used = threads if purpose == "many pictures" or moved >= PARALLEL_BYTES else 1
    computing = min(used, known.most_threads)
    rate = computing * (known.flops_per_thread_8_bit if problem.dtype.itemsize == 1 else known.flops_per_thread)
    if sums_for(problem) == "float64":
        rate /= 2
    flops = in_call * _flops(problem, known.takes_forms) * (problem.stride**2 if known.computes_all else 1)
    wake = 0.0 if used == 1 or purpose == "many pictures" else WAKE_SECONDS * used
    memory = moved / min(BYTES_PER_THREAD * used, MOST_CPU_BYTES) / known.memory_share
    call = known.call_seconds / (used if purpose == "many pictures" else 1)
    busy = max(memory, flops / rate)
    if purpose == "one picture":
        return call + wake + FIRST_RUN * busy
    return call + wake + busy + _fresh_seconds(problem, in_call)


def _cuda(problem: Problem, purpose: Purpose, pictures: int, threads: int) -> Forecast:
    in_call = pictures if purpose == "calls" else 1
    moved = in_call * _moved_bytes(problem)
    flops = in_call * _flops(problem, form_for(problem) is not None)
    kernel = max(moved / CUDA_BYTES_PER_SECOND, flops / CUDA_FLOPS_PER_SECOND)
    largest = in_call * max(problem.input_bytes, problem.output_bytes)
    staged = purpose == "many pictures" or largest > STAGED_BYTES
    bus = moved / (min(BUS_BYTES_PER_THREAD * threads, MOST_BUS_BYTES) if staged else DIRECT_BUS_BYTES)
    if staged and purpose != "many pictures":  # the helpers of both transfers are woken
        bus += 2 * WAKE_SECONDS * min(threads, MOST_BUS_THREADS)
    call = CUDA_CALL_SECONDS / (threads if purpose == "many pictures" else 1)
    started = CUDA_AGAIN_SECONDS if "cupy" in sys.modules else CUDA_START_SECONDS
    start = 0.0 if purpose == "calls" else started
    work = call + kernel + bus + _fresh_seconds(problem, in_call)
    return Forecast(CUDA_METHOD, "cuda", work, start, bus)


def _moved_bytes(problem: Problem) -> int:
    return problem.input_bytes + problem.output_bytes


def _fresh_seconds(problem: Problem, pictures: int) -> float:
    written = pictures * problem.output_bytes
    return written * FRESH_SECONDS_PER_BYTE if written > FRESH_BYTES else 0.0


def _flops(problem: Problem, takes_forms: bool) -> int:
    """Useful FLOPs, or those of the forms where they are fewer; and what square roots cost."""
    pixels = problem.output_height * problem.output_width
    flops = count(problem).useful_flops
    if takes_forms:
        operations, _ = operations_per_pixel(problem)
        flops = min(flops, FLOPS_OF_OPERATION * operations * pixels)
    return flops + (ROOT_FLOPS * pixels * problem.output_channels if problem.combine == "magnitude" else 0)
