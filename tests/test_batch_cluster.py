"""`edgeconv batch --scheduler`: the same files and the same ledger as here, whatever becomes of the workers."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import pytest
from batch_folders import ROW, RULES, contents, draw_photos, held_batch, run_here, settings_for
from command import edgeconv
from distributed import LocalCluster
from meet import wait_until
from problems import random_image

from edgeconv.batch import ledger, plan
from edgeconv.batch.engines import cluster, connect, dask_worker, engine_for, local_cluster
from edgeconv.batch.engines.local_cluster import VISIBLE, Seat, parse_devices, seats_for
from edgeconv.batch.pipeline import Batch
from edgeconv.batch.previous_results import PreviousResults
from edgeconv.batch.summary import PictureResult, Summary
from edgeconv.batch.task import Task
from edgeconv.batch.worker import PictureWorker
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.threads import usable_threads
from edgeconv.io.image import write_image

PICTURES = 24
TWO_WORKERS = [Seat(1), Seat(1)]
TWO_PROCESSES = ("--scheduler", "local", "--jobs", "2")
POSIX_SIGNALS = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


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


def run_there(photos: Path, out: Path, engine: cluster.Cluster, **settings: Any) -> Summary:
    return Batch(plan.find_tasks([photos], False, out).tasks, settings_for(out, **settings), engine).run()


def work_of(kind: type[PictureWorker], photos: Path, out: Path) -> tuple[PictureWorker, list[Task]]:
    """Work of some kind, without the batch around it, which would have made the folder."""
    out.mkdir(exist_ok=True)
    settings = settings_for(out)
    tasks = plan.find_tasks([photos], False, out).tasks
    identities = frozenset(task.identity for task in tasks)
    return kind(settings, settings.options, identities, PreviousResults(str(out), settings.parameters_sha256())), tasks


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def inputs_in_ledger(out: Path) -> Counter[str]:
    return Counter(Path(row.input).name for row in ledger.read_rows(out))


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
    assert contents(there) == contents(here)
    assert sorted(row.status for row in ledger.read_rows(there)) == ["done", "done", "done", "failed"]
    assert summary["peak_bytes"]["cpu"] > 2**20
    assert edgeconv("verify", there).code == 0
    again = edgeconv("batch", "photos", *words, "--resume", cwd=tmp_path)
    assert json.loads(again.text)["skipped"] == 3


@pytest.mark.slow
def test_a_cluster_that_is_there_already_finds_the_pictures_by_any_name(photos: Path) -> None:
    out = photos.parent / "edges"
    run_here([photos], photos.parent / "here")
    with existing_cluster() as address:
        done = edgeconv("batch", "photos", "-o", "edges", *RULES, "--scheduler", address, cwd=photos.parent)
    assert (done.code, len(done.error_lines)) == (0, 1)
    assert f"the Dask scheduler at {address} is reached without TLS" in done.err
    assert "2 workers" in done.text
    assert contents(out) == contents(photos.parent / "here")
    assert inputs_in_ledger(out) == once_each(photos)


class DiesOnce(PictureWorker):
    """Ends its process without a word after the output of one picture is written and before anybody is told."""

    def one(self, task: Task) -> PictureResult:
        outcome = super().one(task)
        mark = Path(task.source).parent.parent / "died"
        if task.stem == "013" and not mark.exists():
            mark.touch()
            os._exit(9)
        return outcome


@pytest.mark.slow
def test_a_worker_that_dies_in_the_middle_costs_nothing(photos: Path) -> None:
    expected, out = photos.parent / "expected", photos.parent / "out"
    run_here([photos], expected)
    work, tasks = work_of(DiesOnce, photos, out)
    settled: list[PictureResult] = []
    with local_cluster.local_cluster(TWO_WORKERS) as engine:
        seen = list(engine.run(work, tasks, lambda: False, settled.append))
    assert (photos.parent / "died").exists()
    assert seen == settled
    assert [outcome.error for outcome in settled if outcome.state != "done"] == []
    assert Counter(Path(outcome.source).name for outcome in settled) == once_each(photos)
    assert contents(out) == contents(expected)


@pytest.mark.slow
@POSIX_SIGNALS
def test_workers_killed_at_any_moment_leave_an_exact_ledger(photos: Path) -> None:
    expected, out = photos.parent / "expected", photos.parent / "out"
    run_here([photos], expected)
    tasks = plan.find_tasks([photos], False, out).tasks
    with local_cluster.local_cluster(TWO_WORKERS) as engine:
        processes = list(engine.client.run(os.getpid).values())
        killed: list[int] = []

        def kill(now: Summary) -> None:
            if len(killed) < len(processes) and now.finished > (1 + len(killed)) * PICTURES // 4:
                os.kill(processes[len(killed)], signal.SIGKILL)
                killed.append(processes[len(killed)])

        summary = Batch(tasks, settings_for(out), engine).run(kill)
    assert killed == processes
    assert (summary.done, summary.failed) == (PICTURES, 0)
    assert inputs_in_ledger(out) == once_each(photos)
    assert contents(out) == contents(expected)
    assert {finding.state for finding in ledger.verify(out)} == {"same"}


class Deadly(PictureWorker):
    """Ends every process that takes one certain picture."""

    def one(self, task: Task) -> PictureResult:
        if task.stem == "007":
            os._exit(9)
        return super().one(task)


@pytest.mark.slow
def test_a_picture_that_ends_every_worker_fails_alone(photos: Path) -> None:
    work, tasks = work_of(Deadly, photos, photos.parent / "out")
    settled: list[PictureResult] = []
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        local_cluster.local_cluster(TWO_WORKERS) as engine,
    ):
        list(engine.run(work, tasks, lambda: False, settled.append))
    (failed,) = (outcome for outcome in settled if outcome.state == "failed")
    assert "007.png: every worker that had this picture terminated" in str(failed.error)
    assert failed.row is not None
    assert failed.row.input_realpath == os.path.realpath(photos / "007.png")
    assert len(settled) == PICTURES


@pytest.mark.slow
@POSIX_SIGNALS
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
    rows = ledger.read_rows(out)
    assert len(rows) == 4
    assert set(contents(out)) == {row.output for row in rows}
    assert edgeconv("verify", out).code == 0


@pytest.mark.slow
@POSIX_SIGNALS
def test_a_client_that_is_killed_resumes_to_the_same_bytes(photos: Path) -> None:
    expected, out = photos.parent / "expected", photos.parent / "out"
    run_here([photos], expected)
    with held_batch(photos, out, *TWO_PROCESSES, point=ROW, at=3) as child:
        child.arrived()
        child.process.kill()
        child.process.wait()
        wait_until(lambda: not group_lives(child.process.pid))  # the workers, which are of its group, notice it
    assert len(ledger.read_rows(out)) == 2
    assert [name for name in contents(out) if name.startswith(".edgeconv-")]
    assert edgeconv("batch", photos, "-o", out, *RULES, "--resume").code == 0
    assert contents(out) == contents(expected)
    assert edgeconv("verify", out).code == 0


@pytest.mark.slow
def test_a_limit_of_failures_stops_a_cluster_too(photos: Path) -> None:
    for path in photos.iterdir():
        path.write_bytes(b"no picture")
    with local_cluster.local_cluster(TWO_WORKERS) as engine:
        summary = run_there(photos, photos.parent / "out", engine, max_failures=1)
    assert summary.stopped_because == "1 failed"
    assert summary.failed < PICTURES
    assert summary.failed == sum(inputs_in_ledger(photos.parent / "out").values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preload", "words"),
    [
        ("import sys; sys.modules['edgeconv'] = None", ["lacks edgeconv"]),
        ("import edgeconv; edgeconv.__version__ = '0.0.9'", ["edgeconv 0.0.9", "install the same"]),
    ],
    ids=["without edgeconv", "with another edgeconv"],
)
def test_a_worker_that_cannot_help_gets_one_line(photos: Path, preload: str, words: list[str]) -> None:
    with existing_cluster(n_workers=1, preload=[preload]) as address:
        done = edgeconv("batch", photos, "-o", photos.parent / "out", *RULES, "--scheduler", address)
    assert (done.code, len(done.error_lines)) == (4, 2), done.err  # the first says that there is no TLS
    for word in words:
        assert word in done.error_lines[1]
    assert not (photos.parent / "out").exists()


@pytest.mark.slow
def test_a_cluster_without_workers_gets_one_line(photos: Path) -> None:
    with existing_cluster(n_workers=0) as address:
        done = edgeconv("batch", photos, "-o", photos.parent / "out", *RULES, "--scheduler", address)
    assert (done.code, len(done.error_lines)) == (4, 1), done.err
    assert "no workers" in done.err


def test_a_worker_must_see_the_output_folder(tmp_path: Path) -> None:
    maker = dask_worker.maker_here()
    (tmp_path / "token").write_bytes(b"of another folder")
    dask_worker.Terms(maker, str(tmp_path / "token"), b"of another folder").check()
    for token in ("missing", "token"):
        with pytest.raises(UnavailableError, match="does not see"):
            dask_worker.Terms(maker, str(tmp_path / token), b"ours").check()


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_one_line_and_loses_nothing(photos: Path) -> None:
    out = photos.parent / "out"
    running = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    gone: list[bool] = []

    def leave(now: Summary) -> None:
        if now.finished > 2 and not gone:
            gone.append(True)
            running.close()

    tasks = plan.find_tasks([photos], False, out).tasks
    with (
        connect.connected(running.scheduler_address, "The scheduler", 1) as engine,
        pytest.raises(UnavailableError, match="went away"),
    ):
        Batch(tasks, settings_for(out), engine).run(leave)
    rows = {row.output for row in ledger.read_rows(out)}
    assert len(rows) > 2
    assert run_here([photos], out, resume=True).failures == []
    assert inputs_in_ledger(out) == once_each(photos)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--scheduler", "nowhere"], 4, ["nowhere", "does not answer"]),
        (["--scheduler", "tcp://127.0.0.1:1", "--jobs", "2"], 2, ["--jobs"]),
        (["--scheduler", "tcp://127.0.0.1:1", "--devices", "all"], 2, ["--devices"]),
        (["--devices", "0", "--device", "cpu"], 2, ["--device", "cpu"]),
        pytest.param(
            ["--scheduler", "local", "--name", "{stem}{width}{ext}"], 2, ["{width}", "{stem}"], marks=pytest.mark.slow
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_words_get_one_line_and_make_nothing(
    photos: Path, arguments: list[str], code: int, words: list[str]
) -> None:
    done = edgeconv("batch", photos, "-o", "made", *RULES, *arguments, cwd=photos)
    assert (done.code, len(done.error_lines)) == (code, 1), done.err
    for word in words:
        assert word in done.err
    assert not (photos / "made").exists()


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "CONNECT_SECONDS", 1)
    with pytest.raises(UnavailableError, match=r"tcp://127\.0\.0\.1:1 does not answer"):
        engine_for("tcp://127.0.0.1:1", None, "cpu", None, 3).__enter__()


def test_without_dask_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnavailableError, match=r"pip install '\.\[dask\]'"):
        engine_for("local", None, "cpu", None, 3)


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
    assert seats == [Seat(3, {VISIBLE: "4"}), Seat(3, {VISIBLE: "7"})]
    assert seats_for(["0", "1"], jobs=None, pictures=1) == [Seat(1, {VISIBLE: "0"}), Seat(1, {VISIBLE: "1"})]
    assert seats_for([], jobs=None, pictures=100) == [Seat(1)] * usable_threads()
    with local_cluster.local_cluster(seats) as engine:
        assert engine.workers == 6
        assert sorted(engine.client.run(os.getenv, VISIBLE).values()) == ["4", "7"]
        assert run_there(photos, photos.parent / "out", engine).done == PICTURES


def test_a_call_that_is_made_twice_in_one_worker_is_done_twice(photos: Path) -> None:
    work, tasks = work_of(PictureWorker, photos, photos.parent / "out")
    results = [work.one(task) for _ in range(2) for task in pickle.loads(pickle.dumps(tasks))]
    assert [each.error for each in results if each.state != "done"] == []
    assert len(results) == 2 * PICTURES
