"""What a plan asks of each library of arrays: above all when an address is given.

That is exactly where the samples lie as the plan wants them; anything else goes by way of a conversion. Whole calls
with each library are in test_plan.py, and on a GPU in test_cuda_plan.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgeconv.api import arrays
from edgeconv.errors import UnavailableError, UsageError

SHAPE, DTYPE = (4, 5, 3), np.dtype("float32")


@pytest.mark.parametrize("change", ["shape", "dtype", "steps", "alignment", "gpu"])
def test_an_array_of_numpys_has_an_address_where_it_is_as_wanted(change: str) -> None:
    memory = np.zeros(1000, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + 240].view(DTYPE).reshape(SHAPE)
    library = arrays.library_of(array)
    assert library.address(array, SHAPE, DTYPE, None) == memory.ctypes.data + start
    other = {
        "shape": array.reshape(5, 4, 3),
        "dtype": array.view(np.uint32),
        "steps": np.zeros((4, 10, 3), DTYPE)[:, ::2],
        "alignment": memory[start + 1 : start + 241].view(DTYPE).reshape(SHAPE),
    }
    assert library.address(array.view(type("Own", (np.ndarray,), {})), SHAPE, DTYPE, None) == array.ctypes.data
    assert library.address(other.get(change, array), SHAPE, DTYPE, 0 if change == "gpu" else None) is None


def check_addresses(array: Any, others: dict[str, Any], gpu: int | None) -> None:
    """An array as a plan wants it has an address, and others, of another place or type, have none."""
    library = arrays.library_of(array)
    assert library.gpu_of(array) == gpu
    assert library.address(array, SHAPE, DTYPE, gpu) is not None
    assert library.address(array, SHAPE, np.dtype("float16"), gpu) is None
    assert library.address(array, SHAPE, DTYPE, 7 if gpu is None else None) is None
    assert {what: library.address(other, SHAPE, DTYPE, gpu) for what, other in others.items()} == dict.fromkeys(others)
    made, place = library.new(SHAPE, np.dtype("uint16"), array)
    assert (tuple(made.shape), library.gpu_of(made)) == (SHAPE, gpu)
    assert place == library.address(made, SHAPE, np.dtype("uint16"), gpu)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_tensor_has_an_address_where_it_is_as_wanted(device: str) -> None:
    torch = pytest.importorskip("torch")
    made = torch.zeros(SHAPE, device=device)
    others = {
        "shape": made.reshape(5, 4, 3),
        "no channels": made[..., 0],
        "steps": torch.zeros((4, 10, 3), device=device)[:, ::2],
        "gradients": torch.zeros(SHAPE, device=device, requires_grad=True),
    }
    check_addresses(made, others, None if device == "cpu" else 0)
    with pytest.raises(UsageError, match=r"torch.int64 are not supported.*one of uint8"):
        arrays.library_of(made).sample_type(made.long())


@pytest.mark.gpu
def test_an_array_of_cupys_has_an_address_where_it_is_as_wanted() -> None:
    import cupy

    made = cupy.zeros(SHAPE, DTYPE)
    room = cupy.zeros(made.nbytes + 2, cupy.uint8)
    others = {
        "shape": made.reshape(5, 4, 3),
        "steps": cupy.zeros((4, 10, 3), DTYPE)[:, ::2],
        "alignment": room[2:].view(DTYPE).reshape(SHAPE),
    }
    check_addresses(made, others, 0)


class Lying:
    """An array that says by DLPack where it lies."""

    def __init__(self, kind: int, number: int) -> None:
        self.where = (kind, number)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.where

    def __dlpack__(self, **words: Any) -> Any:
        return np.zeros(2).__dlpack__()


def test_where_an_array_lies_by_dlpack(monkeypatch: pytest.MonkeyPatch) -> None:
    """1: CPU, 2: CUDA, 3: host memory that CUDA has pinned, 10: ROCm."""
    library = arrays.DlpackArrays()
    assert [library.gpu_of(Lying(kind, 4)) for kind in (1, 2, 3)] == [None, 4, None]
    with pytest.raises(UsageError, match="Lying on a device of another kind"):
        library.gpu_of(Lying(10, 0))
    assert library.native(Lying(3, 0)).tolist() == [0, 0]
    monkeypatch.setattr(arrays, "cuda_unavailable_reason", lambda: "no driver here")
    with pytest.raises(UnavailableError, match="needs CuPy: no driver here"):
        library.native(Lying(2, 0))


def test_a_jax_array_that_is_traced_is_refused() -> None:
    jax = pytest.importorskip("jax")
    whole = jax.device_put(np.zeros(SHAPE, DTYPE), jax.devices("cpu")[0])
    assert arrays.library_of(whole).gpu_of(whole) is None
    with pytest.raises(UsageError, match="traced, or lies on several devices"):
        jax.jit(lambda traced: arrays.library_of(traced).gpu_of(traced))(whole)


def test_what_is_no_array_is_named() -> None:
    libraries = [type(arrays.library_of(array)) for array in (np.zeros(1), np.ma.zeros(1), Lying(1, 0))]
    assert libraries == [arrays.NumpyArrays, arrays.NumpyArrays, arrays.DlpackArrays]
    for what in (type("Half", (), {"__dlpack__": None})(), [[1]], "picture.png"):
        with pytest.raises(UsageError, match=f"not {type(what).__name__}"):
            arrays.library_of(what)
