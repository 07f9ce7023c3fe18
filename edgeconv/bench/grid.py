"""Which cases are measured, what competes, and by which rules: a grid of parts, each a full product of its values.

A case is a problem by name, on noise: size × stride × type × filter × channels. Grids come from the command
line, from a TOML file, or by name from grids.toml, whose tables are written as such a file is. Named grids hold those
of the lab reports and the rows of the project's own bars (goals.py).

A file's keys are the fields of `GridPart`, at its top for every part or under [[part]]; each is a word, a number, or a
list of these. With `seed` and `cases` at the top, that many cases are drawn at random from the axes of its one part
(surface.py).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from edgeconv.bench.synthetic import FILTER_FAMILIES, bench_filter_names, is_bench_filter
from edgeconv.core.choices import CHANNELS, DEVICES
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.core.records import Natural, Positive, as_type
from edgeconv.core.timing import Budget
from edgeconv.errors import UsageError
from edgeconv.hardware.device import L2_STATES, L2State
from edgeconv.io.files import SMALL_BYTES, read_text, refuse_special
from edgeconv.io.resize import parse_sizes
from edgeconv.options import Filtering, GridAxes, Timing

ALL = "all"
DEFAULT_BUDGET = Budget(min_samples=7, max_samples=100, time_limit_seconds=0.12, turns=4)
SAMPLED = 300_000


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

    seed: Natural
    cases: Positive


@dataclass(frozen=True)
class CaseGrid:
    """Parts under a name."""

    name: str
    summary: str
    parts: tuple[GridPart, ...]
    draw: Draw | None = None
    """Of a grid whose one part has axes to draw from; None: the product of each part is what is measured."""


@dataclass(frozen=True)
class Drawn:
    """What was drawn for a case beside its name."""

    height: int
    width: int
    padding: str
    border: str
    output_mode: str


@dataclass(frozen=True)
class Case:
    """One problem by name, on noise of `size` × `size`, or as it was drawn."""

    size: int
    stride: int
    dtype: str
    filter: str
    channels: str
    drawn: Drawn | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.size} s{self.stride} {self.dtype} {self.filter} {self.channels}"


@dataclass(frozen=True)
class TimingRules:
    """How every case is measured."""

    budget: Budget = DEFAULT_BUDGET
    l2_states: tuple[L2State, ...] = L2_STATES
    padding: str = "same"
    border: str = "zero"
    output_mode: str | None = None
    check_samples: int | None = SAMPLED
    """The check takes whole rows of about this number of samples, the first and last row among them; None: all."""


def cases(grid: CaseGrid) -> list[tuple[Case, GridPart]]:
    """Every case once, with the part that it comes from: small sizes first within a part."""
    found: dict[Case, GridPart] = {}
    for part in grid.parts:
        axes = (sorted(part.sizes), part.strides, part.dtypes, part.filters, part.channels)
        for values in product(*axes):
            found.setdefault(Case(*values), part)
    return list(found.items())


# --- from words ---------------------------------------------------------------------------------------------------


def chosen_grid(axes: GridAxes) -> CaseGrid:
    """A grid by name or from a file, with the axes that are given (not None) in place of its own."""
    given = {name: value for name, value in asdict(axes).items() if value is not None}
    name = given.pop("grid")
    if name in NAMED:
        return _grid(name, NAMED[name], given)
    if not name.endswith(".toml"):
        raise UsageError(f"Grid '{name}' is not known: use one of {', '.join(NAMED)}, or a file.")
    path = Path(name)
    content = read_toml(path)
    try:
        return _grid(path.stem, {"summary": f"from {path.name}", **content}, given)
    except UsageError as error:
        raise UsageError(f"Grid file '{path}': {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a small TOML file. Raises UsageError that names it, ImageReadError."""
    refuse_special(path)
    try:
        return tomllib.loads(read_text(path, SMALL_BYTES))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"'{path}' is not TOML: {error}.") from None
    except RecursionError:
        raise UsageError(f"'{path}' is nested too deeply: write words and lists of words.") from None


