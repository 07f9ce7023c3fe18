"""Two of everything at once in one folder: nobody's result is lost, and nobody is told otherwise."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import filelock
import pytest
from batch_folders import RULES, SUFFIX, contents, run_here
from command import edgeconv
from meet import Meeting, wait_until
from problems import random_image

from edgeconv.batch import ledger
from edgeconv.batch import verify as verifying
from edgeconv.batch.summary import BatchSummary
from edgeconv.cli.verify import verify
from edgeconv.core.records import plain
from edgeconv.core.request import make_request
from edgeconv.difference import folders
from edgeconv.difference.results import Wanted
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.io import folder_lock
from edgeconv.io.atomic import NameTakenError, write_bytes_atomically
from edgeconv.io.encoding import write_image
from edgeconv.options import BatchOutput
from edgeconv.run import picture
from edgeconv.run.job import Job
from edgeconv.run.report import RunReport

PICTURES = 24


def draw(folder: Path, seed: int, count: int = PICTURES) -> Path:
    folder.mkdir()
    for index in range(count):
        write_image(random_image(6, 7, "uint8", 1000 * seed + index), folder / f"{index:02}.png")
    return folder


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return draw(tmp_path / "one", 1)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Pictures of the same names that are others."""
    return draw(tmp_path / "other", 2)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE_SECONDS", 0.1)


@contextmanager
def in_the_middle(photos: Path, out: Path, **settings: Any) -> Iterator[None]:
    """A batch that has done its first picture, and goes on behind the block."""
    reached, go_on = threading.Event(), threading.Event()

    def pause(now: BatchSummary) -> None:
        reached.set()
        wait_until(go_on.is_set)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_here, [photos], out, watch=pause, jobs=1, **settings)
        try:
            wait_until(reached.is_set)
            yield
        finally:
            go_on.set()
            assert running.result().failed == 0


def states(out: Path) -> set[str]:
    return {finding.state for finding in verifying.verify(out).findings}


def test_a_second_batch_is_refused_by_the_name_of_the_folder(one: Path, other: Path, out: Path) -> None:
    with in_the_middle(one, out):
        for settings in ({}, {"overwrite": True}, {"resume": True}, {"share": (1, 2)}):
            with pytest.raises(ImageWriteError, match="edges: another batch is writing there"):
                run_here([other], out, **settings)
        done = edgeconv("batch", other, "-o", out, *RULES, "--border", "replicate")
        assert (done.code, len(done.error_lines)) == (2, 1)
    assert states(out) == {"same"}
    assert not list(out.glob("*.lock"))
    afterwards = run_here([other], out)
    assert (afterwards.done, afterwards.failed) == (0, PICTURES)
    assert "holds the result of another picture" in afterwards.failures[0].error


def test_shares_of_one_array_work_together_and_others_do_not(one: Path, other: Path, out: Path) -> None:
    with in_the_middle(one, out, share=(1, 3)):
        assert run_here([one], out, share=(2, 3)).failed == 0
        refused = ({"share": (1, 3)}, {"share": (2, 4)}, {"share": (2, 3), "format": "bmp"}, {})
        for settings in refused:
            with pytest.raises(ImageWriteError, match="another batch"):
                run_here([one], out, **settings)
        assert run_here([one], out, share=(3, 3)).failed == 0
    assert len(verifying.verify(out).findings) == PICTURES
    assert states(out) == {"same"}
    assert not list(out.glob("*.lock"))


def test_a_new_folder_is_locked_where_its_ledger_is_in_another_that_is_there(one: Path, other: Path, out: Path) -> None:
    records = out.parent / "records"
    records.mkdir()
    with in_the_middle(one, out, ledger=str(records)), pytest.raises(ImageWriteError, match="another batch"):
        run_here([other], out, overwrite=True)
    assert run_here([one], out, ledger=f"{out}/.").failed == 0, "a folder by two names is locked once"


def test_a_lock_that_a_killed_batch_left_keeps_nobody_out(one: Path, out: Path) -> None:
    out.mkdir()
    for name in (folder_lock.LOCK_NAME, "edgeconv-ledger-0123456789abcdef-01234567.lock"):
        (out / name).write_bytes(b"left")
    assert run_here([one], out, share=(1, 2)).failed == 0
    assert run_here([one], out, share=(2, 2)).failed == 0


