"""The generated code of the crew: how a caller hands units of work to threads that wait inside this code.

Two functions over one block of memory, the crew, whose words `CrewField` lists:

    run(crew, job)       a caller publishes its job, takes units of it itself, and waits until all are done; while the
                         crew has another caller's job it does units alone
    stay(crew, n)        helper number n, from 1 on: takes units, spins for a while when there are none, sleeps, and
                         never comes back: it ends with the process

Units are claimed one by one, by a compare-and-swap of LEFT. What the job is stands in the caller's memory and is read
only after a claim: until the claimed unit is reported as done the caller cannot return, so nothing there changes. A
caller therefore waits for units, never for threads: a helper that was about to claim finds nothing, or a unit of the
next job. A helper's number is that of its worker, and with it the scratch memory.

Sleeping is the futex of Linux, on a word of each helper and on DONE (a caller). A sleeper is announced before it looks
for the last time whether it should sleep, and whoever has work for it looks for sleepers after publishing that, so no
wake-up is lost.

Systems like to start a thread on the core of the thread that wakes it, above all in virtual machines, where an idle
core looks taken: there it waits until the caller's time is up. A helper therefore sleeps bound to all cores but the
last caller's, and is let go again when it has woken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from edgeconv.hardware.cpu.crew import (
    INT64_BYTES,
    MACHINES,
    MASK_WORDS,
    MAX_CORES,
    RUN,
    STAY,
    CrewField,
    JobField,
)
from edgeconv.hardware.cpu.emit import I32, I64, POINTER, Array, Emitter, Value, Variable
from edgeconv.hardware.cpu.processor import Scalar

FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE = 128, 129
CLOCK_MONOTONIC = 1
NANOSECONDS = 10**9
SPIN_NANOSECONDS = 300_000
"""A helper without work stays awake as long as it takes to wake 16 threads: who waits so long spends at most twice the
best (docs/cpu-engine.md)."""
WAIT_NANOSECONDS = 200_000
"""A caller waits awake for units that are being computed; beyond this a helper has most likely lost its core."""
POLLS_PER_LOOK = 32
"""Looks at a word between two looks at the clock; a power of two."""

HALF_BITS = 32
CALLER_ASLEEP = -(2**31)
"""The top bit of DONE."""


def write(machine: str) -> ir.Module:
    """The module with both functions, for one of `MACHINES`."""
    module = ir.Module(name="crew")
    _Caller(module, RUN, POINTER, machine).write()
    _Helper(module, STAY, I64, machine).write()
    return module


def text(machine: str) -> str:
    """Its LLVM IR."""
    return str(write(machine))


class Callee:
    """An address as something to be called: llvmlite asks for the type of the function."""

    function_type, calling_convention = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64, I64]), ""

    def __init__(self, address: Any) -> None:
        self.type, self.address = address.type, address

    def get_reference(self) -> str:
        """How IR names it."""
        name: str = self.address.get_reference()
        return name


class _CrewEmitter(Emitter):
    """What the functions share: the words of the crew, the system calls, and taking units."""

    def __init__(self, module: ir.Module, name: str, argument: ir.Type, machine: str) -> None:
        super().__init__(module, name, [POINTER, argument])
        self.futex_number, self.pause_name = MACHINES[machine]
        crew, self.argument = self.function.args
        self.crew = Array(self, crew, "uint8")

    def word(self, field: int | Value, scalar: Scalar = "int64") -> Array:
        """A word of the crew."""
        return self.crew.at(field).of(scalar)

    def read(self, field: int | Value, scalar: Scalar = "int64") -> Value:
        """A word that other threads write; what they wrote before it is seen after it."""
        return self.word(field, scalar).load_shared()

    def replace(self, field: int, old: Value, new: Value) -> Value:
        """Put `new` in the place of `old`; whether `old` stood there."""
        done = self.block.cmpxchg(self.word(field).address, old.ir, new.ir, "seq_cst", "seq_cst")
        return Value(self, self.block.extract_value(done, 1))

    # --- the system ---------------------------------------------------------------------------------------------------

    def futex(self, word: Array, operation: int, value: Value) -> None:
        """Sleep while the int32 `word` is `value`, or wake `value` sleepers."""
        nothing = ir.Constant(POINTER, None)
        self.call("syscall", I64, I64(self.futex_number), word.address, I64(operation), value.ir, nothing, some=True)

    def now(self) -> Value:
        """Nanoseconds of the monotonic clock."""
        time = self._on_stack(2)
        self.call("clock_gettime", I32, I32(CLOCK_MONOTONIC), time.address)
        return time[0] * NANOSECONDS + time[1]

    def _on_stack(self, words: int) -> Array:
        with self.block.goto_entry_block():
            return Array(self, self.block.alloca(I64, words), "int64")

    def spin(self, deadline: Value, is_over: Callable[[], Value]) -> None:
        """Come back when `is_over` is true, or some time after the deadline.

        The core is not offered to other threads meanwhile: one that spins itself, as those of other libraries do, would
        keep it for milliseconds. A thread that has lost its core finds the deadline passed when it has it again.
        """
        polls = self.variable(0)
        with self.repeat() as leave:
            leave(is_over())
            if self.pause_name is not None:
                hint = [I32(1)] if self.pause_name == "llvm.aarch64.hint" else []
                self.call(self.pause_name, ir.VoidType(), *hint)
            polls.value += 1
            with self.where((polls.value & (POLLS_PER_LOOK - 1)).equals(0)):
                leave(is_over())
                leave(self.now() >= deadline)

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def job(self) -> Array:
        """The words of the job that is published: for who has a unit of it that is not reported."""
        return self.array(self.read(CrewField.JOB), "int64")

    def asleep(self, number: Value) -> Array:
        """A helper's word in ASLEEP."""
        return self.word(CrewField.ASLEEP, "int32").at(number)

    def wake(self, threads: Value, most: Value) -> Variable:
        """Wake at most `most` sleeping helpers of a job of `threads`; returns how many slept."""
        found = self.variable(0)
        with self.count(1, threads) as number:
            place = self.asleep(number)
            with self.where(place.load_shared().differs(0)):
                with self.where(found.value < most):
                    place.swap("xchg", 0)
                    self.futex(place, FUTEX_WAKE_PRIVATE, self.int64(1))
                found.value += 1
        return found

    def take_units(
        self, worker: Value, on_first: Callable[[Array, Value], None] | None = None, is_helper: bool = False
    ) -> Variable:
        """Claim and do units until none is left, or none for this worker; returns how many."""
        done = self.variable(0)
        with self.repeat() as leave:
            word = self.read(CrewField.LEFT)
            left = word & (2**HALF_BITS - 1)
            leave(left.equals(0))
            if is_helper:
                leave(worker >= word >> HALF_BITS)
            with self.where(self.replace(CrewField.LEFT, word, word - 1)):
                job = self.job()
                if on_first is not None:
                    with self.where(done.value.equals(0)):
                        on_first(job, left - 1)
                self.do(job, worker, job[JobField.UNITS] - left)
                done.value += 1
        return done

    def do(self, job: Array, worker: Value, unit: Value) -> None:
        """One unit."""
        words = (job[field] for field in (JobField.FUNCTION, JobField.ARGUMENTS))
        function, arguments = (self.array(word, "uint8").address for word in words)
        self.block.call(Callee(function), [arguments, worker.ir, unit.ir, (unit + 1).ir])


