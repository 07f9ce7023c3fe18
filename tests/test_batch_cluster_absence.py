"""A cluster that has no worker left, or whose scheduler no longer answers: said, waited for, and ended."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from concurrent.futures import CancelledError
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from batch_folders import ROW, RULES, contents, held_batch, run_here, settings_for
from command import edgeconv
from distributed import LocalCluster
from meet import wait_until
from problems import random_image

from edgeconv.batch import ledger, plan
from edgeconv.batch.engines import cluster, connect
from edgeconv.batch.engines.cluster import Absence, Cluster
from edgeconv.batch.engines.connection import Connection
from edgeconv.batch.engines.dask_worker import Terms
from edgeconv.batch.pipeline import Batch
from edgeconv.batch.stores import store_of
from edgeconv.batch.summary import Summary
from edgeconv.batch.task import Task
from edgeconv.errors import UnavailableError
from edgeconv.io import temporary_files
from edgeconv.io.image import write_image

POSIX_SIGNALS = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
PICTURES = 8


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for index in range(PICTURES):
        write_image(random_image(20, 30, "uint8", index), folder / f"{index:03}.png")
    return folder


@pytest.fixture
def running() -> Any:
    options = {"dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=1, threads_per_worker=1, **options) as started:
        yield started


class ClosedClientError(Exception):
    """As Dask's of 2025, which is no more than an Exception; earlier versions raise that itself."""


class Closed:
    """A client whose scheduler is gone: one of the things that it is asked raises, as Dask's versions do."""

    status = "closed"

    def __init__(self, request: str, error: BaseException) -> None:
        self._request, self._error = request, error

    def _ask(self, request: str, answer: Any) -> Any:
        if request == self._request:
            raise self._error
        return answer

    def nthreads(self, **words: Any) -> dict[str, int]:
        return self._ask("nthreads", {"worker": 1})

    def submit(self, *words: Any, **more: Any) -> Closed:
        return self._ask("submit", self)

    def exception(self, timeout: float) -> None:
        return self._ask("exception", None)

    def result(self, timeout: float) -> None:
        return self._ask("result", None)

    def wait(self, *words: Any) -> Any:
        return self._ask("wait", SimpleNamespace(done=[]))

    def sync(self, *words: Any, **more: Any) -> None:
        return self._ask("cancel", None)

    _cancel = None


@pytest.mark.parametrize("error", [OSError(), CancelledError(), ClosedClientError(), Exception("closed")], ids=repr)
@pytest.mark.parametrize("request_name", ["nthreads", "submit", "exception", "result", "wait", "cancel"])
def test_whatever_is_asked_of_a_scheduler_that_is_gone_is_the_same_error(
    monkeypatch: pytest.MonkeyPatch, request_name: str, error: BaseException
) -> None:
    engine = Cluster(Closed("nothing", error), "The scheduler", 1)
    engine.client = Closed(request_name, error)
    monkeypatch.setattr("distributed.wait", engine.client.wait)
    asked = {
        "nthreads": engine._threads,
        "submit": lambda: engine._submit("look", ()),
        "exception": lambda: engine._result(engine.client),
        "result": lambda: engine._result(engine.client),
        "wait": lambda: engine._over([]),
    }
    task = Task("a.png", PurePosixPath("a.png"), "a.png")

    def in_a_batch() -> None:
        monkeypatch.setattr(engine, "_finished", lambda calls, stopped: asked.get(request_name, gone)())
        list(engine._outcomes(Terms(()), None, iter([task]), lambda: False, lambda outcome: None))

    def gone() -> None:
        raise engine._gone()

    for call in (asked.get(request_name, gone), in_a_batch):
        with pytest.raises(UnavailableError, match="The scheduler went away: start it again"):
            call()


def send_workers_away(running: Any) -> None:
    running.scale(0)
    wait_until(lambda: not running.scheduler.workers)


