"""PNG: every chunk is parsed and its checksum compared, so that damage is detected before libpng prints warnings.

This takes about 1 % of the decoding time. Large pictures of 8 and 16 bits are decoded here, by libdeflate and generated
code, in less than half of OpenCV's time: their pixels come from two long calls that give back the interpreter lock.
Whatever is unusual or wrong is left to OpenCV, which knows what may be forgiven.

Source: PNG specification, third edition (W3C), sections 5, 7 to 11.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.io.formats.base import BadPicture, Header, Sides, any_sides, cut_short, too_many, unpack
from edgeconv.io.formats.tiff import EXIF_BYTES, orientation_of_exif

if TYPE_CHECKING:
    from edgeconv.hardware.cpu.jit import NativeFunction

try:
    import deflate
except ImportError:  # no wheel for this platform
    deflate = None  # type: ignore[assignment]

crc32, adler32 = (zlib.crc32, zlib.adler32) if deflate is None else (deflate.crc32, deflate.adler32)
"""libdeflate's keep the interpreter lock, and are quick: many short calls that give it back would wait for it again."""

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples per pixel, by colour type: grey, RGB, palette, grey + alpha, RGB + alpha."""
GREY_TYPES = (0, 4)
ALPHA_TYPES = (4, 6)
LARGEST_DEFLATE_RATIO = 1032
"""Deflate cannot shrink by more: 258 bytes out of a 2-bit code (zlib technical notes)."""
MOST_CHUNKS = 2**18
"""As many as 2 GiB in the 8 KiB that libpng writes at once."""
MOST_CHUNK_BYTES = 2**31 - 1
IHDR_AT, IHDR_BYTES = 16, 13
PALETTE = 3
PLAIN_BITS = (8, 16)
HARMLESS = b"IHDR IDAT IEND bKGD cHRM eXIf gAMA iCCP iTXt pHYs sBIT sRGB tEXt tIME zTXt"
"""Chunks beside which the pixels are what the stream says, for all readers; a kind is four letters."""
ZLIB_HEADS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""Of a stream with the largest window, which reaches as far back as deflate does, and no dictionary."""
ZLIB_SUM_BYTES = 4
LEAST_BYTES = 2**20
"""Of pixels: OpenCV decodes fewer in less time than it takes to have the generated code compiled once."""
UNFILTER = "edgeconv.hardware.cpu.png_rows_code:write_unfilter"
WASTE = 2
"""Pixel data of more than twice the size of its pixels plus this is not from deflate, which adds at most 0.03 %."""
WASTE_BYTES = 2**16


def read_header(data: bytes, sides: Sides = any_sides) -> Header:
    """Check the chunks of a whole PNG file and return its header. Raises BadPicture."""
    view, position = memoryview(data), len(SIGNATURE)
    width = height = bits = colour_type = 0
    stored = 0
    transparency, frames, profile = False, 1, False
    orientation: int | None = None
    chunks = 0
    ended = False
    while not ended:
        chunks += 1
        if chunks > MOST_CHUNKS:
            raise too_many("chunks", MOST_CHUNKS)
        length, kind, _ = unpack(data, ">I4sI", position, "no IEND chunk at its end")
        stop = position + 8 + length
        if length > MOST_CHUNK_BYTES or not kind.isalpha():
            raise BadPicture(f"there is no chunk at byte {position:,} where one must be")
        if chunks == 1 and (kind, length) != (b"IHDR", IHDR_BYTES):
            raise BadPicture("its header is not a PNG header")
        (checksum,) = unpack(data, ">I", stop, f"chunk {kind.decode('latin-1')!r} is not complete")
        if crc32(view[position + 4 : stop]) != checksum:
            raise BadPicture(f"chunk {kind.decode('latin-1')!r} is damaged (its checksum is wrong)")
        body = position + 8
        if chunks == 1:
            width, height, bits, colour_type = unpack(data, ">IIBB", body)
            sides(width, height)
        elif kind == b"IDAT":
            stored += length
            if stored > WASTE * width * height * CHANNELS.get(colour_type, 1) * bits // 8 + height + WASTE_BYTES:
                raise BadPicture(f"{stored:,} bytes of pixel data are more than {width:,}×{height:,} pixels can take")
        elif kind == b"tRNS":
            transparency = True
        elif kind == b"iCCP":
            profile = True
        elif kind == b"eXIf" and orientation is None:
            orientation = orientation_of_exif(data[body : min(stop, body + EXIF_BYTES)])
        elif kind == b"acTL" and length >= 4:
            (frames,) = unpack(data, ">I", body)
        ended = kind == b"IEND"
        position = stop + 4
    if colour_type not in CHANNELS or not bits:
        raise BadPicture("its header is not a PNG header")
    if width * height * CHANNELS[colour_type] * bits > 8 * LARGEST_DEFLATE_RATIO * stored:
        raise cut_short(f"{stored:,} bytes of pixel data cannot hold {width:,}×{height:,} pixels")
    return Header(
        width=width,
        height=height,
        bits=8 if colour_type == 3 else bits,
        grey=colour_type in GREY_TYPES,
        alpha=transparency or colour_type in ALPHA_TYPES,
        orientation=orientation or 1,
        frames=max(1, frames),
        profile=profile,
    )


