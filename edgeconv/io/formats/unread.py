"""Formats that edgeconv does not read, told by their first bytes, so that an error names what was met."""

from __future__ import annotations

UNREAD: tuple[tuple[str, int, bytes], ...] = (
    ("HEIC", 4, b"ftyphei"),
    ("HEIC", 4, b"ftyphev"),
    ("HEIF", 4, b"ftypmif1"),
    ("JPEG XL", 0, b"\xff\x0a"),
    ("JPEG XL", 0, b"\x00\x00\x00\x0cJXL "),
    ("JPEG 2000 without its file", 0, b"\xff\x4f\xff\x51"),
    ("PDF", 0, b"%PDF"),
    ("SVG", 0, b"<svg"),
    ("XML (SVG?)", 0, b"<?xml"),
    ("Photoshop", 0, b"8BPS"),
    ("OpenEXR", 0, b"\x76\x2f\x31\x01"),
    ("Radiance HDR", 0, b"#?RADIANCE"),
    ("PAM", 0, b"P7"),
    ("PFM", 0, b"PF\n"),
    ("QOI", 0, b"qoif"),
    ("DDS", 0, b"DDS "),
    ("FITS", 0, b"SIMPLE  ="),
)
"""(name, offset, bytes): the first that matches; those that say more stand before those that say less."""


def name_of(data: bytes) -> str | None:
    """What a file is that no reader is for, or None where its first bytes tell nothing."""
    return next((name for name, place, signature in UNREAD if data.startswith(signature, place)), None)
