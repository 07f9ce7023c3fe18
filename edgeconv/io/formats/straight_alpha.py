"""TIFFs with an extra sample, rewritten so that every version of Pillow decodes them without changing their colours.

Beside the colours a TIFF may hold one more sample per pixel: premultiplied alpha, straight alpha, or something
unspecified. edgeconv drops it in any case. Pillow divides colours by premultiplied alpha (in separate planes even when
asked not to), supports grey with premultiplied or unspecified alpha only from version 13 on, and straight alpha in
every layout since 10: so it is given the same file with that one number changed. Source: TIFF 6.0, ExtraSamples.
"""

from __future__ import annotations

import struct

from edgeconv.io.formats.tiff import BIG, EXTRA_SAMPLES, STRAIGHT_ALPHA

SHORT = 3
"""The type of the field, by the standard."""


def with_straight_alpha(data: bytes) -> bytes:
    """The file with its one extra sample declared as straight alpha; unchanged where it has none or several.

    The first directory of `data` must have been validated before.
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
