"""JAX, HWC in and out, compiled by XLA in full float32: its convolution, and shifted multiply-adds under jax.jit.

JAX has queues of its own, so a run is timed by the host's clock until the result is there, its launch included; on a
GPU that is most of the time of a small picture.

Source: the references of jax.lax.conv_general_dilated and jax.jit.
"""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import TOLERANCE, Peer, grouped, kept, require_zero_border
from edgeconv.bench.peers.shifts import Shifts
from edgeconv.core.output import store
from edgeconv.core.problem import Problem

PAD_MODES = {"zero": "constant", "replicate": "edge", "reflect": "symmetric", "reflect101": "reflect"}
PLATFORMS = {"cpu": "cpu", "cuda": "gpu"}
CUDA_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")


class JAX(Peer):
    """conv_general_dilated."""

    distributions = ("jax",)
    module = "jax"
    environment: ClassVar = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # else it takes most of the GPU's memory

    def unavailable_reason(self) -> str | None:
        reason = super().unavailable_reason()
        if reason is None and self.device == "cuda" and not any(map(find_spec, CUDA_PLUGINS)):
            return "this jax has no CUDA plug-in (pip install 'jax[cuda13]')"
        return reason

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        jax = import_module("jax")
        place = jax.devices(PLATFORMS[self.device])[0]
        image, values = jax.device_put(image_host, place), self.values(jax, place, problem)
        compiled = jax.jit(
            lambda image: store(
                jax.numpy.broadcast_to(values(image.astype(np.float32)), problem.output_shape),
                problem.output_mode,
                problem.output_dtype,
                jax.numpy,
            )
        )
        differs = "its time holds the launch, by the host's clock" if self.device == "cuda" else None
        run, result = kept(lambda: compiled(image).block_until_ready(), np.asarray)
        return Ready(run, result, problem, tolerance=TOLERANCE, differs=differs, synchronize=lambda: None)

    def values(self, jax: Any, place: Any, problem: Problem) -> Any:
        """A function from the float32 picture to float32 values of (height, width, out), or that broadcast to it."""
        require_zero_border(problem)
        jnp, lax = jax.numpy, jax.lax
        weights, split = grouped(problem)
        kernels = jax.device_put(weights, place)

        def convolved(image: Any) -> Any:
            responses = lax.conv_general_dilated(
                image[None],
                kernels,
                window_strides=(problem.stride,) * 2,
                padding=((problem.padding,) * 2,) * 2,
                dimension_numbers=("NHWC", "OIHW", "NHWC"),
                feature_group_count=problem.groups,
                precision=lax.Precision.HIGHEST,
            )[0]
            if problem.directions > 1:
                apart = responses.reshape(*responses.shape[:2], *split)
                joined = jnp.sqrt((apart * apart).sum(3)) if problem.combine == "magnitude" else apart.max(3)
                responses = joined.reshape(*responses.shape[:2], -1)
            return responses

        return convolved


class JAXShifts(JAX):
    """`Shifts`, fused."""

    def values(self, jax: Any, place: Any, problem: Problem) -> Any:
        jnp, shifts = jax.numpy, Shifts(problem)
        around = ((problem.padding,) * 2, (problem.padding,) * 2, (0, 0))

        def shifted(image: Any) -> Any:
            padded = jnp.pad(image, around, mode=PAD_MODES[problem.border])
            joined = [
                jnp.sqrt(found[0] * found[0] + found[1] * found[1])
                if problem.combine == "magnitude"
                else reduce(jnp.maximum, found)
                for found in shifts.responses(padded)
            ]
            return joined[0] if joined[0].ndim == 3 else jnp.stack(joined, axis=-1)

        return shifted
