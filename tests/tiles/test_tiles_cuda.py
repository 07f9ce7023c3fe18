"""The same on a GPU: tiles give the whole picture's bytes there too, and a tile's shape is set up once."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import tifffile
from pieces import assert_same, by_tiles, by_whole, in_one_chunk
from problems import random_image

from edgeconv.api.auto import Choice
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.core.request import make_request
from edgeconv.methods import method_names
from edgeconv.run import report_text
from edgeconv.run.job import Job
from edgeconv.run.tiled import filtering as tiled
from edgeconv.run.tiled.determinism import depends_on_tiling

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


NOT_IN_FLOAT64 = ("implicit", "cudnn")
WAYS = [
    (method, dtype)
    for method, dtype in product(method_names("cuda"), INPUT_DTYPES)
    if dtype != "float64" or method not in NOT_IN_FLOAT64
]


@pytest.mark.parametrize(("method", "dtype"), WAYS)
@pytest.mark.parametrize("name", FILTERS)
def test_tiles_give_the_bytes_of_the_whole_picture(method: str, dtype: str, name: str) -> None:
    filter, channels = FILTERS[name]
    pixels = random_image(517, 1203, dtype)
    for stride, padding, border in ((1, 1, "zero"), (2, 1, "reflect101"), (3, 2, "replicate"), (1, 0, "zero")):
        request = make_request(filter, channels=channels, stride=stride, padding=padding, border=border)
        if depends_on_tiling(Choice(method, "cuda", "a test"), request.problem(pixels.shape, pixels.dtype)):
            continue
        whole = by_whole(pixels, request, method, "cuda")
        for tile in ((256, 512), (64, 1203), (61, 83)):
            assert_same(by_tiles(in_one_chunk(pixels), request, tile, method, "cuda"), whole)


def test_a_run_by_tiles_on_a_gpu_is_proved_and_reported(tmp_path: Path) -> None:
    pytest.importorskip("imagecodecs")
    pixels = random_image(2100, 3100, "uint8")
    tifffile.imwrite(tmp_path / "photo.tif", pixels, photometric="rgb", tile=(512, 512), compression="adobe_deflate")
    record = tiled.run(
        Job(str(tmp_path / "photo.tif"), make_request("sobel"), device="cuda", output=str(tmp_path / "edges.tif")),
        tiled.TileOptions(side=1024, verify=True),
    )
    assert record.tiles.proof.passed
    assert record.check.passed
    assert record.method.name == "sliding"
    assert {"host_to_device", "device_to_host"} <= set(record.phases_seconds)
    assert record.timing.end_to_end.n == 5  # 2 × 3 tiles of the full size, the first left out
    assert any("on NVIDIA" in row.text for row in report_text.table(record))