def _grid(name: str, content: Mapping[str, Any], given: Mapping[str, Any]) -> CaseGrid:
    """A grid from a table of TOML, and what is given in place of its words."""
    shared, axes = dict(content), dict(given)
    summary, parts = str(shared.pop("summary")), shared.pop("part", [{}])
    draw = {word: shared.pop(word) for word in ("seed", "cases") if word in shared}
    asked = {word: axes.pop(word) for word in ("seed", "cases") if word in axes}
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise UsageError("write each part under [[part]].")
    if draw and len(parts) > 1:
        raise UsageError("cases that are drawn come from one part.")
    if asked and not draw:
        raise UsageError(f"--seed and --cases do not apply to grid '{name}', which lists its cases.")
    try:
        drawn = as_type(draw | asked, Draw) if draw else None
    except ValueError:
        raise UsageError("seed must be a whole number from 0, and cases one from 1.") from None
    return CaseGrid(name, summary, tuple(_part(shared | part | axes) for part in parts), drawn)


def _part(words: Mapping[str, Any]) -> GridPart:
    names = [axis.name for axis in fields(GridPart)]
    for name in words:
        if name not in names:
            raise UsageError(f"'{name}' is not one of {', '.join(names)}.")
    return GridPart(**{name: _values(name, value) for name, value in words.items()})


def parse_rules(timing: Timing, filtering: Filtering) -> TimingRules:
    """Rules from the options; of `filtering` the padding, the border and the output mode hold for every case."""
    filtering.request()
    return TimingRules(
        budget=replace(
            DEFAULT_BUDGET,
            min_samples=min(timing.samples, DEFAULT_BUDGET.min_samples),
            max_samples=timing.samples,
            time_limit_seconds=timing.time_limit,
            noise_target=parse_share("--noise", timing.noise),
        ),
        l2_states=tuple(state for state in L2_STATES if timing.l2 in ("both", state)),
        padding=filtering.padding,
        border=filtering.border,
        output_mode=filtering.output_mode,
        check_samples=SAMPLED if timing.check == "sample" else None,
    )


def parse_share(name: str, text: str) -> float:
    """`2%` or `0.02`; raises UsageError naming the option."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    if found is None:
        raise UsageError(f"{name} '{text}' is not like 2% or 0.02.")
    return float(found[1]) / (100 if found[2] else 1)


KNOWN: dict[str, tuple[str, ...]] = {
    "dtypes": INPUT_DTYPES,
    "filters": bench_filter_names(),
    "channels": CHANNELS,
    "devices": DEVICES,
}
"""What `all` stands for on an axis."""


def _values(name: str, value: Any) -> tuple[Any, ...]:
    """An axis from a word, a number, a list of these, or words between commas."""
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not all(type(item) in (str, int) for item in items):
        raise UsageError(f"{name.capitalize()} must be a word, a number, or a list of these.")
    words = [word.strip() for item in items for word in str(item).split(",")]
    if name == "sizes":
        return parse_sizes(",".join(words))
    if name == "strides":
        if not words or not all(word.isdecimal() and int(word) for word in words):
            raise UsageError(f"Strides '{value}' are not whole numbers from 1.")
        return tuple(dict.fromkeys(map(int, words)))
    if name in KNOWN:
        words = [each for word in words for each in (KNOWN[name] if word == ALL else (word,))]
        for word in words:
            if word not in KNOWN[name] and not (name == "filters" and is_bench_filter(word)):
                families = FILTER_FAMILIES if name == "filters" else ()
                raise UsageError(f"{name.capitalize()} '{word}' is not one of {', '.join((*KNOWN[name], *families))}.")
    return tuple(word for word in dict.fromkeys(words) if word not in ("", "none"))


NAMED = read_toml(Path(__file__).with_name("grids.toml"))
GRIDS = tuple(_grid(name, words, {}) for name, words in NAMED.items())
