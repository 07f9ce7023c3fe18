"""Files that are read and written in pieces, as many kinds as people have: the pixels of the whole, or one line."""

from __future__ import annotations

import json
import os
import struct
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import tifffile
import zarr
import zarr.codecs
from picture_files import exif, noisy, png, saved, smooth_image
from pieces import assert_same, pixels_of
from PIL import Image, ImageCms
from problems import random_image

from edgeconv.errors import ImageReadError, UnavailableError
from edgeconv.io.contained_paths import file_identity
from edgeconv.io.files import is_zarr
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import GREY_NOTE, read_image
from edgeconv.run import sources
from edgeconv.run.rectangles import Rectangle
from edgeconv.run.sinks import CLASSIC_BYTES, OutputShape, Sink, TiffSink, ZarrSink
from edgeconv.run.sources import open_source

HEIGHT, WIDTH = 141, 203
BIG_ENDIAN = ">"


def with_alpha(dtype: str) -> np.ndarray:
    pixels = random_image(HEIGHT, WIDTH, dtype)
    return np.concatenate([pixels, pixels[:, :, :1]], axis=2)


def refused(path: Path, says: str, rules: ReadRules | None = None) -> str:
    """The one line that a file is refused with, when it is opened or read."""
    with pytest.raises(ImageReadError, match=says) as error:
        pixels_of(path, rules or ReadRules())
    assert "\n" not in str(error.value)
    return str(error.value)


# --- TIFF ----------------------------------------------------------------------------------------------------------

WRITTEN: dict[str, dict[str, Any]] = {
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
    "planes": {"tile": (32, 32), "planarconfig": "separate"},
    "planes in strips": {"rowsperstrip": 11, "planarconfig": "separate"},
    "planes in lzw strips": {"rowsperstrip": 11, "planarconfig": "separate", "compression": "lzw"},
}


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("how", WRITTEN)
def test_every_layout_and_compression_of_tiff_gives_the_same_pixels(tmp_path: Path, how: str, dtype: str) -> None:
    pixels = random_image(HEIGHT, WIDTH, dtype)
    path = tmp_path / "picture.tif"
    stored = np.moveaxis(pixels, 2, 0) if "planarconfig" in WRITTEN[how] else pixels
    tifffile.imwrite(path, stored, photometric="rgb", **WRITTEN[how])
    got, notes = pixels_of(path)
    assert_same(got, pixels)
    assert notes == (("kept at 16 bits per sample",) if dtype == "uint16" else ())


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_alpha_is_dropped_and_grey_is_spread_if_asked_for_both_with_a_note(tmp_path: Path, dtype: str) -> None:
    pixels = random_image(HEIGHT, WIDTH, dtype)
    tifffile.imwrite(
        tmp_path / "alpha.tif", with_alpha(dtype), photometric="rgb", extrasamples=["unassalpha"], tile=(64, 64)
    )
    tifffile.imwrite(tmp_path / "grey.tif", pixels[:, :, 0], photometric="minisblack", tile=(64, 64))
    tifffile.imwrite(tmp_path / "inverted.tif", pixels[:, :, 0], photometric="miniswhite", tile=(64, 64))
    got, notes = pixels_of(tmp_path / "alpha.tif")
    assert_same(got, pixels)
    assert "alpha channel dropped" in notes
    for rgb, channels in ((False, 1), (True, 3)):
        grey, notes = pixels_of(tmp_path / "grey.tif", ReadRules(rgb=rgb))
        assert_same(grey, np.repeat(pixels[:, :, :1], channels, axis=2))
        assert (GREY_NOTE in notes) == rgb
        assert_same(pixels_of(tmp_path / "inverted.tif", ReadRules(rgb=rgb))[0], np.iinfo(dtype).max - grey)


