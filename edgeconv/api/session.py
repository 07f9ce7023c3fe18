"""One problem, one method, one device, set up once and run many times.

A session owns the plan and the arrays of host and device, so a second picture of the same shape needs no allocation,
compilation or handle.

    host array ── copy_in ──> device array ── plan.run ──> device array ── copy_out ──> host array
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import DeviceName
from edgeconv.core.problem import Problem
from edgeconv.core.request import SecondPass
from edgeconv.core.timing import Budget, Series, Stopwatch, collect
from edgeconv.hardware.device import Roof
from edgeconv.hardware.devices import get_device
from edgeconv.methods import find, prepare
from edgeconv.methods.options import Options


def plain(image_hwc: NDArray[Any]) -> NDArray[Any]:
    """The picture as native code needs it, C-contiguous and aligned; copied only where it is not."""
    return np.require(image_hwc, requirements=("C", "A"))


class Session:
    """A prepared convolution. Not thread-safe.

    With a second pass (`normalize`) its result is the finished output, and its times cover both.
    """

    def __init__(
        self,
        problem: Problem | ChainProblem,
        method: str,
        device: DeviceName,
        options: Options,
        second_pass: SecondPass | None = None,
        pictures: int = 1,
    ) -> None:
        """`pictures` above 1: a batch, which the session takes in one run where the method has a plan for that."""
        self.problem, self.method = problem, method
        self._second_pass = second_pass
        self.device = get_device(device)
        self._staging: tuple[NDArray[Any], NDArray[Any]] | None = None
        arrays_bytes = pictures * (problem.input_bytes + problem.output_bytes)
        with self.device.guard(arrays_bytes + options.workspace_limit_bytes):
            several = pictures if not second_pass else 1
            self.plan = prepare(method, device, problem, options, several)
        self.pictures = self.plan.pictures
        """How many pictures one run takes."""
        batch = (self.pictures,) if self.pictures > 1 else ()
        self.input_shape: tuple[int, ...] = (*batch, *problem.input_shape)
        self.output_shape: tuple[int, ...] = (*batch, *problem.output_shape)
        self.needed_bytes = self.pictures * (problem.input_bytes + problem.output_bytes) + self.plan.workspace_bytes
        self._image: Any = None
        self._out: Any = None

    @contextmanager
    def _guard(self) -> Iterator[None]:
        with find(self.method, self.device.name).named(), self.device.guard(self.needed_bytes):
            yield

    def take_arrays(self) -> tuple[Any, Any]:
        """The session's own image (None on the CPU) and out on the device; allocated when first asked for."""
        with self._guard():
            if self._image is None and self.device.moves_data:
                self._image = self.device.empty(self.input_shape, self.problem.dtype)
            return self._image, self._take_out()

    def _take_out(self) -> Any:
        if self._out is None:
            self._out = self.device.empty(self.output_shape, self.problem.output_dtype)
        return self._out

    def release_arrays(self) -> None:
        """Release the session's own arrays; they are allocated again when needed."""
        self._image = self._out = self._staging = None

    def convolve(
        self, image_hwc: NDArray[Any], watch: Stopwatch | None = None, result: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Filter a picture into `result`, or into a new host array. Phases are added to `watch`.

        The picture is a host array, or one of the device's own.
        """
        watch = watch or Stopwatch()
        with self._guard():
            if not self.device.moves_data:
                image_hwc = plain(image_hwc)
                raw = self._take_raw(result)
                with watch.phase("convolve"):
                    self.plan.run(image_hwc, raw)
                    filtered: NDArray[Any] = self._finish(raw, image_hwc)
                return filtered
            out = self.convolve_and_leave(image_hwc, watch)
            with watch.phase("convolve"):
                finished = self._finish(out, self._image)
            if result is None:
                result = np.empty(finished.shape, finished.dtype)
            with watch.phase("device_to_host"):
                self.device.copy_out(finished, result)
            return result

    def _take_raw(self, result: NDArray[Any] | None) -> Any:
        """Where a CPU method writes: the caller's array, a new one, or before a second pass the session's own."""
        if self._second_pass is not None:
            return self._take_out()
        return self.new_result() if result is None else result

    def _finish(self, raw: Any, image: Any) -> Any:
        """The second pass where there is one, on arrays of the device."""
        return raw if self._second_pass is None else self._second_pass(raw, image, self.device.array_module)

    def raw(self) -> NDArray[Any]:
        """The method's own result in the last run of a session with a second pass, as a host array."""
        with self._guard():
            result = self.new_result()
            self.device.copy_out(self._take_out(), result)
            return result

    def convolve_and_leave(self, image_hwc: Any, watch: Stopwatch) -> Any:
        """Filter a picture of the host or the device into the session's own array on the device, and wait for it."""
        with self._guard():
            image, out = image_hwc, self._take_out()
            if isinstance(image_hwc, np.ndarray):
                image, _ = self.take_arrays()
                with watch.phase("host_to_device"):
                    self.device.copy_in(plain(image_hwc), image)
            with watch.phase("convolve"):
                self.plan.run(image, out)
                self.device.synchronize()
            return out

    def new_result(self) -> NDArray[Any]:
        """A new host array for a result."""
        return np.empty(self.output_shape, self.problem.output_dtype)

    def convolve_into(self, image_hwc: Any, out: Any) -> None:
        """Filter a picture that is already on the device into an array there, without waiting for it.

        What is not C-contiguous is copied once.
        """
        xp = self.device.array_module
        with self._guard():
            image_hwc = xp.ascontiguousarray(image_hwc)
            if self._second_pass is None:
                self.plan.run(image_hwc, out)
                return
            raw = self._take_out()
            self.plan.run(image_hwc, raw)
            out[...] = self._finish(raw, image_hwc)

    @property
    def held_bytes(self) -> int:
        """Memory that the session holds now: the plan's workspace, and its own arrays where it has taken them."""
        return self.plan.workspace_bytes + sum(int(own.nbytes) for own in (self._image, self._out) if own is not None)

    def time_kernel(self, image_hwc: NDArray[Any], budget: Budget) -> Series:
        """Sample the plan, and its second pass where there is one: device arrays in, device arrays out."""
        with self._guard():
            image, out = self.take_arrays()
            if self.device.moves_data:
                self.device.copy_in(image_hwc, image)
            else:
                image = plain(image_hwc)

            def once() -> None:
                self.plan.run(image, out)
                self._finish(out, image)

            return collect(lambda: self.device.time_once(once), budget)

    def time_end_to_end(self, image_hwc: NDArray[Any], budget: Budget) -> Series:
        """Sample host array in, host array out, with page-locked host arrays on a GPU."""
        with self._guard():
            if not self.device.moves_data:
                return self.time_kernel(image_hwc, budget)
            image, out = self.take_arrays()
            if self._staging is None:
                finished = self.problem.output_dtype if self._second_pass is None else self.problem.dtype
                self._staging = (
                    self.device.host_empty(self.input_shape, self.problem.dtype),
                    self.device.host_empty(self.output_shape, finished),
                )
            staged_image, staged_out = self._staging
            np.copyto(staged_image, image_hwc)

            def once() -> float:
                started = time.perf_counter()
                self.device.copy_in(staged_image, image)
                self.plan.run(image, out)
                self.device.copy_out(self._finish(out, image), staged_out)
                return time.perf_counter() - started

            return collect(once, budget)

    def measure_roof(self) -> Roof:
        """Measure the machine's copy bandwidth and FMA rate now."""
        with self._guard():
            return self.device.roof()