class _Caller(_CrewEmitter):
    """Writes `run`."""

    def write(self) -> None:
        """The whole function."""
        job = Array(self, self.argument, "int64")
        units, alone = job[JobField.UNITS], self.variable(0)
        with self.repeat() as leave:
            leave(alone.value.equals(units))
            leave(self.replace(CrewField.OWNED, self.int64(0), self.int64(1)))
            self.do(job, self.int64(0), alone.value)
            alone.value += 1
        with self.where(alone.value < units):
            self._share(job, units, alone.value)
            self.word(CrewField.OWNED).store_shared(self.int64(0))
        self.block.ret_void()

    def _share(self, job: Array, units: Value, first: Value) -> None:
        """Publish the job from unit `first` on, take part, and wait."""
        threads, sleepers = job[JobField.THREADS], job[JobField.SLEEPERS]
        core = self.call("sched_getcpu", I32).signed("int64")
        for field, word in ((CrewField.JOB, job.number), (CrewField.CALLER_CORE, core)):
            with self.where(self.read(field).differs(word)):  # else the line stays in the caches of all cores
                self.word(field).store_shared(word)
        self.word(CrewField.DONE, "int32").store_shared(first.narrow("int32"))
        left = units - first
        self.word(CrewField.LEFT).swap("xchg", left | threads << HALF_BITS)
        missed = self._wake_helpers(threads, sleepers, left - 1)
        mine = self.take_units(self.int64(0)).value
        self.word(CrewField.DONE, "int32").swap("add", mine.narrow("int32"))
        self._wait(units.narrow("int32"))
        with self.where(missed.value > 0):
            self.word(CrewField.LAST_MISSED).store_shared(self.now())

    def _wake_helpers(self, threads: Value, sleepers: Value, others: Value) -> Variable:
        """Those that find a unit; returns how many slept.

        A small job is over before they are up. One is woken for the next, if it follows while that one stays awake:
        where the last job that found helpers asleep has just ended.
        """
        missed = self.wake(threads, sleepers.min(others))
        with self.where(sleepers.equals(0) & (missed.value > 0)):
            passed = self.now() - self.read(CrewField.LAST_MISSED)
            with self.where(passed <= SPIN_NANOSECONDS):
                self.wake(threads, others.min(1))
        return missed

    def _wait(self, units: Value) -> None:
        """Until every unit is reported: awake for a while, then asleep."""
        word = self.word(CrewField.DONE, "int32")

        def all_done() -> Value:
            return (word.load_shared() & ~CALLER_ASLEEP).equals(units)

        with self.where(~all_done()):
            self.spin(self.now() + WAIT_NANOSECONDS, all_done)
        with self.repeat() as leave:
            leave(all_done())
            asleep = word.swap("or", CALLER_ASLEEP) | CALLER_ASLEEP
            leave(asleep.equals(units | CALLER_ASLEEP))
            self.futex(word, FUTEX_WAIT_PRIVATE, asleep.unsigned("int64"))


