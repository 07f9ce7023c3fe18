"""The generated code of the crew: how a caller hands units of work to threads that wait inside this code.

Three functions over one block of memory, the crew, whose words `CrewField` lists:

    run(crew, job)       a caller publishes its job, takes units of it itself, and waits until all are done; while the
                         crew has another caller's job it does units alone
    stay(crew, n)        helper number n, from 1 on: takes units, spins for a while when there are none, sleeps
    stop(crew, helpers)  makes all helpers come back from `stay`

Units are claimed one by one, by a compare-and-swap of LEFT, which fails when the job has changed. What a job is
(function, arguments, number of units) is read only after a claim: until the claimed unit is reported as done the caller
cannot return, so nothing there changes. A caller therefore waits for units, never for threads: a helper that was about
to claim finds nothing, or the next job. A helper's number is that of its worker, and with it the scratch memory.

Sleeping is the futex of Linux, on a word of each helper and on DONE (a caller). A sleeper is announced before it looks
for the last time whether it should sleep, and whoever has work for it looks for sleepers after publishing that, so no
wake-up is lost.

Systems like to start a thread on the core of the thread that wakes it, above all in virtual machines, where an idle
core looks taken: there it waits until the caller's time is up. A helper therefore sleeps bound to all cores but the
last caller's, and is let go again when it has woken.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from llvmlite import ir
from llvmlite.ir.instructions import StoreAtomicInstr

from edgeconv.hardware.cpu.emit import I32, I64, POINTER, Emitter, Value

RUN, STAY, STOP = "run", "stay", "stop"

FUTEX_NUMBERS = {"x86_64": 202, "amd64": 202, "aarch64": 98, "arm64": 98, "riscv64": 98}
"""The system call by the machine's name, on 64-bit Linux."""
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

APART_BYTES = 128
"""Between words that different threads write: two cache lines, as processors fetch neighbouring lines in pairs."""
INT32_BYTES, INT64_BYTES = 4, 8
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
    LIMIT = 4
    """Callers and helpers that may be at work at once, in this job's view."""
    SLEEPERS = 5
    """Sleepers that one thread wakes, each of which wakes as many. 0: only one in a series of jobs is worth it."""


class CrewField(IntEnum):
    """Byte offsets in the crew's memory; int64 unless said otherwise."""

    BELL = 0
    """int32. One more for every job."""
    OWNED = APART_BYTES
    """1 while a caller has the crew."""
    LEFT = 2 * APART_BYTES
    """The number of the job (its generation) and, in the lower half, its units that are not yet claimed."""
    DONE = 3 * APART_BYTES
    """int32. Units reported, and `CALLER_ASLEEP` where the caller sleeps."""
    CALLERS = 4 * APART_BYTES
    """Callers at work, with the crew or alone."""
    JOB = 5 * APART_BYTES
    """The words of the job (JobField)."""
    CALLER_CORE = JOB + INT64_BYTES * len(JobField)
    """Where the last caller ran."""
    LAST_MISSED = 6 * APART_BYTES
    """When the last job that found helpers asleep ended, in nanoseconds."""
    STOPPED = 7 * APART_BYTES
    """Not 0: helpers leave."""
    FREE_MASK = STOPPED + INT64_BYTES
    """`MASK_WORDS`: a bit for every core that helpers may run on; none where the system does not tell."""
    ASLEEP = 9 * APART_BYTES
    """int32[MAX_THREADS]: 1 for each helper that sleeps, or is about to."""
    END = ASLEEP + INT32_BYTES * MAX_THREADS


HALF_BITS = 32
CALLER_ASLEEP = -(2**31)
"""The top bit of DONE."""

WORK = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64, I64])


def write(futex_number: int, pause: str | None) -> ir.Module:
    """The module with all functions; `pause` is the intrinsic that tells the processor of a spinning loop."""
    module = ir.Module(name="crew")
    for emitter, name, argument in ((_Caller, RUN, POINTER), (_Helper, STAY, I64), (_Stopper, STOP, I64)):
        emitter(module, name, argument, futex_number, pause).write()
    return module


