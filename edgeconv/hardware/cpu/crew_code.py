"""The generated code of the crew: how a caller hands units of work to threads that wait inside this code.

Three functions over one block of memory, the crew (crew_layout.py says where its words stand):

    run(crew, job)   a caller publishes a job in a free slot, takes units of it itself, and waits until all are done
    stay(crew, n)    helper number n, from 1 on: takes units of open jobs, spins for a while when there are none, sleeps
    stop(crew)       makes all helpers come back from `stay`

Units are claimed one by one. A slot is reused at once by the next job, while a helper may still hold what it read of
the last one, so everything that a helper decides by carries the number of the job (its generation):

    LEFT    generation and units not yet claimed, in one word: a claim is a compare-and-swap of it, and fails when the
            slot has passed to another job
    SEATS   generation and seats, in one word: a seat is the number of the worker, and with it the scratch memory

What a job is (function, arguments, number of units) is read only after a claim: until the claimed unit is reported as
done the caller cannot return, so nothing there changes. A caller therefore waits for units, never for threads: a helper
that was about to claim finds nothing, or the next job.

Sleeping is the futex of Linux on BELL (helpers; it counts jobs) and on DONE (a caller; its top bit says that somebody
sleeps). Whoever changes one of these words looks for sleepers after that, and a sleeper is announced before it looks at
the word for the last time, so no wake-up is lost.

Systems like to start a thread on the core of the thread that wakes it, above all in virtual machines, where an idle
core looks taken: there it waits until the caller's time is up. A helper therefore goes to sleep bound to a core of its
own, counted from the last caller's core on, and is let go again when it has woken.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from llvmlite import ir
from llvmlite.ir.instructions import StoreAtomicInstr

from edgeconv.hardware.cpu.crew_layout import (
    ASLEEP,
    CREW_BYTES,
    HALF_BITS,
    LOW_HALF,
    MASK_BYTES,
    MOST_CORES,
    NO_SEAT,
    SLOTS,
    CrewField,
    JobField,
    SlotField,
)
from edgeconv.hardware.cpu.emit import I32, I64, POINTER, Emitter, Value

RUN, STAY, STOP = "run", "stay", "stop"

FUTEX_NUMBERS = {"x86_64": 202, "amd64": 202, "aarch64": 98, "arm64": 98, "riscv64": 98}
"""The system call by the machine's name, on 64-bit Linux."""
FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE = 128, 129
MOST_SLEEPERS = 2**31 - 1
CLOCK_MONOTONIC = 1
NANOSECONDS = 10**9
POLLS_PER_LOOK = 32
"""Looks at a word between two looks at the clock."""

WORK = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64, I64])


