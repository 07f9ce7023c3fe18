"""All interleavings of the crew's generated code: the very IR that is compiled, interpreted step by step.

A step is one access to memory that threads share, one call of the system, or the end of a unit; what lies between two
steps concerns one thread alone. `explore` visits every state that any order of steps can reach (memory is sequentially
consistent here) and raises `Broken` where

    a unit is done twice, never, after its caller has come back, or by two threads under one number of a worker;
    the words of a job are read after its caller has come back, when its memory may be gone;
    nothing can move any more although a caller has not come back (a wake-up was lost).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from llvmlite import ir
from llvmlite.ir import instructions as op

from edgeconv.hardware.cpu import crew_code
from edgeconv.hardware.cpu.crew import INT64_BYTES, MASK_WORDS, CrewField, JobField

CREW_ADDRESS, JOB_ADDRESS, JOB_SPACING = 2**20, 2**24, 2**10
CORES = {CREW_ADDRESS + CrewField.FREE_MASK + INT64_BYTES * word for word in range(MASK_WORDS)}
"""Words that never change here."""

COMPUTED: dict[str, Callable[[int, int], int]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "xor")},
    "and": operator.and_,
    "or": operator.or_,
    "shl": operator.lshift,
    "lshr": operator.rshift,
    "xchg": lambda before, value: value,
    "llvm.smin.i64": min,
    "llvm.smax.i64": max,
}


class Broken(AssertionError):
    """A promise of the crew that some order of steps breaks."""


class ModelJob(NamedTuple):
    """One call of `run`."""

    units: int
    threads: int


class Thread(NamedTuple):
    """Where a thread is, and what it holds: registers and variables on its stack."""

    function: str
    block: str
    index: int
    registers: frozenset[tuple[str, Any]]
    script: tuple[int, ...] = ()
    """Jobs that are still to be run, the one under way first."""
    asleep_on: int = 0
    working: tuple[int, int] | None = None
    """Job and worker of the unit under way."""


class State(NamedTuple):
    """Everything: memory that is shared, threads that are not over, and what has been done."""

    memory: frozenset[tuple[int, int]]
    threads: tuple[Thread | None, ...]
    done: frozenset[tuple[int, int]]
    returned: frozenset[int]


class Model:
    """Callers, each with jobs that it runs one after another, and helpers."""

    def __init__(self, callers: list[list[ModelJob]], helpers: int, sleepers: int = 1) -> None:
        self.code = {function.name: function for function in crew_code.write("riscv64").functions if function.blocks}
        self.blocks = {(name, block.name): block for name, each in self.code.items() for block in each.blocks}
        self.passing = {name: _passing(function) for name, function in self.code.items()}
        self.jobs = [job for script in callers for job in script]
        self.constants = dict.fromkeys(CORES, 0)
        for number, job in enumerate(self.jobs):
            words = {JobField.FUNCTION: 1, JobField.ARGUMENTS: number, JobField.SLEEPERS: sleepers}
            words |= {JobField.UNITS: job.units, JobField.THREADS: job.threads}
            self.constants |= {_job_address(number) + INT64_BYTES * field: word for field, word in words.items()}
        numbers = iter(range(len(self.jobs)))
        scripts = [tuple(next(numbers) for _ in script) for script in callers]
        threads = [self.begin(crew_code.RUN, _job_address(script[0]), script) for script in scripts]
        threads += [self.begin(crew_code.STAY, number + 1, ()) for number in range(helpers)]
        start = State(frozenset(), tuple(threads), frozenset(), frozenset())
        for number in range(len(threads)):
            start = _Step(self, start, number).settled()
        self.start = start

    def begin(self, function: str, argument: int, script: tuple[int, ...]) -> Thread:
        """A thread before its first instruction."""
        names = [each.name for each in self.code[function].args]
        registers = frozenset(zip(names, (CREW_ADDRESS, argument), strict=True))
        return Thread(function, self.code[function].blocks[0].name, 0, registers, script)

    def explore(self, max_states: int) -> int:
        """Visit every state; the number of them."""
        seen, todo = {self.start}, [self.start]
        while todo and len(seen) <= max_states:
            after = set(self._after(todo.pop())) - seen
            seen |= after
            todo += after
        assert not todo, f"more than {max_states} states"
        return len(seen)

    def _after(self, state: State) -> list[State]:
        """The states that one step of any thread leads to; none is an end, where all jobs must be over."""
        able = [number for number, thread in enumerate(state.threads) if thread and not thread.asleep_on]
        missing = set(range(len(self.jobs))) - state.returned
        if not able and missing:
            raise Broken(f"nothing moves, and jobs {missing} are not over")
        return [after for number in able for after in _Step(self, state, number).after()]


class _Step:
    """One thread of a state while it takes a step and what follows up to its next one."""

    def __init__(self, model: Model, state: State, number: int) -> None:
        self.model, self.state, self.number = model, state, number
        thread: Any = state.threads[number]
        self.here, self.block, self.index, self.is_over = thread, thread.block, thread.index, False
        self.memory, self.registers = dict(state.memory), dict(thread.registers)
        self.threads, self.done, self.returned = list(state.threads), state.done, state.returned
        self.threads[number] = None

    def at(self) -> Any:
        """The instruction before which the thread stands."""
        return self.model.blocks[self.here.function, self.block].instructions[self.index]

    def after(self) -> Iterator[State]:
        """What its shared access, or its call, leads to."""
        instruction = self.at()
        if self.here.working is not None:
            if self.here.working[0] in self.returned:
                raise Broken(f"job {self.here.working[0]} has returned while a unit was under way")
            self.here = self.here._replace(working=None)
        elif not isinstance(instruction, op.CallInstr):
            self._access(instruction)
        elif isinstance(instruction.callee, crew_code.Callee):
            self._begin_work(*(self.value(operand) for operand in instruction.args))
            yield self._state()
            return
        else:
            address, operation, value = (self.value(operand) for operand in instruction.args[1:4])
            if operation == crew_code.FUTEX_WAKE_PRIVATE:
                self._wake(address)
            elif self.memory.get(address, 0) == _signed(value, 32):
                self.here = self.here._replace(asleep_on=address)
        self.index += 1
        yield self.settled()

    def _access(self, instruction: Any) -> None:
        """A shared word is read or written."""
        values = [self.value(operand) for operand in instruction.operands]
        if isinstance(instruction, op.StoreAtomicInstr):
            self.memory[values[1]] = values[0]
            return
        before = self.memory.get(values[0], 0)
        self.registers[instruction.name] = before
        if isinstance(instruction, op.AtomicRMW):
            width = instruction.operands[1].type.width
            self.memory[values[0]] = _signed(COMPUTED[instruction.operation](before, values[1]), width)
        elif isinstance(instruction, op.CmpXchg):
            self.registers[instruction.name] = (before, int(before == values[1]))
            if before == values[1]:
                self.memory[values[0]] = values[2]

    def _wake(self, address: int) -> None:
        """Nobody but one thread ever sleeps on a word."""
        for number, other in enumerate(self.threads):
            if other is not None and other.asleep_on == address:
                self.threads[number] = other._replace(asleep_on=0)

    def _begin_work(self, job: int, worker: int, unit: int, stop: int) -> None:
        """A unit begins: nobody else may be doing it, or hold its worker's number."""
        if job in self.returned:
            raise Broken(f"job {job} has returned, and unit {unit} begins")
        if not 0 <= worker < self.model.jobs[job].threads:
            raise Broken(f"job {job} has no worker {worker}")
        if any(other is not None and other.working == (job, worker) for other in self.threads):
            raise Broken(f"two threads are worker {worker} of job {job}")
        if (job, unit) in self.done or not 0 <= unit < self.model.jobs[job].units or stop != unit + 1:
            raise Broken(f"unit {unit} of job {job} is done twice, or is none")
        self.done |= {(job, unit)}
        self.here = self.here._replace(working=(job, worker))

    # --- what follows it ----------------------------------------------------------------------------------------------

    def settled(self) -> State:
        """Go on to the next step of this thread."""
        while not self.is_over and not self._is_step(self.at()):
            self._local(self.at())
        return self._state()

    def _state(self) -> State:
        if not self.is_over:
            registers = frozenset(self.registers.items())
            self.threads[self.number] = self.here._replace(block=self.block, index=self.index, registers=registers)
        memory = frozenset((place, value) for place, value in self.memory.items() if value)
        return State(memory, tuple(self.threads), self.done, self.returned)

    def _is_step(self, instruction: Any) -> bool:
        if isinstance(instruction, op.CallInstr):
            return isinstance(instruction.callee, crew_code.Callee) or instruction.callee.name == "syscall"
        return isinstance(instruction, op.AtomicRMW | op.CmpXchg | op.LoadAtomicInstr | op.StoreAtomicInstr)

    def _local(self, instruction: Any) -> None:
        """An instruction that concerns this thread alone."""
        if isinstance(instruction, op.Ret):
            self._return()
        elif isinstance(instruction, op.Branch):
            self._go(instruction.operands[0])
        elif isinstance(instruction, op.ConditionalBranch):
            condition, yes, no = instruction.operands
            self._go(yes if self.value(condition) else no)
        else:
            if isinstance(instruction, op.StoreInstr):
                value, place = (self.value(operand) for operand in instruction.operands)
                self.registers[place[0]] = value
            elif not isinstance(instruction, op.PhiInstr):
                self.registers[instruction.name] = self._result(instruction)
            self.index += 1

    def _result(self, instruction: Any) -> Any:
        values = [self.value(operand) for operand in instruction.operands]
        if isinstance(instruction, op.AllocaInstr):
            return 0
        if isinstance(instruction, op.CallInstr):  # else the clock stands still, and all run on core 0
            name = instruction.callee.name
            return COMPUTED[name](*(self.value(operand) for operand in instruction.args)) if name in COMPUTED else 0
        if isinstance(instruction, op.LoadInstr):
            return self._constant(values[0]) if isinstance(values[0], int) else self.registers[values[0][0]]
        if isinstance(instruction, op.GEPInstr):
            scale = instruction.source_etype.width // 8
            return values[0] + values[1] * scale if isinstance(values[0], int) else values[0]
        if isinstance(instruction, op.ExtractValue):
            return values[0][instruction.indices[0]]
        if isinstance(instruction, op.SelectInstr):
            return values[1] if values[0] else values[2]
        if isinstance(instruction, op.ICMPInstr):
            return int(getattr(operator, instruction.op.removeprefix("s"))(*values))
        width = instruction.type.width if isinstance(instruction.type, ir.IntType) else 64
        if isinstance(instruction, op.CastInstr):
            source = instruction.operands[0].type
            return values[0] % 2**source.width if instruction.opname == "zext" else _signed(values[0], width)
        if instruction.opname == "lshr":
            values[0] %= 2**width
        return _signed(COMPUTED[instruction.opname](*values), width)

    def _constant(self, address: int) -> int:
        """A word of a job, whose caller must still be there, or of the cores."""
        job = (address - JOB_ADDRESS) // JOB_SPACING
        if job in self.returned:
            raise Broken(f"job {job} has returned, and its words are read")
        return self.model.constants[address]

    def _go(self, target: Any) -> None:
        """Enter a block: all its phis take their values from the block that is left, at once."""
        left, passing = self.block, self.model.passing[self.here.function]
        phis = [instruction for instruction in target.instructions if isinstance(instruction, op.PhiInstr)]
        taken = {
            phi.name: next(self.value(value) for value, source in phi.incomings if source.name == left) for phi in phis
        }
        kept = {name: value for name, value in self.registers.items() if name not in passing}
        self.registers = kept | taken
        self.block, self.index = target.name, 0

    def _return(self) -> None:
        job, *later = self.here.script
        missing = {(job, unit) for unit in range(self.model.jobs[job].units)} - self.done
        if missing or any(other is not None and other.working and other.working[0] == job for other in self.threads):
            raise Broken(f"job {job} returns, and it is not over")
        self.returned |= {job}
        self.is_over = not later
        if self.is_over:
            return
        self.here = self.model.begin(self.here.function, _job_address(later[0]), tuple(later))
        self.block, self.index, self.registers = self.here.block, 0, dict(self.here.registers)

    def value(self, operand: Any) -> Any:
        """A constant, an address on this thread's stack as (name,), or what a register holds."""
        if isinstance(operand, ir.Constant):
            return 0 if operand.constant is None else _signed(int(operand.constant), operand.type.width)
        return (operand.name,) if isinstance(operand, op.AllocaInstr) else self.registers.get(operand.name)


def _passing(function: Any) -> set[str]:
    """Registers that are read in the block alone in which they are written: beyond it their values tell nothing."""
    written = {instruction.name: block for block in function.blocks for instruction in block.instructions}
    elsewhere = {
        value.name
        for block in function.blocks
        for instruction in block.instructions
        for value in instruction.operands
        if isinstance(value, op.Instruction)
        and (written[value.name] is not block or isinstance(instruction, op.PhiInstr))
    }
    on_stack = {
        each.name for block in function.blocks for each in block.instructions if isinstance(each, op.AllocaInstr)
    }
    return {name for name in written if name} - elsewhere - on_stack


def _signed(value: int, width: int) -> int:
    value %= 2**width
    return value - 2**width if width > 1 and value >= 2 ** (width - 1) else value


def _job_address(number: int) -> int:
    return JOB_ADDRESS + number * JOB_SPACING
