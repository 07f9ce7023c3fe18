"""Files that are read and written in pieces, as many kinds as people have: the pixels of the whole, or one line."""

from __future__ import annotations

import io
import os
import struct
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
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
from edgeconv.run.sources.base import COPIES_WHILE_LOADING

HEIGHT, WIDTH = 141, 203
BIG_ENDIAN = ">"


def with_alpha(dtype: str) -> np.ndarray:
    pixels = random_image(HEIGHT, WIDTH, dtype)
    return np.concatenate([pixels, pixels[:, :, :1]], axis=2)


def written(pixels: np.ndarray, **options: Any) -> bytes:
    """A TIFF by tifffile."""
    stream = io.BytesIO()
    tifffile.imwrite(stream, pixels, **{"photometric": "rgb", "tile": (64, 64)} | options)
    return stream.getvalue()


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
def test_where_white_is_zero_samples_are_turned(tmp_path: Path, dtype: str) -> None:
    grey = random_image(HEIGHT, WIDTH, dtype)[:, :, :1]
    tifffile.imwrite(tmp_path / "a.tif", np.iinfo(dtype).max - grey[:, :, 0], photometric="miniswhite", tile=(64, 64))
    for rgb, channels in ((False, 1), (True, 3)):
        assert_same(pixels_of(tmp_path / "a.tif", ReadRules(rgb=rgb))[0], np.repeat(grey, channels, axis=2))


@pytest.mark.parametrize(("stored", "rgb", "most"), [(1, False, 1), (1, True, 3), (3, False, 3), (4, False, 4)])
def test_a_chunk_takes_what_the_larger_of_file_and_picture_has_of_it(
    tmp_path: Path, stored: int, rgb: bool, most: int
) -> None:
    """Grey that is spread takes more as a picture, a fourth channel that is dropped more in the file."""
    pixels = np.zeros((64, 64, stored), np.uint16).squeeze()
    tifffile.imwrite(tmp_path / "a.tif", pixels, tile=(32, 16), photometric="minisblack" if stored == 1 else "rgb")
    with closing(open_source(tmp_path / "a.tif", ReadRules(rgb=rgb))) as source:
        assert source.loading_bytes == COPIES_WHILE_LOADING * 32 * 16 * most * 2


def test_a_turned_tiff_is_refused_without_libvips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tif").write_bytes(FILES["turned6.tif"])
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


# --- files of every kind --------------------------------------------------------------------------------------------

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
RGB = random_image(HEIGHT, WIDTH, "uint8")
PREMULTIPLIED = np.minimum(with_alpha("uint8"), with_alpha("uint8")[:, :, -1:])
MOVED = Image.fromarray(noisy(HEIGHT, WIDTH)[::-1])
FILES = {
    "rgb.png": png(RGB),
    "deep.png": png(random_image(HEIGHT, WIDTH, "uint16")),
    "grey.png": png(RGB[:, :, :1].copy()),
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
    **{f"turned{turn}.tif": written(RGB, extratags=[(274, 3, 1, turn, True)]) for turn in range(2, 9)},
    "turned strips.tif": written(RGB, extratags=[(274, 3, 1, 6, True)], tile=None, rowsperstrip=9, compression="lzw"),
    "grey.tif": written(RGB[:, :, 0], photometric="minisblack"),
    "deep grey.tif": written(random_image(HEIGHT, WIDTH, "uint16")[:, :, 0], photometric="minisblack"),
    "alpha.tif": written(with_alpha("uint8"), extrasamples=["unassalpha"]),
    "deep alpha.tif": written(with_alpha("uint16"), extrasamples=["unassalpha"]),
    "premultiplied.tif": written(PREMULTIPLIED, extrasamples=["assocalpha"]),
    "premultiplied lzw.tif": written(PREMULTIPLIED, extrasamples=["assocalpha"], compression="lzw"),
    "premultiplied grey.tif": written(PREMULTIPLIED[:, :, 2:], photometric="minisblack", extrasamples=["assocalpha"]),
    "palette.tif": saved(smooth_image(HEIGHT, WIDTH), "TIFF", mode="P"),
    "jpeg.tif": written(smooth_image(HEIGHT, WIDTH), photometric="ycbcr", compression="jpeg", subsampling=(2, 2)),
    "pages.tif": written(np.stack([RGB, RGB[::-1]])),
}
"""Those that no reader of ours takes by pieces go through libvips."""


