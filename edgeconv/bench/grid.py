"""Which cases are measured, and what competes: a grid of parts, each a full product of its values.

A case is a problem and its pixels by name: size × stride × type × filter × channels. Grids come from the command
line, from a TOML file, or from the table of named grids below, which hold those of the lab reports and the rows of
the project's own bars (goals.py). One of them draws its cases at random (surface.py).

    [[part]]                      # a TOML file: one or more parts; keys at the top hold for every part
    sizes = "128:4096"            # or [128, 512]
    strides = [1, 2, 3]
    methods = ["sliding", "im2col:gemm=cublas", "cudnn:find:math=tf32"]
    peers = ["torch"]             # or "all"
    dtypes = ["float32"]
    filters = ["random"]
    channels = ["mix"]
    devices = ["cpu", "cuda"]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from edgeconv.bench.synthetic import (
    DRAWN_FILTERS,
    PATTERNS,
    bench_filter_names,
    bench_name_of_bank,
    is_bench_filter,
)
from edgeconv.core.choices import CHANNELS
from edgeconv.core.filters import CHANNEL_COUNTS
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.errors import UsageError
from edgeconv.io.files import SMALL_BYTES, read_text, reason_of
from edgeconv.io.resize import parse_sizes
from edgeconv.methods.base import DEVICES

ALL = "all"


@dataclass(frozen=True)
class GridPart:
    """A full product. `methods` and `peers` are words of candidates.py: names with options, or `all`."""

    sizes: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
    strides: tuple[int, ...] = (1,)
    dtypes: tuple[str, ...] = ("float32",)
    filters: tuple[str, ...] = ("random",)
    channels: tuple[str, ...] = ("mix",)
    methods: tuple[str, ...] = (ALL,)
    peers: tuple[str, ...] = ()
    devices: tuple[str, ...] = DEVICES


@dataclass(frozen=True)
class Draw:
    """How many cases are drawn at random, and from which seed."""

    seed: int
    cases: int


@dataclass(frozen=True)
class CaseGrid:
    """Parts under a name."""

    name: str
    summary: str
    parts: tuple[GridPart, ...]
    draw: Draw | None = None
    """Of a grid whose part has axes to draw from (surface.py); None: their product is what is measured."""


@dataclass(frozen=True)
class Case:
    """One problem and its pixels, by name. `picture` None means noise of `size` × `size`."""

    picture: str | None
    size: int
    stride: int
    dtype: str
    filter: str
    channels: str

    def __str__(self) -> str:
        return f"{self.size} s{self.stride} {self.dtype} {self.filter} {self.channels}"


VARIANTS = ("im2col:gemm=cublas", "implicit:math=tf32", "implicit:math=half", "cudnn:find", "cudnn:math=tf32")
"""What the table of methods does not show: the same methods with other arithmetic, or a vendor's product inside."""

BLOCK_SIDES = ("textbook:block=8", "textbook:block=32")
"""The lab reports' thread-block sizes beside the usual 16."""

CALLED = ("sliding:call=plan", "sliding:call=convolve")
"""What a call from Python costs, beside the prepared plan alone and PyTorch's call."""

_OWN = (ALL, *CALLED)
_GENERAL = GridPart(filters=("random",), channels=("mix",), methods=(*_OWN, *VARIANTS), peers=(ALL,))

BANK_FILTERS = (1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 256)
BANK_PEERS = ("torch", "torch-nchw", "torch-unfold", "onnxruntime", "openvino", "opencv-filter2d")
"""Those that compute all filters of a bank in one call, and what one does by hand with an image library."""


def _banks(most: int = BANK_FILTERS[-1], above: int = 0) -> tuple[str, ...]:
    """Banks of more than `above` filters, up to `most`, for grey pictures and for RGB."""
    filters = [number for number in BANK_FILTERS if above < number <= most]
    return tuple(bench_name_of_bank(channels, number) for channels in CHANNEL_COUNTS for number in filters)


