"""Where pictures are stored: local folders, and remote object stores given by URL. `store_of` returns the right one.

A new kind of store costs one file with a class of `base.Store` and its line here.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from edgeconv.batch.stores.base import Store
from edgeconv.batch.stores.local import LocalStore

LOCAL_SCHEME = "file://"
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]+://")
"""At least two letters before the colon, so that a Windows drive is not mistaken for a URL."""


def is_remote(place: str) -> bool:
    """Whether `place` is a URL; one of a file here becomes a path by `plain` before it is asked."""
    return URL.match(place) is not None


def plain(place: str) -> str:
    """`file:///a%20b` as the path `/a b`; every other place unchanged."""
    return unquote(place.removeprefix(LOCAL_SCHEME)) if place.startswith(LOCAL_SCHEME) else place


def from_the_root(place: str) -> str:
    """The absolute place, for a process with another working directory."""
    return place if is_remote(place) else os.path.abspath(place)


def store_of(place: str) -> Store:
    """The store that holds `place`."""
    if is_remote(place):
        from edgeconv.batch.stores.remote import RemoteStore

        return RemoteStore()
    return LocalStore()
