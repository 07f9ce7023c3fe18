"""Sizes, shapes and means of resized pictures, and which files a batch writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import PROJECT, edgeconv, script
from picture_files import noisy, resize_file, smooth_image
from problems import random_image

from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.errors import ImageReadError, ImageWriteError, UsageError
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.io.resize import find_pictures, parse_sizes, resize


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


def test_nothing_is_written_where_one_file_exists(tmp_path: Path) -> None:
    write_image(noisy(), tmp_path / "a.png")
    (tmp_path / "a_20.png").write_bytes(b"mine")
    with pytest.raises(ImageWriteError, match=r"a_20\.png' exists: pass --overwrite"):
        resize_file(tmp_path / "a.png", (10, 20))
    assert names(tmp_path) == ["a.png", "a_20.png"]
    resize_file(tmp_path / "a.png", (10, 20), overwrite=True)
    assert read_image(tmp_path / "a_20.png").pixels.shape == (13, 20, 3)


def pictures(folder: Path, longest_sides: dict[str, int]) -> None:
    for name, side in longest_sides.items():
        write_image(noisy(side // 2, side), folder / name)


def test_the_pictures_of_a_folder_are_found_by_their_suffix_and_sorted(tmp_path: Path) -> None:
    pictures(tmp_path, {"b.tif": 32, "a.bmp": 100, "IMG_0001.png": 16})
    (tmp_path / "notes.txt").write_bytes(b"text")
    (tmp_path / "folder.png").mkdir()
    assert [path.name for path in find_pictures([tmp_path])] == ["IMG_0001.png", "a.bmp", "b.tif"]


def test_folders_without_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImageReadError, match="no picture there: name a folder that holds some"):
        find_pictures([tmp_path])

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(ImageReadError, match=r"cannot be read \(Permission denied\): check its permissions"):
        find_pictures([tmp_path])


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
    done = edgeconv("resize", "a.png", "-", "--sizes", "16", "--overwrite", cwd=tmp_path, stdin=data)
    assert (done.code, done.text.split()) == (0, ["a_16.png", "stdin_16.png"])


def test_a_bad_picture_that_is_named_alone_is_an_error_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"text")
    write_image(noisy(), tmp_path / "good.png")
    alone = edgeconv("resize", "bad.png", "--sizes", "8", cwd=tmp_path)
    assert (alone.code, len(alone.error_lines)) == (2, 1)
    both = edgeconv("resize", "bad.png", "good.png", "--sizes", "8", cwd=tmp_path)
    assert (both.code, both.error_lines) == (1, [*alone.error_lines, "edgeconv: 1 of 2 pictures failed."])
    assert both.text.split() == ["good_8.png"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("one/same.png", "two/same.png"), ("one/same.png", "one/SAME.bmp")],
)
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_no_two_pictures_get_one_name(tmp_path: Path, one: str, other: str, overwrite: list[str]) -> None:
    for number, name in enumerate((one, other)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_image(random_image(40, 60, "uint8", number), tmp_path / name)
    done = edgeconv("resize", one, other, "--sizes", "8", "-o", "out", *overwrite, cwd=tmp_path)
    assert (done.code, done.error_lines[-1]) == (1, "edgeconv: 1 of 2 pictures failed.")
    assert "is named twice: give each output a different name" in done.err
    (made,) = (tmp_path / "out").iterdir()
    np.testing.assert_array_equal(read_image(made).pixels, resize(random_image(40, 60, "uint8", 0), 8))


def test_no_picture_is_replaced_by_another_one(tmp_path: Path) -> None:
    pictures(tmp_path, {"a.png": 40, "a_8.png": 60})
    before = (tmp_path / "a_8.png").read_bytes()
    done = edgeconv("resize", ".", "--sizes", "8", "--overwrite", cwd=tmp_path)
    assert done.code == 1
    assert "a.png: a_8.png: is the input itself" in done.err
    assert (tmp_path / "a_8.png").read_bytes() == before
    assert done.text.split() == ["a_8_8.png"]


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
