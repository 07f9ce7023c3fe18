"""The machine code of one recipe, written as LLVM IR: what one thread does until no work is left.

A unit of work is a tile: `strip_rows` output rows of up to `tile_pixels` output pixels. For each output row

    stage      the source rows that it needs and that are not there yet go into scratch rows: channels apart
               (summed where collapsed), horizontal phases of the stride apart, borders filled in
    columns    im2col alone: the staged samples are copied out, one column row for each tap
    respond    vectors of pixels: load each tap once, multiply and add into every response that has it
    store      join, round, clip, put the channels side by side again

Three staged rows are kept and reused from one output row to the next (slot = row mod 3); a fourth is always
zero. They have a length known here, so every tap is at a constant distance and stays in the L1 or L2 cache.

A run of pixels is done in blocks of one length. The last block is moved back to end where the run ends, so
some pixels are computed twice, to the same bits; what is shorter than a block goes through a spare row. So every
sample is computed by the same instructions wherever tiles, strips and threads end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

from llvmlite import ir

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE
from edgeconv.hardware.cpu.emit import I32, I64, POINTER, UNSIGNED_MAX, Emitter, Value, is_float, splat
from edgeconv.hardware.cpu.scalars import SCALAR_BYTES, Scalar
from edgeconv.methods.cpu.lowering import Recipe, Tap

ENTRY_POINT = "work"
CACHE_LINE_BYTES = 64
ZERO_SLOT = KERNEL_SIZE
SLOTS = KERNEL_SIZE + 1
COPY_CHUNK_BYTES = 16
BEYOND_16_BITS = 2**16
EXPONENT_BITS, ONE_TWICE = 0x7F800000, 0x7F000000
"""Of a float32: its exponent; what the bits of 2^k and of 2^-k add up to."""
LEAST_SCALE, LARGEST_SCALE = 0x01000000, 0x7E000000
WIDEST_VECTOR_STRIDE = KERNEL_SIZE
"""Beyond it most of a source row is not read at all, and samples are picked one by one."""


class Argument(IntEnum):
    """Places in the block of int64 that the function is given; the names say what lies there."""

    IMAGE_ADDRESS = 0
    OUT_ADDRESS = 1
    NEXT_UNIT = 2
    """Counted up atomically by all workers."""
    UNITS = 3
    TILES_A_STRIP = 4
    STRIP_ROWS = 5
    OUT_ROWS = 6
    IMAGE_ROW_SAMPLES = 7
    OUT_ROW_SAMPLES = 8
    SOURCE_ROWS_ADDRESS = 9
    """int32 of every padded row: the source row, or OUTSIDE."""
    TILES_ADDRESS = 10
    PICKS_ADDRESS = 11
    SCRATCH_ADDRESS = 12


class TileFields(IntEnum):
    """int64 fields of a tile, in pixels (in samples where the recipe is flat)."""

    OUT_START = 0
    OUT_COUNT = 1
    GROUPS_START = 2
    """Staged positions from here to GROUPS_STOP are filled by vectors from SOURCE_START on, stride pixels each."""
    GROUPS_STOP = 3
    SOURCE_START = 4
    PICKS_START = 5
    """The other positions are filled one by one, as PICKS_START to PICKS_STOP of the picks say."""
    PICKS_STOP = 6


class Pick(IntEnum):
    """int32 fields of a pick."""

    POSITION = 0
    """phase · pitch + index, in a plane."""
    SOURCE = 1
    """Source pixel of the row (sample where flat), or OUTSIDE for a zero."""


@dataclass(frozen=True)
class RowLayout:
    """Lengths that the code is written for, all derived from the recipe and the processor."""

    vector_bytes: int
    block_pixels: int
    """Pixels (samples where flat) of one block of `respond`."""
    tile_pixels: int
    pitch: int
    """Elements from one staged phase to the next."""
    slot_bytes: int
    columns: int
    """Column rows that im2col copies out; 0 for a sliding window."""
    columns_pitch_bytes: int
    spare_bytes: int

    @property
    def columns_offset_bytes(self) -> int:
        """Where the columns lie in a worker's scratch."""
        return SLOTS * self.slot_bytes

    @property
    def spare_offset_bytes(self) -> int:
        """Where the spare row for short runs lies."""
        return self.columns_offset_bytes + self.columns * self.columns_pitch_bytes

    @property
    def scratch_bytes(self) -> int:
        """One worker's scratch."""
        return self.spare_offset_bytes + self.spare_bytes


