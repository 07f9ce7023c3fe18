"""What a plan asks of each library of arrays, with stand-ins for those that need a GPU or a large install.

Above all when an address is given: exactly where the samples lie as the plan wants them, so that anything else goes by
way of a conversion. With the libraries themselves: test_plan.py, and on a GPU test_cuda_plan.py.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from edgeconv.api import arrays
from edgeconv.errors import UnavailableError, UsageError

SHAPE, DTYPE = (4, 5, 3), np.dtype("float32")
TYPES = {name: f"torch.{name}" for name in ("uint8", "uint16", "float16", "float32")}


@dataclass(frozen=True)
class Tensor:
    """The little of a PyTorch tensor that is asked for."""

    shape: tuple[int, ...] = SHAPE
    dtype: str = TYPES["float32"]
    contiguous: bool = True
    gpu: int = -1
    place: int = 4096
    requires_grad: bool = False
    kind: str = ""

    @property
    def is_cuda(self) -> bool:
        return self.gpu >= 0

    @property
    def device(self) -> Any:
        kind = self.kind or ("cuda" if self.is_cuda else "cpu")
        return SimpleNamespace(type=kind, index=self.gpu if self.is_cuda else None)

    def is_contiguous(self) -> bool:
        return self.contiguous

    def get_device(self) -> int:
        return self.gpu

    def data_ptr(self) -> int:
        return self.place

    def numpy(self) -> str:
        return "as NumPy"


def torch_module(raw: bool = True) -> Any:
    """`raw`: whether it has the quick way to the stream."""
    quick = {"_cuda_getCurrentRawStream": lambda gpu: 70 + gpu} if raw else {}
    return SimpleNamespace(
        **TYPES,
        Tensor=Tensor,
        _C=SimpleNamespace(**quick),
        cuda=SimpleNamespace(current_stream=lambda gpu: SimpleNamespace(cuda_stream=90 + gpu)),
        empty=lambda shape, dtype, device: Tensor(shape, dtype, gpu=device.index or -1, place=8192),
        from_numpy=lambda array: ("from NumPy", array),
        from_dlpack=lambda array: ("from DLPack", array),
    )


@dataclass(frozen=True)
class GpuArray:
    """The little of a CuPy array that is asked for."""

    shape: tuple[int, ...] = SHAPE
    dtype: Any = DTYPE
    contiguous: bool = True
    gpu: int = 1
    place: int = 4096

    @property
    def _c_contiguous(self) -> bool:
        return self.contiguous

    @property
    def data(self) -> Any:
        return SimpleNamespace(device_id=self.gpu, ptr=self.place)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> arrays.ArrayLibrary:
    monkeypatch.setitem(sys.modules, "torch", torch_module())
    return arrays.TorchArrays()


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> arrays.ArrayLibrary:
    module = SimpleNamespace(
        ndarray=GpuArray,
        empty=lambda shape, dtype: GpuArray(shape, np.dtype(dtype), place=512),
        asarray=lambda array: ("as CuPy", array),
        from_dlpack=lambda array: ("CuPy from DLPack", array),
    )
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(arrays, "cuda_unavailable_reason", lambda: None)
    return arrays.CupyArrays()


# --- addresses -------------------------------------------------------------------------------------------------------

NOT_AS_WANTED = {
    "another height": {"shape": (5, 5, 3)},
    "no channels": {"shape": (4, 5)},
    "not contiguous": {"contiguous": False},
    "a place between samples": {"place": 4098},
}


@pytest.mark.parametrize("what", NOT_AS_WANTED)
def test_an_address_is_given_only_for_what_the_plan_wants(torch: Any, cupy: Any, what: str) -> None:
    for library, array, gpu in ((torch, Tensor(), None), (torch, Tensor(gpu=0), 0), (cupy, GpuArray(), 1)):
        assert library.address(array, SHAPE, DTYPE, gpu) == 4096
        assert library.address(replace(array, place=4100), SHAPE, DTYPE, gpu) == 4100
        assert library.address(replace(array, **NOT_AS_WANTED[what]), SHAPE, DTYPE, gpu) is None
        assert library.address(array, SHAPE, np.dtype("float16"), gpu) is None
        assert library.address(array, SHAPE, DTYPE, 2) is None


def test_a_tensor_on_the_other_side_or_with_gradients_has_no_address(torch: Any) -> None:
    assert torch.address(Tensor(), SHAPE, DTYPE, 0) is None
    assert torch.address(Tensor(gpu=0), SHAPE, DTYPE, None) is None
    assert torch.address(Tensor(requires_grad=True), SHAPE, DTYPE, None) is None


@pytest.mark.parametrize("change", ["shape", "dtype", "steps", "alignment", "kind", "gpu"])
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
        "kind": array.view(type("Own", (np.ndarray,), {})),
    }
    assert library.address(other.get(change, array), SHAPE, DTYPE, 0 if change == "gpu" else None) is None


# --- types, sides, streams -------------------------------------------------------------------------------------------


def test_the_types_of_tensors_and_what_is_said_of_others(torch: Any) -> None:
    for name, own in TYPES.items():
        assert torch.sample_type(Tensor(dtype=own)) == np.dtype(name)
    with pytest.raises(UsageError, match=r"torch.int64 are not supported.*one of uint8, uint16, float16, float32\."):
        torch.sample_type(Tensor(dtype="torch.int64"))


def test_where_tensors_lie(torch: Any, cupy: Any) -> None:
    assert torch.gpu_of(Tensor()) is None
    assert torch.gpu_of(Tensor(gpu=2)) == 2
    assert cupy.gpu_of(GpuArray(gpu=3)) == 3
    with pytest.raises(UsageError, match=r"image.cpu\(\)"):
        torch.gpu_of(Tensor(kind="mps"))


def test_the_stream_of_tensors_by_the_quick_way_or_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for raw, stream in ((True, 75), (False, 95)):
        monkeypatch.setitem(sys.modules, "torch", torch_module(raw))
        assert arrays.TorchArrays().stream(5) == stream
    assert arrays.NumpyArrays().stream(5) is None


def test_new_arrays_are_beside_the_old_one_and_say_where_they_lie(torch: Any, cupy: Any) -> None:
    made, place = torch.new(SHAPE, np.dtype("uint16"), Tensor(gpu=3))
    assert (made.shape, made.dtype, made.gpu, place) == (SHAPE, "torch.uint16", 3, 8192)
    made, place = cupy.new(SHAPE, np.dtype("uint16"), GpuArray())
    assert (made.shape, made.dtype, place) == (SHAPE, np.uint16, 512)
    made, place = arrays.NumpyArrays().new(SHAPE, np.dtype("uint16"), None)
    assert (made.shape, made.dtype, place) == (SHAPE, np.uint16, made.ctypes.data)
    assert arrays.DlpackArrays().new(SHAPE, DTYPE, None) is None


# --- the same memory in another library ------------------------------------------------------------------------------


def test_memory_goes_over_and_back(torch: Any, cupy: Any) -> None:
    tensor, on_gpu, array = Tensor(), Tensor(gpu=0), np.zeros(3)
    assert torch.native(tensor) == "as NumPy"
    assert torch.native(on_gpu) == ("as CuPy", on_gpu)
    assert torch.wrap(array, tensor) == ("from NumPy", array)
    assert torch.wrap("CuPy's", on_gpu) == ("from DLPack", "CuPy's")
    assert cupy.native(on_gpu) is on_gpu
    assert cupy.wrap(on_gpu, None) is on_gpu
    with pytest.raises(UsageError, match=r"image.detach\(\)"):
        torch.native(Tensor(requires_grad=True))


class Lying:
    """An array that says by DLPack where it lies."""

    def __init__(self, kind: int, number: int) -> None:
        self.where = (kind, number)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.where

    def __dlpack__(self, **words: Any) -> Any:
        return np.zeros(2).__dlpack__()


def test_where_an_array_lies_by_dlpack(cupy: Any) -> None:
    """1: CPU, 2: CUDA, 3: host memory that CUDA has pinned, 10: ROCm."""
    library = arrays.DlpackArrays()
    assert [library.gpu_of(Lying(kind, 4)) for kind in (1, 2, 3)] == [None, 4, None]
    with pytest.raises(UsageError, match="Lying on a device of another kind"):
        library.gpu_of(Lying(10, 0))
    on_gpu = Lying(2, 0)
    assert library.native(on_gpu) == ("CuPy from DLPack", on_gpu)
    assert library.native(Lying(3, 0)).tolist() == [0, 0]
    assert library.wrap("native", on_gpu) == "native"


def test_an_array_of_numbas_comes_back_as_one_and_others_as_cupys(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = arrays.NumbaArrays()
    interface = {"__cuda_array_interface__": {"typestr": "<u2"}}
    others = type("Other", (), {**interface, "__module__": "pyarrow.cuda"})()
    assert library.sample_type(others) == np.uint16
    assert library.native(others) == ("as CuPy", others)
    for module in ("numba.cuda.cudadrv", "numba_cuda.numba.cuda"):
        own = type("DeviceNDArray", (), {**interface, "__module__": module})()
        monkeypatch.setitem(sys.modules, "numba", None)
        assert library.wrap("native", own) == "native"
        numba = SimpleNamespace(cuda=SimpleNamespace(as_cuda_array=lambda array: ("Numba's", array)))
        monkeypatch.setitem(sys.modules, "numba", numba)
        assert library.wrap("native", own) == ("Numba's", "native")
        assert library.wrap("native", others) == "native"


def test_a_jax_array_on_several_devices_or_traced_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    library = arrays.JaxArrays()
    one = SimpleNamespace(devices=lambda: {"a"}, __dlpack_device__=lambda: (2, 6))
    assert library.gpu_of(one) == 6
    for array in (SimpleNamespace(devices=lambda: {"a", "b"}), SimpleNamespace()):
        with pytest.raises(UsageError, match="traced, or lies on several devices"):
            library.gpu_of(array)
    monkeypatch.setitem(
        sys.modules, "jax", SimpleNamespace(dlpack=SimpleNamespace(from_dlpack=lambda array: ("JAX's", array)))
    )
    assert library.wrap("native", one) == ("JAX's", "native")


# --- which library an array is of ------------------------------------------------------------------------------------


def test_each_array_is_of_its_own_library(cupy: Any, torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(Array=type("Array", (), {})))
    monkeypatch.setattr(arrays, "_LIBRARIES", dict(arrays._LIBRARIES))
    with_interface = type("Other", (), {"__cuda_array_interface__": {}})()
    found = [
        arrays.library_of(array).name
        for array in (
            np.zeros(1),
            np.ma.zeros(1),
            GpuArray(),
            Tensor(),
            sys.modules["jax"].Array(),
            with_interface,
            Lying(1, 0),
        )
    ]
    assert found == ["numpy", "numpy", "cupy", "torch", "jax", "numba", "dlpack"]
    for what in (type("Half", (), {"__dlpack__": None})(), [[1]], "picture.png"):
        with pytest.raises(UsageError, match=f"not {type(what).__name__}"):
            arrays.library_of(what)


def test_without_cupy_an_array_on_a_gpu_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "cuda_unavailable_reason", lambda: "no driver here")
    with pytest.raises(UnavailableError, match="needs CuPy: no driver here"):
        arrays.DlpackArrays().native(Lying(2, 0))