@pytest.mark.parametrize("compression", [None, "lzw"])
@pytest.mark.parametrize("channels", [2, 4])
def test_premultiplied_colours_stay_as_stored(tmp_path: Path, channels: int, compression: str | None) -> None:
    pixels = with_alpha("uint8")[:, :, -channels:]
    pixels[:, :, :-1] = np.minimum(pixels[:, :, :-1], pixels[:, :, -1:])
    kind = "rgb" if channels == 4 else "minisblack"
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric=kind, extrasamples=["assocalpha"], compression=compression)
    assert_same(read_image(tmp_path / "a.tif").pixels, pixels[:, :, : channels - 1])
    assert_same(pixels_of(tmp_path / "a.tif")[0], pixels[:, :, : channels - 1])


def write_palette(path: Path) -> None:
    path.write_bytes(saved(smooth_image(HEIGHT, WIDTH), "TIFF", mode="P"))


def write_jpeg(path: Path) -> None:
    pixels = smooth_image(HEIGHT, WIDTH)
    tifffile.imwrite(path, pixels, photometric="ycbcr", compression="jpeg", subsampling=(2, 2), tile=(64, 64))


def write_pages(path: Path) -> None:
    with tifffile.TiffWriter(path) as writer:
        for page in (random_image(HEIGHT, WIDTH, "uint8"), random_image(50, 60, "uint8", seed=2)):
            writer.write(page, photometric="rgb", tile=(64, 64))


def write_turned(orientation: int, **options: Any) -> Any:
    def write(path: Path) -> None:
        tags = [(274, 3, 1, orientation, True)]
        tifffile.imwrite(path, random_image(HEIGHT, WIDTH, "uint8"), photometric="rgb", extratags=tags, **options)

    return write


@pytest.mark.parametrize(
    "write",
    [
        write_palette,
        write_jpeg,
        write_pages,
        *(write_turned(orientation, tile=(32, 48)) for orientation in range(2, 9)),
        write_turned(6, rowsperstrip=9, compression="lzw"),
    ],
)
def test_pixels_and_notes_of_a_tiff_are_those_of_the_whole_picture(tmp_path: Path, write: Any) -> None:
    """A turned one is read by libvips."""
    write(tmp_path / "a.tif")
    got, notes = pixels_of(tmp_path / "a.tif")
    whole = read_image(tmp_path / "a.tif")
    assert_same(got, whole.pixels)
    assert set(notes) == set(whole.notes)


def test_a_turned_tiff_is_refused_without_libvips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_turned(6, tile=(32, 48))(tmp_path / "a.tif")
    monkeypatch.setattr(sources, "import_problem", lambda name: "it is not here" if name == "pyvips" else None)
    with pytest.raises(UnavailableError, match=r"turned TIFF by tiles: it is not here"):
        open_source(tmp_path / "a.tif")


@pytest.mark.parametrize("how", [{"tile": (64, 64), "compression": "adobe_deflate"}, {"rowsperstrip": 128}])
def test_pieces_that_the_file_leaves_out_are_zero_and_said_to_be(tmp_path: Path, how: dict[str, Any]) -> None:
    path, pixels = tmp_path / "sparse.tif", random_image(128, 128, "uint8")
    tifffile.imwrite(path, pixels, photometric="rgb", **how)
    name = "Tile" if "tile" in how else "Strip"
    with tifffile.TiffFile(path, mode="r+") as file:
        for tag in (f"{name}Offsets", f"{name}ByteCounts"):
            values = list(file.pages.first.tags[tag].value)
            file.pages.first.tags[tag].overwrite([0, *values[1:]])
    got, notes = pixels_of(path)
    pixels[:64, :64] = 0
    assert_same(got, pixels if "tile" in how else np.zeros_like(pixels))
    assert "1 strips or tiles that the file leaves out taken as zero" in notes


# --- damage, and what is too large ----------------------------------------------------------------------------------


