"""`cudnn`: the fastest algorithm, and by several threads. Bands: test_cuda_plans.py; results: test_gpu_methods.py."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from cpu_problems import RANDOM, Case
from gpu_gate import Gate
from problems import assert_right, image_of, random_image, run_on_gpu

import edgeconv
from edgeconv.methods.cuda import libcudnn
from edgeconv.methods.cuda.cudnn import CuDNN
from edgeconv.methods.options import Math, Options

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(libcudnn.unavailable_reason() is not None, reason=str(libcudnn.unavailable_reason())),
]
PATIENCE = 60


@pytest.mark.parametrize("math", ["fma", "tf32", "half"])
@pytest.mark.parametrize(
    "case",
    [
        Case(RANDOM, "mix", "float32", "raw", shape=(259, 512)),
        Case("sobel", "mix", "uint8", "abs", stride=2, shape=(259, 512)),
    ],
    ids=str,
)
def test_find_measures_algorithms_and_takes_the_fastest(case: Case, math: Math) -> None:
    problem, options = case.problem(), Options(math=math, cudnn_find=True)
    plan = CuDNN().prepare(problem, options)
    measured = [entry for entry in plan.choice["ranked"] if "skipped" not in entry]
    least = min(entry["time_seconds"] for entry in measured)
    fastest = [entry["algorithm"] for entry in measured if entry["time_seconds"] == least]  # may be two
    assert least > 0
    assert plan.choice["taken"]["algorithm"] in fastest
    assert_right(run_on_gpu(plan, image_of(problem), problem))


@pytest.mark.parametrize(
    ("case", "math", "path"),
    [
        (Case(RANDOM, "mix", "float32", "raw", stride=3, padding=5), "tf32", "direct"),
        (Case(RANDOM, "each", "float32", "raw", stride=3, padding=5), "tf32", "grouped"),
        (Case("kirsch", "each", "uint8", "abs", border="reflect"), "fma", "grouped"),
        (Case("sobel", "each", "float16", "abs"), "half", "grouped"),
        (Case(RANDOM, "mix", "float16", "raw"), "half", "direct"),
        (Case(RANDOM, "mix", "float16", "raw"), "fma", "staged"),
        (Case(RANDOM, "mix", "float32", "abs"), "fma", "staged"),
        (Case(RANDOM, "mix", "float32", "raw", border="reflect"), "fma", "staged"),
        (Case("sobel", "mix", "float32", "raw"), "fma", "staged"),
    ],
    ids=str,
)
def test_each_convolution_goes_the_way_that_suits_it(case: Case, math: Math, path: str) -> None:
    assert CuDNN().prepare(case.problem(), Options(math=math)).choice["path"] == path


def test_the_parts_of_a_run_are_the_run() -> None:
    import cupy

    plan = edgeconv.plan((259, 512, 3), "uint8", method="cudnn", stride=2)
    image = cupy.asarray(random_image(259, 512, "uint8"))
    out, whole = cupy.zeros(plan.output_shape, "uint8"), plan(image)
    parts = plan.method_plan.parts(image, out)
    for part in parts.values():
        assert not cupy.array_equal(out, whole)
        part()
    assert cupy.array_equal(out, whole)
    found = plan.measure().timing.parts_seconds
    assert list(found) == list(parts) == ["pad and convert", "convolve", "join and store"]
    assert all(seconds > 0 for seconds in found.values())


@pytest.mark.parametrize("dtype", ["float32", "uint8"], ids=["direct", "staged"])
def test_two_plans_of_one_thread_run_in_two(dtype: str) -> None:
    """Each on its own stream, behind its own gate: a convolution on the other one comes before its picture."""
    import cupy

    problem = Case(RANDOM, "mix", dtype, "raw", shape=(300, 400)).problem()
    plans = [CuDNN().prepare(problem, Options()) for _ in range(2)]
    images = [cupy.asarray(random_image(300, 400, dtype, seed)) for seed in range(2)]
    expected = [cupy.empty(problem.output_shape, problem.output_dtype) for _ in plans]
    for plan, image, out in zip(plans, images, expected, strict=True):
        plan.run(image, out)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in plans]
    given, found = [cupy.empty_like(image) for image in images], [cupy.empty_like(out) for out in expected]
    gates = [Gate(), Gate()]
    cupy.cuda.Device().synchronize()

    def queue(number: int, closed: bool, together: Barrier) -> None:
        with streams[number]:
            given[number].fill(0)
            found[number].fill(0)
            if closed:
                gates[number].close()
            given[number][...] = images[number]
            together.wait(PATIENCE)
            plans[number].run(given[number], found[number])

    with gates[0], gates[1], ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        for attempt in range(20):
            together = Barrier(2)
            queued = [
                thread.submit(queue, number, attempt > 0, together) for number, thread in enumerate((first, second))
            ]
            for each in queued:
                each.result()
            for number in (1, 0) if attempt % 2 else (0, 1):
                gates[number].open()
                streams[number].synchronize()
                assert cupy.array_equal(found[number], expected[number])
