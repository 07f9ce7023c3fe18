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
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "host_cuda"), str(TESTS / "fuzz"), str(TESTS), str(TESTS.parent)]

import fake_cupy  # noqa: E402

fake_cupy.install()

import numpy as np  # noqa: E402
from canny_pictures import CannyCase, edge_map  # noqa: E402
from cases import FuzzCase  # noqa: E402
from fuzzing import Fuzzed, run_one  # noqa: E402
from kernel_work import Ended, FloorWords, Job, Work, make_plan  # noqa: E402
from problems import images_of  # noqa: E402

from edgeconv.api import check  # noqa: E402
from edgeconv.hardware.cuda.limits import FLOOR_KERNELS, THREADS  # noqa: E402
from edgeconv.methods.cuda.canny import workspace_bytes_of  # noqa: E402


def run_work(work: Work) -> None:
    """A plan of a method; raises AssertionError with the worst sample."""
    problem = work.case.problem()
    plan = make_plan(work, problem)
    images = images_of(problem, work.pictures)
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
    """Canny's plan; raises AssertionError with the first wrong pixel. The first picture alone has the same edges."""
    pictures, plan = case.batch(), case.plan()
    assert plan.workspace_bytes == workspace_bytes_of(*case.shape[:2], case.pictures), "the workspace is another"
    for descending in (False, True):
        fake_cupy.cupy.descending = descending
        source = fake_cupy.asarray(pictures, case.offset_samples)
        out = fake_cupy.empty((*pictures.shape[:3], 1), np.uint8, case.offset_samples)
        first, read, written = plan._launches(source.data.ptr, out.data.ptr)[0]
        first.at(read, written, None)
        case.check(edge_map(plan), "edge map")
        plan.run(source, out)
        assert np.array_equal(source, pictures), "the kernel wrote to its input"
        case.check(np.asarray(out), "edges")
    if case.pictures > 1:
        alone = fake_cupy.empty((*pictures.shape[1:3], 1), np.uint8)
        replace(case, pictures=1).plan().run(fake_cupy.asarray(pictures[0]), alone)
        assert np.array_equal(alone, np.asarray(out)[0]), "a picture alone has other edges than in a batch"


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