def pause_intrinsic(triple: str) -> str | None:
    """The intrinsic for the processor of an LLVM triple."""
    if triple.startswith(("x86_64", "i686")):
        return "llvm.x86.sse2.pause"
    return "llvm.aarch64.hint" if triple.startswith(("aarch64", "arm64")) else None


class _Callee:
    """An address as something to be called: llvmlite asks for the type of the function."""

    function_type, calling_convention = WORK, ""

    def __init__(self, address: Value) -> None:
        self.type, self.address = address.type, address

    def get_reference(self) -> str:
        """How IR names it."""
        name: str = self.address.get_reference()
        return name


class _CrewEmitter(Emitter):
    """What the functions share: the words of the crew, the system calls, and taking units."""

    def __init__(self, module: ir.Module, name: str, argument: ir.Type, futex_number: int, pause: str | None) -> None:
        super().__init__(module, name, [POINTER, argument])
        self.futex_number, self.pause_name = futex_number, pause
        self.crew, self.argument = self.function.args

    # --- words --------------------------------------------------------------------------------------------------------

    def at(self, field: int | Value) -> Value:
        """The address of a word of the crew."""
        return self.address(self.crew, "u8", self.int64(field) if isinstance(field, int) else field)

    def read(self, field: int | Value, kind: ir.Type = I64) -> Value:
        """A word that other threads write; what they wrote before it is seen after it."""
        return self.block.load_atomic(self.at(field), "seq_cst", kind.width // 8, typ=kind)

    def job(self, field: JobField) -> Value:
        """A word of the job that is published."""
        return self.read(CrewField.JOB + INT64_BYTES * field)

    def swap(self, operation: str, field: int | Value, value: Value) -> Value:
        """Change a word by "add", "or" or "xchg", and give what stood there before."""
        return self.block.atomic_rmw(operation, self.at(field), value, "seq_cst")

    def replace(self, field: int | Value, old: Value, new: Value) -> Value:
        """Put `new` in the place of `old`; whether `old` stood there."""
        return self.block.extract_value(self.block.cmpxchg(self.at(field), old, new, "seq_cst", "seq_cst"), 1)

    def put(self, field: int, value: Value) -> None:
        """Replace a word; what was written before is seen by whoever reads it."""
        # llvmlite's own store_atomic asks for the type that a pointer points to, which pointers have no more.
        stored = StoreAtomicInstr(self.block.block, value, self.at(field), "release", value.type.width // 8)
        self.block._insert(stored)

    def put_changed(self, field: int, value: Value) -> None:
        """`put`, where the word is not that already: a line that is not written stays in the caches of all cores."""
        with self.block.if_then(self.block.icmp_signed("!=", self.read(field), value)):
            self.put(field, value)

    def value(self, variable: Value, kind: ir.Type = I64) -> Value:
        """What a variable holds now."""
        return self.block.load(variable, typ=kind)

    def advance(self, variable: Value) -> None:
        """One more."""
        self.block.store(self.block.add(self.value(variable), self.int64(1)), variable)

    # --- the system ---------------------------------------------------------------------------------------------------

    def call_outside(self, name: str, result: ir.Type, *arguments: Value, some: bool = False) -> Value:
        """Call a function of libc, or an intrinsic; `some` where any number of arguments follow the first."""
        types = [value.type for value in arguments][: 1 if some else None]
        kind = ir.FunctionType(result, types, var_arg=some)
        return self.block.call(self.module.globals.get(name) or ir.Function(self.module, kind, name), arguments)

    def futex(self, address: Value, operation: int, value: Value) -> None:
        """Sleep while the int32 at `address` is `value`, or wake `value` sleepers."""
        number, nothing = self.int64(self.futex_number), ir.Constant(POINTER, None)
        self.call_outside("syscall", I64, number, address, self.int64(operation), value, nothing, some=True)

    def now(self) -> Value:
        """Nanoseconds of the monotonic clock."""
        with self.block.goto_entry_block():
            place = self.block.alloca(I64, 2)
        self.call_outside("clock_gettime", I32, I32(CLOCK_MONOTONIC), place)
        seconds = self.block.mul(self.value(place), self.int64(NANOSECONDS))
        return self.block.add(seconds, self.value(self.address_of_int64(place, 1)))

    def in_future(self, nanoseconds: int) -> Value:
        """The time so long from now."""
        return self.block.add(self.now(), self.int64(nanoseconds))

    def spin(self, deadline: Value, is_over: Callable[[], Value]) -> None:
        """Come back when `is_over` is true, or some time after the deadline.

        The core is not offered to other threads meanwhile: one that spins itself, as those of other libraries do, would
        keep it for milliseconds. A thread that has lost its core finds the deadline passed when it has it again.
        """
        polls = self.variable(self.int64(0))
        with self.repeat() as leave:
            leave(is_over())
            if self.pause_name is not None:
                hint = [I32(1)] if self.pause_name == "llvm.aarch64.hint" else []
                self.call_outside(self.pause_name, ir.VoidType(), *hint)
            self.advance(polls)
            looked = self.block.and_(self.value(polls), self.int64(POLLS_PER_LOOK - 1))
            with self.block.if_then(self.block.icmp_signed("==", looked, self.int64(0))):
                leave(is_over())
                leave(self.block.icmp_signed(">=", self.now(), deadline))

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def asleep(self, number: Value) -> Value:
        """The offset of a helper's word in ASLEEP."""
        return self.block.add(self.int64(CrewField.ASLEEP), self.block.mul(number, self.int64(INT32_BYTES)))

    def wake(self, threads: Value, most: Value) -> Value:
        """Wake at most `most` sleeping helpers of a job of `threads`; returns the variable with how many slept."""
        found = self.variable(self.int64(0))
        with self.count(self.int64(1), threads) as number:
            place = self.asleep(number)
            with self.block.if_then(self.block.icmp_signed("!=", self.read(place, I32), I32(0))):
                with self.block.if_then(self.block.icmp_signed("<", self.value(found), most)):
                    self.replace(place, I32(1), I32(0))
                    self.futex(self.at(place), FUTEX_WAKE_PRIVATE, self.int64(1))
                self.advance(found)
        return found

    def take_units(
        self,
        generation: Value,
        worker: Value,
        on_first: Callable[[Value], None] | None = None,
        may_take: Callable[[], Value] | None = None,
    ) -> Value:
        """Claim and do units of a job until none is left, and give the address of their number."""
        done = self.variable(self.int64(0))
        with self.repeat() as leave:
            word = self.read(CrewField.LEFT)
            leave(self.block.icmp_unsigned("!=", self.block.lshr(word, self.int64(HALF_BITS)), generation))
            left = self.block.and_(word, self.int64(2**HALF_BITS - 1))
            leave(self.block.icmp_unsigned("==", left, self.int64(0)))
            if may_take is not None:
                leave(self.block.not_(may_take()))
            others = self.block.sub(left, self.int64(1))
            with self.block.if_then(self.replace(CrewField.LEFT, word, self.block.sub(word, self.int64(1)))):
                if on_first is not None:
                    with self.block.if_then(self.block.icmp_signed("==", self.value(done), self.int64(0))):
                        on_first(others)
                unit = self.block.sub(self.job(JobField.UNITS), left)
                self.do(self.job(JobField.FUNCTION), self.job(JobField.ARGUMENTS), worker, unit)
                self.advance(done)
        return done

    def do(self, function: Value, arguments: Value, worker: Value, unit: Value) -> None:
        """One unit."""
        callee, given = (self.block.inttoptr(address, POINTER) for address in (function, arguments))
        self.block.call(_Callee(callee), [given, worker, unit, self.block.add(unit, self.int64(1))])


class _Caller(_CrewEmitter):
    """Writes `run`."""

    def write(self) -> None:
        """The whole function."""
        words = {field: self.value(self.address_of_int64(self.argument, field)) for field in JobField}
        units, alone = words[JobField.UNITS], self.variable(self.int64(0))
        self.swap("add", CrewField.CALLERS, self.int64(1))
        with self.repeat() as leave:
            leave(self.block.icmp_signed("==", self.value(alone), units))
            leave(self.replace(CrewField.OWNED, self.int64(0), self.int64(1)))
            self.do(words[JobField.FUNCTION], words[JobField.ARGUMENTS], self.int64(0), self.value(alone))
            self.advance(alone)
        with self.block.if_then(self.block.icmp_signed("<", self.value(alone), units)):
            self._share(words, self.value(alone))
            self.put(CrewField.OWNED, self.int64(0))
        self.swap("add", CrewField.CALLERS, self.int64(-1))
        self.block.ret_void()

    def _share(self, words: dict[JobField, Value], first: Value) -> None:
        """Publish the job from unit `first` on, take part, and wait."""
        units, threads, sleepers = (words[field] for field in (JobField.UNITS, JobField.THREADS, JobField.SLEEPERS))
        for field, word in words.items():
            self.put_changed(CrewField.JOB + INT64_BYTES * field, word)
        self.put_changed(CrewField.CALLER_CORE, self.block.sext(self.call_outside("sched_getcpu", I32), I64))
        self.put(CrewField.DONE, self.block.trunc(first, I32))
        left = self.block.sub(units, first)
        word = self.block.add(self.block.add(self.read(CrewField.LEFT), self.int64(2**HALF_BITS)), left)
        self.put(CrewField.LEFT, word)
        self.swap("add", CrewField.BELL, I32(1))
        missed = self._wake_helpers(threads, sleepers, self.block.sub(left, self.int64(1)))
        mine = self.take_units(self.block.lshr(word, self.int64(HALF_BITS)), self.int64(0))
        self.swap("add", CrewField.DONE, self.block.trunc(self.value(mine), I32))
        self._wait(self.block.trunc(units, I32))
        with self.block.if_then(self.block.icmp_signed(">", self.value(missed), self.int64(0))):
            self.put(CrewField.LAST_MISSED, self.now())

    def _wake_helpers(self, threads: Value, sleepers: Value, others: Value) -> Value:
        """Those that find a unit; the address of how many slept.

        A small job is over before they are up. One is woken for the next, if it follows while that one stays awake:
        where the last job that found helpers asleep has just ended.
        """
        missed = self.wake(threads, self.minimum(sleepers, others))
        is_small = self.block.icmp_signed("==", sleepers, self.int64(0))
        some = self.block.icmp_signed(">", self.value(missed), self.int64(0))
        with self.block.if_then(self.block.and_(is_small, some)):
            passed = self.block.sub(self.now(), self.read(CrewField.LAST_MISSED))
            with self.block.if_then(self.block.icmp_signed("<=", passed, self.int64(SPIN_NANOSECONDS))):
                self.wake(threads, self.minimum(self.int64(1), others))
        return missed

    def _wait(self, units: Value) -> None:
        """Until every unit is reported: awake for a while, then asleep."""

        def all_done() -> Value:
            done = self.block.and_(self.read(CrewField.DONE, I32), I32(~CALLER_ASLEEP))
            return self.block.icmp_signed("==", done, units)

        with self.block.if_then(self.block.not_(all_done())):
            self.spin(self.in_future(WAIT_NANOSECONDS), all_done)
        with self.repeat() as leave:
            leave(all_done())
            asleep = self.block.or_(self.swap("or", CrewField.DONE, I32(CALLER_ASLEEP)), I32(CALLER_ASLEEP))
            leave(self.block.icmp_signed("==", asleep, self.block.or_(units, I32(CALLER_ASLEEP))))
            self.futex(self.at(CrewField.DONE), FUTEX_WAIT_PRIVATE, self.block.zext(asleep, I64))


class _Helper(_CrewEmitter):
    """Writes `stay`."""

    def write(self) -> None:
        """The whole function."""
        seen = self.variable(self.read(CrewField.BELL, I32))
        deadline = self.variable(self.in_future(SPIN_NANOSECONDS))
        with self.repeat() as leave:
            self._help(deadline)
            leave(self.block.icmp_signed("!=", self.read(CrewField.STOPPED), self.int64(0)))
            self._idle(seen, deadline)
        self.block.ret_void()

    def _help(self, deadline: Value) -> None:
        """Take part in the job that is published, as far as it wants this helper."""

        def wake_others(others: Value) -> None:
            self.wake(self.job(JobField.THREADS), self.minimum(self.job(JobField.SLEEPERS), others))

        def is_wanted() -> Value:
            has_place = self.block.icmp_signed("<", self.argument, self.job(JobField.THREADS))
            at_work = self.block.add(self.argument, self.read(CrewField.CALLERS))
            return self.block.and_(has_place, self.block.icmp_signed("<=", at_work, self.job(JobField.LIMIT)))

        generation = self.block.lshr(self.read(CrewField.LEFT), self.int64(HALF_BITS))
        done = self.value(self.take_units(generation, self.argument, wake_others, is_wanted))
        with self.block.if_then(self.block.icmp_signed(">", done, self.int64(0))):
            units, count = (self.block.trunc(value, I32) for value in (self.job(JobField.UNITS), done))
            reported = self.block.add(self.swap("add", CrewField.DONE, count), count)
            # From here on the crew may be another caller's: a needless wake-up is all that can come of it.
            with self.block.if_then(self.block.icmp_signed("==", reported, self.block.or_(units, I32(CALLER_ASLEEP)))):
                self.futex(self.at(CrewField.DONE), FUTEX_WAKE_PRIVATE, self.int64(1))
            self.block.store(self.in_future(SPIN_NANOSECONDS), deadline)

    def _idle(self, seen: Value, deadline: Value) -> None:
        """Until the bell has been rung since `seen`: awake up to the deadline, then asleep."""

        def has_rung() -> Value:
            return self.block.icmp_signed("!=", self.read(CrewField.BELL, I32), self.value(seen, I32))

        self.spin(self.value(deadline), has_rung)
        with self.block.if_then(self.block.not_(has_rung())):
            self._leave_core_of_caller()
            place = self.asleep(self.argument)
            self.swap("xchg", place, I32(1))
            with self.block.if_then(self.block.not_(has_rung())):
                self.futex(self.at(place), FUTEX_WAIT_PRIVATE, self.int64(1))
            self.swap("xchg", place, I32(0))
            self._bind(self.at(CrewField.FREE_MASK))
            self.block.store(self.in_future(SPIN_NANOSECONDS), deadline)
        self.block.store(self.read(CrewField.BELL, I32), seen)

    def _leave_core_of_caller(self) -> None:
        """Bind this thread to the free cores but for one; where that leaves none the system leaves it where it is."""
        with self.block.goto_entry_block():
            mask = self.block.alloca(I64, MASK_WORDS)
        for word in range(MASK_WORDS):
            free = self.value(self.at(CrewField.FREE_MASK + INT64_BYTES * word))
            self.block.store(free, self.address_of_int64(mask, word))
        core = self.block.and_(self.read(CrewField.CALLER_CORE), self.int64(MAX_CORES - 1))
        place = self.address_of_int64(mask, self.block.lshr(core, self.int64(6)))
        bit = self.block.shl(self.int64(1), self.block.and_(core, self.int64(63)))
        self.block.store(self.block.and_(self.value(place), self.block.not_(bit)), place)
        self._bind(mask)

    def _bind(self, mask: Value) -> None:
        """Let this thread run on the cores of the mask alone; a system that refuses leaves it where it is."""
        self.call_outside("sched_setaffinity", I32, I32(0), self.int64(INT64_BYTES * MASK_WORDS), mask)


class _Stopper(_CrewEmitter):
    """Writes `stop`."""

    def write(self) -> None:
        """The whole function."""
        self.put(CrewField.STOPPED, self.int64(1))
        self.swap("add", CrewField.BELL, I32(1))
        self.wake(self.block.add(self.argument, self.int64(1)), self.argument)
        self.block.ret_void()
