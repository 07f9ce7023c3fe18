"""Works that run every piece of the CUDA kernels' code, and every kernel that plans ask for.

    python tests/kernel_table.py works       what test_kernels_on_cpu.py and scripts/sanitize_gpu.py run, pickled
    python tests/kernel_table.py variants    what scripts/compile_kernels.py compiles

Macros select code. Works are drawn, and prepared with a stand-in for CuPy whose arrays are nowhere and whose kernels
are only written down: so the macros of each are known. So many works are taken that any two values of macros that meet
in a kernel at all meet in a kernel of these. A weight of zero hides what is read beside the window, so many are random.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from math import gcd
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS.parent), str(TESTS), str(TESTS / "host_cuda")]

import numpy as np  # noqa: E402

from edgeconv.hardware.cuda import kernels, limits  # noqa: E402

asked_for: dict[kernels.KernelVariant, None] = {}


def write_down(variant: kernels.KernelVariant) -> Any:
    """In the place of kernels.load."""
    asked_for.setdefault(variant)
    return SimpleNamespace(kernel=SimpleNamespace(ptr=0))


if __name__ == "__main__":
    kernels.load = write_down  # type: ignore[assignment]  # before any method is imported

from cpu_problems import FILTERS, NO_RING, NO_RING_OPPOSITE, RANDOM, Case, modes_of  # noqa: E402
from kernel_work import CONV_STEP, CUDNN, IM2COL, IMPLICIT, LARGE_SLIDING, SLIDING, TEXTBOOK, Work, make_plan  # noqa: E402
from selection import covering  # noqa: E402

from edgeconv.core.choices import BORDERS  # noqa: E402
from edgeconv.core.geometry import KERNEL_SIZE  # noqa: E402
from edgeconv.core.problem import Problem  # noqa: E402
from edgeconv.errors import MemoryLimitError, UnavailableError  # noqa: E402
from edgeconv.methods.cuda.kernel_args import CudaPlan  # noqa: E402
from edgeconv.methods.options import Options  # noqa: E402

# --- a GPU that is nowhere ----------------------------------------------------------------------------------------

PLACE = 4096
"""Where every array of the stand-in starts."""


class Nowhere(np.ndarray):
    """An array of which one sample is kept."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=PLACE)

    def __setitem__(self, place: Any, values: Any) -> None:
        """Nothing is kept."""


def nowhere(shape: Any, dtype: Any) -> Nowhere:
    """An array of that shape."""
    return np.broadcast_to(np.zeros((), dtype), shape).view(Nowhere)


def stand_in(multiprocessors: int) -> ModuleType:
    """What plans take from CuPy."""
    cupy: Any = ModuleType("cupy")
    cupy.empty = nowhere
    cupy.full = lambda count, value, dtype: nowhere((count,), dtype)
    cupy.asarray = lambda values: np.asarray(values).view(Nowhere)
    attributes = {"MultiProcessorCount": multiprocessors, "L2CacheSize": 1 << 25}
    device = SimpleNamespace(id=0, attributes=attributes, compute_capability="90")
    cupy.cuda = SimpleNamespace(
        Device=lambda *number: device,
        alloc=lambda count: SimpleNamespace(ptr=PLACE, size=count),
        device=SimpleNamespace(get_cublas_handle=lambda: 1),
        driver=SimpleNamespace(
            CUDADriverError=RuntimeError,
            launchKernel=lambda *asked: None,
            occupancyMaxActiveBlocksPerMultiprocessor=lambda *asked: 16,
        ),
        get_current_stream=lambda: SimpleNamespace(ptr=0),
        runtime=SimpleNamespace(getDevice=lambda: 0, setDevice=lambda number: None),
    )
    return cupy  # type: ignore[no-any-return]


# --- works that are drawn -----------------------------------------------------------------------------------------

