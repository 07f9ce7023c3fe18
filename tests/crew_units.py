"""Units of generated code for tests of the crew: they count, wait for a sign, and note who was at work with whom."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from edgeconv.hardware.cpu import crew, jit
from edgeconv.hardware.cpu.emit import Unit


class Argument(IntEnum):
    UNITS = 0
    BLOCK = 1


class Field(IntEnum):
    """Places in the block."""

    SIGN = 0
    """Units wait while it is 0."""
    BEGUN = 1
    WORKERS = 2
    """A bit for each worker that did a unit."""
    TALLY = 3


def units() -> str:
    e = Unit(ir.Module(name="units"))
    first, stop = e.more
    block = e.at(Argument.BLOCK, "int64")
    with e.count(first, stop) as unit:
        block.at(Field.BEGUN).swap("add", 1)
        with e.repeat() as leave:
            leave(block.at(Field.SIGN).load_shared().differs(0))
        block.at(Field.TALLY).at(unit).swap("add", 1)
        block.at(Field.WORKERS).swap("or", e.int64(1) << e.worker)
    return e.text_with_alone(Argument.UNITS)


@cache
def code() -> jit.Compiled:
    return jit.compile_module(units(), jit.processor())


class Counted:
    """Some units that count themselves."""

    def __init__(self, units: int, **asked: Any) -> None:
        self.block = np.zeros(Field.TALLY + units, np.int64)
        self.block[Field.SIGN] = 1
        arguments = {Argument.UNITS: units, Argument.BLOCK: self.block}
        self.work = crew.NativeWork(code(), arguments, units, **asked)

    @property
    def tally(self) -> list[int]:
        """How often each unit was done."""
        return [int(count) for count in self.block[Field.TALLY :]]

    @property
    def workers(self) -> set[int]:
        """Those that did a unit."""
        return {number for number in range(63) if int(self.block[Field.WORKERS]) >> number & 1}
