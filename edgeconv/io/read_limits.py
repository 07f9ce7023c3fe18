"""How pictures are read: what is refused, and as how many channels, the same for every command and in Python.

max_pixels    height × width as the header states them, refused before a pixel is decoded, or a large file read
max_bytes     of the file or stream, refused before or while it is read
strict        warnings of a decoder that reads the picture nevertheless are errors, not notes
rgb           grey is read as three equal channels
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MAX_PIXELS = 2**28
"""16384×16384: larger headers are refused before pixels are allocated, unless the caller raises the limit."""

DEFAULT_MAX_BYTES = 2**32
"""4 GiB: an RGB picture of `DEFAULT_MAX_PIXELS` in plain float32, the largest that both limits should let through,
takes 3 GiB."""


@dataclass(frozen=True)
class ReadRules:
    """What is refused, and whether grey becomes RGB."""

    max_pixels: int = DEFAULT_MAX_PIXELS
    max_bytes: int = DEFAULT_MAX_BYTES
    strict: bool = False
    rgb: bool = False


DEFAULT_RULES = ReadRules()
