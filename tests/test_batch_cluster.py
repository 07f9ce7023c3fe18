"""`edgeconv batch --scheduler`: the files and the ledger of here, whatever becomes of workers and scheduler."""

from __future__ import annotations

import errno
import json
import logging
import os
import pickle
import re
import signal
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import dask
import pytest
from batch_folders import ROW, RULES, contents, draw_photos, held_batch, processor_for, run_here, settings_for
from command import edgeconv
from distributed import LocalCluster
from distributed.security import Security
from meet import patience, wait_until
from problems import random_image

from edgeconv.batch import engines, ledger
from edgeconv.batch.engines import cluster
from edgeconv.batch.engines.cluster import VISIBLE, local_cluster, parse_devices, seats_for
from edgeconv.batch.process import PictureProcessor
from edgeconv.batch.run import engine_for
from edgeconv.batch.stores import Task
from edgeconv.batch.summary import BatchSummary, PictureResult
from edgeconv.batch.tasks import Inputs, find
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.threads import usable_threads
from edgeconv.io.encoding import write_image
from edgeconv.options import Workers

PICTURES = 24
ONE_WORKER: dict[str, Any] = {"nthreads": 1}
TWO_WORKERS = [ONE_WORKER] * 2
TWO_PROCESSES = ("--scheduler", "local", "--jobs", "2")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for index in range(PICTURES):
        write_image(random_image(120, 90 + index, "uint8", index), folder / f"{index:03}.png")
    return folder


