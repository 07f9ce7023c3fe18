"""The part of cuDNN 9's convolution API that edgeconv uses, typed, over ctypes.

CuPy no longer binds cuDNN, so this module opens `libcudnn.so.9` (`cudnn64_9.dll` on Windows) by itself. One class
a cuDNN object: `TensorShape`, `FilterShape` and `Convolution` hold descriptors and work on a machine with no GPU;
`Handle` needs one. Sizes are always given as N, C, H, W or out, in, H, W; memory is NHWC, and a filter lies in
memory as (out, H, W, in). A call that cuDNN refuses raises `CudnnError` with the call's name, status and text.

Source: cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h of cuDNN 9, and its API reference (all of this API is marked
deprecated since 9.0 and present in every 9.x).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from contextlib import suppress
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from edgeconv.core.optional import install
from edgeconv.errors import UnavailableError, one_line

LIBRARY_NAMES = ("cudnn64_9.dll",) if sys.platform == "win32" else ("libcudnn.so.9",)
WHEEL_FOLDERS = ("bin", "bin/x64") if sys.platform == "win32" else ("lib",)
_dll_handles: list[Any] = []
"""Folders that were shown to Windows, for as long as this process lives."""
STATUS_SUCCESS = 0
STATUS_NOT_INITIALIZED = 1001
ERROR_TEXT_BYTES = 1024


class DataType(IntEnum):
    """cudnnDataType_t, the two that are used."""

    FLOAT = 0
    HALF = 2


class MathType(IntEnum):
    """cudnnMathType_t. DEFAULT lets float32 run as TF32 on Ampere and later; FMA is true float32."""

    DEFAULT = 0
    TENSOR_OP = 1
    TENSOR_OP_ALLOW_CONVERSION = 2
    FMA = 3


class Algorithm(IntEnum):
    """cudnnConvolutionFwdAlgo_t."""

    IMPLICIT_GEMM = 0
    IMPLICIT_PRECOMP_GEMM = 1
    GEMM = 2
    DIRECT = 3
    FFT = 4
    FFT_TILING = 5
    WINOGRAD = 6
    WINOGRAD_NONFUSED = 7


_NHWC = 1
_CROSS_CORRELATION = 1
_DETERMINISTIC = 1


class _Performance(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t, 48 bytes; `time` in milliseconds, -1 where nothing was measured."""

    _fields_ = (
        ("algorithm", c_int),
        ("status", c_int),
        ("time", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    )


class CudnnError(UnavailableError):
    """cuDNN refused a call; `status` is its number (2000s bad parameter, 3000s not supported, 5000s execution)."""

    def __init__(self, call: str, status: int, text: str) -> None:
        super().__init__(f"{call} answered status {status} ({text})")
        self.status = status


@dataclass(frozen=True)
class Performance:
    """One line of a ranking: what cuDNN says about an algorithm for a convolution."""

    algorithm: Algorithm
    math: MathType
    status: int
    seconds: float | None
    """Measured time; None where cuDNN only ranked."""
    workspace_bytes: int
    deterministic: bool

    def as_json(self) -> dict[str, Any]:
        """The line for a report, with names instead of numbers."""
        return {
            "algorithm": self.algorithm.name,
            "math": self.math.name,
            "status": self.status,
            "time_seconds": self.seconds,
            "workspace_bytes": self.workspace_bytes,
            "deterministic": self.deterministic,
        }


# --- the library ------------------------------------------------------------------------------------------------


def _wheel_files() -> list[Path]:
    """Where the `nvidia-cudnn-cu12` and `-cu13` wheels put the library."""
    try:
        package = importlib.util.find_spec("nvidia.cudnn")
    except ModuleNotFoundError:
        return []
    folders = [Path(folder) for folder in (package.submodule_search_locations or ())] if package else []
    files = [folder / inner / name for folder in folders for inner in WHEEL_FOLDERS for name in LIBRARY_NAMES]
    return [file for file in files if file.is_file()]


def _dll_folders() -> list[Path]:
    """Where NVIDIA's wheels keep their DLLs on Windows: `nvidia/<library>/bin` and folders in it."""
    package = importlib.util.find_spec("nvidia")
    roots = [Path(folder) for folder in (package.submodule_search_locations or ())] if package else []
    found = (folder for root in roots for level in ("*/bin", "*/bin/*") for folder in sorted(root.glob(level)))
    return [folder for folder in found if folder.is_dir()]


def _show_dll_folders() -> None:
    """Let Windows find what cuDNN loads in its turn (its parts, cuBLAS): it looks into no folder by itself."""
    add = getattr(os, "add_dll_directory", None)
    if add is None:  # not Windows
        return
    for folder in _dll_folders():
        with suppress(OSError):
            _dll_handles.append(add(str(folder)))


def _open() -> ctypes.CDLL:
    """Open the library: by NVIDIA's path finder (it loads cuBLASLt first), the wheel, or the system's search."""
    _show_dll_folders()
    attempts: list[str] = []
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        # It raises special classes (DynamicLibNotFoundError and others), all of them RuntimeErrors.
        attempts.append(str(load_nvidia_dynamic_lib("cudnn").abs_path))
    except (ImportError, OSError, RuntimeError):
        pass
    attempts += [str(file) for file in _wheel_files()]
    attempts += LIBRARY_NAMES
    reason = ""
    for attempt in attempts:
        try:
            return ctypes.CDLL(attempt)
        except OSError as error:
            reason = reason or one_line(error)
    raise OSError(reason)


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudnnCreate": (POINTER(c_void_p),),
    "cudnnDestroy": (c_void_p,),
    "cudnnSetStream": (c_void_p, c_void_p),
    "cudnnCreateTensorDescriptor": (POINTER(c_void_p),),
    "cudnnDestroyTensorDescriptor": (c_void_p,),
    "cudnnSetTensor4dDescriptor": (c_void_p, *[c_int] * 6),
    "cudnnCreateFilterDescriptor": (POINTER(c_void_p),),
    "cudnnDestroyFilterDescriptor": (c_void_p,),
    "cudnnSetFilter4dDescriptor": (c_void_p, *[c_int] * 6),
    "cudnnCreateConvolutionDescriptor": (POINTER(c_void_p),),
    "cudnnDestroyConvolutionDescriptor": (c_void_p,),
    "cudnnSetConvolution2dDescriptor": (c_void_p, *[c_int] * 8),
    "cudnnSetConvolutionMathType": (c_void_p, c_int),
    "cudnnGetConvolution2dForwardOutputDim": (c_void_p, c_void_p, c_void_p, *[POINTER(c_int)] * 4),
    "cudnnGetConvolutionForwardAlgorithmMaxCount": (c_void_p, POINTER(c_int)),
    "cudnnGetConvolutionForwardAlgorithm_v7": (
        *[c_void_p] * 5,
        c_int,
        POINTER(c_int),
        POINTER(_Performance),
    ),
    "cudnnFindConvolutionForwardAlgorithmEx": (
        *[c_void_p] * 8,
        c_int,
        POINTER(c_int),
        POINTER(_Performance),
        c_void_p,
        c_size_t,
    ),
    "cudnnGetConvolutionForwardWorkspaceSize": (*[c_void_p] * 5, c_int, POINTER(c_size_t)),
    "cudnnConvolutionForward": (
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_int,
        c_void_p,
        c_size_t,
        c_void_p,
        c_void_p,
        c_void_p,
    ),
}


