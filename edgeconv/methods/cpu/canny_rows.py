"""The rows of Canny in generated code: stage, smooth, gradient, thin; one row at a time, a block of pixels at once.

Even and odd pixels are computed apart from each other: widening bytes to 16 bits is then a mask and a shift, and the
neighbours of all even pixels are rows of odd ones.

A pixel's code is four times its magnitude (|gx| + |gy|, or gx² + gy²) plus the sector of its gradient, so that one
number a pixel goes from `gradient` to `thin`, and comparing codes compares magnitudes:

    m > n    is    4m > 4n + sector,    m >= n    is    4m + 4 > 4n + sector

The sectors' test is that of OpenCV in fixed point, tan 22.5° = 13573 / 2¹⁵. With r the whole part of |gx| · tan 22.5°,
which is a whole number itself only for gx = 0, a gradient is flat where |gy| <= r, and steep where |gy| - 2|gx| > r.
(Where both are 0 so is the magnitude, and no sector makes an edge of it.)
"""

from __future__ import annotations

from enum import IntEnum
from functools import reduce
from operator import add

from llvmlite import ir

from edgeconv.core.canny import BINOMIALS, TANGENT_22, TANGENT_BITS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.emit import Array, Unit, Value, vector_type
from edgeconv.hardware.cpu.processor import SCALAR_BYTES, Scalar
from edgeconv.methods.cpu.canny_layout import (
    PARITIES,
    SECTOR_BITS,
    SECTOR_MASK,
    STATE_FIELDS,
    SUM_TYPE,
    CannyArgument,
    CannyShape,
    StripState,
)
from edgeconv.methods.cpu.rows import every, loaded_in_parts, part_lanes

FLAT, STEEP, FALLING = 0, 1, 3
"""Sectors; between FALLING and STEEP is the other diagonal, of gradients that point down right or up left."""
DIAGONAL_BIT, TURNED_BIT = 2, 1