def make_layout(recipe: Recipe, vector_bytes: int, tile_pixels: int, columns: bool) -> RowLayout:
    """Choose the lengths: blocks of one register of stored samples or four of sums, rows padded to cache lines.

    Past the caches whole lines are stored, and what comes before the first of them in a run must fit into a block.
    """
    block = max(vector_bytes // SCALAR_BYTES[recipe.stored], SUM_REGISTERS * vector_bytes // SCALAR_BYTES[recipe.sum])
    if recipe.streaming:
        block = max(block, CACHE_LINE_BYTES // SCALAR_BYTES[recipe.stored])
    staged_bytes = SCALAR_BYTES[recipe.staged]
    longest = max(tile_pixels, block, 2 * vector_bytes) + block + reach(recipe)
    pitch_bytes = _odd_lines(longest * staged_bytes)
    return RowLayout(
        vector_bytes=vector_bytes,
        block_pixels=block,
        tile_pixels=tile_pixels,
        pitch=pitch_bytes // staged_bytes,
        slot_bytes=len(recipe.planes) * recipe.phases * pitch_bytes,
        columns=len(recipe.planes) * KERNEL_SIZE * KERNEL_SIZE if columns else 0,
        columns_pitch_bytes=pitch_bytes,
        spare_bytes=_odd_lines(block * RGB_CHANNELS * SCALAR_BYTES[recipe.stored]),
    )


FETCH_AHEAD_BYTES = 4096
"""Distance of prefetches while staging: measured, docs/cpu-engine.md."""

MULTIPLY_ADDS_TO_HIDE_A_LINE = 16
"""Vector multiply-adds that take as long as a cache line takes to come at 20 GB/s: measured, docs/cpu-engine.md."""

SUM_REGISTERS = 4
"""Registers of sums in flight for each response: hides the latency of a multiply-add, and every weight and
every address is fetched once for all of them."""


def tap_step(recipe: Recipe) -> int:
    """Distance between horizontal neighbours in a staged row at stride 1."""
    return RGB_CHANNELS if recipe.flat else 1


def channels_a_pixel(recipe: Recipe) -> int:
    """Source samples that one staged position stands for."""
    return 1 if recipe.flat else RGB_CHANNELS


def stored_a_pixel(recipe: Recipe) -> int:
    """Output samples that one position of a run stands for."""
    return 1 if recipe.flat else len(recipe.result_of_output)


def source_bytes_a_position(recipe: Recipe) -> int:
    """Bytes of one source row under one staged position of all phases."""
    return channels_a_pixel(recipe) * recipe.stride * SCALAR_BYTES[recipe.source]


def fetches_while_computing(recipe: Recipe, layout: RowLayout) -> bool:
    """Whether the source rows of the next output row are asked for while this one is computed.

    It hides the memory behind arithmetic where there is enough of it; where there is little, the requests pile
    up in front of the stores, and it is better to ask a page ahead while staging.
    """
    if not recipe.streaming:
        return False
    registers = layout.block_pixels * SCALAR_BYTES[recipe.sum] / layout.vector_bytes
    taps = sum(len(response) for result in recipe.results for response in result)
    lines = layout.block_pixels * source_bytes_a_position(recipe) * recipe.phases / CACHE_LINE_BYTES
    return taps * registers / lines >= MULTIPLY_ADDS_TO_HIDE_A_LINE


def reach(recipe: Recipe) -> int:
    """Staged positions beyond a pixel's own that its taps read."""
    return (KERNEL_SIZE - 1) * tap_step(recipe)


def _odd_lines(size_bytes: int) -> int:
    """Whole cache lines, an odd number of them: rows at a power of two apart would fight for the same cache sets."""
    lines = -(-size_bytes // CACHE_LINE_BYTES)
    return (lines | 1) * CACHE_LINE_BYTES


def write(recipe: Recipe, layout: RowLayout) -> str:
    """LLVM IR of `void work(int64 *arguments, int64 worker)`."""
    return _Writer(recipe, layout).write()


class _Writer:
    def __init__(self, recipe: Recipe, layout: RowLayout) -> None:
        self.recipe, self.layout = recipe, layout
        self.e = Emitter(ir.Module(name="edgeconv"), ENTRY_POINT, [POINTER, I64])
        self.arguments, worker = self.e.function.args
        scratch = self._argument_pointer(Argument.SCRATCH_ADDRESS)
        self.scratch = self._bytes_on(scratch, self.e.block.mul(worker, self.e.int64(layout.scratch_bytes)))

    def write(self) -> str:
        e = self.e
        place = e.address_of_int64(self.arguments, Argument.NEXT_UNIT)
        units, tiles_a_strip = self._argument(Argument.UNITS), self._argument(Argument.TILES_A_STRIP)
        with e.repeat() as leave:
            unit = e.block.atomic_rmw("add", place, e.int64(1), "monotonic")
            leave(e.block.icmp_signed(">=", unit, units))
            self._one_unit(e.block.sdiv(unit, tiles_a_strip), e.block.srem(unit, tiles_a_strip))
        if self.recipe.streaming:
            e.block.fence("seq_cst")  # stores past the caches are seen by others only after a fence
        e.block.ret_void()
        return str(e.module)

    # --- one unit -----------------------------------------------------------------------------------------------

    def _one_unit(self, strip: Value, tile: Value) -> None:
        e, stride = self.e, self.e.int64(self.recipe.stride)
        self._load_tile(tile)
        strip_rows = self._argument(Argument.STRIP_ROWS)
        start = e.block.mul(strip, strip_rows)
        stop = e.minimum(e.block.add(start, strip_rows), self._argument(Argument.OUT_ROWS))
        next_to_stage = e.variable(e.int64(0))
        e.block.store(e.block.mul(start, stride), next_to_stage)
        with e.count(start, stop) as y:
            first = e.block.mul(y, stride)
            after = e.block.add(first, e.int64(KERNEL_SIZE))
            with e.count(e.maximum(first, e.block.load(next_to_stage, typ=I64)), after) as row:
                self._stage_row(row)
            e.block.store(after, next_to_stage)
            slots = [self._slot_of(e.block.add(first, e.int64(u))) for u in range(KERNEL_SIZE)]
            if fetches_while_computing(self.recipe, self.layout):
                self.coming = self._coming_rows(after)
            row_start = e.block.mul(y, self._argument(Argument.OUT_ROW_SAMPLES))
            run_start = e.block.mul(self.tile[TileFields.OUT_START], e.int64(stored_a_pixel(self.recipe)))
            out = e.address(
                self._argument_pointer(Argument.OUT_ADDRESS), self.recipe.stored, e.block.add(row_start, run_start)
            )
            if self.recipe.direct:
                rows = [self._picture_row(e.block.add(first, e.int64(u))) for u in range(KERNEL_SIZE)]
                self._respond_direct(self._window(rows), self._window(slots), out)
            elif self.recipe.streaming:
                self._respond_streaming(self._window(slots) if not self.layout.columns else self._columns(slots), out)
            else:
                self._respond_row(self._window(slots) if not self.layout.columns else self._columns(slots), out)

    def _load_tile(self, tile: Value) -> None:
        e = self.e
        fields = e.address_of_int64(
            self._argument_pointer(Argument.TILES_ADDRESS), e.block.mul(tile, e.int64(len(TileFields)))
        )
        self.tile = {name: e.block.load(e.address_of_int64(fields, name), typ=I64) for name in TileFields}

    def _source_row(self, padded_row: Value) -> Value:
        """Source row of a padded row as int64, or OUTSIDE."""
        e = self.e
        table = self._argument_pointer(Argument.SOURCE_ROWS_ADDRESS)
        return e.block.sext(e.block.load(e.address(table, "i32", padded_row), typ=I32), I64)

    def _slot_of(self, padded_row: Value) -> Value:
        """Address of the staged row, or of the zero row."""
        e = self.e
        outside = e.block.icmp_signed("==", self._source_row(padded_row), e.int64(OUTSIDE))
        ring = e.block.srem(padded_row, e.int64(KERNEL_SIZE))
        slot = e.block.select(outside, e.int64(ZERO_SLOT), ring)
        return self._bytes_on(self.scratch, e.block.mul(slot, e.int64(self.layout.slot_bytes)))

    def _picture_row(self, padded_row: Value) -> Value:
        """Address in the picture that stands for position 0 of the tile in a padded row, or of the zero row."""
        e = self.e
        source_row = self._source_row(padded_row)
        outside = e.block.icmp_signed("==", source_row, e.int64(OUTSIDE))
        start = e.block.add(
            e.block.mul(e.maximum(source_row, e.int64(0)), self._argument(Argument.IMAGE_ROW_SAMPLES)),
            e.block.sub(self.tile[TileFields.SOURCE_START], self.tile[TileFields.GROUPS_START]),
        )
        row = e.address(self._argument_pointer(Argument.IMAGE_ADDRESS), self.recipe.source, start)
        return e.block.select(outside, self._slot_of(padded_row), row)

    def _coming_rows(self, padded_row: Value) -> list[Value]:
        """Where the source rows that the next output row stages begin, for this tile."""
        e, recipe = self.e, self.recipe
        rows = []
        for ahead in range(min(recipe.stride, KERNEL_SIZE)):
            skipped = max(0, recipe.stride - KERNEL_SIZE)
            source_row = self._source_row(e.block.add(padded_row, e.int64(skipped + ahead)))
            inside = e.maximum(source_row, e.int64(0))
            start = e.block.add(
                e.block.mul(inside, self._argument(Argument.IMAGE_ROW_SAMPLES)),
                e.block.mul(self.tile[TileFields.SOURCE_START], e.int64(channels_a_pixel(recipe))),
            )
            rows.append(e.address(self._argument_pointer(Argument.IMAGE_ADDRESS), recipe.source, start))
        return rows

    def _fetch_coming(self, x: Value) -> None:
        """Ask for the part of the coming rows that the block at `x` stands over, while this block computes."""
        e, recipe, layout = self.e, self.recipe, self.layout
        block_bytes = source_bytes_a_position(recipe) * layout.block_pixels
        for row in self.coming:
            first = self._bytes_on(row, e.block.mul(x, e.int64(source_bytes_a_position(recipe))))
            for line in range(0, block_bytes, CACHE_LINE_BYTES):
                e.prefetch(self._bytes_on(first, e.int64(line)))

    # --- stage --------------------------------------------------------------------------------------------------

    def _stage_row(self, padded_row: Value) -> None:
        e = self.e
        source_row = self._source_row(padded_row)
        with e.block.if_then(e.block.icmp_signed("!=", source_row, e.int64(OUTSIDE))):
            row = e.address(
                self._argument_pointer(Argument.IMAGE_ADDRESS),
                self.recipe.source,
                e.block.mul(source_row, self._argument(Argument.IMAGE_ROW_SAMPLES)),
            )
            slot = self._slot_of(padded_row)
            if self.recipe.stride <= WIDEST_VECTOR_STRIDE:
                self._stage_groups(row, slot)
            self._stage_picks(row, slot)

    def _stage_groups(self, row: Value, slot: Value) -> None:
        """Vectors of groups; a group is `stride` whole pixels and gives one position of every phase."""
        e, recipe = self.e, self.recipe
        lanes = self.layout.vector_bytes // SCALAR_BYTES[recipe.source]
        channels = channels_a_pixel(recipe)
        start, stop = self.tile[TileFields.GROUPS_START], self.tile[TileFields.GROUPS_STOP]
        # Where taps read the picture itself, only the vectors next to the borders are wanted: the first and the last.
        step = e.maximum(e.block.sub(stop, e.block.add(start, e.int64(lanes))), e.int64(1)) if recipe.direct else lanes
        with self._blocks(start, stop, lanes, step) as group:
            pixel = e.block.add(
                self.tile[TileFields.SOURCE_START],
                e.block.mul(e.block.sub(group, start), e.int64(recipe.stride)),
            )
            first = e.address(row, recipe.source, e.block.mul(pixel, e.int64(channels)))
            if recipe.streaming and not fetches_while_computing(recipe, self.layout):
                for line in range(0, lanes * source_bytes_a_position(recipe), CACHE_LINE_BYTES):
                    e.prefetch(self._bytes_on(first, e.int64(FETCH_AHEAD_BYTES + line)))
            loaded = [
                e.load(e.address(first, recipe.source, e.int64(part * lanes)), recipe.source, lanes)
                for part in range(channels * recipe.stride)
            ]
            by_channel = [_every(e, loaded, channel, channels) for channel in range(channels)]
            for phase in range(recipe.phases):
                picked = [_every(e, vectors, phase, recipe.stride)[0] for vectors in by_channel]
                samples = [e.convert(vector, recipe.source, recipe.staged) for vector in picked]
                self._put_planes(slot, e.block.add(group, e.int64(phase * self.layout.pitch)), samples)

    def _put_planes(self, slot: Value, position: Value, samples: list[Value]) -> None:
        """Sum the channels of each plane and store them at `position`."""
        e, recipe = self.e, self.recipe
        for number, channels in enumerate(recipe.planes):
            total = samples[channels[0]]
            for channel in channels[1:]:
                add = e.block.fadd if is_float(recipe.staged) else e.block.add
                total = add(total, samples[channel])
            plane = e.int64(number * recipe.phases * self.layout.pitch)
            e.store(total, e.address(slot, recipe.staged, e.block.add(position, plane)), recipe.staged)

    def _stage_picks(self, row: Value, slot: Value) -> None:
        """The borders, and all of a row too short for vectors or strided too wide."""
        e, recipe = self.e, self.recipe
        table = self._argument_pointer(Argument.PICKS_ADDRESS)
        channels = channels_a_pixel(recipe)
        nothing = splat(recipe.staged, 1, 0)
        with e.count(self.tile[TileFields.PICKS_START], self.tile[TileFields.PICKS_STOP]) as number:
            pick = e.address(table, "i32", e.block.mul(number, e.int64(len(Pick))))
            position, source = (
                e.block.sext(e.block.load(e.address(pick, "i32", e.int64(field)), typ=I32), I64) for field in Pick
            )
            outside = e.block.icmp_signed("==", source, e.int64(OUTSIDE))
            pixel = e.block.select(outside, e.int64(0), source)
            samples = []
            for channel in range(channels):
                index = e.block.add(e.block.mul(pixel, e.int64(channels)), e.int64(channel))
                loaded = e.convert(
                    e.load(e.address(row, recipe.source, index), recipe.source, 1), recipe.source, recipe.staged
                )
                samples.append(e.block.select(outside, nothing, loaded))
            self._put_planes(slot, position, samples)

    # --- taps ---------------------------------------------------------------------------------------------------

    def _window(self, slots: list[Value]) -> Callable[[Tap], Value]:
        """Address of a tap for pixel 0 of the run, in the staged rows."""
        recipe, pitch = self.recipe, self.layout.pitch

        def base(tap: Tap) -> Value:
            phase, shift = tap.v % recipe.stride, tap.v // recipe.stride * tap_step(recipe)
            return self.e.address(
                slots[tap.u], recipe.staged, self.e.int64((tap.plane * recipe.phases + phase) * pitch + shift)
            )

        return base

    def _columns(self, slots: list[Value]) -> Callable[[Tap], Value]:
        """Copy the run's samples of every tap into a row of its own, and give those rows' addresses."""
        e, recipe, layout = self.e, self.recipe, self.layout
        window = self._window(slots)
        columns = self._bytes_on(self.scratch, e.int64(layout.columns_offset_bytes))

        def base(tap: Tap) -> Value:
            number = (tap.plane * KERNEL_SIZE + tap.u) * KERNEL_SIZE + tap.v
            return self._bytes_on(columns, e.int64(number * layout.columns_pitch_bytes))

        lanes = layout.vector_bytes // SCALAR_BYTES[recipe.staged]
        for tap in every_tap(len(recipe.planes)):
            source, target = window(tap), base(tap)
            with e.count(e.int64(0), self.tile[TileFields.OUT_COUNT], lanes) as x:
                vector = e.load(e.address(source, recipe.staged, x), recipe.staged, lanes)
                e.store(vector, e.address(target, recipe.staged, x), recipe.staged)
        return base

    # --- respond and store --------------------------------------------------------------------------------------

    def _respond_row(self, base: Callable[[Tap], Value], out: Value) -> None:
        """Compute a run that stays in the caches."""
        e, block = self.e, self.layout.block_pixels
        count = self.tile[TileFields.OUT_COUNT]
        with self._blocks(e.int64(0), count, block) as x:
            self._respond_block(base, x, self._out_at(out, x), aligned_bytes=None)
        is_short = e.block.icmp_signed("<", count, e.int64(block))
        self._respond_part(base, e.int64(0), e.int64(0), e.block.select(is_short, count, e.int64(0)), out)

    def _respond_streaming(self, base: Callable[[Tap], Value], out: Value) -> None:
        """Compute a run whose whole cache lines go past the caches."""
        e = self.e
        count = self.tile[TileFields.OUT_COUNT]
        first, last = self._respond_lines(base, e.int64(0), count, out)
        with self._either(first, e.block.sub(count, last)) as (at_start, length):
            self._respond_part(base, e.block.select(at_start, e.int64(0), last), e.int64(0), length, out)

    def _respond_direct(self, picture: Callable[[Tap], Value], staged: Callable[[Tap], Value], out: Value) -> None:
        """The same, reading the picture wherever all taps lie inside it and staged borders elsewhere."""
        e, block = self.e, self.e.int64(self.layout.block_pixels)
        count = self.tile[TileFields.OUT_COUNT]
        start = self.tile[TileFields.GROUPS_START]
        stop = e.minimum(e.block.sub(self.tile[TileFields.GROUPS_STOP], e.int64(reach(self.recipe))), count)
        first, last = self._respond_lines(picture, start, stop, out)
        with self._either(e.block.sub(first, start), e.block.sub(stop, last)) as (at_start, length):
            x = e.block.select(at_start, start, e.block.sub(stop, block))
            skipped = e.block.select(at_start, e.int64(0), e.block.sub(last, x))
            self._respond_part(picture, x, skipped, length, out)
        with self._either(start, e.block.sub(count, stop)) as (at_start, length):
            self._respond_part(staged, e.block.select(at_start, e.int64(0), stop), e.int64(0), length, out)

    def _respond_lines(
        self, base: Callable[[Tap], Value], start: Value, stop: Value, out: Value
    ) -> tuple[Value, Value]:
        """Compute the blocks between `start` and `stop` that begin on cache lines; gives back where they do."""
        e, layout = self.e, self.layout
        first = e.block.add(start, self._pixels_to_line(self._out_at(out, start)))
        first = e.minimum(first, stop)
        blocks = e.block.sdiv(e.block.sub(stop, first), e.int64(layout.block_pixels))
        last = e.block.add(first, e.block.mul(blocks, e.int64(layout.block_pixels)))
        with e.count(first, last, layout.block_pixels) as x:
            if fetches_while_computing(self.recipe, layout):
                self._fetch_coming(x)
            self._respond_block(base, x, self._out_at(out, x), aligned_bytes=layout.vector_bytes)
        return first, last

    @contextmanager
    def _either(self, at_start: Value, at_end: Value) -> Iterator[tuple[Value, Value]]:
        """Do the same for both ends of a run: (whether it is the start, the length there).

        The ends are written sample by sample: a cached store to a line that is also stored past the caches throws
        the line out of them, which costs hundreds of cycles a row.
        """
        e = self.e
        with e.count(e.int64(0), e.int64(2)) as end:
            is_start = e.block.icmp_signed("==", end, e.int64(0))
            yield is_start, e.block.select(is_start, at_start, at_end)

    def _respond_part(self, base: Callable[[Tap], Value], x: Value, skipped: Value, count: Value, out: Value) -> None:
        """Of the block at `x`, store `count` pixels after the first `skipped`; `count` may be 0."""
        e, recipe = self.e, self.recipe
        spare = self._bytes_on(self.scratch, e.int64(self.layout.spare_offset_bytes))
        with e.block.if_then(e.block.icmp_signed(">", count, e.int64(0))):
            self._respond_block(base, x, spare, aligned_bytes=None)
            pixel_bytes = stored_a_pixel(recipe) * SCALAR_BYTES[recipe.stored]
            target = self._out_at(out, e.block.add(x, skipped))
            self._copy_bytes(self._out_at(spare, skipped), target, e.block.mul(count, e.int64(pixel_bytes)))

    def _out_at(self, out: Value, x: Value) -> Value:
        """Address of pixel `x` of the run that starts at `out`."""
        samples = self.e.block.mul(x, self.e.int64(stored_a_pixel(self.recipe)))
        return self.e.address(out, self.recipe.stored, samples)

    def _copy_bytes(self, source: Value, target: Value, size_bytes: Value) -> None:
        e = self.e
        chunked = e.block.and_(size_bytes, e.int64(-COPY_CHUNK_BYTES))
        for start, stop, step in ((e.int64(0), chunked, COPY_CHUNK_BYTES), (chunked, size_bytes, 1)):
            with e.count(start, stop, step) as at:
                e.store(e.load(e.address(source, "u8", at), "u8", step), e.address(target, "u8", at), "u8")

    def _pixels_to_line(self, out: Value) -> Value:
        """The first pixel whose stored samples start on a cache line.

        With n samples a line and c a pixel, c·x ≡ −address (mod n); c is 1 or 3 and n a power of two, so c has
        an inverse modulo n.
        """
        e = self.e
        stored_bytes = SCALAR_BYTES[self.recipe.stored]
        samples_a_line = CACHE_LINE_BYTES // stored_bytes
        inverse = pow(stored_a_pixel(self.recipe), -1, samples_a_line)
        address = e.block.udiv(e.block.ptrtoint(out, I64), e.int64(stored_bytes))
        solution = e.block.mul(e.block.sub(e.int64(0), address), e.int64(inverse))
        return e.block.and_(solution, e.int64(samples_a_line - 1))

    def _respond_block(self, base: Callable[[Tap], Value], x: Value, out: Value, aligned_bytes: int | None) -> None:
        """Compute the block of pixels at `x` of the run and store it at `out`."""
        e, recipe, layout = self.e, self.recipe, self.layout
        values = [
            self._stored(self._join(responses))
            for responses in self._responses(lambda tap: e.address(base(tap), recipe.staged, x))
        ]
        lanes = min(layout.vector_bytes // SCALAR_BYTES[recipe.stored], layout.block_pixels)
        channels = stored_a_pixel(recipe)
        pieces = [e.slices(value, lanes) for value in values]
        for number, parts in enumerate(zip(*pieces, strict=True)):
            for channel_part in range(channels):
                vector = parts[0] if channels == 1 else self._interleaved(parts, channel_part, lanes)
                offset = e.int64((number * channels + channel_part) * lanes)
                e.store(vector, e.address(out, recipe.stored, offset), recipe.stored, aligned_bytes)

    def _interleaved(self, results: tuple[Value, ...], part: int, lanes: int) -> Value:
        """Register `part` of three that hold the channels of `lanes` pixels side by side."""
        samples = range(part * lanes, (part + 1) * lanes)
        picks = [(self.recipe.result_of_output[i % RGB_CHANNELS], i // RGB_CHANNELS) for i in samples]
        return self.e.shuffle(results, picks)

    def _responses(self, address: Callable[[Tap], Value]) -> list[list[Value]]:
        """Sums of every result and direction; each tap is loaded once for all of them."""
        e, recipe, lanes = self.e, self.recipe, self.layout.block_pixels
        sums: dict[tuple[int, int], Value] = {}
        for tap in every_tap(len(recipe.planes)):
            sample: Value | None = None
            for number, result in enumerate(recipe.results):
                for direction, response in enumerate(result):
                    weight = dict(response).get(tap)
                    if weight is None:
                        continue
                    if sample is None:
                        loaded = e.load(address(tap), recipe.staged, lanes)
                        sample = e.convert(loaded, recipe.staged, recipe.sum)
                    place = (number, direction)
                    sums[place] = self._multiply_add(sample, weight, sums.get(place))
        nothing = splat(recipe.sum, lanes, 0)
        return [
            [sums.get((number, direction), nothing) for direction in range(len(result))]
            for number, result in enumerate(recipe.results)
        ]

    def _multiply_add(self, sample: Value, weight: float, total: Value | None) -> Value:
        e, scalar = self.e, self.recipe.sum
        factor = splat(scalar, self.layout.block_pixels, weight)
        if is_float(scalar):
            return (
                e.block.fmul(sample, factor) if total is None else e.call("llvm.fmuladd", scalar, sample, factor, total)
            )
        product = e.block.mul(sample, factor)
        return product if total is None else e.block.add(total, product)

    def _join(self, responses: list[Value]) -> tuple[Value, Scalar]:
        """One value from all directions, and its type."""
        e, scalar = self.e, self.recipe.sum
        if self.recipe.combine == "magnitude":
            return self._length(responses[0], responses[1])
        joined = responses[0]
        for response in responses[1:]:
            if is_float(scalar):  # a NaN stays one
                above = e.block.fcmp_ordered(">", response, joined)
                taken = e.block.or_(above, e.block.fcmp_unordered("uno", response, response))
                joined = e.block.select(taken, response, joined)
            else:
                joined = e.call("llvm.smax", scalar, joined, response)
        return joined, scalar

    def _length(self, first: Value, second: Value) -> tuple[Value, Scalar]:
        """sqrt(first² + second²), and its type."""
        e, scalar, recipe = self.e, self.recipe.sum, self.recipe
        if scalar == "f64":
            return self._root_of_squares(first, second, scalar), scalar
        if scalar == "i32" and recipe.stored == "u16":
            return self._whole_length(first, second), scalar
        gx, gy = (e.convert(response, scalar, "f32") for response in (first, second))
        if is_float(scalar) and is_float(recipe.stored):
            return self._scaled_length(gx, gy), "f32"
        return self._root_of_squares(gx, gy, "f32"), "f32"

    def _root_of_squares(self, first: Value, second: Value, scalar: Scalar) -> Value:
        e = self.e
        square = e.call("llvm.fmuladd", scalar, first, first, e.block.fmul(second, second))
        return e.call("llvm.sqrt", scalar, square)

    def _scaled_length(self, first: Value, second: Value) -> Value:
        """The length in float32; scaled by a power of two, so that squares neither overflow nor vanish.

        Where they would do neither, the result is that of the plain formula, bit for bit.
        """
        e, lanes = self.e, self.layout.block_pixels
        bits = (
            e.block.and_(e.same_bits(value, "i32"), splat("i32", lanes, EXPONENT_BITS)) for value in (first, second)
        )
        exponent = e.call("llvm.smax", "i32", *bits)
        scale = e.call("llvm.smin", "i32", exponent, splat("i32", lanes, LARGEST_SCALE))
        scale = e.call("llvm.smax", "i32", scale, splat("i32", lanes, LEAST_SCALE))
        down = e.same_bits(e.block.sub(splat("i32", lanes, ONE_TWICE), scale), "f32")
        root = self._root_of_squares(e.block.fmul(first, down), e.block.fmul(second, down), "f32")
        return e.block.fmul(root, e.same_bits(scale, "f32"))

    def _whole_length(self, first: Value, second: Value) -> Value:
        """The nearest whole number to the length of two whole numbers, up to 65,536, as int32.

        float32 does not hold its square, so the estimate may be one off near a half. What is left of the square tells,
        and int32 holds that although it does not hold the square.
        """
        e, lanes = self.e, self.layout.block_pixels
        beyond, nothing = splat("f32", lanes, BEYOND_16_BITS), splat("i32", lanes, 0)
        gx, gy = (e.convert(response, "i32", "f32") for response in (first, second))
        estimate = self._root_of_squares(gx, gy, "f32")
        is_beyond = e.block.fcmp_ordered(">=", estimate, beyond)
        length = e.round_to_int(e.block.select(is_beyond, beyond, estimate), "f32")
        square = e.block.add(e.block.mul(first, first), e.block.mul(second, second))
        longer = e.block.add(length, splat("i32", lanes, 1))
        left = e.block.sub(square, e.block.mul(length, longer))
        shorter = e.block.sub(length, splat("i32", lanes, 1))
        is_long = e.block.icmp_signed("<=", left, e.block.sub(nothing, e.block.add(length, length)))
        is_long = e.block.and_(is_long, e.block.icmp_signed(">", length, nothing))
        corrected = e.block.select(is_long, shorter, length)
        corrected = e.block.select(e.block.icmp_signed(">", left, nothing), longer, corrected)
        return e.block.select(is_beyond, splat("i32", lanes, BEYOND_16_BITS), corrected)

    def _stored(self, value_and_type: tuple[Value, Scalar]) -> Value:
        """The output mode's rule (output.py)."""
        value, scalar = value_and_type
        recipe, e, lanes = self.recipe, self.e, self.layout.block_pixels
        if recipe.output_mode == "abs" and recipe.combine != "magnitude":  # a magnitude has no sign
            value = e.call("llvm.fabs" if is_float(scalar) else "llvm.abs", scalar, value)
        if is_float(recipe.stored):
            return e.convert(value, scalar, recipe.stored)
        white, black = splat(scalar, lanes, UNSIGNED_MAX[recipe.stored]), splat(scalar, lanes, 0)
        if is_float(scalar):
            value = e.block.select(e.block.fcmp_ordered("<", value, white), value, white)
            if recipe.output_mode == "clip":
                value = e.block.select(e.block.fcmp_ordered(">", value, black), value, black)
            return e.narrow(e.round_to_int(value, scalar), recipe.stored)
        if recipe.output_mode == "clip":
            value = e.call("llvm.smax", scalar, value, black)
        return e.narrow(e.call("llvm.umin", scalar, value, white), recipe.stored)

    # --- small things -------------------------------------------------------------------------------------------

    @contextmanager
    def _blocks(self, start: Value, stop: Value, size: int, step: Value | int | None = None) -> Iterator[Value]:
        """Blocks of `size` from `start` to `stop`, the last one moved back; none where they do not fit."""
        e = self.e
        last = e.block.sub(stop, e.int64(size))
        fits = e.block.icmp_signed("<=", start, last)
        with e.count(start, e.block.select(fits, stop, start), size if step is None else step) as index:
            yield e.minimum(index, last)

    def _argument(self, name: Argument) -> Value:
        return self.e.block.load(self.e.address_of_int64(self.arguments, name), typ=I64)

    def _argument_pointer(self, name: Argument) -> Value:
        return self.e.block.inttoptr(self._argument(name), POINTER)

    def _bytes_on(self, base: Value, offset_bytes: Value) -> Value:
        return self.e.address(base, "u8", offset_bytes)


def every_tap(planes: int) -> list[Tap]:
    """All taps of all planes, plane by plane and row by row."""
    sides = range(KERNEL_SIZE)
    return [Tap(plane, u, v) for plane in range(planes) for u in sides for v in sides]


def _every(e: Emitter, vectors: list[Value], first: int, step: int) -> list[Value]:
    """Elements first, first + step, ... of the sequence that `vectors` hold, in vectors of the same length."""
    lanes = vectors[0].type.count
    if step == 1:
        return vectors
    wanted = []
    for start in range(0, len(vectors) // step * lanes, lanes):
        places = [(start + lane) * step + first for lane in range(lanes)]
        wanted.append(e.shuffle(vectors, [(place // lanes, place % lanes) for place in places]))
    return wanted
