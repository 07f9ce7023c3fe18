"""Vector code as expressions: LLVM IR with operators, typed memory, loops and shuffles.

    Value      a number or a vector of any length, which LLVM cuts into this processor's registers; `a + b`, `a < b`,
               and `(a < b).select(a, b)` write an instruction each; Python's numbers stand for constants of its type
    Array      samples of one type from an address on: `rows.at(x).load(16)`, `words[3]`
    Variable   a place on the stack that LLVM turns into a register
    Emitter    one function, with its loops and conditions
    Unit       a function over a block of named int64, which does units of work (crew.py)

Two things are done here because LLVM does them badly by itself: a shuffle of several registers is written as a chain of
two-register shuffles (one instruction each on AVX-512), and stores past the cache are told their alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import cache
from typing import Any

from llvmlite import ir
from llvmlite.ir.instructions import StoreAtomicInstr

from edgeconv.hardware.cpu.processor import ALONE, SCALAR_BYTES, WORK, Scalar

LLVM_TYPE: dict[str, ir.Type] = {
    "uint8": ir.IntType(8),
    "uint16": ir.IntType(16),
    "int16": ir.IntType(16),
    "int32": ir.IntType(32),
    "int64": ir.IntType(64),
    "float16": ir.HalfType(),
    "float32": ir.FloatType(),
    "float64": ir.DoubleType(),
}
UNSIGNED_MAX: dict[Scalar, int] = {"uint8": 0xFF, "uint16": 0xFFFF}
_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
POINTER = ir.PointerType()


def is_float(scalar: Scalar) -> bool:
    """True for float16, float32 and float64."""
    return scalar.startswith("float")


@cache
def vector_type(scalar: Scalar, lanes: int) -> ir.VectorType:
    """LLVM's type for `lanes` values of `scalar`."""
    return ir.VectorType(LLVM_TYPE[scalar], lanes)


class _Splat(ir.Constant):  # type: ignore[misc]
    """LLVM's short form for a constant vector of equal lanes; llvmlite alone would write every lane out."""

    def __init__(self, kind: ir.VectorType, one: ir.Constant) -> None:
        super().__init__(kind, None)
        self._text = f"splat ({one})"

    def _get_reference(self) -> str:
        return self._text


