"""The PNG writer: what other decoders read back is what went in."""

from __future__ import annotations

import io
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from edgeconv.io import huffman, png

SHAPES = [(1, 1), (1, 1, 1), (1, 7, 3), (7, 1, 3), (5, 4), (37, 131, 3), (700, 2500, 3)]
"""The last is more than one band."""


def pictures(shape, dtype):
    """Noise (no filter helps), and walks of small random steps along x (sub) and along y (up)."""
    rng = np.random.default_rng(3)
    yield rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
    for axis in (1, 0):
        yield np.cumsum(rng.integers(0, 4, shape, dtype=dtype), axis=axis, dtype=dtype)


def decoded(data):
    """RGB or grey, by libpng with all checks on."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    return pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_read_back_is_what_was_written(shape, dtype):
    for picture in pictures(shape, dtype):
        data = bytes(png.encode_png(picture))
        assert np.array_equal(decoded(data), picture.squeeze(-1) if shape[2:] == (1,) else picture)
        with Image.open(io.BytesIO(data)) as checked:
            checked.load()  # Pillow checks every chunk's CRC and the stream's Adler-32


@pytest.mark.parametrize("code", png.FILTERS)
@pytest.mark.parametrize("band_bytes", [3000, 1])  # several rows to a band, and one
def test_every_filter_is_the_one_that_decoders_undo(code, band_bytes, monkeypatch):
    monkeypatch.setattr(png, "_choose", lambda raw, pixel_bytes, level: (code, None))
    monkeypatch.setattr(png, "BAND_BYTES", band_bytes)
    for picture in pictures((41, 30, 3), np.uint8):
        assert np.array_equal(decoded(bytes(png.encode_png(picture))), picture)


def test_the_filter_follows_the_picture():
    noise, along_x, along_y = (picture.reshape(64, -1) for picture in pictures((64, 64, 3), np.uint8))
    dark = noise // 32
    assert [png._choose(rows, 3, 1)[0] for rows in (dark, along_x, along_y)] == [0, 1, 2]


def test_the_file_does_not_depend_on_the_threads():
    picture = next(pictures((900, 3000, 3), np.uint8))
    for level in (1, 2):
        files = [bytes(png.encode_png(picture, threads, level)) for threads in (1, 2, 5)]
        assert files[0] == files[1] == files[2]


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_joined_checksums(first, second):
    assert png.join_adler32(zlib.adler32(first), zlib.adler32(second), len(second)) == zlib.adler32(first + second)


@pytest.mark.parametrize(
    "bad", [np.zeros((2, 2, 4), np.uint8), np.zeros((0, 2), np.uint8), np.zeros((2, 2), np.float32)]
)
def test_refuses_what_png_cannot_hold(bad):
    with pytest.raises(ValueError, match=r"shape|uint8 and uint16"):
        png.encode_png(bad)


@pytest.mark.parametrize("band_bytes", [png.BAND_BYTES, 30_000], ids=["one band", "two bands"])
@pytest.mark.parametrize("level", png.LEVELS)
def test_every_level_gives_a_file_that_others_read(level, band_bytes, monkeypatch):
    monkeypatch.setattr(png, "BAND_BYTES", band_bytes)
    for picture in pictures((70, 250, 3), np.uint8):
        assert np.array_equal(decoded(bytes(png.encode_png(picture, level=level))), picture)


def test_without_isal_every_level_is_there(monkeypatch):
    monkeypatch.setattr(png, "fast_zlib", zlib)
    for dtype in (np.uint8, np.uint16):
        picture = next(pictures((40, 50, 3), dtype))
        for level in png.LEVELS:
            assert np.array_equal(decoded(bytes(png.encode_png(picture, level=level))), picture)


SAMPLES = {
    "all alike": np.full(4_000, 7),
    "each as often": np.arange(4_096) % 256,
    "few far more often": np.random.default_rng(1).geometric(0.4, 4_000) % 256,
    "each twice as often as the last": np.repeat(np.arange(22), 2 ** np.arange(22) // 64),
    "none": np.zeros(0, int),
}


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("length", [1, 3, 4, 5, 1_003])
@pytest.mark.parametrize("band_bytes", [1, 6, 2_000])
def test_packed_bytes_are_blocks_of_deflate_whatever_the_sample_was(sample: str, length: int, band_bytes: int) -> None:
    counts = np.bincount(SAMPLES[sample], minlength=256)
    code = huffman.Code(counts)
    for data in (np.resize(SAMPLES[sample], length), np.random.default_rng(length).integers(0, 256, length)):
        given = np.zeros(length, np.uint8) if sample == "none" else np.ascontiguousarray(data, np.uint8)
        target, ends = huffman.packed(given, band_bytes, 12, code)
        starts = [0, *ends[:-1]]
        blocks = [target[start + 12 : end].tobytes() for start, end in zip(starts, ends, strict=True)]
        assert len(target) == ends[-1] + 12
        assert zlib.decompress(b"".join(blocks) + huffman.LAST, -15) == given.tobytes()
        for number, block in enumerate(blocks):  # each by itself
            band = given[number * band_bytes : (number + 1) * band_bytes]
            assert zlib.decompress(block + huffman.LAST, -15) == band.tobytes()


def edges(repeats: int = 1) -> np.ndarray:
    """Something that looks like the edges of a photograph, more than a MiB; each row is there `repeats` times."""
    rng = np.random.default_rng(5)
    return np.abs(rng.normal(0, 9, (700 // repeats, 700, 3))).astype(np.uint8).repeat(repeats, axis=0)


def packed(picture: np.ndarray) -> bool:
    return png._choose(picture.reshape(len(picture), -1), 3, png.LEVEL)[1] is not None


def test_what_hardly_repeats_is_packed_for_no_larger_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = edges()
    data = bytes(png.encode_png(picture))
    assert packed(picture)
    assert np.array_equal(decoded(data), picture)
    assert not packed(picture[:200])  # less than a MiB
    assert png._choose(picture.reshape(700, -1), 3, 2)[1] is None  # a level that promises more
    monkeypatch.setattr(png, "can_pack", lambda: False)  # as where no machine code is allowed
    assert len(data) < 1.02 * len(bytes(png.encode_png(picture)))


def test_what_repeats_is_deflated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not packed(edges(repeats=2))
    assert not packed(edges() // 64)
    picture = edges()
    seen = np.arange(png.SAMPLED) * (700 - png.TOGETHER) // (png.SAMPLED - 1)
    unseen = np.delete(np.arange(700), [row + step for row in seen for step in range(png.TOGETHER)])
    picture[unseen] = np.random.default_rng(2).integers(0, 256, (len(unseen), 700, 3))  # which the code does not suit
    assert packed(picture)
    data = bytes(png.encode_png(picture))
    monkeypatch.setattr(png, "can_pack", lambda: False)
    assert data == bytes(png.encode_png(picture))
    assert np.array_equal(decoded(data), picture)