def test_of_a_batch_and_a_share_that_begin_at_once_never_both_work(tmp_path: Path) -> None:
    """Many times, as who looks first is left to chance."""
    at_work: list[str] = []

    def begin(array: str | None, meeting: Meeting) -> None:
        meeting.wait()
        with folder_lock.one_batch_in(str(tmp_path), array):
            at_work.append("one")
            assert len(at_work) == 1
            at_work.clear()

    for arrays in [(None, "a"), ("a", "b"), (None, None)] * 5:
        meeting = Meeting(2)
        ended = at_once(*(partial(begin, array, meeting) for array in arrays))
        assert {type(end) for end in ended} <= {type(None), ImageWriteError}
    assert not list(tmp_path.iterdir())


def test_where_a_file_system_has_no_locks_no_output_is_replaced(
    one: Path, other: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each name is won by one of the two, and the other says so."""

    def no_locks(*_: Any, **__: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(filelock.FileLock, "acquire", no_locks)
    begin = Meeting(2)

    def run(photos: Path) -> BatchSummary:
        begin.wait()
        return run_here([photos], out, jobs=2)

    with ThreadPoolExecutor(2) as pool:
        summaries = list(pool.map(run, (one, other)))
    assert sum(summary.done for summary in summaries) == PICTURES
    assert sum(summary.failed for summary in summaries) == PICTURES
    assert states(out) == {"same"}
    assert len(verifying.verify(out).findings) == PICTURES


def test_verify_tells_that_a_batch_is_at_work_where_something_differs(
    one: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with in_the_middle(one, out):
        assert verify(str(out), BatchOutput()) == 0
    assert capsys.readouterr().err == "", "beside a batch nothing is wrong"
    (out / f"05{SUFFIX}.png").write_bytes(b"!")
    with in_the_middle(draw(out.parent / "third", 3, 2), out, overwrite=True):
        assert verify(str(out), BatchOutput()) == 1
    assert "a batch is writing" in capsys.readouterr().err
    assert verify(str(out), BatchOutput()) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("writes_into", ["baseline", "new"])
def test_no_baseline_is_updated_while_a_batch_writes(one: Path, other: Path, tmp_path: Path, writes_into: str) -> None:
    baseline, new = tmp_path / "baseline", tmp_path / "new"
    for photos, folder in ((one, baseline), (other, new)):
        run_here([photos], folder)
    third = draw(tmp_path / "third", 3, 3)
    with in_the_middle(third, tmp_path / writes_into, overwrite=True):
        with pytest.raises((ImageReadError, ImageWriteError), match=r"a batch is writing|another batch"):
            folders.run(baseline, new, Wanted(), update=True)
        assert not list(tmp_path.glob("baseline.before-*"))
    folders.run(baseline, new, Wanted(), update=True)
    assert contents(baseline) == contents(new)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each call gives or raises, all begun together."""

    def one(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except ImageWriteError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


def meeting(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, parties: int) -> None:
    """Make threads meet where each calls `module.name` first: everybody has looked before anybody writes."""
    barrier, wrapped, here = Meeting(parties), getattr(module, name), threading.local()

    def met(*words: Any, **options: Any) -> Any:
        if not hasattr(here, "met"):
            here.met = True
            barrier.wait()
        return wrapped(*words, **options)

    monkeypatch.setattr(module, name, met)


def test_two_runs_to_one_place(one: Path, other: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out.mkdir()
    meeting(monkeypatch, picture, "to_json", 2)
    jobs = [
        Job(str(photos / "00.png"), make_request(), "reference", output=str(out / "a.png"), samples=0)
        for photos in (one, other)
    ]
    ended = at_once(*(partial(picture.run_picture, wanted) for wanted in jobs))
    assert {isinstance(end, ImageWriteError) for end in ended} == {True, False}
    (record,) = (end for end in ended if isinstance(end, RunReport))
    assert record.output.file_sha256 == ledger.sha256_of((out / "a.png").read_bytes())
    assert json.loads((out / "a.json").read_bytes())["input"] == plain(record.input)


def test_of_many_writers_of_one_name_one_wins(tmp_path: Path) -> None:
    place = tmp_path / "a"
    ended = at_once(*(partial(write_bytes_atomically, place, bytes([index]), replace=False) for index in range(16)))
    assert sum(end is None for end in ended) == 1
    assert place.read_bytes() == bytes([ended.index(None)])
    assert list(tmp_path.iterdir()) == [place]


def test_where_a_file_has_one_name_only_what_is_there_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr("os.link", refuse)
    write_bytes_atomically(tmp_path / "a", b"1", replace=False)
    with pytest.raises(NameTakenError):
        write_bytes_atomically(tmp_path / "a", b"2", replace=False)
    assert contents(tmp_path) == {"a": b"1"}
