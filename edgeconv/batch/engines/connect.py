"""Connecting to a Dask cluster, with one clear message for each thing that can be missing."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgeconv.batch.engines.base import NOTHING_SAID, Connection
from edgeconv.batch.engines.cluster import Cluster
from edgeconv.core.optional import install
from edgeconv.errors import UnavailableError, one_line

INSTALL = install("dask")
CONNECT_SECONDS = 10

TLS_SCHEME = "tls://"
ENCRYPTED_SCHEMES = (TLS_SCHEME, "wss://", "inproc://")
"""Of Dask's addresses: what goes through these no stranger reads or writes."""


def refuse_without_dask(option: str) -> None:
    """Raise UnavailableError where Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise UnavailableError(f"{option} needs Dask: {INSTALL}.") from None


def temporary_security() -> Any:
    """TLS with a key and a certificate that are made now, held in memory, and good for both sides.

    Raises UnavailableError where the library that makes them is not installed.
    """
    from distributed.security import Security

    try:
        return Security.temporary()
    except ImportError:
        raise UnavailableError(
            f"A cluster on this machine needs 'cryptography', so that no other user can connect to it: {INSTALL}."
        ) from None


@contextmanager
def connected_to(address: str, how: Connection) -> Iterator[Cluster]:
    """An engine of the cluster whose scheduler is at `address`. Raises UnavailableError.

    Certificates are those of Dask's own configuration.
    """
    warning = None
    if not address.startswith(ENCRYPTED_SCHEMES):
        warning = (
            f"the Dask scheduler at {address} is reached without TLS: anyone who can connect to it can run code on its "
            "workers and see the pictures; see docs/batch.md for TLS"
        )
    with connected(address, f"The Dask scheduler at {address}", 1, how, warning) as engine:
        yield engine


@contextmanager
def connected(
    to: Any, name: str, threads_each: int, how: Connection = NOTHING_SAID, warning: str | None = None
) -> Iterator[Cluster]:
    """An engine of the cluster `to` (an address, or a cluster of Dask's). Raises UnavailableError."""
    from distributed import Client

    with quiet():
        try:
            client = Client(to, timeout=CONNECT_SECONDS)
        except (OSError, ValueError, TypeError) as error:  # TypeError: an address of TLS, and no certificates for it
            reason = one_line(error)
            if isinstance(to, str) and to.startswith(TLS_SCHEME):
                way_out = "check the address, and distributed.comm.tls in Dask's configuration"
            else:
                way_out = "check the address, and whether it wants TLS"
            raise UnavailableError(f"{name} does not answer ({reason}): {way_out}.") from None
        with client:
            yield Cluster(client, name, threads_each, how, warning)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Dask's log lines, and what it says of a busy machine: errors are reported by our own one-line message."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Creating scratch directories")
            yield
    finally:
        logging.disable(before)
