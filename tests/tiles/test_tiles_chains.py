"""Chains of stages by tiles: the bytes of the whole picture; hysteresis, which no tile alone can do, is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from canny_pictures import picture_of
from command import edgeconv
from jsonschema import Draft202012Validator
from pieces import ArraySource, assert_same, by_tiles, random_cuts

from edgeconv.core import chains
from edgeconv.core.chains import make_chain
from edgeconv.core.request import make_request
from edgeconv.export.schemas import schema

TILES = ("--tile", 64, "--verify-tiles", "-v")
CHAINS = ("gaussian", "gaussian5,sobel", "scharr,direction", "gaussian,gaussian5,prewitt,thin", "sobel,thin")


@pytest.mark.parametrize("stages", CHAINS)
@pytest.mark.parametrize("shape", [(1, 1, 3), (3, 90, 1), (71, 5, 3), (97, 130, 3)])
@pytest.mark.parametrize("tile", [(16, 16), (32, 48), (1000, 16)])
def test_tiles_give_the_bytes_of_the_whole_picture(stages: str, shape: tuple[int, ...], tile: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    for dtype in ("uint8", "uint16"):
        picture = picture_of("few levels", shape, 5, dtype)
        request = make_request(make_chain(stages, gradient=None if stages == "gaussian" else "l2"))
        expected = chains.compute(picture, request.picture_problem(picture.shape, picture.dtype))
        source = ArraySource(picture, random_cuts(rng, shape[0]), random_cuts(rng, shape[1]))
        for shifted in (False, True):
            assert_same(by_tiles(source, request, tile, "reference", shifted=shifted), expected)


@pytest.mark.parametrize(
    "words",
    [
        "--chain gaussian,sobel,thin",
        "--chain gaussian5,sobel --output-mode raw",
        "--chain sobel,thin --threshold 90",
        "--chain sobel,direction --gradient l2",
    ],
)
def test_a_run_by_tiles_is_that_of_the_whole_and_says_what_it_measured(tmp_path: Path, words: str) -> None:
    tifffile.imwrite(tmp_path / "p.tif", picture_of("smooth", (150, 211, 3), 7), tile=(64, 64), photometric="rgb")
    whole = edgeconv("run", "p.tif", *words.split(), "-o", "whole.tiff", cwd=tmp_path)
    assert whole.code == 0, whole.err
    tiled = edgeconv("run", "p.tif", *words.split(), "-o", "tiled.tiff", *TILES, cwd=tmp_path)
    assert tiled.code == 0, tiled.err
    assert_same(tifffile.imread(tmp_path / "tiled.tiff"), tifffile.imread(tmp_path / "whole.tiff"))
    found = json.loads((tmp_path / "tiled.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema("run")).validate(found)
    assert found["check"]["passed"]
    assert found["check"]["exact"]
    assert found["tiles"]["proof"]["passed"]
    assert found["tiles"]["proof"]["against"] == "whole picture"
    assert (found["speed"], found["tiles"]["whole_run_gflops"]) == (None, None)
    assert found["throughput"]["pixels_per_second"] > 0
    assert "GFLOPS" not in tiled.text
