"""All interleavings of the crew's generated code: the very IR that is compiled, interpreted step by step.

A step is one access to memory that threads share, or one call of the system; what lies between two steps concerns one
thread alone. `explore` visits every state that any order of steps can reach (memory is sequentially consistent here)
and raises `Broken` where

    a unit is done twice, never, after its caller has come back, or by two threads under one number of a worker;
    nothing can move any more although a caller has not come back (a wake-up was lost).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from llvmlite import ir
from llvmlite.ir import instructions as op

from edgeconv.hardware.cpu import crew_code
from edgeconv.hardware.cpu.crew_code import INT64_BYTES, MASK_WORDS, CrewField, JobField

CREW_ADDRESS, JOB_ADDRESS = 2**20, 2**24
JOB_SPACING = 2**10
CORES = [CREW_ADDRESS + CrewField.FREE_MASK + INT64_BYTES * word for word in range(MASK_WORDS)]
STORES = (op.StoreInstr, op.StoreAtomicInstr)


class Broken(AssertionError):
    """A promise of the crew that some order of steps breaks."""


@dataclass(frozen=True)
class ModelJob:
    """One call of `run`."""

    units: int
    threads: int


@dataclass(frozen=True)
class Thread:
    """Where a thread is, and what it holds: live registers and variables on its stack."""

    function: str
    block: str
    index: int
    registers: tuple[tuple[str, Any], ...]
    script: tuple[int, ...] = ()
    """Jobs that are still to be run after this one."""
    asleep_on: int = 0
    working: tuple[int, int, int] | None = None
    """Job, worker and unit under way."""
    over: bool = False


@dataclass(frozen=True)
class State:
    """Everything: memory that is shared, threads, and what has been done."""

    memory: tuple[tuple[int, int], ...]
    threads: tuple[Thread, ...]
    done: frozenset[tuple[int, int]]
    returned: frozenset[int]


class Model:
    """Callers, each with jobs that it runs one after another, and helpers."""

    def __init__(self, callers: list[list[ModelJob]], helpers: int, limit: int = 99, sleepers: int = 1) -> None:
        self.module = crew_code.write(0, None)
        self.jobs = [job for script in callers for job in script]
        self.constants: dict[int, int] = dict.fromkeys(CORES, 0)
        for number, job in enumerate(self.jobs):
            words = {
                JobField.FUNCTION: 1,
                JobField.ARGUMENTS: number,
                JobField.UNITS: job.units,
                JobField.THREADS: job.threads,
                JobField.LIMIT: limit,
                JobField.SLEEPERS: sleepers,
            }
            for field, value in words.items():
                self.constants[JOB_ADDRESS + number * JOB_SPACING + 8 * field] = value
        threads, first = [], 0
        for script in callers:
            numbers = tuple(range(first, first + len(script)))
            first += len(script)
            threads.append(self._begin(crew_code.RUN, (CREW_ADDRESS, _job_address(numbers[0])), numbers))
        threads += [self._begin(crew_code.STAY, (CREW_ADDRESS, number + 1), ()) for number in range(helpers)]
        self.start = State((), tuple(threads), frozenset(), frozenset())

    # --- exploring ----------------------------------------------------------------------------------------------------

    def explore(self, most_states: int) -> int:
        """Visit every state; the number of them."""
        first = self._settle_all(self.start)
        seen, todo = {first}, [first]
        while todo:
            state = todo.pop()
            moved = False
            for after in self._after(state):
                moved = True
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
                    if len(seen) > most_states:
                        raise RuntimeError(f"more than {most_states} states")
            if not moved:
                self._check_end(state)
        return len(seen)

    def wander(self, random: Random, walks: int) -> None:
        """Go along so many random orders to their ends, where there are too many states to visit them all."""
        first = self._settle_all(self.start)
        for _ in range(walks):
            state = first
            while after := list(self._after(state)):
                state = random.choice(after)
            self._check_end(state)

    def _check_end(self, state: State) -> None:
        if state.returned != frozenset(range(len(self.jobs))):
            raise Broken(f"nothing moves, and jobs {set(range(len(self.jobs))) - state.returned} are not over")

    def _after(self, state: State) -> Iterator[State]:
        for number, thread in enumerate(state.threads):
            if not thread.over and not thread.asleep_on:
                yield from self._step(state, number)

    # --- one step -----------------------------------------------------------------------------------------------------

    def _step(self, state: State, number: int) -> Iterator[State]:
        """The shared access, or the call, that the thread stands before."""
        thread = state.threads[number]
        instruction = self._at(thread)
        run = _Running(self, state, number)
        if thread.working is not None:
            yield run.end_work()
        elif isinstance(instruction, op.CallInstr):
            yield from run.call(instruction)
        else:
            run.access(instruction)
            yield run.settled()

    def _settle_all(self, state: State) -> State:
        for number in range(len(state.threads)):
            state = _Running(self, state, number).settled(advance=False)
        return state

    def _begin(self, function: str, arguments: tuple[int, ...], numbers: tuple[int, ...]) -> Thread:
        code = self._functions()[function]
        registers = {argument.name: value for argument, value in zip(code.args, arguments, strict=True)}
        return Thread(function, code.blocks[0].name, 0, tuple(sorted(registers.items())), numbers)

    def _at(self, thread: Thread) -> Any:
        return self.block(thread.function, thread.block).instructions[thread.index]

    @cache  # noqa: B019 - a model lives as long as its test
    def _functions(self) -> dict[str, Any]:
        return {function.name: function for function in self.module.functions if function.blocks}

    @cache  # noqa: B019
    def block(self, function: str, name: str) -> Any:
        """A block by name."""
        return next(block for block in self._functions()[function].blocks if block.name == name)

    @cache  # noqa: B019
    def live(self, function: str) -> dict[tuple[str, int], frozenset[str]]:
        """Registers that are read later, before each instruction; variables on the stack are always live."""
        blocks = self._functions()[function].blocks
        stack = {i.name for block in blocks for i in block.instructions if isinstance(i, op.AllocaInstr)}
        into: dict[str, frozenset[str]] = {block.name: frozenset() for block in blocks}
        result: dict[tuple[str, int], frozenset[str]] = {}
        changed = True
        while changed:
            changed = False
            for block in reversed(blocks):
                last = block.instructions[-1]
                alive: set[str] = set()
                for target in _targets(last):
                    alive |= into[target.name]
                    alive |= {
                        value.name
                        for phi in target.instructions
                        if isinstance(phi, op.PhiInstr)
                        for value, source in phi.incomings
                        if source is block and not isinstance(value, ir.Constant)
                    }
                for index in range(len(block.instructions) - 1, -1, -1):
                    instruction = block.instructions[index]
                    alive.discard(instruction.name)
                    if not isinstance(instruction, op.PhiInstr):
                        alive |= {value.name for value in _read(instruction)}
                    result[block.name, index] = frozenset(alive | stack)
                before = result[block.name, 0]
                if before != into[block.name]:
                    into[block.name], changed = before, True
        return result


class _Running:
    """One thread of a state while it takes a step and what follows up to its next one."""

    def __init__(self, model: Model, state: State, number: int) -> None:
        self.model, self.state, self.number = model, state, number
        self.thread = state.threads[number]
        self.memory = dict(state.memory)
        self.registers = dict(self.thread.registers)
        self.done, self.returned = state.done, state.returned
        self.threads = list(state.threads)

    # --- what a step may be -------------------------------------------------------------------------------------------

    def access(self, instruction: Any) -> None:
        """A shared word is read or written."""
        if isinstance(instruction, op.AtomicRMW):
            pointer, value = (self.value(operand) for operand in instruction.operands)
            width = instruction.operands[1].type.width
            before = self.memory.get(pointer, 0)
            changed = {"add": before + value, "or": before | value, "xchg": value}[instruction.operation]
            self.memory[pointer] = _signed(changed, width)
            self.registers[instruction.name] = before
        elif isinstance(instruction, op.CmpXchg):
            pointer, expected, value = (self.value(operand) for operand in instruction.operands)
            before = self.memory.get(pointer, 0)
            if before == expected:
                self.memory[pointer] = value
            self.registers[instruction.name] = (before, int(before == expected))
        elif isinstance(instruction, STORES):
            value, pointer = (self.value(operand) for operand in instruction.operands)
            self.memory[pointer] = value
        else:
            self.registers[instruction.name] = self.memory.get(self.value(instruction.operands[0]), 0)

    def call(self, instruction: Any) -> Iterator[State]:
        """A unit begins, or the system is asked to sleep or to wake."""
        if isinstance(instruction.callee, crew_code._Callee):
            yield self.begin_work(instruction)
            return
        address, operation, value = (self.value(operand) for operand in instruction.args[1:4])
        if operation == crew_code.FUTEX_WAIT_PRIVATE:
            if self.memory.get(address, 0) == _signed(value, 32):
                self.thread = replace(self.thread, asleep_on=address)
            yield self.settled()
            return
        sleepers = [i for i, thread in enumerate(self.threads) if thread.asleep_on == address]
        if not sleepers:
            yield self.settled()
        for first in sleepers:  # whoever is woken first; a wake-up of more takes those after it
            chosen = (sleepers[sleepers.index(first) :] + sleepers)[: min(value, len(sleepers))]
            run = _Running(self.model, self.state, self.number)
            for i in chosen:
                run.threads[i] = replace(run.threads[i], asleep_on=0)
            yield run.settled()

    def begin_work(self, instruction: Any) -> State:
        """A unit begins: nobody else may be doing it, or hold its worker's number."""
        job, worker, unit, stop = (self.value(operand) for operand in instruction.args)
        units = range(unit, stop)
        if job in self.returned:
            raise Broken(f"job {job} has returned, and unit {unit} begins")
        if not 0 <= worker < self.model.jobs[job].threads:
            raise Broken(f"job {job} has no worker {worker}")
        for other in self.threads:
            if other.working is not None and other.working[0] == job and other.working[1] == worker:
                raise Broken(f"two threads are worker {worker} of job {job}")
        for each in units:
            if (job, each) in self.done or not 0 <= each < self.model.jobs[job].units:
                raise Broken(f"unit {each} of job {job} is done twice, or is none")
        self.done |= {(job, each) for each in units}
        self.thread = replace(self.thread, working=(job, worker, unit))
        return self._state()

    def end_work(self) -> State:
        """The unit under way is over."""
        assert self.thread.working is not None
        if self.thread.working[0] in self.returned:
            raise Broken(f"job {self.thread.working[0]} has returned while a unit was under way")
        self.thread = replace(self.thread, working=None)
        return self.settled()

    # --- what follows it ----------------------------------------------------------------------------------------------

    def settled(self, advance: bool = True) -> State:
        """Go on to the next step of this thread."""
        if advance:
            self.thread = replace(self.thread, index=self.thread.index + 1)
        while not self.thread.over:
            instruction = self.model._at(self.thread)
            if self._is_step(instruction):
                break
            self._local(instruction)
        return self._state()

    def _state(self) -> State:
        thread = self.thread
        if not thread.over:
            live = self.model.live(thread.function)[thread.block, thread.index]
            if thread.working is not None:
                live = self.model.live(thread.function)[thread.block, thread.index + 1]
            kept = tuple(sorted((name, value) for name, value in self.registers.items() if name in live))
            thread = replace(thread, registers=kept)
        self.threads[self.number] = thread
        memory = tuple(sorted((place, value) for place, value in self.memory.items() if value))
        return State(memory, tuple(self.threads), self.done, self.returned)

    def _is_step(self, instruction: Any) -> bool:
        if isinstance(instruction, op.AtomicRMW | op.CmpXchg):
            return True
        if isinstance(instruction, op.CallInstr):
            return isinstance(instruction.callee, crew_code._Callee) or instruction.callee.name == "syscall"
        if isinstance(instruction, op.LoadInstr | op.LoadAtomicInstr):
            place = self.value(instruction.operands[0])
            return isinstance(place, int) and place not in self.model.constants
        if isinstance(instruction, STORES):
            return isinstance(self.value(instruction.operands[1]), int)
        return False

    def _local(self, instruction: Any) -> None:
        """An instruction that concerns this thread alone."""
        if isinstance(instruction, op.Ret):
            self._return()
            return
        if isinstance(instruction, op.Branch):
            self._go(instruction.operands[0])
            return
        if isinstance(instruction, op.ConditionalBranch):
            condition, yes, no = instruction.operands
            self._go(yes if self.value(condition) else no)
            return
        if isinstance(instruction, op.StoreInstr):
            value, place = instruction.operands
            self.registers[self.value(place)[0]] = self.value(value)
        elif not isinstance(instruction, op.PhiInstr):
            self.registers[instruction.name] = self._result(instruction)
        self.thread = replace(self.thread, index=self.thread.index + 1)

    def _result(self, instruction: Any) -> Any:
        if isinstance(instruction, op.AllocaInstr):
            return 0
        if isinstance(instruction, op.CallInstr):
            return 0  # the clock stands still, every wait is over at once, and all run on core 0
        if isinstance(instruction, op.LoadInstr | op.LoadAtomicInstr):
            place = self.value(instruction.operands[0])
            return self.model.constants[place] if isinstance(place, int) else self.registers[place[0]]
        values = [self.value(operand) for operand in instruction.operands]
        if isinstance(instruction, op.GEPInstr):
            scale = instruction.source_etype.width // 8
            place = values[0]
            return place + values[1] * scale if isinstance(place, int) else place
        if isinstance(instruction, op.ExtractValue):
            return values[0][instruction.indices[0]]
        if isinstance(instruction, op.ICMPInstr):
            first, second = values
            if instruction.opname == "icmp" and instruction.op[0] == "u":
                first, second = first % 2**64, second % 2**64
            relation = instruction.op.lstrip("us") if instruction.op not in ("eq", "ne") else instruction.op
            found = {"eq": first == second, "ne": first != second, "lt": first < second, "gt": first > second,
                     "le": first <= second, "ge": first >= second}  # fmt: skip
            return int(found[relation])
        if isinstance(instruction, op.SelectInstr):
            return values[1] if values[0] else values[2]
        if isinstance(instruction, op.CastInstr):
            return _cast(instruction, values[0])
        first, second = values
        width = instruction.type.width
        results = {
            "add": lambda: first + second,
            "sub": lambda: first - second,
            "mul": lambda: first * second,
            "and": lambda: first & second,
            "or": lambda: first | second,
            "xor": lambda: first ^ second,
            "shl": lambda: first << second,
            "lshr": lambda: (first % 2**width) >> second,
        }
        return _signed(results[instruction.opname](), width)

    def _go(self, target: Any) -> None:
        """Enter a block: all its phis take their values from the block that is left, at once."""
        left = self.thread.block
        taken = {}
        for phi in target.instructions:
            if isinstance(phi, op.PhiInstr):
                taken[phi.name] = next(self.value(value) for value, source in phi.incomings if source.name == left)
        self.registers |= taken
        self.thread = replace(self.thread, block=target.name, index=0)

    def _return(self) -> None:
        thread = self.thread
        if not thread.script:
            raise Broken("a helper has left, and nobody told it to")
        job, *later = thread.script
        missing = {(job, unit) for unit in range(self.model.jobs[job].units)} - self.done
        busy = [other.working for other in self.threads if other.working is not None and other.working[0] == job]
        if missing or busy:
            raise Broken(f"job {job} returns, and {missing or busy} is not over")
        self.returned |= {job}
        if not later:
            self.thread, self.registers = replace(thread, over=True, registers=(), block="", index=0, script=()), {}
            return
        self.thread = self.model._begin(thread.function, (CREW_ADDRESS, _job_address(later[0])), tuple(later))
        self.registers = dict(self.thread.registers)

    def value(self, operand: Any) -> Any:
        """A constant, an address on this thread's stack as (name,), or what a register holds."""
        if isinstance(operand, ir.Constant):
            if operand.constant is None:
                return 0
            return _signed(int(operand.constant), operand.type.width)
        if isinstance(operand, op.AllocaInstr):
            return (operand.name,)
        return self.registers[operand.name]


def _targets(instruction: Any) -> list[Any]:
    return [operand for operand in instruction.operands if isinstance(operand, ir.Block)]


def _read(instruction: Any) -> list[Any]:
    """Registers that an instruction reads."""
    found = []
    for operand in instruction.operands:
        value = operand.address if isinstance(operand, crew_code._Callee) else operand
        if isinstance(value, op.Instruction | ir.Argument) and not isinstance(value, op.AllocaInstr):
            found.append(value)
    return found


def _cast(instruction: Any, value: Any) -> Any:
    source, target = instruction.operands[0].type, instruction.type
    if instruction.opname == "zext":
        return value % 2**source.width
    return _signed(value, target.width) if instruction.opname == "trunc" else value


def _signed(value: int, width: int) -> int:
    value %= 2**width
    return value - 2**width if width > 1 and value >= 2 ** (width - 1) else value


def _job_address(number: int) -> int:
    return JOB_ADDRESS + number * JOB_SPACING
