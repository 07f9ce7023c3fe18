"""The LLVM IR that turns the rows of a PNG into pixels of a known number of bytes (io/formats/png.py calls it).

A row is a byte that names its filter, and then, for each byte, its difference from what the filter predicts from the
bytes of the pixel to the left (a), of the one above (b) and of the one left of that (c), modulo 256.

    none, up          by long vectors
    sub               adds up within a vector first, so that one vector waits for one sum of the last
    average, paeth    wait for each pixel, whose bytes are one short vector

Source: PNG specification, third edition (W3C), section 9.
"""

from __future__ import annotations

from llvmlite import ir

from edgeconv.hardware.cpu.emit import I64, Array, Emitter, Value

NONE, SUB, UP, AVERAGE, PAETH = range(5)
"""PNG's codes."""
NAME = "unfilter"
LANES = 16
"""Bytes within which `sub` adds up: shifts of bytes do not cross 16."""
LONG = 64
"""Bytes that are copied or added at once where nothing waits."""
BYTE = 0xFF


def write_unfilter(pixel_bytes: int) -> str:
    """For pixels of 1, 2, 3, 4, 6 or 8 bytes: `unfilter(filtered, pixels, zeros, rows, row_bytes, bad)`, all int64.

    `filtered` has `row_bytes` and one in each row, `pixels` has `row_bytes`. `zeros` is a row of them, above the first.
    `bad`, an address too, gets the code of a filter that does not exist.
    """
    e = Emitter(ir.Module(name="png rows"), NAME, [I64] * 6)
    filtered, pixels, zeros, rows, row_bytes, bad = (Value(e, given) for given in e.function.args)
    last = e.variable(zeros)
    with e.count(0, rows) as row:
        source = e.array(filtered + row * (row_bytes + 1), "uint8")
        target, above = e.array(pixels + row * row_bytes, "uint8"), e.array(last.value, "uint8")
        code, source = source[0].unsigned("int64"), source.at(1)
        with e.where(code.equals(NONE)):
            _by_vectors(e, source, None, target, row_bytes)
        with e.where(code.equals(SUB)):
            done = _running_sums(e, source, target, row_bytes, pixel_bytes)
            _by_pixels(e, source, target, above, row_bytes, pixel_bytes, SUB, done)
        with e.where(code.equals(UP)):
            _by_vectors(e, source, above, target, row_bytes)
        for waiting in (AVERAGE, PAETH):
            with e.where(code.equals(waiting)):
                _by_pixels(e, source, target, above, row_bytes, pixel_bytes, waiting, None)
        with e.where(code > PAETH):
            e.array(bad, "int64")[0] = code
        last.value = target.number
    e.block.ret_void()
    return str(e.module)


def _by_vectors(e: Emitter, source: Array, above: Array | None, target: Array, row_bytes: Value) -> None:
    """The row itself, or added to the one above."""

    def write(at: Value, lanes: int) -> None:
        value = source.at(at).load(lanes)
        target.at(at).store(value if above is None else value + above.at(at).load(lanes))

    with e.blocks(0, row_bytes, LONG) as at:
        write(at, LONG)
    with e.where(row_bytes < LONG), e.count(0, row_bytes) as at:
        write(at, 1)


def _running_sums(e: Emitter, source: Array, target: Array, row_bytes: Value, pixel_bytes: int) -> tuple[Value, Value]:
    """`sub` as far as whole vectors go: the bytes that are done, and the last pixel of them, repeated in a vector."""
    whole = LANES // pixel_bytes * pixel_bytes
    last_pixel = [whole - pixel_bytes + lane % pixel_bytes for lane in range(LANES)]
    zero = e.splat("uint8", LANES, 0)
    carry = e.variable(zero)
    vectors = ((row_bytes - LANES).max(-whole) + whole) // whole
    with e.count(0, vectors) as vector:
        sums = source.at(vector * whole).load(LANES)
        shift = pixel_bytes
        while shift < whole:
            sums = sums + zero.shuffle_with(sums, list(range(LANES - shift, 2 * LANES - shift)))
            shift *= 2
        sums = sums + carry.value
        target.at(vector * whole).store(sums)  # what is beyond `whole` is written again
        carry.value = sums.shuffle_with(sums, last_pixel)
    return vectors * whole, carry.value


def _by_pixels(
    e: Emitter,
    source: Array,
    target: Array,
    above: Array,
    row_bytes: Value,
    pixel_bytes: int,
    code: int,
    done: tuple[Value, Value] | None,
) -> None:
    """One pixel after the other from where it is `done`, or from the first.

    Vectors have as many bytes as registers are loaded with at once: for 3 and 6 that is more than a pixel, so that the
    last pixel of a row is done apart, to stay within the row.
    """
    lanes = 1 << (pixel_bytes - 1).bit_length()
    left, corner = (e.variable(e.splat("int16", lanes, 0)) for _ in range(2))
    if done is not None:
        left.value = done[1].shuffle_with(done[1], list(range(lanes))).unsigned("int16")

    def load(array: Array, at: Value, count: int) -> Value:
        return array.at(at).load(count).unsigned("int16")

    def write(at: Value, count: int) -> None:
        first = list(range(count))
        a, c = (v.value if count == lanes else v.value.shuffle_with(v.value, first) for v in (left, corner))
        b = a if code == SUB else load(above, at, count)
        guess = {SUB: lambda: a, AVERAGE: lambda: (a + b) >> 1, PAETH: lambda: _paeth(a, b, c)}[code]()
        sample = (load(source, at, count) + guess) & BYTE
        target.at(at).store(sample.narrow("uint8"))
        if count == lanes:
            left.value, corner.value = sample, b

    apart = 0 if lanes == pixel_bytes else pixel_bytes
    start = e.int64(0) if done is None else done[0]
    with e.count(start, row_bytes - apart, pixel_bytes) as at:
        write(at, lanes)
    if apart:  # vectors never reach as far as this
        write(row_bytes - apart, pixel_bytes)


def _paeth(a: Value, b: Value, c: Value) -> Value:
    """The neighbour nearest to a + b - c; of equally near ones a before b before c."""
    by_a, by_b = b - c, a - c
    from_a, from_b, from_c = abs(by_a), abs(by_b), abs(by_a + by_b)
    nearer = (from_a <= from_b).select(a, b)
    return (from_a.min(from_b) <= from_c).select(nearer, c)