class CannyRows:
    """Writes the code of single rows into a function."""

    def __init__(self, unit: CannyUnit) -> None:
        self.unit, self.shape = unit, unit.shape
        self.sample_bits = 8 * SCALAR_BYTES[unit.shape.source]

    # --- stage ----------------------------------------------------------------------------------------------------

    def stage(self, row: Value) -> None:
        """Bring a row of the (smoothed) picture into its slot; rows come one after the other from a strip's first."""
        slot = row % KERNEL_SIZE
        targets = [self.unit.staged_plane(slot, channel) for channel in range(self.shape.channels)]
        if self.shape.blur:
            for channel, target in enumerate(targets):
                self._smooth(row, channel, target)
        else:
            self._copy(row, targets)
        width = self.unit[CannyArgument.WIDTH]
        last = width - 1
        for target in targets:
            target.at(-1).store(target.at(0).load(1))
            target.at(width).store(target.at(last).load(1))

    def stage_raw(self, row: Value) -> None:
        """Bring a row of the picture into its slot of those that are smoothed."""
        unit, reach = self.unit, self.shape.reach
        slot = row % self.shape.blur
        targets = [unit.raw_plane(slot, channel) for channel in range(self.shape.channels)]
        self._copy(row, targets)
        for target in targets:
            for number in range(reach):
                left = unit.table(CannyArgument.SOURCE_COLUMNS_ADDRESS, number)
                target.at(number - reach).store(target.at(left).load(1))
                right = unit.table(CannyArgument.SOURCE_COLUMNS_ADDRESS, reach + number)
                target.at(unit[CannyArgument.WIDTH] + number).store(target.at(right).load(1))

    def _copy(self, row: Value, targets: list[Array]) -> None:
        """Copy a row of the picture, channels apart."""
        unit, shape, width = self.unit, self.shape, self.unit[CannyArgument.WIDTH]
        source = unit.at(CannyArgument.IMAGE_ADDRESS, shape.source).at(row * (width * shape.channels))
        part = part_lanes(shape.vector_bytes, shape.source)
        with unit.blocks(0, width, shape.block) as x:
            loaded = loaded_in_parts(source.at(x * shape.channels), shape.channels, shape.block, part)
            for channel, target in enumerate(targets):
                (vector,) = every(loaded, channel, shape.channels, part)
                target.at(x).store(vector)
        with unit.count(0, (width < shape.block).select(width, 0)) as x:
            for channel, target in enumerate(targets):
                target.at(x).store(source.at(x * shape.channels + channel).load(1))

    # --- smooth ---------------------------------------------------------------------------------------------------

    def _smooth(self, row: Value, channel: int, target: Array) -> None:
        """One smoothed row of a channel, from the raw rows around it."""
        unit, shape = self.unit, self.shape
        weights, sums, kind = BINOMIALS[shape.blur], unit.sums(), SUM_TYPE[shape.source]
        planes = []
        for number in range(shape.blur):
            around = unit.table(CannyArgument.SOURCE_ROWS_ADDRESS, row + number)
            planes.append(unit.raw_plane(around % shape.blur, channel))
        width = unit[CannyArgument.BLOCKED_WIDTH]
        with unit.count(-shape.block, width + shape.block, shape.block) as x:
            loaded = [self._halves(plane.at(x).load(shape.block), kind) for plane in planes]
            for parity, place in enumerate(sums):
                place.at(_pair(x)).store(_weighted([halves[parity] for halves in loaded], weights))
        with unit.count(0, width, shape.block) as x:
            even, odd = (self._smoothed(sums, x, parity) for parity in range(PARITIES))
            pairs = even | (odd << self.sample_bits)
            target.at(x).store(pairs.bits(vector_type(shape.source, shape.block)))

    def _smoothed(self, sums: list[Array], x: Value, parity: int) -> Value:
        """Every other smoothed pixel of a block, rounded to the nearest, halves up."""
        weights = BINOMIALS[self.shape.blur]
        share = sum(weights) ** 2
        distances = [parity + tap - self.shape.reach for tap in range(self.shape.blur)]
        taps = [_of_pixels(sums, x, distance, self.shape.half) for distance in distances]
        return (_weighted(taps, weights) + share // 2) >> (share.bit_length() - 1)

    # --- gradient -------------------------------------------------------------------------------------------------

    def no_codes(self, row: Value) -> None:
        """The codes of a row outside the picture: magnitude 0."""
        shape = self.shape
        pairs = _pair(self.unit[CannyArgument.BLOCKED_WIDTH])
        for place in self.unit.codes(row):
            with self.unit.count(0, pairs + 1, shape.half) as i:
                place.at(i).store(self.unit.splat(shape.code, shape.half, 0))

    def gradient(self, row: Value) -> None:
        """The codes of a row of the picture, from the staged rows around it."""
        unit, shape = self.unit, self.shape
        last = unit[CannyArgument.HEIGHT] - 1
        rows = ((row - 1).max(0), row, (row + 1).min(last))
        slots = [number % KERNEL_SIZE for number in rows]
        planes = [[unit.staged_plane(slot, channel) for slot in slots] for channel in range(shape.channels)]
        codes = unit.codes(row)
        with unit.count(0, unit[CannyArgument.BLOCKED_WIDTH], shape.block) as x:
            channels = [self._responses(of_channel, x) for of_channel in planes]
            for parity, place in enumerate(codes):
                code = self._code(*self._largest([responses[parity] for responses in channels]))
                place.at(_pair(x)).store(code)
        # Pixels beyond the last one have been computed from whatever lies there, and must be smaller than any.
        width = unit[CannyArgument.WIDTH]
        for place, beyond in zip(codes, (width + 1, width), strict=True):
            place.at(_pair(beyond)).store(unit.splat(shape.code, shape.half, 0))

    def _responses(self, rows: list[Array], x: Value) -> list[tuple[Value, Value]]:
        """gx and gy of the even and of the odd pixels of a block of one channel."""
        shape = self.shape
        columns = []
        for row in rows:
            left, right = (self._halves(row.at(x + step).load(shape.block), shape.gradient) for step in (-1, 1))
            columns.append([*left, *right])
        # Column 0 is left of the even pixels, 1 is theirs, 2 that of the odd pixels, 3 right of those.
        smooth = [_one_two_one(*taps) for taps in zip(*columns, strict=True)]
        across = [below - above for above, _, below in zip(*columns, strict=True)]
        return [
            (smooth[parity + 2] - smooth[parity], _one_two_one(*across[parity : parity + 3]))
            for parity in range(PARITIES)
        ]

    def _largest(self, responses: list[tuple[Value, Value]]) -> tuple[Value, Value, Value]:
        """Magnitude, gx and gy of the channel of the largest magnitude, the first of several."""
        (gx, gy), *others = responses
        largest = self._magnitude(gx, gy)
        for other_gx, other_gy in others:
            other = self._magnitude(other_gx, other_gy)
            is_larger = other > largest
            gx, gy = is_larger.select(other_gx, gx), is_larger.select(other_gy, gy)
            largest = is_larger.select(other, largest)
        return largest, gx, gy

    def _magnitude(self, gx: Value, gy: Value) -> Value:
        if not self.shape.l2:
            return abs(gx) + abs(gy)
        wide = self.shape.code
        return gx.signed(wide) * gx.signed(wide) + gy.signed(wide) * gy.signed(wide)

    def _code(self, magnitude: Value, gx: Value, gy: Value) -> Value:
        """Four times the magnitude, plus the sector."""
        shape = self.shape
        x, y = abs(gx), abs(gy)
        twice = x + x
        slope = self._times_tangent(x)
        is_flat = y <= slope
        is_steep = y - twice > slope
        diagonal = (gx ^ gy) >> (8 * SCALAR_BYTES[shape.gradient] - 1) | DIAGONAL_BIT
        sector = is_steep.select(x.like(STEEP), diagonal)
        sector = is_flat.select(x.like(FLAT), sector)
        if shape.l2:
            sector = sector.unsigned(shape.code)
        return magnitude << SECTOR_BITS | sector

    def _times_tangent(self, x: Value) -> Value:
        """The whole part of |gx| · tan 22.5°."""
        if self.shape.gradient == "int32":  # the largest product, 262,140 · 13,573, has 32 bits without a sign
            return x * TANGENT_22 >> TANGENT_BITS
        product = (x + x).unsigned("int32") * TANGENT_22  # its upper half is one instruction
        return (product >> (TANGENT_BITS + 1)).narrow(self.shape.gradient)

    # --- thin -----------------------------------------------------------------------------------------------------

    def thin(self, row: Value, weak: Array, strong: Array) -> None:
        """The bits of a row of the picture, from the codes of the rows around it."""
        unit, shape = self.unit, self.shape
        codes = [unit.codes(number) for number in (row - 1, row, row + 1)]
        limits = (unit.words.at(int(name)).of(shape.code) for name in (CannyArgument.LOW_CODE, CannyArgument.HIGH_CODE))
        low, high = (limit.broadcast(shape.half) for limit in limits)  # the lower bytes of an int64 come first
        with unit.count(0, unit[CannyArgument.BLOCKED_WIDTH], shape.block) as x:
            places = [bits.of("uint8").at(x >> 3) for bits in (weak, strong)]
            for place in places:
                self._put_bits(place, None)
            # Most pixels of most pictures are below the lower threshold, and lie together.
            own = [place.at(_pair(x)).load(shape.half) for place in codes[1]]
            with unit.where((own[0].max(own[1]) > low).any()):
                halves = [self._thinned(codes, x, parity, low, high) for parity in range(PARITIES)]
                for (even, odd), place in zip(zip(*halves, strict=True), places, strict=True):
                    self._put_bits(place, (even, odd))

    def _thinned(self, codes: list[list[Array]], x: Value, parity: int, low: Value, high: Value) -> tuple[Value, Value]:
        """Which of every other pixel of a block are edge pixels, and which are strong ones."""

        def at(row: int, distance: int) -> Value:
            return _of_pixels(codes[row], x, parity + distance, self.shape.half)

        own = at(1, 0)
        is_diagonal, is_turned = ((own & bit).differs(0) for bit in (DIAGONAL_BIT, TURNED_BIT))
        before = is_diagonal.select(is_turned.select(at(0, 1), at(0, -1)), is_turned.select(at(0, 0), at(1, -1)))
        after = is_diagonal.select(is_turned.select(at(2, -1), at(2, 1)), is_turned.select(at(2, 0), at(1, 1)))
        magnitude = own & ~SECTOR_MASK
        at_least = is_diagonal.select(magnitude, magnitude + (SECTOR_MASK + 1))
        is_edge = (magnitude > before.max(low)) & (at_least > after)
        return is_edge, is_edge & (magnitude > high)

    def _put_bits(self, place: Array, halves: tuple[Value, Value] | None) -> None:
        """A bit for each pixel of a block, the first one lowest, of what its even and odd pixels are; else zeros."""
        block, kind = self.shape.block, ir.IntType(self.shape.block)
        bits = Value(self.unit, kind(0))
        if halves is not None:
            even, odd = halves
            pairs = (even.signed("uint16") & 0x00FF) | (odd.signed("uint16") & 0xFF00)
            bits = (pairs.bits(vector_type("uint8", block)) < 0).bits(kind)
        self.unit.block.store(bits.ir, place.address, align=1)

    def _halves(self, block: Value, kind: Scalar) -> list[Value]:
        """The even and the odd samples of a block, as a type of twice their length."""
        pairs = block.bits(vector_type(kind, self.shape.half))
        return [pairs & (2**self.sample_bits - 1), pairs >> self.sample_bits]


def _pair(x: Value) -> Value:
    """The place of a pixel among the even, or odd, ones."""
    return x.shift_signed(1)


def _of_pixels(places: list[Array], x: Value, distance: int, lanes: int) -> Value:
    """What two rows of every other pixel hold for those from `distance` right of the block's first on."""
    return places[distance % PARITIES].at(_pair(x) + distance // PARITIES).load(lanes)


def _one_two_one(first: Value, middle: Value, last: Value) -> Value:
    return (first + last) + (middle + middle)


def _weighted(taps: list[Value], weights: tuple[int, ...]) -> Value:
    """The sum of taps under symmetric weights; those of one weight are added first."""
    middle = len(taps) // 2
    sums = [first + last for first, last in zip(taps[:middle], reversed(taps), strict=False)]
    terms = zip([*sums, taps[middle]], weights, strict=False)
    return reduce(add, [value if weight == 1 else value * weight for value, weight in terms])


class CannyUnit(Unit):
    """One function over (arguments, worker, ...) while it is written: rows and bits by their addresses."""

    def __init__(self, module: ir.Module, name: str, shape: CannyShape, more: int) -> None:
        super().__init__(module, name, more)
        self.shape = shape
        self._sums, self._staged, self._codes, self._queue = shape.first_rows
        # Read once at the start: no pass moves a load out of a loop.
        self._known = {argument: self.words[int(argument)] for argument in CannyArgument}
        scratch = self.worker * self[CannyArgument.SCRATCH_BYTES]
        self.scratch = self.at(CannyArgument.SCRATCH_ADDRESS).at(scratch)

    def __getitem__(self, name: IntEnum) -> Value:
        """The argument of that name."""
        return self._known[CannyArgument(name)]

    # --- scratch --------------------------------------------------------------------------------------------------

    def _row(self, number: Value | int, scalar: Scalar, rows: int = 1) -> Array:
        """What a row holds from its first pixel on; the first of several `rows` where numbers are so long."""
        start = self[CannyArgument.ROW_BYTES] * number + self.shape.vector_bytes * rows
        return self.scratch.at(start).of(scalar)

    def raw_plane(self, slot: Value, channel: int) -> Array:
        """A channel in a slot of `raw`."""
        return self._row(slot * self.shape.channels + channel, self.shape.source)

    def staged_plane(self, slot: Value, channel: int) -> Array:
        """A channel in a slot of `staged`."""
        return self._row(slot * self.shape.channels + (self._staged + channel), self.shape.source)

    def sums(self) -> list[Array]:
        """The vertical sums from pixel 0 on, and from pixel 1."""
        return [self._row(self._sums + parity, SUM_TYPE[self.shape.source]) for parity in range(PARITIES)]

    def codes(self, row: Value) -> list[Array]:
        """The codes of a row from pixel 0 on, and from pixel 1; -1 is the row above the picture."""
        rows = self.shape.code_rows
        first = (row + KERNEL_SIZE) % KERNEL_SIZE * (PARITIES * rows) + self._codes
        return [self._row(first + parity * rows, self.shape.code, rows) for parity in range(PARITIES)]

    def queue(self) -> tuple[Array, Array]:
        """The places in the queue, and a byte for each word."""
        places = self.scratch.at(self[CannyArgument.ROW_BYTES] * self._queue).of("int32")
        return places, places.at(self[CannyArgument.STRIP_WORDS]).of("uint8")

    # --- bits -----------------------------------------------------------------------------------------------------

    def strip_bits(self, bits: CannyArgument, strip: Value) -> Array:
        """A strip's bits from its bit row 0 on."""
        return self.at(bits, "int64").at(strip * self[CannyArgument.STRIP_WORDS])

    def rows_of(self, strip: Value) -> tuple[Value, Value]:
        """The first row of a strip, and how many it has."""
        start = strip * self[CannyArgument.STRIP_ROWS]
        return start, self[CannyArgument.STRIP_ROWS].min(self[CannyArgument.HEIGHT] - start)

    def state(self, field: StripState, strip: Value) -> Array:
        """A field of a strip's state, which threads read and write by shared accesses."""
        return self.at(CannyArgument.STATES_ADDRESS, "int32").at(strip * STATE_FIELDS + int(field))

    def is_ready(self, strip: Value) -> Value:
        """Whether the strip's rows have been done in this run."""
        run = self[CannyArgument.RUN].narrow("int32")
        return self.state(StripState.READY, strip).load_shared().equals(run)
