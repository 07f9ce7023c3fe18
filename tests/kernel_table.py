"""Every code path of the .cu sources: stride × padding × alignment × arithmetic, as far as they select different code.

Macros are what selects code; not every value of them makes a difference:

    sliding.cu       where a lane's window starts in the word, pair or quad of words that it reads at once (LEAD % READ:
                     the padding's bytes), for each stride, arithmetic, type and tile; alignment of input and output
    implicit.cu      the samples that stand before a patch row (LEAD: the padding), for each stride up to 3 and one
                     above; aligned or not; and the shapes of blocks, which the size of the picture selects
    the others       the shapes of blocks, or of filled-up channels; strides and paddings are arguments there

A weight of zero hides what is read beside the window, so weights are random, whole where the arithmetic needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, product

from cpu_problems import DIRECTED, NO_RING, NO_RING_OPPOSITE, RANDOM, RANDOM_WHOLE, Case
from kernel_work import (
    CONV_STEP,
    CUDNN,
    FLAT_ROWS,
    IM2COL,
    IMPLICIT,
    LARGE_SLIDING,
    SLIDING,
    STRIPS,
    TEXTBOOK,
    Work,
)
from selection import covering

from edgeconv.bench.ladders import conv
from edgeconv.core.choices import BORDERS
from edgeconv.core.problem import Problem
from edgeconv.methods.cuda.flat_rows import flat_filter
from edgeconv.methods.cuda.flat_rows import tile_of as flat_tile_of
from edgeconv.methods.cuda.sliding_choice import choose_strips
from edgeconv.methods.cuda.sliding_tiles import StripTile, tile_for
from edgeconv.methods.options import Options

# --- what every kernel is put to, in many shapes ------------------------------------------------------------------

RULES = (
    Case("laplacian8", "mix", "uint8", "abs", border="reflect101"),
    Case(RANDOM, "mix", "float32", "raw"),
    Case("laplacian8", "each", "uint8", "clip", stride=2, padding=0),
    Case("sobel", "each", "uint8", "abs", border="replicate"),
    Case("kirsch", "mix", "uint8", "raw"),
    Case(RANDOM, "luma", "uint16", "abs", stride=3, padding=2, border="reflect"),
    Case("sobel", "mix", "uint16", "abs", stride=2),
    Case(RANDOM, "each", "float16", "raw", padding=5, border="reflect101"),
    Case("kirsch", "luma", "float32", "abs", stride=7, border="reflect"),
)
"""What changes a kernel's code: types, rules, strides, numbers of directions and channels.

