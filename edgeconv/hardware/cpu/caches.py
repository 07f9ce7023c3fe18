"""How large this machine's caches are."""

from __future__ import annotations

from edgeconv.hardware.system_files import read_system_file, system_files

KIBIBYTE = 1024


def last_level_cache_bytes() -> int | None:
    """Size of the first core's largest cache, where Linux tells it (`32768K`)."""
    sizes = []
    for path in system_files("/sys/devices/system/cpu/cpu0/cache", "index*/size"):
        text = (read_system_file(path) or "").strip()
        if text.endswith("K") and text[:-1].isdecimal():
            sizes.append(int(text[:-1]) * KIBIBYTE)
    return max(sizes, default=None)
