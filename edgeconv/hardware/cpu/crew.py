"""The crew: threads that wait inside generated code for units of work, one crew per process.

A plan of generated code that is worth more than one thread is handed to them through memory, without the interpreter
(crew_code.py says how). The threads are Python's, so that they start on every system that Python knows, but they call
generated code once and stay there with the interpreter lock released. They are started when a plan first wants them,
stay awake for a while after their last unit, and sleep in the system after that.

They sleep by a system call of Linux. Elsewhere work goes to the threads of pool.py, and `unavailable_reason` says why.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cpu.processor import ALONE, SCALAR_BYTES, WORK
from edgeconv.hardware.pool import run_pieces
from edgeconv.hardware.threads import Limits, current_limits

RUN, STAY = "run", "stay"

MACHINES: dict[str, tuple[int, str | None]] = {
    "x86_64": (202, "llvm.x86.sse2.pause"),
    "aarch64": (98, "llvm.aarch64.hint"),
    "riscv64": (98, None),
}
"""The futex's system call on 64-bit Linux, and the intrinsic that tells a processor of a spinning loop."""

APART_BYTES = 128
"""Between words that different threads write: two cache lines, as processors fetch neighbouring lines in pairs."""
INT64_BYTES = SCALAR_BYTES["int64"]
MAX_THREADS = 1024
MAX_CORES = 1024
"""As libc's own masks hold."""
MASK_WORDS = MAX_CORES // 64


class JobField(IntEnum):
    """Places in the int64 that describe a job."""

    FUNCTION = 0
    """`void work(int64 *arguments, int64 worker, int64 first_unit, int64 stop_unit)`."""
    ARGUMENTS = 1
    UNITS = 2
    """1 to 2³¹ − 1, as DONE counts."""
    THREADS = 3
    """Workers at most, the caller among them."""
    SLEEPERS = 4
    """Sleepers that one thread wakes, each of which wakes as many. 0: only one in a series of jobs is worth it."""


class CrewField(IntEnum):
    """Byte offsets in the crew's memory; int64 unless said otherwise."""

    OWNED = 0
    """1 while a caller has the crew."""
    LEFT = APART_BYTES
    """The units that are not yet claimed, and in the upper half the job's threads."""
    DONE = 2 * APART_BYTES
    """int32. Units reported, and `CALLER_ASLEEP` where the caller sleeps."""
    JOB = 3 * APART_BYTES
    """Where the words of the job lie (JobField)."""
    CALLER_CORE = JOB + INT64_BYTES
    """Where the last caller ran."""
    LAST_MISSED = 4 * APART_BYTES
    """When the last job that found helpers asleep ended, in nanoseconds."""
    FREE_MASK = 5 * APART_BYTES
    """`MASK_WORDS`: a bit for every core that helpers may run on; none where the system does not tell."""
    ASLEEP = 7 * APART_BYTES
    """int32[MAX_THREADS]: 1 for each helper that sleeps, or is about to."""
    END = ASLEEP + SCALAR_BYTES["int32"] * MAX_THREADS


MAX_WOKEN = 4
"""Sleepers that one thread wakes, each of which wakes as many: a wake-up takes the waker some microseconds, and two
rounds of four wake sixteen threads soonest."""
OF_THE_THREAD_ITSELF = {signal.Signals[f"SIG{name}"] for name in ("SEGV", "BUS", "FPE", "ILL", "TRAP", "ABRT", "SYS")}
"""Signals that come from what a thread itself does, and are not blocked in helpers."""


@cache
def unavailable_reason() -> str | None:
    """Why plans take the threads of pool.py here, as a clause; None where there is a crew."""
    if sys.platform != "linux":
        return f"threads of generated code sleep by a system call of Linux, and this is {sys.platform}"
    if platform.machine() not in MACHINES:
        return f"threads of generated code are not adapted to {platform.machine()}"
    return None


