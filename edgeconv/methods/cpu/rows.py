"""The machine code of one layout, written as LLVM IR: what one thread does with the units of work that it is given.

A unit is a tile: `strip_rows` output rows of up to `tile_pixels` output pixels. For each output row of a tile

    stage      bring the source rows that it needs and that are not there yet into scratch rows: channels apart (or
               summed), horizontal phases of the stride apart, borders filled in
    columns    im2col alone: the staged samples are copied out, one column row for each tap
    respond    vectors of pixels, or of a bank's outputs: load taps, multiply, add, and store them (sums.py), in blocks
               of one length. What is left over at the ends of a run is computed by the same instructions, so that every
               sample is the same wherever tiles, strips and threads end, in one of three ways:

    run         in the caches: the last block is moved back to end where the run ends. Past them: whole cache lines, and
                the ends of the run through a spare row
    direct      the same, reading the picture itself wherever all taps lie inside it. Where every sample has one,
                channels and phases are taken apart in registers
    together    some blocks of a bank are put together in the spare row, which is then copied out, in passes of as many
                outputs as registers hold
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce

from llvmlite import ir

from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE
from edgeconv.core.lowering import Tap, every_tap
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.hardware.cpu.emit import Array, Unit, Value, pieces, shuffle
from edgeconv.hardware.cpu.processor import SCALAR_BYTES, Scalar
from edgeconv.methods.cpu.layout import (
    WIDEST_VECTOR_STRIDE,
    Argument,
    BankPasses,
    RowLayout,
    TileFields,
)
from edgeconv.methods.cpu.sums import Samples, Sums

TapRows = Callable[[Tap], Array]
"""Where the samples under a tap lie, from the first pixel on."""
SamplesAt = Callable[[Value], Samples]
"""The samples under the taps of the pixels from here on, as many as are summed together."""

FETCH_AHEAD_BYTES = 8192
"""Distance of prefetches while staging: measured, docs/cpu-engine.md."""
COPY_CHUNKS_BYTES = (64, 16, 1)

PART_BYTES, VECTOR_BYTES_OF_WIDE_SHUFFLES, BYTES_OF_WIDE_SHUFFLES = 16, 64, 8
"""AVX2 and smaller shuffle bytes within parts of a register, and only doubles across them; AVX-512 shuffles any."""


def write(layout: RowLayout) -> str:
    """LLVM IR of `work` and `alone` (emit.Unit)."""
    code = _RowCode(layout)
    code.write()
    return code.text_with_alone(Argument.UNITS)


# --- taking samples apart that lie interleaved: channels of pixels, or residues of columns modulo a stride ------------


def part_lanes(vector_bytes: int, source: Scalar) -> int:
    """Elements of a part of a register, within which shuffles are cheap: all of AVX-512's, and of doubles."""
    bytes_of_sample = SCALAR_BYTES[source]
    if vector_bytes < VECTOR_BYTES_OF_WIDE_SHUFFLES and bytes_of_sample < BYTES_OF_WIDE_SHUFFLES:
        vector_bytes = PART_BYTES
    return vector_bytes // bytes_of_sample


