"""Chunks of a Zarr are bounded before they are unpacked, and whatever zarr itself writes is still read."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs
from problems import random_image
from test_tiles_tiff import pixels_of

from edgeconv.errors import ImageReadError
from edgeconv.io.file_identity import file_identity
from edgeconv.run.tiled.sources import open_source

PIXELS = random_image(91, 133, "uint8")
VERSION_2 = ("Blosc", "Zstd", "GZip", "Zlib", "BZ2", "LZMA", "LZ4")
posix = pytest.mark.skipif(os.name == "nt", reason="needs pipes and devices with names")


def written(path: Path, **options: Any) -> Path:
    """PIXELS as zarr writes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of codecs that are no part of Zarr 3
        options = {"chunks": (32, 48, 3)} | options
        zarr.create_array(store=str(path), shape=PIXELS.shape, dtype="uint8", **options)[...] = PIXELS
    return path


def test_what_zarr_writes_is_read(tmp_path: Path) -> None:
    """Every compression of both versions, filters, checksums, axes that change places, shards."""
    ways: list[dict[str, Any]] = [{"zarr_format": 2, "compressors": None}, {"compressors": None}]
    ways += [{"zarr_format": 2, "compressors": getattr(numcodecs, name)()} for name in VERSION_2]
    filters = [numcodecs.Delta("u1"), numcodecs.Shuffle(1)]
    ways.append({"zarr_format": 2, "compressors": numcodecs.Blosc(), "filters": filters})
    checked = [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]
    ways.append({"compressors": checked, "filters": zarr.codecs.TransposeCodec(order=(2, 0, 1))})
    for codec in (zarr.codecs.BloscCodec(), zarr.codecs.ZstdCodec(), zarr.codecs.GzipCodec()):
        ways += [{"compressors": codec, "shards": shards} for shards in (None, (64, 96, 3), (32, 48, 3))]
    for number, options in enumerate(ways):
        path = written(tmp_path / f"{number}.zarr", **options)
        np.testing.assert_array_equal(pixels_of(path)[0], PIXELS, str(options))


def test_two_compressions_are_refused_with_the_way_out(tmp_path: Path) -> None:
    path = written(tmp_path / "a.zarr", zarr_format=2, compressors=numcodecs.Blosc(), filters=[numcodecs.Zlib()])
    with pytest.raises(ImageReadError, match=r"\(blosc and zlib\).*cannot be bounded: save it with one compression"):
        open_source(path)


def test_damaged_chunks_are_errors_with_their_place(tmp_path: Path) -> None:
    for number, name in enumerate(VERSION_2):
        path = written(tmp_path / f"{number}.zarr", zarr_format=2, compressors=getattr(numcodecs, name)())
        for data in (b"\x01", (path / "0.0.0").read_bytes()[:-9], b"\xff" * 200):
            (path / "0.0.0").write_bytes(data)
            with pytest.raises(ImageReadError, match="rows 0 to 31, columns 0 to 47 cannot be decoded"):
                open_source(path).load(0, 0)


def test_a_chunk_file_that_is_larger_than_any_chunk_is_not_read(tmp_path: Path) -> None:
    for number, shards in enumerate((None, (32, 48, 3))):
        path = written(tmp_path / f"{number}.zarr", compressors=zarr.codecs.GzipCodec(), shards=shards)
        os.truncate(path / "c/0/0/0", 2**41)  # a hole: no bytes on the disk
        with pytest.raises(ImageReadError, match="are more than a chunk can have"):
            open_source(path).load(0, 0)


def test_metadata_that_are_too_large_are_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.zarr")
    os.truncate(path / "zarr.json", 2**41)
    with pytest.raises(ImageReadError, match=r"zarr\.json has 2,199,023,255,552 bytes"):
        open_source(path)


@posix
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_file_beside_the_chunks_that_has_no_end_is_not_hashed(what: str, tmp_path: Path) -> None:
    """Nothing else reads it: the hash of a picture in a folder is over all files there."""
    path = written(tmp_path / "a.zarr")
    if what == "pipe":
        os.mkfifo(path / "extra")
    else:
        (path / "extra").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="extra is not a plain file"):
        file_identity(path)
    (path / "extra").unlink()
    (path / "extra").symlink_to(path / "zarr.json")
    assert file_identity(path)["file_bytes"] > 0


@posix
@pytest.mark.parametrize("what", ["pipe", "device"])
@pytest.mark.parametrize("name", ["c/0/0/0", "zarr.json"])
def test_what_is_no_plain_file_is_not_opened(name: str, what: str, tmp_path: Path) -> None:
    whole, path = written(tmp_path / "whole.zarr"), tmp_path / "a.zarr"
    shutil.copytree(whole, path)
    (path / name).unlink()
    if what == "pipe":
        os.mkfifo(path / name)
    else:
        (path / name).symlink_to("/dev/zero")
    with pytest.raises(ImageReadError, match=r"is not a plain file|is not a picture that can be read by tiles"):
        open_source(path).load(0, 0)