@cache
def library() -> ctypes.CDLL:
    """The opened library with its argument types set; raises OSError where there is none."""
    opened = _open()
    for name, arguments in _SIGNATURES.items():
        function = getattr(opened, name)
        function.argtypes, function.restype = arguments, c_int
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
        return f"cuDNN 9 is not installed ({install('cuda13')}): {error}"
    return None


def version() -> str:
    """The library's version: '9.19.0'."""
    number = int(library().cudnnGetVersion())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _text(status: int) -> str:
    """What cuDNN says about a status: the last error's text where there is one, else the status's name."""
    name: bytes = library().cudnnGetErrorString(status)
    buffer = ctypes.create_string_buffer(ERROR_TEXT_BYTES)
    library().cudnnGetLastErrorString(buffer, ERROR_TEXT_BYTES)
    words = " ".join(buffer.value.decode(errors="replace").split())
    return f"{name.decode()}: {words}" if words else name.decode()


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the library; raises CudnnError unless it returns success."""
    status = getattr(library(), name)(*arguments)
    if status != STATUS_SUCCESS:
        raise CudnnError(name, status, _text(status))


# --- descriptors ------------------------------------------------------------------------------------------------


class _Descriptor:
    """A cuDNN object that is created and destroyed by name."""

    kind = ""

    def __init__(self) -> None:
        self.pointer = c_void_p()
        _call(f"cudnnCreate{self.kind}", byref(self.pointer))

    def __del__(self) -> None:
        if self.pointer:
            getattr(library(), f"cudnnDestroy{self.kind}")(self.pointer)


class TensorShape(_Descriptor):
    """A dense NHWC tensor; sizes in the order N, C, H, W."""

    kind = "TensorDescriptor"

    def __init__(self, dtype: DataType, batch: int, channels: int, height: int, width: int) -> None:
        super().__init__()
        _call("cudnnSetTensor4dDescriptor", self.pointer, _NHWC, dtype, batch, channels, height, width)


class FilterShape(_Descriptor):
    """Weights that lie in memory as (out, H, W, in); sizes in the order out, in, H, W."""

    kind = "FilterDescriptor"

    def __init__(self, dtype: DataType, out_channels: int, in_channels: int, height: int, width: int) -> None:
        super().__init__()
        _call("cudnnSetFilter4dDescriptor", self.pointer, dtype, _NHWC, out_channels, in_channels, height, width)


class Convolution(_Descriptor):
    """Cross-correlation with equal padding and stride on both axes, no dilation, sums in float32."""

    kind = "ConvolutionDescriptor"

    def __init__(self, padding: int, stride: int, math: MathType) -> None:
        super().__init__()
        pads, strides, dilations = (padding, padding), (stride, stride), (1, 1)
        _call(
            "cudnnSetConvolution2dDescriptor",
            self.pointer,
            *pads,
            *strides,
            *dilations,
            _CROSS_CORRELATION,
            DataType.FLOAT,
        )
        self.set_math(math)

    def set_math(self, math: MathType) -> None:
        """Choose the arithmetic; the descriptor keeps it until the next call."""
        _call("cudnnSetConvolutionMathType", self.pointer, math)

    def output_shape(self, source: TensorShape, weights: FilterShape) -> tuple[int, int, int, int]:
        """N, C, H, W of the result, as cuDNN computes it; needs no GPU."""
        sizes = [c_int() for _ in range(4)]
        _call(
            "cudnnGetConvolution2dForwardOutputDim",
            self.pointer,
            source.pointer,
            weights.pointer,
            *[byref(size) for size in sizes],
        )
        batch, channels, height, width = (size.value for size in sizes)
        return batch, channels, height, width


@dataclass(frozen=True)
class ForwardConvolution:
    """The four descriptors of one forward convolution."""

    source: TensorShape
    weights: FilterShape
    convolution: Convolution
    result: TensorShape

    @property
    def pointers(self) -> tuple[c_void_p, c_void_p, c_void_p, c_void_p]:
        """In the order in which cuDNN's queries take them."""
        return self.source.pointer, self.weights.pointer, self.convolution.pointer, self.result.pointer


