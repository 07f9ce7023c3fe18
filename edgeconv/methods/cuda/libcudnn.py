"""The part of cuDNN 9's convolution API that edgeconv uses, over ctypes.

CuPy no longer binds cuDNN, so this module opens `libcudnn.so.9` by itself. `call` calls a function of the table below,
and raises `CudnnError` with the call's name, status and text where cuDNN refuses. `Convolution` holds the descriptors
of one convolution; it can be made on a machine with no GPU, and only what takes a handle needs one. Sizes are always
given as N, C, H, W or out, in, H, W; memory is NHWC, and a filter lies in memory as (out, H, W, in).

Source: cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h of cuDNN 9, and its API reference (all of this API is marked
deprecated since 9.0 and present in every 9.x).
"""

from __future__ import annotations

import ctypes
import importlib.util
from contextlib import suppress
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_void_p
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from edgeconv.core.optional import install
from edgeconv.errors import UnavailableError, one_line

LIBRARY_NAME = "libcudnn.so.9"
STATUS_SUCCESS = 0
ERROR_TEXT_BYTES = 1024
_NCHW, _NHWC = 0, 1
_CROSS_CORRELATION = 1
_DATA_TYPES = {"float32": 0, "float16": 2}
"""cudnnDataType_t, the two that are used."""

Shape = tuple[int, ...]
MathType = IntEnum("MathType", "DEFAULT TENSOR_OP TENSOR_OP_ALLOW_CONVERSION FMA", start=0)
"""cudnnMathType_t. DEFAULT lets float32 run as TF32 on Ampere and later; FMA is true float32."""
Algorithm = IntEnum(
    "Algorithm", "IMPLICIT_GEMM IMPLICIT_PRECOMP_GEMM GEMM DIRECT FFT FFT_TILING WINOGRAD WINOGRAD_NONFUSED", start=0
)
"""cudnnConvolutionFwdAlgo_t."""


