"""PNM: PBM, PGM and PPM, as text (P1 to P3) and in binary (P4 to P6). Source: netpbm.sourceforge.net/doc/pnm.html.

Samples reach from 0 to a maximum that the header states; of bitmaps (P1, P4) 1 is black. Only the first picture of a
file is read. Decoded here, as that is a few lines and every value above the maximum is damage that decoders ignore.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.io.formats.base import BadPicture, Header, Sides, any_sides, cut_short, require

SIGNATURES = tuple(b"P%d" % kind for kind in range(1, 7))
SPACE = b"\t\n\v\f\r "
AFTER_SIGNATURE = tuple(bytes((each,)) for each in SPACE + b"#")
"""What tells the signature from a text that begins with P1."""
BITMAPS, TEXTS, COLOURS = (1, 4), (1, 2, 3), (3, 6)
MOST_MAXIMUM = 65535
MOST_HEADER_BYTES = 2**16
"""Comments may be of any length; no program writes as many."""
MOST_DIGITS = 6
_DIGIT = re.compile(rb"[^\t\n\v\f\r ]")
_TOKEN = re.compile(rb"(?:[\t\n\v\f\r ]|#[^\n\r]*[\n\r])*([^\t\n\v\f\r #]+)")
DAMAGED = "its header is not a PNM header"


def read_header(data: bytes, sides: Sides = any_sides) -> Header:
    """Read the header and, in binary, see that all samples are there. Raises BadPicture."""
    kind, width, height, largest, start = _parts(data)
    sides(width, height)
    colours = 3 if kind in COLOURS else 1
    bits = 16 if largest > 255 else 8
    stop = None
    if kind not in TEXTS:
        row_bytes = (width + 7) // 8 if kind in BITMAPS else width * colours * bits // 8
        stop = start + row_bytes * height
        require(data, stop)
    return Header(width=width, height=height, bits=bits, grey=colours == 1, largest=largest, file_bytes=stop)


def decode(data: bytes, header: Header) -> NDArray[Any]:
    """The samples as they are stored, HWC. Raises BadPicture for one above the maximum, or for too few."""
    kind, width, height, largest, start = _parts(data)
    colours = 3 if kind in COLOURS else 1
    body = data[start : header.file_bytes]
    if kind in TEXTS:
        values = _text_values(body, kind, width * height * colours)
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


def _parts(data: bytes) -> tuple[int, int, int, int, int]:
    """Kind, width, height, maximum, and the place of the first sample."""
    head = data[:MOST_HEADER_BYTES]
    kind = head[1] - ord("0")
    position, numbers = 2, []
    for _ in range(2 if kind in BITMAPS else 3):
        token = _TOKEN.match(head, position)
        if token is None or token.end() == len(head):
            raise cut_short("its header is not complete")
        if not token[1].isdigit() or len(token[1]) > 10:
            raise BadPicture(DAMAGED)
        numbers.append(int(token[1]))
        position = token.end()
    width, height, largest = numbers if kind not in BITMAPS else (*numbers, 1)
    if not 0 < largest <= MOST_MAXIMUM or head[position] not in SPACE:
        raise BadPicture(DAMAGED)
    return kind, width, height, largest, position + 1


def _text_values(body: bytes, kind: int, count: int) -> NDArray[Any]:
    """The first `count` samples written as text; digits of a bitmap need no space between them. Raises BadPicture."""
    words = (_DIGIT.findall(body) if kind in BITMAPS else body.split(None, count))[:count]
    if len(words) < count:
        raise cut_short(f"{count - len(words):,} samples are missing")
    if not all(word.isdigit() and len(word) <= MOST_DIGITS for word in words):
        raise BadPicture("a sample is not a whole number")
    return np.array(words, dtype=f"S{MOST_DIGITS}").astype(np.int64)
