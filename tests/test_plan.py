"""`edgeconv.plan` and the arrays that it takes: any library's, batches, `out=`, threads, cache of `convolve`."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from problems import random_image

import edgeconv
from edgeconv.api import arrays, measure
from edgeconv.api.cache import PlanCache
from edgeconv.api.figures import speed
from edgeconv.api.plan import MAX_STREAMS
from edgeconv.core.cost import count
from edgeconv.core.records import to_json
from edgeconv.core.timing import Budget, Stopwatch, series_of
from edgeconv.errors import MemoryLimitError, UsageError
from edgeconv.hardware.cpu.device import CpuDevice
from edgeconv.methods import METHODS
from edgeconv.methods.reference import ReferencePlan

CPU_METHODS = [entry.name for entry in METHODS if entry.device == "cpu"]
RULES: dict[str, Any] = {"filter": "sobel", "channels": "each", "device": "cpu"}


class OnlyDlpack:
    """What DLPack asks for, and nothing else: no shape, no type."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **words: Any) -> Any:
        return self.array.__dlpack__(**words)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Foreign(OnlyDlpack):
    """An array of a library that edgeconv has never heard of."""

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(array)
        self.shape, self.dtype = array.shape, f"foreign.{array.dtype}"

    def __array_namespace__(self) -> Any:
        return SimpleNamespace(from_dlpack=lambda other: Foreign(np.from_dlpack(other)))


def test_what_speaks_dlpack_alone_is_taken_too() -> None:
    image = random_image(9, 13, "uint8")
    assert np.array_equal(edgeconv.convolve(OnlyDlpack(image), **RULES), edgeconv.convolve(image, **RULES))


def as_torch(array: np.ndarray) -> Any:
    return pytest.importorskip("torch").from_numpy(array)


def as_jax(array: np.ndarray) -> Any:
    jax = pytest.importorskip("jax")
    return jax.device_put(array, jax.devices("cpu")[0])


MAKERS = {"numpy": np.asarray, "torch": as_torch, "jax": as_jax, "dlpack": Foreign}


def numbers(array: Any) -> np.ndarray:
    return array.array if isinstance(array, Foreign) else np.asarray(array)


@pytest.fixture(params=MAKERS)
def made(request: pytest.FixtureRequest) -> Any:
    """Makes an array of each library from one of NumPy's."""
    return MAKERS[request.param]