FEW_MULTIPROCESSORS = 3
"""So that small pictures take the blocks of large ones too."""
DRAWN = 700
"""Of each of these makers."""
OPTIONS = {
    SLIDING: [Options()],
    LARGE_SLIDING: [Options()],
    TEXTBOOK: [Options(block=block) for block in (8, 16, 32)],
    IM2COL: [Options(), Options(gemm="cublas")],
    IMPLICIT: [Options()],
    CUDNN: [Options(workspace_limit_bytes=100_000), Options(math="half")],
}
ONE_FILTER = [filter for filter in FILTERS if not filter[1]]
WITH_FRACTIONS = [(name, 0, 3) for name in ("sobel/0.00001", "laplacian8/0.001", "scharr/0.125")]
OTHERS = [("emboss", 0, 1), *((name, 0, 3) for name in ("scharr", "laplacian4", NO_RING, NO_RING_OPPOSITE))]
LARGE_BANKS = [(RANDOM, 64, 3), (RANDOM, 130, 1), ("sobel", 32, 3)]
FORMS = (*FILTERS, *ONE_FILTER, *WITH_FRACTIONS, *OTHERS, *LARGE_BANKS)
STRIDES = (1, 1, 1, 2, 2, 3, 5, 7)
PADDINGS = (*range(9), 1, 1, 1, 1, 40, 140)
"""Among them is every place in a quad of words where a window can start."""
SHAPES = ((1, 1), (1, 7), (7, 1), (5, 4), (13, 17), (7, 20), (7, 48), (18, 48), (31, 33), (5, 300), (7, 304))
SHAPES = (*SHAPES, (33, 65), (37, 131), (64, 64), (90, 75), (137, 9), (138, 18))
"""Rows of whole runs of 16 bytes and others, from a window to several tiles."""
FLAT_SHAPES = ((7, 48), (18, 48), (5, 304), (84, 304), (84, 304))
"""Heights that end within a step, and the tile of large pictures."""
MOST_MULTIPLY_ADDS = 2_000_000
"""A second on a CPU."""


def draw_case(draw: Random) -> Case:
    """A case that exists; a third of them are what flat rows take."""
    name, filters, channels = draw.choice(FORMS)
    dtype = draw.choice(("uint8", "uint8", "uint16", "float16", "float32", "float64"))
    shares = draw.choice(("mix", "each", "luma")) if channels == 3 else "mix"
    rules = (draw.choice(STRIDES), draw.choice(PADDINGS), draw.choice(BORDERS), draw.choice(SHAPES))
    case = Case(name, shares, dtype, draw.choice(modes_of(dtype)), *rules, filters, channels)
    if draw.random() < 1 / 3:
        case = replace(case, stride=1, padding=1, shape=draw.choice(FLAT_SHAPES))
    if min(case.shape) + 2 * case.padding < KERNEL_SIZE or multiply_adds(case.problem()) > MOST_MULTIPLY_ADDS:
        return draw_case(draw)
    return case


def multiply_adds(problem: Problem) -> int:
    """How long a work takes on a CPU."""
    in_group = problem.in_channels // problem.groups
    return int(np.prod(problem.output_shape)) * in_group * KERNEL_SIZE**2 * problem.directions


def draw_work(maker: str, draw: Random) -> Work:
    """A work of a maker."""
    options, offset = draw.choice(OPTIONS[maker]), draw.choice((0, 0, 0, 0, 1, 3))
    return Work(maker, draw_case(draw), options, offset, pictures=draw.choice((1, 1, 3)) if maker == SLIDING else 1)


COUNTS = ("OUT_CHANNELS", "OUT_PITCH", "GROUPS")
MANY = 4
"""From here on a count selects no other code."""
IMPLIED = ("DIRECTIONS", "IN_PITCH", "MIN_BLOCKS", "STEP_ROWS", "STEPS_AHEAD", "USES_FLOAT16", "USES_FLOAT64")


PLAIN = ("textbook", "sliding_direct", "im2col", "stage", "epilogue")
"""Of kernels that are one loop each value of a macro is in one."""


def code_of(work: Work, variant: kernels.KernelVariant) -> dict[str, Any]:
    """What selects the code of a kernel: its macros without those that others imply; how wide a lane's access is, and
    where its window starts in that.
    """
    macros, problem = dict(variant.defines), work.case.problem()
    selects = {name: value for name, value in macros.items() if name not in IMPLIED}
    selects |= {name: min(int(macros[name]), MANY) for name in COUNTS if name in macros}
    if "THREAD_PIXELS" in macros:
        pixels = int(macros["THREAD_PIXELS"])
        selects["READ"] = gcd(16, pixels * problem.stride * problem.in_channels * problem.dtype.itemsize)
        selects["WRITE"] = gcd(16, pixels * problem.output_channels * problem.output_dtype.itemsize)
        selects["HALO_BYTES"] = int(macros["HALO_BYTES"]) % min(16, 4 * problem.dtype.itemsize)
        del selects["THREAD_PIXELS"]
    return selects


