"""Run Canny's CUDA plans on the CPU, in a separate process (kernel_work.run_on_cpu starts it).

Standard input is a pickled list of `CannyCase`. Each plan is prepared once and run with the threads of a block in both
orders, into poisoned memory, and compared with the oracle. The first that is wrong, or that a sanitizer stops, ends it.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import fake_cupy  # noqa: E402

fake_cupy.install()

import numpy as np  # noqa: E402
from canny_cases import CannyCase  # noqa: E402

from edgeconv.core.chains import chain_problem, make_chain  # noqa: E402
from edgeconv.methods.cuda.canny import plan_canny, workspace_bytes_of  # noqa: E402
from edgeconv.methods.cuda.canny_plan import CudaCannyPlan  # noqa: E402
from edgeconv.methods.options import Options  # noqa: E402

MOST_OF_A_CHAIN = 4000
"""Samples of a case that is run through the method's plan as well: what that adds does not depend on the size."""


def run(case: CannyCase) -> None:
    """Run and compare; raises AssertionError with the first wrong pixel."""
    pictures = case.batch()
    plan = plan_canny(pictures.shape[1:], pictures.dtype, case.settings, len(pictures))
    for descending in (False, True):
        fake_cupy.cupy.descending = descending
        source, out = case.place(pictures, fake_cupy.asarray, fake_cupy.empty)
        plan.passes(source, out)[0]()
        case.check(plan.edge_map(), "edge map")
        plan.run(source, out)
        assert np.array_equal(source, pictures), "the kernel wrote to its input"
        case.check(np.asarray(out), "edges")


def run_as_chain(case: CannyCase) -> None:
    """The same through the plan that the method `sliding` gives for a chain: a batch, and its first picture alone."""
    pictures = case.batch()
    hwc = pictures if pictures.ndim == 4 else pictures[..., np.newaxis]
    measure = "l2" if case.settings.l2 else "l1"
    low, high, blur = case.settings.low, case.settings.high, case.settings.blur
    chain = make_chain("canny", low=low, high=high, gradient=measure, blur=blur)
    problem = chain_problem(hwc.shape[1:], hwc.dtype, chain, "abs")
    needed = workspace_bytes_of(problem.height, problem.width, len(hwc))
    plan = CudaCannyPlan(problem, Options(), len(hwc))
    assert (plan.workspace_bytes, plan.launches) == (needed, plan._canny.launches), "the workspace was counted wrongly"
    source, out = fake_cupy.asarray(hwc), fake_cupy.empty((*hwc.shape[:3], 1), np.uint8)
    plan.run(source, out)
    case.check(np.asarray(out)[..., 0], "edges")
    again = fake_cupy.empty((*hwc.shape[:3], 1), np.uint8)
    plan.run_at(source.data.ptr, again.data.ptr)
    case.check(np.asarray(again)[..., 0], "edges")
    first = fake_cupy.empty((*hwc.shape[1:3], 1), np.uint8)
    CudaCannyPlan(problem, Options()).run(fake_cupy.asarray(hwc[0]), first)
    assert np.array_equal(first, np.asarray(out)[0]), "a picture alone has other edges than in a batch"


def main() -> int:
    """Run all of it; 1 and one line at the first that is wrong."""
    for case in pickle.load(sys.stdin.buffer):
        print(case, flush=True)
        try:
            run(case)
            if case.batch().size <= MOST_OF_A_CHAIN:
                run_as_chain(case)
        except AssertionError as failure:
            print(f"wrong: {failure}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
