"""The drawn picture of a page and what filters give of it, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from edgeconv.core.filters import named_filter
from edgeconv.core.request import make_request
from edgeconv.export.samples import chart, samples
from edgeconv.methods import reference

GREEN, WHITE, RED, BLUE, YELLOW = (30, 160, 90), (240,) * 3, (230, 60, 40), (40, 120, 220), (250, 220, 60)


@pytest.mark.parametrize(
    ("row", "column", "colour"),
    [
        (0, 0, (40,) * 3),  # the ramp: one level every two columns
        (0, 95, (87,) * 3),
        *((row, column, RED) for row, column in ((30, 30), (10, 30), (30, 10))),
        *((row, column, (40 + column // 2,) * 3) for row, column in ((9, 30), (51, 20), (30, 9))),
        *((row, column, BLUE) for row, column in ((58, 40), (76, 40), (58, 22))),
        (77, 40, (60,) * 3),
        *((row, column, YELLOW) for row, column in ((44, 66), (30, 66), (58, 66), (44, 80))),
        (29, 66, (73,) * 3),
        (44, 81, (80,) * 3),
        *((row, column, GREEN) for row, column in ((78, 8), (89, 8), (80, 47))),
        *((row, column, (40 + column // 2,) * 3) for row, column in ((77, 8), (90, 8), (80, 7))),
        *((row, column, WHITE) for row, column in ((78, 48), (89, 52), (80, 84))),
        *((row, column, (40 + column // 2,) * 3) for row, column in ((80, 49), (80, 88), (90, 48), (77, 48))),
    ],
)
def test_what_is_drawn_where(row: int, column: int, colour: tuple[int, int, int]) -> None:
    assert tuple(chart()[row, column]) == colour
    assert (chart().shape, chart().dtype) == ((96, 96, 3), np.uint8)


def shown(*works: tuple[str, str]) -> dict[str, Any]:
    """The samples of a record of these filters and channels, decoded, by their titles."""
    cases = (SimpleNamespace(filter=filter, channels=channels) for filter, channels in works)
    record = SimpleNamespace(rows=[SimpleNamespace(case=case) for case in cases])
    return {
        sample.title: cv2.imdecode(np.frombuffer(sample.png, np.uint8), cv2.IMREAD_COLOR_RGB)
        for sample in samples(record)
    }


def test_banks_are_left_out() -> None:
    assert list(shown(("bank-c3-k16", "mix"), ("sobel", "each"))) == ["the picture", "sobel, each"]
    assert shown(("bank-c1-k2", "mix"), ("bank-c3-k3", "mix")) == {}


def test_each_filter_is_shown_once_as_the_oracle_gives_it() -> None:
    works = (("sobel", "each"), ("laplacian8", "luma"), ("random", "mix"), ("sobel", "each"))
    found = shown(*works)
    assert list(found) == ["the picture", "sobel, each", "laplacian8, luma", "random, mix, stretched"]
    assert np.array_equal(found["the picture"], chart())
    for title, filter, channels in (("sobel, each", "sobel", "each"), ("laplacian8, luma", "laplacian8", "luma")):
        problem = make_request(named_filter(filter), channels=channels).problem((96, 96, 3), "uint8")
        exact = np.abs(reference.values(chart(), problem, 0, 96))
        assert np.array_equal(found[title], np.broadcast_to(np.minimum(np.rint(exact), 255), (96, 96, 3)))
    assert (found["random, mix, stretched"].min(), found["random, mix, stretched"].max()) == (0, 255)
