"""How large this machine's caches are."""

from __future__ import annotations

from edgeconv.hardware.system_files import read_system_file

KIBIBYTE = 1024
CACHE_LINE_BYTES = 64
MAX_CACHES = 8
"""Of a core; four are usual."""


def last_level_cache_bytes() -> int | None:
    """Size of the first core's largest cache, where Linux tells it (`32768K`)."""
    files = (f"/sys/devices/system/cpu/cpu0/cache/index{number}/size" for number in range(MAX_CACHES))
    sizes = ((read_system_file(file) or "").strip() for file in files)
    known = (int(size[:-1]) for size in sizes if size.endswith("K") and size[:-1].isdecimal())
    return max((size * KIBIBYTE for size in known), default=None)
