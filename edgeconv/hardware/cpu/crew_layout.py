"""What generated code and Python agree on: where the words of the crew, of a slot and of a job stand (crew_code.py)."""

from __future__ import annotations

from enum import IntEnum

APART_BYTES = 128
"""Between words that different threads write: two cache lines, as processors fetch neighbouring lines in pairs."""

MOST_CORES = 1024
"""As libc's own masks hold."""
MASK_BYTES = MOST_CORES // 8

SLOTS = 8
"""Jobs at once; a further caller does its job alone."""


class CrewField(IntEnum):
    """Byte offsets in the crew's memory; int64 unless said otherwise."""

    BELL = 0
    """int32. One more for every job."""
    SLEEPERS = APART_BYTES
    """Helpers that sleep, or are about to."""
    HELPERS = 2 * APART_BYTES
    """Helpers that work on a job."""
    CALLERS = 3 * APART_BYTES
    """Callers whose job is in a slot."""
    STOPPED = 4 * APART_BYTES
    """Not 0: helpers leave. This line is written by Python, and seldom."""
    STARTED = 4 * APART_BYTES + 8
    """Helpers that there are."""
    SPIN_NANOSECONDS = 4 * APART_BYTES + 16
    """How long a helper without work stays awake."""
    WAIT_NANOSECONDS = 4 * APART_BYTES + 24
    """How long a caller waits awake for the units that helpers have."""
    CORES = 4 * APART_BYTES + 32
    """Cores that helpers may run on; 0 where they are not bound to any, not even while they sleep."""
    CALLER_CORE = 5 * APART_BYTES
    """Where the last caller ran."""
    LAST_MISSED = 5 * APART_BYTES + 8
    """When the last small job that found helpers asleep ended, in nanoseconds."""
    FREE_MASK = 6 * APART_BYTES
    """`MASK_BYTES`: a bit for every core that helpers may run on."""
    CORE_AT = 6 * APART_BYTES + MASK_BYTES
    """int64[MOST_CORES]: their numbers."""
    PLACE_OF = CORE_AT + 8 * MOST_CORES
    """int64[MOST_CORES]: where a core stands in CORE_AT."""
    FIRST_SLOT = PLACE_OF + 8 * MOST_CORES


class SlotField(IntEnum):
    """Byte offsets in a slot; int64 unless said otherwise."""

    LEFT = 0
    SEATS = APART_BYTES
    DONE = 2 * APART_BYTES
    """int32. Units reported, and `ASLEEP` where the caller sleeps."""
    OWNED = 3 * APART_BYTES
    """1 while a caller has the slot."""
    LIMIT = 3 * APART_BYTES + 8
    """Threads of all jobs that may work at once, in this job's view."""
    SLEEPERS = 3 * APART_BYTES + 16
    """Sleepers that one thread wakes for this job; each of them wakes as many. 0 where only one in a series of jobs is
    worth waking a single one."""
    FUNCTION = 3 * APART_BYTES + 24
    ARGUMENTS = 3 * APART_BYTES + 32
    UNITS = 3 * APART_BYTES + 40
    END = 4 * APART_BYTES


class JobField(IntEnum):
    """Places in the int64 that describe a job."""

    FUNCTION = 0
    """`void work(int64 *arguments, int64 worker, int64 first_unit, int64 stop_unit)`."""
    ARGUMENTS = 1
    UNITS = 2
    """1 to 2³¹ − 1, as DONE counts."""
    THREADS = 3
    """Workers at most, the caller among them."""
    LIMIT = 4
    """See SlotField.LIMIT."""
    SLEEPERS = 5
    """See SlotField.SLEEPERS."""


CREW_BYTES = int(CrewField.FIRST_SLOT) + SLOTS * int(SlotField.END)

HALF_BITS = 32
LOW_HALF = 2**HALF_BITS - 1
NO_SEAT = 2**31
"""Seats are handed out by counting up to here from `NO_SEAT - (threads - 1)`, so that too many takers do no harm."""
ASLEEP = -(2**31)
"""The top bit of DONE."""