def test_a_directory_that_is_cut_short_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.tif"
    tifffile.imwrite(path, random_image(HEIGHT, WIDTH, "uint8"), photometric="rgb", tile=(16, 16))
    data = path.read_bytes()
    for length in (4, 8, 12, 60, 200, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        refused(path, r"cut\.tif")


def test_a_palette_of_another_length_is_damage(tmp_path: Path) -> None:
    path, colours = tmp_path / "p.tif", np.zeros((3, 256), np.uint16)
    tifffile.imwrite(path, np.zeros((8, 9), np.uint8), photometric="palette", colormap=colours, metadata=None)
    data, count = path.read_bytes(), struct.pack("<HHI", 320, 3, 768)
    assert data.count(count) == 1
    path.write_bytes(data.replace(count, struct.pack("<HHI", 320, 3, 76)))
    refused(path, "its palette is damaged, or not of 8 bits")


@pytest.mark.parametrize("compression", ["adobe_deflate", "lzw", "zstd", "jpeg"])
def test_a_damaged_tile_is_named_by_its_place(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "damaged.tif"
    tifffile.imwrite(path, smooth_image(128, 192), photometric="rgb", tile=(64, 64), compression=compression)
    with tifffile.TiffFile(path) as file:
        offset, count = file.pages.first.dataoffsets[4], file.pages.first.databytecounts[4]
    data = bytearray(path.read_bytes())
    data[offset : offset + count] = bytes(count)
    path.write_bytes(bytes(data))
    refused(path, r"rows 64 to 127, columns 64 to 127 cannot be decoded")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"photometric": "minisblack", "dtype": np.uint32}, "samples of 32 bits"),
        ({"photometric": "minisblack", "dtype": np.int16}, "samples of 16 bits"),
        ({"photometric": "minisblack", "dtype": np.float16}, "samples of 16 bits"),
        ({"photometric": "separated", "dtype": np.uint8, "channels": 4}, "photometric 5"),
    ],
)
def test_what_is_not_supported_is_refused_with_a_way_out(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    shape = (64, 64, options["channels"]) if "channels" in options else (64, 64)
    tifffile.imwrite(tmp_path / "odd.tif", np.zeros(shape, options["dtype"]), photometric=options["photometric"])
    assert "convert it to" in refused(tmp_path / "odd.tif", says)


def test_tags_that_name_the_same_bytes_many_times_are_counted_first(tmp_path: Path) -> None:
    """tifffile would read each of them: gigabytes, of a file of one megabyte."""
    size = 2**20
    tags = [struct.pack("<HHII", 60_000 + number, 2, size, 8) for number in range(2000)]
    place = 8 + size
    data = struct.pack("<2sHI", b"II", 42, place) + bytes(size) + struct.pack("<H", len(tags)) + b"".join(tags)
    (tmp_path / "bomb.tif").write_bytes(data + bytes(4))
    refused(tmp_path / "bomb.tif", "its tags hold 2,097,152,000 bytes")


@pytest.mark.parametrize(
    ("name", "what", "pixels"),
    [("tiles.tif", "a tile", 64 * 64), ("strip.tif", "a strip", 80 * 90), ("a.zarr", "a chunk", 50 * 60)],
)
def test_what_is_decoded_at_once_is_bound_by_the_limit_of_pixels(
    tmp_path: Path, name: str, what: str, pixels: int
) -> None:
    """Of a picture that is decoded as a whole, it is the picture; rows that need no decoding are read at any height."""
    picture = random_image(80, 90, "uint8")
    tifffile.imwrite(tmp_path / "tiles.tif", picture, photometric="rgb", tile=(64, 64), compression="lzw")
    tifffile.imwrite(tmp_path / "strip.tif", picture, photometric="rgb", rowsperstrip=80, compression="lzw")
    tifffile.imwrite(tmp_path / "plain.tif", picture, photometric="rgb", rowsperstrip=80)
    write_zarr(tmp_path / "a.zarr", picture, chunks=(50, 60, 3))
    (tmp_path / "a.png").write_bytes(png(picture))
    rules = ReadRules(max_pixels=pixels - 1)
    assert "raise --max-pixels" in refused(tmp_path / name, f"{what} of {pixels:,} pixels", rules)
    assert_same(pixels_of(tmp_path / name, ReadRules(max_pixels=pixels))[0], picture)
    refused(tmp_path / "a.png", "90×80 pixels, above the limit of 7,199", ReadRules(max_pixels=7199))
    assert_same(pixels_of(tmp_path / "plain.tif", ReadRules(max_pixels=1))[0], picture)


# --- Zarr -----------------------------------------------------------------------------------------------------------


def write_zarr(path: Path, pixels: np.ndarray, **options: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of codecs that are no part of Zarr 3
        zarr.create_array(store=str(path), shape=pixels.shape, dtype=pixels.dtype, **options)[...] = pixels
    return path


def write_ome(path: Path, array: np.ndarray, axes: str, chunks: tuple[int, ...], version: int, levels: int = 1) -> None:
    """An OME-Zarr of NGFF 0.4 or 0.5."""
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
    for axis in reversed(axes):
        if axis in "tz":
            stored = np.expand_dims(stored, 0 if axes.index(axis) == 0 else 1)
    chunks = {"c": 2, "y": 30, "x": 47, "t": 1, "z": 1}
    write_ome(tmp_path / "a.zarr", stored, axes, tuple(chunks[axis] for axis in axes), version)
    assert_same(pixels_of(tmp_path / "a.zarr")[0], pixels)


def test_grey_alpha_depth_and_resolutions_are_noted(tmp_path: Path) -> None:
    pixels = random_image(HEIGHT, WIDTH, "uint16")
    write_ome(tmp_path / "grey.zarr", np.stack([pixels[:, :, 0]] * 2), "zyx", (1, 64, 64), 3, levels=2)
    said = ("first of several times or depths taken", "finest of 2 resolutions taken", "kept at 16 bits per sample")
    for rgb, channels in ((False, 1), (True, 3)):
        got, notes = pixels_of(tmp_path / "grey.zarr", ReadRules(rgb=rgb))
        assert_same(got, np.repeat(pixels[:, :, :1], channels, axis=2))
        assert notes == ((GREY_NOTE, *said) if rgb else said)
    write_ome(tmp_path / "alpha.zarr", with_alpha("uint16"), "yxc", (64, 64, 4), 2)
    got, notes = pixels_of(tmp_path / "alpha.zarr")
    assert_same(got, pixels)
    assert "alpha channel dropped" in notes


def ways() -> list[dict[str, Any]]:
    """Every compression of both versions, filters, checksums, axes that change places, shards."""
    found: list[dict[str, Any]] = [{"zarr_format": 2, "compressors": None}, {"compressors": None}]
    names = ("Blosc", "Zstd", "GZip", "Zlib", "BZ2", "LZMA", "LZ4")
    found += [{"zarr_format": 2, "compressors": getattr(numcodecs, name)()} for name in names]
    filters = [numcodecs.Delta("u1"), numcodecs.Shuffle(1)]
    found.append({"zarr_format": 2, "compressors": numcodecs.Blosc(), "filters": filters})
    checked = [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]
    found.append({"compressors": checked, "filters": zarr.codecs.TransposeCodec(order=(2, 0, 1))})
    for codec in (zarr.codecs.BloscCodec(), zarr.codecs.ZstdCodec(), zarr.codecs.GzipCodec()):
        found += [{"compressors": codec, "shards": shards} for shards in (None, (64, 96, 3))]
    return found


def test_what_zarr_writes_is_read_by_its_shape_and_chunks(tmp_path: Path) -> None:
    pixels = random_image(HEIGHT, WIDTH, "uint8")
    for number, options in enumerate(ways()):
        path = write_zarr(tmp_path / f"{number}.zarr", pixels, chunks=(32, 48, 3), **options)
        assert_same(pixels_of(path)[0], pixels)
        assert open_source(path).chunk == (32, 48)
    for name, stored in (("chw", np.moveaxis(pixels, 2, 0)), ("hw", pixels[:, :, 0])):
        write_zarr(tmp_path / name, stored, chunks=(17,) * stored.ndim)
        assert_same(pixels_of(tmp_path / name)[0], pixels if name == "chw" else pixels[:, :, :1])


@pytest.mark.parametrize("data", [b"\x01", b"not a chunk", b"\xff" * 200])
@pytest.mark.parametrize("codec", [zarr.codecs.BloscCodec(), zarr.codecs.ZstdCodec(), zarr.codecs.GzipCodec()])
def test_a_damaged_chunk_is_named_by_its_place(tmp_path: Path, codec: Any, data: bytes) -> None:
    path = write_zarr(tmp_path / "a.zarr", random_image(64, 64, "uint8"), chunks=(32, 32, 3), compressors=codec)
    (path / "c" / "1" / "0" / "0").write_bytes(data)
    refused(path, r"rows 32 to 63, columns 0 to 31 cannot be decoded")


@pytest.mark.parametrize("change", ["no datasets", "a group", "a list", "no JSON"])
def test_metadata_that_make_no_sense_are_one_line(tmp_path: Path, change: str) -> None:
    write_ome(tmp_path / "in.zarr", np.zeros((3, 8, 9), np.uint8), "cyx", (3, 4, 4), 3)
    place = tmp_path / "in.zarr" / "zarr.json"
    said = json.loads(place.read_text())
    scale = said["attributes"]["ome"]["multiscales"][0]
    scale["datasets"] = [] if change == "no datasets" else [{"path": ""}]
    place.write_text({"a list": "[]", "no JSON": "{"}.get(change) or json.dumps(said))
    refused(tmp_path / "in.zarr", r"in\.zarr: Zarr: ")


def test_what_is_no_picture_is_one_line(tmp_path: Path) -> None:
    write_zarr(tmp_path / "five", np.zeros((5, 6, 9), np.uint8))
    write_zarr(tmp_path / "words", np.zeros((9, 9, 3), np.int32))
    group = zarr.open_group(str(tmp_path / "two"), mode="w")
    for name in ("a", "b"):
        group.create_array(name, shape=(9, 9, 3), dtype="uint8")
    for name, says in (
        ("five", "is not a picture"),
        ("words", "3 channels of int32"),
        ("two", "a group without 'multiscales'"),
    ):
        assert is_zarr(tmp_path / name)
        refused(tmp_path / name, says)


@pytest.mark.parametrize("what", ["pipe", "device"])
@pytest.mark.parametrize("name", ["c/0/0/0", "extra"])
def test_a_file_that_has_no_end_is_not_read(name: str, what: str, tmp_path: Path) -> None:
    path = write_zarr(tmp_path / "a.zarr", random_image(9, 8, "uint8"))
    (path / name).unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path / name)
    else:
        (path / name).symlink_to("/dev/zero")
    refused(path, "is a plain file")
    with pytest.raises(OSError, match="is not a plain file"):
        file_identity(path)
    (path / name).unlink()
    (path / name).symlink_to(path / "zarr.json")
    assert file_identity(path)["file_bytes"] > 0


# --- libvips --------------------------------------------------------------------------------------------------------

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
MOVED = Image.fromarray(noisy(HEIGHT, WIDTH)[::-1])
FILES = {
    "rgb.png": png(random_image(HEIGHT, WIDTH, "uint8")),
    "deep.png": png(random_image(HEIGHT, WIDTH, "uint16")),
    "grey.png": png(random_image(HEIGHT, WIDTH, "uint8")[:, :, :1].copy()),
    "deep grey.png": png(random_image(HEIGHT, WIDTH, "uint16")[:, :, :1].copy()),
    "alpha.png": png(with_alpha("uint8")),
    "deep alpha.png": png(with_alpha("uint16")),
    "palette.png": saved(noisy(HEIGHT, WIDTH), "PNG", mode="P"),
    "one bit.png": saved(noisy(HEIGHT, WIDTH), "PNG", mode="1"),
    "full.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", subsampling=0),
    "half.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", subsampling=2),
    "progressive.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", progressive=True),
    "grey.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", mode="L"),
    "lossy.webp": saved(noisy(HEIGHT, WIDTH), "WEBP"),
    "exact.webp": saved(noisy(HEIGHT, WIDTH), "WEBP", lossless=True),
    "profile.png": saved(noisy(HEIGHT, WIDTH), "PNG", icc_profile=PROFILE),
    "profile.webp": saved(noisy(HEIGHT, WIDTH), "WEBP", lossless=True, icc_profile=PROFILE),
    "moving.webp": saved(noisy(HEIGHT, WIDTH), "WEBP", lossless=True, save_all=True, append_images=[MOVED]),
    **{f"turned{turn}.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", exif=exif(turn)) for turn in range(2, 9)},
}