@contextmanager
def existing_cluster(**options: Any) -> Iterator[str]:
    """A cluster that somebody else has started, by its address."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50} | options
    with LocalCluster(processes=True, **options) as running:
        yield running.scheduler_address


def work_of(kind: type[PictureProcessor], photos: Path, out: Path) -> tuple[PictureProcessor, list[Task]]:
    """A processor of some kind and its tasks, without the batch around it, which would have made the folder."""
    out.mkdir(exist_ok=True)
    settings = settings_for(out, device="cpu")
    tasks = find(Inputs([photos]), str(out)).tasks
    return processor_for(settings, kind), tasks


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def inputs_in_ledger(out: Path) -> Counter[str]:
    return Counter(Path(row.input).name for row in ledger.read(out).rows)


def once_each(photos: Path) -> Counter[str]:
    return Counter(path.name for path in photos.iterdir())


def test_a_cluster_of_ones_own_gives_the_very_files_and_one_row_for_each(tmp_path: Path) -> None:
    photos = draw_photos(tmp_path / "photos")
    (photos / "bad.png").write_bytes(b"not a picture")
    here, there = tmp_path / "here", tmp_path / "there"
    assert edgeconv("batch", "photos", "-r", "-o", "here", *RULES, cwd=tmp_path).code == 1
    words = ("-r", "-o", "there", *RULES, *TWO_PROCESSES, "--json")
    done = edgeconv("batch", "photos", *words, cwd=tmp_path)
    summary = json.loads(done.text)
    assert (done.code, summary["done"], summary["failed"], summary["workers"]) == (1, 3, 1, 2)
    assert len(done.error_lines) == 1, done.err
    assert not logging.root.manager.disable
    assert contents(there) == contents(here)
    assert sorted(row.status for row in ledger.read(there).rows) == ["done", "done", "done", "failed"]
    assert summary["peak_bytes"]["cpu"] > 2**20
    assert edgeconv("verify", there).code == 0
    again = edgeconv("batch", "photos", *words, "--resume", cwd=tmp_path)
    assert json.loads(again.text)["skipped"] == 3


class Mortal(PictureProcessor):
    """Ends every process that takes one certain picture, and once after the output of another is written."""

    def process(self, tasks: list[Task]) -> list[PictureResult]:
        if tasks[0].path.stem == "007":
            os._exit(9)
        results = super().process(tasks)
        mark = Path(tasks[0].source).parent.parent / "died"
        if tasks[0].path.stem == "013" and not mark.exists():
            mark.touch()
            os._exit(9)
        return results


@pytest.mark.slow
def test_a_picture_that_ends_every_worker_fails_alone_and_a_worker_that_dies_costs_nothing(photos: Path) -> None:
    """Also where no worker starts again as soon as Dask would have it."""
    expected, out = photos.parent / "expected", photos.parent / "out"
    run_here([photos], expected)
    work, tasks = work_of(Mortal, photos, out)
    recorded: list[PictureResult] = []
    impatient = {"distributed.scheduler.allowed-failures": 2, "distributed.deploy.lost-worker-timeout": 0}
    with dask.config.set(impatient), local_cluster(TWO_WORKERS, 60.0, print) as engine:
        seen = list(engine.run(work, tasks, lambda: False, recorded.append))
    assert (photos.parent / "died").exists()
    assert seen == recorded
    assert Counter(Path(result.row.input).name for result in recorded) == once_each(photos)
    (failed,) = (result.row for result in recorded if result.row.status != "done")
    assert "007.png: every worker that had this picture terminated" in str(failed.error)
    assert failed.input_realpath == os.path.realpath(photos / "007.png")
    assert contents(out) == {name: data for name, data in contents(expected).items() if not name.startswith("007")}


@pytest.mark.slow
def test_what_a_batch_itself_fails_with_is_not_said_of_the_cluster(photos: Path) -> None:
    """Such as a ledger on a full disk, which is an error of the system as a lost connection is."""
    work, tasks = work_of(PictureProcessor, photos, photos.parent / "out")

    def refuse(result: PictureResult) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with local_cluster(TWO_WORKERS, 60.0, print) as engine, pytest.raises(OSError, match="No space left"):
        list(engine.run(work, tasks, lambda: False, refuse))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_finishes_what_the_workers_have_in_hand(photos: Path, number: signal.Signals) -> None:
    """It comes when the first picture is done: two workers have two each by then."""
    out = photos.parent / "out"
    with held_batch(photos, out, *TWO_PROCESSES, point=ROW) as child:
        child.arrived()
        if number == signal.SIGINT:
            os.killpg(child.process.pid, number)  # as a terminal does: the workers hear it too
        else:
            child.process.send_signal(number)
        assert "once more" in child.line()
        child.let_go()
        assert child.process.wait() == 128 + number, child.errors()
    rows = ledger.read(out).rows
    assert len(rows) == 4
    assert set(contents(out)) == {row.output for row in rows}
    assert edgeconv("verify", out).code == 0


@pytest.mark.slow
def test_a_client_that_is_killed_resumes_to_the_same_bytes(photos: Path) -> None:
    expected, out = photos.parent / "expected", photos.parent / "out"
    run_here([photos], expected)
    with held_batch(photos, out, *TWO_PROCESSES, point=ROW, at=3) as child:
        child.arrived()
        child.process.kill()
        child.process.wait()
        wait_until(lambda: not group_lives(child.process.pid))  # the workers, which are of its group, notice it
    assert len(ledger.read(out).rows) == 2
    assert [name for name in contents(out) if name.startswith(".edgeconv-")]
    assert edgeconv("batch", photos, "-o", out, *RULES, "--resume").code == 0
    assert contents(out) == contents(expected)
    assert edgeconv("verify", out).code == 0


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_one_line_and_loses_nothing(photos: Path) -> None:
    out = photos.parent / "out"
    running = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    gone: list[bool] = []

    def leave(now: BatchSummary) -> None:
        if now.finished > 2 and not gone:
            gone.append(True)
            running.close()

    with (
        cluster.connected_to(running.scheduler_address, 60.0, print) as engine,
        pytest.raises(UnavailableError, match="went away"),
    ):
        run_here([photos], out, engine=engine, watch=leave)
    rows = {row.output for row in ledger.read(out).rows}
    assert len(rows) > 2
    assert run_here([photos], out, resume=True).failures == []
    assert inputs_in_ledger(out) == once_each(photos)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n_workers": 1, "preload": ["import sys; sys.modules['edgeconv'] = None"]}, "lacks edgeconv"),
        ({"n_workers": 1, "preload": ["import edgeconv; edgeconv.__version__ = '0.0.9'"]}, "edgeconv 0.0.9"),
        ({"n_workers": 0}, "no workers"),
    ],
    ids=["without edgeconv", "with another edgeconv", "without workers"],
)
def test_a_cluster_that_cannot_help_gets_one_line(photos: Path, options: dict[str, Any], says: str) -> None:
    with existing_cluster(**options) as address:
        done = edgeconv("batch", photos, "-o", photos.parent / "out", *RULES, "--scheduler", address)
    assert (done.code, says in done.error_lines[-1]) == (4, True), done.err
    assert [line for line in done.error_lines[:-1] if "without TLS" not in line] == []
    assert not (photos.parent / "out").exists()


def test_without_dask_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, cluster.__name__)
    monkeypatch.delattr(engines, "cluster")
    with pytest.raises(UnavailableError, match=r"pip install '\.\[dask\]'"):
        engine_for(Workers(scheduler="local"), "cpu", 3, print)


def test_gpus_are_named_by_number_among_those_that_are_visible() -> None:
    gpus = ["2", "GPU-5"]
    assert parse_devices("all", gpus) == gpus
    assert parse_devices("1", gpus) == ["GPU-5"]
    for text in ("", "0,0", "a", "-1"):
        with pytest.raises(UsageError):
            parse_devices(text, gpus)
    with pytest.raises(UnavailableError, match="from 0 to 1"):
        parse_devices("2", gpus)
    with pytest.raises(UnavailableError):
        parse_devices("all", [])


@pytest.mark.slow
def test_a_worker_has_a_gpu_of_its_own_and_its_share_of_the_threads(photos: Path) -> None:
    seats = seats_for(["4", "7"], jobs=6, pictures=100)
    assert seats == [{"nthreads": 3, "env": {VISIBLE: gpu}} for gpu in "47"]
    assert seats_for(["0", "1"], jobs=None, pictures=1) == [{"nthreads": 1, "env": {VISIBLE: gpu}} for gpu in "01"]
    assert seats_for([], jobs=None, pictures=100) == [ONE_WORKER] * usable_threads()
    with local_cluster(seats, 60.0, print) as engine:
        assert engine.workers == 6
        assert sorted(engine.client.run(os.getenv, VISIBLE).values()) == ["4", "7"]
        assert run_here([photos], photos.parent / "out", engine=engine).done == PICTURES


def test_a_list_that_is_processed_twice_in_one_worker_gives_the_same_files(photos: Path) -> None:
    """As Dask repeats a call; the stages take the whole list, pictures of one shape among them."""
    expected, out = photos.parent / "expected", photos.parent / "out"
    write_image(random_image(120, 90, "uint8", 99), photos / "000 again.png")
    run_here([photos], expected)
    work, tasks = work_of(PictureProcessor, photos, out)
    results = [result for _ in range(2) for result in work.process(pickle.loads(pickle.dumps(tasks)))]
    assert [each.row.error for each in results if each.row.status != "done"] == []
    assert len(results) == 2 * (PICTURES + 1)
    assert contents(out) == contents(expected)


# --- no worker is left, or the scheduler no longer answers ----------------------------------------------------------


@pytest.fixture
def running() -> Any:
    options = {"dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=1, threads_per_worker=1, **options) as started:
        yield started


def send_workers_away(running: Any) -> None:
    running.scale(0)
    wait_until(lambda: not running.scheduler.workers)


def test_the_wait_for_a_worker_begins_anew_with_each_that_comes_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only waiting moves on: a worker comes after 50 seconds and goes 5 seconds later."""
    now = [0.0]

    def wait_in_vain(calls: list[Any], seconds: float, until: str) -> None:
        now[0] += seconds
        raise TimeoutError

    monkeypatch.setattr(cluster, "wait", wait_in_vain)
    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: now[0]))
    client = MagicMock(**{"run.return_value": {"worker": None}})
    client.nthreads.side_effect = lambda **_: {"worker": 1} if 50 <= now[0] < 55 else {}
    said: list[str] = []
    engine = cluster.Cluster(client, "The cluster", 1, 60.0, said.append)
    work, tasks = work_of(PictureProcessor, draw_photos(tmp_path / "photos"), tmp_path / "out")
    with pytest.raises(UnavailableError, match=r"no worker for 60 s .*--resume"):
        list(engine.run(work, tasks, lambda: False, lambda result: None))
    assert now[0] == 55 - cluster.LOOK_SECONDS + 60
    assert [line.partition(";")[0] for line in said] == ["no worker is left in the cluster"] * 2


