"""JAX, HWC in and out, compiled by XLA in full float32: its convolution, and shifted multiply-adds under jax.jit.

JAX has queues of its own, so a run is timed by the host's clock until the result is there, its launch included; on a
GPU that is most of the time of a small picture.

Source: the references of jax.lax.conv_general_dilated and jax.jit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from edgeconv.bench.candidates import Bench, Ready
from edgeconv.bench.peers.base import DTYPES, HALO, TOLERANCE, Library, grouped, kept, shifted_sums, work_of
from edgeconv.core.choices import DeviceName
from edgeconv.core.output import store
from edgeconv.core.problem import Problem

PLATFORMS = {"cpu": "cpu", "cuda": "gpu"}
CUDA_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes most of the GPU's memory


def filtered(values_of: Callable[..., Any], problem: Problem, bench: Bench) -> Ready:
    """A jitted function from the picture to stored values, by what `values_of` gives of the float32 picture."""
    jax, device = import_module("jax"), bench.device.name
    image, values = jax.device_put(bench.image_host, jax.devices(PLATFORMS[device])[0]), values_of(jax, problem)

    def stored(image: Any) -> Any:
        alike = jax.numpy.broadcast_to(values(image.astype(np.float32)), problem.output_shape)
        return store(alike, problem.output_mode, problem.output_dtype, jax.numpy)

    compiled = jax.jit(stored)
    differs = "its time holds the launch, by the host's clock" if device == "cuda" else None
    run, result = kept(lambda: compiled(image).block_until_ready(), np.asarray)
    return Ready(run, result, problem, tolerance=TOLERANCE, differs=differs, synchronize=lambda: None)


def convolved(jax: Any, problem: Problem) -> Callable[[Any], Any]:
    """conv_general_dilated: from the float32 picture to values of (height, width, out), or that broadcast to it."""
    weights, split = grouped(problem)
    strides, padding = (problem.stride,) * 2, ((HALO, HALO),) * 2
    words = {"dimension_numbers": ("NHWC", "OIHW", "NHWC"), "feature_group_count": problem.groups}
    words |= {"precision": jax.lax.Precision.HIGHEST}

    def values_of(image: Any) -> Any:
        responses = jax.lax.conv_general_dilated(image[None], weights, strides, padding, **words)[0]
        apart = responses.reshape(*responses.shape[:2], *split)
        joined = jax.numpy.sqrt((apart * apart).sum(3)) if problem.combine == "magnitude" else apart.max(3)
        return joined.reshape(*responses.shape[:2], -1)

    return values_of


def summed(jax: Any, problem: Problem) -> Callable[[Any], Any]:
    """`base.shifted_sums`, fused."""
    jnp, work = jax.numpy, work_of(problem)
    values = shifted_sums(problem, work, lambda one, other: jnp.sqrt(one * one + other * other))

    def values_of(image: Any) -> Any:
        found = values(jnp.pad(image, ((HALO, HALO), (HALO, HALO), (0, 0))))
        return found[0] if work.apart else jnp.stack(found, axis=-1)

    return values_of


def _missing(device: DeviceName) -> str | None:
    has_cuda = device == "cpu" or any(map(find_spec, CUDA_PLUGINS))
    return None if has_cuda else "this jax has no CUDA plug-in (pip install 'jax[cuda13]')"


SHIFTS = Library(
    partial(filtered, summed), "jax", ("jax",), dtypes=(*DTYPES, "float16"), borders=("zero",), missing=_missing
)
CONVOLUTION = replace(SHIFTS, set_up=partial(filtered, convolved), combines=("single", "magnitude", "maximum"))
