"""The rows of `edgeconv bench ab`: each a public call with its words, from a TOML file.

[[rows]]                       # one or more; each is the full product of its values
call = ["plan", "convolve"]    # plan(image, out=out), convolve(image), or canny(image, 100, 200, out=out)
device = ["cpu", "cuda"]
size = [512, "1080x1920"]      # height x width, or height x width x channels
dtype = ["uint8"]
filter = ["sobel", "random-whole", "bank-c3-k16", "grey-kirsch"]    # as in a grid of `bench`
channels = ["mix"]
stride = [1]                   # and whatever else `convolve` takes by name

[[sample]]                     # cases of the grid `surface`, drawn with a seed
device = ["cpu"]
seed = 1
cases = 200
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from edgeconv.bench.grid import Draw, named_grid
from edgeconv.bench.surface import drawn_cases
from edgeconv.bench.synthetic import BANK_NAME, GREY_PREFIX, RANDOM_FILTERS, bench_channels, bench_filter
from edgeconv.core.choices import DEVICES
from edgeconv.errors import UsageError, one_line
from edgeconv.io.files import SMALL_BYTES, read_text, reason_of
from edgeconv.methods.options import Options

GUARD = Path(__file__).parent / "guard.toml"
"""What no change may slow: the rows that stand where none are named."""
CALLS = ("plan", "convolve", "canny")
HERE = {"call": ("plan",), "device": DEVICES, "size": (2048,), "dtype": ("uint8",)}
"""What says where and on what; every other word is one of the call's own."""
OPTIONS = tuple(entry.name for entry in fields(Options))
"""Words that a call takes as `options=`."""


@dataclass(frozen=True)
class AbCase:
    """One row: a call, its picture and its words."""

    title: str
    call: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    words: dict[str, Any]
    """Arguments by name; a filter that has no name is its weights."""
    options: dict[str, Any]


def chosen(path: Path, words: str | None) -> list[AbCase]:
    """The rows of a file whose title holds all words; raises UsageError where none does."""
    rows = [case for case in read_rows(path) if set((words or "").split()) <= set(case.title.split())]
    if not rows:
        raise UsageError(f"--only '{words}' fits no row of '{path.name}'.")
    return rows


def read_rows(path: Path) -> list[AbCase]:
    """All rows of a file, each once, small pictures first; raises UsageError naming what is wrong in it."""
    try:
        content = tomllib.loads(read_text(path, SMALL_BYTES))
        found = [case for part in content.pop("rows", []) for case in _product(part)]
        found += [case for part in content.pop("sample", []) for case in _sample(**part)]
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"'{path}' is not TOML: {error}.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"The rows of '{path}' cannot be read: {reason_of(error)}.") from None
    except (AttributeError, TypeError, RecursionError) as error:
        raise UsageError(f"'{path}' does not hold rows: {one_line(error)}.") from None
    if content or not found:
        raise UsageError(f"'{path}' needs rows under [[rows]] or [[sample]], and nothing else.")
    once = {case.title: case for case in found}
    return sorted(once.values(), key=lambda case: case.shape[0] * case.shape[1])


def _product(part: Mapping[str, Any]) -> Iterator[AbCase]:
    axes = {name: value if isinstance(value, list | tuple) else [value] for name, value in {**HERE, **part}.items()}
    for values in product(*axes.values()):
        words = dict(zip(axes, values, strict=True))
        call, device, size, dtype = (words.pop(name) for name in HERE)
        if call not in CALLS or device not in DEVICES:
            raise ValueError(f"'{call}' on '{device}' is not one of {', '.join(CALLS)} on {' or '.join(DEVICES)}")
        sides = tuple(map(int, str(size).split("x")))
        yield _case(call, device, sides if len(sides) > 1 else 2 * sides, dtype, words)


def _sample(seed: int, cases: int, device: Sequence[str]) -> Iterator[AbCase]:
    grid = replace(named_grid("surface"), draw=Draw(seed, cases))
    for each, place in product(drawn_cases(grid), device):
        if place not in DEVICES:
            raise ValueError(f"device '{place}' is not one of a list of {' and '.join(DEVICES)}")
        words = {
            "filter": each.case.filter,
            "channels": each.case.channels,
            "stride": each.case.stride,
            "padding": int(each.padding) if each.padding.isdecimal() else each.padding,
            "border": each.border,
            "output_mode": each.output_mode,
        }
        yield _case("plan", place, (each.height, each.width), each.case.dtype, words)


def _case(call: str, device: str, shape: tuple[int, ...], dtype: str, words: dict[str, Any]) -> AbCase:
    options = {name: words.pop(name) for name in OPTIONS if name in words}
    said = [value for name, value in words.items() if name != "stride"]
    said += [f"s{words['stride']}"] if words.get("stride", 1) != 1 else []
    said += [f"{name}={value}" for name, value in options.items()]
    title = " ".join(map(str, [call, device, "x".join(map(str, shape)), dtype, *said]))
    name = words.get("filter")
    if isinstance(name, str):
        shape = shape if len(shape) > 2 else (*shape, bench_channels(name))
        plain = name.removeprefix(GREY_PREFIX)
        words = {**words, "filter": plain}
        if plain in RANDOM_FILTERS or BANK_NAME.fullmatch(name) or ";" in name:
            words["filter"] = bench_filter(name, words.get("channels", "mix")).kernels[0].tolist()
    return AbCase(title, call, device, shape, dtype, {**words, "device": device}, options)