@pytest.mark.parametrize("rgb", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_pixels_and_notes_are_those_of_the_whole_picture(tmp_path: Path, name: str, rgb: bool) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    got, notes = pixels_of(tmp_path / name, ReadRules(rgb=rgb))
    whole = read_image(tmp_path / name, ReadRules(rgb=rgb))
    assert_same(got, whole.pixels)
    assert set(notes) == set(whole.notes)


@pytest.mark.parametrize("name", ["rgb.png", "half.jpg", "exact.webp"])
def test_a_file_that_is_cut_short_is_one_line(tmp_path: Path, name: str) -> None:
    says = "it cannot be opened|it cannot be decoded|the file is cut short"
    (tmp_path / name).write_bytes(FILES[name][: len(FILES[name]) * 2 // 3])
    refused(tmp_path / name, f"{name}: (PNG|JPEG|WebP): ({says})")


def test_a_png_that_lacks_its_last_bytes_alone_is_refused_too(tmp_path: Path) -> None:
    for lost in (1, 5, 12):
        (tmp_path / "a.png").write_bytes(FILES["rgb.png"][:-lost])
        refused(tmp_path / "a.png", "the file is cut short")
    (tmp_path / "a.png").write_bytes(FILES["rgb.png"] + b"something behind it")
    open_source(tmp_path / "a.png").close()
    (tmp_path / "print.jpg").write_bytes(saved(noisy(), "JPEG", mode="CMYK"))
    refused(tmp_path / "print.jpg", r"4 bands of uchar, cmyk.*convert it to RGB")


# --- writing --------------------------------------------------------------------------------------------------------


def write(sink: Sink, pixels: np.ndarray, tile: int) -> None:
    places = [(y, x) for y in range(0, pixels.shape[0], tile) for x in range(0, pixels.shape[1], tile)]
    with ThreadPoolExecutor(2) as pool:
        for y, x in reversed(places):
            part = pixels[y : y + tile, x : x + tile]
            sink.write(Rectangle(range(y, y + part.shape[0]), range(x, x + part.shape[1])), part, pool, 2)
    sink.finish()
    sink.close()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32"])
@pytest.mark.parametrize(("channels", "pictures"), [(1, 1), (3, 1), (4, 4), (12, 4)])
def test_what_is_written_is_read_by_others(tmp_path: Path, dtype: str, channels: int, pictures: int) -> None:
    """A bank gives a page for each picture, or all channels of a Zarr."""
    pixels = np.concatenate([random_image(HEIGHT, WIDTH, dtype, seed) for seed in range(4)], axis=2)[:, :, :channels]
    shape = OutputShape(*pixels.shape, dtype=pixels.dtype, pictures=pictures)
    write(ZarrSink(tmp_path / "out.zarr", shape, 32), pixels, 64)
    group = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    assert [axis["name"] for axis in group.attrs["ome"]["multiscales"][0]["axes"]] == ["c", "y", "x"]
    assert_same(np.moveaxis(group["0"][...], 0, 2), pixels)
    if dtype != "float16":
        write(TiffSink(tmp_path / "out.tif", shape, 32), pixels, 64)
        with tifffile.TiffFile(tmp_path / "out.tif") as file:
            assert len(file.pages) == pictures
            for number, page in enumerate(file.pages):
                assert_same(page.asarray().reshape(HEIGHT, WIDTH, -1), pixels[:, :, number::pictures])
    if pictures == 1:
        assert_same(pixels_of(tmp_path / "out.zarr")[0], pixels)


@pytest.mark.parametrize(("height", "big"), [(1024, False), (CLASSIC_BYTES // (3 * 4096) + 1, True)])
def test_offsets_of_64_bits_are_taken_where_32_might_not_do(tmp_path: Path, height: int, big: bool) -> None:
    TiffSink(tmp_path / "out.tif", OutputShape(height, 4096, 3, np.dtype(np.uint8)), 512).close()
    with tifffile.TiffFile(tmp_path / "out.tif") as file:
        assert file.is_bigtiff is big