@pytest.mark.slow
def test_one_interrupt_ends_a_batch_whose_workers_are_gone(photos: Path, running: Any) -> None:
    out = photos.parent / "out"
    with held_batch(photos, out, "--scheduler", running.scheduler_address, point=ROW) as child:
        child.arrived()
        assert "without TLS" in child.line()
        send_workers_away(running)
        child.let_go()
        assert "no worker is left in the cluster" in child.line()
        child.process.send_signal(signal.SIGINT)
        assert child.process.wait() == 128 + signal.SIGINT
        assert "once more" in child.errors()
    assert len(ledger.read(out).rows) in (1, 2)


# --- who gets at the workers: nobody but the batch; and TLS -------------


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
def test_nobody_but_the_batch_gets_at_its_workers() -> None:
    """One worker as `--scheduler local` makes it, one as `--devices` does."""
    with_another_key = Security.temporary().get_connection_args("client")["ssl_context"]
    without_a_key = ssl._create_unverified_context()
    with local_cluster([ONE_WORKER, ONE_WORKER | {"env": {VISIBLE: "0"}}], 60.0, print) as engine:
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


@pytest.mark.slow
def test_a_cluster_with_tls_is_reached_by_dasks_own_configuration(tmp_path: Path) -> None:
    photos = draw_photos(tmp_path / "photos")
    security = Security.temporary()
    with existing_cluster(n_workers=1, protocol="tls://", security=security) as address:
        with dask.config.set(configuration(tmp_path, security)):
            done = edgeconv("batch", "photos", "-o", "out", *RULES, "--scheduler", address, cwd=tmp_path)
        assert (done.code, done.err, len(contents(tmp_path / "out"))) == (0, "", 2)
        for settings, says in (
            ({}, "distributed.comm.tls"),
            (configuration(tmp_path, Security.temporary()), "does not answer"),
        ):
            with dask.config.set(settings):
                refused = edgeconv("batch", photos, "-o", tmp_path / "none", *RULES, "--scheduler", address)
            assert (refused.code, len(refused.error_lines)) == (4, 1), refused.err
            assert says in refused.err
    assert not (tmp_path / "none").exists()


def test_log_lines_are_silent_within_the_block_alone() -> None:
    before = logging.root.manager.disable
    with cluster.quiet():
        assert not logging.getLogger("distributed").isEnabledFor(logging.CRITICAL)
    assert logging.root.manager.disable == before