def write(futex_number: int, pause: str | None) -> ir.Module:
    """The module with all functions; `pause` is the intrinsic that tells the processor of a spinning loop."""
    module = ir.Module(name="crew")
    _Caller(module, RUN, [POINTER, POINTER], futex_number, pause).write()
    _Helper(module, STAY, [POINTER, I64], futex_number, pause).write()
    _Stopper(module, STOP, [POINTER], futex_number, pause).write()
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
    """What both functions need: the words of the crew and of a slot, the system calls, and taking units."""

    def __init__(
        self, module: ir.Module, name: str, arguments: list[ir.Type], futex_number: int, pause: str | None
    ) -> None:
        super().__init__(module, name, arguments)
        self.futex_number, self.pause_name = futex_number, pause
        self.crew = self.function.args[0]

    # --- words --------------------------------------------------------------------------------------------------------

    def at(self, base: Value, offset_bytes: int | Value) -> Value:
        """The address so many bytes on."""
        offset = self.int64(offset_bytes) if isinstance(offset_bytes, int) else offset_bytes
        return self.address(base, "u8", offset)

    def read(self, base: Value, field: IntEnum, kind: ir.Type = I64) -> Value:
        """A word that other threads write; what they wrote before it is seen after it."""
        return self.block.load_atomic(self.at(base, field), "seq_cst", kind.width // 8, typ=kind)

    def add(self, base: Value, field: IntEnum, value: int | Value, kind: ir.Type = I64) -> Value:
        """Add to a word, and give what stood there before."""
        amount = ir.Constant(kind, value) if isinstance(value, int) else value
        return self.block.atomic_rmw("add", self.at(base, field), amount, "seq_cst")

    def put(self, base: Value, field: IntEnum, value: Value) -> None:
        """Replace a word; what was written before is seen by whoever reads it."""
        # llvmlite's own store_atomic asks for the type that a pointer points to, which pointers have no more.
        stored = StoreAtomicInstr(self.block.block, value, self.at(base, field), "release", value.type.width // 8)
        self.block._insert(stored)

    def put_changed(self, base: Value, field: IntEnum, value: Value) -> None:
        """`put`, where the word is not that already: a line that is not written stays in the caches of all cores."""
        with self.block.if_then(self.block.icmp_signed("!=", self.read(base, field), value)):
            self.put(base, field, value)

    def plain(self, base: Value, field: IntEnum | Value) -> Value:
        """A word that nobody writes now."""
        return self.block.load(self.at(base, field), typ=I64)

    def low(self, word: Value) -> Value:
        """The lower half of a word."""
        return self.block.and_(word, self.int64(LOW_HALF))

    def high(self, word: Value) -> Value:
        """The upper half of a word: a generation."""
        return self.block.lshr(word, self.int64(HALF_BITS))

    def both(self, generation: Value, low: Value) -> Value:
        """A word of two halves."""
        return self.block.or_(self.block.shl(generation, self.int64(HALF_BITS)), low)

    # --- the system ---------------------------------------------------------------------------------------------------

    def futex(self, address: Value, operation: int, value: Value) -> None:
        """Sleep while the int32 at `address` is `value`, or wake `value` sleepers."""
        call = self._outside("syscall", ir.FunctionType(I64, [I64], var_arg=True))
        nothing = ir.Constant(POINTER, None)
        self.block.call(call, [self.int64(self.futex_number), address, self.int64(operation), value, nothing])

    def now(self) -> Value:
        """Nanoseconds of the monotonic clock."""
        call = self._outside("clock_gettime", ir.FunctionType(I32, [I32, POINTER]))
        with self.block.goto_entry_block():
            place = self.block.alloca(I64, 2)
        self.block.call(call, [I32(CLOCK_MONOTONIC), place])
        seconds = self.block.mul(self.block.load(place, typ=I64), self.int64(NANOSECONDS))
        return self.block.add(seconds, self.block.load(self.at(place, 8), typ=I64))

    def pause(self) -> None:
        """Tell the processor that this loop only waits."""
        if self.pause_name is None:
            return
        operands = [I32(1)] if self.pause_name == "llvm.aarch64.hint" else []
        kind = ir.FunctionType(ir.VoidType(), [I32] * len(operands))
        self.block.call(self._outside(self.pause_name, kind), operands)

    def spin(self, deadline: Value, is_over: Callable[[], Value]) -> None:
        """Come back when `is_over` is true, or some time after the deadline.

        The core is not offered to other threads meanwhile: one that spins itself, as those of other libraries do, would
        keep it for milliseconds. A thread that has lost its core finds the deadline passed when it has it again.
        """
        with self.repeat() as leave:
            polls = self.variable(self.int64(0))
            with self.repeat() as stop_polling:
                stop_polling(is_over())
                self.pause()
                polled = self.block.add(self.block.load(polls, typ=I64), self.int64(1))
                self.block.store(polled, polls)
                stop_polling(self.block.icmp_signed(">=", polled, self.int64(POLLS_PER_LOOK)))
            leave(is_over())
            leave(self.block.icmp_signed(">=", self.now(), deadline))

    def core(self) -> Value:
        """The number of the core that this thread runs on; -1 where the system does not tell."""
        return self.block.sext(self.block.call(self._outside("sched_getcpu", ir.FunctionType(I32, [])), []), I64)

    def bind(self, mask: Value) -> None:
        """Let this thread run on the cores of the mask alone; a system that refuses leaves it where it is."""
        call = self._outside("sched_setaffinity", ir.FunctionType(I32, [I32, I64, POINTER]))
        self.block.call(call, [I32(0), self.int64(MASK_BYTES), mask])

    def _outside(self, name: str, kind: ir.FunctionType) -> ir.Function:
        return self.module.globals.get(name) or ir.Function(self.module, kind, name)

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def wake(self, slot: Value, wanted: Value, in_series: Callable[[], Value] | None = None) -> None:
        """Wake sleepers if more threads are wanted than are awake without work, as many as the job says at most.

        `in_series` is how many where the job says none.
        """
        sleeping = self.read(self.crew, CrewField.SLEEPERS)
        with self.block.if_then(self.block.icmp_signed(">", sleeping, self.int64(0))):
            working = self.read(self.crew, CrewField.HELPERS)
            started = self.read(self.crew, CrewField.STARTED)
            idle = self.maximum(self.block.sub(self.block.sub(started, sleeping), working), self.int64(0))
            at_once = self.read(slot, SlotField.SLEEPERS)
            most = self.variable(at_once)
            missing = self.block.sub(wanted, idle)
            if in_series is not None:
                with self.block.if_then(self.block.icmp_signed(">", missing, self.int64(0))):
                    is_small = self.block.icmp_signed("==", at_once, self.int64(0))
                    self.block.store(self.block.select(is_small, in_series(), at_once), most)
            number = self.minimum(missing, self.block.load(most, typ=I64))
            with self.block.if_then(self.block.icmp_signed(">", number, self.int64(0))):
                self.futex(self.at(self.crew, CrewField.BELL), FUTEX_WAKE_PRIVATE, number)

    def take_units(
        self,
        slot: Value,
        generation: Value,
        worker: Value,
        on_first: Callable[[Value], None] | None = None,
        is_surplus: Callable[[], Value] | None = None,
    ) -> Value:
        """Claim and do units until none is left, and give the address of their number."""
        done = self.variable(self.int64(0))
        with self.repeat() as leave:
            word = self.read(slot, SlotField.LEFT)
            leave(self.block.icmp_unsigned("!=", self.high(word), generation))
            left = self.low(word)
            leave(self.block.icmp_unsigned("==", left, self.int64(0)))
            claim = self.block.cmpxchg(
                self.at(slot, SlotField.LEFT), word, self.block.sub(word, self.int64(1)), "seq_cst", "seq_cst"
            )
            with self.block.if_then(self.block.extract_value(claim, 1)):
                if on_first is not None:
                    with self.block.if_then(
                        self.block.icmp_signed("==", self.block.load(done, typ=I64), self.int64(0))
                    ):
                        on_first(self.block.sub(left, self.int64(1)))
                unit = self.block.sub(self.plain(slot, SlotField.UNITS), left)
                self.do(slot, worker, unit)
                self.block.store(self.block.add(self.block.load(done, typ=I64), self.int64(1)), done)
                if is_surplus is not None:
                    leave(is_surplus())
        return done

    def do(self, slot: Value, worker: Value, unit: Value) -> None:
        """One unit of the slot's job."""
        function = self.block.inttoptr(self.plain(slot, SlotField.FUNCTION), POINTER)
        arguments = self.block.inttoptr(self.plain(slot, SlotField.ARGUMENTS), POINTER)
        self.call_work(function, arguments, worker, unit, self.block.add(unit, self.int64(1)))

    def call_work(self, function: Value, *operands: Value) -> None:
        """Call what computes units."""
        self.block.call(_Callee(function), operands)


class _Caller(_CrewEmitter):
    """Writes `run`."""

    def write(self) -> None:
        """The whole function."""
        job = self.function.args[1]
        function, arguments, units, threads, limit, sleepers = (
            self.block.load(self.address_of_int64(job, field), typ=I64) for field in JobField
        )
        slot = self._own_slot()
        alone = self.block.icmp_signed("==", self.block.load(slot, typ=I64), self.int64(0))
        with self.block.if_else(alone) as (without_slot, with_slot):
            with without_slot:
                callee, given = self.block.inttoptr(function, POINTER), self.block.inttoptr(arguments, POINTER)
                self.call_work(callee, given, self.int64(0), self.int64(0), units)
            with with_slot:
                found = self.block.inttoptr(self.block.load(slot, typ=I64), POINTER)
                self._publish(found, function, arguments, units, limit, sleepers)
                self._share(found, units, threads)
        self.block.ret_void()

    def _own_slot(self) -> Value:
        """Where the address of a slot stands that is this caller's now; 0 where all are in use."""
        found = self.variable(self.int64(0))
        number = self.variable(self.int64(0))
        with self.repeat() as leave:
            at = self.block.load(number, typ=I64)
            leave(self.block.icmp_signed(">=", at, self.int64(SLOTS)))
            slot = self.at(self.crew, self.block.add(
                self.int64(CrewField.FIRST_SLOT), self.block.mul(at, self.int64(SlotField.END))
            ))  # fmt: skip
            taken = self.block.cmpxchg(
                self.at(slot, SlotField.OWNED), self.int64(0), self.int64(1), "seq_cst", "seq_cst"
            )
            is_mine = self.block.extract_value(taken, 1)
            with self.block.if_then(is_mine):
                self.block.store(self.block.ptrtoint(slot, I64), found)
            leave(is_mine)
            self.block.store(self.block.add(at, self.int64(1)), number)
        return found

    def _publish(
        self, slot: Value, function: Value, arguments: Value, units: Value, limit: Value, sleepers: Value
    ) -> None:
        """Write down the job. Helpers look at the limits before they have a claim, and at the rest after it."""
        for field, value in (
            (SlotField.FUNCTION, function),
            (SlotField.ARGUMENTS, arguments),
            (SlotField.UNITS, units),
        ):
            self.block.store(value, self.at(slot, field))
        self.put_changed(slot, SlotField.LIMIT, limit)
        self.put_changed(slot, SlotField.SLEEPERS, sleepers)
        self.put(slot, SlotField.DONE, I32(0))

    def _share(self, slot: Value, units: Value, threads: Value) -> None:
        """Open the job, take part, and wait."""
        self.add(self.crew, CrewField.CALLERS, 1)
        self.put_changed(self.crew, CrewField.CALLER_CORE, self.core())
        generation = self.low(self.block.add(self.high(self.read(slot, SlotField.LEFT)), self.int64(1)))
        helpers = self.block.sub(threads, self.int64(1))
        self.put(slot, SlotField.SEATS, self.both(generation, self.block.sub(self.int64(NO_SEAT), helpers)))
        self.put(slot, SlotField.LEFT, self.both(generation, units))
        self.add(self.crew, CrewField.BELL, 1, I32)
        missed = self.variable(self.int64(0))
        wanted = self.minimum(helpers, self.block.sub(units, self.int64(1)))
        self.wake(slot, wanted, lambda: self._one_in_a_series(missed))
        mine = self.take_units(slot, generation, self.int64(0))
        count = self.block.trunc(self.block.load(mine, typ=I64), I32)
        self.add(slot, SlotField.DONE, count, I32)
        self._wait(slot, self.block.trunc(units, I32))
        with self.block.if_then(self.block.icmp_signed("!=", self.block.load(missed, typ=I64), self.int64(0))):
            self.put(self.crew, CrewField.LAST_MISSED, self.now())
        self.add(self.crew, CrewField.CALLERS, -1)
        self.put(slot, SlotField.OWNED, self.int64(0))

    def _one_in_a_series(self, missed: Value) -> Value:
        """1 where the last small job that found helpers asleep has just ended, else 0; `missed` becomes 1.

        A small job is over before they are up. They are woken for the next one, if it follows while they stay awake.
        """
        self.block.store(self.int64(1), missed)
        passed = self.block.sub(self.now(), self.read(self.crew, CrewField.LAST_MISSED))
        stay = self.read(self.crew, CrewField.SPIN_NANOSECONDS)
        return self.block.zext(self.block.icmp_signed("<=", passed, stay), I64)

    def _wait(self, slot: Value, units: Value) -> None:
        """Until every unit is reported: awake for a while, then asleep."""
        asleep = I32(ASLEEP)

        def done() -> Value:
            return self.block.and_(self.read(slot, SlotField.DONE, I32), I32(~ASLEEP))

        def all_done() -> Value:
            return self.block.icmp_signed("==", done(), units)

        with self.block.if_then(self.block.not_(all_done())):
            self.spin(self.block.add(self.now(), self.read(self.crew, CrewField.WAIT_NANOSECONDS)), all_done)
        with self.repeat() as leave:
            leave(all_done())
            before = self.block.atomic_rmw("or", self.at(slot, SlotField.DONE), asleep, "seq_cst")
            leave(self.block.icmp_signed("==", self.block.and_(before, I32(~ASLEEP)), units))
            seen = self.block.zext(self.block.or_(before, asleep), I64)
            self.futex(self.at(slot, SlotField.DONE), FUTEX_WAIT_PRIVATE, seen)


class _Helper(_CrewEmitter):
    """Writes `stay`."""

    def write(self) -> None:
        """The whole function."""
        seen = self.variable(self.read(self.crew, CrewField.BELL, I32))
        deadline = self.variable(self._deadline())
        with self.repeat() as leave:
            with self.count(self.int64(CrewField.FIRST_SLOT), self.int64(CREW_BYTES), int(SlotField.END)) as offset:
                self._help(self.at(self.crew, offset), deadline)
            leave(self.block.icmp_signed("!=", self.read(self.crew, CrewField.STOPPED), self.int64(0)))
            self._idle(seen, deadline)
        self.block.ret_void()

    def _deadline(self) -> Value:
        return self.block.add(self.now(), self.read(self.crew, CrewField.SPIN_NANOSECONDS))

    def _idle(self, seen: Value, deadline: Value) -> None:
        """Until the bell has been rung since `seen`: awake up to the deadline, then asleep."""

        def has_rung() -> Value:
            rung = self.read(self.crew, CrewField.BELL, I32)
            return self.block.icmp_signed("!=", rung, self.block.load(seen, typ=I32))

        self.spin(self.block.load(deadline, typ=I64), has_rung)
        with self.block.if_then(self.block.not_(has_rung())):
            self._bind_to_own_core()
            self.add(self.crew, CrewField.SLEEPERS, 1)
            value = self.block.zext(self.block.load(seen, typ=I32), I64)
            self.futex(self.at(self.crew, CrewField.BELL), FUTEX_WAIT_PRIVATE, value)
            self.add(self.crew, CrewField.SLEEPERS, -1)
            with self.block.if_then(self._is_bound()):
                self.bind(self.at(self.crew, CrewField.FREE_MASK))
            self.block.store(self._deadline(), deadline)
        self.block.store(self.read(self.crew, CrewField.BELL, I32), seen)

    def _is_bound(self) -> Value:
        return self.block.icmp_signed(">", self.read(self.crew, CrewField.CORES), self.int64(0))

    def _bind_to_own_core(self) -> None:
        """To core number n after the last caller's, among those that helpers may run on."""
        with self.block.goto_entry_block():
            mask = self.block.alloca(I64, MASK_BYTES // 8)
        cores, caller = (self.read(self.crew, field) for field in (CrewField.CORES, CrewField.CALLER_CORE))
        known = self.block.icmp_unsigned("<", caller, self.int64(MOST_CORES))
        with self.block.if_then(self.block.and_(self._is_bound(), known)):
            for word in range(MASK_BYTES // 8):
                self.block.store(self.int64(0), self.at(mask, 8 * word))
            place = self.plain(self.at(self.crew, CrewField.PLACE_OF), self.block.mul(caller, self.int64(8)))
            own = self.block.srem(self.block.add(place, self.function.args[1]), cores)
            core = self.plain(self.at(self.crew, CrewField.CORE_AT), self.block.mul(own, self.int64(8)))
            word = self.at(mask, self.block.mul(self.block.lshr(core, self.int64(6)), self.int64(8)))
            bit = self.block.shl(self.int64(1), self.block.and_(core, self.int64(63)))
            self.block.store(bit, word)
            self.bind(mask)

    def _help(self, slot: Value, deadline: Value) -> None:
        """Take part in the slot's job, if it is open and has a seat."""
        left = self.low(self.read(slot, SlotField.LEFT))
        with self.block.if_then(self.block.icmp_unsigned("!=", left, self.int64(0))):
            before = self.add(self.crew, CrewField.HELPERS, 1)
            at_work = self.block.add(before, self.read(self.crew, CrewField.CALLERS))
            is_wanted = self.block.icmp_signed("<", at_work, self.read(slot, SlotField.LIMIT))
            with self.block.if_else(is_wanted) as (wanted, surplus):
                with wanted:
                    word = self.add(slot, SlotField.SEATS, 1)
                    seat = self.block.sub(self.int64(NO_SEAT), self.low(word))
                    seated = self.block.icmp_signed(">", seat, self.int64(0))
                    with self.block.if_else(seated) as (with_seat, without_seat):
                        with with_seat:
                            self._work(slot, self.high(word), seat, deadline)
                        with without_seat:
                            self.add(self.crew, CrewField.HELPERS, -1)
                with surplus:
                    self.add(self.crew, CrewField.HELPERS, -1)

    def _work(self, slot: Value, generation: Value, seat: Value, deadline: Value) -> None:
        def wake_others(left: Value) -> None:
            """Those that still find a seat and a unit."""
            self.wake(slot, self.minimum(self.block.sub(seat, self.int64(1)), left))

        def is_surplus() -> Value:
            at_work = self.block.add(self.read(self.crew, CrewField.HELPERS), self.read(self.crew, CrewField.CALLERS))
            return self.block.icmp_signed(">", at_work, self.read(slot, SlotField.LIMIT))

        place = self.take_units(slot, generation, seat, wake_others, is_surplus)
        self.add(self.crew, CrewField.HELPERS, -1)
        done = self.block.load(place, typ=I64)
        with self.block.if_then(self.block.icmp_signed(">", done, self.int64(0))):
            units = self.block.trunc(self.plain(slot, SlotField.UNITS), I32)
            count = self.block.trunc(done, I32)
            before = self.add(slot, SlotField.DONE, count, I32)
            # From here on the slot may be another job's: a needless wake-up is all that can come of it.
            reported = self.block.add(self.block.and_(before, I32(~ASLEEP)), count)
            is_last = self.block.icmp_signed("==", reported, units)
            sleeps = self.block.icmp_signed("<", before, I32(0))
            with self.block.if_then(self.block.and_(is_last, sleeps)):
                self.futex(self.at(slot, SlotField.DONE), FUTEX_WAKE_PRIVATE, self.int64(1))
            self.block.store(self._deadline(), deadline)


class _Stopper(_CrewEmitter):
    """Writes `stop`."""

    def write(self) -> None:
        """The whole function."""
        self.put(self.crew, CrewField.STOPPED, self.int64(1))
        self.add(self.crew, CrewField.BELL, 1, I32)
        self.futex(self.at(self.crew, CrewField.BELL), FUTEX_WAKE_PRIVATE, self.int64(MOST_SLEEPERS))
        self.block.ret_void()
