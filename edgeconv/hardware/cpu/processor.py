"""What generated code is made for, its sample types and its names: all that is known without a compiler."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

Scalar = Literal["uint8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64"]
"""The sample types that generated code works in, by NumPy's names."""
SCALAR_BYTES: dict[Scalar, int] = {scalar: np.dtype(scalar).itemsize for scalar in get_args(Scalar)}
WORK, ALONE = "work", "alone"
"""The functions of a module of units of work (emit.Unit, crew.py)."""
MOST_EFFORT = 3
"""Of LLVM's -O0 to -O3."""
FACTS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
"""Lines of /proc/cpuinfo that tell one kind of processor from another."""
FACTS_BYTES = 2**14
"""The lines about the first processor lie within these."""


@dataclass(frozen=True)
class Processor:
    """What code is made for."""

    triple: str
    """LLVM's name of architecture and system."""
    name: str
    features: str
    """LLVM's list of what it can beyond its name, `+this,-that`."""
    vector_bytes: int
    """Length of the registers that arithmetic is written for."""
    has_half: bool
    """Converts float16 by itself."""

    @property
    def is_x86(self) -> bool:
        """Whether it has the instructions of x86.py."""
        return self.triple.startswith(("x86_64", "amd64"))


def processor_facts() -> str:
    """What Linux says about the first processor; empty elsewhere, where only LLVM tells."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            first = file.read(FACTS_BYTES).partition(b"\n\n")[0].decode(errors="replace")
    except OSError:
        return ""
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in FACTS]
    return "\n".join((platform.machine(), *lines)) if any(line.startswith("flags") for line in lines) else ""
