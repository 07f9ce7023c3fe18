"""PNM: PBM, PGM and PPM, as text (P1 to P3) and in binary (P4 to P6). Source: netpbm.sourceforge.net/doc/pnm.html.

Samples reach from 0 to a maximum that the header states; of bitmaps (P1, P4) 1 is black. Only the first picture of a
file is read. Decoded here, as that is a few lines and every value above the maximum is damage that decoders ignore.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.io.formats.base import BadPicture, Header, cut_short
from edgeconv.io.formats.byte_source import STEP_BYTES, ByteSource

SIGNATURES = tuple(b"P%d" % kind for kind in range(1, 7))
SPACE = b"\t\n\v\f\r "
AFTER_SIGNATURE = tuple(bytes((each,)) for each in SPACE + b"#")
"""What tells the signature from a text that begins with P1."""
BITMAPS, TEXTS, COLOURS = (1, 4), (1, 2, 3), (3, 6)
MOST_MAXIMUM = 65535
MOST_HEADER_BYTES = 2**16
"""Comments may be of any length; no program writes as many."""
MOST_DIGITS = 6
MOST_SAMPLE_BYTES = 32
"""Digits and the space between two samples, in text."""
_WORD, _DIGIT = re.compile(rb"[^\t\n\v\f\r ]+"), re.compile(rb"[^\t\n\v\f\r ]")
_TOKEN = re.compile(rb"(?:[\t\n\v\f\r ]|#[^\n\r]*[\n\r])*([^\t\n\v\f\r #]+)")
DAMAGED = "its header is not a PNM header"


def read_header(feed: ByteSource) -> Header:
    """Read the header and see that all samples are there. Raises BadPicture."""
    kind, width, height, largest, start = _parts(feed)
    feed.sides(width, height)
    colours = 3 if kind in COLOURS else 1
    bits = 16 if largest > 255 else 8
    if kind in TEXTS:
        stop = _end_of_text(feed, start, width * height * colours, kind)
    else:
        row_bytes = (width + 7) // 8 if kind in BITMAPS else width * colours * bits // 8
        stop = start + row_bytes * height
        if not feed.need(stop):
            raise cut_short(f"{len(feed.data):,} of {stop:,} bytes are there")
    return Header(width=width, height=height, bits=bits, grey=colours == 1, largest=largest, file_bytes=stop)


def decode(data: bytes, header: Header) -> NDArray[Any]:
    """The samples as they are stored, HWC. Raises BadPicture for one above the maximum."""
    kind, width, height, largest, start = _parts(ByteSource(data))
    colours = 3 if kind in COLOURS else 1
    body = data[start : header.file_bytes]
    if kind in TEXTS:
        values = _text_values(body, kind)
    elif kind in BITMAPS:
        rows = np.frombuffer(body, np.uint8).reshape(height, -1)
        values = np.unpackbits(rows, axis=1)[:, :width]
    else:
        values = np.frombuffer(body, ">u2" if header.bits == 16 else np.uint8)
    if values.size and int(values.max()) > largest:
        raise BadPicture(f"a sample is {int(values.max()):,}, and its header says {largest:,} at most")
    if kind in BITMAPS:
        values = 1 - values
    return values.astype(np.uint16 if header.bits == 16 else np.uint8).reshape(height, width, colours)


def _parts(feed: ByteSource) -> tuple[int, int, int, int, int]:
    """Kind, width, height, maximum, and the place of the first sample."""
    kind = feed.part(1, 2)[0] - ord("0")
    position, numbers = 2, []
    for _ in range(2 if kind in BITMAPS else 3):
        text, position = _token(feed, position)
        if not text.isdigit() or len(text) > 10:
            raise BadPicture(DAMAGED)
        numbers.append(int(text))
    width, height, largest = numbers if kind not in BITMAPS else (*numbers, 1)
    if not 0 < largest <= MOST_MAXIMUM or feed.part(position, position + 1) not in SPACE:
        raise BadPicture(DAMAGED)
    return kind, width, height, largest, position + 1


def _token(feed: ByteSource, position: int) -> tuple[bytes, int]:
    """The word from `position` on, and the place behind it, where there is one byte more."""
    wanted = 64
    while True:
        piece = feed.part(position, position + wanted)
        found = _TOKEN.match(piece)
        if found is not None and found.end() < len(piece):
            return found[1], position + found.end()
        if len(piece) < wanted:
            raise cut_short("its header is not complete")
        wanted *= 2
        if wanted > MOST_HEADER_BYTES:
            raise BadPicture(DAMAGED)


def _end_of_text(feed: ByteSource, start: int, count: int, kind: int) -> int:
    """The place behind the last of `count` samples that are written as text."""
    sample = _DIGIT if kind in BITMAPS else _WORD
    most = start + MOST_SAMPLE_BYTES * count + STEP_BYTES
    if not count:
        return start
    counted, left, ended = start, count, False
    while True:
        piece = bytes(feed.data[counted:])
        if not ended and kind not in BITMAPS:  # the last number may go on in what is read next
            piece = piece[: 1 + max(piece.rfind(space) for space in SPACE)]
        found = len(sample.findall(piece))
        if found >= left:
            return counted + next(itertools.islice(sample.finditer(piece), left - 1, None)).end()
        counted, left = counted + len(piece), left - found
        if ended:
            raise cut_short(f"{left:,} samples are missing")
        if len(feed.data) >= most:
            raise BadPicture("its samples take more bytes than any program writes")
        ended = not feed.grow()


def _text_values(body: bytes | bytearray, kind: int) -> NDArray[Any]:
    """Samples written as text; digits of a bitmap need no space between them. Raises BadPicture."""
    words = (_DIGIT if kind in BITMAPS else _WORD).findall(body)
    if not all(word.isdigit() and len(word) <= MOST_DIGITS for word in words):
        raise BadPicture("a sample is not a whole number")
    return np.array(words, dtype=f"S{MOST_DIGITS}").astype(np.int64)
