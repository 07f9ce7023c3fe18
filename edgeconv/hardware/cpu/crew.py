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
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.hardware.cpu import crew_code, jit
from edgeconv.hardware.cpu.crew_code import MACHINES, MAX_CORES, MAX_THREADS, CrewField, JobField
from edgeconv.hardware.cpu.emit import ALONE, WORK
from edgeconv.hardware.pool import run_pieces
from edgeconv.hardware.threads import Limits, current_limits

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
                self._run = _code().function(crew_code.RUN, 2)
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
    _code().function(crew_code.STAY, 2)(address, number)


@cache
def _code() -> jit.Compiled:
    """The compiled crew, which is never freed, as the memory is not."""
    module = str(crew_code.write(platform.machine()))
    code = jit.compile_module(module, jit.processor(), effort=0)  # 15 ms sooner, and what it does is mostly waiting
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    return code
