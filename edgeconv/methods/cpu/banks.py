"""The tables of a bank: the weights of every pass, and where its planes and its outputs begin.

weights    (groups · passes, directions, taps, outputs of a pass), in the type of the sums
passes     (groups · passes, fields), int64: see layout.PassFields
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core import forms
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.cpu.emit import SCALAR_BYTES
from edgeconv.methods.cpu.layout import PassFields, RowLayout
from edgeconv.methods.cpu.lowering import Lowering


def tables(
    problem: Problem, lowering: Lowering, layout: RowLayout
) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]]]:
    """(passes, weights), both empty where there is no bank."""
    shape, bank = lowering.bank, layout.bank
    sums = np.dtype(f"f{SCALAR_BYTES[lowering.sum]}")
    if shape is None or bank is None:
        return np.zeros((0, len(PassFields)), np.int64), np.zeros(0, sums)
    planes = len(lowering.planes) // shape.groups
    weighted = forms.weighted_channel_of(problem) if lowering.shares else None
    of_planes = problem.weights[:, :, :planes] if weighted is None else weighted.kernels
    kernels = of_planes.astype(sums)  # a collapsed set has one plane, and equal kernels
    taps = kernels.reshape(shape.directions, shape.groups, shape.outputs, -1)
    fields, weights = [], []
    for group in range(shape.groups):
        for start in bank.starts:
            row = [0] * len(PassFields)
            row[PassFields.PLANES_OFFSET_BYTES] = group * planes * _plane_bytes(lowering, layout)
            row[PassFields.OUT_START] = group * shape.outputs + start
            fields.append(row)
            weights.append(taps[:, group, start : start + bank.outputs].swapaxes(1, 2))
    return np.array(fields, np.int64), np.ascontiguousarray(weights, sums)


def _plane_bytes(lowering: Lowering, layout: RowLayout) -> int:
    """From one plane to the next: in the staged rows, or in the columns."""
    if layout.columns:
        return KERNEL_SIZE * KERNEL_SIZE * layout.columns_pitch_bytes
    return lowering.phases * layout.pitch * SCALAR_BYTES[lowering.staged]
