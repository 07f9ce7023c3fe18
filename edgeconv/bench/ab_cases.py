"""The rows of `edgeconv bench ab`: each a public call with its words, from a TOML file.

[[rows]]                       # one or more; each is the full product of its values
call = ["plan", "convolve"]    # plan(image, out=out), convolve(image), or canny(image, 100, 200, out=out)
device = ["cpu", "cuda"]
size = [512, "1080x1920"]      # height x width, or height x width x channels
dtype = ["uint8"]
filter = ["sobel", "random-whole", "bank-c3-k16", "grey-kirsch"]    # as in a grid of `bench`
channels = ["mix"]
stride = [1]                   # and whatever else `convolve` takes by name, or as an option of a method

[[sample]]                     # cases of the grid `surface`, drawn with a seed
device = ["cpu"]
seed = 1
cases = 200
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from edgeconv.bench.grid import chosen_grid, read_toml
from edgeconv.bench.surface import drawn_cases
from edgeconv.bench.synthetic import GREY_PREFIX, bench_channels, bench_filter
from edgeconv.core.choices import DEVICES
from edgeconv.core.filters import filter_names
from edgeconv.errors import UsageError, one_line
from edgeconv.options import GridAxes

GUARD = Path(__file__).with_name("guard.toml")
"""What no change may slow: the rows that stand where none are named."""
CALLS = ("plan", "convolve", "canny")
HERE = {"call": "plan", "device": DEVICES, "size": 2048, "dtype": "uint8"}
"""What says where and on what; every other word is one of the call's own."""


@dataclass(frozen=True)
class AbCase:
    """One row: a call, its picture and its words."""

    title: str
    call: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    words: dict[str, Any]
    """By name, those of a method's options among them; a filter that has no name is its weights."""


def chosen(path: Path, only: str | None) -> list[AbCase]:
    """The rows of a file whose title holds all words of `only`, each once, small pictures first.

    Raises UsageError that names what is wrong in the file, or that no row fits.
    """
    content = read_toml(path)
    try:
        found = [case for part in content.pop("rows", []) for case in _product(part)]
        found += [case for part in content.pop("sample", []) for case in _sample(**part)]
    except (AttributeError, TypeError, ValueError, UsageError) as error:
        raise UsageError(f"'{path}' does not hold rows: {one_line(error)}") from None
    if content or not found:
        raise UsageError(f"'{path}' needs rows under [[rows]] or [[sample]], and nothing else.")
    once = {case.title: case for case in found if set((only or "").split()) <= set(case.title.split())}
    if not once:
        raise UsageError(f"--only '{only}' fits no row of '{path.name}'.")
    return sorted(once.values(), key=lambda case: case.shape[0] * case.shape[1])


def _product(part: Mapping[str, Any]) -> Iterator[AbCase]:
    axes = {name: value if isinstance(value, list | tuple) else [value] for name, value in {**HERE, **part}.items()}
    for values in product(*axes.values()):
        words = dict(zip(axes, values, strict=True))
        call, device, size, dtype = (words.pop(name) for name in HERE)
        sides = tuple(map(int, str(size).split("x")))
        yield _case(call, device, sides if len(sides) > 1 else 2 * sides, dtype, words)


def _sample(seed: int, cases: int, device: Sequence[str]) -> Iterator[AbCase]:
    grid = chosen_grid(GridAxes("surface", seed=seed, cases=cases))
    for drawn, place in product(drawn_cases(grid).values(), device):
        words = {
            "filter": drawn.case.filter,
            "channels": drawn.case.channels,
            "stride": drawn.case.stride,
            "padding": int(drawn.padding) if drawn.padding.isdecimal() else drawn.padding,
            "border": drawn.border,
            "output_mode": drawn.output_mode,
        }
        yield _case("plan", place, (drawn.height, drawn.width), drawn.case.dtype, words)


def _case(call: str, device: str, shape: tuple[int, ...], dtype: str, words: dict[str, Any]) -> AbCase:
    if call not in CALLS or device not in DEVICES:
        raise UsageError(f"'{call}' on '{device}' is not one of {', '.join(CALLS)} on {' or '.join(DEVICES)}.")
    said = [value if isinstance(value, str) else f"{name}={value}" for name, value in words.items() if name != "stride"]
    said += [f"s{words['stride']}"] if words.get("stride", 1) != 1 else []
    title = " ".join([call, device, "x".join(map(str, shape)), dtype, *said])
    if "filter" in words:
        name = words["filter"]
        shape = shape if len(shape) > 2 else (*shape, bench_channels(name))
        plain = name.removeprefix(GREY_PREFIX)
        if plain not in filter_names():
            plain = bench_filter(name, words.get("channels", "mix")).kernels[0].tolist()
        words = {**words, "filter": plain}
    return AbCase(title, call, device, shape, dtype, {**words, "device": device})
