"""“Bench this”: the lines it draws, what it refuses, and that it stops when told to."""

from __future__ import annotations

import numpy as np
import pytest
from bench_records import TimedMethod, use
from problems import random_image

from edgeconv.bench.record import to_json
from edgeconv.errors import UsageError
from edgeconv.io.image import read_image, write_image
from edgeconv.view import picture_bench
from edgeconv.view.latest_request import Token
from edgeconv.view.parameters import Parameters


@pytest.fixture
def path(tmp_path) -> str:
    target = tmp_path / "picture.png"
    write_image(random_image(96, 80, np.uint8), target)
    return str(target)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two methods of a device on which every time is made up."""
    use(monkeypatch, *(TimedMethod(name, [2e-3], name) for name in ("opencv", "sliding")))


def test_a_picture_with_a_kernel_of_ones_own_is_measured_checked_and_drawn(path: str, timed: None) -> None:
    parameters = Parameters(device="cpu", channels="each", stride=2).with_kernel("0,1,0;1,-4.5,1;0,1,0")
    shares: list[float] = []
    todo = picture_bench.plan(path, read_image(path), parameters)
    record = picture_bench.measure(todo, Token(), lambda share, note: shares.append(share))
    assert record.complete
    lines = picture_bench.series(record)
    assert {line.label for line in lines} == {"opencv on CPU", "sliding on CPU"}
    for line in lines:
        assert [size for size, _ in line.points] == [64, 96]
        assert all(gflops > 0 for _, gflops in line.points)
    assert shares == sorted(shares)
    assert {row.case.stride for row in record.rows} == {2}
    assert to_json(record)


def test_it_stops_when_told_to(path: str) -> None:
    token = Token()
    token.cancel()
    with pytest.raises(picture_bench.BenchStoppedError):
        picture_bench.measure(
            picture_bench.plan(path, read_image(path), Parameters(device="cpu")), token, lambda *_: None
        )


def test_a_chain_is_not_benched(path: str) -> None:
    with pytest.raises(UsageError, match="'canny' is a chain of stages, and a bench measures single filters"):
        picture_bench.plan(path, read_image(path), Parameters(filter="canny"))