@pytest.mark.parametrize("output_mode", ["abs", "raw", "normalize"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_every_library_gets_back_its_own_kind(made: Any, dtype: str, output_mode: str) -> None:
    image = random_image(13, 9, dtype)
    expected = edgeconv.convolve(image, method="reference", output_mode=output_mode, **RULES)
    given = made(image)
    plan = edgeconv.plan(image.shape, dtype, method="sliding", output_mode=output_mode, **RULES)
    for found in (plan(given), edgeconv.convolve(given, method="sliding", output_mode=output_mode, **RULES)):
        assert type(found) is type(given)
        assert (tuple(found.shape), numbers(found).dtype) == (plan.output_shape, plan.output_dtype)
        assert np.allclose(numbers(found).astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", CPU_METHODS)
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_batch_is_its_pictures(method: str, stride: int) -> None:
    batch = np.stack([random_image(12, 17, "uint16", seed) for seed in range(5)])
    plan = edgeconv.plan(batch.shape, batch.dtype, method=method, stride=stride, **RULES)
    expected = np.stack([edgeconv.convolve(image, method=method, stride=stride, **RULES) for image in batch])
    assert np.array_equal(plan(batch), expected)
    assert np.array_equal(edgeconv.convolve(batch, method=method, stride=stride, **RULES), expected)
    out = np.empty(plan.output_shape, plan.output_dtype)
    assert plan(batch, out=out) is out
    assert np.array_equal(out, expected)


def test_a_batch_is_shared_by_threads() -> None:
    batch = np.stack([random_image(40, 30, "uint8", seed) for seed in range(64)])
    options = edgeconv.Options(threads=3)
    plan = edgeconv.plan(batch.shape, "uint8", method="sliding", options=options, **RULES)
    assert "3 threads" in plan.explain()
    assert np.array_equal(plan(batch)[63], edgeconv.convolve(batch[63], method="sliding", **RULES))


def test_strided_unaligned_swapped_and_read_only_pictures_and_subclasses_give_the_same(tmp_path: Path) -> None:
    image = random_image(20, 30, "uint16")
    plan = edgeconv.plan(image.shape, "uint16", method="sliding", **RULES)
    expected = plan(image)
    wide = np.zeros((20, 60, 3), np.uint16)
    wide[:, ::2] = image
    raw = np.zeros(image.nbytes + 1, np.uint8)
    unaligned = raw[1:].view(np.uint16).reshape(image.shape)
    unaligned[...] = image
    frozen = image.copy()
    frozen.setflags(write=False)
    for other in (wide[:, ::2], image[::-1][::-1], unaligned, image.astype(">u2"), frozen, np.asfortranarray(image)):
        assert np.array_equal(plan(other), expected)
        assert np.array_equal(plan(other, out=np.empty_like(expected)), expected)
    filed = np.memmap(tmp_path / "out", np.uint16, "w+", shape=expected.shape)
    for out in (filed, np.empty_like(expected).view(type("Own", (np.ndarray,), {}))):
        assert plan(image, out=out) is out
        assert np.array_equal(plan(out), plan(expected))
    filed.flush()
    with pytest.raises(UsageError, match="writable"):
        plan(image, out=np.memmap(tmp_path / "out", np.uint16, "r", shape=expected.shape))


@pytest.mark.parametrize(
    ("out", "says"),
    [
        (np.empty((8, 9, 3), np.uint8), "output must be"),
        (np.empty((9, 8, 3), np.uint16), "output must be"),
        (np.empty((9, 16, 3), np.uint8)[:, ::2], "output must be"),
        (np.frombuffer(bytes(9 * 8 * 3), np.uint8).reshape(9, 8, 3), "writable"),
        ([[1]], "NumPy, CuPy"),
    ],
    ids=["shape", "type", "strided", "read-only", "no array"],
)
def test_an_output_that_does_not_fit_is_refused_and_left_alone(out: Any, says: str) -> None:
    image = random_image(9, 8, "uint8")
    for method, mode in (("sliding", "abs"), ("opencv", "abs"), ("sliding", "normalize")):
        plan = edgeconv.plan(image.shape, "uint8", method=method, output_mode=mode, **RULES)
        with pytest.raises(UsageError, match=says):
            plan(image, out=out)


BATCH = (3, 6, 4, 3)
PICTURE_BYTES = 6 * 4 * 3


@pytest.mark.parametrize(("stride", "out_shape"), [(1, BATCH), (2, (3, 3, 2, 3))])
def test_an_output_may_touch_a_batch_and_not_lie_over_any_picture_of_it(
    stride: int, out_shape: tuple[int, ...]
) -> None:
    plan = edgeconv.plan(BATCH, "uint8", method="sliding", device="cpu", channels="each", stride=stride)
    taken, written = 3 * PICTURE_BYTES, int(np.prod(out_shape))
    memory = np.zeros(taken + 2 * written, np.uint8)
    batch = memory[written : written + taken].reshape(BATCH)
    for start in (0, written + taken):
        plan(batch, out=memory[start : start + written].reshape(out_shape))
    for start in (1, written, written + PICTURE_BYTES, written + taken - 1):
        with pytest.raises(UsageError, match="shares memory"):
            plan(batch, out=memory[start : start + written].reshape(out_shape))
    repeated = np.broadcast_to(memory[:PICTURE_BYTES].reshape(1, *BATCH[1:]), BATCH)
    with pytest.raises(UsageError, match="shares memory"):  # each picture of it is read where it is
        plan(repeated, out=memory[:written].reshape(out_shape))


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (np.zeros((8, 9, 3), np.uint8), "8×9×3: the plan was made for 9×8×3"),
        (np.zeros((3, 9, 8), np.uint8), "3×9×8"),
        (np.zeros((9, 8, 3), np.int8), "type int8: the plan was made for uint8"),
        (np.ma.masked_array(np.zeros((9, 8, 3), np.uint8)), "mask"),
        ("photo.png", "not str"),
    ],
)
def test_a_picture_that_does_not_fit_is_refused(image: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        edgeconv.plan((9, 8, 3), "uint8", method="sliding", **RULES)(image)


@pytest.mark.parametrize(
    "shape", [(4,), (0, 4), (0, 9, 8, 3), (2, 2, 9, 8, 3), (9, 8, 4), 9, (9.5, 8, 3), "9x8x3", None]
)
def test_a_shape_that_is_no_picture_is_refused(shape: Any) -> None:
    with pytest.raises(UsageError):
        edgeconv.plan(shape, "uint8")


def test_a_tensor_that_wants_gradients_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(UsageError, match="detach"):
        edgeconv.convolve(torch.zeros((9, 8, 3), requires_grad=True), device="cpu")


@pytest.mark.parametrize("kind", ["numpy", "dlpack"])
@pytest.mark.parametrize("mode", ["abs", "normalize"])
def test_whichever_allocation_of_a_call_fails_the_memory_is_said_to_be_out(
    kind: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool that is empty after a number of arrays."""
    left = [0]

    def of_pool(make: Any) -> Any:
        def allocate(*words: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise MemoryError("the pool is empty")
            return make(*words)

        return allocate

    for owner, name in ((arrays, "aligned_empty"), (CpuDevice, "empty")):
        monkeypatch.setattr(owner, name, of_pool(getattr(owner, name)))
    image = MAKERS[kind](random_image(9, 8, "uint8"))
    for left[0] in range(2 if mode == "normalize" else 1):
        with pytest.raises(MemoryLimitError, match=r"about [\d,]+ bytes are needed.*method='sliding'"):
            edgeconv.plan((9, 8, 3), "uint8", output_mode=mode, **RULES)(image)
    left[0] = 2
    edgeconv.plan((9, 8, 3), "uint8", output_mode=mode, **RULES)(image)


def test_a_plan_says_what_was_chosen_and_what_it_holds() -> None:
    plan = edgeconv.plan((64, 48, 3), "uint8", method="sliding", **RULES)
    text = plan.explain()
    for part in ("sliding on cpu", "asked for by name", "64×48×3 uint8", "workspace"):
        assert part in text
    assert "sobel" in repr(plan)
    assert plan.bound.shape == (3,)
    assert not plan.bound.any()
    assert (edgeconv.plan((9, 8, 3), "float32", filter="laplacian8", method="sliding", device="cpu").bound > 0).all()
    assert plan.memory_bytes == plan.method_plan.workspace_bytes > 0


# --- `run`, which files and measurements go through -----------------------------------------------------------------

IMAGE, OTHER = random_image(6, 7, "uint8"), random_image(6, 7, "uint8", 1)
FEW = Budget(min_samples=2, max_samples=2)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("mode", ["raw", "normalize"])
def test_a_result_is_the_callers_and_the_next_picture_leaves_it_alone(device: str, mode: str) -> None:
    rules: dict[str, Any] = RULES | {"device": device, "stride": 2, "output_mode": mode}
    plan, watch = edgeconv.plan(IMAGE.shape, "uint8", method="sliding", **rules).prepared, Stopwatch()
    first, second = plan.run(IMAGE, watch=watch), plan.run(OTHER)
    given = np.empty_like(first)
    assert plan.run(IMAGE[::-1, ::-1], given) is given
    plan.release_arrays()
    again = plan.run(OTHER)
    for found, image in ((first, IMAGE), (second, OTHER), (given, IMAGE[::-1, ::-1]), (again, OTHER)):
        expected = edgeconv.convolve(image, method="reference", **RULES | {"stride": 2, "output_mode": mode})
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    raw = edgeconv.convolve(OTHER, method="reference", **RULES | {"stride": 2, "output_mode": "raw"})
    np.testing.assert_allclose(plan.raw() if mode == "normalize" else again, raw, rtol=1e-6)
    moved = ["host_to_device", "convolve", "device_to_host"] if device == "cuda" else ["convolve"]
    assert list(watch.phases_seconds) == moved


def test_times_hold_both_copies_the_method_and_the_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU as a device with memory of its own, by a clock that each step turns further."""
    clock = [0.0]

    def takes(seconds: float, call: Any) -> Any:
        def step(*words: Any) -> Any:
            clock[0] += seconds
            return call(*words)

        return step

    def time_once(call: Any) -> float:
        before = clock[0]
        call()
        return clock[0] - before

    plan = edgeconv.plan(IMAGE.shape, "uint8", method="sliding", output_mode="normalize", **RULES).prepared
    plan.finish, device = takes(100, plan.finish), plan.processor
    monkeypatch.setattr(device, "time_once", time_once)
    monkeypatch.setattr(plan.method_plan, "run", takes(10, plan.method_plan.run))
    assert measure.time_kernel(plan, IMAGE, FEW)[0].samples_seconds == [110.0, 110.0]
    for name, seconds in (("copy_in", 1), ("copy_out", 1000)):
        monkeypatch.setattr(device, name, takes(seconds, getattr(device, name)))
    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    assert measure.time_end_to_end(plan, IMAGE, FEW).samples_seconds == [1111.0, 1111.0]


@pytest.mark.parametrize("method", ["reference", "opencv", "sliding"])
def test_a_plan_measures_itself_as_run_does(made: Any, method: str) -> None:
    image = random_image(40, 30, "uint8")
    plan = edgeconv.plan(image.shape, "uint8", method=method, stride=2, **RULES)
    found = plan.measure(made(image), samples=6, check="full")
    assert (found.method.name, found.method.asked_for, found.device.kind) == (method, method, "cpu")
    assert (found.problem.filter.name, found.problem.stride, found.problem.channels) == ("sobel", 2, "each")
    kernel, speed = found.timing.kernel, found.speed
    assert 3 <= kernel.n == len(kernel.samples_seconds) <= 6
    assert found.counts.nominal_flops == 2 * 9 * 3 * 20 * 15 * 2
    assert speed.kernel_gflops == pytest.approx(found.counts.nominal_flops / kernel.median_seconds / 1e9)
    assert speed.roof.copy_bytes_per_second > 0
    assert "a copy of the picture's own bytes" in speed.roof.how
    assert (found.check.passed, found.check.checked_share, found.check.exact) == (True, 1.0, True)
    assert to_json(found).startswith(b"{")


def test_a_measurement_sees_a_wrong_result(monkeypatch: pytest.MonkeyPatch) -> None:
    image = random_image(9, 8, "uint8")
    plan = edgeconv.plan(image.shape, "uint8", method="reference", **RULES)
    run = ReferencePlan.run

    def wrong(self: Any, image: Any, out: Any) -> None:
        run(self, image, out)
        out[3, 4, 1] ^= 1

    monkeypatch.setattr(ReferencePlan, "run", wrong)
    check = plan.measure(image, samples=0).check
    assert (check.passed, check.differing_samples) == (False, 1)
    assert (check.worst.y, check.worst.x, check.worst.channel) == (3, 4, 1)


@pytest.mark.parametrize(
    ("shape", "words", "says"),
    [
        ((2, 9, 8, 3), {}, "batch is not measured"),
        ((9, 8, 3), {"check": "some"}, "check 'some' is not one of sample, full, none"),
        ((9, 8, 3), {"samples": -1}, "Samples must be"),
        ((9, 8, 3), {"time_limit_seconds": 0}, "time limit"),
        ((9, 8, 3), {"image": np.zeros((8, 9, 3), np.uint8)}, "8×9×3: the plan was made for 9×8×3"),
    ],
)
def test_what_cannot_be_measured_is_one_line(shape: tuple[int, ...], words: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        edgeconv.plan(shape, "uint8", method="sliding", **RULES).measure(**words)


# --- the cache of convolve ------------------------------------------------------------------------------------------


def plan_of(held: int) -> Any:
    return SimpleNamespace(memory_bytes=held)


def test_convolve_keeps_plans_up_to_a_gibibyte_and_64_of_them() -> None:
    cache = PlanCache()
    for key in "abc":
        cache.get(key, lambda: plan_of(2**29))
    assert [plan.memory_bytes for plan in cache.plans.values()] == [2**29] * 3
    cache.get("d", lambda: plan_of(1))
    assert [plan.memory_bytes for plan in cache.plans.values()] == [2**29, 2**29, 1], "the oldest gave way"
    for number in range(70):
        cache.get(number, lambda number=number: plan_of(number))
    assert [plan.memory_bytes for plan in cache.plans.values()] == list(range(6, 70))
    cache.get(6, lambda: plan_of(0))
    cache.get("newest", lambda: plan_of(1))
    assert [plan.memory_bytes for plan in cache.plans.values()][-2:] == [6, 1], "what was used last stays longest"
    for key in ("fails", "fails"):
        with pytest.raises(ZeroDivisionError):
            cache.get(key, lambda: 1 / 0)
    assert not cache._making, "nothing is held for keys that failed"
    assert cache.get(["no key"], lambda: plan_of(4)).memory_bytes == 4


def test_two_threads_make_a_plan_once_and_do_not_wait_for_another() -> None:
    cache, begun, finish, made = PlanCache(), threading.Event(), threading.Event(), []

    def slow() -> Any:
        made.append(1)
        begun.set()
        assert finish.wait(60)
        return plan_of(1)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(cache.get, "slow", slow)
        assert begun.wait(60)
        second = pool.submit(cache.get, "slow", slow)
        other = pool.submit(cache.get, "other", lambda: plan_of(2))
        assert other.result(60).memory_bytes == 2, "made while the slow one is in the making"
        finish.set()
        assert first.result(60) is second.result(60)
    assert made == [1]


def test_chunked_arrays_overlap_by_a_pixel() -> None:
    """The example of docs/api.md."""
    array = pytest.importorskip("dask.array")
    image = random_image(60, 50, "uint8")
    found = array.map_overlap(
        edgeconv.convolve,
        array.from_array(image, chunks=(20, 25, 3)),
        depth={0: 1, 1: 1, 2: 0},
        boundary=0,
        dtype="uint8",
        filter="sobel",
        method="sliding",
        device="cpu",
    )
    assert np.array_equal(found.compute(), edgeconv.convolve(image, "sobel", "reference", border="zero"))


@pytest.mark.parametrize("filter", [[[1, 2], [3]], [1], [], [["a"]], {"a": 1}, object(), [[{}]], np.ma.ones((3, 3)), 3])
def test_a_filter_that_is_none_is_refused(filter: Any) -> None:
    with pytest.raises(UsageError):
        edgeconv.convolve(random_image(9, 8, "uint8"), filter, "reference")


def test_workspaces_of_streams_that_are_gone_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of its own for each call, as a program has that makes a stream for each picture."""
    image = random_image(20, 30, "uint8")
    plan = edgeconv.plan(image.shape, "uint8", method="opencv", **RULES)
    numbers = iter(range(1, 100))
    monkeypatch.setattr(plan, "_stream", lambda: next(numbers))
    monkeypatch.setattr(plan, "_by_address", False)
    right = plan(image)
    for _ in range(3 * MAX_STREAMS):
        assert np.array_equal(plan(image), right)
    assert len(plan._idle) == MAX_STREAMS


@pytest.mark.parametrize(
    ("kernel", "copy", "share"),
    [
        ([2.0] * 5, [1.0] * 5, 0.5),
        ([1.0] * 5, [1.0] * 5, 1.0),
        ([0.9, 0.9, 0.9, 1.1, 1.1], [1.0] * 5, 1.0),  # faster by no more than its noise
        ([0.9] * 5, [1.0] * 5, None),
        ([0.9], [1.0], None),  # of one sample nobody knows the noise
    ],
)
def test_the_share_of_a_copy_is_at_most_all_of_it_within_the_noise(
    kernel: list[float], copy: list[float], share: float | None
) -> None:
    plan = edgeconv.plan((20, 30, 3), "uint8", method="opencv", **RULES).prepared
    series = [series_of(samples, "sample limit") for samples in (kernel, copy)]
    roof = measure.roof_of(plan, *series)
    found = speed(count(plan.problem), series[0].median_seconds, 1.0, roof)
    assert found.memory_floor_share == (None if share is None else pytest.approx(share))


def test_no_copy_is_made_where_memory_is_short() -> None:
    plan = edgeconv.plan((20, 30, 3), "uint8", method="opencv", **RULES).prepared
    needed = 2 * 20 * 30 * 3
    assert measure.copy_of(plan, 2 * needed - 1) is None
    assert measure.copy_of(plan, 2 * needed) is not None
    assert measure.copy_of(plan, None) is not None
