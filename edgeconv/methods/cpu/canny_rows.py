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

from functools import reduce

from llvmlite import ir

from edgeconv.core.canny import BINOMIALS, TANGENT_22, TANGENT_BITS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.hardware.cpu.emit import SCALAR_BYTES, Scalar, Value, splat, vector_type
from edgeconv.methods.cpu.apart import every, loaded_in_parts, part_lanes
from edgeconv.methods.cpu.canny_frame import CannyFrame
from edgeconv.methods.cpu.canny_layout import PARITIES, SUM_TYPE, CannyArgument

FLAT, STEEP, FALLING = 0, 1, 3
"""Sectors; between FALLING and STEEP is the other diagonal, of gradients that point down right or up left."""
SECTOR_BITS = 2
SECTOR_MASK = 2**SECTOR_BITS - 1
DIAGONAL_BIT, TURNED_BIT = 2, 1
SAMPLE_BITS: dict[Scalar, int] = {"u8": 8, "u16": 16}


class CannyRows:
    """Writes the code of single rows into a function."""

    def __init__(self, frame: CannyFrame) -> None:
        self.frame, self.e, self.shape = frame, frame.e, frame.shape

    # --- stage ----------------------------------------------------------------------------------------------------

    def stage(self, row: Value) -> None:
        """Bring a row of the (smoothed) picture into its slot; rows come one after the other from a strip's first."""
        slot = self.e.block.srem(row, self.e.int64(KERNEL_SIZE))
        targets = [self.frame.staged_plane(slot, c) for c in range(self.shape.channels)]
        if self.shape.blur:
            for channel, target in enumerate(targets):
                self._smooth(row, channel, target)
        else:
            self._copy(row, targets)
        last = self.e.block.sub(self.frame[CannyArgument.WIDTH], self.e.int64(1))
        for target in targets:
            self._repeat_sample(target, self.e.int64(0), self.e.int64(-1))
            self._repeat_sample(target, last, self.frame[CannyArgument.WIDTH])

    def stage_raw(self, row: Value) -> None:
        """Bring a row of the picture into its slot of those that are smoothed."""
        e, frame, reach = self.e, self.frame, self.shape.reach
        slot = e.block.srem(row, e.int64(self.shape.blur))
        targets = [frame.raw_plane(slot, c) for c in range(self.shape.channels)]
        self._copy(row, targets)
        for target in targets:
            for number in range(reach):
                source = frame.table(CannyArgument.SOURCE_COLUMNS_ADDRESS, number)
                self._repeat_sample(target, source, e.int64(number - reach))
                source = frame.table(CannyArgument.SOURCE_COLUMNS_ADDRESS, reach + number)
                self._repeat_sample(target, source, e.block.add(frame[CannyArgument.WIDTH], e.int64(number)))

    def _copy(self, row: Value, targets: list[Value]) -> None:
        """Copy a row of the picture, channels apart."""
        e, shape, width = self.e, self.shape, self.frame[CannyArgument.WIDTH]
        samples = e.block.mul(width, e.int64(shape.channels))
        source = e.address(self.frame.pointer(CannyArgument.IMAGE_ADDRESS), shape.source, e.block.mul(row, samples))
        part = part_lanes(shape.vector_bytes, shape.source)
        with e.blocks(e.int64(0), width, shape.block) as x:
            first = e.address(source, shape.source, e.block.mul(x, e.int64(shape.channels)))
            loaded = loaded_in_parts(e, first, shape.source, shape.channels, shape.block, part)
            for channel, target in enumerate(targets):
                (vector,) = every(e, loaded, channel, shape.channels, part)
                e.store(vector, e.address(target, shape.source, x), shape.source)
        is_short = e.block.icmp_signed("<", width, e.int64(shape.block))
        with e.count(e.int64(0), e.block.select(is_short, width, e.int64(0))) as x:
            for channel, target in enumerate(targets):
                index = e.block.add(e.block.mul(x, e.int64(shape.channels)), e.int64(channel))
                sample = e.load(e.address(source, shape.source, index), shape.source, 1)
                e.store(sample, e.address(target, shape.source, x), shape.source)

    def _repeat_sample(self, plane: Value, source: Value, target: Value) -> None:
        """Copy one sample of a row to another place of it."""
        kind = self.shape.source
        sample = self.e.load(self.e.address(plane, kind, source), kind, 1)
        self.e.store(sample, self.e.address(plane, kind, target), kind)

    # --- smooth ---------------------------------------------------------------------------------------------------

    def _smooth(self, row: Value, channel: int, target: Value) -> None:
        """One smoothed row of a channel, from the raw rows around it."""
        e, frame, shape = self.e, self.frame, self.shape
        weights, sums, kind = BINOMIALS[shape.blur], frame.sums(), SUM_TYPE[shape.source]
        planes = []
        for number in range(shape.blur):
            around = frame.table(CannyArgument.SOURCE_ROWS_ADDRESS, e.block.add(row, e.int64(number)))
            slot = e.block.srem(around, e.int64(shape.blur))
            planes.append(frame.raw_plane(slot, channel))
        beyond = e.block.add(frame[CannyArgument.BLOCKED_WIDTH], e.int64(shape.block))
        with e.count(e.int64(-shape.block), beyond, shape.block) as x:
            blocks = [e.load(e.address(plane, shape.source, x), shape.source, shape.block) for plane in planes]
            loaded = [self._halves(block, kind) for block in blocks]
            for parity, place in enumerate(sums):
                total = self._weighted([halves[parity] for halves in loaded], weights, kind)
                e.store(total, e.address(place, kind, self._pair(x)), kind)
        with e.count(e.int64(0), frame[CannyArgument.BLOCKED_WIDTH], shape.block) as x:
            even, odd = (self._smoothed(sums, x, parity) for parity in range(PARITIES))
            e.store(self._joined(even, odd, kind), e.address(target, shape.source, x), shape.source)

    def _smoothed(self, sums: list[Value], x: Value, parity: int) -> Value:
        """Every other smoothed pixel of a block, rounded to the nearest, halves up."""
        e, shape, kind = self.e, self.shape, SUM_TYPE[self.shape.source]
        weights = BINOMIALS[shape.blur]
        share = sum(weights) ** 2
        taps = [self._sum_at(sums, x, parity + tap - shape.reach, kind) for tap in range(shape.blur)]
        total = e.block.add(self._weighted(taps, weights, kind), splat(kind, shape.half, share // 2))
        return e.block.lshr(total, splat(kind, shape.half, share.bit_length() - 1))

    def _sum_at(self, sums: list[Value], x: Value, distance: int, kind: Scalar) -> Value:
        """Vertical sums of every other pixel, from `distance` right of the block's first on."""
        e = self.e
        place = e.block.add(self._pair(x), e.int64(distance // PARITIES))
        return e.load(e.address(sums[distance % PARITIES], kind, place), kind, self.shape.half)

    def _weighted(self, taps: list[Value], weights: tuple[int, ...], kind: Scalar) -> Value:
        """The sum of taps under symmetric weights; those of one weight are added first."""
        e, lanes = self.e, taps[0].type.count
        terms = []
        for weight, first, last in zip(weights[: len(weights) // 2], taps, reversed(taps), strict=False):
            terms.append(self._times(e.block.add(first, last), weight, kind, lanes))
        terms.append(self._times(taps[len(taps) // 2], weights[len(weights) // 2], kind, lanes))
        return reduce(e.block.add, terms)

    def _times(self, value: Value, weight: int, kind: Scalar, lanes: int) -> Value:
        return value if weight == 1 else self.e.block.mul(value, splat(kind, lanes, weight))

    # --- gradient -------------------------------------------------------------------------------------------------

    def no_codes(self, row: Value) -> None:
        """The codes of a row outside the picture: magnitude 0."""
        e, shape = self.e, self.shape
        pairs = self._pair(self.frame[CannyArgument.BLOCKED_WIDTH])
        for place in self.frame.codes(row):
            with e.count(e.int64(0), e.block.add(pairs, e.int64(1)), shape.half) as i:
                e.store(splat(shape.code, shape.half, 0), e.address(place, shape.code, i), shape.code)

    def gradient(self, row: Value) -> None:
        """The codes of a row of the picture, from the staged rows around it."""
        e, frame, shape = self.e, self.frame, self.shape
        last = e.block.sub(frame[CannyArgument.HEIGHT], e.int64(1))
        above = e.maximum(e.block.sub(row, e.int64(1)), e.int64(0))
        below = e.minimum(e.block.add(row, e.int64(1)), last)
        slots = [e.block.srem(number, e.int64(KERNEL_SIZE)) for number in (above, row, below)]
        planes = [[frame.staged_plane(slot, channel) for slot in slots] for channel in range(shape.channels)]
        codes = frame.codes(row)
        with e.count(e.int64(0), frame[CannyArgument.BLOCKED_WIDTH], shape.block) as x:
            channels = [self._responses(rows, x) for rows in planes]
            for parity, place in enumerate(codes):
                code = self._code(*self._largest([responses[parity] for responses in channels]))
                e.store(code, e.address(place, shape.code, self._pair(x)), shape.code)
        # Pixels beyond the last one have been computed from whatever lies there, and must be smaller than any.
        width = frame[CannyArgument.WIDTH]
        for place, beyond in zip(codes, (e.block.add(width, e.int64(1)), width), strict=True):
            zeros = splat(shape.code, shape.half, 0)
            e.store(zeros, e.address(place, shape.code, self._pair(beyond)), shape.code)

    def _responses(self, rows: list[Value], x: Value) -> list[tuple[Value, Value]]:
        """gx and gy of the even and of the odd pixels of a block of one channel."""
        e, shape = self.e, self.shape
        kind = shape.gradient
        columns: list[list[Value]] = []
        for row in rows:
            left, right = (
                self._halves(
                    e.load(e.address(row, shape.source, e.block.add(x, e.int64(step))), shape.source, shape.block), kind
                )
                for step in (-1, 1)
            )
            columns.append([*left, *right])
        # Column 0 is left of the even pixels, 1 is theirs, 2 that of the odd pixels, 3 right of those.
        smooth = [self._one_two_one(*taps) for taps in zip(*columns, strict=True)]
        across = [e.block.sub(below, above) for above, _, below in zip(*columns, strict=True)]
        return [
            (e.block.sub(smooth[parity + 2], smooth[parity]), self._one_two_one(*across[parity : parity + 3]))
            for parity in range(PARITIES)
        ]

    def _one_two_one(self, first: Value, middle: Value, last: Value) -> Value:
        return self.e.block.add(self.e.block.add(first, last), self.e.block.add(middle, middle))

    def _largest(self, responses: list[tuple[Value, Value]]) -> tuple[Value, Value, Value]:
        """Magnitude, gx and gy of the channel of the largest magnitude, the first of several."""
        (gx, gy), *others = responses
        largest = self._magnitude(gx, gy)
        for other_gx, other_gy in others:
            other = self._magnitude(other_gx, other_gy)
            is_larger = self.e.block.icmp_signed(">", other, largest)
            gx = self.e.block.select(is_larger, other_gx, gx)
            gy = self.e.block.select(is_larger, other_gy, gy)
            largest = self.e.block.select(is_larger, other, largest)
        return largest, gx, gy

    def _magnitude(self, gx: Value, gy: Value) -> Value:
        e, shape = self.e, self.shape
        if shape.l2:
            wide = vector_type(shape.code, shape.half)
            return e.block.add(*(e.block.mul(*[e.block.sext(value, wide)] * 2) for value in (gx, gy)))
        return e.block.add(self._size(gx), self._size(gy))

    def _size(self, value: Value) -> Value:
        return self.e.call("llvm.abs", self.shape.gradient, value)

    def _code(self, magnitude: Value, gx: Value, gy: Value) -> Value:
        """Four times the magnitude, plus the sector."""
        e, shape = self.e, self.shape
        kind, lanes = shape.gradient, shape.half
        bits = 8 * SCALAR_BYTES[kind]
        x, y = self._size(gx), self._size(gy)
        twice = e.block.add(x, x)
        slope = self._times_tangent(x)
        is_flat = e.block.icmp_signed("<=", y, slope)
        is_steep = e.block.icmp_signed(">", e.block.sub(y, twice), slope)
        turned = e.block.lshr(e.block.xor(gx, gy), splat(kind, lanes, bits - 1))
        diagonal = e.block.or_(turned, splat(kind, lanes, DIAGONAL_BIT))
        sector = e.block.select(is_steep, splat(kind, lanes, STEEP), diagonal)
        sector = e.block.select(is_flat, splat(kind, lanes, FLAT), sector)
        if shape.l2:
            sector = e.block.zext(sector, vector_type(shape.code, lanes))
        return e.block.or_(e.block.shl(magnitude, splat(shape.code, lanes, SECTOR_BITS)), sector)

    def _times_tangent(self, x: Value) -> Value:
        """The whole part of |gx| · tan 22.5°."""
        e, kind, lanes = self.e, self.shape.gradient, self.shape.half
        if kind == "i32":  # the largest product, 262,140 · 13,573, has 32 bits without a sign
            return e.block.lshr(e.block.mul(x, splat(kind, lanes, TANGENT_22)), splat(kind, lanes, TANGENT_BITS))
        wide = vector_type("i32", lanes)
        twice = e.block.zext(e.block.add(x, x), wide)
        product = e.block.mul(twice, splat("i32", lanes, TANGENT_22))  # its upper half is one instruction
        return e.block.trunc(e.block.lshr(product, splat("i32", lanes, TANGENT_BITS + 1)), vector_type(kind, lanes))

    # --- thin -----------------------------------------------------------------------------------------------------

    def thin(self, row: Value, weak: Value, strong: Value) -> None:
        """The bits of a row of the picture, from the codes of the rows around it."""
        e, frame, shape = self.e, self.frame, self.shape
        one = e.int64(1)
        codes = [frame.codes(number) for number in (e.block.sub(row, one), row, e.block.add(row, one))]
        low, high = (self._everywhere(frame[a]) for a in (CannyArgument.LOW_CODE, CannyArgument.HIGH_CODE))
        with e.count(e.int64(0), frame[CannyArgument.BLOCKED_WIDTH], shape.block) as x:
            at = e.block.lshr(x, e.int64(3))
            places = [frame.bytes_on(bits, at) for bits in (weak, strong)]
            for place in places:
                e.block.store(ir.IntType(shape.block)(0), place, align=1)
            # Most pixels of most pictures are below the lower threshold, and lie together.
            with e.block.if_then(self._any_above(codes[1], x, low)):
                halves = [self._thinned(codes, x, parity, low, high) for parity in range(PARITIES)]
                for masks, place in zip(zip(*halves, strict=True), places, strict=True):
                    e.block.store(self._bits(*masks), place, align=1)

    def _any_above(self, codes: list[Value], x: Value, low: Value) -> Value:
        """Whether a pixel of a block is above the lower threshold."""
        e, shape = self.e, self.shape
        own = [e.load(e.address(place, shape.code, self._pair(x)), shape.code, shape.half) for place in codes]
        above = e.block.icmp_signed(">", e.call("llvm.smax", shape.code, *own), low)
        return e.block.icmp_unsigned("!=", e.block.bitcast(above, ir.IntType(shape.half)), ir.IntType(shape.half)(0))

    def _thinned(self, codes: list[list[Value]], x: Value, parity: int, low: Value, high: Value) -> tuple[Value, Value]:
        """Which of every other pixel of a block are edge pixels, and which are strong ones."""
        e, kind, lanes = self.e, self.shape.code, self.shape.half

        def at(row: int, distance: int) -> Value:
            place = e.block.add(self._pair(x), e.int64((parity + distance) // PARITIES))
            return e.load(e.address(codes[row][(parity + distance) % PARITIES], kind, place), kind, lanes)

        def constant(value: int) -> Value:
            return splat(kind, lanes, value)

        def has(bit: int) -> Value:
            return e.block.icmp_signed("!=", e.block.and_(own, constant(bit)), constant(0))

        own = at(1, 0)
        is_diagonal, is_turned = has(DIAGONAL_BIT), has(TURNED_BIT)
        before = e.block.select(
            is_diagonal,
            e.block.select(is_turned, at(0, 1), at(0, -1)),
            e.block.select(is_turned, at(0, 0), at(1, -1)),
        )
        after = e.block.select(
            is_diagonal,
            e.block.select(is_turned, at(2, -1), at(2, 1)),
            e.block.select(is_turned, at(2, 0), at(1, 1)),
        )
        magnitude = e.block.and_(own, constant(~SECTOR_MASK))
        at_least = e.block.select(is_diagonal, magnitude, e.block.add(magnitude, constant(SECTOR_MASK + 1)))
        is_edge = e.block.and_(
            e.block.icmp_signed(">", magnitude, e.call("llvm.smax", kind, before, low)),
            e.block.icmp_signed(">", at_least, after),
        )
        return is_edge, e.block.and_(is_edge, e.block.icmp_signed(">", magnitude, high))

    def _bits(self, even: Value, odd: Value) -> Value:
        """A bit for each pixel of a block, the first one lowest."""
        e, block = self.e, self.shape.block
        pairs = vector_type("u16", self.shape.half)
        lower = e.block.and_(e.block.sext(even, pairs), splat("u16", self.shape.half, 0x00FF))
        upper = e.block.and_(e.block.sext(odd, pairs), splat("u16", self.shape.half, 0xFF00))
        places = e.block.bitcast(e.block.or_(lower, upper), vector_type("u8", block))
        return e.block.bitcast(e.block.icmp_signed("<", places, splat("u8", block, 0)), ir.IntType(block))

    # --- vectors --------------------------------------------------------------------------------------------------

    def _everywhere(self, value: Value) -> Value:
        """A number of 64 bits in every lane of codes."""
        e, lanes = self.e, self.shape.half
        kind = vector_type(self.shape.code, lanes)
        narrow = value if kind.element.width == value.type.width else e.block.trunc(value, kind.element)
        one = e.block.insert_element(ir.Constant(kind, ir.Undefined), narrow, ir.Constant(ir.IntType(32), 0))
        return e.block.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))

    def _pair(self, x: Value) -> Value:
        """The place of a pixel among the even, or odd, ones."""
        return self.e.block.ashr(x, self.e.int64(1))

    def _halves(self, block: Value, kind: Scalar) -> list[Value]:
        """The even and the odd samples of a block, as a type of twice their length."""
        e, half = self.e, self.shape.half
        bits = SAMPLE_BITS[self.shape.source]
        pairs = e.block.bitcast(block, vector_type(kind, half))
        return [
            e.block.and_(pairs, splat(kind, half, 2**bits - 1)),
            e.block.lshr(pairs, splat(kind, half, bits)),
        ]

    def _joined(self, even: Value, odd: Value, kind: Scalar) -> Value:
        """What `_halves` took apart, of numbers that are samples."""
        e, half = self.e, self.shape.half
        pairs = e.block.or_(even, e.block.shl(odd, splat(kind, half, SAMPLE_BITS[self.shape.source])))
        return e.block.bitcast(pairs, vector_type(self.shape.source, self.shape.block))
