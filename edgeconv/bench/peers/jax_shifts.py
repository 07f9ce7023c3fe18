"""Shifted multiply-adds in JAX, fused by XLA under jax.jit. HWC in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.convolutions import TOLERANCE
from edgeconv.bench.peers.jax import JAX, place_of
from edgeconv.bench.peers.shifts import responses, shifts_of
from edgeconv.core.choices import Border
from edgeconv.core.output import store
from edgeconv.core.problem import Problem

PAD_MODES: dict[Border, str] = {
    "zero": "constant",
    "replicate": "edge",
    "reflect": "symmetric",
    "reflect101": "reflect",
}


class JAXShifts(JAX):
    """Weights are constants of the compiled code."""

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        jax, place = place_of(self.device)
        jnp = jax.numpy
        shifts = shifts_of(problem)
        placed = shifts.placed(jnp.asarray)
        image = jax.device_put(image_host, place)
        around = ((problem.padding,) * 2, (problem.padding,) * 2, (0, 0))

        def filtered(image: Any) -> Any:
            padded = jnp.pad(image.astype(jnp.float32), around, mode=PAD_MODES[problem.border])
            found = responses(shifts.sums_channels, placed, padded)
            if problem.combine == "magnitude":
                joined = jnp.sqrt(found[0] * found[0] + found[1] * found[1])
            else:
                joined = jnp.stack(found).max(axis=0) if len(found) > 1 else found[0]
            shape = (problem.output_height, problem.output_width, problem.output_channels)
            joined = jnp.broadcast_to(joined, shape)
            return store(joined, problem.output_mode, problem.output_dtype, jnp)

        compiled = jax.jit(filtered)
        held: list[Any] = [None]

        def run() -> None:
            held[0] = compiled(image)

        return Ready(
            run=run,
            result=lambda: np.asarray(held[0]),
            problem=problem,
            tolerance=TOLERANCE,
            synchronize=lambda: held[0].block_until_ready(),
        )
