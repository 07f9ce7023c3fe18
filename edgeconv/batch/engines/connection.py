"""Options for a Dask cluster besides its address. Does not import Dask."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from edgeconv.errors import UsageError

WORKER_TIMEOUT_SECONDS = 60.0
"""How long a batch waits without a worker by default."""


@dataclass(frozen=True)
class Certificates:
    """PEM files for TLS: the certificate authority, and the client's certificate and key."""

    ca: str
    cert: str
    key: str


@dataclass(frozen=True)
class Connection:
    """Options for a cluster besides its address."""

    certificates: Certificates | None = None
    """None leaves it to Dask's own configuration."""
    worker_timeout_seconds: float = WORKER_TIMEOUT_SECONDS
    tell: Callable[[str], None] = lambda text: None
    """Shows a line."""


NOTHING_SAID = Connection()


def parse_certificates(ca: str | None, cert: str | None, key: str | None) -> Certificates | None:
    """The three files of TLS, or None where none is named. Raises UsageError."""
    named = {"--tls-ca": ca, "--tls-cert": cert, "--tls-key": key}
    if not any(named.values()):
        return None
    for option, path in named.items():
        if path is None:
            raise UsageError(f"{option} is missing: --tls-ca, --tls-cert and --tls-key go together.")
        try:
            with open(path, "rb") as stream:
                if not os.path.isfile(path) or not stream.read(1):
                    raise OSError(0, "it is no file, or an empty one")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{option} '{path}' cannot be read: {reason}.") from None
    return Certificates(ca or "", cert or "", key or "")