_BANK = GridPart(
    (512, 2048),
    strides=(1, 2, 3),
    dtypes=("float32", "float64"),
    filters=_banks(most=64),
    methods=(ALL, *VARIANTS),
    peers=BANK_PEERS,
)
_GREY = GridPart((2048, 4096), (1,), ("uint8", "float32"), ("laplacian8", "sobel"), ("mix", "each"))

GRIDS: tuple[CaseGrid, ...] = (
    CaseGrid(
        "lab",
        "the grids of the lab reports, 32 to 512 and 256 to 4096, strides 1 to 3, 3→3 channels, float32; "
        "the textbook kernel with thread blocks of 8, 16 and 32",
        (
            replace(
                _GENERAL,
                sizes=(32, 64, 128, 256, 512, 1024, 2048, 4096),
                strides=(1, 2, 3),
                methods=(*_GENERAL.methods, *BLOCK_SIDES),
            ),
        ),
    ),
    CaseGrid(
        "gpu",
        "the rows of the project's bars on a GPU",
        (
            replace(_GENERAL, sizes=(128, 512, 1024, 2048, 4096), strides=(1, 2, 3), devices=("cuda",)),
            GridPart((128, 512, 4096), (1,), ("uint8",), ("laplacian8",), ("each",), _OWN, (ALL,), ("cuda",)),
            GridPart((128, 512, 4096), (1,), ("uint8",), ("random-whole",), ("mix",), _OWN, (ALL,), ("cuda",)),
            GridPart((128, 512, 4096), (1,), ("uint8",), ("sobel",), ("each",), _OWN, (ALL,), ("cuda",)),
            GridPart((128, 512, 4096), (1,), ("float16",), ("random",), ("mix",), _OWN, (ALL,), ("cuda",)),
        ),
    ),
    CaseGrid(
        "processor",
        "the rows of the project's bars on a CPU",
        (
            replace(_GENERAL, sizes=(128, 512, 1024, 2048, 4096), strides=(1, 2, 3), devices=("cpu",)),
            GridPart((1024, 2048, 4096), (1,), ("float32",), ("laplacian8",), ("mix",), _OWN, (ALL,), ("cpu",)),
            GridPart((128, 512, 2048, 4096), (1,), ("uint8",), ("laplacian8",), ("each",), _OWN, (ALL,), ("cpu",)),
            GridPart((128, 512, 2048, 4096), (1,), ("uint8",), ("sobel",), ("each",), _OWN, (ALL,), ("cpu",)),
        ),
    ),
    CaseGrid(
        "bank",
        "banks of 1 to 256 filters on grey and RGB pictures, 512 to 4096, strides 1 to 3, float32 and float64; on a "
        "CPU as far as memory goes",
        (
            _BANK,
            replace(_BANK, sizes=(4096,), filters=_banks(most=16)),
            replace(_BANK, filters=_banks(above=64), devices=("cuda",)),
            replace(_BANK, sizes=(4096,), filters=_banks(above=16), devices=("cuda",)),
        ),
    ),
    CaseGrid(
        "grey",
        "one filter on a grey picture beside the same on RGB, 2048 and 4096, uint8 and float32",
        (
            _GREY,
            replace(_GREY, filters=tuple(f"grey-{name}" for name in _GREY.filters), channels=("mix",)),
        ),
    ),
    CaseGrid(
        "surface",
        "cases drawn at random from all types, filters, channels, strides, borders, modes and shapes",
        (
            GridPart(
                sizes=(1, 8000),
                strides=(1, 2, 3, 4, 5, 6),
                dtypes=INPUT_DTYPES,
                filters=(*bench_filter_names(), *DRAWN_FILTERS),
                channels=CHANNELS,
                methods=("sliding",),
                peers=(ALL,),
            ),
        ),
        Draw(seed=1, cases=200),
    ),
    CaseGrid(
        "quick",
        "three sizes and two strides: a look that takes seconds",
        (GridPart(sizes=(128, 512, 2048), strides=(1, 2)),),
    ),
)