@pytest.mark.parametrize("rgb", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_pixels_and_notes_are_those_of_the_whole_picture(tmp_path: Path, name: str, rgb: bool) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    got, notes = pixels_of(tmp_path / name, ReadRules(rgb=rgb))
    whole = read_image(tmp_path / name, ReadRules(rgb=rgb))
    assert_same(got, whole.pixels)
    assert set(notes) == set(whole.notes)


COLOURS = np.zeros((3, 256), np.uint16)
PALETTE = written(np.zeros((16, 16), np.uint8), photometric="palette", colormap=COLOURS, metadata=None, tile=None)
TAGS = [struct.pack("<HHII", 60_000 + number, 2, 2**20, 8) for number in range(2000)]
"""They name the same bytes many times. tifffile would read each of them: gigabytes, of a file of one megabyte."""
CUT = "it cannot be opened|it cannot be decoded|the file is cut short"
REFUSED: dict[str, tuple[bytes, str]] = {
    **{
        f"cut {name}": (FILES[name][: len(FILES[name]) * 2 // 3], CUT) for name in ("rgb.png", "half.jpg", "exact.webp")
    },
    **{f"{lost} less.png": (FILES["rgb.png"][:-lost], "the file is cut short") for lost in (1, 5, 12)},
    "print.jpg": (saved(noisy(), "JPEG", mode="CMYK"), r"4 bands of uchar, cmyk.*convert it to RGB"),
    "palette.tif": (
        PALETTE.replace(struct.pack("<HHI", 320, 3, 768), struct.pack("<HHI", 320, 3, 76)),
        "its palette is damaged, or not of 8 bits",
    ),
    "tags.tif": (
        struct.pack("<2sHI", b"II", 42, 8 + 2**20) + bytes(2**20) + struct.pack("<H", 2000) + b"".join(TAGS) + bytes(4),
        "its tags hold 2,097,152,000 bytes",
    ),
    **{
        f"{dtype}.tif": (
            written(np.zeros((64, 64), dtype), photometric="minisblack"),
            f"samples of {np.dtype(dtype).itemsize * 8} bits.*convert it to",
        )
        for dtype in ("uint32", "int16", "float16")
    },
    "separated.tif": (
        written(np.zeros((64, 64, 4), np.uint8), photometric="separated"),
        "photometric 5.*convert it to",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_damaged_or_not_supported_is_one_line(tmp_path: Path, name: str) -> None:
    data, says = REFUSED[name]
    (tmp_path / name).write_bytes(data)
    refused(tmp_path / name, f"{name}: .*({says})")


def test_what_follows_a_png_is_of_no_account(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(FILES["rgb.png"] + b"something behind it")
    assert_same(pixels_of(tmp_path / "a.png")[0], RGB)


ODD_ZARR: dict[str, tuple[Any, str]] = {
    "no datasets": ({"multiscales": [{"axes": [], "datasets": []}]}, "Zarr: "),
    "a group": ({"multiscales": [{"axes": [{"name": axis} for axis in "cyx"], "datasets": [{"path": ""}]}]}, "Zarr: "),
    "a list": ("[]", "Zarr: "),
    "no JSON": ("{", "Zarr: "),
    "two": ({}, "a group without 'multiscales'"),
    "five": (np.zeros((5, 6, 9), np.uint8), "is not a picture"),
    "words": (np.zeros((9, 9, 3), np.int32), "3 channels of int32"),
}
"""What is there: an array, a group with these attributes and two arrays, or metadata with this text."""


@pytest.mark.parametrize("name", ODD_ZARR)
def test_a_zarr_that_makes_no_sense_is_one_line(tmp_path: Path, name: str) -> None:
    content, says = ODD_ZARR[name]
    path = tmp_path / "in.zarr"
    if isinstance(content, np.ndarray):
        write_zarr(path, content)
    else:
        group = zarr.open_group(str(path), mode="w")
        for member in ("0", "1"):
            group.create_array(member, shape=(3, 8, 9), dtype="uint8")
        if isinstance(content, dict):
            group.attrs.update({"ome": {"version": "0.5"} | content} if content else {})
        else:
            (path / "zarr.json").write_text(content)
    assert is_zarr(path)
    refused(path, rf"in\.zarr: .*{says}")


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