class NativeWork:
    """Generated code over a block of named int64, cut into units; `run` does all of them, again and again.

    The module has `work` and `alone` (emit.Unit). No two threads work under one number of a worker at the same time,
    and 0 is the caller.
    """

    def __init__(
        self,
        code: jit.Compiled,
        arguments: Mapping[Any, Any],
        units: int,
        *,
        asked: int | None,
        max_threads: int,
        sleepers: int = MAX_WOKEN,
    ) -> None:
        """By `asked` threads, or else by as many as the process may use, and up to `max_threads`.

        `arguments` are integers and arrays by their places, without a gap; an array gives its address, and is held.
        `sleepers` is how many helpers the work is worth waking.
        """
        self._code, self.arguments = code, arguments  # which live as long as this
        self._asked, self._max_threads = asked, min(max_threads, MAX_THREADS)
        given = (arguments[place] for place in sorted(arguments))
        block = np.array([each.ctypes.data if isinstance(each, np.ndarray) else each for each in given], np.int64)
        address = block.ctypes.data
        self.words = memoryview(block.data)
        """The arguments: three times as fast to write as the array."""
        job = (code.address(WORK), address, units, 0, min(sleepers, MAX_WOKEN))
        self._job = np.array(job, np.int64)  # as JobField lists them
        self.job_address = self._job.ctypes.data
        self.adapt(current_limits())
        self.run: Callable[[], None]
        """Do all units, by this thread and by others that are free."""
        if max_threads == 1:
            self.run = partial(code.function(ALONE, 1), address)
        elif unavailable_reason() is None:
            CREW.start(self.threads - 1, self.limits)
            self.run = partial(CREW.run, self)
        else:
            work = code.function(WORK, 4)

            def unit(number: int, worker: int) -> None:
                work(address, worker, number, number + 1)

            self.run = lambda: run_pieces(unit, units, self.threads)

    def adapt(self, limits: Limits) -> None:
        """Keep to what the process may use now."""
        self.limits = limits
        self.threads = min(self._max_threads, self._asked or limits.threads)
        self._job[JobField.THREADS] = self.threads


class Crew:
    """Helpers, and the memory in which they are given work. `run` may be called by any number of threads at once."""

    def __init__(self) -> None:
        self.forget_threads()

    def forget_threads(self) -> None:
        """Start anew; a forked child needs it, in which only the forking thread lives on."""
        self._lock = threading.Lock()
        self._helpers: list[threading.Thread] = []
        self._words: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._address = 0
        self._closed = False
        self._limits: Limits | None = None

    def run(self, work: NativeWork) -> None:
        """Do all units of the work, by this thread and by helpers that are free."""
        limits = current_limits()
        if limits is not work.limits:
            work.adapt(limits)
        if limits is not self._limits or len(self._helpers) < work.threads - 1:
            self.start(work.threads - 1, limits)
        self._run(self._address, work.job_address)

    def start(self, helpers: int, limits: Limits) -> None:
        """Have at least this many helpers, if the system gives them, on the cores that the process may use."""
        with self._lock:
            if not self._address:
                # It is never freed, as helpers may outlive the interpreter's last steps.
                self._words = jit.aligned_zeros(CrewField.END)
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._words))
                self._run = _code().function(RUN, 2)
                self._address = self._words.ctypes.data
            if limits is not self._limits:  # helpers that run on learn of it when they sleep next
                self._limits = limits
                mask = np.zeros(MAX_CORES, np.uint8)
                if limits.cpus is not None and max(limits.cpus) < MAX_CORES:
                    mask[list(limits.cpus)] = 1
                packed = np.packbits(mask, bitorder="little")
                self._words[CrewField.FREE_MASK :][: packed.size] = packed
            while len(self._helpers) < helpers and not self._closed:
                number = len(self._helpers) + 1
                name = f"edgeconv-crew-{number}"
                helper = threading.Thread(target=_stay, args=(self._address, number), name=name, daemon=True)
                try:
                    helper.start()
                except RuntimeError:  # a limit of the system, or the interpreter ends: fewer will do
                    self._closed = True
                else:
                    self._helpers.append(helper)


CREW = Crew()
os.register_at_fork(after_in_child=CREW.forget_threads)


def _stay(address: int, number: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - OF_THE_THREAD_ITSELF)
    _code().function(STAY, 2)(address, number)


@cache
def _code() -> jit.Compiled:
    """The compiled crew, which is never freed, as the memory is not."""
    writer = "edgeconv.hardware.cpu.crew_code:text"
    code = jit.compiled(writer, platform.machine(), jit.processor(), effort=0)  # sooner, and it mostly waits
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    return code