class Performance(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t: one line of a ranking, what cuDNN says about an algorithm for a convolution."""

    _fields_ = (
        ("algorithm", c_int),
        ("status", c_int),
        ("milliseconds", c_float),  # not above 0 where cuDNN only ranked
        ("workspace_bytes", c_size_t),
        ("deterministic", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    )

    def as_json(self) -> dict[str, Any]:
        """The line for a report, with names instead of numbers."""
        return {
            "algorithm": Algorithm(self.algorithm).name,
            "math": MathType(self.math).name,
            "status": self.status,
            "time_seconds": self.milliseconds / 1e3 if self.milliseconds > 0 else None,
            "workspace_bytes": self.workspace_bytes,
            "deterministic": bool(self.deterministic),
        }


class CudnnError(UnavailableError):
    """cuDNN refused a call; `status` is its number (2000s bad parameter, 3000s not supported, 5000s execution)."""

    def __init__(self, name: str, status: int) -> None:
        words = library().cudnnGetErrorString(status).decode()
        buffer = ctypes.create_string_buffer(ERROR_TEXT_BYTES)
        library().cudnnGetLastErrorString(buffer, ERROR_TEXT_BYTES)
        if last := " ".join(buffer.value.decode(errors="replace").split()):
            words = f"{words}: {last}"
        super().__init__(f"{name} answered status {status} ({words})")
        self.status = status


_TYPES = {"p": c_void_p, "i": c_int, "z": c_size_t}
_FUNCTIONS = {
    "cudnnCreate": "p",
    "cudnnSetStream": "pp",
    "cudnnCreateTensorDescriptor": "p",
    "cudnnSetTensor4dDescriptor": "piiiiii",
    "cudnnDestroyTensorDescriptor": "p",
    "cudnnCreateFilterDescriptor": "p",
    "cudnnSetFilter4dDescriptor": "piiiiii",
    "cudnnDestroyFilterDescriptor": "p",
    "cudnnCreateConvolutionDescriptor": "p",
    "cudnnSetConvolution2dDescriptor": "piiiiiiii",
    "cudnnSetConvolutionMathType": "pi",
    "cudnnSetConvolutionGroupCount": "pi",
    "cudnnDestroyConvolutionDescriptor": "p",
    "cudnnGetConvolution2dForwardOutputDim": "ppppppp",
    "cudnnGetConvolutionForwardAlgorithmMaxCount": "pp",
    "cudnnGetConvolutionForwardAlgorithm_v7": "pppppipp",
    "cudnnConvolutionForward": "pppppppipzppp",
}
"""Each answers a status; its arguments by letter: a pointer or descriptor, an int or enum, a size_t."""


def _open() -> ctypes.CDLL:
    """Open the library where NVIDIA's path finder or a wheel has it, else by the system's search."""
    package = importlib.util.find_spec("nvidia")
    roots = map(Path, (package.submodule_search_locations or ()) if package else ())
    folders = [folder for root in roots for folder in sorted(root.glob("*/lib"))]
    # The path finder raises classes of its own (DynamicLibNotFoundError and others), all of them RuntimeErrors.
    with suppress(ImportError, OSError, RuntimeError):
        from cuda.pathfinder import load_nvidia_dynamic_lib

        load_nvidia_dynamic_lib("cublasLt")  # cuDNN asks for it by name; early path finders do not know cuDNN
        folders.insert(0, Path(str(load_nvidia_dynamic_lib("cudnn").abs_path)).parent)
    found = (file for folder in folders if (file := folder / LIBRARY_NAME).is_file())
    return ctypes.CDLL(str(next(found, LIBRARY_NAME)))


@cache
def library() -> ctypes.CDLL:
    """The opened library with its argument types set; raises OSError where there is none."""
    opened = _open()
    for name, letters in _FUNCTIONS.items():
        function = getattr(opened, name)
        function.argtypes, function.restype = [_TYPES[letter] for letter in letters], c_int
    opened.cudnnGetVersion.argtypes, opened.cudnnGetVersion.restype = (), c_size_t
    opened.cudnnGetErrorString.argtypes, opened.cudnnGetErrorString.restype = (c_int,), c_char_p
    opened.cudnnGetLastErrorString.argtypes, opened.cudnnGetLastErrorString.restype = (c_char_p, c_size_t), None
    return opened


@cache
def unavailable_reason() -> str | None:
    """Why cuDNN cannot be used, as a sentence without a full stop, or None where it can be opened."""
    try:
        library()
    except (OSError, AttributeError) as error:
        return f"cuDNN 9 is not installed ({install('cuda13')}): {one_line(error)}"
    return None


def version() -> str:
    """The library's version: '9.19.0'."""
    number = int(library().cudnnGetVersion())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def call(name: str, *arguments: Any) -> None:
    """Call a function of the table; raises CudnnError unless it returns success."""
    status = getattr(library(), name)(*arguments)
    if status != STATUS_SUCCESS:
        raise CudnnError(name, status)


@cache
def handle_of(device_id: int, thread_id: int) -> c_void_p:
    """A cuDNN context on the current device: one per GPU and thread, as it has one stream and is not for two threads.

    A thread that has ended leaves its number, and with it the handle, to a later one. Raises CudnnError (status 1001)
    where there is no GPU.
    """
    handle = c_void_p()
    call("cudnnCreate", byref(handle))
    return handle


class _Descriptor:
    """A descriptor of some kind, filled in by the function `setter`; calls take it as it is."""

    def __init__(self, kind: str, setter: str, *settings: int) -> None:
        self._destroy = f"cudnnDestroy{kind}Descriptor"
        self._as_parameter_ = c_void_p()
        call(f"cudnnCreate{kind}Descriptor", byref(self._as_parameter_))
        call(setter, self, *settings)

    def __del__(self) -> None:
        if self._as_parameter_:
            getattr(library(), self._destroy)(self)


class Convolution:
    """A cross-correlation with equal padding and stride on both axes and sums in float32.

    It is in NHWC; one of several groups is in NCHW, where cuDNN has kernels for few channels. Shapes are NCHW and KCRS.
    """

    def __init__(self, kind: str, source: Shape, weights: Shape, padding: int, stride: int) -> None:
        groups = source[1] // weights[1]
        layout = _NHWC if groups == 1 else _NCHW
        samples, sums = _DATA_TYPES[kind], _DATA_TYPES["float32"]
        rule = (padding, padding, stride, stride, 1, 1, _CROSS_CORRELATION, sums)
        self._source = _Descriptor("Tensor", "cudnnSetTensor4dDescriptor", layout, samples, *source)
        self._weights = _Descriptor("Filter", "cudnnSetFilter4dDescriptor", samples, layout, *weights)
        self._rule = _Descriptor("Convolution", "cudnnSetConvolution2dDescriptor", *rule)
        call("cudnnSetConvolutionGroupCount", self._rule, groups)
        sizes = [c_int() for _ in source]
        call("cudnnGetConvolution2dForwardOutputDim", self._rule, self._source, self._weights, *map(byref, sizes))
        self.result_shape: Shape = tuple(size.value for size in sizes)
        self._result = _Descriptor("Tensor", "cudnnSetTensor4dDescriptor", layout, samples, *self.result_shape)

    def set_math(self, math: MathType) -> None:
        """Choose the arithmetic; the descriptor keeps it until the next call."""
        call("cudnnSetConvolutionMathType", self._rule, math)

    def rank(self, handle: c_void_p) -> list[Performance]:
        """cudnnGetConvolutionForwardAlgorithm_v7: a ranking by heuristics, best first; nothing is run."""
        most, returned = c_int(), c_int()
        call("cudnnGetConvolutionForwardAlgorithmMaxCount", handle, byref(most))
        lines = (Performance * most.value)()
        asked = (self._source, self._weights, self._rule, self._result)
        call("cudnnGetConvolutionForwardAlgorithm_v7", handle, *asked, most, byref(returned), lines)
        return lines[: returned.value]

    def run(self, handle: c_void_p, algorithm: int, buffers: tuple[int, int, int], room: tuple[int, int]) -> None:
        """Put one convolution on the handle's stream, on addresses in device memory.

        `buffers` are those of source, weights and result; `room` is scratch memory and its bytes.
        """
        source, weights, result = buffers
        read = (self._source, source, self._weights, weights, self._rule)
        # The scales of the product and of what `result` held before: result = 1 · product + 0 · result.
        one, zero = byref(c_float(1.0)), byref(c_float(0.0))
        call("cudnnConvolutionForward", handle, one, *read, algorithm, *room, zero, self._result, result)
