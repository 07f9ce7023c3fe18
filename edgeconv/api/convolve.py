"""`plan` prepares a filter for pictures of one shape and type; `convolve` does it behind the scenes and remembers.

`canny` finds edges in one call; `chain` states any chain of stages for `convolve` and `plan`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from operator import index
from typing import Any, NamedTuple

import numpy as np

from edgeconv.api.arrays import ArrayLibrary, library_of, on_gpu, stream_as_given
from edgeconv.api.auto import choose
from edgeconv.api.cache import PlanCache
from edgeconv.api.parameters import with_parameters
from edgeconv.api.plan import SHAPES, ConvolutionPlan, picture_shape
from edgeconv.core.chains import Chain, make_chain
from edgeconv.core.choices import CHAINS, DEFAULT_BORDER, DEFAULT_FILTER, Gradient, ThresholdRule
from edgeconv.core.filters import Filter
from edgeconv.core.option import AUTO, listed
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.core.request import make_request
from edgeconv.core.text import parse_bytes
from edgeconv.errors import EdgeconvError, UsageError
from edgeconv.hardware import pages
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.hardware.devices import get_device
from edgeconv.methods.options import Options

DEFAULT_OPTIONS = Options()

PLANS = PlanCache()
"""The plans of `convolve`, for all threads."""


def plan(
    shape: tuple[int, ...],
    dtype: Any = "uint8",
    *,
    filter: Any = DEFAULT_FILTER,
    method: str = AUTO,
    stride: int = 1,
    padding: int | str = "same",
    border: str = DEFAULT_BORDER,
    channels: str | None = None,
    luma: str = "bt601",
    output_mode: str | None = None,
    threshold: float | None = None,
    device: str = AUTO,
    options: Options | None = None,
) -> ConvolutionPlan:
    """Prepare a filter for pictures of one shape and type; everything that happens once happens here.

    Args:
        shape: (height, width, 3) for RGB; (height, width) or (height, width, 1) for grey; (pictures, height, width,
            3 or 1) for a batch. Three axes are always height, width and channels.
        dtype: type of the samples: uint8, uint16, float16, float32 or float64.
        filter, method, stride, padding, border, channels, luma, output_mode, threshold, device, options: see
            `convolve`. With `auto` a plan is for arrays of the host; for arrays on a GPU say `cuda`. On a machine with
            several GPUs the plan is made for CuPy's current one.

    Returns:
        A plan: `plan(image)` and `plan(image, out=array)` filter; `plan.output_shape` is as `convolve` says;
            `plan.explain()` says what was chosen and why,
        `plan.bound` how far a value may be off, `plan.memory_bytes` what it holds; `plan.measure()` times it and
            compares it with the oracle.

    Raises:
        UsageError: a word, shape or type that has no meaning (also a ValueError).
        UnavailableError: a method or device that this machine does not have.
        MemoryLimitError: out of memory, or above the workspace limit.
    """
    rules = (channels, luma, stride, padding, border, output_mode, threshold)
    return _make_plan(_shape(shape), _sample_type(dtype), filter, rules, method, device, options)


def convolve(
    image: Any,
    filter: Any = DEFAULT_FILTER,
    method: str = AUTO,
    *,
    stride: int = 1,
    padding: int | str = "same",
    border: str = DEFAULT_BORDER,
    channels: str | None = None,
    luma: str = "bt601",
    output_mode: str | None = None,
    threshold: float | None = None,
    device: str = AUTO,
    options: Options | None = None,
    out: Any = None,
) -> Any:
    """Filter an RGB or grey picture, or a batch of them, with 3×3 kernels (cross-correlation, no bias).

    Plans are remembered, so that a second picture of the same shape and type pays for no set-up.

    Args:
        image: height × width × 3, RGB; height × width, or height × width × 1, grey; a batch is pictures × height ×
            width × 3 or 1. Three axes are always height, width and channels. uint8, uint16, float16, float32 or
            float64. An array of NumPy, CuPy, PyTorch or JAX, or any with DLPack or `__cuda_array_interface__`; on a
            GPU it stays there.
        filter: a name of `edgeconv filters` or a 3×3 table of numbers; or a bank of K filters: a list of names, or
            numbers K×C×3×3 as (filter, input channel, row, column), K up to 256. C is 3, or 1 for kernels that serve
            every channel. Or a chain of stages: `canny`, or what `edgeconv.chain` gives.
        method: `auto`, or a name of `edgeconv doctor`; a method asked for by name runs or raises.
        stride: distance in pixels between neighbouring outputs, from 1.
        padding: `same` (1 pixel), `valid` (0) or a number of pixels on every side.
        border: what lies outside: `zero`, `replicate`, `reflect` (edge repeated) or `reflect101` (OpenCV's default).
        channels: of RGB: `each` (by itself, the default), `mix` (each output sums its filter over all three; the
            default of kernels with C of 3) or `luma` (one output). Of a grey picture they are all the same.
        luma: `bt601` or `bt709`, for `channels="luma"`.
        output_mode: `abs` (default for whole-number pictures), `clip`, `normalize`, or `raw` (default for floats).
        threshold: makes a mask of the output: the full value of its type (255, 65535, 1.0) where |output| is at least
            this, else 0, each channel by itself.
        device: `auto`, `cpu` or `cuda`.
        options: workspace limit, threads, arithmetic; see `edgeconv.Options`.
        out: an array for the result, of its shape and type and on the picture's device; one channel may have its axis
            or none. It is what is returned.

    Returns:
        floor((height + 2·padding − 3) / stride) + 1 rows, likewise columns, and channels: 3 of RGB. One channel (luma,
        grey, `canny`) has no axis, rows × columns, unless the picture is height × width × 1: then it is rows ×
        columns × 1. A bank always has the axis, of K; under `each` of RGB of 3·K, where c·K + k is filter k of channel
        c. A batch has its pictures in front. An array of the library that was given, on its device. The type is the
        picture's own; `raw` of a whole-number picture is float32. Values are rounded to nearest, ties to even, and
        clipped to the type.

    Raises:
        UsageError: a word, shape or type that has no meaning (also a ValueError).
        UnavailableError: a method or device that this machine does not have.
        MemoryLimitError: out of memory, or above the workspace limit.
    """
    library = library_of(image)
    gpu = library.gpu_of(image)
    described = image if hasattr(image, "shape") and hasattr(image, "dtype") else library.native(image)
    if isinstance(filter, Chain) or (isinstance(filter, str) and filter in CHAINS):
        filter = _settled(filter, library, image, gpu)
    place = _current_gpu(device) if gpu is None else gpu
    rules = (channels, luma, stride, padding, border, output_mode, threshold)
    types = (type(stride), type(padding), type(threshold))  # True is 1 as a key
    shape = described.shape
    key = (place, gpu is None, shape, described.dtype, _filter_key(filter), rules, types, method, device, options)

    def make() -> ConvolutionPlan:
        if gpu is not None and device == "cpu":
            raise UsageError("The picture is on a GPU: use device 'auto' or 'cuda', or copy it to the host first.")
        home = device if gpu is None else "cuda"
        with on_gpu(gpu):
            return _make_plan(tuple(shape), library.sample_type(described), filter, rules, method, home, options)

    return PLANS.get(key, make)(image, out)


def canny(
    image: Any,
    low: float | None = None,
    high: float | None = None,
    *,
    rule: ThresholdRule | None = None,
    gradient: Gradient | None = None,
    L2gradient: bool = False,
    blur: int = 0,
    method: str = AUTO,
    device: str = AUTO,
    options: Options | None = None,
    out: Any = None,
) -> Any:
    """Edges of a picture, or of a batch, by Canny: of 8-bit pictures byte for byte those of `cv2.Canny`, aperture 3.

    Args:
        image: height × width (× 1), grey, or height × width × 3, RGB, or a batch of either with its pictures in front:
            uint8 or uint16; an array of any library that `convolve` takes. Of RGB the channel of the largest gradient
            counts.
        low, high: thresholds in units of the Sobel gradient, in either order; fractions are allowed.
        rule: finds them in the picture where they are not given: `median` (default) or `otsu`
            (`edgeconv.core.chains.automatic_thresholds` states both). A batch has one pair for all its pictures.
        gradient: magnitudes |gx| + |gy| (`l1`, the default), or sqrt(gx² + gy²) (`l2`).
        L2gradient: the same question as OpenCV asks it: True is `l2`.
        blur: 3 or 5 smooths by a binomial of that size before, as `cv2.GaussianBlur` with sigma 0; 0 does not.
        method, device, options, out: see `convolve`.

    Returns:
        height × width, behind the pictures of a batch; height × width × 1 where the picture is so. uint8, 255 on edges
        and 0 elsewhere, an array of the library that was given, on its device.

    Raises:
        UsageError: a picture, threshold or setting that has no meaning (also a ValueError).
        UnavailableError: a method or device that this machine does not have, or that does not compute canny.
    """
    if L2gradient and gradient == "l1":
        raise UsageError("L2gradient=True is gradient='l2', and gradient is 'l1': give one of the two.")
    asked: Gradient | None = "l2" if L2gradient else gradient
    chosen = chain("canny", low=low, high=high, rule=rule, gradient=asked, blur=blur)
    return convolve(image, chosen, method, device=device, options=options, out=out)


def chain(
    stages: str | Iterable[str],
    *,
    low: float | None = None,
    high: float | None = None,
    rule: ThresholdRule | None = None,
    gradient: Gradient | None = None,
    blur: int = 0,
) -> Chain:
    """A chain of 3×3 stages, for the `filter` of `convolve` and `plan`: `chain("gaussian,sobel,thin")`.

    Args:
        stages: the name of a chain (`canny`), or stages with commas between them or as a list: gaussian, gaussian5,
            sobel, scharr, prewitt, thin, hysteresis; each takes what the one before it gives.
        low, high, rule, gradient, blur: see `canny`; thresholds are those of hysteresis.

    Raises:
        UsageError: stages that do not fit together, or a setting that none of them takes.
    """
    try:
        return make_chain(stages, low=low, high=high, rule=rule, gradient=gradient, blur=blur)
    except EdgeconvError as error:
        raise with_parameters(error) from error.__cause__


def _settled(filter: str | Chain, library: ArrayLibrary, image: Any, gpu: int | None) -> Chain:
    """A chain with its thresholds, found in the picture where a rule finds them."""
    chain = make_chain(filter) if isinstance(filter, str) else filter
    if chain.rule is None or chain.low is not None:
        return chain
    home = get_device("cpu" if gpu is None else "cuda")
    with on_gpu(gpu), stream_as_given(library, gpu):
        native = library.native(image)
        with home.guard(8 * native.size):
            return chain.settled(native, home.array_module)


class ResultMemory(NamedTuple):
    """What `result_memory` answers, in bytes."""

    limit_bytes: int
    held_bytes: int


def result_memory(limit: int | str | None = None) -> ResultMemory:
    """Memory of large results on the host that were dropped, which is kept for the next results of their size.

    Args:
        limit: at most so much is kept from now on, in bytes or as `512M`; 0 gives all of it back. None changes
            nothing. At first it is what the environment variable `EDGECONV_RESULT_MEMORY` says, or 256 MiB.

    Returns:
        The limit, and what is kept now.

    Raises:
        UsageError: a limit that is not a number of bytes.
    """
    if limit is not None:
        pages.set_limit(parse_bytes(str(limit), "limit"))
    return ResultMemory(pages.limit_bytes(), pages.waiting_bytes())


RULES = ("channels", "luma", "stride", "padding", "border", "output_mode", "threshold")
"""The rules of a filter, by the names that `make_request` gives them."""


def _make_plan(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    filter: Any,
    rules: tuple[Any, ...],
    method: str,
    device: str,
    options: Options | None,
) -> ConvolutionPlan:
    try:
        request = make_request(filter, **dict(zip(RULES, rules, strict=True)))
        if len(shape) == 4 and shape[0] < 1:
            raise UsageError("A batch must have at least one picture.")
        options = DEFAULT_OPTIONS if options is None else options
        if not isinstance(options, Options):
            raise UsageError(f"Options must be edgeconv.Options(...), not {type(options).__name__}.")
        problem = request.picture_problem(picture_shape(shape), dtype)
        return ConvolutionPlan(request, shape, problem, choose(method, device, problem), options)
    except EdgeconvError as error:
        raise with_parameters(error) from error.__cause__


def _filter_key(chosen: Any) -> Any:
    """What a filter is known by: its name, or its numbers, which the caller may change between two calls.

    A bank is known by its filters, in their order.
    """
    if isinstance(chosen, str | Filter | Chain):
        return chosen
    if type(chosen) is np.ndarray and chosen.dtype.kind in "fiu":
        return chosen.shape, chosen.dtype.str, chosen.tobytes()
    if isinstance(chosen, list | tuple):
        return tuple(_filter_key(each) if isinstance(each, list | tuple) else each for each in chosen)
    return [chosen]  # no key: its plan is made each time


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(index(side) for side in shape)
    except TypeError:
        raise UsageError(f"'{shape}' is not a shape: give {SHAPES}.") from None


def _sample_type(dtype: Any) -> np.dtype[Any]:
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise UsageError(f"'{dtype}' is not a type of samples: use {listed(INPUT_DTYPES)}.") from None
    return kind


def _current_gpu(device: str) -> int | None:
    """The GPU that pictures of the host would go to; None where CuPy is not loaded or no GPU is asked for."""
    if device == "cpu" or "cupy" not in sys.modules or cuda_unavailable_reason() is not None:
        return None
    return int(sys.modules["cupy"].cuda.runtime.getDevice())
