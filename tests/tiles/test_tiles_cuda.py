"""The same on a GPU: tiles give the whole picture's bytes there too, and a tile's shape is set up once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from pieces import ArraySource, assert_same, by_tiles, by_whole, shows_seams
from problems import random_image
from selection import drawn_pairs

from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.core.request import make_request
from edgeconv.io.reading import read_image
from edgeconv.methods import method_names
from edgeconv.run import report_text
from edgeconv.run.job import Job
from edgeconv.run.tiles import run_by_tiles

pytestmark = pytest.mark.gpu

RANDOM_KERNEL = np.random.default_rng(5).uniform(-1, 1, (3, 3)).tolist()
RANDOM_SET = np.random.default_rng(6).uniform(-1, 1, (3, 3, 3, 3)).tolist()

FILTERS = {
    "laplacian8": ("laplacian8", "mix"),
    "sobel": ("sobel", "each"),
    "kirsch": ("kirsch", "mix"),
    "luma": ("sobel", "luma"),
    "random": (RANDOM_KERNEL, "each"),
    "random mix": (RANDOM_SET, "mix"),
}


CASES = drawn_pairs(
    [method_names("cuda"), INPUT_DTYPES, tuple(FILTERS)],
    lambda method, dtype, _: method != "cudnn" and (dtype != "float64" or method != "implicit"),
)
"""cuDNN chooses its algorithm by the shape; `implicit` has no float64."""


@pytest.mark.parametrize(("method", "dtype", "name"), CASES)
def test_tiles_give_the_bytes_of_the_whole_picture(method: str, dtype: str, name: str) -> None:
    filter, channels = FILTERS[name]
    pixels = random_image(517, 1203, dtype)
    for stride, padding, border in ((1, 1, "zero"), (2, 1, "reflect101"), (3, 2, "replicate"), (1, 0, "zero")):
        request = make_request(filter, channels=channels, stride=stride, padding=padding, border=border)
        if shows_seams(request, method, dtype, "cuda"):
            continue
        whole = by_whole(pixels, request, method, "cuda")
        for tile in ((256, 512), (64, 1203), (61, 83)):
            assert_same(by_tiles(ArraySource(pixels), request, tile, method, "cuda"), whole)


def test_a_run_by_tiles_on_a_gpu_is_right_and_reported(tmp_path: Path) -> None:
    pytest.importorskip("imagecodecs")
    pixels, request = random_image(2100, 3100, "uint8"), make_request("sobel")
    tifffile.imwrite(tmp_path / "photo.tif", pixels, photometric="rgb", tile=(512, 512), compression="adobe_deflate")
    output = tmp_path / "edges.tif"
    record = run_by_tiles(Job(str(tmp_path / "photo.tif"), request, device="cuda", output=str(output), tile=512))
    assert_same(read_image(output).pixels, by_whole(pixels, request, "sliding", "cuda"))
    assert record.check.passed
    assert record.method.name == "sliding"
    assert {"host_to_device", "device_to_host"} <= set(record.phases_seconds)
    assert record.timing.end_to_end.n == 14  # 3 × 5 tiles have pixels on all sides, the first left out
    assert any("on NVIDIA" in row.text for row in report_text.table(record))