def prepare(work: Work) -> list[kernels.KernelVariant]:
    """What a work asks for; the kernels of arrays that start elsewhere are asked for when it runs."""
    asked_for.clear()
    problem = work.case.problem()
    plan: Any = make_plan(work, problem)
    if isinstance(plan, CudaPlan):
        kinds = problem.dtype, problem.output_dtype
        plan.run_at(*(PLACE + work.offset_samples * kind.itemsize for kind in kinds))
    return list(asked_for)


def choose() -> tuple[list[Work], list[kernels.KernelVariant]]:
    """Works of all that are drawn, and their kernels."""
    works: list[Work] = []
    found: dict[str, list[tuple[int, kernels.KernelVariant]]] = defaultdict(list)
    for maker in OPTIONS:
        draw = Random(maker)
        for work in (draw_work(maker, draw) for _ in range(DRAWN)):
            with suppress(MemoryLimitError, UnavailableError):
                for variant in prepare(work):
                    found[variant.entry].append((len(works), variant))
                works.append(work)
    chosen: set[int] = set()
    for entry, asked in found.items():
        codes = [code_of(works[number], variant) for number, variant in asked]
        names = sorted(set().union(*codes))
        rows = covering([tuple(code.get(name) for name in names) for code in codes], 1 if entry in PLAIN else 2)
        chosen |= {asked[row][0] for row in rows}
    variants = (variant for asked in found.values() for number, variant in asked if number in chosen)
    return [works[number] for number in sorted(chosen)], list(dict.fromkeys(variants))


@cache
def works() -> list[Work]:
    """The works, chosen in a process of its own, where CuPy is the stand-in."""
    done = subprocess.run([sys.executable, __file__, "works"], capture_output=True, check=True)
    found: list[Work] = pickle.loads(done.stdout)
    return found


def ladder_works() -> Iterator[Work]:
    """Every step of the ladder of convolutions with its usual block; rows on 16 bytes and not."""
    from edgeconv.bench.ladders import conv

    for entry in conv.STEPS:
        for stride, blocks in entry.blocks.items():
            for width in (48, 45):
                case = Case(RANDOM, "mix", "float32", "raw", stride=stride, shape=(19, width))
                yield Work(CONV_STEP, case, words=(entry.name, blocks[0]))


LARGE_ON_A_GPU = (700, 1300)
"""Enough to fill a large GPU with the largest blocks of each kind."""
LARGE = 10
"""Works of each maker that also run so."""


def works_for_a_gpu() -> list[Work]:
    """The works, the ladder's, and some of each maker on pictures that fill a GPU; one picture each."""
    found = [replace(work, pictures=1) for work in works() if work.maker != CUDNN]
    large = [
        replace(work, case=replace(work.case, shape=LARGE_ON_A_GPU))
        for maker in (SLIDING, IM2COL, IMPLICIT)
        for work in [work for work in found if work.maker == maker][:LARGE]
    ]
    return list(dict.fromkeys([*found, *ladder_works(), *large]))


def canny_variants() -> list[kernels.KernelVariant]:
    """Of every kind of picture and setting, narrow and wide, on whole words and not."""
    from canny_pictures import canny_chain, cuda_plan

    from edgeconv.core.canny import BLURS

    asked_for.clear()
    for dtype in ("uint8", "uint16"):
        for channels in (1, 3):
            for chain in (canny_chain(1, 2, l2, blur) for l2 in (False, True) for blur in BLURS):
                for width in (8, 40):
                    plan = cuda_plan((9, width, channels), dtype, chain)
                    for address in (0, 1):
                        plan._launches(address, address)
    return list(asked_for)


def main() -> None:
    """Write the works, or all kernels, each once."""
    import fake_libraries

    sys.modules["cupy"] = stand_in(FEW_MULTIPROCESSORS)
    fake_libraries.install_cudnn()
    from edgeconv.methods.cuda.cudnn import CudnnPlan

    CudnnPlan._choose = lambda self, options: None  # type: ignore[method-assign]  # it runs what it chooses from
    chosen, variants = choose()
    if sys.argv[1] == "works":
        pickle.dump(chosen, sys.stdout.buffer)
        return
    from edgeconv.bench.ladders import conv, gemm

    ladders = (*conv.LADDER.variants(), *gemm.LADDER.variants())
    every = (*limits.variants(), *ladders, *canny_variants(), *variants)
    pickle.dump(list(dict.fromkeys(every)), sys.stdout.buffer)


if __name__ == "__main__":
    main()
