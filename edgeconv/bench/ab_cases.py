"""The rows of `edgeconv bench ab`: the cases of a grid, each as a public call with its words.

What is called is plan(image, out=out). With `call=convolve` behind a method's name it is convolve(image), which finds
its plan again and allocates, and under filter `canny` canny(image, 100, 200, out=out). `all` stands for `auto`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from edgeconv.bench.candidates import read_word
from edgeconv.bench.grid import ALL, Case, CaseGrid
from edgeconv.bench.surface import cases_of
from edgeconv.bench.synthetic import CANNY, GREY_PREFIX, bench_channels, bench_filter
from edgeconv.core.filters import filter_names
from edgeconv.core.option import AUTO

BY_CONVOLVE = ":call=convolve"


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


def ab_cases(grid: CaseGrid) -> list[AbCase]:
    """Each case of a grid on each of its devices, by each of its methods."""
    return [
        _of_case(case, device, AUTO if word == ALL else word)
        for case, part in cases_of(grid)
        for device, word in product(part.devices, part.methods)
    ]


def _of_case(case: Case, device: str, word: str) -> AbCase:
    method, options = read_word(word.replace(BY_CONVOLVE, ""))
    call = "convolve" if BY_CONVOLVE in word else "plan"
    plain, drawn, side = case.filter.removeprefix(GREY_PREFIX), case.drawn, case.size
    shape = (side, side, bench_channels(case.filter))
    words: dict[str, Any] = {"device": device}
    if plain == CANNY:
        return AbCase(f"{case} {device}", CANNY, device, shape, case.dtype, words)
    kernels = plain if plain in filter_names() else bench_filter(case.filter, case.channels).kernels[0].tolist()
    words |= {"method": method, **options, "filter": kernels, "channels": case.channels, "stride": case.stride}
    said = [str(case), device, word]
    if drawn is not None:
        shape = (drawn.height, drawn.width, shape[2])
        rules = {"padding": drawn.padding, "border": drawn.border, "output_mode": drawn.output_mode}
        said += [f"{drawn.height}x{drawn.width}", *rules.values()]
        words |= {**rules, "padding": int(drawn.padding) if drawn.padding.isdecimal() else drawn.padding}
    return AbCase(" ".join(said), call, device, shape, case.dtype, words)
