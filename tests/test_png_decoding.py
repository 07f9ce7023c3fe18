"""Large PNGs are decoded by our own code: the pixels that went in; what is odd or wrong goes to OpenCV, as before."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from picture_files import exif, noisy, png_chunk, png_head, saved

from edgeconv.errors import EdgeconvError
from edgeconv.io.formats import png
from edgeconv.io.reading import decode_image, read_header

COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
"""By channels."""
WIDTHS = (1, 2, 5, 6, 11, 16, 21, 22, 43)
"""Rows of less than a vector, of whole vectors, and of both and a rest, whatever a pixel takes."""
ROWS = 12


@pytest.fixture(autouse=True)
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "LEAST_BYTES", 0)


def filtered(pixels: np.ndarray, codes: np.ndarray) -> bytes:
    """The rows of a PNG, each by its filter, as the specification words it (section 9.2)."""
    height, row = pixels.shape[0], pixels.astype(pixels.dtype.newbyteorder(">")).reshape(pixels.shape[0], -1)
    raw = row.view(np.uint8).astype(int)
    pixel_bytes = pixels.shape[2] * pixels.itemsize
    x = np.pad(raw, ((1, 0), (pixel_bytes, 0)))
    a, b, c = x[1:, :-pixel_bytes], x[:-1, pixel_bytes:], x[:-1, :-pixel_bytes]
    p = a + b - c
    nearest = np.where(
        (abs(p - a) <= abs(p - b)) & (abs(p - a) <= abs(p - c)), a, np.where(abs(p - b) <= abs(p - c), b, c)
    )
    guesses = np.stack([np.zeros_like(raw), a, b, (a + b) // 2, nearest])
    rows = (raw - guesses[codes, np.arange(height)]) % 256
    return np.hstack([codes[:, np.newaxis], rows]).astype(np.uint8).tobytes()


def file(pixels: np.ndarray, stream: bytes, extra: bytes = b"", tail: bytes = b"", pieces: int = 1) -> bytes:
    """A PNG whose stream is cut into `pieces` chunks."""
    height, width, channels = pixels.shape
    step = -(-len(stream) // pieces)
    parts = [png_chunk(b"IDAT", stream[start : start + step]) for start in range(0, len(stream), step)]
    head = png_head(width, height, 8 * pixels.itemsize, COLOUR_TYPES[channels])
    return head + extra + b"".join(parts) + tail + png_chunk(b"IEND", b"")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", COLOUR_TYPES)
def test_every_filter_of_every_width_gives_the_pixels_that_went_in(channels: int, dtype: type) -> None:
    rng = np.random.default_rng(channels)
    for width in WIDTHS:
        top = np.iinfo(dtype).max
        noise = rng.integers(0, top, (ROWS, width, channels), dtype, endpoint=True)
        for pixels in (noise, noise // 64 + top // 3):  # near ones, of which several are equally near
            for codes in (*np.arange(5).repeat(ROWS).reshape(5, ROWS), rng.integers(0, 5, ROWS)):
                data = file(pixels, zlib.compress(filtered(pixels, codes)), pieces=3)
                found = png.decode(data, read_header(data, "a"))
                assert found is not None
                assert found.dtype == pixels.dtype
                np.testing.assert_array_equal(found, pixels, err_msg=f"{width} wide, filters {codes}")
                kept = pixels[:, :, : 1 if channels < 3 else 3]
                np.testing.assert_array_equal(decode_image(data, "a").pixels, kept)


@pytest.mark.parametrize("pixel_bytes", [1, 2, 3, 4, 6, 8])
def test_nothing_beyond_the_last_row_is_written(pixel_bytes: int) -> None:
    for width in range(1, 40):
        for code in range(5):
            row = np.append(code, np.arange(width * pixel_bytes)).astype(np.uint8)
            target, zeros = np.full(row.size + 15, 77, np.uint8), np.zeros(row.size, np.uint8)
            bad = np.zeros(1, np.int64)
            addresses = (array.ctypes.data for array in (row, target, zeros))
            png._unfilter(pixel_bytes)(*addresses, 1, row.size - 1, bad.ctypes.data)
            assert (target[row.size - 1 :] == 77).all(), (width, code)


PIXELS = noisy(9, 14)
PLAIN = zlib.compress(filtered(PIXELS, np.arange(9) % 5))
ROW_BYTES = 1 + 14 * 3
RAW = filtered(PIXELS, np.arange(9) % 5)
DEFLATER = zlib.compressobj(6, zlib.DEFLATED, 9)  # a window of 512 bytes
NO_SUCH_FILTER = RAW[: 3 * ROW_BYTES] + b"\5" + RAW[3 * ROW_BYTES + 1 :]
BETWEEN = png_chunk(b"tIME", bytes(7)) + png_chunk(b"IDAT", PLAIN[20:])
SHORT_WINDOW = DEFLATER.compress(RAW) + DEFLATER.flush()
IHDR = png_head(14, 9)[16:29]
LEFT_TO_OPENCV = {
    "a wrong sum": file(PIXELS, PLAIN[:-1] + bytes([PLAIN[-1] ^ 1])),
    "bytes behind the stream": file(PIXELS, PLAIN + b"more"),
    "a row too few": file(PIXELS, zlib.compress(RAW[:-ROW_BYTES])),
    "a row too many": file(PIXELS, zlib.compress(RAW + RAW[-ROW_BYTES:])),
    "a filter that does not exist": file(PIXELS, zlib.compress(NO_SUCH_FILTER)),
    "a damaged stream": file(PIXELS, PLAIN[:30] + bytes(8) + PLAIN[38:]),
    "a stream cut short": file(PIXELS, PLAIN[:-9]),
    "no stream": file(PIXELS, b"\x78"),
    "a dictionary": file(PIXELS, b"\x78\xbb" + PLAIN[2:]),
    "another method of compression": file(PIXELS, b"\x79\x9d" + PLAIN[2:]),
    "a short window": file(PIXELS, SHORT_WINDOW),
    "a colour that is transparent": file(PIXELS, PLAIN, png_chunk(b"tRNS", bytes(6))),
    "a chunk that readers must know": file(PIXELS, PLAIN, png_chunk(b"ABCD", b"")),
    "a second header": file(PIXELS, PLAIN, png_head(14, 9)[8:]),
    "a chunk within the stream": file(PIXELS, PLAIN[:20], tail=BETWEEN),
    "an animation": file(PIXELS, PLAIN, png_chunk(b"acTL", b"\0\0\0\1\0\0\0\0")),
    "a palette": saved(PIXELS, "PNG", "P"),
    "one bit": saved(PIXELS, "PNG", "1"),
    "four bits": png_head(14, 9, 4, 0) + png_chunk(b"IDAT", zlib.compress(9 * bytes(8))) + png_chunk(b"IEND", b""),
    "rows in turns": png_head(1, 1)[:8] + png_chunk(b"IHDR", IHDR[:-1] + b"\1") + file(PIXELS, PLAIN)[33:],
}


def outcome(data: bytes) -> object:
    """Everything that a caller sees."""
    try:
        picture = decode_image(data, "a.png")
    except EdgeconvError as error:
        return str(error)
    return picture.pixels.tolist(), picture.notes


@pytest.mark.parametrize("what", LEFT_TO_OPENCV)
def test_what_is_odd_or_wrong_is_left_to_opencv(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = LEFT_TO_OPENCV[what]
    assert png.decode(data, read_header(data, "a")) is None
    found = outcome(data)
    monkeypatch.setattr(png, "deflate", None)  # as where there is no wheel of it
    assert outcome(data) == found


@pytest.mark.parametrize("kinds", ["", "eXIf tIME", "iCCP pHYs", "zTXt", "bKGD sBIT"])
def test_other_chunks_change_no_pixel_and_are_complained_of_all_the_same(
    kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = {"eXIf": exif(6).removeprefix(b"Exif\0\0")}
    chunks = b"".join(png_chunk(kind.encode(), bodies.get(kind, b"odd\0\0\1\2")) for kind in kinds.split())
    data = file(PIXELS, PLAIN, chunks)
    assert png.decode(data, read_header(data, "a")) is not None
    found = outcome(data)
    monkeypatch.setattr(png, "deflate", None)
    assert outcome(data) == found


def test_small_ones_are_left_to_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "LEAST_BYTES", PIXELS.nbytes + 1)
    data = file(PIXELS, PLAIN)
    assert png.decode(data, read_header(data, "a")) is None


def test_a_system_that_allows_no_machine_code_has_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pixel_bytes: int) -> None:
        raise OSError("memory may not become executable")

    monkeypatch.setattr(png, "_unfilter", refuse)
    np.testing.assert_array_equal(decode_image(file(PIXELS, PLAIN), "a").pixels, PIXELS)