First a bordered picture of whole numbers, which shows most faults.
"""

BATCHES = (
    Case("sobel", "each", "float64", "abs", border="reflect"),
    Case(RANDOM, "mix", "float64", "raw", shape=(9, 48)),
    Case(RANDOM, "luma", "uint16", "abs", stride=2),
    Case("laplacian8", "mix", "uint8", "clip", stride=3, border="replicate"),
)
"""Batches, whose pictures start on 16 bytes or not."""

GREY = (
    Case("laplacian8", "mix", "uint8", "abs", in_channels=1),
    Case("laplacian8", "mix", "uint8", "raw", 2, border="reflect", in_channels=1),
    Case("sobel", "mix", "uint8", "clip", 3, in_channels=1),
    Case("kirsch", "mix", "uint8", "abs", in_channels=1),
    Case("sobel", "mix", "uint16", "abs", border="reflect101", in_channels=1),
    Case(RANDOM, "mix", "float16", "raw", border="reflect", in_channels=1),
    Case("sobel", "mix", "float16", "raw", 2, in_channels=1),
    Case("sobel", "mix", "float32", "raw", 3, 0, in_channels=1),
    Case(RANDOM, "mix", "float32", "raw", 5, border="replicate", in_channels=1),
)
BANKS = (
    Case(RANDOM, "mix", "float32", "raw", 3, 2, filters=8),
    Case(RANDOM, "each", "float32", "raw", border="reflect", filters=5),
    Case(RANDOM, "mix", "float32", "raw", border="replicate", filters=5, in_channels=1),
    Case(RANDOM, "mix", "float32", "raw", 2, filters=8, in_channels=1),
    Case(RANDOM, "mix", "float32", "raw", border="reflect101", filters=16),
    Case(RANDOM, "mix", "float32", "raw", 2, filters=17, in_channels=1),
    Case(RANDOM, "mix", "float32", "raw", border="replicate", filters=70, shape=(7, 61)),
    Case(RANDOM, "mix", "float32", "raw", filters=130, in_channels=1, shape=(5, 33)),
    Case(RANDOM_WHOLE, "each", "uint8", "abs", 2, filters=12),
    Case(RANDOM_WHOLE, "mix", "uint16", "clip", filters=11),
    Case(DIRECTED, "mix", "uint8", "abs", filters=3),
    Case("sobel,scharr", "mix", "uint16", "abs", border="reflect", filters=2, in_channels=1),
    Case(DIRECTED, "each", "float16", "raw", filters=3),
    Case("kirsch,robinson", "mix", "uint8", "clip", filters=2),
    # Several blocks side by side and one below the other, so that some are away from every edge.
    Case(RANDOM, "mix", "float32", "raw", filters=64, shape=(9, 80)),
    Case(RANDOM, "mix", "float32", "raw", border="reflect", filters=64, in_channels=1, shape=(9, 60)),
    Case(RANDOM, "mix", "float32", "raw", 2, filters=12, shape=(19, 240)),
    Case(RANDOM, "each", "float32", "raw", border="replicate", filters=5, shape=(9, 500)),
    Case("sobel", "mix", "uint8", "abs", filters=32, shape=(9, 80)),
)
DOUBLES = (
    Case("laplacian8", "mix", "float64", "raw"),
    Case(RANDOM, "each", "float64", "raw", 2, border="reflect"),
    Case("sobel", "luma", "float64", "raw", 3, border="replicate"),
    Case("kirsch", "mix", "float64", "raw", border="reflect101"),
    Case(RANDOM, "mix", "float64", "raw", border="reflect101", filters=16, shape=(9, 80)),
    Case(RANDOM, "mix", "float64", "raw", 2, 2, filters=9, in_channels=1, shape=(19, 120)),
    Case(RANDOM, "mix", "float64", "raw", 3, border="replicate", filters=24, shape=(12, 130)),
    Case(RANDOM, "each", "float64", "raw", filters=5),
    Case(RANDOM, "mix", "float64", "raw", filters=70, in_channels=1, shape=(5, 33)),
    Case("sobel,scharr", "mix", "float64", "abs", border="reflect", filters=2),
    Case(RANDOM, "mix", "float64", "raw", 5, filters=16),
)
"""Grey pictures, banks and float64."""


def few_of(cases: Sequence[Case]) -> list[Case]:
    """Cases in which each property occurs that does at all: for a kernel that makes no more of a bank than a loop."""
    rows = [
        (c.dtype, c.output_mode, c.channels, c.stride, c.border, c.in_channels, c.filters > 1, c.shape) for c in cases
    ]
    return [cases[number] for number in sorted(covering(rows, together=1))]


MAKERS = (SLIDING, LARGE_SLIDING, TEXTBOOK, IM2COL, IMPLICIT)

# --- what only some paddings, alignments and sizes select ----------------------------------------------------------

PADDINGS = range(9)
"""Among them is every place in a quad of words where a window can start."""
ALIGNMENTS = ((False, False), (True, True), (True, False), (False, True))
"""Of input and output rows: on 16 bytes or not."""
WIDTHS = range(20, 70)
HEIGHT = 7


@dataclass(frozen=True)
class WayToSum:
    """A kind of sums, as a problem that asks for it."""

    name: str
    rules: Case
    strides: tuple[int, ...] = (1, 2, 3)
    everywhere: bool = True
    """With every padding and alignment; else it shares its reads with a kind that is, and meets the default only."""


SUMS = (
    WayToSum("dp4a each", Case(RANDOM_WHOLE, "each", "uint8", "abs")),
    WayToSum("dp4a mix", Case(RANDOM_WHOLE, "mix", "uint8", "raw", border="reflect")),
    WayToSum("fma uint16", Case(RANDOM, "luma", "uint16", "raw")),
    WayToSum("fma float32", Case(RANDOM, "mix", "float32", "raw")),
    WayToSum("fma float64", Case(RANDOM, "mix", "float64", "raw")),
    WayToSum("mma uint8", Case(RANDOM_WHOLE, "mix", "uint8", "abs"), (1,)),
    WayToSum("mma float16", Case(RANDOM, "mix", "float16", "raw", border="reflect101"), (1,)),
    WayToSum("mma uint8 two directions", Case("scharr/0.125", "mix", "uint8", "clip", border="replicate"), (1,)),
    WayToSum("mma uint8, halves", Case(RANDOM, "mix", "uint8", "clip", border="reflect"), (1,)),
    WayToSum("planes uint16", Case("sobel", "each", "uint16", "abs")),
    WayToSum("planes, channel sum", Case("laplacian8", "mix", "uint16", "clip", border="replicate")),
    WayToSum("planes, weighted", Case("sobel", "luma", "uint8", "abs")),
    WayToSum("planes, gradient of fractions", Case("sobel/7", "each", "uint8", "abs"), everywhere=False),
    WayToSum("planes, ring", Case("kirsch", "mix", "uint8", "abs"), everywhere=False),
    WayToSum("planes, differences", Case("robinson", "each", "uint16", "raw"), everywhere=False),
    WayToSum("planes float16", Case("kirsch", "each", "float16", "raw", border="reflect")),
    WayToSum("planes float32, channel sum", Case("robinson", "mix", "float32", "abs"), everywhere=False),
    WayToSum("planes float16, weighted", Case("robinson", "luma", "float16", "raw"), everywhere=False),
    WayToSum(
        "planes float32, weighted", Case("kirsch", "luma", "float32", "raw", border="replicate"), everywhere=False
    ),
    WayToSum("planes float64", Case("kirsch", "each", "float64", "raw", border="replicate"), everywhere=False),
    WayToSum("planes float64, channel sum", Case("robinson", "mix", "float64", "abs"), everywhere=False),
    WayToSum("planes float64, weighted", Case("kirsch", "luma", "float64", "raw"), everywhere=False),
    WayToSum("planes float64, gradient", Case("scharr", "mix", "float64", "raw"), everywhere=False),
    WayToSum("planes float64, four sizes", Case(NO_RING_OPPOSITE, "each", "float64", "abs"), everywhere=False),
    WayToSum("planes float64, eight directions", Case(NO_RING, "mix", "float64", "raw"), everywhere=False),
    WayToSum("planes float32, gradient", Case("scharr", "mix", "float32", "raw"), everywhere=False),
    WayToSum("planes, weighted differences", Case("robinson", "luma", "uint8", "clip"), everywhere=False),
    WayToSum("planes, eight directions", Case(NO_RING, "luma", "uint8", "abs"), everywhere=False),
    WayToSum("planes, four sizes", Case(NO_RING_OPPOSITE, "each", "float32", "raw"), everywhere=False),
    WayToSum("mma uint8 two directions, short", Case("sobel", "each", "uint8", "abs"), (1,), everywhere=False),
    WayToSum("mma float16 two directions", Case("sobel", "each", "float16", "abs"), (1,), everywhere=False),
    WayToSum("dp4a each raw", Case(RANDOM_WHOLE, "each", "uint8", "raw", border="replicate"), everywhere=False),
    WayToSum("dp4a mix clip", Case(RANDOM_WHOLE, "mix", "uint8", "clip"), (2, 3), everywhere=False),
    WayToSum("dp4a luma", Case(RANDOM_WHOLE, "luma", "uint8", "abs"), everywhere=False),
    WayToSum("dp4a two directions", Case("sobel", "each", "uint8", "abs"), (2, 3), everywhere=False),
    WayToSum("fma uint8", Case(RANDOM, "mix", "uint8", "raw", border="replicate"), everywhere=False),
    WayToSum("fma float16", Case(RANDOM, "each", "float16", "raw", border="reflect"), (2, 3), everywhere=False),
    WayToSum("fma two directions", Case("sobel", "mix", "float16", "raw"), (2, 3), everywhere=False),
    WayToSum("fma float32 two directions", Case("sobel", "each", "float32", "abs"), everywhere=False),
    WayToSum("fma float64 two directions", Case("sobel", "each", "float64", "abs"), (1, 2, 4), everywhere=False),
    WayToSum("fma float64 luma", Case(RANDOM, "luma", "float64", "raw", border="reflect101"), (1, 5), everywhere=False),
    WayToSum("fma float64 grey", Case("sobel", "mix", "float64", "abs", in_channels=1), (1, 2), everywhere=False),
    WayToSum("fma wide sums", Case("laplacian8/0.001", "mix", "uint16", "clip"), (1, 2), everywhere=False),
    WayToSum("fma wide sums raw", Case("sobel/0.00001", "luma", "uint8", "raw"), (1, 3), everywhere=False),
)


def tile_of_strips(problem: Problem) -> StripTile:
    """The tile of a problem that strips compute, where rows start on 16 bytes."""
    strips = choose_strips(problem)
    assert strips is not None
    return tile_for(strips)


def place_of_window(problem: Problem, tile: StripTile) -> int:
    """Where a lane's window starts within what it reads at once, in bytes: LEAD % READ of sliding_sums.cuh.

    Of rows that start on 16 bytes; others have a lead of their own each. The tensor cores read single words.
    """
    lead = -(problem.padding * problem.in_channels * problem.dtype.itemsize) % 128
    strips = choose_strips(problem)
    assert strips is not None
    if strips.sums == "mma":
        return lead % 4
    thread_bytes = tile.thread_pixels * problem.stride * problem.in_channels * problem.dtype.itemsize
    return lead % next(size for size in (16, 8, 4) if thread_bytes % size == 0)


def rows_aligned(problem: Problem) -> tuple[bool, bool]:
    """Whether rows of input and output are whole runs of 16 bytes."""
    in_pitch = problem.width * problem.in_channels * problem.dtype.itemsize
    out_pitch = problem.output_width * problem.output_channels * problem.output_dtype.itemsize
    return in_pitch % 16 == 0, out_pitch % 16 == 0


def with_alignment(rules: Case, wanted: tuple[bool, bool]) -> Case | None:
    """The rules with a picture whose rows are aligned so; None where no width gives that."""
    for width in WIDTHS:
        case = replace(rules, shape=(max(HEIGHT, 3), width))
        if rows_aligned(case.problem()) == wanted:
            return case
    return None


def alignments_of(rules: Case) -> list[Case]:
    """The rules with each alignment that some width gives."""
    return [case for wanted in ALIGNMENTS if (case := with_alignment(rules, wanted)) is not None]


def strip_works(sums: WayToSum) -> Iterator[Work]:
    """At each stride every start of a window; at one of them every alignment that occurs.

    What shares its reads is taken at the first and the last stride.
    """
    for stride in sums.strides if sums.everywhere else dict.fromkeys((sums.strides[0], sums.strides[-1])):
        rules = replace(sums.rules, stride=stride)
        tile = tile_of_strips(rules.problem())
        places: set[int] = set()
        alignments: set[tuple[bool, bool]] = set()
        for padding in PADDINGS if sums.everywhere else (rules.padding,):
            cases = alignments_of(replace(rules, padding=padding))
            on_chunks = [case for case in cases if rows_aligned(case.problem())[0]]
            place = place_of_window(cases[0].problem(), tile)
            aligns = sums.everywhere and stride == sums.strides[len(sums.strides) // 2]
            new = [case for case in cases if aligns and rows_aligned(case.problem()) not in alignments]
            turn = on_chunks[len(places) % len(on_chunks)]
            for case in [*new, *([turn] if place not in places and turn not in new else [])]:
                yield Work(STRIPS, case, words=(tile,))
            places.add(place)
            alignments |= {rows_aligned(case.problem()) for case in new}


FLAT = (
    Case("laplacian8", "each", "uint8", "abs", border="reflect101"),
    Case("sobel", "each", "uint8", "clip", border="replicate"),
    Case("emboss", "mix", "uint8", "clip", in_channels=1),
    Case("kirsch", "each", "uint8", "abs", border="reflect"),
    Case("robinson", "each", "uint8", "clip"),
    Case("sobel", "each", "uint16", "abs", border="reflect101"),
    Case("emboss", "mix", "uint16", "clip", border="reflect", in_channels=1),
    Case("kirsch", "each", "float16", "raw", border="replicate"),
    Case("scharr", "each", "float16", "abs"),
    Case("laplacian4", "each", "float16", "abs", border="reflect101"),
    Case("sobel/7", "each", "float32", "raw", border="reflect"),
    Case("robinson", "mix", "float32", "abs", in_channels=1),
    Case("laplacian8", "each", "float32", "raw", border="replicate"),
)


def flat_works() -> Iterator[Work]:
    """Each kind of lines and rings with every tile, in heights that end within a step; batches; arrays elsewhere."""
    for case in FLAT:
        filter_ = flat_filter(replace(case, shape=(7, 48)).problem())
        assert filter_ is not None
        for height, multiprocessors in ((7, 1), (18, 0)):  # the tile of small pictures, and that of large ones
            tile = flat_tile_of(case.problem(), filter_, 1, multiprocessors)
            yield Work(FLAT_ROWS, replace(case, shape=(height, 48)), words=(tile,))
    for case in FLAT[::4]:
        yield Work(SLIDING, replace(case, shape=(5, 32)), pictures=3)
        yield Work(SLIDING, replace(case, shape=(5, 32)), offset_samples=1)


def rows_anywhere() -> list[Work]:
    """Rows that start on any sample, wide and narrow, with every border: what sliding_rows.cuh does by row and tile.

    Any two of a type, a kind of sums, a stride, a border and a start that meet at all meet in one of them.
    """
    works, properties = [], []
    for sums, border in product(SUMS, BORDERS):
        strides = sums.strides if sums.strides == (1,) else (*sums.strides[-2:], APART)
        for stride, padding, (width, offset) in zip(cycle(strides), (1, 0, 40, 140, 140), STARTS, strict=False):
            rules = replace(sums.rules, stride=stride, padding=padding, border=border, shape=(HEIGHT, width))
            works.append(Work(LARGE_SLIDING, rules, offset_samples=offset))
            properties.append((rules.dtype, sums.name.split()[0], stride, border, width))
    return [works[number] for number in sorted(covering(properties))]


APART = 5
"""A stride at which strips do not read every row."""
STARTS = ((3, 1), (131, 0), (261, 5), (4, 3), (16, 0))
"""Widths, from a window to several tiles, and where arrays start: in samples past an aligned address."""


def implicit_works() -> Iterator[Work]:
    """Strides × samples before a patch row, aligned and not; then the shapes of blocks, by the size of the picture."""
    rules = Case(RANDOM, "mix", "float32", "raw", border="reflect", shape=(9, 40))
    for stride in (1, 2, 3):
        for padding in range(4):
            yield Work(IMPLICIT, replace(rules, stride=stride, padding=padding))
        yield Work(IMPLICIT, replace(rules, stride=stride, shape=(9, 41)))
    yield Work(IMPLICIT, replace(rules, stride=5))
    for stride, shape in BLOCKS_FILLED:
        yield Work(IMPLICIT, replace(rules, stride=stride, shape=shape))


BLOCKS_FILLED = ((1, (33, 65)), (1, (69, 9)), (1, (137, 9)), (2, (138, 18)))
"""Strides and pictures (height, width) that take larger blocks than the least, on a GPU of three multiprocessors."""


def library_works() -> Iterator[Work]:
    """Blocks of im2col by the size of the picture, of textbook by its option; cuDNN in half."""
    whole, large = (9, 20), (90, 75)
    for dtype in ("uint8", "uint16", "float16", "float32"):
        yield Work(IM2COL, Case(RANDOM, "mix", dtype, "raw", shape=whole))
    for filter_name, dtype, shape in (
        (RANDOM, "float32", (40, 50)),
        ("kirsch", "uint8", (20, 50)),
        (RANDOM, "uint8", large),
    ):
        yield Work(IM2COL, Case(filter_name, "mix", dtype, "abs", stride=1, padding=0, shape=shape))
    for block in (8, 16, 32):
        yield Work(TEXTBOOK, Case(RANDOM, "each", "uint16", "clip", stride=2, shape=(19, 37)), Options(block=block))
    for filter_name, dtype in ((RANDOM, "float32"), ("sobel", "uint8")):
        yield Work(CUDNN, Case(filter_name, "mix", dtype, "raw", shape=(7, 11)), Options(math="half"))


def groups() -> dict[str, list[Work]]:
    """The whole table, in parts that take some seconds each; a kernel that is asked for twice is compiled once."""
    parts = {sums.name: list(strip_works(sums)) for sums in SUMS if sums.everywhere}
    parts["flat rows"] = list(flat_works())
    parts["rows anywhere"] = rows_anywhere()
    parts["other sums"] = [work for sums in SUMS if not sums.everywhere for work in strip_works(sums)]
    return {**parts, "implicit": list(implicit_works()), "around a library": list(library_works())}


def ladder_works() -> Iterator[Work]:
    """Every step of the ladder of convolutions with its usual block; rows on 16 bytes and not."""
    for entry in conv.STEPS:
        for stride, blocks in entry.blocks.items():
            for width in (48, 45):
                case = Case(RANDOM, "mix", "float32", "raw", stride=stride, shape=(19, width))
                yield Work(CONV_STEP, case, words=(entry.name, blocks[0]))


LARGE_ON_A_GPU = (700, 1300)
"""Enough to fill a large GPU with the largest blocks of each kind."""


def works_for_a_gpu() -> list[Work]:
    """One case of each compiled kernel, on a GPU: the table, the rules in one shape, and pictures that fill it."""
    works = [work for part in groups().values() for work in part if work.maker != CUDNN]
    works += ladder_works()
    rules = [replace(case, shape=(13, 45)) for case in RULES]
    works += [Work(maker, case) for maker in MAKERS for case in rules]
    large = [replace(case, shape=LARGE_ON_A_GPU) for case in RULES]
    works += [Work(maker, case) for maker in (SLIDING, IM2COL, IMPLICIT) for case in large]
    return list(dict.fromkeys(works))
