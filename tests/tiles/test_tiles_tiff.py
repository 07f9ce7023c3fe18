"""TIFFs by tile and strip, as many kinds as people have; each gives the pixels of the door for whole pictures."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tifffile
from picture_files import saved, smooth_image
from pieces import THREADS, assert_same
from problems import random_image

from edgeconv.errors import ImageReadError
from edgeconv.io.image import GREY_NOTE, read_image
from edgeconv.run.tiled.grid import plain_grid
from edgeconv.run.tiled.reader import Reader
from edgeconv.run.tiled.sinks.base import OutputShape
from edgeconv.run.tiled.sinks.tiff import CLASSIC_BYTES, TiffSink
from edgeconv.run.tiled.sources import open_source

HEIGHT, WIDTH = 141, 203
BIG_ENDIAN = ">"


def pixels_of(path: Path, rgb: bool = False) -> tuple[np.ndarray, tuple[str, ...]]:
    """The whole picture through the chunks, and its notes."""
    source = open_source(path, rgb)
    layout = source.layout
    grid = plain_grid((0, layout.height // 2, layout.height), (0, layout.width))
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            reader = Reader(source, grid, 0, pool, THREADS)
            return np.concatenate([reader.read(tile) for tile in grid]), layout.notes
    finally:
        source.close()


WRITTEN = {
    "tiles": {"tile": (32, 48)},
    "odd tiles": {"tile": (16, 208)},
    "one tile larger than the picture": {"tile": (256, 256)},
    "strips": {"rowsperstrip": 7},
    "one strip": {"rowsperstrip": HEIGHT},
    "deflate": {"tile": (64, 64), "compression": "adobe_deflate"},
    "deflate strips": {"rowsperstrip": 16, "compression": "adobe_deflate"},
    "deflate with predictor": {"tile": (64, 64), "compression": "adobe_deflate", "predictor": True},
    "lzw": {"tile": (64, 64), "compression": "lzw", "predictor": True},
    "lzw strips": {"rowsperstrip": 5, "compression": "lzw"},
    "zstd": {"tile": (64, 64), "compression": "zstd"},
    "packbits": {"rowsperstrip": 9, "compression": "packbits"},
    "big tiff": {"tile": (64, 64), "bigtiff": True},
    "big-endian": {"tile": (64, 64), "byteorder": BIG_ENDIAN},
    "big-endian strips": {"rowsperstrip": 10, "byteorder": BIG_ENDIAN},
}


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("how", WRITTEN)
def test_every_layout_and_compression_gives_the_same_pixels(tmp_path: Path, how: str, dtype: str) -> None:
    pixels = random_image(HEIGHT, WIDTH, dtype)
    path = tmp_path / "picture.tif"
    tifffile.imwrite(path, pixels, photometric="rgb", **WRITTEN[how])
    got, notes = pixels_of(path)
    assert_same(got, pixels)
    assert notes == (("kept at 16 bits per sample",) if dtype == "uint16" else ())


@pytest.mark.parametrize("tile", [{"tile": (32, 32)}, {"rowsperstrip": 11}])
@pytest.mark.parametrize("compression", [None, "lzw"])
def test_separate_planes_are_put_together(tmp_path: Path, tile: dict, compression: str | None) -> None:
    pixels = random_image(HEIGHT, WIDTH, "uint16")
    path = tmp_path / "planes.tif"
    planes = np.moveaxis(pixels, 2, 0)
    tifffile.imwrite(path, planes, photometric="rgb", planarconfig="separate", compression=compression, **tile)
    assert_same(pixels_of(path)[0], pixels)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_alpha_is_dropped_and_grey_is_spread_if_asked_for_both_with_a_note(tmp_path: Path, dtype: str) -> None:
    pixels = random_image(HEIGHT, WIDTH, dtype)
    with_alpha = np.concatenate([pixels, pixels[:, :, :1]], axis=2)
    tifffile.imwrite(tmp_path / "alpha.tif", with_alpha, photometric="rgb", extrasamples=["unassalpha"], tile=(64, 64))
    tifffile.imwrite(tmp_path / "grey.tif", pixels[:, :, 0], photometric="minisblack", tile=(64, 64))
    tifffile.imwrite(tmp_path / "inverted.tif", pixels[:, :, 0], photometric="miniswhite", tile=(64, 64))
    got, notes = pixels_of(tmp_path / "alpha.tif")
    assert_same(got, pixels)
    assert "alpha channel dropped" in notes
    for rgb, channels in ((False, 1), (True, 3)):
        grey, notes = pixels_of(tmp_path / "grey.tif", rgb)
        assert_same(grey, np.repeat(pixels[:, :, :1], channels, axis=2))
        assert (GREY_NOTE in notes) == rgb
        assert_same(pixels_of(tmp_path / "inverted.tif", rgb)[0], np.iinfo(dtype).max - grey)


@pytest.mark.parametrize("compression", [None, "lzw", "packbits", "deflate"])
@pytest.mark.parametrize("channels", [2, 4])
def test_premultiplied_colours_stay_as_stored(tmp_path: Path, channels: int, compression: str | None) -> None:
    pixels = random_image(17, 23, "uint8")
    pixels = np.concatenate([pixels, pixels[:, :, :1] // 2 + 9], axis=2)[:, :, -channels:]
    pixels[:, :, :-1] = np.minimum(pixels[:, :, :-1], pixels[:, :, -1:])
    path = tmp_path / "a.tif"
    kind = "rgb" if channels == 4 else "minisblack"
    tifffile.imwrite(path, pixels, photometric=kind, extrasamples=["assocalpha"], compression=compression)
    colours = pixels[:, :, : channels - 1]
    assert_same(read_image(path).pixels, colours)
    assert_same(pixels_of(path)[0], colours)


def test_a_palette_gives_its_colours(tmp_path: Path) -> None:
    path = tmp_path / "palette.tif"
    path.write_bytes(saved(smooth_image(HEIGHT, WIDTH), "TIFF", mode="P"))
    assert_same(pixels_of(path)[0], read_image(path).pixels)


def test_a_palette_of_another_length_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "p.tif"
    tifffile.imwrite(
        path, np.zeros((8, 9), np.uint8), photometric="palette", colormap=np.zeros((3, 256), np.uint16), metadata=None
    )
    data = path.read_bytes()
    count = struct.pack("<HHI", 320, 3, 768)
    assert data.count(count) == 1
    path.write_bytes(data.replace(count, struct.pack("<HHI", 320, 3, 76)))
    with pytest.raises(ImageReadError, match="its palette is damaged"):
        open_source(path)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("tile", [{"tile": (32, 48)}, {"rowsperstrip": 9}])
def test_a_turned_picture_is_turned_upright(tmp_path: Path, orientation: int, tile: dict) -> None:
    path = tmp_path / "turned.tif"
    pixels = random_image(HEIGHT, WIDTH, "uint8")
    tifffile.imwrite(path, pixels, photometric="rgb", extratags=[(274, 3, 1, orientation, True)], **tile)
    got, notes = pixels_of(path)
    whole = read_image(path)
    assert_same(got, whole.pixels)
    assert notes == whole.notes


@pytest.mark.parametrize("subsampling", [(1, 1), (2, 2)])
def test_jpeg_in_ycbcr_gives_what_the_whole_picture_gives(tmp_path: Path, subsampling: tuple[int, int]) -> None:
    path = tmp_path / "jpeg.tif"
    tifffile.imwrite(
        path,
        smooth_image(HEIGHT, WIDTH),
        photometric="ycbcr",
        compression="jpeg",
        subsampling=subsampling,
        tile=(64, 64),
    )
    assert_same(pixels_of(path)[0], read_image(path).pixels)


def test_of_several_pages_the_first_is_taken(tmp_path: Path) -> None:
    first, second = random_image(HEIGHT, WIDTH, "uint8"), random_image(50, 60, "uint8", seed=2)
    with tifffile.TiffWriter(tmp_path / "pages.tif") as writer:
        for page in (first, second):
            writer.write(page, photometric="rgb", tile=(64, 64))
    got, notes = pixels_of(tmp_path / "pages.tif")
    assert_same(got, first)
    assert "first of several frames or pages taken" in notes


def test_pieces_that_the_file_leaves_out_are_zero_and_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "sparse.tif"
    pixels = random_image(128, 128, "uint8")
    tifffile.imwrite(path, pixels, photometric="rgb", tile=(64, 64), compression="adobe_deflate")
    with tifffile.TiffFile(path, mode="r+") as file:
        for tag in ("TileOffsets", "TileByteCounts"):
            values = list(file.pages.first.tags[tag].value)
            file.pages.first.tags[tag].overwrite([0, *values[1:]])
    got, notes = pixels_of(path)
    pixels[:64, :64] = 0
    assert_same(got, pixels)
    assert "1 strips or tiles that the file leaves out taken as zero" in notes


# --- damage --------------------------------------------------------------------------------------------------------


def test_a_directory_that_is_cut_short_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.tif"
    tifffile.imwrite(path, random_image(HEIGHT, WIDTH, "uint8"), photometric="rgb", tile=(16, 16))
    data = path.read_bytes()
    for length in (8, 12, 60, 200, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(ImageReadError, match=r"cut\.tif") as error:
            open_source(path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("compression", ["adobe_deflate", "lzw", "zstd", "jpeg"])
def test_a_damaged_tile_is_named_by_its_place(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "damaged.tif"
    tifffile.imwrite(path, smooth_image(128, 192), photometric="rgb", tile=(64, 64), compression=compression)
    with tifffile.TiffFile(path) as file:
        offset, count = file.pages.first.dataoffsets[4], file.pages.first.databytecounts[4]
    data = bytearray(path.read_bytes())
    data[offset : offset + count] = bytes(count)
    path.write_bytes(bytes(data))
    with pytest.raises(ImageReadError, match=r"rows 64 to 127, columns 64 to 127 cannot be decoded") as error:
        pixels_of(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"photometric": "minisblack", "dtype": np.uint32}, "samples of 32 bits"),
        ({"photometric": "minisblack", "dtype": np.int16}, "samples of 16 bits"),
        ({"photometric": "minisblack", "dtype": np.float16}, "samples of 16 bits"),
        ({"photometric": "separated", "dtype": np.uint8, "channels": 4}, "photometric 5"),
    ],
)
def test_what_is_not_supported_is_refused_with_a_way_out(tmp_path: Path, options: dict, says: str) -> None:
    shape = (64, 64, options["channels"]) if "channels" in options else (64, 64)
    tifffile.imwrite(tmp_path / "odd.tif", np.zeros(shape, options["dtype"]), photometric=options["photometric"])
    with pytest.raises(ImageReadError, match=says) as error:
        open_source(tmp_path / "odd.tif")
    assert "convert it to" in str(error.value)


# --- writing -------------------------------------------------------------------------------------------------------


def written(path: Path, pixels: np.ndarray, piece: int, tile: int, backwards: bool = False) -> None:
    sink = TiffSink(path, OutputShape(*pixels.shape, dtype=pixels.dtype), piece)
    places = [(y, x) for y in range(0, pixels.shape[0], tile) for x in range(0, pixels.shape[1], tile)]
    with ThreadPoolExecutor(THREADS) as pool:
        for y, x in reversed(places) if backwards else places:
            sink.write(y, x, pixels[y : y + tile, x : x + tile], pool, THREADS)
    sink.finish()
    sink.commit()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_written_is_read_by_others(tmp_path: Path, dtype: str, channels: int) -> None:
    pixels = np.ascontiguousarray(random_image(HEIGHT, WIDTH, dtype)[:, :, :channels])
    path = tmp_path / "out.tif"
    written(path, pixels, 32, 64, backwards=True)
    assert_same(tifffile.imread(path).reshape(pixels.shape), pixels)
    assert_same(read_image(path).pixels[:, :, :channels], pixels)


@pytest.mark.parametrize(("height", "big"), [(1024, False), (CLASSIC_BYTES // (3 * 4096) + 1, True)])
def test_offsets_of_64_bits_are_taken_where_32_might_not_do(tmp_path: Path, height: int, big: bool) -> None:
    sink = TiffSink(tmp_path / "out.tif", OutputShape(height, 4096, 3, np.dtype(np.uint8)), 512)
    try:
        with tifffile.TiffFile(sink.path) as file:
            assert file.is_bigtiff is big
    finally:
        sink.discard()
    assert not list(tmp_path.iterdir())
