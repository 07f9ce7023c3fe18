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

from ctypes import CDLL, POINTER, Structure, c_int, c_short, c_size_t, c_uint, c_void_p
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from edgeconv.bench.candidates import Bench, Ready
from edgeconv.bench.peers.base import HALO, TOLERANCE, Library, changed, kernels_apart, on_host
from edgeconv.core.choices import DeviceName
from edgeconv.core.filters import RGB_CHANNELS, Weights, named_filter
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.output import TOLERANCE_FLOAT32
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError, one_line


def cudnn_graph(problem: Problem, bench: Bench) -> Ready:
    """One convolution as a graph."""
    if problem.output_mode != "raw":
        raise UnavailableError("it gives raw values")
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
    sides = {"padding": [HALO] * 2, "stride": [problem.stride] * 2, "dilation": [1, 1]}
    result = graph.conv_fprop(image=image, weight=kernels, **sides)
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
    held = {image: cupy.asarray(bench.image_host), kernels: cupy.asarray(weights), result: out}
    workspace = cupy.empty(max(graph.get_workspace_size(), 1), np.uint8)

    def run() -> None:
        graph.execute(held, workspace, handle=handle)

    return Ready(run, lambda: on_host(out), problem, tolerance=TOLERANCE, about={"workspace_bytes": workspace.size})


TYPES = {"uint8": ("8u", "RGB8"), "float32": ("32f", "RGBf32")}
"""In the words of NPP and of CV-CUDA."""
LAPLACIAN_APERTURE, ANCHOR_AT_CENTRE = 1, -1


def cv_cuda(problem: Problem, bench: Bench) -> Ready:
    """conv2d (it correlates) over a batch of one picture, or laplacian."""
    kernel_host = _kernel_of_rgb(problem)
    cvcuda, cupy = import_module("cvcuda"), import_module("cupy")
    done, differs = changed(problem, output_mode="clip" if problem.dtype.kind == "u" else "raw")
    image, out = cupy.asarray(bench.image_host), cupy.empty(done.output_shape, done.output_dtype)
    border = getattr(cvcuda.Border, "CONSTANT" if problem.border == "zero" else problem.border.upper())
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

    return Ready(run, lambda: on_host(out), done, tolerance=TOLERANCE_FLOAT32, differs=differs)


def _kernel_of_rgb(problem: Problem) -> Weights:
    """The kernel (3, 3) of all channels; raises UnavailableError for another problem than that."""
    if problem.in_channels != RGB_CHANNELS:
        raise UnavailableError("it is written for RGB")
    return np.asarray(kernels_apart(problem)[0])


class NppPair(Structure):
    """NppiSize (width, height) and NppiPoint (x, y)."""

    _fields_ = (("first", c_int), ("second", c_int))


class NppContext(Structure):
    """NppStreamContext; fields with capital letters are attributes of the device by CUDA's names."""

    _fields_ = (
        ("stream", c_void_p),
        ("device", c_int),
        ("MultiProcessorCount", c_int),
        ("MaxThreadsPerMultiProcessor", c_int),
        ("MaxThreadsPerBlock", c_int),
        ("MaxSharedMemoryPerBlock", c_size_t),
        ("compute_major", c_int),
        ("compute_minor", c_int),
        ("stream_flags", c_uint),
        ("workspace", c_uint),
    )


BORDER_REPLICATE, MASK_3X3 = 2, 200
"""Of nppdefs.h."""
_PICTURE = (c_void_p, c_int)
_WHERE = (*_PICTURE, NppPair, NppPair, *_PICTURE, NppPair)
_GENERAL = (*_WHERE, c_void_p, NppPair, NppPair, c_int, NppContext)
_LAPLACE, _SOBEL = (*_WHERE, c_int, c_int, NppContext), (*_WHERE, c_int, NppContext)
_CANNY = (*_WHERE, c_int, c_int, c_short, c_short, c_int, c_int, c_void_p, NppContext)
NPP_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "nppiFilterBorder_32f_C3R_Ctx": _GENERAL,
    "nppiFilterBorder32f_8u_C3R_Ctx": _GENERAL,
    **{f"nppiFilterLaplaceBorder_{kind}_C3R_Ctx": _LAPLACE for kind, _ in TYPES.values()},
    **{f"nppiFilterSobelHorizBorder_{kind}_C3R_Ctx": _SOBEL for kind, _ in TYPES.values()},
    **{f"nppiFilterSobelVertBorder_{kind}_C3R_Ctx": _SOBEL for kind, _ in TYPES.values()},
    "nppiAbs_32f_C3IR_Ctx": (*_PICTURE, NppPair, NppContext),
    "nppiFilterCannyBorderGetBufferSize": (NppPair, POINTER(c_int)),
    "nppiFilterCannyBorder_8u_C1R_Ctx": _CANNY,
}
"""What is called, and the types of its arguments."""
FIXED = {
    "FilterLaplaceBorder": (-named_filter("laplacian8").kernels[0], (MASK_3X3,)),
    "FilterSobelHorizBorder": (named_filter("sobel-y").kernels[0], ()),
    "FilterSobelVertBorder": (named_filter("sobel-x").kernels[0], ()),
}
"""Their kernels, and what they are told beside the border."""