# --- the handle -------------------------------------------------------------------------------------------------


class Handle:
    """A cuDNN context on the current device. Raises CudnnError (status 1001) where there is no GPU."""

    def __init__(self) -> None:
        self.pointer = c_void_p()
        _call("cudnnCreate", byref(self.pointer))
        # The scale of the product and of what `result` held before: out = 1 · conv + 0 · out.
        self._one, self._zero = c_float(1.0), c_float(0.0)

    def set_stream(self, stream: int) -> None:
        """Put what follows on a CUDA stream, given by its address (0 is the default stream)."""
        _call("cudnnSetStream", self.pointer, stream)

    def _room(self) -> Any:
        count = c_int()
        _call("cudnnGetConvolutionForwardAlgorithmMaxCount", self.pointer, byref(count))
        return (_Performance * count.value)()

    def rank(self, work: ForwardConvolution) -> tuple[Performance, ...]:
        """cudnnGetConvolutionForwardAlgorithm_v7: a ranking by heuristics, nothing is run."""
        lines, returned = self._room(), c_int()
        name = "cudnnGetConvolutionForwardAlgorithm_v7"
        _call(name, self.pointer, *work.pointers, len(lines), byref(returned), lines)
        return tuple(_performance(line) for line in lines[: returned.value])

    def measure(
        self, work: ForwardConvolution, source: int, weights: int, result: int, workspace: int, workspace_bytes: int
    ) -> tuple[Performance, ...]:
        """cudnnFindConvolutionForwardAlgorithmEx: run every algorithm on these addresses; overwrites `result`."""
        lines, returned = self._room(), c_int()
        _call(
            "cudnnFindConvolutionForwardAlgorithmEx",
            self.pointer,
            work.source.pointer,
            source,
            work.weights.pointer,
            weights,
            work.convolution.pointer,
            work.result.pointer,
            result,
            len(lines),
            byref(returned),
            lines,
            workspace,
            workspace_bytes,
        )
        return tuple(_performance(line) for line in lines[: returned.value])

    def workspace_bytes(self, work: ForwardConvolution, algorithm: Algorithm) -> int:
        """Scratch memory that an algorithm asks for; raises CudnnError where it cannot do the work."""
        needed = c_size_t()
        name = "cudnnGetConvolutionForwardWorkspaceSize"
        _call(name, self.pointer, *work.pointers, algorithm, byref(needed))
        return needed.value

    def forward(
        self,
        work: ForwardConvolution,
        algorithm: Algorithm,
        source: int,
        weights: int,
        result: int,
        workspace: int,
        workspace_bytes: int,
    ) -> None:
        """Put one convolution on the handle's stream; all addresses are device memory."""
        _call(
            "cudnnConvolutionForward",
            self.pointer,
            byref(self._one),
            work.source.pointer,
            source,
            work.weights.pointer,
            weights,
            work.convolution.pointer,
            algorithm,
            workspace,
            workspace_bytes,
            byref(self._zero),
            work.result.pointer,
            result,
        )


def _performance(line: _Performance) -> Performance:
    return Performance(
        algorithm=Algorithm(line.algorithm),
        math=MathType(line.math),
        status=line.status,
        seconds=line.time / 1e3 if line.time > 0 else None,
        workspace_bytes=line.memory,
        deterministic=line.determinism == _DETERMINISTIC,
    )
