"""Grey pictures, float64 and filter banks by tiles: the bytes of the whole picture, in one file with all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from command import edgeconv
from jsonschema import Draft202012Validator
from pieces import ArraySource, assert_same, by_tiles, by_whole, random_cuts
from problems import random_image

import edgeconv as package
from edgeconv.core.request import make_request
from edgeconv.export.schemas import schema
from edgeconv.io.image import read_image, write_image
from edgeconv.run.tiled.sources import open_output

BANK = ["sobel-x", "sobel-y", "laplacian8", "emboss"]
HEIGHT, WIDTH = 91, 133
RULES = ("-m", "reference", "--samples", "0", "--tile", "32")


@pytest.mark.parametrize("output_mode", ["abs", "raw"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("filter", ["kirsch", BANK[:2], ["sobel", "scharr"]])
def test_tiles_of_grey_and_of_banks_give_the_bytes_of_the_whole(
    filter: str | list[str], channels: int, stride: int, output_mode: str
) -> None:
    for dtype in ("uint16", "float64"):
        pixels = np.ascontiguousarray(random_image(37, 41, dtype)[:, :, :channels])
        request = make_request(filter, channels="each", stride=stride, border="reflect101", output_mode=output_mode)
        rng = np.random.default_rng(1)
        source = ArraySource(pixels, random_cuts(rng, 37), random_cuts(rng, 41))
        got = by_tiles(source, request, (7, 16), "reference")
        assert_same(got, by_whole(pixels, request, "reference"))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("output", ["tif", "zarr"])
def test_a_grey_file_by_tiles_is_the_one_of_the_whole(tmp_path: Path, output: str, dtype: str) -> None:
    write_image(random_image(HEIGHT, WIDTH, dtype)[:, :, :1], tmp_path / "grey.tif")
    for words in ([], ["--output-mode", "normalize"]):
        done = edgeconv(
            "run", "grey.tif", *RULES, "-o", f"out.{output}", "--verify-tiles", "--overwrite", *words, cwd=tmp_path
        )
        assert (done.code, done.err.count("error")) == (0, 0), done.err
        record = json.loads((tmp_path / "out.json").read_text())
        assert (record["input"]["channels"], record["output"]["channels"]) == (1, 1)
        assert record["tiles"]["proof"]["passed"]
    if output == "tif":
        assert edgeconv("run", "grey.tif", *RULES, "-o", "whole.tif", "--overwrite", cwd=tmp_path).code == 0
        assert edgeconv("run", "grey.tif", *RULES[:4], "-o", "at_once.tif", cwd=tmp_path).code == 0
        assert_same(read_image(tmp_path / "whole.tif").pixels, read_image(tmp_path / "at_once.tif").pixels)


def test_rgb_is_asked_for_by_tiles_too_and_decides_what_is_replaced(tmp_path: Path) -> None:
    write_image(random_image(HEIGHT, WIDTH, "uint8")[:, :, :1], tmp_path / "grey.tif")
    assert edgeconv("run", "grey.tif", *RULES, "-o", "out.tif", "--rgb", cwd=tmp_path).code == 0
    assert read_image(tmp_path / "out.tif").pixels.shape == (HEIGHT, WIDTH, 3)
    done = edgeconv("run", "grey.tif", *RULES, "-o", "out.tif", cwd=tmp_path)
    assert (done.code, "holds a result with other settings" in done.err) == (2, True)


@pytest.mark.parametrize("channels", ["mix", "each"])
@pytest.mark.parametrize("output", ["tif", "zarr"])
def test_a_bank_by_tiles_is_one_file_with_all(tmp_path: Path, output: str, channels: str) -> None:
    pixels = random_image(HEIGHT, WIDTH, "uint8")
    write_image(pixels, tmp_path / "a.tif")
    words = ("--filters", ",".join(BANK), "--channels", channels, "--check", "full", "--verify-tiles")
    for _ in range(2):  # its own result is replaced
        done = edgeconv("run", "a.tif", *RULES, *words, "-o", f"out.{output}", cwd=tmp_path)
        assert done.code == 0, done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a.tif", "out.json", f"out.{output}"])
    record = json.loads((tmp_path / "out.json").read_text())
    Draft202012Validator(schema("run"), format_checker=Draft202012Validator.FORMAT_CHECKER).validate(record)
    expected = package.convolve(pixels, BANK, "reference", channels=channels)
    assert record["output"]["channels"] == expected.shape[2]
    assert record["tiles"]["proof"]["compared_samples"] == expected.size
    assert record["check"]["checked_share"] == 1
    source = open_output(tmp_path / f"out.{output}", expected.shape[2], len(BANK))
    rows, columns = len(source.layout.row_cuts) - 1, len(source.layout.column_cuts) - 1
    got = np.concatenate([np.concatenate([source.load(y, x) for x in range(columns)], 1) for y in range(rows)])
    source.close()
    assert_same(got, expected)
    if output == "tif":
        with tifffile.TiffFile(tmp_path / "out.tif") as file:
            pages = [page.asarray().reshape(HEIGHT, WIDTH, -1) for page in file.pages]
        assert len(pages) == len(BANK)
        for number, page in enumerate(pages):
            assert_same(page, expected[:, :, number :: len(BANK)])
