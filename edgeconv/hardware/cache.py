"""What one process found out, for the next: small files of the user's own.

    a folder    EDGECONV_CACHE, else one in the user's caches; used only where it is the user's, and closed to others
    an entry    one file: what it is, a hash of key and payload, the payload; written beside its place and renamed there

Nothing here raises an error. Without a folder, or with an entry that is not whole, `read` gives None, and the caller
finds the answer out again. Entries are bytes for the caller to check, never pickles.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

VARIABLE, OFF = "EDGECONV_CACHE", ("", "0", "off")
HEADER = b"edgeconv cache 1\n"
DIGEST_BYTES = 32
MAX_ENTRY_BYTES = 4 * 2**20
MAX_BYTES = 64 * 2**20
"""Of all entries; the oldest go first."""
_OPENED = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def folder() -> Path | None:
    """Where entries are; None where there is none: turned off, no home, another user's, or open to others."""
    named = os.environ.get(VARIABLE)
    if named in OFF:
        return None
    if sys.platform == "win32":
        above = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        above = os.path.expanduser("~/Library/Caches")
    else:
        above = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = Path(named or os.path.join(above or "", "edgeconv"))
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        return place if named or place.is_absolute() else None
    except OSError:
        return None
    return place if stat.S_ISDIR(found.st_mode) and _is_own(found) else None


def read(key: str) -> bytes | None:
    """The payload of the entry of that key; None where there is none that is whole."""
    place = folder()
    if place is None:
        return None
    try:
        with os.fdopen(os.open(place / _name(key), _OPENED), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or not _is_own(found):
                return None
            data = file.read(MAX_ENTRY_BYTES + 1)
    except OSError:
        return None
    start = len(HEADER) + DIGEST_BYTES
    payload = data[start:]
    return payload if data[:start] == HEADER + _digest(key, payload) else None


def write(key: str, payload: bytes) -> None:
    """Keep an entry, if that can be."""
    place = folder()
    data = HEADER + _digest(key, payload) + payload
    if place is None or len(data) > MAX_ENTRY_BYTES:
        return
    from tempfile import mkstemp  # only here, and not for every start

    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        descriptor, made = mkstemp(dir=place)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(made, place / _name(key))
        except BaseException:
            with suppress(OSError):
                os.unlink(made)
            raise
        kept = 0
        for _, size, path in sorted(_entries(place), reverse=True):
            kept += size
            if kept > MAX_BYTES:
                os.unlink(path)


def held() -> tuple[int, int]:
    """How many entries there are, and their bytes."""
    place = folder()
    with suppress(OSError):
        if place is not None:
            sizes = [size for _, size, _ in _entries(place)]
            return len(sizes), sum(sizes)
    return 0, 0


def _entries(place: Path) -> list[tuple[int, int, str]]:
    """Time of change, bytes and path of each."""
    return [(found.stat().st_mtime_ns, found.stat().st_size, found.path) for found in os.scandir(place)]


def _is_own(found: os.stat_result) -> bool:
    """Whether a folder or file is this user's and closed to all others, where a system has users."""
    return not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & 0o077)


def _name(key: str) -> str:
    return blake2b(key.encode(), digest_size=20).hexdigest()


def _digest(key: str, payload: bytes) -> bytes:
    return blake2b(payload, digest_size=DIGEST_BYTES, key=blake2b(key.encode()).digest()).digest()
