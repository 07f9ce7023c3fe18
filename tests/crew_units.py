"""Units of generated code for tests of the crew: they count, wait for a sign, and note who was at work with whom."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np

from edgeconv.hardware.cpu import crew, jit

UNITS = """
define void @count(ptr %block, i64 %worker, i64 %first, i64 %stop) {
entry:
  br label %next
next:
  %unit = phi i64 [ %first, %entry ], [ %after, %over ]
  %go = icmp slt i64 %unit, %stop
  br i1 %go, label %begin, label %end
begin:
  %now_at = getelementptr i64, ptr %block, i64 0
  %most_at = getelementptr i64, ptr %block, i64 1
  %sign_at = getelementptr i64, ptr %block, i64 2
  %begun_at = getelementptr i64, ptr %block, i64 3
  %here = atomicrmw add ptr %now_at, i64 1 seq_cst
  %together = add i64 %here, 1
  %most = atomicrmw max ptr %most_at, i64 %together seq_cst
  %begun = atomicrmw add ptr %begun_at, i64 1 seq_cst
  br label %wait
wait:
  %sign = load atomic i64, ptr %sign_at seq_cst, align 8
  %wanted = icmp eq i64 %sign, 0
  br i1 %wanted, label %wait, label %work
work:
  %tally = getelementptr i64, ptr %block, i64 8
  %mine = getelementptr i64, ptr %tally, i64 %unit
  %old = atomicrmw add ptr %mine, i64 1 seq_cst
  %workers_at = getelementptr i64, ptr %block, i64 4
  %bit = shl i64 1, %worker
  %others = atomicrmw or ptr %workers_at, i64 %bit seq_cst
  br label %over
over:
  %left = atomicrmw sub ptr %now_at, i64 1 seq_cst
  %after = add i64 %unit, 1
  br label %next
end:
  ret void
}
"""


class Field(IntEnum):
    NOW = 0
    MOST = 1
    """Most units that were under way together."""
    SIGN = 2
    """Units wait while it is 0."""
    BEGUN = 3
    WORKERS = 4
    """A bit for each worker that did a unit."""
    TALLY = 8


@cache
def code() -> jit.Compiled:
    return jit.compile_module(UNITS, jit.processor())


class Counted:
    """A job of so many units that count themselves."""

    def __init__(self, units: int, **asked: Any) -> None:
        self.block = np.zeros(Field.TALLY + units, np.int64)
        self.block[Field.SIGN] = 1
        self.job = crew.CrewJob(code(), "count", self.block.ctypes.data, units, **asked)

    @property
    def tally(self) -> list[int]:
        """How often each unit was done."""
        return [int(count) for count in self.block[Field.TALLY :]]

    @property
    def workers(self) -> set[int]:
        """Those that did a unit."""
        return {number for number in range(63) if int(self.block[Field.WORKERS]) >> number & 1}
