"""JAX, HWC in and out, compiled by XLA in full float32: its convolution, and shifted multiply-adds under jax.jit.

JAX has queues of its own, so a run is timed by the host's clock until the result is there, its launch included; on a
GPU that is most of the time of a small picture.

Source: the references of jax.lax.conv_general_dilated and jax.jit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, TOLERANCE, Peer, grouped, kept, shifted_sums, work_of
from edgeconv.core.choices import Border
from edgeconv.core.filters import Combine
from edgeconv.core.output import store
from edgeconv.core.problem import Problem

PLATFORMS = {"cpu": "cpu", "cuda": "gpu"}
CUDA_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes most of the GPU's memory


class JAX(Peer):
    """conv_general_dilated."""

    distributions, module = ("jax",), "jax"
    dtypes = (*Peer.dtypes, "float16")
    borders: tuple[Border, ...] = ("zero",)
    combines: tuple[Combine, ...] = ("single", "magnitude", "maximum")

    def unavailable_reason(self) -> str | None:
        reason = super().unavailable_reason()
        if reason is None and self.device == "cuda" and not any(map(find_spec, CUDA_PLUGINS)):
            return "this jax has no CUDA plug-in (pip install 'jax[cuda13]')"
        return reason

    def set_up(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        jax = import_module("jax")
        image, values = jax.device_put(image_host, jax.devices(PLATFORMS[self.device])[0]), self.values(jax, problem)

        def filtered(image: Any) -> Any:
            alike = jax.numpy.broadcast_to(values(image.astype(np.float32)), problem.output_shape)
            return store(alike, problem.output_mode, problem.output_dtype, jax.numpy)

        compiled = jax.jit(filtered)
        differs = "its time holds the launch, by the host's clock" if self.device == "cuda" else None
        run, result = kept(lambda: compiled(image).block_until_ready(), np.asarray)
        return Ready(run, result, problem, tolerance=TOLERANCE, differs=differs, synchronize=lambda: None)

    def values(self, jax: Any, problem: Problem) -> Callable[[Any], Any]:
        """A function from the float32 picture to float32 values of (height, width, out), or that broadcast to it."""
        weights, split = grouped(problem)
        strides, padding = (problem.stride,) * 2, ((HALO, HALO),) * 2
        words = {"dimension_numbers": ("NHWC", "OIHW", "NHWC"), "feature_group_count": problem.groups}
        words |= {"precision": jax.lax.Precision.HIGHEST}

        def convolved(image: Any) -> Any:
            responses = jax.lax.conv_general_dilated(image[None], weights, strides, padding, **words)[0]
            apart = responses.reshape(*responses.shape[:2], *split)
            joined = jax.numpy.sqrt((apart * apart).sum(3)) if problem.combine == "magnitude" else apart.max(3)
            return joined.reshape(*responses.shape[:2], -1)

        return convolved


class JAXShifts(JAX):
    """`base.shifted_sums`, fused."""

    combines = Peer.combines

    def values(self, jax: Any, problem: Problem) -> Callable[[Any], Any]:
        jnp, work = jax.numpy, work_of(problem)
        values = shifted_sums(problem, work, lambda one, other: jnp.sqrt(one * one + other * other))

        def summed(image: Any) -> Any:
            found = values(jnp.pad(image, ((HALO, HALO), (HALO, HALO), (0, 0))))
            return found[0] if work.apart else jnp.stack(found, axis=-1)

        return summed