DEEP_KEY = re.compile(r"""(?:[\w"'-]+[ \t]*\.[ \t]*){32}""")

_KNOWN_WORDS: dict[str, tuple[str, ...]] = {
    "dtypes": INPUT_DTYPES,
    "filters": bench_filter_names(),
    "channels": CHANNELS,
    "devices": DEVICES,
}


def named_grid(name: str) -> CaseGrid:
    """A grid of the table; raises UsageError naming those there are."""
    for grid in GRIDS:
        if grid.name == name:
            return grid
    raise UsageError(f"Grid '{name}' is not known: use one of {', '.join(grid.name for grid in GRIDS)}, or a file.")


def changed(grid: CaseGrid, words: Mapping[str, Any]) -> CaseGrid:
    """`grid` with the words that are given (not None) put into every part."""
    given = {name: value for name, value in words.items() if value is not None}
    return replace(grid, parts=tuple(_part(asdict(part) | given) for part in grid.parts)) if given else grid


def read_grid(path: Path) -> CaseGrid:
    """A grid from a TOML file; raises UsageError naming the file and what is wrong in it."""
    try:
        text = read_text(path, SMALL_BYTES)
        if DEEP_KEY.search(text):  # Python's parser takes minutes for a key of thousands of parts
            raise RecursionError
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"Grid file '{path}' is not TOML: {error}.") from None
    except RecursionError:
        raise UsageError(f"Grid file '{path}' is nested too deeply: write words and lists of words.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"Grid file '{path}' cannot be read: {reason_of(error)}.") from None
    shared = {name: value for name, value in content.items() if name != "part"}
    parts = content.get("part", [{}])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise UsageError(f"Grid file '{path}': write each part under [[part]].")
    try:
        return CaseGrid(path.stem, f"from {path.name}", tuple(_part(shared | part) for part in parts))
    except UsageError as error:
        raise UsageError(f"Grid file '{path}': {error}") from None


def cases(grid: CaseGrid, pictures: tuple[str, ...] = ()) -> Iterator[tuple[Case, GridPart]]:
    """Every case once, with the part that it comes from: small sizes first within a part."""
    seen = set()
    for part in grid.parts:
        axes = (sorted(part.sizes), part.strides, part.dtypes, part.filters, part.channels, pictures or (None,))
        for size, stride, dtype, filter_name, channels, picture in product(*axes):
            case = Case(picture, size, stride, dtype, filter_name, channels)
            if case not in seen:
                seen.add(case)
                yield case, part


def _part(words: Mapping[str, Any]) -> GridPart:
    """A part from words of any of the three sources, each checked."""
    names = [field.name for field in fields(GridPart)]
    for name in words:
        if name not in names:
            raise UsageError(f"'{name}' is not one of {', '.join(names)}.")
    return GridPart(**{name: _values(name, value) for name, value in words.items()})


def _values(name: str, value: Any) -> tuple[Any, ...]:
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in items):
        raise UsageError(f"{name.capitalize()} must be a word, a number, or a list of these.")
    if name == "sizes" and isinstance(value, str):
        return parse_sizes(value)
    if name in ("sizes", "strides"):
        items = value.split(",") if isinstance(value, str) else items
        numbers = [int(item) if str(item).strip().isdecimal() else 0 for item in items]
        if not numbers or min(numbers) < 1:
            raise UsageError(f"{name.capitalize()} '{value}' are not whole numbers from 1.")
        return tuple(dict.fromkeys(numbers))
    words = [str(word).strip() for word in (value.split(",") if isinstance(value, str) else items)]
    known = _KNOWN_WORDS.get(name)
    if known is not None:
        words = list(known) if words == [ALL] else words
        for word in words:
            if word not in known and not (name == "filters" and (is_bench_filter(word) or word in DRAWN_FILTERS)):
                families = PATTERNS if name == "filters" else ()
                raise UsageError(f"{name.capitalize()} '{word}' is not one of {', '.join((*known, *families))}.")
    return tuple(word for word in dict.fromkeys(words) if word not in ("", "none"))
