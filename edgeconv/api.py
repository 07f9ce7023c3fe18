"""The Python door: `convolve(image, filter="sobel", stride=2)` takes a NumPy or CuPy array and gives back its kind."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from edgeconv.core.choices import DEFAULT_FILTER, DeviceName
from edgeconv.core.option import AUTO
from edgeconv.core.problem import Problem
from edgeconv.core.request import make_request
from edgeconv.errors import UsageError
from edgeconv.methods.options import Options
from edgeconv.runtime.auto import choose
from edgeconv.runtime.devices import get_device
from edgeconv.runtime.session import Session


def convolve(
    image: Any,
    filter: Any = DEFAULT_FILTER,
    method: str = AUTO,
    *,
    stride: int = 1,
    padding: int | str = "same",
    border: str = "zero",
    channels: str = "mix",
    luma: str = "bt601",
    output_mode: str | None = None,
    device: str = AUTO,
    options: Options | None = None,
) -> Any:
    """Filter an RGB picture with 3×3 kernels (cross-correlation, no bias).

    Args:
        image: height × width × 3, RGB; uint8, uint16, float16 or float32. A NumPy array, or a CuPy array, which
            stays on the GPU.
        filter: a name of `edgeconv filters`, a 3×3 table of numbers, or 3×3×3×3 as (out, in, row, column).
        method: `auto`, or a name of `edgeconv doctor`; a method asked for by name runs or raises.
        stride: distance in pixels between neighbouring outputs, from 1.
        padding: `same` (1 pixel), `valid` (0) or a number of pixels on every side.
        border: what lies outside: `zero`, `replicate`, `reflect` (edge repeated) or `reflect101`.
        channels: `mix` (each output sums its filter over all three), `each` (by itself) or `luma` (one output).
        luma: `bt601` or `bt709`, for `channels="luma"`.
        output_mode: `abs` (default for whole-number pictures), `clip`, `normalize`, or `raw` (default for floats).
        device: `auto`, `cpu` or `cuda`.
        options: workspace limit, threads, arithmetic; see `edgeconv.Options`.

    Returns:
        floor((height + 2·padding − 3) / stride) + 1 rows, likewise columns, and 3 channels (1 for luma), as an array
        of the kind that was given. The type is the picture's own; `raw` of a whole-number picture is float32. Values
        are rounded to nearest, ties to even, and clipped to the type.

    Raises:
        UsageError: a word, shape or type that has no meaning (also a ValueError).
        UnavailableError: a method or device that this machine does not have.
        MemoryLimitError: out of memory, or above the workspace limit.
    """
    request = make_request(
        filter,
        channels=channels,
        luma=luma,
        stride=stride,
        padding=padding,
        border=border,
        output_mode=output_mode,
    )
    on_gpu = hasattr(image, "__cuda_array_interface__") and not isinstance(image, np.ndarray)
    if not on_gpu and not isinstance(image, np.ndarray):
        raise UsageError(f"A picture must be a NumPy or CuPy array, not {type(image).__name__}.")
    if isinstance(image, np.ma.MaskedArray):
        raise UsageError("A masked array's mask has no meaning here: pass image.filled(value), or image.data.")
    if on_gpu and device == "cpu":
        raise UsageError("A CuPy array is on the GPU: use device 'auto' or 'cuda', or pass cupy.asnumpy(image).")
    problem = request.problem(tuple(image.shape), _dtype_of(image))
    if options is not None and not isinstance(options, Options):
        raise UsageError(f"Options must be edgeconv.Options(...), not {type(options).__name__}.")
    choice = choose(method, "cuda" if on_gpu else device, "many pictures", problem)
    if on_gpu:
        import cupy

        from edgeconv.runtime.devices.cuda import device_of, on_device

        with on_device(device_of(image)):
            image = cupy.asarray(image)  # another library's array on this GPU, such as a torch.Tensor, is not copied
            session = _session(problem, choice.method, choice.device, options or Options())
            result = session.convolve_on_device(cupy.ascontiguousarray(image))
            return request.finish(result, problem.dtype, cupy, image)
    session = _session(problem, choice.method, choice.device, options or Options())
    return request.finish(session.convolve(image.astype(problem.dtype, copy=False)), problem.dtype, image=image)


def _dtype_of(image: Any) -> np.dtype[Any]:
    """The type of a NumPy array's samples, or of one that shows itself through `__cuda_array_interface__`."""
    typestr = image.dtype.str if isinstance(image, np.ndarray) else image.__cuda_array_interface__["typestr"]
    kind: np.dtype[Any] = np.dtype(typestr)
    return kind


_latest = threading.local()
"""A thread's own last session: plans are not for two threads at once."""


def _session(problem: Problem, method: str, device: DeviceName, options: Options) -> Session:
    """The last session where it fits, so that a run of pictures of one shape is prepared once."""
    key = (
        problem.input_shape,
        problem.dtype,
        problem.weights.shape,
        problem.weights.tobytes(),
        problem.groups,
        problem.combine,
        problem.stride,
        problem.padding,
        problem.border,
        problem.output_mode,
        method,
        get_device(device).current,
        options,
    )
    if getattr(_latest, "key", None) != key:
        _latest.key = _latest.session = None  # let go of the old buffers before new ones are taken
        _latest.session = Session(problem, method, device, options)
        _latest.key = key
    session: Session = _latest.session
    return session
