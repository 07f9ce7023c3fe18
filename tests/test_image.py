"""What comes in through the door is RGB, HWC and upright, whatever the file; what goes out is whole or not there."""

from __future__ import annotations

import io
import os
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from command import edgeconv_process
from picture_files import ORIENTATIONS, Piped, exif, noisy, png, png_chunk, png_head, saved, smooth_image, tiff
from PIL import Image, ImageCms
from problems import random_image

from edgeconv.errors import ImageWriteError, MemoryLimitError
from edgeconv.io.atomic import write_bytes_atomically
from edgeconv.io.encoding import encode_image, write_image
from edgeconv.io.formats import FORMATS
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.io.reading import GREY_NOTE, Picture, decode_image, read_image
from edgeconv.options import Reading

HEIGHT, WIDTH = 21, 34
LOSSLESS = [
    (suffix, dtype)
    for entry in FORMATS
    if entry.name not in ("JPEG", "WebP")
    for suffix in entry.suffixes
    for dtype in entry.writes
]


def read(folder: Path, name: str, data: bytes) -> Picture:
    path = folder / name
    path.write_bytes(data)
    return read_image(path)


def assert_same(picture: Picture, expected: np.ndarray) -> None:
    assert picture.pixels.dtype == expected.dtype
    assert picture.pixels.flags.c_contiguous
    np.testing.assert_array_equal(picture.pixels, expected)


@pytest.mark.parametrize(("suffix", "dtype"), LOSSLESS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (HEIGHT, WIDTH)])
def test_what_is_written_is_read_back_to_the_bit(
    tmp_path: Path, suffix: str, dtype: str, shape: tuple[int, int]
) -> None:
    """Whatever the byte order of the array."""
    pixels = random_image(*shape, dtype)
    for order in "<>":
        write_image(pixels.astype(pixels.dtype.newbyteorder(order)), tmp_path / f"picture{suffix}", overwrite=True)
        assert_same(read_image(tmp_path / f"picture{suffix}"), pixels)


@pytest.mark.parametrize(("suffix", "dtype"), LOSSLESS)
def test_one_channel_is_written_as_grey_and_read_as_one(tmp_path: Path, suffix: str, dtype: str) -> None:
    """Or as three equal ones, where that is asked for and said."""
    grey = random_image(HEIGHT, WIDTH, dtype)[:, :, :1]
    path = tmp_path / f"Übung – 辺 – край{suffix}"
    write_image(grey, path)
    assert_same(read_image(path), np.ascontiguousarray(grey))
    spread = read_image(path, ReadRules(rgb=True))
    assert_same(spread, np.repeat(grey, 3, axis=2))
    assert GREY_NOTE in spread.notes


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg", ".webp"])
def test_lossy_formats_keep_colours_in_their_places(tmp_path: Path, suffix: str) -> None:
    pixels = smooth_image(HEIGHT, WIDTH)
    write_image(pixels, tmp_path / f"photo{suffix}")
    picture = read_image(tmp_path / f"photo{suffix}")
    assert picture.pixels.dtype == np.uint8
    assert np.abs(picture.pixels.astype(int) - pixels).max() <= 12


