"""NVIDIA's own libraries on a picture that lies on the GPU in HWC.

    cudnn-graph   the graph API of nvidia-cudnn-frontend, float32 without TensorFloat-32; its heuristics choose the
                  engine (`cudnn` and `cudnn:find` among the methods are the older interface, v7)
    npp           channels apart with one kernel over ctypes: FilterLaplaceBorder, FilterSobelHorizBorder and VertBorder
                  where the kernel or its negative is one of them, else FilterBorder; |value| of float32 by nppiAbs
    cvcuda        channels apart with one kernel: cvcuda.laplacian for laplacian4, else cvcuda.conv2d

NPP and CV-CUDA store 8 bits clipped. Where |value| is asked for they do `clip` and say so: what would give it takes
NPP another 330 µs and more at 4096 × 4096 on one NVIDIA H200 (by 16 bits 417 µs, by both signs and nppiOr 533 µs, for
92 µs of filter). None has a stride; NPP's border is replicate. It convolves, so kernels of FilterBorder are handed over
turned by half a circle.

Source: the documentation of nvidia-cudnn-frontend; nppi_filtering_functions.h, nppdefs.h and
nppi_arithmetic_and_logical_operations.h of NPP 13.2; the reference of cvcuda.conv2d and cvcuda.laplacian, CV-CUDA 0.19.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Mapping
from ctypes import c_int, c_size_t, c_uint, c_void_p
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, TOLERANCE, Peer, changed, kernels_apart
from edgeconv.core.choices import Border
from edgeconv.core.filters import RGB_CHANNELS, Weights, named_filter
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.output import TOLERANCE_FLOAT32
from edgeconv.core.problem import Problem, StoredMode
from edgeconv.errors import UnavailableError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason


class CuDNNGraph(Peer):
    """One convolution as a graph."""

    distributions = ("nvidia-cudnn-frontend",)
    module = "cudnn"
    dtypes, borders, combines = ("float32",), ("zero",), ("single",)

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        if problem.output_mode != "raw" or problem.groups != 1:
            raise UnavailableError("it is asked for one group of channels, raw")
        cudnn, cupy = import_module("cudnn"), import_module("cupy")
        handle = cudnn.create_handle()
        cudnn.set_stream(handle=handle, stream=cupy.cuda.get_current_stream().ptr)
        real = cudnn.data_type.FLOAT
        graph = cudnn.pygraph(io_data_type=real, intermediate_data_type=real, compute_data_type=real, handle=handle)

        def tensor(name: str, outer: int, height: int, width: int, channels: int) -> Any:
            strides = [height * width * channels, 1, width * channels, channels]
            return graph.tensor(name=name, dim=[outer, channels, height, width], stride=strides, data_type=real)

        image = tensor("image", 1, *problem.input_shape)
        kernels = tensor("weights", problem.output_channels, KERNEL_SIZE, KERNEL_SIZE, problem.in_channels)
        result = graph.conv_fprop(
            image=image,
            weight=kernels,
            padding=[HALO] * 2,
            stride=[problem.stride] * 2,
            dilation=[1, 1],
        )
        height, width, outputs = problem.output_shape
        result.set_output(True).set_data_type(real).set_dim([1, outputs, height, width])
        result.set_stride([height * width * outputs, 1, width * outputs, outputs])
        try:
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            reduced = (cudnn.numerical_note.TENSOR_CORE, cudnn.numerical_note.DOWN_CONVERT_INPUTS)
            graph.deselect_numeric_notes(list(reduced))
            graph.check_support()
            graph.build_plans()
        except cudnn.cudnnGraphNotSupportedError as error:
            raise UnavailableError(f"cuDNN has no engine for this case: {str(error).splitlines()[0]}") from error
        out = cupy.empty(problem.output_shape, np.float32)
        weights = np.ascontiguousarray(problem.dense_weights()[0].transpose(0, 2, 3, 1))
        held = {image: cupy.asarray(image_host), kernels: cupy.asarray(weights), result: out}
        workspace = cupy.empty(max(graph.get_workspace_size(), 1), np.uint8)

        def run() -> None:
            graph.execute(held, workspace, handle=handle)

        return Ready(run, lambda: out.get(), problem, tolerance=TOLERANCE, workspace_bytes=workspace.size)


TYPES = {"uint8": ("8u", "RGB8"), "float32": ("32f", "RGBf32")}
"""In the words of NPP and of CV-CUDA."""


class OneKernel(Peer):
    """What NPP and CV-CUDA share: one kernel for the channels of RGB."""

    dtypes, combines, has_stride = tuple(TYPES), ("single",), False

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        if problem.in_channels != RGB_CHANNELS:
            raise UnavailableError("it is written for RGB")
        return self.with_kernel(problem, image_host, kernels_apart(problem)[0])

    @abstractmethod
    def with_kernel(self, problem: Problem, image_host: NDArray[Any], kernel_host: Weights) -> Ready:
        """See `set_up`, with the kernel (3, 3)."""


class CVCUDA(OneKernel):
    """conv2d (it correlates) over a batch of one picture, or laplacian."""

    distributions = ("cvcuda-cu13", "cvcuda-cu12")
    module = "cvcuda"
    needs = ("cupy",)

    def with_kernel(self, problem: Problem, image_host: NDArray[Any], kernel_host: Weights) -> Ready:
        cvcuda, cupy = import_module("cvcuda"), import_module("cupy")
        done, differs = changed(problem, output_mode="clip" if problem.dtype.kind == "u" else "raw")
        image, out = cupy.asarray(image_host), cupy.empty(done.output_shape, done.output_dtype)
        border = getattr(cvcuda.Border, BORDERS[problem.border])
        stream = cvcuda.as_stream(cupy.cuda.get_current_stream())
        if np.array_equal(kernel_host, named_filter("laplacian4").kernels[0]):
            source, target = (cvcuda.as_tensor(array, "HWC") for array in (image, out))

            def run() -> None:
                cvcuda.laplacian_into(target, source, LAPLACIAN_APERTURE, 1.0, border, stream=stream)

        else:
            kind = getattr(cvcuda.Format, TYPES[problem.dtype.name][1])
            sources, targets = (cvcuda.as_images([array], kind) for array in (image, out))
            kernel = cvcuda.as_images([cupy.asarray(kernel_host)[..., np.newaxis]], cvcuda.Format.F32)
            anchor = cvcuda.as_tensor(cupy.full((1, 2), ANCHOR_AT_CENTRE, np.int32), "NC")

            def run() -> None:
                cvcuda.conv2d_into(targets, sources, kernel, anchor, border, stream=stream)

        return Ready(run, lambda: np.asarray(out.get()), done, tolerance=TOLERANCE_FLOAT32, differs=differs)


BORDERS: dict[Border, str] = {
    "zero": "CONSTANT",
    "replicate": "REPLICATE",
    "reflect": "REFLECT",
    "reflect101": "REFLECT101",
}
"""Those of cvcuda.Border."""
LAPLACIAN_APERTURE, ANCHOR_AT_CENTRE = 1, -1


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


Signatures = Mapping[str, tuple[str, tuple[Any, ...]]]
"""The library of each function, and the types of its arguments."""
NPP_LIBRARY = "nppif"
"""The filters."""
NPP_MAJORS = (13, 12)
BORDER_REPLICATE, MASK_3X3 = 2, 200
"""Of nppdefs.h."""
PICTURE = (c_void_p, c_int)
WHERE = (*PICTURE, NppPair, NppPair, *PICTURE, NppPair)
_LAPLACE, _SOBEL = (*WHERE, c_int, c_int, NppContext), (*WHERE, c_int, NppContext)
_GENERAL = (*WHERE, c_void_p, NppPair, NppPair, c_int, NppContext)
SIGNATURES: Signatures = {
    "nppiFilterBorder_32f_C3R_Ctx": (NPP_LIBRARY, _GENERAL),
    "nppiFilterBorder32f_8u_C3R_Ctx": (NPP_LIBRARY, _GENERAL),
    **{f"nppiFilterLaplaceBorder_{kind}_C3R_Ctx": (NPP_LIBRARY, _LAPLACE) for kind, _ in TYPES.values()},
    **{f"nppiFilterSobelHorizBorder_{kind}_C3R_Ctx": (NPP_LIBRARY, _SOBEL) for kind, _ in TYPES.values()},
    **{f"nppiFilterSobelVertBorder_{kind}_C3R_Ctx": (NPP_LIBRARY, _SOBEL) for kind, _ in TYPES.values()},
    "nppiAbs_32f_C3IR_Ctx": ("nppial", (*PICTURE, NppPair, NppContext)),
}
FIXED = {
    "FilterLaplaceBorder": (-named_filter("laplacian8").kernels[0], (MASK_3X3,)),
    "FilterSobelHorizBorder": (named_filter("sobel-y").kernels[0], ()),
    "FilterSobelVertBorder": (named_filter("sobel-x").kernels[0], ()),
}
"""Their kernels, and what they are told beside the border."""


class NPP(OneKernel):
    """Filters with a border."""

    distributions = ("nvidia-npp", "nvidia-npp-cu12")
    module = "cupy"

    def unavailable_reason(self) -> str | None:
        return cuda_unavailable_reason() or open_all(SIGNATURES)

    def with_kernel(self, problem: Problem, image_host: NDArray[Any], kernel_host: Weights) -> Ready:
        kernel = kernel_host
        is_float = problem.dtype == np.float32
        if not is_float and (problem.output_mode == "raw" or (kernel != np.rint(kernel)).any()):
            raise UnavailableError("it does uint8 with whole weights and output abs or clip")
        cupy = import_module("cupy")
        image, out = cupy.asarray(image_host), cupy.empty(problem.output_shape, problem.output_dtype)
        kind, step = TYPES[problem.dtype.name][0], problem.width * RGB_CHANNELS * problem.dtype.itemsize
        size, context = NppPair(problem.width, problem.height), context_of(cupy)
        where = (image.data.ptr, step, size, NppPair(0, 0), out.data.ptr, step, size)
        turned = cupy.asarray(np.ascontiguousarray(kernel[::-1, ::-1]))
        name = f"nppiFilterBorder_{kind}_C3R_Ctx" if is_float else f"nppiFilterBorder32f_{kind}_C3R_Ctx"
        told: tuple[Any, ...] = (turned.data.ptr, NppPair(KERNEL_SIZE, KERNEL_SIZE), NppPair(HALO, HALO))
        mode: StoredMode = problem.output_mode if is_float else "clip"
        words = []
        for fixed, (own, more) in FIXED.items():
            # A negative kernel has the same |value|; of 8 bits, which are clipped, the other half of it.
            is_turned = np.array_equal(kernel, -own) and problem.output_mode == "abs"
            if np.array_equal(kernel, own) or is_turned:
                name, told = f"nppi{fixed}_{kind}_C3R_Ctx", more
                words = ["its kernel is the negative one"] if is_turned else []
                kernel = own
        done, differs = changed(problem, border="replicate", output_mode=mode, weights=_for_all(kernel, problem))

        def run(held: Any = (image, turned)) -> None:  # what `where` and `told` have addresses of
            call(SIGNATURES, name, *where, *told, BORDER_REPLICATE, context)
            if is_float and problem.output_mode == "abs":
                call(SIGNATURES, "nppiAbs_32f_C3IR_Ctx", out.data.ptr, step, size, context)

        differs = ", ".join([*words, *([differs] if differs else [])]) or None
        return Ready(run, lambda: np.asarray(out.get()), done, tolerance=TOLERANCE_FLOAT32, differs=differs)


def _for_all(kernel: NDArray[np.float32], problem: Problem) -> NDArray[np.float32]:
    """Weights with this kernel for every channel."""
    return np.broadcast_to(kernel, problem.weights.shape).copy()


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
        return ctypes.CDLL(str(import_module("cuda.pathfinder").load_nvidia_dynamic_lib(name).abs_path))
    except (ImportError, OSError, RuntimeError):
        pass
    for major in NPP_MAJORS:
        try:
            return ctypes.CDLL(f"lib{name}.so.{major}")
        except OSError:
            continue
    raise OSError(f"no lib{name}.so.{NPP_MAJORS[0]}")
