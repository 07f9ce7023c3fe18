"""What filters give of the drawn picture, as the page shows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np

from edgeconv.core.filters import named_filter
from edgeconv.core.request import make_request
from edgeconv.export.samples import chart, samples
from edgeconv.methods import reference


def shown(*works: tuple[str, str]) -> dict[str, Any]:
    """The samples of a record of these filters and channels, decoded, by their titles."""
    cases = (SimpleNamespace(filter=filter, channels=channels) for filter, channels in works)
    record = SimpleNamespace(rows=[SimpleNamespace(case=case) for case in cases])
    return {
        sample.title: cv2.imdecode(np.frombuffer(sample.png, np.uint8), cv2.IMREAD_COLOR_RGB)
        for sample in samples(record)
    }


def test_each_filter_is_shown_once_as_the_oracle_gives_it() -> None:
    """Banks are left out."""
    works = (("sobel", "each"), ("bank-c3-k16", "mix"), ("laplacian8", "luma"), ("random", "mix"), ("sobel", "each"))
    found = shown(*works)
    assert list(found) == ["the picture", "sobel, each", "laplacian8, luma", "random, mix, stretched"]
    assert np.array_equal(found["the picture"], chart())
    for title, filter, channels in (("sobel, each", "sobel", "each"), ("laplacian8, luma", "laplacian8", "luma")):
        problem = make_request(named_filter(filter), channels=channels).problem((96, 96, 3), "uint8")
        exact = np.abs(reference.values(chart(), problem, 0, 96))
        assert np.array_equal(found[title], np.broadcast_to(np.minimum(np.rint(exact), 255), (96, 96, 3)))
    assert shown(("bank-c1-k2", "mix"), ("bank-c3-k3", "mix")) == {}
    assert (found["random, mix, stretched"].min(), found["random, mix, stretched"].max()) == (0, 255)