def _constant(kind: ir.Type, value: float) -> ir.Constant:
    """A number of this type, in every lane of a vector."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    one = ir.Constant(element, int(value) if isinstance(element, ir.IntType) else float(value))
    return _Splat(kind, one) if isinstance(kind, ir.VectorType) else one


def _operator(of_integers: str, of_floats: str = "") -> Callable[[Value, Value | float], Value]:
    def write(self: Value, other: Value | float) -> Value:
        instruction = getattr(self._e.block, of_floats if self.is_float else of_integers)
        return Value(self._e, instruction(self.ir, self._given(other)))

    return write


def _comparison(sign: str) -> Callable[[Value, Value | float], Value]:
    def write(self: Value, other: Value | float) -> Value:
        block = self._e.block
        compare = block.fcmp_ordered if self.is_float else block.icmp_signed
        return Value(self._e, compare(sign, self.ir, self._given(other)))

    return write


class Value:
    """A number or a vector of numbers in the function under way. Comparisons of integers are of signed ones."""

    __slots__ = ("_e", "ir")

    def __init__(self, e: Emitter, value: Any) -> None:
        self._e, self.ir = e, value

    @property
    def lanes(self) -> int:
        """Numbers of a vector."""
        return int(self.ir.type.count)

    @property
    def _element(self) -> ir.Type:
        kind = self.ir.type
        return kind.element if isinstance(kind, ir.VectorType) else kind

    @property
    def is_float(self) -> bool:
        """Whether its numbers are floats."""
        return not isinstance(self._element, ir.IntType)

    def like(self, value: float) -> Value:
        """A constant of the same type and length."""
        return Value(self._e, _constant(self.ir.type, value))

    def _given(self, other: Value | float) -> Any:
        return other.ir if isinstance(other, Value) else _constant(self.ir.type, other)

    __add__ = _operator("add", "fadd")
    __sub__ = _operator("sub", "fsub")
    __mul__ = _operator("mul", "fmul")
    __floordiv__ = _operator("sdiv")
    __mod__ = _operator("srem")
    __and__ = _operator("and_")
    __or__ = _operator("or_")
    __xor__ = _operator("xor")
    __lshift__ = _operator("shl")
    __rshift__ = _operator("lshr")
    """Without a sign: zeros come in from above."""

    __lt__ = _comparison("<")
    __le__ = _comparison("<=")
    __gt__ = _comparison(">")
    __ge__ = _comparison(">=")
    equals = _comparison("==")
    differs = _comparison("!=")

    def shift_signed(self, bits: int) -> Value:
        """To the right; the sign stays."""
        return Value(self._e, self._e.block.ashr(self.ir, self._given(bits)))

    def __invert__(self) -> Value:
        return Value(self._e, self._e.block.not_(self.ir))

    def __neg__(self) -> Value:
        return Value(self._e, self._e.block.fneg(self.ir) if self.is_float else self._e.block.neg(self.ir))

    def __abs__(self) -> Value:
        return self.call("llvm.fabs") if self.is_float else self.call("llvm.abs", flags=(I1(0),))

    def is_nan(self) -> Value:
        """Of floats."""
        return Value(self._e, self._e.block.fcmp_unordered("uno", self.ir, self.ir))

    def select(self, one: Value, other: Value | float) -> Value:
        """`one` where this is true, else `other`."""
        return Value(self._e, self._e.block.select(self.ir, one.ir, one._given(other)))

    def min(self, other: Value | float) -> Value:
        """The smaller, neither of which is NaN."""
        return (self < other).select(self, other) if self.is_float else self.call("llvm.smin", other)

    def max(self, other: Value | float) -> Value:
        """The larger, neither of which is NaN."""
        return (self > other).select(self, other) if self.is_float else self.call("llvm.smax", other)

    def times(self, factor: Value | float, total: Value | None = None) -> Value:
        """`self · factor + total`: of floats one instruction where the processor has it."""
        if total is None:
            return self * factor
        return self.call("llvm.fmuladd", factor, total) if self.is_float else total + self * factor

    def call(self, intrinsic: str, *others: Value | float, flags: tuple[ir.Constant, ...] = ()) -> Value:
        """An LLVM intrinsic that takes and gives values of one type, e.g. `llvm.umax`."""
        kind = self.ir.type
        lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
        name = f"{intrinsic}.{lanes}{_SUFFIX.get(str(self._element), str(self._element))}"
        given = [self.ir, *(self._given(other) for other in others)]
        return self._e.call(name, kind, *given, *flags)

    # --- other types ----------------------------------------------------------------------------------------------

    def _as(self, scalar: Scalar) -> ir.Type:
        return vector_type(scalar, self.lanes) if isinstance(self.ir.type, ir.VectorType) else LLVM_TYPE[scalar]

    def convert(self, source: Scalar, target: Scalar) -> Value:
        """Widen exactly, or round to nearest even to a narrower float; integers never narrow here."""
        if source == target:
            return self
        block = self._e.block
        if is_float(source):
            cast = block.fpext if SCALAR_BYTES[target] > SCALAR_BYTES[source] else block.fptrunc
        elif is_float(target):
            cast = block.uitofp if source in UNSIGNED_MAX else block.sitofp
        else:
            cast = block.zext
        return Value(self._e, cast(self.ir, self._as(target)))

    def signed(self, target: Scalar) -> Value:
        """Integers made longer with their sign."""
        return Value(self._e, self._e.block.sext(self.ir, self._as(target)))

    def unsigned(self, target: Scalar) -> Value:
        """Integers made longer by zeros."""
        return Value(self._e, self._e.block.zext(self.ir, self._as(target)))

    def narrow(self, target: Scalar) -> Value:
        """Drop the upper bits of integers."""
        kind = self._as(target)
        return self if self.ir.type == kind else Value(self._e, self._e.block.trunc(self.ir, kind))

    def bits(self, target: Scalar | ir.Type) -> Value:
        """The same bits as another type, of the same length for each lane where it is a sample type."""
        kind = target if isinstance(target, ir.Type) else self._as(target)
        return Value(self._e, self._e.block.bitcast(self.ir, kind))

    def any(self) -> Value:
        """Whether a lane of these conditions is true."""
        flags = self.bits(ir.IntType(self.lanes))
        return Value(self._e, self._e.block.icmp_unsigned("!=", flags.ir, flags.ir.type(0)))

    def round_to_int(self) -> Value:
        """float32 or float64 to int32, to nearest with ties to even (the mode that every thread starts in)."""
        name = f"llvm.lrint.v{self.lanes}i32.v{self.lanes}{_SUFFIX[str(self._element)]}"
        return self._e.call(name, vector_type("int32", self.lanes), self.ir)

    def split_bytes(self) -> Value:
        """Bytes as 16-bit numbers, those of even places before those of odd ones: no byte moves to another place."""
        pairs = self.bits(vector_type("uint16", self.lanes // 2))
        even, odd = pairs & UNSIGNED_MAX["uint8"], pairs >> 8
        return even.shuffle_with(odd, list(range(self.lanes)))

    def join_bytes(self) -> Value:
        """What `split_bytes` took apart, of 16-bit numbers that are bytes."""
        even, odd = self.slices(self.lanes // 2)
        return (even | (odd << 8)).bits(vector_type("uint8", self.lanes))

    def shuffle_with(self, other: Value, mask: list[int]) -> Value:
        """Lanes of this vector, and then of the other, by their numbers."""
        places = ir.Constant(ir.VectorType(I32, len(mask)), mask)
        return Value(self._e, self._e.block.shuffle_vector(self.ir, other.ir, places))

    def slices(self, lanes: int) -> list[Value]:
        """Pieces of `lanes`."""
        if self.lanes == lanes:
            return [self]
        starts = range(0, self.lanes, lanes)
        return [self.shuffle_with(self, list(range(start, start + lanes))) for start in starts]


def shuffle(sources: Sequence[Value], picks: Sequence[tuple[int, int]]) -> Value:
    """A vector whose lane i is lane `picks[i][1]` of `sources[picks[i][0]]`; all of one length.

    Sources are merged one after the other: lanes already in place stay, those of the next source join them.
    """
    lanes = sources[0].lanes
    first, *others = sorted({number for number, _ in picks})
    if not others:
        return sources[first].shuffle_with(sources[first], [lane for _, lane in picks])
    merged, done = sources[first], False
    for joining in others:
        mask = []
        for place, (number, lane) in enumerate(picks):
            if number == joining:
                mask.append(lanes + lane)
            elif number == first and not done:
                mask.append(lane)
            else:
                mask.append(place)  # already there, or to be filled by a later source
        merged, done = merged.shuffle_with(sources[joining], mask), True
    return merged


def pieces(values: Sequence[Value], lanes: int) -> list[Value]:
    """Vectors of one length, one behind the other, joined or cut into pieces of `lanes`."""
    joined = list(values)
    while (count := 2 * joined[0].lanes) <= lanes:
        pairs = zip(joined[::2], joined[1::2], strict=True)
        joined = [first.shuffle_with(second, list(range(count))) for first, second in pairs]
    return [piece for value in joined for piece in value.slices(lanes)]


class Array:
    """Samples of one type in memory, from an address on."""

    __slots__ = ("_e", "address", "scalar")

    def __init__(self, e: Emitter, address: Any, scalar: Scalar) -> None:
        self._e, self.address, self.scalar = e, address, scalar

    def of(self, scalar: Scalar) -> Array:
        """Samples of another type from the same address on."""
        return Array(self._e, self.address, scalar)

    def at(self, index: Value | int) -> Array:
        """What begins at sample `index`."""
        return Array(self._e, self._e.gep(self.address, LLVM_TYPE[self.scalar], index), self.scalar)

    def bytes_on(self, offset_bytes: Value | int) -> Array:
        """The same pointer, `offset_bytes` further on."""
        return Array(self._e, self._e.gep(self.address, LLVM_TYPE["uint8"], offset_bytes), self.scalar)

    @property
    def number(self) -> Value:
        """The address as an int64."""
        return Value(self._e, self._e.block.ptrtoint(self.address, I64))

    def load(self, lanes: int) -> Value:
        """A vector of samples, from any address that suits one."""
        kind = vector_type(self.scalar, lanes)
        return Value(self._e, self._e.block.load(self.address, typ=kind, align=SCALAR_BYTES[self.scalar]))

    def broadcast(self, lanes: int) -> Value:
        """The first sample in every lane."""
        one = self.load(1)
        return one.shuffle_with(one, [0] * lanes)

    def store(self, value: Value, aligned_bytes: int | None = None) -> None:
        """Store a vector; with `aligned_bytes` past the caches to an address that is a multiple of it."""
        stored = self._e.block.store(value.ir, self.address, align=aligned_bytes or SCALAR_BYTES[self.scalar])
        if aligned_bytes:
            stored.set_metadata("nontemporal", self._e.module.add_metadata([I32(1)]))

    def __getitem__(self, index: Value | int) -> Value:
        """One sample, as a number."""
        return Value(self._e, self._e.block.load(self.at(index).address, typ=LLVM_TYPE[self.scalar]))

    def __setitem__(self, index: Value | int, value: Value) -> None:
        self._e.block.store(value.ir, self.at(index).address)

    def prefetch(self) -> None:
        """Ask for a cache line that will be read soon, into the L2 cache."""
        read, keep_in_l2, data = I32(0), I32(2), I32(1)
        self._e.call("llvm.prefetch.p0", ir.VoidType(), self.address, read, keep_in_l2, data)

    # --- what other threads read and write ------------------------------------------------------------------------

    def load_shared(self, order: str = "seq_cst") -> Value:
        """The first sample, which another thread may write; what its writer wrote before it is seen after it."""
        kind, size = LLVM_TYPE[self.scalar], SCALAR_BYTES[self.scalar]
        return Value(self._e, self._e.block.load_atomic(self.address, order, size, typ=kind))

    def store_shared(self, value: Value, order: str = "release") -> None:
        """Write the first sample, which another thread may read."""
        # llvmlite's own store_atomic asks for the type that a pointer points to, which pointers have no more.
        block, size = self._e.block, SCALAR_BYTES[self.scalar]
        block._insert(StoreAtomicInstr(block.block, value.ir, self.address, order, size))

    def swap(self, operation: str, value: Value | int) -> Value:
        """Change the first sample by "add", "or" or "xchg", and give what stood there before."""
        given = value.ir if isinstance(value, Value) else LLVM_TYPE[self.scalar](value)
        return Value(self._e, self._e.block.atomic_rmw(operation, self.address, given, "seq_cst"))


class Variable:
    """A place on the stack that LLVM turns into a register."""

    def __init__(self, e: Emitter, initial: Value) -> None:
        self._e, self._kind = e, initial.ir.type
        with e.block.goto_entry_block():
            self._place = e.block.alloca(self._kind)
        self.value = initial

    @property
    def value(self) -> Value:
        """What it holds now."""
        return Value(self._e, self._e.block.load(self._place, typ=self._kind))

    @value.setter
    def value(self, value: Value) -> None:
        """Put something else there."""
        self._e.block.store(value.ir, self._place)


class Emitter:
    """Writes one function. `block` is llvmlite's builder."""

    def __init__(self, module: ir.Module, name: str, arguments: Sequence[ir.Type]) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
        self.block = ir.IRBuilder(self.function.append_basic_block("entry"))

    def int64(self, value: int) -> Value:
        """A constant."""
        return Value(self, I64(value))

    def splat(self, scalar: Scalar, lanes: int, value: float) -> Value:
        """The same constant in every lane."""
        return Value(self, _constant(vector_type(scalar, lanes), value))

    def array(self, address: Value, scalar: Scalar) -> Array:
        """What lies at an address that is known as a number."""
        return Array(self, self.block.inttoptr(address.ir, POINTER), scalar)

    def variable(self, initial: Value | int) -> Variable:
        """A new one; int64 where a Python number is given."""
        return Variable(self, self.int64(initial) if isinstance(initial, int) else initial)

    def gep(self, address: Any, kind: ir.Type, index: Value | int) -> Any:
        """The address of element `index` of an array of `kind`."""
        place = I64(index) if isinstance(index, int) else index.ir
        return self.block.gep(address, [place], source_etype=kind)

    def call(self, name: str, result: ir.Type, *arguments: Any, some: bool = False) -> Value:
        """Call an intrinsic or a function of libc; `some` where any number of arguments follow the first."""
        types = [argument.type for argument in arguments][: 1 if some else None]
        kind = ir.FunctionType(result, types, var_arg=some)
        declared = self.module.globals.get(name) or ir.Function(self.module, kind, name)
        return Value(self, self.block.call(declared, arguments))

    # --- loops and conditions -------------------------------------------------------------------------------------

    @contextmanager
    def count(self, start: Value | int, stop: Value, step: Value | int = 1) -> Iterator[Value]:
        """`for index in range(start, stop, step)`."""
        before = self.block.block
        head, body, after = (self.function.append_basic_block(part) for part in ("head", "body", "after"))
        self.block.branch(head)
        self.block.position_at_end(head)
        index = Value(self, self.block.phi(I64))
        index.ir.add_incoming(I64(start) if isinstance(start, int) else start.ir, before)
        self.block.cbranch((index < stop).ir, body, after)
        self.block.position_at_end(body)
        yield index
        index.ir.add_incoming((index + step).ir, self.block.block)
        self.block.branch(head)
        self.block.position_at_end(after)

    @contextmanager
    def blocks(self, start: Value | int, stop: Value, size: int, step: Value | int | None = None) -> Iterator[Value]:
        """Blocks of `size` from `start` to `stop`, the last one moved back; none where they do not fit."""
        first = self.int64(start) if isinstance(start, int) else start
        last = stop - size
        with self.count(first, (first <= last).select(stop, first), size if step is None else step) as index:
            yield index.min(last)

    @contextmanager
    def repeat(self) -> Iterator[Callable[[Value], None]]:
        """A loop without end; what it yields, called with a condition, leaves the loop where that is true."""
        body, after = self.function.append_basic_block("again"), self.function.append_basic_block("over")

        def leave(condition: Value) -> None:
            stay = self.function.append_basic_block("stay")
            self.block.cbranch(condition.ir, after, stay)
            self.block.position_at_end(stay)

        self.block.branch(body)
        self.block.position_at_end(body)
        yield leave
        self.block.branch(body)
        self.block.position_at_end(after)

    @contextmanager
    def where(self, condition: Value) -> Iterator[None]:
        """`if condition:`."""
        with self.block.if_then(condition.ir):
            yield


