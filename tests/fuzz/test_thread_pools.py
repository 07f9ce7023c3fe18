"""Calls and plans from pools of threads: same and different problems, one stream and several, memory being reused.

Every result is compared with the oracle, which knows of no thread. What goes wrong here is a plan, a buffer or a
stream that two threads take for their own, or a thread that has no CUDA context yet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from cases import draw_samples
from oracle import FLOAT32, TWOFOLD_HALF, Arithmetic, Asked, Expected, expect, named
from selection import few_then_slow

import edgeconv
from edgeconv.core.request import make_request
from edgeconv.methods import require
from edgeconv.methods.base import Plan
from edgeconv.methods.options import Options

THREADS = 6
TURNS = 12


@dataclass(frozen=True)
class Question:
    """A call with its right answer."""

    method: str
    image: np.ndarray
    words: tuple[tuple[str, Any], ...]
    expected: Expected

    def call(self, image: Any, device: str, **more: Any) -> Any:
        return edgeconv.convolve(image, method=self.method, device=device, **dict(self.words), **more)

    def plan(self, device: Any) -> Plan:
        words = dict(self.words)
        request = make_request(words.pop("filter"), **words)
        problem = request.problem(self.image.shape, self.image.dtype)
        return require(self.method, device).prepare(problem, Options())

    def check(self, got: np.ndarray) -> None:
        got = got.reshape(self.expected.low.shape)  # luma comes without an axis for its one channel
        wrong = self.expected.wrong(got)
        assert not wrong.any(), f"{self.method} {self.image.dtype}: {self.expected.describe_first(got, wrong)}"


def question(
    method: str, name: str, channels: str, dtype: str, shape: tuple[int, int], how: Arithmetic = FLOAT32, **rules: Any
) -> Question:
    """A picture of noise, and what is right for it."""
    rng = np.random.default_rng([*shape, len(name)])
    image = draw_samples(rng, "unit" if dtype.startswith("f") else "noise", shape, np.dtype(dtype))
    kernels, combine = named(name)
    expected = expect(image, Asked(kernels, combine, channels, **rules), how)
    words = {
        "filter": name,
        "channels": channels,
        "stride": rules.get("stride", 1),
        "border": rules.get("border", "zero"),
    }
    return Question(method, image, tuple(words.items()), expected)


def at_once(tasks: list[Callable[[], None]]) -> None:
    """Run every task in a thread of its own, all of them starting together; the first failure is raised."""
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], None]) -> None:
        start.wait()
        task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        for done in [pool.submit(run, task) for task in tasks]:
            done.result()


def in_fresh_threads(task: Callable[[], None], count: int) -> None:
    """Run `task` in threads that have never run anything, one after the other."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            task()
        except BaseException as error:
            failures.append(error)

    for _ in range(count):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    if failures:
        raise failures[0]


def cpu_questions() -> list[Question]:
    return [
        question("sliding", "sobel", "each", "uint8", (61, 83)),
        question("sliding", "laplacian8", "mix", "float32", (40, 300), stride=2),
        question("im2col", "scharr-x", "luma", "uint16", (33, 47), border="reflect"),
        question("opencv", "laplacian4", "each", "uint8", (90, 70), border="replicate"),
        question("opencv", "prewitt", "mix", "float32", (37, 52)),
        question("im2col", "kirsch", "each", "uint8", (29, 31), stride=3),
    ]


LARGE = (900, 1300)
"""7 MB in and out: enough for the CPU methods to share it among threads of their own."""


# --- CPU ------------------------------------------------------------------------------------------------------------


def test_all_threads_ask_all_questions() -> None:
    """The last session of a thread is let go while others run."""
    questions = cpu_questions()

    def ask(first: int) -> None:
        for turn in range(TURNS):
            one = questions[(first + turn) % len(questions)]
            one.check(one.call(one.image, "cpu"))

    at_once([partial(ask, number) for number in range(THREADS)])


@pytest.mark.parametrize("method", few_then_slow(["sliding", "opencv"]))
def test_large_pictures_share_the_pool_of_workers(method: str) -> None:
    one = question(method, "sobel", "each", "uint8", LARGE)

    def ask() -> None:
        for _ in range(2):
            one.check(one.call(one.image, "cpu", options=Options(threads=3)))

    at_once([ask] * 4)


# --- CUDA -----------------------------------------------------------------------------------------------------------


def gpu_questions() -> list[Question]:
    return [
        question("sliding", "sobel", "each", "uint8", (61, 83)),
        question("sliding", "laplacian8", "mix", "uint8", (400, 300)),
        question("sliding", "laplacian8", "mix", "float16", (70, 64), TWOFOLD_HALF),
        question("im2col", "scharr-x", "luma", "uint16", (133, 47), border="reflect"),
        question("implicit", "prewitt", "mix", "float32", (137, 152), stride=2),
        question("textbook", "kirsch", "each", "uint8", (29, 31), stride=3),
    ]


def ask_on_gpu(questions: list[Question], first: int, own_stream: bool) -> None:
    """Each turn's picture is let go at once, so the next allocation may get its memory while kernels run."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True) if own_stream else nullcontext()
    with stream:
        outs = []
        for turn in range(TURNS):
            one = questions[(first + turn) % len(questions)]
            outs.append((one, one.call(cupy.asarray(one.image), "cuda")))
        results = [(one, out.get()) for one, out in outs]
    for one, got in results:
        one.check(got)


@pytest.mark.gpu
@pytest.mark.parametrize("own_stream", [False, True], ids=["one stream", "several streams"])
def test_threads_ask_with_arrays_on_the_gpu(own_stream: bool) -> None:
    questions = gpu_questions()
    at_once([partial(ask_on_gpu, questions, number, own_stream) for number in range(THREADS)])


@pytest.mark.gpu
def test_threads_ask_with_host_arrays_for_the_gpu() -> None:
    questions = gpu_questions()

    def ask(first: int) -> None:
        for turn in range(TURNS):
            one = questions[(first + turn) % len(questions)]
            one.check(one.call(one.image, "cuda"))

    at_once([partial(ask, number) for number in range(THREADS)])


@pytest.mark.gpu
@pytest.mark.parametrize("number", range(6))
def test_a_fresh_threads_first_call(number: int) -> None:
    """It has no CUDA context yet: the picture lies on the GPU already, and the pool gives memory without asking it."""
    import cupy

    one = gpu_questions()[number]
    image = cupy.asarray(one.image)
    one.check(one.call(image, "cuda").get())  # the main thread knows everything by now

    def ask() -> None:
        one.check(one.call(image, "cuda").get())

    in_fresh_threads(ask, 3)


@pytest.mark.gpu
@pytest.mark.parametrize("number", range(6))
def test_a_fresh_thread_runs_a_plan(number: int) -> None:
    import cupy

    one = gpu_questions()[number]
    plan = one.plan("cuda")
    image, out = cupy.asarray(one.image), cupy.zeros(plan.problem.output_shape, plan.problem.output_dtype)
    cupy.cuda.Device().synchronize()

    def run() -> None:
        plan.run(image, out)
        one.check(out.get())
        out.fill(0)

    in_fresh_threads(run, 3)


@pytest.mark.gpu
def test_an_array_on_another_gpu_stays_there() -> None:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    one = gpu_questions()[0]
    with cupy.cuda.Device(1):
        image = cupy.asarray(one.image)

    def ask() -> None:
        out = one.call(image, "cuda")
        assert out.device.id == 1
        with cupy.cuda.Device(1):
            one.check(out.get())

    ask()
    in_fresh_threads(ask, 2)
    assert cupy.cuda.Device().id == 0