def npp(problem: Problem, bench: Bench) -> Ready:
    """NVIDIA's Performance Primitives by ctypes, on arrays of CuPy: filters with a border."""
    kernel, is_float = _kernel_of_rgb(problem), problem.dtype == np.float32
    if not is_float and (problem.output_mode == "raw" or (kernel != np.rint(kernel)).any()):
        raise UnavailableError("it does uint8 with whole weights and output abs or clip")
    cupy = import_module("cupy")
    image, out = cupy.asarray(bench.image_host), cupy.empty(problem.output_shape, problem.output_dtype)
    kind, step = TYPES[problem.dtype.name][0], problem.width * RGB_CHANNELS * problem.dtype.itemsize
    size, context = NppPair(problem.width, problem.height), npp_context(cupy)
    where = (image.data.ptr, step, size, NppPair(0, 0), out.data.ptr, step, size)
    turned = cupy.asarray(np.ascontiguousarray(kernel[::-1, ::-1]))
    name = f"nppiFilterBorder_{kind}_C3R_Ctx" if is_float else f"nppiFilterBorder32f_{kind}_C3R_Ctx"
    told: tuple[Any, ...] = (turned.data.ptr, NppPair(KERNEL_SIZE, KERNEL_SIZE), NppPair(HALO, HALO))
    words = []
    for fixed, (own, more) in FIXED.items():
        # A negative kernel has the same |value|; of 8 bits, which are clipped, the other half of it.
        is_negative = np.array_equal(kernel, -own) and problem.output_mode == "abs"
        if np.array_equal(kernel, own) or is_negative:
            name, told, kernel = f"nppi{fixed}_{kind}_C3R_Ctx", more, own
            words += ["its kernel is the negative one"] if is_negative else []
    mode, weights = problem.output_mode if is_float else "clip", np.broadcast_to(kernel, problem.weights.shape)
    done, differs = changed(problem, border="replicate", output_mode=mode, weights=weights.copy())

    def run(held: Any = (image, turned)) -> None:  # what `where` and `told` have addresses of
        npp_call(name, *where, *told, BORDER_REPLICATE, context)
        if is_float and problem.output_mode == "abs":
            npp_call("nppiAbs_32f_C3IR_Ctx", out.data.ptr, step, size, context)

    differs = ", ".join([*words, *filter(None, [differs])]) or None
    return Ready(run, lambda: on_host(out), done, tolerance=TOLERANCE_FLOAT32, differs=differs)


def npp_context(cupy: Any) -> NppContext:
    """The current stream and device, as NPP wants to be told."""
    device = cupy.cuda.Device()
    facts = {name: value for name, value in device.attributes.items() if hasattr(NppContext, name)}
    stream, (major, minor) = cupy.cuda.get_current_stream().ptr, divmod(int(device.compute_capability), 10)
    return NppContext(stream=stream, device=device.id, compute_major=major, compute_minor=minor, **facts)


def npp_call(name: str, *arguments: Any) -> None:
    """Call a function; raises RuntimeError with NPP's status where that is not 0."""
    if (status := _function(name)(*arguments)) != 0:
        raise RuntimeError(f"{name} answered status {status}")


@cache
def _function(name: str) -> Any:
    """One of NPP_FUNCTIONS, from where NVIDIA's path finder has its library: a wheel, else the system."""
    found = import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nppial" if "Abs" in name else "nppif")
    function = getattr(CDLL(str(found.abs_path)), name)
    function.argtypes, function.restype = NPP_FUNCTIONS[name], c_int
    return function


def _missing(device: DeviceName) -> str | None:
    try:
        for name in NPP_FUNCTIONS:
            _function(name)
    except (OSError, RuntimeError, AttributeError) as error:
        return f"NPP cannot be opened ({one_line(error)}; pip install {NPP.distributions[0]})"
    return None


CUDNN_GRAPH = Library(
    cudnn_graph,
    "cudnn",
    ("nvidia-cudnn-frontend",),
    dtypes=("float32",),
    borders=("zero",),
    combines=("single",),
    has_groups=False,
)
_library = partial(Library, dtypes=tuple(TYPES), combines=("single",), has_stride=False)
CVCUDA = _library(cv_cuda, "cvcuda", ("cvcuda-cu13", "cvcuda-cu12"))
NPP = _library(npp, "cuda.pathfinder", ("nvidia-npp", "nvidia-npp-cu12"), missing=_missing)