@pytest.mark.parametrize("format", ["PNG", "TIFF", "BMP"])
def test_a_palette_becomes_its_colours(tmp_path: Path, format: str) -> None:
    """One of greys too, but in BMP, which has no other grey."""
    images = [Image.fromarray(np.kron(smooth_image(3, 4), np.ones((5, 5, 1), np.uint8))).quantize(16)]
    if format != "BMP":
        images.append(Image.fromarray(noisy()[:, :, 0]).convert("P", palette=Image.Palette.ADAPTIVE))
    for image in images:
        stream = io.BytesIO()
        image.save(stream, format)
        assert_same(read(tmp_path, "palette", stream.getvalue()), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("format", ["PNG", "TIFF", "BMP"])
def test_black_and_white_becomes_grey_of_0_and_255(tmp_path: Path, format: str) -> None:
    picture = read(tmp_path, "bits", saved(noisy(), format, mode="1"))
    expected = np.asarray(Image.fromarray(noisy()).convert("1").convert("L"))[:, :, np.newaxis]
    np.testing.assert_array_equal(picture.pixels, expected)


@pytest.mark.parametrize("place", [0, 1, 2, 255])
@pytest.mark.parametrize("colour", [0, 1, 2])
def test_one_entry_that_is_no_grey_makes_a_bmp_colour(tmp_path: Path, place: int, colour: int) -> None:
    image = Image.fromarray(noisy()[:, :, 0])
    palette = np.repeat(np.arange(256), 3)
    for changed in (0, 1):
        palette[3 * place + colour] ^= changed
        image.putpalette(palette.tolist())
        stream = io.BytesIO()
        image.save(stream, "BMP")
        picture = read(tmp_path, "a.bmp", stream.getvalue())
        assert picture.pixels.shape[2] == (3 if changed else 1)
        assert np.array_equal(picture.pixels, np.asarray(image.convert("RGB"))[:, :, : picture.pixels.shape[2]])


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_grey_of_few_bits(tmp_path: Path, bits: int) -> None:
    """PNG, rows of 8 samples: black is 0, white 255, and between them equal steps."""
    levels = np.random.default_rng(2).integers(0, 2**bits, (5, 8), np.uint8)
    packed = np.packbits(np.unpackbits(levels[:, :, np.newaxis], axis=2)[:, :, 8 - bits :].reshape(5, -1), axis=1)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in packed))
    data = png_head(8, 5, bits, 0) + png_chunk(b"IDAT", body) + png_chunk(b"IEND", b"")
    assert_same(read(tmp_path, "few.png", data), (levels * (255 // (2**bits - 1)))[:, :, np.newaxis])


@pytest.mark.parametrize("format", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_a_colour_profile_is_dropped_and_said(tmp_path: Path, format: str) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    said = [read(tmp_path, "a", saved(noisy(), format, **more)).notes for more in ({}, {"icc_profile": profile})]
    assert said == [(), ("colour profile dropped",)]


@pytest.mark.parametrize(
    ("colours", "dtype"), [(1, "uint8"), (1, "uint16"), (3, "uint8"), (3, "uint16"), (3, "float32")]
)
def test_alpha_is_dropped_and_said(tmp_path: Path, colours: int, dtype: str) -> None:
    stored = random_image(HEIGHT, WIDTH, dtype)[:, :, :colours]
    pixels = np.concatenate([stored, np.zeros_like(stored[:, :, :1])], axis=2)
    files = []
    if dtype != "float32":
        files += [png(pixels), png(stored, extra=png_chunk(b"tRNS", bytes(2 * colours)))]
    if (colours, dtype) != (1, "uint16"):
        files += [tiff(pixels, extra_samples=kind) for kind in (None, 0, 1, 2)]
    for data in files:
        picture = read(tmp_path, "alpha", data)
        assert_same(picture, np.ascontiguousarray(stored))
        assert "alpha channel dropped" in picture.notes


def test_alpha_of_a_webp_is_said(tmp_path: Path) -> None:
    for options in ({"lossless": True}, {"lossless": False, "quality": 90}):
        picture = read(tmp_path, "alpha.webp", saved(smooth_image(9, 9), "WEBP", mode="RGBA", **options))
        assert picture.notes == ()  # Pillow leaves out an alpha that is opaque
        half = np.dstack([smooth_image(9, 9), np.full((9, 9), 128, np.uint8)])
        assert "alpha channel dropped" in read(tmp_path, "half.webp", saved(half, "WEBP", **options)).notes


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 3])
def test_orientation_is_applied_to_lossless_files(tmp_path: Path, orientation: int, dtype: str, channels: int) -> None:
    stored = np.ascontiguousarray(random_image(5, 8, dtype)[:, :, :channels])
    makers = [
        lambda pixels: tiff(pixels, orientation=orientation),
        lambda pixels: tiff(pixels, orientation=orientation, order=">", big=True),
    ]
    if (dtype, channels) == ("uint8", 3):  # straight alpha, which Pillow decodes
        makers.append(lambda rgb: tiff(np.dstack([rgb, rgb[:, :, 0]]), extra_samples=2, orientation=orientation))
    if np.dtype(dtype).kind == "u":
        makers.append(lambda pixels: png(pixels, extra=png_chunk(b"eXIf", exif(orientation).removeprefix(b"Exif\0\0"))))
    for make in makers:
        picture = read(tmp_path, "turned", make(stored))
        assert_same(picture, np.ascontiguousarray(ORIENTATIONS[orientation](stored)))
        assert (f"orientation {orientation} applied" in picture.notes) == (orientation != 1)


def test_an_orientation_that_makes_no_sense_is_ignored(tmp_path: Path) -> None:
    assert_same(read(tmp_path, "odd.tif", tiff(noisy(), orientation=9)), noisy())
    assert_same(read(tmp_path, "odd.png", png(noisy(), extra=png_chunk(b"eXIf", b"garbage"))), noisy())


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_deflate", "packbits"])
def test_every_sort_of_8_bit_tiff(tmp_path: Path, mode: str, compression: str) -> None:
    image = Image.fromarray(smooth_image(HEIGHT, WIDTH)).convert(mode)
    stream = io.BytesIO()
    image.save(stream, "TIFF", compression=compression)
    picture = read(tmp_path, "sort.tif", stream.getvalue())
    stored = "L" if mode in ("1", "L", "LA") else "RGB"
    assert_same(picture, np.asarray(image.convert(stored)).reshape(HEIGHT, WIDTH, -1))


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("shape", [(1, 1), (8, 16), (17, 16), (16, 17), (37, 61)])
@pytest.mark.parametrize("blocks", [1, 3, 1000])
def test_restart_markers_of_every_layout(
    shape: tuple[int, int], subsampling: str, progressive: bool, blocks: int
) -> None:
    stored = smooth_image(*shape)
    for mode in ("RGB", "L", "CMYK"):
        options = {} if mode == "L" else {"subsampling": subsampling}
        data = saved(stored, "JPEG", mode, progressive=progressive, restart_marker_blocks=blocks, **options)
        assert decode_image(data, mode).pixels.shape == (*shape, 1 if mode == "L" else 3)
        filled = data.replace(b"\xff\xd0", b"\xff\xff\xd0")
        np.testing.assert_array_equal(decode_image(filled, mode).pixels, decode_image(data, mode).pixels)


@pytest.mark.parametrize("format", ["PNG", "WEBP", "TIFF"])
def test_the_first_of_several_frames_is_taken_and_said(tmp_path: Path, format: str) -> None:
    second = Image.fromarray(255 - smooth_image(9, 9))
    options = {"lossless": True} if format == "WEBP" else {}
    picture = read(
        tmp_path, "many", saved(smooth_image(9, 9), format, save_all=True, append_images=[second], **options)
    )
    np.testing.assert_array_equal(picture.pixels, smooth_image(9, 9))
    assert "first of several frames or pages taken" in picture.notes


def test_a_wrong_suffix_is_said(tmp_path: Path) -> None:
    assert read(tmp_path, "photo.png", saved(noisy(), "JPEG")).notes == (
        "the contents are JPEG, not PNG as the name says",
    )


def test_npy_of_other_layouts(tmp_path: Path) -> None:
    grey = random_image(HEIGHT, WIDTH, "float32")[:, :, 0]
    np.save(tmp_path / "grey.npy", grey)
    assert_same(read_image(tmp_path / "grey.npy"), grey[:, :, None])
    rgba = np.dstack([random_image(HEIGHT, WIDTH, "float32"), grey])
    np.save(tmp_path / "rgba.npy", np.asfortranarray(rgba))
    assert_same(read_image(tmp_path / "rgba.npy"), np.ascontiguousarray(rgba[:, :, :3]))
    np.save(tmp_path / "double.npy", rgba[:, :, :3].astype(">f8"))
    picture = read_image(tmp_path / "double.npy")
    assert_same(picture, rgba[:, :, :3].astype(np.float64))
    assert picture.notes == ()


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    for pixels, signature in ((noisy(), b"\x89PNG"), (random_image(4, 5, "float32"), b"\x93NUMPY")):
        out = Piped()
        monkeypatch.setattr(sys, "stdout", out)
        write_image(pixels, "-")
        written = out.buffer.getvalue()
        assert written.startswith(signature)
        monkeypatch.setattr(sys, "stdin", Piped(written))
        picture = read_image("-")
        assert picture.source == "standard input"
        assert_same(picture, pixels)


def test_standard_output_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.BytesIO):
        def write(self, data: object) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    for out, says in (
        (None, "Standard output is closed: name a file"),
        (Piped(Closed()), r"Standard output cannot be written \(Broken pipe\)"),
    ):
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(ImageWriteError, match=says):
            write_image(noisy(), "-")


@pytest.mark.parametrize(
    ("name", "dtype", "says"),
    [
        ("raw.png", "float32", r"PNG cannot hold float32 samples: use \.tif or \.npy"),
        ("raw.jpg", "uint16", r"JPEG cannot hold uint16 samples: use \.png or \.tif or \.npy"),
        ("raw.webp", "float32", "WebP cannot hold float32 samples"),
        ("raw.bmp", "uint16", "BMP cannot hold uint16 samples"),
        ("raw.tif", "float16", r"TIFF cannot hold float16 samples: use \.npy"),
        ("raw.tif", "int64", "no format holds int64 samples: convert to uint8, uint16 or float32"),
        ("raw.xyz", "uint8", r"'\.xyz' is not a format that edgeconv writes: use one of \.png"),
        ("raw", "uint8", "is not a format that edgeconv writes"),
    ],
)
def test_a_format_that_cannot_hold_it_is_refused(tmp_path: Path, name: str, dtype: str, says: str) -> None:
    with pytest.raises(ImageWriteError, match=says):
        write_image(np.zeros((4, 4, 3), dtype), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(4, 4, 2), (4,), (0, 4, 3), (2, 4, 4, 3)])
