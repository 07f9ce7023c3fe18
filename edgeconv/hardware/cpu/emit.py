"""A small vocabulary for writing vector code: LLVM IR with loops, typed vectors and shuffles.

Values are LLVM vectors of any length; LLVM cuts them into this processor's registers. Two things are done here
because LLVM does them badly by itself: a shuffle of several registers is written as a chain of two-register
shuffles (one instruction each on AVX-512), and stores past the cache are told their alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from llvmlite import ir

Scalar = Literal["u8", "u16", "i16", "i32", "i64", "f16", "f32", "f64"]
"""The sample types that generated code works in."""
SCALAR_BYTES: dict[Scalar, int] = {"u8": 1, "u16": 2, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "f32": 4, "f64": 8}

Value = Any
"""An llvmlite IR value."""

I64 = ir.IntType(64)
I32 = ir.IntType(32)
POINTER = ir.PointerType()

_LLVM_TYPE: dict[Scalar, ir.Type] = {
    "u8": ir.IntType(8),
    "u16": ir.IntType(16),
    "i16": ir.IntType(16),
    "i32": I32,
    "i64": I64,
    "f16": ir.HalfType(),
    "f32": ir.FloatType(),
    "f64": ir.DoubleType(),
}
_INTRINSIC_SUFFIX: dict[Scalar, str] = {
    "u8": "i8",
    "u16": "i16",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
    "f16": "f16",
    "f32": "f32",
    "f64": "f64",
}

UNSIGNED_MAX: dict[Scalar, int] = {"u8": 0xFF, "u16": 0xFFFF}


def is_float(scalar: Scalar) -> bool:
    """True for f16, f32 and f64."""
    return scalar in ("f16", "f32", "f64")


def vector_type(scalar: Scalar, lanes: int) -> ir.VectorType:
    """LLVM's type for `lanes` values of `scalar`."""
    return ir.VectorType(_LLVM_TYPE[scalar], lanes)


def splat(scalar: Scalar, lanes: int, value: float) -> ir.Constant:
    """The same constant in every lane."""
    exact = ir.Constant(_LLVM_TYPE[scalar], float(value) if is_float(scalar) else int(value))
    return _Splat(vector_type(scalar, lanes), f"splat ({exact})")


class _Splat(ir.Constant):  # type: ignore[misc]
    """LLVM's short form for a constant vector of equal lanes; llvmlite alone would write every lane out."""

    def __init__(self, kind: ir.VectorType, text: str) -> None:
        super().__init__(kind, None)
        self._text = text

    def _get_reference(self) -> str:
        return self._text


