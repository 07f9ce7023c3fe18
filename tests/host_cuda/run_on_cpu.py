"""Run CUDA plans and kernels on the CPU, in a separate process (kernel_work.run_on_cpu starts it).

It has imported everything once: to load that under the sanitizers takes longer than most work. Standard input brings
one `Job` after another; each runs in a child of this process. Each plan is prepared once and run with the threads of a
block in both orders, into poisoned memory between guard zones, and compared with the oracle. Each that is wrong is
printed; what a sanitizer stops ends the child.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "host_cuda"), str(TESTS / "fuzz"), str(TESTS), str(TESTS.parent)]

import fake_cupy  # noqa: E402

fake_cupy.install()

import numpy as np  # noqa: E402
from canny_pictures import CannyCase  # noqa: E402
from cases import FuzzCase  # noqa: E402
from fuzzing import Fuzzed, run_one  # noqa: E402
from kernel_work import Ended, FloorWords, Job, Work, make_plan  # noqa: E402
from problems import image_of  # noqa: E402

from edgeconv.api import check  # noqa: E402
from edgeconv.core.chains import chain_problem, make_chain  # noqa: E402
from edgeconv.hardware.cuda.limits import FLOOR_KERNELS, THREADS  # noqa: E402
from edgeconv.methods.cuda.canny import plan_canny, workspace_bytes_of  # noqa: E402
from edgeconv.methods.cuda.canny_plan import CudaCannyPlan  # noqa: E402
from edgeconv.methods.options import Options  # noqa: E402

MOST_OF_A_CHAIN = 4000
"""Samples of a case that is run through the method's plan as well: what that adds does not depend on the size."""


def run_work(work: Work) -> None:
    """A plan of a method; raises AssertionError with the worst sample."""
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


def run_canny(case: CannyCase) -> None:
    """Canny's plan; raises AssertionError with the first wrong pixel."""
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
    if pictures.size <= MOST_OF_A_CHAIN:
        run_as_chain(case)


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


def run_floor(words: FloorWords) -> None:
    """The kernels of the floor, in grids of fewer and of more threads than words."""
    read = words.source()
    source, target = fake_cupy.asarray(read), fake_cupy.empty((words.writes, 4), np.uint32)
    addresses = (ctypes.c_void_p(array.ctypes.data) for array in (source, target))
    values = (*addresses, ctypes.c_longlong(words.reads), ctypes.c_longlong(words.writes))
    pointers = (ctypes.c_void_p * 4)(*(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values))
    for variant in FLOOR_KERNELS:
        kernel = fake_cupy.load(variant)
        for blocks in words.grids(variant, THREADS):
            for descending in (False, True):
                target[...] = 0xEEEEEEEE
                kernel.launch((blocks, 1, 1), (THREADS, 1, 1), ctypes.addressof(pointers), descending)
                assert np.array_equal(target, words.expected(variant.entry)), (variant.entry, words)


METHODS = [import_module(f"edgeconv.methods.cuda.{name}") for name in ("sliding", "textbook", "im2col", "implicit")]
CUDNN = import_module("edgeconv.methods.cuda.cudnn")


def run_fuzz(case: FuzzCase) -> None:
    """A case of the fuzzer, by a method that takes this for its GPU."""
    CUDNN.libcudnn.unavailable_reason = lambda: None
    for method in (*METHODS, CUDNN):
        method.cuda_unavailable_reason = lambda: None
    found = Fuzzed()
    run_one(case, found)
    assert not found.failures, found.failures[0]["what"]


RUN: dict[type, Callable[[Any], None]] = {
    Work: run_work,
    CannyCase: run_canny,
    FloorWords: run_floor,
    FuzzCase: run_fuzz,
}


def run(job: Job) -> int:
    """Run all of it; 1 where something was wrong."""
    code = 0
    for case in job.works:
        print(case, flush=True)
        try:
            RUN[type(case)](case)
        except AssertionError as failure:
            print(f"wrong: {failure}", flush=True)
            code = 1
    return code


def be_the_child(job: Job, output: int) -> NoReturn:
    """Run it with `output` in the place of what this process prints to, and end."""
    code = 1
    try:
        for stream in (1, 2):
            os.dup2(output, stream)
        os.environ.update(job.environment)
        code = run(job)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    """Answer each job with how it ended, until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    while sys.stdin.buffer.peek(1):
        job = pickle.load(sys.stdin.buffer)
        with TemporaryFile() as output:
            child = os.fork() or be_the_child(job, output.fileno())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            output.seek(0)
            pickle.dump(Ended(status, output.read().decode(errors="replace")), answers)
            answers.flush()


if __name__ == "__main__":
    main()
