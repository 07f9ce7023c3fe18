"""The last value that is taken and the first that is refused, of everything that has a bound: numbers by hand."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from picture_files import noisy, png

import edgeconv
from edgeconv.batch.tasks import parse_shard
from edgeconv.core.option import options_of
from edgeconv.core.request import make_request
from edgeconv.difference.figures import Allowance, of_pair
from edgeconv.errors import EdgeconvError
from edgeconv.io.encoding import encode_image, parse_format, parse_png_level, parse_quality
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import decode_image
from edgeconv.io.resize import parse_sizes
from edgeconv.methods.base import check_workspace
from edgeconv.methods.options import Options
from edgeconv.options import BenchOutput, Failing, Ladder, Pairing, Sampling, Timing, Workers

PNG = png(noisy(4, 6))


@dataclass(frozen=True)
class Bound:
    """What is called with a value, the values that are the last to be taken, and the first that are refused."""

    what: str
    call: Callable[[Any], object]
    taken: tuple[Any, ...]
    refused: tuple[Any, ...]


def _long(width: int) -> object:
    """Read a picture of one row."""
    stream = io.BytesIO()
    np.save(stream, np.zeros((1, width, 3), np.uint8))
    return decode_image(stream.getvalue(), "long.npy")


def _ignoring(border: int) -> object:
    picture = np.zeros((9, 7, 3), np.uint8)
    return of_pair(picture, picture, Allowance(ignore_border=border))


def _filtered(rules: tuple[tuple[int, int], int, int]) -> object:
    (height, width), padding, stride = rules
    picture = np.zeros((height, width, 3), np.uint8)
    return edgeconv.convolve(picture, method="sliding", device="cpu", padding=padding, stride=stride)


BOUNDS = (
    Bound("padding of a request", lambda value: make_request(padding=value), (0, 4096), (-1, 4097)),
    Bound("stride", lambda value: make_request(stride=value), (1, 2**40), (0, -1)),
    Bound(
        "a picture's smaller side",
        _filtered,
        (((3, 9), 0, 1), ((9, 3), 0, 2), ((1, 1), 1, 5), ((2, 2), 4096, 4000)),
        (((2, 9), 0, 1), ((9, 2), 0, 2)),
    ),
    Bound("--shard", parse_shard, ("1/1", "1/8", "8/8"), ("0/8", "9/8", "0/0", "1/0")),
    Bound("--jobs", lambda text: Workers(jobs=text).parsed_jobs(), ("1",), ("0", "-1")),
    *(
        Bound(f"--{entry.name}", entry.check, (entry.least,), (entry.least - 1, float("nan")))
        for group in (Sampling, Workers, Failing, Timing, BenchOutput, Pairing)
        for entry in options_of(group)
        if entry.least is not None
    ),
    *(
        Bound(f"--{entry.name}", entry.check, (1e-9,), (0.0, float("nan")))
        for group in (Sampling, Timing, Ladder, Pairing)
        for entry in options_of(group)
        if entry.above is not None
    ),
    Bound("--threads", lambda value: Options(threads=value), (1,), (0, -1)),
    Bound("--workspace-limit", lambda value: Options(workspace_limit_bytes=value), (0,), (-1,)),
    Bound(
        "a workspace",
        lambda needed: check_workspace("im2col", needed, Options(workspace_limit_bytes=1000)),
        (1000,),
        (1001,),
    ),
    Bound("--ignore-border", _ignoring, (0, 3), (-1, 4)),
    Bound("--max-pixels", lambda most: decode_image(PNG, "a.png", ReadRules(max_pixels=most)), (24,), (23,)),
    Bound("a side that is read", _long, (1_000_000,), (1_000_001,)),
    Bound("--sizes", parse_sizes, ("1", "1000000", "1:1000000"), ("0", "1000001", "1:1000001", "8:4")),
    Bound("--quality", lambda value: parse_quality(value, "jpg"), (1, 100), (0, 101)),
    Bound("--png-level", lambda value: parse_png_level(value, "png"), (0, 9), (-1, 10)),
)


@pytest.mark.parametrize(("format", "longest"), [("png", 1_000_000), ("jpg", 65_500), ("webp", 16_383)])
def test_a_side_above_that_of_the_format_is_refused_by_the_table_and_not_by_the_encoder(
    format: str, longest: int
) -> None:
    for turn in (1, -1):
        assert encode_image(np.zeros((*(1, longest)[::turn], 3), np.uint8), "-", format=format)
        with pytest.raises(EdgeconvError, match=f"{longest:,}"):
            encode_image(np.zeros((*(1, longest + 1)[::turn], 3), np.uint8), "-", format=format)


@pytest.mark.parametrize(
    ("text", "suffix"),
    [("png", "png"), (".PNG", "png"), ("JPG", "jpg"), ("jpeg", "jpeg"), ("Tiff", "tiff"), (None, None)],
)
def test_a_format_may_be_written_in_any_case_and_with_its_dot(text: str | None, suffix: str | None) -> None:
    assert parse_format(text) == suffix


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.what)
def test_the_last_value_is_taken_and_the_next_refused(bound: Bound) -> None:
    for value in bound.taken:
        bound.call(value)
    for value in bound.refused:
        with pytest.raises(EdgeconvError):
            bound.call(value)
