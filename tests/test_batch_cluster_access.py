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

from edgeconv.batch.engines import local_cluster
from edgeconv.batch.engines.local_cluster import VISIBLE, Seat

LINUX = pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="this system has no /proc/PID/net")
LISTENING = "0A"
"""The state of a socket in /proc/net/tcp. Source: the kernel's include/net/tcp_states.h."""
LOOPBACK_HEX = "0100007F"
"""127.0.0.1 as /proc/net/tcp of a little-endian machine has it."""
PARTS_OF_TLS = {
    "--tls-ca": ("tls_ca_file", "distributed.comm.tls.ca-file"),
    "--tls-cert": ("tls_client_cert", "distributed.comm.tls.client.cert"),
    "--tls-key": ("tls_client_key", "distributed.comm.tls.client.key"),
}


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
    with local_cluster.local_cluster([Seat(1), Seat(1, {VISIBLE: "0"})]) as engine:
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


def certificates(folder: Path, security: Security) -> dict[str, str]:
    """Files by the option that names them."""
    files = {}
    for option, (name, _) in PARTS_OF_TLS.items():
        path = folder / f"{option.lstrip('-')}.pem"
        path.write_text(getattr(security, name), encoding="ascii")
        files[option] = str(path)
    return files


@contextmanager
def a_cluster(security: Security | None = None) -> Iterator[str]:
    """A cluster that somebody else has started, with TLS or without, by its address."""
    options: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": 50, "security": security}
    protocol = "tcp://" if security is None else "tls://"
    with LocalCluster(n_workers=1, threads_per_worker=1, protocol=protocol, **options) as running:
        yield running.scheduler_address


@pytest.mark.slow
def test_certificates_are_never_left_out_where_a_cluster_has_no_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeconv.batch.engines.connect.CONNECT_SECONDS", 1)  # it never answers
    photos = draw_photos(tmp_path / "photos")
    options = [word for pair in certificates(tmp_path, Security.temporary()).items() for word in pair]
    with a_cluster() as address:
        for place, code, says in (
            (address, 2, "write tls://HOST:PORT"),
            (address.removeprefix("tcp://"), 4, "does not answer"),
        ):
            done = edgeconv("batch", photos, "-o", tmp_path / "out", *RULES, "--scheduler", place, *options)
            assert (done.code, len(done.error_lines)) == (code, 1), done.err
            assert says in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_cluster_with_tls_is_reached_by_options_or_by_dasks_own_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = draw_photos(tmp_path / "photos")
    security = Security.temporary()
    files = certificates(tmp_path, security)
    with a_cluster(security) as address:
        options = [word for pair in files.items() for word in pair]
        for number, place in enumerate((address, address.removeprefix("tls://"))):
            words = ("batch", photos, "-o", tmp_path / f"out{number}", *RULES, "--scheduler", place)
            done = edgeconv(*words, *options)
            assert (done.code, done.err) == (0, "")
        with dask.config.set({name: files[option] for option, (_, name) in PARTS_OF_TLS.items()}):
            done = edgeconv("batch", photos, "-o", tmp_path / "configured", *RULES, "--scheduler", address)
            assert (done.code, done.err) == (0, "")
        refused = edgeconv("batch", photos, "-o", tmp_path / "none", *RULES, "--scheduler", address)
        assert (refused.code, len(refused.error_lines)) == (4, 1), refused.err
        assert "--tls-ca, --tls-cert and --tls-key" in refused.err
        certificates(tmp_path, Security.temporary())
        refused = edgeconv("batch", photos, "-o", tmp_path / "none", *RULES, "--scheduler", address, *options)
        assert (refused.code, len(refused.error_lines)) == (4, 1), refused.err
        assert "does not answer" in refused.err
    assert not (tmp_path / "none").exists()
