"""How large this machine's caches are."""

from __future__ import annotations

from collections.abc import Iterator

from edgeconv.hardware.system_files import read_system_file

KIBIBYTE = 1024
CACHE_LINE_BYTES = 64
USUAL_L1_BYTES = 32 * KIBIBYTE
MAX_CACHES = 8
"""Of a core; four are usual."""


def last_level_cache_bytes() -> int | None:
    """Size of the first core's largest cache, where Linux tells it (`32768K`)."""
    return max((size for _, size in _caches()), default=None)


def l1_bytes() -> int:
    """Size of the first core's L1 cache for data; the usual one where nobody tells."""
    return next((size for kind, size in _caches() if kind == ("1", "Data")), USUAL_L1_BYTES)


def _caches() -> Iterator[tuple[tuple[str, str], int]]:
    """Level and type of each of the first core's caches, and its size."""
    for number in range(MAX_CACHES):
        folder = f"/sys/devices/system/cpu/cpu0/cache/index{number}"
        level, kind, text = ((read_system_file(f"{folder}/{name}") or "").strip() for name in ("level", "type", "size"))
        if text.endswith("K") and text[:-1].isdecimal():
            yield (level, kind), int(text[:-1]) * KIBIBYTE
