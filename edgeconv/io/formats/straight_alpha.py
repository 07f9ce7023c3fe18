"""TIFFs with an extra sample, put so that every Pillow decodes them and leaves their colours alone.

Beside the colours a TIFF may hold one more sample a pixel: alpha that the colours were multiplied by, straight alpha,
or something that it does not name. Here it is dropped, whatever it is. Pillow divides colours by the first kind (in
planes of their own even when told not to), knows grey with the first and the third from 13 on, and takes the second in
every layout since 10: so it is given the same file with that one number changed. Source: TIFF 6.0, ExtraSamples.
"""

from __future__ import annotations

import struct

from edgeconv.io.formats.tiff import BIG, EXTRA_SAMPLES, STRAIGHT_ALPHA

SHORT = 3
"""The type of the field, by the standard."""


def with_straight_alpha(data: bytes) -> bytes:
    """The file, whose one extra sample now is called straight alpha; unchanged where it has none or several.

    `data` is one whose first directory was read before.
    """
    order = "<" if data[:2] == b"II" else ">"
    big = struct.unpack_from(order + "H", data, 2)[0] == BIG
    offset_code, count_code, entry_bytes = ("Q", "Q", 20) if big else ("I", "H", 12)
    (start,) = struct.unpack_from(order + offset_code, data, 8 if big else 4)
    (count,) = struct.unpack_from(order + count_code, data, start)
    first = start + struct.calcsize(order + count_code)
    for entry in range(first, first + count * entry_bytes, entry_bytes):
        tag, kind, length = struct.unpack_from(order + "HH" + offset_code, data, entry)
        if tag == EXTRA_SAMPLES:
            if (kind, length) != (SHORT, 1):
                return data
            place = entry + entry_bytes - struct.calcsize(offset_code)
            return b"".join((data[:place], struct.pack(order + "H", STRAIGHT_ALPHA), data[place + 2 :]))
    return data
