"""The way to a Dask cluster, with one clear line for each thing that can be missing on it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgeconv.batch.engines.cluster import Cluster
from edgeconv.errors import UnavailableError

INSTALL = "pip install 'edgeconv[dask]'"
CONNECT_SECONDS = 10


def refuse_without_dask(option: str) -> None:
    """Raise UnavailableError where Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise UnavailableError(f"{option} needs Dask: {INSTALL}.") from None


@contextmanager
def connected(to: Any, name: str, threads_each: int) -> Iterator[Cluster]:
    """An engine of the cluster `to` (an address, or a cluster of Dask's). Raises UnavailableError."""
    from distributed import Client

    with quiet():
        try:
            client = Client(to, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise UnavailableError(f"{name} does not answer ({reason}): check the address.") from None
        with client:
            yield Cluster(client, name, threads_each)


@contextmanager
def quiet() -> Iterator[None]:
    """No log lines of Dask's on the screen: what matters comes back as our one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
