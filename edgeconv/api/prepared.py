"""A request made ready for pictures of one shape and type: a method's plan, and arrays on its device.

    host array ── copy_in ──> device array ── method's plan ──> device array ── copy_out ──> host array

Commands filter pictures of files by it; `ConvolutionPlan` (plan.py) takes arrays of any library, by several at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.auto import Choice
from edgeconv.core.chains import ChainProblem
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.core.timing import Stopwatch
from edgeconv.hardware.devices import get_device
from edgeconv.methods import find, prepare
from edgeconv.methods.options import Options

OWN_ARRAYS = ("image", "out")
"""What a `PreparedFilter` allocates when it is first needed."""


def plain(image_hwc: NDArray[Any]) -> NDArray[Any]:
    """The picture as native code needs it, C-contiguous and aligned; copied only where it is not."""
    return np.require(image_hwc, requirements=("C", "A"))


@dataclass(eq=False)
class PreparedFilter:
    """Filters pictures of NumPy or of its device, for one thread at a time; all set-up is done when it is made."""

    request: Request
    problem: Problem | ChainProblem
    """What the request is for such pictures."""
    choice: Choice
    options: Options
    pictures: int = 1
    """Of a batch, which the method takes in one run where it can and nothing comes after it."""

    def __post_init__(self) -> None:
        self.processor = get_device(self.choice.device)
        """The device that computes."""
        self.output_dtype = self.request.output_dtype(self.problem.dtype)
        self.second_pass = self.request.last_passes(self.problem.dtype)
        moved_bytes = self.pictures * (self.problem.input_bytes + self.problem.output_bytes)
        self.call_bytes = moved_bytes + self.options.workspace_limit_bytes
        """What a call needs, workspace and all."""
        pictures = 1 if self.second_pass is not None else self.pictures
        with self.guard():
            self.method_plan = prepare(self.choice.method, self.choice.device, self.problem, self.options, pictures)
            """What the method prepared: its choices, arithmetic, workspace."""
        self.call_bytes = moved_bytes + self.method_plan.workspace_bytes

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Say what memory runs out inside the block, and which package a fault of the method comes from."""
        with find(self.choice.method, self.choice.device).named(), self.processor.guard(self.call_bytes):
            yield

    # --- its memory -------------------------------------------------------------------------------------------------

    @cached_property
    def image(self) -> Any:
        """An array on the device for a picture of the host."""
        return self.processor.empty(self._shape(self.problem.input_shape), self.problem.dtype)

    @cached_property
    def out(self) -> Any:
        """An array on the device for what the method gives, where it crosses the bus or a second pass takes it."""
        return self.processor.empty(self._shape(self.problem.output_shape), self.problem.output_dtype)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """That of the pictures of one run."""
        pictures = self.method_plan.pictures
        return (pictures, *shape) if pictures > 1 else shape

    def allocate_arrays(self) -> None:
        """Allocate now what a run from host to host needs."""
        with self.guard():
            for name in OWN_ARRAYS:
                getattr(self, name)

    def release_arrays(self) -> None:
        """Release its arrays; they are allocated again when needed."""
        for name in OWN_ARRAYS:
            vars(self).pop(name, None)

    @property
    def memory_bytes(self) -> int:
        """Memory that it holds now."""
        held = (vars(self)[name] for name in OWN_ARRAYS if name in vars(self))
        return self.method_plan.workspace_bytes + sum(int(array.nbytes) for array in held)

    # --- its work ---------------------------------------------------------------------------------------------------

    def run(self, image: Any, out: Any = None, watch: Stopwatch | None = None) -> Any:
        """Filter one picture (HWC; NHWC where a run takes a batch) into `out`, or into a new host array; return it.

        Both are arrays of NumPy or of the device, of the problem's shapes and types. What crosses the bus is waited
        for, and with a `watch`, to which phases are added, everything; else what is on the device from the start is
        not.
        """
        device = self.processor
        to_host = device.moves_data and (out is None or isinstance(out, np.ndarray))
        waits, watch = to_host or watch is not None, watch or Stopwatch()
        with self.guard():
            if device.moves_data and isinstance(image, np.ndarray):
                with watch.phase("host_to_device"):
                    device.copy_in(plain(image), self.image)
                image = self.image
            else:
                image = device.array_module.ascontiguousarray(image) if device.moves_data else plain(image)
            if self.second_pass is not None or to_host:
                raw = self.out
            else:
                raw = np.empty(self.problem.output_shape, self.output_dtype) if out is None else out
            with watch.phase("convolve"):
                self.method_plan.run(image, raw)
                if waits:
                    device.synchronize()
                finished = self.finish(raw, image)
            if to_host:
                out = np.empty(finished.shape, finished.dtype) if out is None else out
                with watch.phase("device_to_host"):
                    device.copy_out(finished, out)
            elif out is None:
                out = finished
            elif finished is not out:
                out[...] = finished
            return out

    def finish(self, raw: Any, image: Any) -> Any:
        """What comes after the method (`normalize`, a threshold), on arrays of the device."""
        if self.second_pass is None:  # which is timed
            return raw
        request, arrays = self.request, self.processor.array_module
        return request.mask(request.finish(raw, self.problem.dtype, arrays, image), arrays)

    def raw(self) -> NDArray[Any]:
        """The method's own result in the last run where there is a second pass, as a host array."""
        with self.guard():
            result = np.empty(self.out.shape, self.out.dtype)
            self.processor.copy_out(self.out, result)
            return result
