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

from edgeconv.methods.cuda.canny import plan_canny  # noqa: E402


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


def main() -> int:
    """Run all of it; 1 and one line at the first that is wrong."""
    for case in pickle.load(sys.stdin.buffer):
        print(case, flush=True)
        try:
            run(case)
        except AssertionError as failure:
            print(f"wrong: {failure}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
