"""Every kernel that plans ask for, found by preparing them: a program that writes them, pickled, to standard output.

For scripts/compile_kernels.py. The works are those of kernel_table.py and some of Canny; CuPy is a stand-in here whose
arrays are nowhere, and whose kernels are only written down.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS.parent), str(TESTS), str(TESTS / "host_cuda")]

import numpy as np  # noqa: E402

from edgeconv.hardware.cuda import kernels, limits  # noqa: E402

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


def stand_in(multiprocessors: int = 132) -> ModuleType:
    """What plans take from CuPy before they run."""
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
        driver=SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=lambda *asked: 16),
        get_current_stream=lambda: SimpleNamespace(ptr=0),
        runtime=SimpleNamespace(getDevice=lambda: 0, setDevice=lambda number: None),
    )
    return cupy  # type: ignore[no-any-return]


found: dict[kernels.KernelVariant, None] = {}


def write_down(variant: kernels.KernelVariant) -> Any:
    """In the place of kernels.load."""
    found.setdefault(variant)
    return SimpleNamespace(kernel=SimpleNamespace(ptr=0))


def without_halo(variant: kernels.KernelVariant) -> tuple[Any, ...]:
    """A variant but for where a lane's window starts, of which one is as good as another to compile."""
    return variant.source, variant.entry, tuple(item for item in variant.defines if item[0] != "HALO_BYTES")


def prepare_all() -> None:
    """Prepare a plan for each work; those of strips for arrays on 16 bytes and for others."""
    import fake_libraries
    import kernel_table as table
    from canny_pictures import cuda_plan
    from kernel_work import CUDNN, IM2COL, IMPLICIT, LARGE_SLIDING, SLIDING, TEXTBOOK, Work, make_plan

    from edgeconv.core.canny import BLURS, CannySettings
    from edgeconv.methods.cuda.cudnn import CudnnPlan
    from edgeconv.methods.options import Options

    fake_libraries.install_cudnn()
    CudnnPlan._choose = lambda self, options: None  # type: ignore[method-assign]  # it runs what it chooses from

    def works() -> Iterator[Work]:
        yield from (Work(maker, case) for maker in table.MAKERS for case in table.RULES)
        for sums in table.SUMS:
            for stride in dict.fromkeys((sums.strides[0], sums.strides[-1] if sums.everywhere else sums.strides[0])):
                yield Work(LARGE_SLIDING, replace(sums.rules, stride=stride))
        yield from (*table.flat_works(), *table.implicit_works(), *table.library_works())
        several = [*table.GREY, *table.BANKS, *table.DOUBLES]
        yield from (Work(SLIDING, case) for case in several)
        yield from (Work(LARGE_SLIDING, case) for case in table.few_of(several))
        yield from (Work(maker, case) for maker in (IM2COL, TEXTBOOK) for case in table.few_of(several))
        yield from (Work(IMPLICIT, case) for case in table.few_of([*table.GREY, *table.BANKS]))
        yield from (Work(CUDNN, case) for case in table.RULES)
        yield from (Work(IM2COL, case, Options(gemm="cublas")) for case in table.RULES)
        yield from (Work(SLIDING, replace(case, shape=(9, 48)), pictures=3) for case in table.BATCHES)

    for work in works():
        plan: Any = make_plan(work, work.case.problem())
        if hasattr(plan, "_cut"):
            for aligned in (False, True):
                plan._cut((aligned, aligned))
    for dtype, channels, l2, blur in (
        (dtype, channels, l2, blur)
        for dtype in ("uint8", "uint16")
        for channels in (1, 3)
        for l2 in (False, True)
        for blur in BLURS
    ):
        for width in (8, 40):
            plan = cuda_plan((9, width, channels), dtype, CannySettings(1, 2, l2, blur))
            for address in (0, 1):
                plan._launches(address, address)


def main() -> None:
    """Write them, each once but for the place of its windows."""
    sys.modules["cupy"] = stand_in()
    kernels.load = write_down  # type: ignore[assignment]
    prepare_all()
    from edgeconv.bench.ladders import conv, gemm

    beside = [*limits.variants(), *conv.LADDER.variants(), *gemm.LADDER.variants()]
    once = {without_halo(variant): variant for variant in (*beside, *found)}
    pickle.dump(list(once.values()), sys.stdout.buffer)


if __name__ == "__main__":
    main()
