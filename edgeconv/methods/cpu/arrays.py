"""The check at the door of every CPU plan: arrays whose address is handed to native code must be what was promised."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeconv.core.problem import Problem
from edgeconv.errors import UsageError


def check_arrays(image: Any, out: Any, problem: Problem) -> None:
    """Raise UsageError unless both are C-contiguous HWC NumPy arrays of the problem's shapes and types."""
    _check("picture", image, problem.input_shape, problem.dtype)
    _check("output", out, problem.output_shape, problem.output_dtype)
    if not out.flags.writeable:
        raise UsageError("The output array is read-only: pass one that can be written.")


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Where the samples lie. (`array.ctypes.data` is the same and takes a microsecond longer.)"""
    address: int = array.__array_interface__["data"][0]
    return address


def _check(what: str, array: Any, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> None:
    if not isinstance(array, np.ndarray):
        raise UsageError(f"The {what} must be a NumPy array for a CPU method, not {type(array).__name__}.")
    if array.shape != shape or array.dtype != dtype:
        raise UsageError(f"The {what} is {array.shape} {array.dtype}: the plan was made for {shape} {dtype}.")
    if not array.flags.c_contiguous or not array.flags.aligned:
        state = "C-contiguous" if array.flags.aligned else "aligned to its type"
        raise UsageError(f"The {what} is not {state}: pass numpy.require(array, requirements=['C', 'A']).")
