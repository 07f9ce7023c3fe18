"""`edgeconv.plan` on a GPU: arrays of every library, streams, graphs, threads, batches in one launch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gpu_gate import Gate
from problems import random_image

import edgeconv
from edgeconv.errors import UsageError
from edgeconv.methods import METHODS

pytestmark = pytest.mark.gpu
cupy: Any = pytest.importorskip("cupy")

CUDA_METHODS = [entry.name for entry in METHODS if entry.device == "cuda"]
RULES: dict[str, Any] = {"filter": "sobel", "channels": "each", "device": "cuda"}


def as_torch(array: np.ndarray) -> Any:
    return pytest.importorskip("torch").from_numpy(array).cuda()


def as_jax(array: np.ndarray) -> Any:
    jax = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("this JAX sees no GPU")
    return jax.numpy.asarray(array)


def as_numba(array: np.ndarray) -> Any:
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("this Numba sees no GPU")
    return cuda.to_device(array)


def numbers(array: Any) -> np.ndarray:
    """The samples on the host."""
    if hasattr(array, "copy_to_host"):
        return array.copy_to_host()
    if type(array).__module__.startswith("torch"):
        return array.cpu().numpy()
    return array.get() if isinstance(array, cupy.ndarray) else np.asarray(array)


MAKERS = {"cupy": cupy.asarray, "torch": as_torch, "jax": as_jax, "numba": as_numba, "numpy": np.asarray}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(("dtype", "mode"), [("uint8", "abs"), ("float32", "raw"), ("uint8", "normalize")])
@pytest.mark.parametrize("method", ["sliding", "im2col"])
def test_every_library_gets_back_its_own_kind(maker: str, dtype: str, mode: str, method: str) -> None:
    image = random_image(70, 50, dtype)
    given = MAKERS[maker](image)
    expected = edgeconv.convolve(image, "sobel", "reference", channels="each", output_mode=mode)
    plan = edgeconv.plan(image.shape, dtype, method=method, output_mode=mode, **RULES)
    called = edgeconv.convolve(given, "sobel", method, channels="each", output_mode=mode, device="cuda")
    for found in (plan(given), called):
        assert type(found) is type(given)
        assert np.allclose(numbers(found).astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-4)
    if maker == "torch":
        assert called.device == given.device


@pytest.mark.parametrize("method", CUDA_METHODS)
def test_an_output_is_written_where_it_was_asked_for(method: str) -> None:
    image = cupy.asarray(random_image(70, 50, "uint8"))
    plan = edgeconv.plan(image.shape, "uint8", method=method, **RULES)
    out = cupy.full(plan.output_shape, 7, plan.output_dtype)
    assert plan(image, out=out) is out
    assert cupy.array_equal(out, plan(image))
    for wrong in (np.empty(plan.output_shape, np.uint8), out[:, ::2], out.astype(cupy.uint16), image):
        with pytest.raises(UsageError):
            plan(image, out=wrong)


def test_more_pictures_than_a_grid_has_lines() -> None:
    batch = cupy.asarray(random_image(70_000 * 4, 5, "uint8").reshape(70_000, 4, 5, 3))
    plan = edgeconv.plan(batch.shape, "uint8", method="sliding", **RULES)
    assert plan.method_plan.launches == 2
    found = plan(batch)
    for number in (0, 65_534, 65_535, 69_999):
        expected = edgeconv.convolve(batch[number].get(), "sobel", "reference", channels="each")
        assert np.array_equal(found[number].get(), expected)


def test_a_batch_of_the_host_crosses_the_bus_as_one() -> None:
    batch = np.stack([random_image(40, 30, "uint8", seed) for seed in range(7)])
    plan = edgeconv.plan(batch.shape, "uint8", method="sliding", **RULES)
    expected = [edgeconv.convolve(image, "sobel", "reference", channels="each") for image in batch]
    assert np.array_equal(plan(batch), np.stack(expected))


@pytest.mark.parametrize("method", ["sliding", "im2col", "implicit"])
@pytest.mark.parametrize("side", [64, 1024])
def test_a_plan_is_captured_in_a_graph(method: str, side: int) -> None:
    first, second = (cupy.asarray(random_image(side, side, "float32", seed)) for seed in (1, 2))
    plan = edgeconv.plan(first.shape, "float32", method=method, **RULES)
    image, out = first.copy(), cupy.zeros(plan.output_shape, cupy.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        plan(image, out=out)  # the workspace of this stream
        stream.synchronize()
        stream.begin_capture()
        plan(image, out=out)
        graph = stream.end_capture()
        for source in (second, first):
            cupy.copyto(image, source)
            graph.launch(stream)
            stream.synchronize()
            assert cupy.array_equal(out, plan(source))


@pytest.mark.parametrize("has_out", [False, True])
def test_work_goes_to_the_callers_stream(has_out: bool) -> None:
    """The picture is written behind a closed gate: only work behind it sees the right samples."""
    image = cupy.asarray(random_image(512, 512, "float32"))
    plan = edgeconv.plan(image.shape, "float32", method="sliding", **RULES)
    expected, given = plan(image), cupy.zeros_like(image)
    rules = {"out": cupy.zeros_like(expected)} if has_out else {}
    cupy.cuda.Device().synchronize()
    with Gate() as gate, cupy.cuda.Stream(non_blocking=True) as stream:
        for closed in (False, True):
            given.fill(0)
            found = None  # its memory is for the next
            if closed:
                gate.close()
            given[...] = image
            found = plan(given, **rules)
            cupy.cuda.Stream.null.synchronize()
            gate.open()
            stream.synchronize()
            assert cupy.array_equal(found, expected)


@pytest.mark.parametrize("has_out", [False, True])
def test_work_goes_to_the_stream_of_torch(has_out: bool) -> None:
    torch = pytest.importorskip("torch")
    image = random_image(512, 512, "float32")
    plan = edgeconv.plan(image.shape, "float32", method="sliding", **RULES)
    expected, ready = plan(cupy.asarray(image)).get(), torch.from_numpy(image).cuda()
    given = torch.zeros_like(ready)
    rules = {"out": torch.zeros(plan.output_shape, device="cuda")} if has_out else {}
    torch.cuda.synchronize()
    with Gate() as gate, torch.cuda.stream(torch.cuda.Stream()):
        stream = torch.cuda.current_stream()
        for closed in (False, True):
            given.zero_()
            found = copied = None
            if closed:
                with cupy.cuda.ExternalStream(stream.cuda_stream):
                    gate.close()
            given.copy_(ready)
            found = plan(given, **rules)
            copied = found.clone()
            cupy.cuda.Stream.null.synchronize()
            gate.open()
            stream.synchronize()
            assert np.array_equal(numbers(copied), expected)


@pytest.mark.parametrize("method", CUDA_METHODS)
@pytest.mark.parametrize("own_streams", [False, True])
def test_eight_threads_share_one_plan(method: str, own_streams: bool) -> None:
    images = [cupy.asarray(random_image(600, 700, "float32", seed)) for seed in range(8)]
    plan = edgeconv.plan(images[0].shape, "float32", method=method, **RULES)
    expected = [plan(image) for image in images]
    cupy.cuda.Device().synchronize()

    def many(number: int) -> bool:
        stream = cupy.cuda.Stream(non_blocking=True) if own_streams else cupy.cuda.Stream.null
        with stream:
            out = cupy.empty_like(expected[number])
            for _ in range(20):
                plan(images[number], out=out)
            stream.synchronize()
            return bool(cupy.array_equal(out, expected[number]))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(many, range(8)))


def test_a_picture_on_the_gpu_is_refused_by_a_plan_of_the_cpu() -> None:
    plan = edgeconv.plan((9, 8, 3), "uint8", device="cpu", method="sliding")
    with pytest.raises(UsageError, match="device='cuda'"):
        plan(cupy.zeros((9, 8, 3), cupy.uint8))


@pytest.mark.parametrize("name", MAKERS)
def test_a_plan_on_a_gpu_measures_itself(name: str) -> None:
    image = random_image(64, 48, "uint8")
    plan = edgeconv.plan(image.shape, "uint8", method="sliding", **RULES)
    found = plan.measure(MAKERS[name](image), samples=5, check="full")
    assert (found.device.kind, found.timing.kernel_clock, found.timing.l2_state) == ("cuda", "CUDA events", "cold")
    assert found.timing.end_to_end is not None
    assert found.speed is not None
    assert found.check is not None
    assert found.check.passed