def decode(data: bytes, header: Header) -> NDArray[Any] | None:
    """The pixels (HWC, with alpha if it is stored) of a file whose chunks are checked; None where OpenCV is to do it.

    That is a small picture, for which nothing is gained, one of an unusual kind, and one with anything wrong in it.
    Raises MemoryError.
    """
    bits, colour_type, *methods = data[IHDR_AT + 8 : IHDR_AT + IHDR_BYTES]
    channels = CHANNELS[colour_type]
    row_bytes, pixel_bytes = header.width * channels * bits // 8, channels * bits // 8
    size = header.height * row_bytes
    if deflate is None or bits not in PLAIN_BITS or colour_type == PALETTE or any(methods) or size < LEAST_BYTES:
        return None
    stream = _pixel_data(data)
    if stream[: len(ZLIB_HEADS[0])] not in ZLIB_HEADS:
        return None
    try:
        unfilter = _unfilter(pixel_bytes)
        deflated = memoryview(stream)[len(ZLIB_HEADS[0]) : -ZLIB_SUM_BYTES]
        rows = deflate.deflate_decompress(deflated, size + header.height)
    except (deflate.DeflateError, OSError, ImportError):  # a damaged stream; a system that allows no machine code
        return None
    # It may be shorter, and bytes may follow it: then the sum is not at the end.
    if len(rows) != size + header.height or adler32(rows) != int.from_bytes(stream[-ZLIB_SUM_BYTES:]):
        return None
    from edgeconv.hardware.pages import large_empty  # which small pictures do without, as they do without the code

    pixels, above, bad = large_empty(size), np.zeros(row_bytes, np.uint8), np.zeros(1, np.int64)
    source = np.frombuffer(rows, np.uint8)
    addresses = (array.ctypes.data for array in (source, pixels, above))
    unfilter(*addresses, header.height, row_bytes, bad.ctypes.data)
    if bad[0]:
        return None
    samples = pixels.view(f"u{bits // 8}").reshape(header.height, header.width, channels)
    return samples.byteswap(inplace=sys.byteorder == "little") if bits == 16 else samples


@cache
def _unfilter(pixel_bytes: int) -> NativeFunction:
    from edgeconv.hardware.cpu import jit

    return jit.compiled(UNFILTER, pixel_bytes, jit.processor()).function("unfilter", 6)


def _pixel_data(data: bytes) -> bytes:
    """The zlib stream of a file of checked chunks; empty where one may change the pixels or is out of place."""
    parts: list[memoryview] = []
    last = b""
    for kind, chunk in _chunks(data):
        second_header, second_stream = last and kind == b"IHDR", parts and kind == b"IDAT" and last != kind
        if second_header or second_stream or kind not in HARMLESS:
            return b""
        if kind == b"IDAT":
            parts.append(chunk[8:-4])
        last = kind
    return b"".join(parts)


def without_pixels(data: bytes) -> bytes | None:
    """A file of one black pixel with the other chunks of a checked file; None where it has none.

    What libpng says of those it says of this file too.
    """
    chunks = [(kind, chunk) for kind, chunk in _chunks(data) if kind != b"IDAT"]
    if len(chunks) == 2:
        return None
    bits, colour_type = data[IHDR_AT + 8 : IHDR_AT + 10]
    begin = struct.pack(">II", 1, 1) + data[IHDR_AT + 8 : IHDR_AT + IHDR_BYTES]
    pixel = zlib.compress(bytes(1 + CHANNELS[colour_type] * bits // 8))
    rest = b"".join(chunk for _, chunk in chunks[1:-1])
    return SIGNATURE + _chunk(b"IHDR", begin) + rest + _chunk(b"IDAT", pixel) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc32(kind + body))


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Kind and all bytes of each checked chunk."""
    view, position, kind = memoryview(data), len(SIGNATURE), b""
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, position)
        yield kind, view[position : (position := position + 12 + length)]


def check_end(stream: IO[bytes]) -> None:
    """Raise BadPicture where a file lacks its end, found by a step from chunk to chunk that reads none of them."""
    size = stream.seek(0, os.SEEK_END)
    position = len(SIGNATURE)
    kind, chunks = b"", 0
    while kind != b"IEND":
        chunks += 1
        if chunks > MOST_CHUNKS:
            raise too_many("chunks", MOST_CHUNKS)
        stream.seek(position)
        head = stream.read(8)
        if len(head) < 8:
            raise cut_short("no IEND chunk at its end")
        length, kind = struct.unpack(">I4s", head)
        position += 12 + length
        if position > size:
            raise cut_short(f"chunk {kind.decode('latin-1')!r} is not complete")
