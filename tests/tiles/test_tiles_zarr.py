"""Zarr and OME-Zarr 2 and 3 of other axes and chunks than ours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import zarr
from pieces import THREADS, assert_same
from problems import random_image
from test_tiles_tiff import pixels_of

from edgeconv.errors import ImageReadError
from edgeconv.io.image import GREY_NOTE
from edgeconv.run.tiled.sinks.base import OutputShape
from edgeconv.run.tiled.sinks.zarr import ZarrSink
from edgeconv.run.tiled.sources import open_source
from edgeconv.run.tiled.sources.zarr import is_zarr

HEIGHT, WIDTH = 91, 133


def ome(path: Path, array: np.ndarray, axes: str, chunks: tuple[int, ...], version: int, levels: int = 1) -> None:
    """An OME-Zarr of `array`, of NGFF 0.4 or 0.5."""
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    for level in range(levels):
        part = array[..., :: 2**level] if level else array
        made = group.create_array(str(level), shape=part.shape, chunks=chunks, dtype=part.dtype)
        made[...] = part
    scales = [
        {"axes": [{"name": axis} for axis in axes], "datasets": [{"path": str(level)} for level in range(levels)]}
    ]
    group.attrs.update({"multiscales": scales} if version == 2 else {"ome": {"version": "0.5", "multiscales": scales}})


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32"])
@pytest.mark.parametrize("axes", ["cyx", "yxc", "tczyx", "zcyx"])
def test_axes_in_any_order_give_the_same_pixels(tmp_path: Path, version: int, dtype: str, axes: str) -> None:
    pixels = random_image(HEIGHT, WIDTH, dtype)
    stored = np.moveaxis(pixels, 2, 0) if axes != "yxc" else pixels
    chunks = {"c": 2, "y": 30, "x": 47, "t": 1, "z": 1}
    for axis in reversed(axes):
        if axis in "tz":
            stored = stored[np.newaxis] if axes.index(axis) == 0 else np.expand_dims(stored, 1)
    ome(tmp_path / "a.zarr", stored, axes, tuple(chunks[axis] for axis in axes), version)
    assert_same(pixels_of(tmp_path / "a.zarr")[0], pixels)


def test_grey_alpha_depth_and_resolutions_are_noted(tmp_path: Path) -> None:
    pixels = random_image(HEIGHT, WIDTH, "uint16")
    ome(tmp_path / "grey.zarr", np.stack([pixels[:, :, 0]] * 2), "zyx", (1, 64, 64), 3, levels=2)
    got, notes = pixels_of(tmp_path / "grey.zarr")
    assert_same(got, pixels[:, :, :1])
    said = (
        "first of several times or depths taken",
        "finest of 2 resolutions taken",
        "kept at 16 bits per sample",
    )
    assert notes == said
    got, notes = pixels_of(tmp_path / "grey.zarr", rgb=True)
    assert_same(got, np.repeat(pixels[:, :, :1], 3, axis=2))
    assert notes == (GREY_NOTE, *said)
    ome(tmp_path / "alpha.zarr", np.concatenate([pixels, pixels[:, :, :1]], axis=2), "yxc", (64, 64, 4), 2)
    got, notes = pixels_of(tmp_path / "alpha.zarr")
    assert_same(got, pixels)
    assert "alpha channel dropped" in notes


@pytest.mark.parametrize("version", [2, 3])
def test_a_plain_array_is_read_by_its_shape(tmp_path: Path, version: int) -> None:
    pixels = random_image(HEIGHT, WIDTH, "float64" if version == 2 else "uint8")
    for name, stored in (("hwc", pixels), ("chw", np.moveaxis(pixels, 2, 0)), ("hw", pixels[:, :, 0])):
        array = zarr.create_array(
            str(tmp_path / name),
            shape=stored.shape,
            chunks=(17,) * stored.ndim,
            dtype=stored.dtype,
            zarr_format=version,
        )
        array[...] = stored
    assert_same(pixels_of(tmp_path / "hwc")[0], pixels)
    assert_same(pixels_of(tmp_path / "chw")[0], pixels)
    assert_same(pixels_of(tmp_path / "hw")[0], pixels[:, :, :1])


def test_shards_are_read_by_their_chunks(tmp_path: Path) -> None:
    pixels = random_image(128, 128, "uint8")
    array = zarr.create_array(
        str(tmp_path / "a.zarr"), shape=pixels.shape, chunks=(32, 32, 3), shards=(64, 64, 3), dtype="uint8"
    )
    array[...] = pixels
    assert open_source(tmp_path / "a.zarr").layout.chunk_rows == 32
    assert_same(pixels_of(tmp_path / "a.zarr")[0], pixels)


def test_a_damaged_chunk_is_named_by_its_place(tmp_path: Path) -> None:
    pixels = random_image(64, 64, "uint8")
    ome(tmp_path / "a.zarr", np.moveaxis(pixels, 2, 0), "cyx", (3, 32, 32), 3)
    (tmp_path / "a.zarr" / "0" / "c" / "0" / "1" / "0").write_bytes(b"not a chunk")
    with pytest.raises(ImageReadError, match=r"rows 32 to 63, columns 0 to 31 cannot be decoded") as error:
        pixels_of(tmp_path / "a.zarr")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("change", ["no datasets", "a group", "a list"])
def test_metadata_that_make_no_sense_are_one_line(tmp_path: Path, change: str) -> None:
    ome(tmp_path / "in.zarr", np.zeros((3, 8, 9), np.uint8), "cyx", (3, 4, 4), 3)
    place = tmp_path / "in.zarr" / "zarr.json"
    said = json.loads(place.read_text())
    scale = said["attributes"]["ome"]["multiscales"][0]
    if change == "no datasets":
        scale["datasets"] = []
    else:
        scale["datasets"][0]["path"] = ""
    place.write_text("[]" if change == "a list" else json.dumps(said))
    with pytest.raises(ImageReadError, match=r"in\.zarr: Zarr: "):
        open_source(tmp_path / "in.zarr")


def test_what_is_no_picture_is_one_line(tmp_path: Path) -> None:
    zarr.create_array(str(tmp_path / "five"), shape=(5, 6, 9), chunks=(5, 6, 9), dtype="uint8")
    zarr.create_array(str(tmp_path / "words"), shape=(9, 9, 3), chunks=(9, 9, 3), dtype="int32")
    group = zarr.open_group(str(tmp_path / "two"), mode="w")
    for name in ("a", "b"):
        group.create_array(name, shape=(9, 9, 3), chunks=(9, 9, 3), dtype="uint8")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "zarr.json").write_text("{")
    for name, says in (
        ("five", "is not a picture"),
        ("words", "3 channels of int32"),
        ("two", "2 arrays and no 'multiscales'"),
        ("broken", "cannot be opened"),
    ):
        assert is_zarr(tmp_path / name)
        with pytest.raises(ImageReadError, match=says) as error:
            open_source(tmp_path / name)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32"])
@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_written_is_an_ome_zarr_that_reads_back(tmp_path: Path, dtype: str, channels: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    pixels = np.ascontiguousarray(random_image(HEIGHT, WIDTH, dtype)[:, :, :channels])
    sink = ZarrSink(tmp_path / "out.zarr", OutputShape(*pixels.shape, dtype=pixels.dtype), 32)
    with ThreadPoolExecutor(THREADS) as pool:
        for y in range(0, HEIGHT, 64):
            for x in range(0, WIDTH, 64):
                sink.write(y, x, pixels[y : y + 64, x : x + 64], pool, THREADS)
    sink.finish()
    assert not (tmp_path / "out.zarr").exists()
    sink.commit()
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
    group = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    assert [axis["name"] for axis in group.attrs["ome"]["multiscales"][0]["axes"]] == ["c", "y", "x"]
    assert_same(np.moveaxis(group["0"][...], 0, 2), pixels)
    assert_same(pixels_of(tmp_path / "out.zarr")[0][:, :, :channels], pixels)