class Emitter:
    """Writes one function. `block` is llvmlite's builder, for plain scalar instructions."""

    def __init__(self, module: ir.Module, name: str, arguments: Sequence[ir.Type]) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
        self.block = ir.IRBuilder(self.function.append_basic_block("entry"))

    # --- scalars ------------------------------------------------------------------------------------------------

    def int64(self, value: int) -> ir.Constant:
        """A constant."""
        return ir.Constant(I64, value)

    def minimum(self, a: Value, b: Value) -> Value:
        """The smaller of two signed numbers."""
        return self.block.select(self.block.icmp_signed("<", a, b), a, b)

    def maximum(self, a: Value, b: Value) -> Value:
        """The larger of two signed numbers."""
        return self.block.select(self.block.icmp_signed(">", a, b), a, b)

    def variable(self, initial: Value) -> Value:
        """A place on the stack that LLVM turns into a register."""
        with self.block.goto_entry_block():
            place = self.block.alloca(initial.type)
        self.block.store(initial, place)
        return place

    @contextmanager
    def count(self, start: Value, stop: Value, step: Value | int = 1) -> Iterator[Value]:
        """`for index in range(start, stop, step)`."""
        before = self.block.block
        head, body, after = (self.function.append_basic_block(part) for part in ("head", "body", "after"))
        self.block.branch(head)
        self.block.position_at_end(head)
        index = self.block.phi(I64)
        index.add_incoming(start, before)
        self.block.cbranch(self.block.icmp_signed("<", index, stop), body, after)
        self.block.position_at_end(body)
        yield index
        index.add_incoming(self.block.add(index, self.int64(step) if isinstance(step, int) else step), self.block.block)
        self.block.branch(head)
        self.block.position_at_end(after)

    @contextmanager
    def blocks(self, start: Value, stop: Value, size: int, step: Value | int | None = None) -> Iterator[Value]:
        """Blocks of `size` from `start` to `stop`, the last one moved back; none where they do not fit."""
        last = self.block.sub(stop, self.int64(size))
        fits = self.block.icmp_signed("<=", start, last)
        with self.count(start, self.block.select(fits, stop, start), size if step is None else step) as index:
            yield self.minimum(index, last)

    @contextmanager
    def repeat(self) -> Iterator[Callable[[Value], None]]:
        """A loop without end; what it yields, called with a condition, leaves the loop where that is true."""
        body, after = self.function.append_basic_block("again"), self.function.append_basic_block("over")

        def leave(condition: Value) -> None:
            stay = self.function.append_basic_block("stay")
            self.block.cbranch(condition, after, stay)
            self.block.position_at_end(stay)

        self.block.branch(body)
        self.block.position_at_end(body)
        yield leave
        self.block.branch(body)
        self.block.position_at_end(after)

    # --- memory -------------------------------------------------------------------------------------------------

    def address(self, base: Value, scalar: Scalar, index: Value) -> Value:
        """Address of element `index` of an array of `scalar` at `base`."""
        return self.block.gep(base, [index], source_etype=_LLVM_TYPE[scalar])

    def address_of_int64(self, base: Value, index: Value | int) -> Value:
        """Address of element `index` of an array of int64 at `base`."""
        return self.block.gep(base, [self.int64(index) if isinstance(index, int) else index], source_etype=I64)

    def load(self, address: Value, scalar: Scalar, lanes: int) -> Value:
        """`lanes` elements, from any address that suits one element."""
        return self.block.load(address, typ=vector_type(scalar, lanes), align=SCALAR_BYTES[scalar])

    def broadcast(self, address: Value, scalar: Scalar, lanes: int) -> Value:
        """One element in every lane."""
        one = self.load(address, scalar, 1)
        return self._shuffle_two(one, one, [0] * lanes)

    def store(self, value: Value, address: Value, scalar: Scalar, aligned_bytes: int | None = None) -> None:
        """Store a vector; with `aligned_bytes` past the caches to an address that is a multiple of it."""
        stored = self.block.store(value, address, align=aligned_bytes or SCALAR_BYTES[scalar])
        if aligned_bytes:
            stored.set_metadata("nontemporal", self.module.add_metadata([I32(1)]))

    def prefetch(self, address: Value) -> None:
        """Ask for a cache line that will be read soon, into the L2 cache."""
        name = "llvm.prefetch.p0"
        declared = self.module.globals.get(name)
        if declared is None:
            declared = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [POINTER, I32, I32, I32]), name)
        read, keep_in_l2, data = I32(0), I32(2), I32(1)
        self.block.call(declared, [address, read, keep_in_l2, data])

    # --- vectors ------------------------------------------------------------------------------------------------

    def call(self, intrinsic: str, scalar: Scalar, *operands: Value) -> Value:
        """An LLVM intrinsic that takes and gives vectors of one type, e.g. `llvm.smax`."""
        vector = operands[0].type
        name = f"{intrinsic}.v{vector.count}{_INTRINSIC_SUFFIX[scalar]}"
        declared = self.module.globals.get(name)
        if declared is None:
            flags = [ir.IntType(1)] if intrinsic == "llvm.abs" else []
            kind = ir.FunctionType(vector, [vector] * len(operands) + flags)
            declared = ir.Function(self.module, kind, name)
        flag_values = [ir.Constant(ir.IntType(1), 0)] if intrinsic == "llvm.abs" else []
        return self.block.call(declared, [*operands, *flag_values])

    def convert(self, value: Value, source: Scalar, target: Scalar) -> Value:
        """Widen exactly, or round to nearest even to a narrower float; integers never narrow here."""
        if source == target:
            return value
        wanted = vector_type(target, value.type.count)
        if is_float(source):
            widen = SCALAR_BYTES[target] > SCALAR_BYTES[source]
            return self.block.fpext(value, wanted) if widen else self.block.fptrunc(value, wanted)
        if is_float(target):
            unsigned = source in UNSIGNED_MAX
            return self.block.uitofp(value, wanted) if unsigned else self.block.sitofp(value, wanted)
        return self.block.zext(value, wanted)

    def split_bytes(self, value: Value) -> Value:
        """Bytes as 16-bit numbers, those of even places before those of odd ones: no byte moves to another place."""
        lanes = value.type.count
        pairs = self.block.bitcast(value, vector_type("u16", lanes // 2))
        even = self.block.and_(pairs, splat("u16", lanes // 2, UNSIGNED_MAX["u8"]))
        odd = self.block.lshr(pairs, splat("u16", lanes // 2, 8))
        return self._shuffle_two(even, odd, list(range(lanes)))

    def join_bytes(self, value: Value) -> Value:
        """What `split_bytes` took apart, of 16-bit numbers that are bytes."""
        lanes = value.type.count
        even, odd = self.slices(value, lanes // 2)
        pairs = self.block.or_(even, self.block.shl(odd, splat("u16", lanes // 2, 8)))
        return self.block.bitcast(pairs, vector_type("u8", lanes))

    def round_to_int(self, value: Value, scalar: Scalar) -> Value:
        """float32 or float64 to int32, to nearest with ties to even (the mode that every thread starts in)."""
        lanes = value.type.count
        name, wanted = f"llvm.lrint.v{lanes}i32.v{lanes}{scalar}", vector_type("i32", lanes)
        declared = self.module.globals.get(name) or ir.Function(
            self.module, ir.FunctionType(wanted, [value.type]), name
        )
        return self.block.call(declared, [value])

    def larger(self, a: Value, b: Value, scalar: Scalar) -> Value:
        """The larger of two numbers, neither of which is NaN."""
        if is_float(scalar):
            return self.block.select(self.block.fcmp_ordered(">", a, b), a, b)
        return self.call("llvm.umax" if scalar in UNSIGNED_MAX else "llvm.smax", scalar, a, b)

    def same_bits(self, value: Value, target: Scalar) -> Value:
        """The bits of every lane as another type of the same length."""
        return self.block.bitcast(value, vector_type(target, value.type.count))

    def narrow(self, value: Value, target: Scalar) -> Value:
        """Drop the upper bits of integers that are known to fit."""
        wanted = vector_type(target, value.type.count)
        return value if value.type == wanted else self.block.trunc(value, wanted)

    def shuffle(self, sources: Sequence[Value], picks: Sequence[tuple[int, int]]) -> Value:
        """A vector whose lane i is lane `picks[i][1]` of `sources[picks[i][0]]`; all of one length.

        Sources are merged one after the other: lanes already in place stay, those of the next source join them.
        """
        lanes = sources[0].type.count
        first, *others = sorted({number for number, _ in picks})
        if not others:
            return self._shuffle_two(sources[first], sources[first], [lane for _, lane in picks])
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
            merged, done = self._shuffle_two(merged, sources[joining], mask), True
        return merged

    def blend_and_shuffle(self, sources: Sequence[Value], picks: Sequence[tuple[int, int]]) -> Value:
        """The same; where no two come from one lane, they are joined where they are, and shuffled once."""
        lanes = sources[0].type.count
        source_of = {lane: number for number, lane in picks}
        if len(source_of) < lanes or len(picks) > lanes:
            return self.shuffle(sources, picks)
        first, *others = sorted({number for number, _ in picks})
        joined = sources[first]
        for number in others:
            mask = [lanes + lane if source_of[lane] == number else lane for lane in range(lanes)]
            joined = self._shuffle_two(joined, sources[number], mask)
        return self._shuffle_two(joined, joined, [lane for _, lane in picks])

    def pieces(self, values: Sequence[Value], lanes: int) -> list[Value]:
        """Vectors of one length, one behind the other, joined or cut into pieces of `lanes`."""
        joined = list(values)
        while joined[0].type.count < lanes:
            count = 2 * joined[0].type.count
            joined = [
                self._shuffle_two(first, second, list(range(count)))
                for first, second in zip(joined[::2], joined[1::2], strict=True)
            ]
        return [piece for value in joined for piece in self.slices(value, lanes)]

    def slices(self, value: Value, lanes: int) -> list[Value]:
        """Cut a vector into pieces of `lanes`."""
        total = value.type.count
        if total == lanes:
            return [value]
        return [self._shuffle_two(value, value, list(range(start, start + lanes))) for start in range(0, total, lanes)]

    def _shuffle_two(self, a: Value, b: Value, mask: list[int]) -> Value:
        return self.block.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(mask)), mask))