def loaded_in_parts(first: Array, vectors: int, lanes: int, part: int) -> list[Value]:
    """All samples from `first` on that these registers hold, so that each part of all of them holds neighbours.

    Register k has at part j what lies at j · vectors + k: what is then shuffled within parts is in order.
    """
    loaded = []
    for vector in range(vectors):
        parts = [first.at((number * vectors + vector) * part).load(part) for number in range(lanes // part)]
        loaded += pieces(parts, lanes)
    return loaded


def every(vectors: list[Value], first: int, step: int, part: int) -> list[Value]:
    """Elements first, first + step, ... of the sequence that each part of `vectors` holds, as such vectors."""
    if step == 1:
        return vectors
    lanes = vectors[0].lanes
    wanted = []
    for start in range(0, len(vectors) // step * part, part):
        places = [(start + lane) * step + first for lane in range(part)]
        picks = [(place // part, number * part + place % part) for number in range(lanes // part) for place in places]
        wanted.append(shuffle(vectors, picks))
    return wanted


class _RowCode(Unit):
    """The function `work`."""

    def __init__(self, layout: RowLayout) -> None:
        super().__init__(ir.Module(name="edgeconv"))
        self.layout, self.lowering = layout, layout.lowering
        self.first_unit, self.stop_unit = self.more
        self.tile: dict[TileFields, Value] = {}
        self.scratch = self.at(Argument.SCRATCH_ADDRESS).at(self.worker * layout.scratch_bytes)
        self.sums = Sums(self, layout)
        self.kept: Scalar = self.lowering.source if layout.direct else self.lowering.staged
        """The type of samples in staged rows."""
        self.coming: list[Array] = []
        """The rows to ask for while computing, where that is worth it."""

    def write(self) -> None:
        """The loops around staging and runs."""
        with self.count(self.first_unit, self.stop_unit) as unit:
            self._tile_of_strip(unit // self[Argument.TILES_PER_STRIP], unit % self[Argument.TILES_PER_STRIP])
        if self.layout.streaming:
            self.block.fence("seq_cst")  # stores past the caches are seen by others only after a fence

    def _tile_of_strip(self, strip: Value, tile: Value) -> None:
        """A unit of work: the rows of a tile, one below the other; what two of them read is staged once."""
        fields = self.at(Argument.TILES_ADDRESS, "int64").at(tile * len(TileFields))
        self.tile = {name: fields[int(name)] for name in TileFields}
        strip_rows = self[Argument.STRIP_ROWS]
        start = strip * strip_rows
        together = self.layout.rows_together
        stop = (start + strip_rows).min(self[Argument.OUT_ROWS])
        last = stop - together
        next_to_stage = self.variable(0)
        next_to_stage.value = start.min(last) * self.lowering.stride
        with self.count(start, stop, together) as turn:
            y = turn.min(last)
            first = y * self.lowering.stride
            after = first + self.layout.rows_held
            self._stage(first.max(next_to_stage.value), after)
            next_to_stage.value = after
            self._respond_at(y)

    # --- where rows lie -------------------------------------------------------------------------------------------

    def _source_row(self, padded_row: Value) -> Value:
        """Source row of a padded row, or OUTSIDE."""
        return self.table(Argument.SOURCE_ROWS_ADDRESS, padded_row)

    def _slot_of(self, padded_row: Value) -> Array:
        """The staged row, or the zero row."""
        outside = self._source_row(padded_row).equals(OUTSIDE)
        held = self.layout.rows_held
        slot = outside.select(self.int64(held), padded_row % held)
        return self.scratch.at(slot * self.layout.slot_bytes).of(self.kept)

    def _picture_row(self, padded_row: Value) -> Array:
        """What stands in the picture for position 0 of the tile in a padded row, or the zero row."""
        source_row = self._source_row(padded_row)
        outside = source_row.equals(OUTSIDE)
        begins = self.tile[TileFields.SOURCE_START] - self.tile[TileFields.GROUPS_START] * self.lowering.stride
        start = source_row.max(0) * self[Argument.IMAGE_ROW_SAMPLES] + begins * self.layout.read_per_position
        row = self.at(Argument.IMAGE_ADDRESS, self.lowering.source).at(start)
        return self._either_row(outside, self._slot_of(padded_row), row)

    def _either_row(self, condition: Value, one: Array, other: Array) -> Array:
        """`one` where that is true, else `other`."""
        return Array(self, self.block.select(condition.ir, one.address, other.address), one.scalar)

    def _window(self, rows: list[Array]) -> TapRows:
        """Where the samples under a tap begin for pixel 0 of the run, in these rows or in columns copied from them."""
        layout, stride = self.layout, self.lowering.stride

        def window(tap: Tap) -> Array:
            phase = tap.plane * layout.phases + tap.v % stride
            return rows[tap.u].at(phase * layout.pitch + tap.v // stride * layout.tap_step)

        return self._columns(window) if layout.columns else window

    def _loaded(self, rows: list[Array]) -> SamplesAt:
        """Samples that lie in these rows as they are summed."""
        window = self._window(rows)
        return lambda x: lambda tap: window(tap).at(x).load(self.layout.sum_pixels)

    def _taken_apart(self, rows: list[Array]) -> SamplesAt:
        """Samples of rows that lie as in the picture."""

        def at(x: Value) -> Samples:
            of_row = cache(lambda u: self._phases(rows[u].at(x * self.lowering.stride * self.layout.read_per_position)))
            return lambda tap: of_row(tap.u)[tap.v][tap.plane]

        return at

    def _columns(self, window: TapRows) -> TapRows:
        """Copy the run's samples of every tap into a separate row, and return where those rows lie."""
        lowering, layout = self.lowering, self.layout
        columns = self.scratch.at(layout.columns_offset_bytes).of(lowering.staged)
        numbers = {tap: number for number, tap in enumerate(every_tap(len(lowering.planes)))}
        lanes = layout.vector_bytes // SCALAR_BYTES[lowering.staged]
        for tap, number in numbers.items():
            source, target = window(tap), columns.bytes_on(number * layout.pitch_bytes)
            with self.count(0, self.tile[TileFields.OUT_COUNT], lanes) as x:
                target.at(x).store(source.at(x).load(lanes))
        return lambda tap: columns.bytes_on(numbers[tap] * layout.pitch_bytes)

    # --- stage ----------------------------------------------------------------------------------------------------

    def _stage(self, first: Value, after: Value) -> None:
        """Stage these rows of the padded picture; a row outside it stays what the zero row is.

        Inside the picture whole vectors are taken apart by shuffles; the borders, and rows too short or strided too
        wide for vectors, go one by one, as a table of picks says.
        """
        with self.count(first, after) as padded_row:
            source_row = self._source_row(padded_row)
            with self.where(source_row.differs(OUTSIDE)):
                image = self.at(Argument.IMAGE_ADDRESS, self.lowering.source)
                row = image.at(source_row * self[Argument.IMAGE_ROW_SAMPLES])
                slot = self._slot_of(padded_row)
                if self.lowering.stride <= WIDEST_VECTOR_STRIDE and not (self.layout.direct and self.layout.unshared):
                    self._stage_groups(row, slot)
                self._stage_picks(row, slot)

    def _stage_groups(self, row: Array, slot: Array) -> None:
        """Vectors of groups; a group is `stride` whole pixels and gives one position of every phase."""
        lowering, layout, lanes = self.lowering, self.layout, self.layout.source_lanes
        channels = layout.read_per_position
        start, stop = self.tile[TileFields.GROUPS_START], self.tile[TileFields.GROUPS_STOP]
        # Where taps read the picture itself, only the vectors next to the borders are wanted: the first and the last.
        step = (stop - (start + lanes)).max(1) if layout.direct else lanes
        with self.blocks(start, stop, lanes, step) as group:
            first = row.at((self.tile[TileFields.SOURCE_START] + (group - start) * lowering.stride) * channels)
            if layout.fetching:
                for line in range(0, lanes * layout.source_bytes_per_position, CACHE_LINE_BYTES):
                    first.bytes_on(FETCH_AHEAD_BYTES + line).prefetch()
            for phase, planes in enumerate(self._phases(first)):
                for number, plane in enumerate(planes):
                    slot.at(group + (number * layout.phases + phase) * layout.pitch).store(plane)

    def _phases(self, first: Array) -> list[list[Value]]:
        """The planes of every phase of a register of positions, from `first` in the picture on."""
        lowering, channels = self.lowering, self.layout.read_per_position
        part = part_lanes(self.layout.vector_bytes, lowering.source)
        loaded = loaded_in_parts(first, channels * lowering.stride, self.layout.source_lanes, part)
        by_channel = [every(loaded, channel, channels, part) for channel in range(channels)]
        picked = [
            [every(of, phase, lowering.stride, part)[0] for of in by_channel] for phase in range(self.layout.phases)
        ]
        return [self._planes([vector.convert(lowering.source, lowering.staged) for vector in of]) for of in picked]

    def _planes(self, samples: list[Value]) -> list[Value]:
        """The channels of each plane, summed, with their shares if they have any."""
        if shares := self.lowering.shares:
            (plane,) = self.lowering.planes
            first, *others = plane
            blended = samples[first].times(shares[first])
            return [reduce(lambda total, channel: samples[channel].times(shares[channel], total), others, blended)]
        return [reduce(Value.__add__, [samples[channel] for channel in plane]) for plane in self.lowering.planes]

    def _stage_picks(self, row: Array, slot: Array) -> None:
        """The borders, and all of a row too short for vectors or strided too wide."""
        lowering, layout, channels = self.lowering, self.layout, self.layout.read_per_position
        table = self.at(Argument.PICKS_ADDRESS, "int32")
        nothing = self.splat(self.kept, 1, 0)
        with self.count(self.tile[TileFields.PICKS_START], self.tile[TileFields.PICKS_STOP]) as number:
            index, phase, source = (table.at(number * 3)[field].signed("int64") for field in range(3))
            outside = source.equals(OUTSIDE)
            pixel = outside.select(self.int64(0), source)
            samples = []
            for channel in range(channels):
                loaded = row.at(pixel * channels + channel).load(1).convert(lowering.source, self.kept)
                samples.append(outside.select(nothing, loaded))
            if layout.direct:
                place = (index * lowering.stride + phase) * channels
                for channel, sample in enumerate(samples):
                    slot.at(place + channel).store(sample)
            else:
                for plane, sample in enumerate(self._planes(samples)):
                    slot.at(index + (phase + plane * layout.phases) * layout.pitch).store(sample)

    def _coming_rows(self, padded_row: Value) -> list[Array]:
        """The source rows that the next output rows stage, from where this tile reads them."""
        begins = self.tile[TileFields.SOURCE_START]
        skipped = max(0, self.lowering.stride - KERNEL_SIZE)
        rows = []
        for ahead in range(min(self.lowering.stride * self.layout.rows_together, KERNEL_SIZE)):
            inside = self._source_row(padded_row + (skipped + ahead)).max(0)
            start = inside * self[Argument.IMAGE_ROW_SAMPLES] + begins * self.layout.read_per_position
            rows.append(self.at(Argument.IMAGE_ADDRESS, self.lowering.source).at(start))
        return rows

    def _fetch_coming(self, x: Value) -> None:
        """Ask for the part of the coming rows that the block at `x` stands over, while this block computes."""
        of_position = self.layout.source_bytes_per_position
        for row in self.coming:
            first = row.bytes_on(x * of_position)
            for line in range(0, of_position * self.layout.block_pixels, CACHE_LINE_BYTES):
                first.bytes_on(line).prefetch()

    # --- respond --------------------------------------------------------------------------------------------------

    def _respond_at(self, y: Value) -> None:
        """Compute the tile's part of the output rows from `y` on that are computed together; their rows are staged."""
        layout = self.layout
        first = y * self.lowering.stride
        slots = [self._slot_of(first + u) for u in range(layout.rows_held)]
        if layout.fetching and (layout.streaming or layout.direct):
            self.coming = self._coming_rows(first + layout.rows_held)
        run_start = self.tile[TileFields.OUT_START] * layout.stored_per_pixel
        starts = [(y + row) * self[Argument.OUT_ROW_SAMPLES] + run_start for row in range(layout.rows_together)]
        out = [self.at(Argument.OUT_ADDRESS, self.lowering.stored).at(start) for start in starts]
        if layout.bank is not None:
            self._respond_together(layout.bank, self._window(slots), out[0])
        elif layout.direct:
            picture = [self._picture_row(first + u) for u in range(layout.rows_held)]
            self._respond_run(self._taken_apart if layout.unshared else self._loaded, picture, slots, out)
        else:
            self._respond_run(self._loaded, slots, slots, out)

    def _respond_run(
        self, read: Callable[[list[Array]], SamplesAt], rows: list[Array], staged: list[Array], out: list[Array]
    ) -> None:
        """Compute a run from `rows`, and what lies beside them where those are the picture's from what is staged.

        What is left beside whole lines is written sample by sample: a cached store to a line that is also stored past
        the caches throws the line out of them, which costs hundreds of cycles a row.
        """
        layout, block, inside = self.layout, self.layout.block_pixels, read(rows)
        nothing, count = self.int64(0), self.tile[TileFields.OUT_COUNT]
        start, stop = nothing, count
        if layout.direct:
            start = self.tile[TileFields.GROUPS_START]
            stop = (self.tile[TileFields.GROUPS_STOP] - layout.reach).min(count)
        if layout.streaming:
            first = (start + self._pixels_to_line(self._out_at(out[0], start))).min(stop)
            last = first + (stop - first) // block * block
            with self.count(first, last, block) as x:
                self._fetch_coming(x)
                self._respond_block(inside, x, self._each_at(out, x), aligned_bytes=layout.vector_bytes)
        else:
            stop = (stop < block).select(nothing, stop)
            first, last = start, stop
            with self.blocks(start, stop, block) as x:
                self._fetch_coming(x)
                self._respond_block(inside, x, self._each_at(out, x))
            if not (layout.direct or layout.has_short_runs):
                return
        with self.count(0, self.int64(2)) as border, self.count(0, self.int64(2)) as end:
            is_inside, at_start = border.equals(0), end.equals(0)
            in_run = at_start.select(start, last.min((stop - block).max(start)))
            x = is_inside.select(in_run, at_start.select(nothing, stop))
            skipped = (is_inside & ~at_start).select(last - x, nothing)
            left_inside = at_start.select(first - start, stop - last)
            length = is_inside.select(left_inside, at_start.select(start, count - stop))
            either = [self._either_row(is_inside, *pair) for pair in zip(rows, staged, strict=True)]
            self._respond_part(read(either) if layout.direct else inside, x, skipped, length, out)

    def _respond_part(self, samples: SamplesAt, x: Value, skipped: Value, count: Value, out: list[Array]) -> None:
        """Of the block at `x`, store `count` pixels after the first `skipped`; `count` may be 0."""
        first = self.scratch.at(self.layout.spare_offset_bytes)
        spare = [first.bytes_on(row * self.layout.spare_bytes).of(self.lowering.stored) for row in range(len(out))]
        with self.where(count > 0):
            self._respond_block(samples, x, spare)
            for source, target in zip(self._each_at(spare, skipped), self._each_at(out, x + skipped), strict=True):
                self._copy_bytes(source, target, count * self.layout.stored_bytes)

    def _respond_block(self, samples: SamplesAt, x: Value, out: list[Array], aligned_bytes: int | None = None) -> None:
        """Compute the block of pixels at `x` of the runs and store it at `out`, for each row of them."""
        layout = self.layout
        lanes = min(layout.vector_bytes // SCALAR_BYTES[self.lowering.stored], layout.block_pixels)
        waiting: list[list[list[Value]]] = [[] for _ in out]
        offset = 0
        for start in range(0, layout.block_pixels, layout.sum_pixels):
            here = x + start if start else x
            responses = self.sums.responses(samples(here))
            for of_row, found in zip(waiting, responses, strict=True):
                of_row.append([self.sums.stored(of_result) for of_result in found])
            if len(waiting[0]) * layout.sum_pixels < lanes:
                continue
            for target, of_row in zip(out, waiting, strict=True):
                parts = zip(*(pieces(values, lanes) for values in zip(*of_row, strict=True)), strict=True)
                vectors = [vector for part in parts for vector in self.sums.interleaved(part)]
                for number, vector in enumerate(vectors):
                    target.at(offset + number * lanes).store(vector, aligned_bytes)
            offset += len(vectors) * lanes
            waiting = [[] for _ in out]

    # --- many outputs together ------------------------------------------------------------------------------------

    def _respond_together(self, bank: BankPasses, rows: TapRows, out: Array) -> None:
        """Compute a run by way of the spare row; a block may go beyond its end there."""
        layout, count = self.layout, self.tile[TileFields.OUT_COUNT]
        spare = self.scratch.at(layout.spare_offset_bytes).of(self.lowering.stored)
        taps = self._write_taps(rows)
        with self.count(0, count, layout.spare_pixels) as start:
            stop = (start + layout.spare_pixels).min(count)
            target = self._out_at(out, start)
            together = spare.bytes_on(target.number & (CACHE_LINE_BYTES - 1))  # so that lines of both lie alike
            with self.count(start, stop, layout.block_pixels) as x:
                self._fetch_coming(x)
                self._respond_passes(bank, taps, x, self._out_at(together, x - start))
            self._copy_lines(together, target, (stop - start) * layout.stored_bytes)

    def _write_taps(self, rows: TapRows) -> Array:
        """Put the addresses of the taps of the first group for pixel 0 into a table, and return that."""
        table = self.scratch.at(self.layout.taps_offset_bytes).of("int64")
        for number, tap in enumerate(every_tap(len(self.lowering.planes))[: self.lowering.taps_per_response]):
            table[number] = rows(tap).number
        return table

    def _respond_passes(self, bank: BankPasses, taps: Array, x: Value, out: Array) -> None:
        """Compute the block of pixels at `x`, pass by pass over the outputs, and store it at `out`."""
        lowering = self.lowering
        table = self.at(Argument.PASSES_ADDRESS, "int64")
        weights = self.at(Argument.WEIGHTS_ADDRESS, lowering.sums)
        of_a_direction = lowering.taps_per_response * bank.outputs
        x_bytes = x * SCALAR_BYTES[lowering.staged]
        with self.count(0, self.int64(self.layout.passes)) as number:
            planes, first = (table.at(number * 2)[field] for field in range(2))
            distance = planes + x_bytes
            of_pass = number * (bank.structure.directions * of_a_direction)
            directions = [
                weights.at(of_pass + direction * of_a_direction) for direction in range(bank.structure.directions)
            ]
            for pixel, values in enumerate(self._bank_values(bank, taps, distance, directions)):
                for vector, value in enumerate(values):
                    out.at(first + (pixel * self.layout.stored_per_pixel + vector * bank.lanes)).store(value)

    def _bank_values(self, bank: BankPasses, taps: Array, distance: Value, weights: list[Array]) -> list[list[Value]]:
        """Stored samples of every pixel and register; of a maximum, only the largest response so far is held."""
        responses: list[list[list[Value]]] = []
        for of_direction in weights:
            sums = self.sums.bank_responses(bank, taps, distance, of_direction)
            if responses and self.lowering.combine == "maximum":
                (largest,) = responses
                sums = [list(map(self.sums.larger, *pair)) for pair in zip(largest, sums, strict=True)]
                responses.clear()
            responses.append(sums)
        return [
            [self.sums.stored(list(of_register)) for of_register in zip(*of_pixel, strict=True)]
            for of_pixel in zip(*responses, strict=True)
        ]

    # --- bytes ----------------------------------------------------------------------------------------------------

    def _out_at(self, out: Array, x: Value) -> Array:
        """Pixel `x` of the run that starts at `out`."""
        return out.at(x * self.layout.stored_per_pixel)

    def _each_at(self, out: list[Array], x: Value) -> list[Array]:
        """Pixel `x` of each of these runs."""
        return [self._out_at(one, x) for one in out]

    def _copy_bytes(self, source: Array, target: Array, size_bytes: Value) -> None:
        source, target = source.of("uint8"), target.of("uint8")
        start = self.int64(0)
        for step in COPY_CHUNKS_BYTES:
            stop = size_bytes & -step
            with self.count(start, stop, step) as at:
                target.at(at).store(source.at(at).load(step))
            start = stop

    def _copy_lines(self, source: Array, target: Array, size_bytes: Value) -> None:
        """Copy bytes that lie alike within cache lines; where stores go past the caches, whole lines do."""
        source, target = source.of("uint8"), target.of("uint8")
        if not self.layout.streaming:
            self._copy_bytes(source, target, size_bytes)
            return
        first = (-target.number & (CACHE_LINE_BYTES - 1)).min(size_bytes)
        last = first + ((size_bytes - first) & -CACHE_LINE_BYTES)
        self._copy_bytes(source, target, first)
        step = self.layout.vector_bytes
        with self.count(first, last, CACHE_LINE_BYTES) as line:
            for part in range(0, CACHE_LINE_BYTES, step):
                at = line + part
                target.at(at).store(source.at(at).load(step), step)
        self._copy_bytes(source.at(last), target.at(last), size_bytes - last)

    def _pixels_to_line(self, out: Array) -> Value:
        """The first pixel whose stored samples start on a cache line.

        With n samples a line and c a pixel, c·x ≡ −address (mod n); c is odd and n a power of two, so c has an
        inverse modulo n.
        """
        stored_bytes = SCALAR_BYTES[self.lowering.stored]
        samples_per_line = CACHE_LINE_BYTES // stored_bytes
        inverse = pow(self.layout.stored_per_pixel, -1, samples_per_line)
        address = out.number >> (stored_bytes.bit_length() - 1)
        return (-address * inverse) & (samples_per_line - 1)