def test_an_absence_is_said_once_and_is_over_with_the_first_worker() -> None:
    told: list[str] = []
    now = 100.0
    absence = Absence(60.0, told.append, lambda: now)
    for seconds, threads, over_long, lines in (
        (0, 2, False, 0),
        (1, 0, False, 0),
        (5.5, 0, False, 0),
        (6, 0, False, 1),
        (30, 0, False, 1),
        (40, 1, False, 2),
        (41, 0, False, 2),
        (100.5, 0, False, 3),
        (101, 0, True, 3),
    ):
        now = 100.0 + seconds
        assert (absence.is_over_long(threads), len(told)) == (over_long, lines), seconds
    assert told[0] == "no worker is left in the cluster; waiting 55 s for one (--worker-timeout)"
    assert told[1] == "the cluster has workers again"


def test_a_timeout_of_zero_fails_at_once_and_is_said() -> None:
    told: list[str] = []
    assert Absence(0.0, told.append, lambda: 1.0).is_over_long(0)
    assert len(told) == 1


class Silent:
    """A client of a scheduler that takes questions and never answers."""

    def nthreads(self, callback_timeout: float) -> dict[str, int]:
        raise TimeoutError


def test_a_scheduler_that_does_not_answer_has_no_workers() -> None:
    engine = Cluster.__new__(Cluster)
    engine.client = Silent()
    assert engine._threads() == 0


@pytest.mark.slow
def test_pictures_for_which_no_worker_comes_fail_and_a_resume_does_them(photos: Path, running: Any) -> None:
    """The only worker goes when one picture is done and another may be."""
    expected, out = photos.parent / "expected", photos.parent / "out"
    run_here([photos], expected)
    told: list[str] = []
    how = Connection(worker_timeout_seconds=0.0, tell=told.append)

    def leave(now: Summary) -> None:
        if now.finished == 1:
            send_workers_away(running)

    with connect.connected(running.scheduler_address, "The scheduler", 1, how) as engine:
        summary = Batch(plan.find_tasks([photos], False, out).tasks, settings_for(out), engine).run(leave)
    assert len(told) == 1
    assert "no worker is left" in told[0]
    assert summary.done + summary.failed == PICTURES
    assert summary.done in (1, 2)
    assert all("--worker-timeout" in error and "--retry-failed" in error for _, error in summary.failures)
    rows = Counter(Path(row.input).name for row in ledger.read_rows(out))
    assert rows == Counter(path.name for path in photos.iterdir())
    again = run_here([photos], out, resume=True, retry_failed=True)
    assert (again.failed, again.done + again.skipped) == (0, PICTURES)
    assert contents(out) == contents(expected)


@pytest.mark.slow
@POSIX_SIGNALS
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
    assert len(ledger.read_rows(out)) in (1, 2)


@pytest.mark.slow
def test_the_command_ends_with_one_where_no_worker_came(
    photos: Path, running: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers are there for the first questions and gone for the first picture."""
    whole = Cluster._outcomes

    def without_workers(self: Cluster, *words: Any) -> Any:
        send_workers_away(running)
        return whole(self, *words)

    monkeypatch.setattr(Cluster, "_outcomes", without_workers)
    out = photos.parent / "out"
    words = ("--scheduler", running.scheduler_address, "--worker-timeout", "0")
    done = edgeconv("batch", photos, "-o", out, *RULES, *words)
    assert done.code == 1
    without_tls, absent, *failed = done.error_lines
    assert "without TLS" in without_tls
    assert "no worker is left" in absent
    assert len(failed) == PICTURES


@POSIX_SIGNALS
def test_a_killed_batch_leaves_nothing_behind_in_a_remote_store_either(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    output = "memory://bucket/out"
    store = store_of(output)
    alive = temporary_files.new_name()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 2**22 + 1)  # above every process id of Linux
        dead = temporary_files.new_name()
    for name in (alive, dead, "picture.png"):
        store.write(store.join(output, name), b"x")
    with cluster._token_in(output, "host") as terms:
        assert terms.token is not None
        assert sorted(store.names(output)) == sorted([alive, "picture.png", terms.token.rpartition("/")[2]])
    assert sorted(store.names(output)) == sorted([alive, "picture.png"])
