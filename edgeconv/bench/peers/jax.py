"""JAX's conv_general_dilated, HWC in and out, compiled by XLA with full float32 precision.

JAX has queues of its own, so a run is timed by the host's clock until the result is there, its launch included.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer
from edgeconv.bench.peers.convolutions import TOLERANCE, grouped
from edgeconv.core.choices import DeviceName
from edgeconv.core.output import store
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError

PLATFORMS = {"cpu": "cpu", "cuda": "gpu"}
CUDA_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")


class JAX(Peer):
    """jax.lax on the CPU or a GPU."""

    distributions = ("jax",)
    module = "jax"

    def unavailable_reason(self) -> str | None:
        reason = super().unavailable_reason()
        if reason is None and self.device == "cuda" and not any(map(find_spec, CUDA_PLUGINS)):
            return "this jax has no CUDA plug-in (pip install 'jax[cuda13]')"
        return reason

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        if problem.border != "zero":
            raise UnavailableError("its convolution knows a zero border")
        jax, place = place_of(self.device)
        jnp, lax = jax.numpy, jax.lax
        weights = grouped(problem)
        kernels = jax.device_put(weights.weights, place)
        image = jax.device_put(image_host, place)

        def filtered(image: Any, kernels: Any) -> Any:
            responses = lax.conv_general_dilated(
                image[None].astype(jnp.float32),
                kernels,
                window_strides=(problem.stride,) * 2,
                padding=((problem.padding,) * 2,) * 2,
                dimension_numbers=("NHWC", "OIHW", "NHWC"),
                feature_group_count=weights.groups,
                precision=lax.Precision.HIGHEST,
            )[0]
            if weights.directions > 1:
                apart = responses.reshape(*responses.shape[:2], *weights.split)
                joined = jnp.sqrt((apart * apart).sum(3)) if problem.combine == "magnitude" else apart.max(3)
                responses = joined.reshape(*responses.shape[:2], -1)
            return store(responses, problem.output_mode, problem.output_dtype, jnp)

        compiled = jax.jit(filtered)
        held: list[Any] = [None]

        def run() -> None:
            held[0] = compiled(image, kernels)

        return Ready(
            run=run,
            result=lambda: np.asarray(held[0]),
            problem=problem,
            tolerance=TOLERANCE,
            synchronize=lambda: held[0].block_until_ready(),
        )


def place_of(device: DeviceName) -> tuple[Any, Any]:
    """The module, and its word for `device`."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes most of the GPU's memory
    jax = import_module("jax")
    return jax, jax.devices(PLATFORMS[device])[0]
