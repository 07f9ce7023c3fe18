"""NVIDIA's Performance Primitives over ctypes: FilterBorder, channels apart with one kernel, HWC.

    float32        nppiFilterBorder_32f_C3R, then |value| by nppiAbs_32f_C3IR where it is asked for
    uint8          nppiFilterBorder32f_8u_C3R, which clips (whole weights)

Where |value| is asked for of uint8 it clips and says so: what would give it takes NPP another 330 µs and more at
4096 × 4096 on one NVIDIA H200 (by 16 bits 417 µs, by both signs and nppiOr 533 µs, for 92 µs of filter).

NPP convolves, so kernels are handed over turned by half a circle ("coefficients in reverse order"); the only border
that these functions have is replicate, and none has a stride.

Source: nppi_filtering_functions.h, nppi_arithmetic_and_logical_operations.h and nppdefs.h of NPP 13.2.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import c_int, c_size_t, c_uint, c_void_p
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, Peer
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.output import TOLERANCE_FLOAT32
from edgeconv.core.problem import Problem, StoredMode
from edgeconv.errors import UnavailableError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason

LIBRARIES = {name: tuple(f"lib{name}.so.{major}" for major in (13, 12)) for name in ("nppif", "nppial")}
NPP_LIBRARY = "nppif"
"""The filters."""
BORDER_REPLICATE = 2


class NppPair(ctypes.Structure):
    """NppiSize (width, height) and NppiPoint (x, y)."""

    _fields_ = (("first", c_int), ("second", c_int))


class NppContext(ctypes.Structure):
    """NppStreamContext."""

    _fields_ = (
        ("stream", c_void_p),
        ("device", c_int),
        ("multiprocessors", c_int),
        ("threads_a_multiprocessor", c_int),
        ("threads_a_block", c_int),
        ("shared_bytes_a_block", c_size_t),
        ("compute_major", c_int),
        ("compute_minor", c_int),
        ("stream_flags", c_uint),
        ("workspace", c_uint),
    )


PICTURE = (c_void_p, c_int)
_FILTER = (*PICTURE, NppPair, NppPair, *PICTURE, NppPair, c_void_p, NppPair, NppPair, c_int, NppContext)
SIGNATURES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "nppiFilterBorder_32f_C3R_Ctx": (NPP_LIBRARY, _FILTER),
    "nppiFilterBorder32f_8u_C3R_Ctx": (NPP_LIBRARY, _FILTER),
    "nppiAbs_32f_C3IR_Ctx": ("nppial", (*PICTURE, NppPair, NppContext)),
}


class NPP(Peer):
    """FilterBorder."""

    distributions = ("nvidia-npp", "nvidia-npp-cu12")
    module = "cupy"

    def unavailable_reason(self) -> str | None:
        return cuda_unavailable_reason() or open_all(SIGNATURES)

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        kernels = problem.weights[0, :, 0]
        alone = problem.combine == "single" and problem.groups > 1 and bool((kernels == kernels[0]).all())
        if not alone or problem.stride != 1 or problem.padding != HALO:
            raise UnavailableError(f"it does channels apart with one kernel, stride 1, padding {HALO}")
        cupy = import_module("cupy")
        image, out = cupy.asarray(image_host), cupy.empty(problem.output_shape, problem.output_dtype)
        turned = cupy.asarray(np.ascontiguousarray(kernels[0, ::-1, ::-1]))
        size, start = NppPair(problem.width, problem.height), NppPair(0, 0)
        shape, anchor, context = NppPair(KERNEL_SIZE, KERNEL_SIZE), NppPair(HALO, HALO), context_of(cupy)

        def filtered(name: str) -> None:
            rest = (size, turned.data.ptr, shape, anchor, BORDER_REPLICATE, context)
            call(SIGNATURES, name, *_picture(image), size, start, *_picture(out), *rest)

        whole = bool((kernels[0] == np.rint(kernels[0])).all())
        if problem.dtype == np.float32:

            def run() -> None:
                filtered("nppiFilterBorder_32f_C3R_Ctx")
                if problem.output_mode == "abs":
                    call(SIGNATURES, "nppiAbs_32f_C3IR_Ctx", *_picture(out), size, context)

        elif problem.dtype == np.uint8 and whole and problem.output_mode in ("abs", "clip"):

            def run() -> None:
                filtered("nppiFilterBorder32f_8u_C3R_Ctx")

        else:
            raise UnavailableError("it does float32, and uint8 with whole weights and output abs or clip")
        mode: StoredMode = "clip" if problem.dtype == np.uint8 else problem.output_mode
        done = replace(problem, border="replicate", output_mode=mode)
        pairs = (("border", done.border, problem.border), ("output", done.output_mode, problem.output_mode))
        differing = [f"its {what} is {own}, not {asked}" for what, own, asked in pairs if own != asked]
        return Ready(
            run=run,
            result=lambda: np.asarray(out.get()),
            problem=done,
            tolerance=TOLERANCE_FLOAT32,
            differs=", ".join(differing) or None,
        )


def _picture(array: Any) -> tuple[int, int]:
    """Address and bytes a row."""
    return array.data.ptr, array.shape[1] * RGB_CHANNELS * array.dtype.itemsize


def context_of(cupy: Any) -> NppContext:
    """The current stream and device, as NPP wants to be told."""
    device = cupy.cuda.Device()
    facts = device.attributes
    return NppContext(
        stream=cupy.cuda.get_current_stream().ptr,
        device=device.id,
        multiprocessors=facts["MultiProcessorCount"],
        threads_a_multiprocessor=facts["MaxThreadsPerMultiProcessor"],
        threads_a_block=facts["MaxThreadsPerBlock"],
        shared_bytes_a_block=facts["MaxSharedMemoryPerBlock"],
        compute_major=int(device.compute_capability[:-1]),
        compute_minor=int(device.compute_capability[-1]),
    )


Signatures = Mapping[str, tuple[str, tuple[Any, ...]]]
"""The library of each function, and the types of its arguments."""


def open_all(signatures: Signatures) -> str | None:
    """Why a function of NPP is not there, as a sentence without a full stop; None where all are."""
    try:
        for name, signature in signatures.items():
            _function(name, *signature)
    except (OSError, AttributeError) as error:
        return f"NPP cannot be opened ({error}; pip install {NPP.distributions[0]})"
    return None


def call(signatures: Signatures, name: str, *arguments: Any) -> None:
    """Call a function; raises RuntimeError with NPP's status where that is not 0."""
    status = _function(name, *signatures[name])(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} answered status {status}")


@cache
def _function(name: str, library: str, arguments: tuple[Any, ...]) -> Any:
    """A function of NPP with its argument types set; raises OSError or AttributeError where it is not there."""
    function = getattr(_open(library), name)
    function.argtypes, function.restype = arguments, c_int
    return function


@cache
def _open(name: str) -> ctypes.CDLL:
    """By NVIDIA's path finder, which knows the wheels, else by the system's search."""
    try:
        finder = import_module("cuda.pathfinder")
        return ctypes.CDLL(str(finder.load_nvidia_dynamic_lib(name).abs_path))
    except (ImportError, OSError, RuntimeError):
        pass
    for candidate in LIBRARIES[name]:
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise OSError(f"no {LIBRARIES[name][0]}")
