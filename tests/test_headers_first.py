"""A picture that its header refuses is not read: every format, every way in, wherever the header lies in its file.

Bytes are counted, as memory and seconds depend on the machine. The files have 600 MiB and take no room on a disk.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaged import AVIF, JPEG, JPEG_2000
from picture_files import Piped, noisy, png_head, resize_file, saved, tiff

from edgeconv.batch.stores import store_of
from edgeconv.core.request import make_request
from edgeconv.difference.folders import compare_folders
from edgeconv.difference.results import Wanted
from edgeconv.errors import ImageReadError
from edgeconv.io.formats import FORMATS, format_of
from edgeconv.io.reading import longest_side, read_image, read_pages
from edgeconv.run.job import Job
from edgeconv.run.picture import run_picture

FILE_BYTES = 600 * 2**20
MOST_BYTES = 2**16
SIDE = 60_000
"""Of a picture above the limit of pixels; every format can state it."""
SIDES = struct.pack(">II", SIDE, SIDE)
SMALL = struct.pack(">II", 60, 40)
SHORT_SIDES, SHORT_SMALL = struct.pack(">HH", SIDE, SIDE), struct.pack(">HH", 40, 60)


def npy_head() -> bytes:
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({SIDE}, {SIDE}, 3), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def directory(place: int) -> list[tuple[int, bytes]]:
    """The parts of a TIFF whose directory lies at `place`."""
    entries = [(256, 4, SIDE), (257, 4, SIDE), (273, 4, 8), (279, 4, 8)]
    stored = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    return [(0, b"II*\0" + struct.pack("<I", place)), (place, struct.pack("<H", len(entries)) + stored + bytes(4))]


def behind(data: bytes, place: int, kind: bytes) -> list[tuple[int, bytes]]:
    """A file of boxes whose second and later boxes lie at `place`, with a box of zeros before them."""
    (first,) = struct.unpack(">I", data[:4])
    return [(0, data[:first] + struct.pack(">I4s", place - first, kind)), (place, data[first:])]


AVIF_HEAD = AVIF.replace(b"ispe" + bytes(4) + SMALL, b"ispe" + bytes(4) + SIDES)
JPEG_2000_HEAD = JPEG_2000.replace(SMALL, SIDES).replace(struct.pack(">II", 40, 60), SIDES)
JPEG_HEAD = JPEG.replace(SHORT_SMALL, SHORT_SIDES, 1)
SEGMENT, SEGMENTS = b"\xff\xe9\xff\xff", 300
LATE = FILE_BYTES - 2**20

HEADERS: dict[str, list[tuple[int, bytes]]] = {
    "PNG": [(0, png_head(SIDE, SIDE))],
    "JPEG": [(0, JPEG_HEAD)],
    "JPEG behind segments of 64 KiB": [
        (0, JPEG[:2] + SEGMENT),
        *((2 + number * 65_537, SEGMENT) for number in range(1, SEGMENTS)),
        (2 + SEGMENTS * 65_537, JPEG_HEAD[2:]),
    ],
    "TIFF": directory(8),
    "TIFF with its directory at the end": directory(LATE),
    "WebP": [
        (0, b"RIFF" + struct.pack("<I", FILE_BYTES - 8) + b"WEBPVP8X" + struct.pack("<I", 10)),
        (24, 2 * (SIDE - 1).to_bytes(3, "little")),
    ],
    "BMP": [(0, b"BM" + struct.pack("<IIIIiiHHII", 0, 0, 54, 40, SIDE, SIDE, 1, 24, 0, 0))],
    "NPY": [(0, npy_head())],
    "GIF": [(0, b"GIF89a" + struct.pack("<HHB", SIDE, SIDE, 0))],
    "PNM": [(0, f"P6 {SIDE} {SIDE} 255\n".encode())],
    "JPEG 2000": [(0, JPEG_2000_HEAD)],
    "JPEG 2000 behind another box": behind(JPEG_2000_HEAD, LATE, b"free"),
    "AVIF": [(0, AVIF_HEAD)],
    "AVIF behind its data": behind(AVIF_HEAD, LATE, b"mdat"),
}
"""Places and bytes of files whose header states 60,000×60,000 pixels."""


class Counted:
    """A file that counts the bytes that are read of it."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.given = stream, 0

    def read(self, count: int = -1) -> bytes:
        data: bytes = self._stream.read(count)
        self.given += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Counted]:
    """Every file that is opened by its path."""
    files: list[Counted] = []
    plain = Path.open

    def opening(path: Path, *words: Any, **options: Any) -> Counted:
        files.append(Counted(plain(path, *words, **options)))
        return files[-1]

    monkeypatch.setattr(Path, "open", opening)
    return files


def write(path: Path, parts: list[tuple[int, bytes]]) -> None:
    """A file of 600 MiB that has only these bytes."""
    with open(path, "wb") as stream:
        for place, data in parts:
            stream.seek(place)
            stream.write(data)
        stream.truncate(FILE_BYTES)


def from_a_folder(path: Path) -> None:
    """`edgeconv diff` of two folders; the sizes of the files differ."""
    for name in ("old", "new"):
        (path.parent / name).mkdir()
    path.rename(path.parent / "old" / path.name)
    (path.parent / "new" / path.name).write_bytes(b"!")
    (pair,), _ = compare_folders(path.parent / "old", path.parent / "new", (), Wanted())
    assert pair.status == "unreadable"
    raise ImageReadError(pair.detail)


def from_standard_input(path: Path) -> None:
    with path.open("rb") as stream:
        sys.stdin = Piped(stream)  # type: ignore[assignment]
        read_image("-")


WAYS: dict[str, Callable[[Path], object]] = {
    "read_image": read_image,
    "all pages": read_pages,
    "standard input": from_standard_input,
    "run": lambda path: run_picture(Job(str(path), make_request(), method="sliding", device="cpu")),
    "batch": lambda path: store_of(str(path)).read(str(path)),
    "resize": lambda path: resize_file(path, (8,)),
    "diff": from_a_folder,
}


def test_every_format_is_here() -> None:
    assert {format_of(parts[0][1]) for parts in HEADERS.values()} == set(FORMATS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_is_refused_is_all_that_is_read(
    name: str, way: str, tmp_path: Path, counted: list[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", sys.stdin)
    path = tmp_path / "large.png"
    write(path, HEADERS[name])
    with pytest.raises(ImageReadError, match="its header says 60,000×60,000 pixels, above the limit of 268,435,456"):
        WAYS[way](path)
    assert counted, "nothing was opened"
    assert sum(file.given for file in counted) <= MOST_BYTES


@pytest.mark.parametrize("name", [entry.name for entry in FORMATS])
def test_the_longest_side_is_found_by_the_header_alone(name: str, tmp_path: Path, counted: list[Counted]) -> None:
    path = tmp_path / "large"
    write(path, HEADERS[name])
    assert longest_side(path) == SIDE
    assert counted[0].given <= MOST_BYTES


def test_a_file_that_is_small_enough_is_read_whatever_lies_behind_its_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.tiff"
    for data in (tiff(noisy()), saved(noisy(), "PNG")):
        path.write_bytes(data)
        os.truncate(path, 2**25)
        np.testing.assert_array_equal(read_image(path).pixels, noisy())