class _Helper(_CrewEmitter):
    """Writes `stay`."""

    def write(self) -> None:
        """The whole function."""
        self.number = Value(self, self.argument)
        self._bind(self.word(CrewField.FREE_MASK))
        deadline = self.variable(self.now() + SPIN_NANOSECONDS)
        with self.repeat():
            self._help(deadline)
            self._idle(deadline)
        self.block.unreachable()

    def _help(self, deadline: Variable) -> None:
        """Take part in the job that is published, as far as it wants this helper."""

        def wake_others(job: Array, others: Value) -> None:
            self.wake(job[JobField.THREADS], job[JobField.SLEEPERS].min(others))

        done = self.take_units(self.number, wake_others, is_helper=True).value
        with self.where(done > 0):
            units, count = self.job()[JobField.UNITS].narrow("int32"), done.narrow("int32")
            word = self.word(CrewField.DONE, "int32")
            reported = word.swap("add", count) + count
            # From here on the crew may be another caller's: a needless wake-up is all that can come of it.
            with self.where(reported.equals(units | CALLER_ASLEEP)):
                self.futex(word, FUTEX_WAKE_PRIVATE, self.int64(1))
            deadline.value = self.now() + SPIN_NANOSECONDS

    def _idle(self, deadline: Variable) -> None:
        """Until there is a unit for this helper: awake up to the deadline, then asleep."""

        def is_called() -> Value:
            word = self.read(CrewField.LEFT)
            has_unit: Value = (word & (2**HALF_BITS - 1)).differs(0) & (self.number < word >> HALF_BITS)
            return has_unit

        self.spin(deadline.value, is_called)
        with self.where(~is_called()):
            self._leave_core_of_caller()
            place = self.asleep(self.number)
            place.swap("xchg", 1)
            with self.where(~is_called()):
                self.futex(place, FUTEX_WAIT_PRIVATE, self.int64(1))
            place.swap("xchg", 0)
            self._bind(self.word(CrewField.FREE_MASK))
            deadline.value = self.now() + SPIN_NANOSECONDS

    def _leave_core_of_caller(self) -> None:
        """Bind this thread to the free cores but for one; where that leaves none the system leaves it where it is."""
        free, mask = self.word(CrewField.FREE_MASK), self._on_stack(MASK_WORDS)
        for word in range(MASK_WORDS):
            mask[word] = free[word]
        core = self.read(CrewField.CALLER_CORE) & (MAX_CORES - 1)
        bit = self.int64(1) << (core & 63)
        mask[core >> 6] = mask[core >> 6] & ~bit
        self._bind(mask)

    def _bind(self, mask: Array) -> None:
        """Let this thread run on the cores of the mask alone; a system that refuses leaves it where it is."""
        self.call("sched_setaffinity", I32, I32(0), I64(INT64_BYTES * MASK_WORDS), mask.address)
