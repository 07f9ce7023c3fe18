"""Sizes, shapes and means of resized pictures, and which files a batch writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import PROJECT, edgeconv, script
from picture_files import noisy, smooth_image
from problems import random_image

from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.errors import ImageWriteError, UsageError
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.io.resize import parse_sizes, resize, resize_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("128", (128,)),
        ("128,256, 100", (128, 256, 100)),
        ("128:1024", (128, 256, 512, 1024)),
        ("100:300", (100, 200)),
        ("64:128,128,32", (64, 128, 32)),
        ("128:4096", (128, 256, 512, 1024, 2048, 4096)),
    ],
)
def test_sizes(text: str, sizes: tuple[int, ...]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize("text", ["", "0", "-1", "a", "128,", "256:128", "1:2:3", "1.5", "99999999"])
def test_sizes_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match=f"Sizes '{text}' are not like 128,256 or 128:4096"):
        parse_sizes(text)


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((30, 40), 20, (15, 20)),
        ((40, 30), 80, (80, 60)),
        ((1, 100), 10, (1, 10)),
        ((3, 100), 50, (2, 50)),
        ((1, 1), 7, (7, 7)),
        ((30, 40), 40, (30, 40)),
        ((30, 40), 1, (1, 1)),
    ],
)
@pytest.mark.parametrize("dtype", INPUT_DTYPES)
def test_the_longest_side_is_the_size_and_the_type_stays(
    shape: tuple[int, int], size: int, expected: tuple[int, int], dtype: str
) -> None:
    for channels in (1, 3):
        resized = resize(random_image(*shape, dtype)[:, :, :channels], size)
        assert resized.shape == (*expected, channels)
        assert resized.dtype == dtype
        assert resized.flags.c_contiguous


def test_square_cuts_the_middle_out() -> None:
    pixels = noisy(30, 41)
    np.testing.assert_array_equal(resize(pixels, 30, square=True), pixels[:, 5:35])
    assert resize(pixels, 10, square=True).shape == (10, 10, 3)


def test_area_averages_blocks() -> None:
    pixels = random_image(32, 48, "uint16")
    means = pixels.reshape(8, 4, 12, 4, 3).mean(axis=(1, 3))
    assert np.abs(resize(pixels, 12) - means).max() <= 0.5


@pytest.mark.parametrize("size", [20, 90])
def test_a_flat_picture_stays_flat(size: int) -> None:
    flat = np.full((30, 40, 3), (3, 128, 65_000), np.uint16)
    assert (resize(flat, size) == flat[0, 0]).all()


def test_a_size_follows_the_stem(tmp_path: Path) -> None:
    write_image(random_image(20, 30, "uint16"), tmp_path / "holiday_2019.tif")
    write_image(random_image(20, 30, "float32"), tmp_path / "field.npy")
    resize_file(tmp_path / "holiday_2019.tif", (10,), folder=tmp_path / "made" / "here")
    resize_file(tmp_path / "field.npy", (10,), folder=tmp_path / "made" / "here")
    assert names(tmp_path / "made" / "here") == ["field_10.tiff", "holiday_2019_10.png"]
    assert read_image(tmp_path / "made" / "here" / "holiday_2019_10.png").pixels.dtype == np.uint16


def test_nothing_is_written_where_one_file_exists(tmp_path: Path) -> None:
    write_image(noisy(), tmp_path / "a.png")
    (tmp_path / "a_20.png").write_bytes(b"mine")
    with pytest.raises(ImageWriteError, match=r"a_20\.png' exists: pass --overwrite"):
        resize_file(tmp_path / "a.png", (10, 20))
    assert names(tmp_path) == ["a.png", "a_20.png"]
    resize_file(tmp_path / "a.png", (10, 20), overwrite=True)
    assert read_image(tmp_path / "a_20.png").pixels.shape == (13, 20, 3)


def test_the_command_says_what_else_was_done(tmp_path: Path) -> None:
    write_image(random_image(20, 30, "uint16")[:, :, :1], tmp_path / "grey.png")
    for words, channels, notes in (
        ([], 1, "kept at 16 bits per sample"),
        (["--rgb", "-o", "rgb/"], 3, "grey spread to three channels, kept at 16 bits per sample"),
    ):
        done = edgeconv("resize", "grey.png", "--sizes", "8", *words, cwd=tmp_path)
        (name,) = done.text.split()
        assert read_image(tmp_path / name).pixels.shape[2] == channels
        assert done.error_lines == [f"edgeconv: note: grey.png: {notes}"]


def test_the_command_takes_standard_input(tmp_path: Path) -> None:
    write_image(smooth_image(64, 64), tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    done = edgeconv("resize", "-", "--sizes", "16", cwd=tmp_path, stdin=data)
    assert (done.code, done.text.split()) == (0, ["stdin_16.png"])


def test_the_picture_itself_is_never_replaced(tmp_path: Path) -> None:
    write_image(noisy(), tmp_path / "a.png")
    (tmp_path / "a_8.png").symlink_to("a.png")
    done = edgeconv("resize", "a.png", "--sizes", "8", "--overwrite", cwd=tmp_path)
    assert (done.code, done.text) == (2, "")
    assert "a_8.png: is the input itself" in done.err


def test_the_committed_pictures_are_what_the_script_draws() -> None:
    """Equal to the bit but for the letters, which may differ a little with another FreeType."""
    chart = script("make_input")
    drawn = chart.make_input()
    committed = sorted((PROJECT / "images").glob("input_*.png"))
    assert PROJECT / "images" / "input_128.png" in committed
    for path in committed:
        pixels = read_image(path).pixels
        size = pixels.shape[0]
        expected = resize(drawn, size)
        letters = tuple(
            slice(part.start * size // chart.SIDE, part.stop * size // chart.SIDE) for part in chart.TEXT_PANEL
        )
        difference = np.abs(pixels.astype(int) - expected)
        assert difference[letters].mean() < 4, path.name
        difference[letters] = 0
        assert difference.max() == 0, path.name


@pytest.mark.parametrize(
    ("dtype", "suffix"), [("float32", ".tiff"), ("float64", ".tiff"), ("float16", ".npy"), ("uint16", ".png")]
)
def test_every_type_goes_where_it_fits(tmp_path: Path, dtype: str, suffix: str) -> None:
    write_image(random_image(20, 30, dtype), tmp_path / "in.npy")
    done = edgeconv("resize", "in.npy", "--sizes", "15,60", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.text.split() == [f"in_15{suffix}", f"in_60{suffix}"]
    assert read_image(tmp_path / f"in_15{suffix}").pixels.dtype == np.dtype(dtype)