class Unit(Emitter):
    """A function over (arguments, worker, ...), `more` int64; arguments are named, and read where they are used.

    `void work(int64 *arguments, int64 worker, int64 first_unit, int64 stop_unit)` does units of work (crew.py).
    """

    def __init__(self, module: ir.Module, name: str = WORK, more: int = 2) -> None:
        super().__init__(module, name, [POINTER, *[I64] * (1 + more)])
        block, *numbers = self.function.args
        self.words = Array(self, block, "int64")
        self.worker, *self.more = (Value(self, number) for number in numbers)

    def __getitem__(self, name: IntEnum) -> Value:
        """The argument of that name."""
        return self.words[int(name)]

    def at(self, name: IntEnum, scalar: Scalar = "uint8") -> Array:
        """What lies at the address that the argument of that name holds."""
        return self.array(self[name], scalar)

    def table(self, name: IntEnum, index: Value | int) -> Value:
        """An element of a table of int32, as int64."""
        return self.at(name, "int32")[index].signed("int64")

    def text_with_alone(self, units: IntEnum) -> str:
        """End `work`, add `void alone(int64 *arguments)`, which does all units as worker 0, and give the module's text.

        One argument is the fastest call from Python.
        """
        self.block.ret_void()
        alone = Emitter(self.module, ALONE, [POINTER])
        (block,) = alone.function.args
        count = Array(alone, block, "int64")[int(units)]
        alone.block.call(self.function, [block, I64(0), I64(0), count.ir])
        alone.block.ret_void()
        return str(self.module)
