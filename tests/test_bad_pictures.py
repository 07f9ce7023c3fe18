"""A file that is not a picture is refused in one line that says what to do."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from command import shell
from damaged import BAD_FILES, JPEG, BadFile
from picture_files import Piped, noisy, saved, tiff
from PIL import Image
from PIL.GifImagePlugin import GifImageFile

from edgeconv.errors import ImageReadError, MemoryLimitError
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import decode_image, read_image


@pytest.mark.parametrize("bad", BAD_FILES, ids=lambda bad: bad.what)
def test_a_bad_file_is_one_line_with_its_name_and_a_remedy(tmp_path: Path, bad: BadFile) -> None:
    path = tmp_path / bad.name
    path.write_bytes(bad.data)
    with pytest.raises(ImageReadError) as raised:
        read_image(path)
    message = str(raised.value)
    assert message.startswith(f"{path}: ")
    assert bad.says in message
    assert bad.remedy in message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere.png", r"nowhere\.png: there is no such file: check the name\."),
        ("", "is a folder: name a picture in it, or use 'edgeconv batch'"),
        ("bad\0name.png", "cannot be read"),
        ("x" * 300 + ".png", r"cannot be read \(.*\): check its name and permissions"),
    ],
    ids=["missing", "folder", "no name", "long name"],
)
def test_a_name_under_which_there_is_no_picture(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(ImageReadError, match=says):
        read_image(tmp_path / name)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ImageReadError, match=r"cannot be read \(Permission denied\): check its name and permissions"):
        read_image(tmp_path / "secret.png")


def test_pixels_of_a_type_that_opencv_cannot_convert(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged TIFF may say one type to us and another to OpenCV."""
    monkeypatch.setattr(cv2, "imdecode", lambda data, flags: noisy().astype(np.int32))
    with pytest.raises(ImageReadError, match=r"a\.tif: TIFF: it cannot be decoded \(OpenCV"):
        decode_image(tiff(noisy()), "a.tif")


def test_standard_input_that_holds_nothing_useful_or_is_closed_or_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(9, "Bad file descriptor")

    for stream, says in (
        (Piped(b""), "Standard input is empty: pipe a picture"),
        (Piped(b"", terminal=True), "Standard input is a terminal: pipe a picture"),
        (Piped(JPEG[:-2]), "standard input: JPEG: the file is cut short"),
        (None, "Standard input is closed: pipe a picture into it, or name a file"),
        (Piped(Broken()), r"Standard input cannot be read \(Bad file descriptor\): pipe"),
    ):
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(ImageReadError, match=says):
            read_image("-")


def test_a_command_whose_standard_input_is_closed(tmp_path: Path) -> None:
    done = shell('"$0" -m edgeconv resize - --sizes 8 <&-', cwd=tmp_path)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert "Standard input is closed" in done.err


def test_the_end_marker_of_a_thumbnail_is_not_taken_for_the_picture_s(tmp_path: Path) -> None:
    thumbnail = saved(noisy(8, 8), "JPEG")
    segment = b"\xff\xe1" + (2 + len(thumbnail)).to_bytes(2, "big") + thumbnail
    path = tmp_path / "camera.jpg"
    path.write_bytes(JPEG[:2] + segment + JPEG[2:])
    assert read_image(path).pixels.shape == noisy().shape
    path.write_bytes((JPEG[:2] + segment + JPEG[2:])[:-2])
    with pytest.raises(ImageReadError, match="no end-of-image marker"):
        read_image(path)


def test_a_limit_of_pillow_s_own_is_not_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)  # 24 times less: an error of Pillow's, not a warning
    path = tmp_path / "deflate.tif"
    path.write_bytes(saved(noisy(40, 60), "TIFF", compression="tiff_deflate"))
    np.testing.assert_array_equal(read_image(path).pixels, noisy(40, 60))
    assert Image.MAX_IMAGE_PIXELS == 100
    with pytest.raises(ImageReadError, match="above the limit of 2,399"):
        read_image(path, ReadRules(max_pixels=2399))
    assert Image.MAX_IMAGE_PIXELS == 100


def test_memory_that_pillow_lacks_is_memory_that_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not damage of the file."""

    def lacking(image: Image.Image) -> None:
        raise MemoryError

    data = saved(noisy(), "GIF")
    monkeypatch.setattr(GifImageFile, "load", lacking)
    with pytest.raises(MemoryLimitError, match=r"^large.gif: not enough memory for 60×40 pixels"):
        decode_image(data, "large.gif")
