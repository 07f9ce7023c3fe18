"""Who gets at the workers of a batch: nobody but the batch; and how a cluster of somebody else's is reached by TLS."""

from __future__ import annotations

import os
import re
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
import pytest
from batch_folders import RULES, draw_photos
from command import edgeconv
from distributed import LocalCluster
from distributed.security import Security
from meet import patience

from edgeconv.batch.engines.cluster import VISIBLE, Seat, local_cluster

LINUX = pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="this system has no /proc/PID/net")
LISTENING = "0A"
"""The state of a socket in /proc/net/tcp. Source: the kernel's include/net/tcp_states.h."""
LOOPBACK_HEX = "0100007F"
"""127.0.0.1 as /proc/net/tcp of a little-endian machine has it."""
PARTS_OF_TLS = {"ca-file": "tls_ca_file", "client.cert": "tls_client_cert", "client.key": "tls_client_key"}


def listening(process: int) -> Iterator[tuple[str, int]]:
    """Address, as the kernel writes it, and port of every socket on which a process listens for TCP."""
    links = []
    for entry in os.scandir(f"/proc/{process}/fd"):
        try:
            links.append(os.readlink(entry.path))
        except OSError:  # closed meanwhile
            continue
    own = {found[1] for found in (re.match(r"socket:\[(\d+)\]", link) for link in links) if found}
    for kind in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{kind}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in own:
                address, _, port = fields[1].partition(":")
                yield address, int(port, 16)


def answers(port: int, context: ssl.SSLContext | None) -> bytes:
    """What somebody is told who connects as Dask's own client does, or asks over HTTP, until the other end closes.

    Whoever is neither told anything nor sent away is a failure here: that is a time that runs out.
    """
    told = b""
    for question in (b"\x0c\0\0\0\0\0\0\0" + b"\0" * 12, b"GET /info/main/workers.html HTTP/1.0\r\n\r\n"):
        with (
            suppress(ConnectionError, ssl.SSLError),
            socket.create_connection(("127.0.0.1", port), patience()) as plain,
            context.wrap_socket(plain) if context else plain as stream,
        ):
            stream.sendall(question)
            told += stream.recv(1000)
    return told


@pytest.mark.slow
@LINUX
def test_nobody_but_the_batch_gets_at_its_workers() -> None:
    """One worker as `--scheduler local` makes it, one as `--devices` does."""
    with_another_key = Security.temporary().get_connection_args("client")["ssl_context"]
    without_a_key = ssl._create_unverified_context()
    with local_cluster([Seat(1), Seat(1, {VISIBLE: "0"})], 60.0, print) as engine:
        workers = engine.client.run(os.getpid)
        sockets = {process: list(listening(process)) for process in (os.getpid(), *workers.values())}
        assert all(sockets.values()), "no process was seen to listen, so nothing was tested"
        assert {address for found in sockets.values() for address, _ in found} == {LOOPBACK_HEX}
        ports = {port for found in sockets.values() for _, port in found}
        parts = (engine.client.scheduler.address, *workers)
        assert all(part.startswith("tls://127.0.0.1:") for part in parts)
        assert {int(part.rpartition(":")[2]) for part in parts} <= ports
        own_key = engine.client.security.get_connection_args("client")["ssl_context"]
        for port in ports:
            assert b"HTTP/" not in answers(port, own_key)
            assert len(answers(port, own_key)) > 0
            for context in (None, without_a_key, with_another_key):
                assert answers(port, context) == b""


def test_without_the_library_that_makes_keys_no_cluster_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    photos = draw_photos(tmp_path / "photos")
    done = edgeconv("batch", photos, "-o", tmp_path / "out", *RULES, "--scheduler", "local")
    assert (done.code, len(done.error_lines)) == (4, 1), done.err
    assert "cryptography" in done.err
    assert "pip install '.[dask]'" in done.err
    assert not (tmp_path / "out").exists()


def configuration(folder: Path, security: Security) -> dict[str, str]:
    """Dask's configuration with the certificates as files."""
    files = {}
    for key, name in PARTS_OF_TLS.items():
        path = folder / f"{name}.pem"
        path.write_text(getattr(security, name), encoding="ascii")
        files[f"distributed.comm.tls.{key}"] = str(path)
    return files


@contextmanager
def a_cluster(security: Security) -> Iterator[str]:
    """A cluster with TLS that somebody else has started, by its address."""
    options: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": 50, "security": security}
    with LocalCluster(n_workers=1, threads_per_worker=1, protocol="tls://", **options) as running:
        yield running.scheduler_address


@pytest.mark.slow
def test_a_cluster_with_tls_is_reached_by_dasks_own_configuration(tmp_path: Path) -> None:
    photos = draw_photos(tmp_path / "photos")
    security = Security.temporary()
    with a_cluster(security) as address:
        with dask.config.set(configuration(tmp_path, security)):
            done = edgeconv("batch", photos, "-o", tmp_path / "out", *RULES, "--scheduler", address)
        assert (done.code, done.err) == (0, "")
        for settings, says in (
            ({}, "distributed.comm.tls"),
            (configuration(tmp_path, Security.temporary()), "does not answer"),
        ):
            with dask.config.set(settings):
                refused = edgeconv("batch", photos, "-o", tmp_path / "none", *RULES, "--scheduler", address)
            assert (refused.code, len(refused.error_lines)) == (4, 1), refused.err
            assert says in refused.err
    assert not (tmp_path / "none").exists()
