"""The cuDNN binding, as far as a machine without a GPU can try it: structure layout, descriptors, output shapes."""

import ctypes
from itertools import product

import pytest

from edgeconv.core.geometry import KERNEL_SIZE, output_size
from edgeconv.methods.cuda import libcudnn
from edgeconv.methods.cuda.libcudnn import Convolution, CudnnError

needs_cudnn = pytest.mark.skipif(libcudnn.unavailable_reason() is not None, reason=str(libcudnn.unavailable_reason()))


def test_performance_structure_has_the_layout_of_the_header():
    structure = libcudnn.Performance
    offsets = {name: getattr(structure, name).offset for name, _ in structure._fields_}
    names = ("algorithm", "status", "milliseconds", "workspace_bytes", "deterministic", "math", "reserved")
    assert offsets == dict(zip(names, (0, 4, 8, 16, 24, 28, 32), strict=True))
    assert ctypes.sizeof(structure) == 48


def test_a_missing_library_is_a_reason_and_not_an_exception(monkeypatch):
    def missing():
        raise OSError("libcudnn.so.9: cannot open shared object file")

    monkeypatch.setattr(libcudnn, "library", missing)
    reason = libcudnn.unavailable_reason.__wrapped__()
    assert reason is not None
    assert "not installed" in reason
    assert "cannot open" in reason


@needs_cudnn
def test_version_is_nine():
    assert libcudnn.version().split(".")[0] == "9"


@needs_cudnn
def test_output_shape_is_the_projects_own():
    sizes = (3, 3), (37, 131), (4096, 2048)
    for (height, width), padding, stride, dtype in product(sizes, (0, 1, 2, 5), (1, 2, 3, 7), ("float32", "float16")):
        made = Convolution(dtype, (1, 3, height, width), (6, 3, KERNEL_SIZE, KERNEL_SIZE), padding, stride)
        assert made.result_shape == (1, 6, output_size(height, stride, padding), output_size(width, stride, padding))


@needs_cudnn
def test_a_refused_call_names_itself_its_status_and_the_reason():
    with pytest.raises(CudnnError, match=r"cudnnSetTensor4dDescriptor answered status 2\d{3} \(CUDNN_STATUS_BAD"):
        Convolution("float32", (1, 0, 8, 8), (6, 3, KERNEL_SIZE, KERNEL_SIZE), 1, 1)


@needs_cudnn
def test_a_handle_without_a_gpu_says_that_it_is_not_initialised():
    from edgeconv.hardware.cuda.probe import cuda_unavailable_reason

    if cuda_unavailable_reason() is None:
        assert libcudnn.handle_of(0, 0)
        return
    with pytest.raises(CudnnError) as refusal:
        libcudnn.handle_of(0, 0)
    assert refusal.value.status == 1001


def test_a_ranking_line_is_read_with_names_and_seconds():
    assert libcudnn.Performance(1, 0, 2.5, 4096, 1, 3).as_json() == {
        "algorithm": "IMPLICIT_PRECOMP_GEMM",
        "math": "FMA",
        "status": 0,
        "time_seconds": 2.5e-3,
        "workspace_bytes": 4096,
        "deterministic": True,
    }
    assert libcudnn.Performance(7, 3000, -1.0, 0, 0, 0).as_json()["time_seconds"] is None