def test_what_is_no_picture_is_not_written(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(ImageWriteError, match="is not a picture"):
        write_image(np.zeros(shape, np.uint8), tmp_path / "a.png")
    with pytest.raises(ImageWriteError, match=r"a\.png: a tuple is not a picture: use a NumPy array"):
        write_image(shape, tmp_path / "a.png")


def test_what_an_encoder_raises_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    def fail(code: int) -> None:
        error = cv2.error("no")
        error.code = code
        raise error

    for encode, says in (
        (lambda *_: (False, None), r"a\.jpg: JPEG: it cannot be encoded: use another format"),
        (lambda *_: fail(0), r"it cannot be encoded \(no\): use another format"),
        (lambda *_: fail(cv2.Error.StsNoMem), r"a\.jpg: JPEG: not enough memory for 60×40 pixels \(7,200 bytes"),
    ):
        monkeypatch.setattr(cv2, "imencode", encode)
        with pytest.raises((ImageWriteError, MemoryLimitError), match=says):
            encode_image(noisy(40, 60), "a.jpg")


def test_links_are_followed_and_devices_written_to(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_bytes_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    write_bytes_atomically(os.devnull, b"nothing")
    assert not Path(os.devnull).is_file()


def test_a_place_where_no_file_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "a.png").mkdir()
    for place, says in (
        ("nowhere/a.png", "does not exist: create it first"),
        ("file/a.png", r"cannot be written \(Not a directory\): choose another place"),
        ("a.png", "is a folder: name a file in it"),
        ("x" * 300 + ".png", r"cannot be written \(.*\): choose another place"),
        ("a\0b.png", r"cannot be written \(.*\): choose another place"),
    ):
        with pytest.raises(ImageWriteError, match=says):
            write_image(noisy(), tmp_path / place)


def test_the_commands_start_from_the_same_limit() -> None:
    # words.py imports nothing, so it states the numbers again
    assert Reading().rules() == DEFAULT_RULES == ReadRules()


def test_decoding_says_nothing_of_its_own(tmp_path: Path) -> None:
    """Nothing of what Pillow finds odd in a tag whose text lies beyond the file."""
    odd = saved(noisy(), "TIFF", compression="tiff_lzw", software="x" * 9)
    place = odd.index(b"\x31\x01\x02\x00") + 8
    (tmp_path / "odd.tif").write_bytes(odd[:place] + b"\xff\xff\xff\x7f" + odd[place + 4 :])
    done = edgeconv_process("diff", "odd.tif", "odd.tif", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
