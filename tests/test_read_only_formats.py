"""Formats that are read and not written: GIF, PNM, JPEG 2000 and AVIF, with what is lost on the way and said."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from command import edgeconv
from damaged import MOVING
from picture_files import ORIENTATIONS, exif, noisy, pnm, saved, smooth_image
from PIL import Image, ImageOps

from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.io.encoding import write_image
from edgeconv.io.formats import FORMATS, NAMES, SUFFIXES, WRITTEN
from edgeconv.io.formats.avif import TURNED
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import decode_image
from edgeconv.options import FORMAT_HELP, PICTURE_HELP

DEEP = "kept at 16 bits per sample"


def assert_is(data: bytes, expected: np.ndarray, *notes: str) -> None:
    """Exactly these pixels, and these notes alone."""
    picture = decode_image(data, "picture")
    assert picture.pixels.dtype == expected.dtype
    np.testing.assert_array_equal(picture.pixels, expected)
    assert picture.notes == notes


def by_pillow(data: bytes) -> np.ndarray:
    """What Pillow makes of a file."""
    with Image.open(io.BytesIO(data)) as opened:
        return np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))


def spread(samples: np.ndarray, largest: int, full: int) -> np.ndarray:
    """Samples from 0 to `largest` over 0 to `full`, to nearest."""
    return np.rint(samples.astype(np.float64) / largest * full)


def test_pnm_of_every_kind() -> None:
    pixels, grey = noisy(), noisy()[:, :, :1]
    for text in (False, True):
        assert_is(pnm(pixels, text=text), pixels)
        assert_is(pnm(grey, text=text), grey)
        assert_is(pnm(pixels.astype(np.uint16) * 257, text=text), pixels.astype(np.uint16) * 257, DEEP)
        for width in (1, 7, 8, 9, 60):
            bits = grey[:, :width] // 128
            assert_is(pnm(bits, 1, text), bits * np.uint8(255), "samples of 0 to 1 stretched to 0 to 255")


@pytest.mark.parametrize(("largest", "full"), [(3, 255), (100, 255), (256, 65535), (1000, 65535), (4095, 65535)])
def test_samples_are_stretched_from_the_maximum_that_the_header_states(largest: int, full: int) -> None:
    samples = np.random.default_rng(1).integers(0, largest + 1, (9, 12, 3))
    kind = np.uint8 if full == 255 else np.uint16
    stretched = f"samples of 0 to {largest:,} stretched to 0 to {full:,}"
    notes = (stretched,) if full == 255 else (DEEP, stretched)
    assert_is(pnm(samples.astype(kind), largest), spread(samples, largest, full).astype(kind), *notes)


def test_comments_of_any_length_stand_in_a_header_of_pnm() -> None:
    head = b"P5 # a\n#b\n2#" + b"x" * 10_000 + b"\n# c\n1 \t255\n\x07\x08"
    assert_is(head, np.array([[[7], [8]]], np.uint8))


@pytest.mark.parametrize("kind", ["PPM", "JPEG2000", "AVIF"])
def test_grey_stays_grey_unless_three_channels_are_asked_for(kind: str) -> None:
    data = saved(smooth_image(20, 36), kind, mode="L")
    one, three = decode_image(data, "a"), decode_image(data, "a", ReadRules(rgb=True))
    assert one.pixels.shape == (20, 36, 1)
    np.testing.assert_array_equal(three.pixels, one.pixels.repeat(3, axis=2))
    assert three.notes == ("grey spread to three channels",)


def test_a_gif_gives_its_first_frame_and_says_so() -> None:
    assert_is(MOVING, by_pillow(saved(noisy(), "GIF")), "first of several frames or pages taken")
    still = saved(noisy(), "GIF", comment=b"one frame, and a comment")
    assert_is(still, by_pillow(still))
    clear = saved(noisy(), "GIF", transparency=0)
    assert_is(clear, by_pillow(saved(noisy(), "GIF")), "alpha channel dropped")


def test_what_follows_a_gif_does_not_make_up_for_what_its_frame_lacks() -> None:
    """A decoder that misses the end of a frame reads on; a stream ends with the picture, so a file must too."""
    data = saved(np.arange(20, dtype=np.uint8).reshape(5, 4), "GIF")
    frame = 13 + 3 * 2 ** ((data[10] & 7) + 1)
    start = frame + 11  # of the codes, behind the palette, the frame's descriptor and the size of its codes
    length, lacks = data[start], 6
    assert (data[frame], data[start + length + 1 :]) == (ord(","), b"\0;")
    codes = data[start + 1 : start + 1 + length]
    cut = data[:start] + bytes([length - lacks]) + codes[:-lacks] + b"\0;"
    for behind in (b"", codes[-lacks:] + bytes(60)):
        with pytest.raises(ImageReadError, match="GIF: it cannot be decoded"):
            decode_image(cut + behind, "a.gif")


def test_jpeg_2000_without_loss_is_exact() -> None:
    grey = np.asarray(Image.fromarray(noisy()).convert("L"))[:, :, np.newaxis]
    assert_is(saved(noisy(), "JPEG2000"), noisy())
    assert_is(saved(noisy(), "JPEG2000", mode="L"), grey)
    assert_is(saved(noisy(), "JPEG2000", mode="RGBA"), noisy(), "alpha channel dropped")
    assert_is(saved(noisy(), "JPEG2000", tile_size=(16, 16)), noisy())
    before, _, behind = saved(noisy(), "JPEG2000").partition(b"jp2c")  # whose length may have 8 bytes
    assert_is(before[:-4] + b"\0\0\0\1jp2c" + (16 + len(behind)).to_bytes(8, "big") + behind, noisy())
    with pytest.raises(ImageReadError, match="is JPEG 2000 without its file, which edgeconv does not read"):
        decode_image(saved(noisy(), "JPEG2000", no_jp2=True), "bare.j2k")


@pytest.mark.parametrize("bits", [10, 12, 16])
def test_jpeg_2000_of_more_than_8_bits_keeps_every_bit(bits: int) -> None:
    imagecodecs = pytest.importorskip("imagecodecs")
    samples = np.random.default_rng(2).integers(0, 2**bits, (20, 30, 3)).astype(np.uint16)
    data = imagecodecs.jpeg2k_encode(samples, bitspersample=bits, reversible=True, level=0, codecformat="jp2")
    full = 2**bits - 1
    stretched = () if bits == 16 else (f"samples of 0 to {full:,} stretched to 0 to 65,535",)
    assert_is(data, spread(samples, full, 65535).astype(np.uint16), DEEP, *stretched)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("alpha", [False, True])
def test_avif_is_turned_upright(orientation: int, alpha: bool) -> None:
    pixels = smooth_image(20, 36)
    stored = np.dstack([pixels, pixels[:, :, 0]]) if alpha else pixels
    data = saved(stored, "AVIF", quality=90, exif=exif(orientation))
    turned = () if orientation == 1 else (f"orientation {orientation} applied",)
    assert_is(data, by_pillow(data), *(["alpha channel dropped"] if alpha else []), *turned)


def test_avif_of_10_bits_is_not_cut_to_8() -> None:
    imagecodecs = pytest.importorskip("imagecodecs")
    samples = (smooth_image(20, 36).astype(np.uint16) * 4).clip(max=1023)
    picture = decode_image(imagecodecs.avif_encode(samples, bitspersample=10, level=95), "a")
    assert picture.notes == (DEEP, "samples of 0 to 1,023 stretched to 0 to 65,535")
    assert picture.pixels.dtype == np.uint16
    assert np.abs(picture.pixels / 65535 - samples / 1023).max() < 0.02
    assert len(np.unique(picture.pixels)) > 256


@pytest.mark.parametrize("entry", [entry for entry in FORMATS if not entry.writes], ids=lambda entry: entry.name)
def test_what_is_only_read_is_not_written(tmp_path: Path, entry) -> None:
    for suffix in entry.suffixes:
        with pytest.raises(ImageWriteError, match=f"'{suffix}' is not a format that edgeconv writes: use one of .png"):
            write_image(noisy(), tmp_path / f"a{suffix}")
    assert not list(tmp_path.iterdir())


def test_help_names_the_formats_of_the_table() -> None:
    assert PICTURE_HELP.partition(";")[0].replace(" or ", ", ") == NAMES
    named = FORMAT_HELP.partition(".")[0].replace(" or ", ", ").split(", ")
    assert [WRITTEN[f".{name}"].name for name in named] == [entry.name for entry in FORMATS if entry.writes]


def test_a_folder_of_them_is_filtered(tmp_path: Path) -> None:
    kinds = {".gif": "GIF", ".ppm": "PPM", ".jp2": "JPEG2000", ".avif": "AVIF"}
    (tmp_path / "in").mkdir()
    for suffix, kind in kinds.items():
        (tmp_path / "in" / f"{kind}{suffix}").write_bytes(saved(smooth_image(20, 30), kind))
    done = edgeconv("batch", "in", "-o", "out", "-m", "opencv", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert len(list((tmp_path / "out").glob("*.png"))) == len(kinds)
    assert kinds.keys() <= SUFFIXES.keys()


def test_each_turn_and_mirror_of_avif_is_the_orientation_of_the_table() -> None:
    """Pillow writes one of several ways to say an orientation; these are all of them."""
    pixels = smooth_image(4, 7)
    for quarters, by_mirror in enumerate(TURNED):
        for mirror, orientation in by_mirror.items():
            turned = np.rot90(pixels, quarters)  # anticlockwise
            upright = turned if mirror is None else np.flip(turned, mirror)
            assert np.array_equal(ORIENTATIONS[orientation](pixels), upright), (quarters, mirror)
