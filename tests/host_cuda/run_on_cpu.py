"""Run CUDA plans on the CPU, in a separate process (kernel_work.run_on_cpu starts it).

Standard input is a pickled list of `Work`. Each is prepared once and run with the threads of a block in both orders,
into poisoned memory, and compared with the oracle. The first that is wrong, or that a sanitizer stops, ends it.
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
from kernel_work import Work, make_plan  # noqa: E402
from problems import image_of  # noqa: E402

from edgeconv.runtime import check  # noqa: E402


def run(work: Work) -> None:
    """Run and compare; raises AssertionError with the worst sample."""
    problem = work.case.problem()
    plan = make_plan(work, problem)
    images = np.stack([image_of(problem, seed) for seed in range(work.pictures)])
    for descending in (False, True):
        fake_cupy.cupy.descending = descending
        source = fake_cupy.asarray(images, work.offset_samples)
        out = fake_cupy.empty((work.pictures, *problem.output_shape), problem.output_dtype, work.offset_samples)
        plan.run(*((source, out) if work.pictures > 1 else (source[0], out[0])))
        assert np.array_equal(source, images), "the kernel wrote to its input"
        for image, result in zip(images, np.asarray(out), strict=True):
            found = check.check(image, result, problem, plan.arithmetic)
            assert found.passed, f"{found.unexplained_samples} wrong samples, worst {found.worst}"


def main() -> int:
    """Run all of it; 1 and one line at the first that is wrong."""
    for work in pickle.load(sys.stdin.buffer):
        print(work, flush=True)
        try:
            run(work)
        except AssertionError as failure:
            print(f"wrong: {failure}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
