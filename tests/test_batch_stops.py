"""A batch that is stopped, killed or short of room: what is done stays, nothing is left half-written."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from batch_folders import OUTPUT, PICTURE, ROW, RULES, contents, held_batch
from command import edgeconv
from meet import run_program, wait_until
from problems import random_image
from selection import few_then_slow

from edgeconv.batch import ledger
from edgeconv.hardware.devices import get_device
from edgeconv.io.atomic import STALE_SECONDS
from edgeconv.io.encoding import write_image

PICTURES = 9
TWO_JOBS = ("--resume", "--jobs", "2")


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """Enough pictures to be stopped among."""
    folder = tmp_path / "several"
    folder.mkdir()
    for index in range(PICTURES):
        write_image(random_image(20, 30, "uint8", index), folder / f"{index}.png")
    return folder


def test_a_batch_that_is_killed_again_and_again_resumes_to_the_same_bytes(several: Path) -> None:
    """Before a picture; before an output has its name; before its row; and once more when those have got their rows."""
    whole, broken = several.parent / "whole", several.parent / "broken"
    assert edgeconv("batch", several, "-o", whole, *RULES).code == 0
    rows = 0
    for point, at in ((PICTURE, 2), (OUTPUT, 2), (ROW, 2), (OUTPUT, 1)):
        rows += at - 1  # others write what was computed before
        with held_batch(several, broken, *TWO_JOBS, point=point, at=at) as child:
            child.arrived(2)
            wait_until(lambda least=rows: len(ledger.read(broken).rows) >= least)
            child.process.kill()
            assert child.process.wait() == -signal.SIGKILL
        assert rows <= len(ledger.read(broken).rows) < PICTURES
    assert edgeconv("batch", several, "-o", broken, *RULES, "--resume").code == 0
    assert contents(broken) == contents(whole)
    assert edgeconv("verify", broken).code == 0


@pytest.mark.parametrize("is_second", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("number", few_then_slow([signal.SIGINT, signal.SIGTERM]))
def test_one_signal_finishes_what_is_in_hand_and_a_second_one_ends_it(
    several: Path, number: signal.Signals, is_second: bool
) -> None:
    """It comes when two of nine are done and two begun; or one is done, and two outputs are whole without a name."""
    out = several.parent / "out"
    with held_batch(several, out, *TWO_JOBS, point=OUTPUT if is_second else PICTURE, at=2 if is_second else 3) as child:
        child.arrived(2)
        child.process.send_signal(number)
        assert "once more" in child.line()
        if is_second:
            child.process.send_signal(number)
        else:
            child.let_go()
        assert child.process.wait() == 128 + number
        assert ("stopped at once" in child.errors()) == is_second
    rows = ledger.read(out).rows
    assert len(rows) == (1 if is_second else 4)
    assert set(contents(out)) == {row.output for row in rows}
    assert edgeconv("verify", out).code == 0


def test_what_a_killed_run_left_half_written_is_removed_and_named(photos: Path, out: Path) -> None:
    (out / "deep").mkdir(parents=True)
    stale = [out / ".edgeconv-01234567-1-0123456789ab.tmp", out / "deep" / ".edgeconv-01234567-1-0123456789ac.tmp"]
    fresh = out / ".edgeconv-01234567-1-0123456789ad.tmp"
    for path in (*stale, fresh):
        path.write_bytes(b"half")
    for path in stale:
        os.utime(path, (time.time() - 2 * STALE_SECONDS,) * 2)
    done = edgeconv("batch", photos, "-r", "-o", out, *RULES)
    assert done.code == 0
    assert [line.split()[1].rstrip(",") for line in done.text.splitlines() if "half-written" in line] == list(
        map(str, stale)
    )
    assert [path.exists() for path in (*stale, fresh)] == [False, False, True]


@pytest.mark.slow
@pytest.mark.xdist_group("memory")
def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2]); from batch_folders import run_here;"
        "from edgeconv.hardware.devices import get_device;"
        "folder = Path(sys.argv[1]); peaks = [];"
        "watch = lambda now: peaks.append(get_device('cpu').peak_bytes());"
        "run_here([folder], folder / 'out', method='opencv', jobs=2, watch=watch);"
        "print(len(peaks), peaks[len(peaks) // 4], peaks[-1])"
    )
    source = tmp_path / "0000.png"
    write_image(random_image(96, 96, "uint8"), source)
    for index in range(1, 2000):
        os.link(source, tmp_path / f"{index:04}.png")
    done = run_program(code, str(tmp_path), str(Path(__file__).parent))
    steps, early, late = map(int, done.stdout.split())
    assert steps > 500
    if get_device("cpu").peak_bytes() is not None:
        assert late - early < 8 * 2**20
    assert len(contents(tmp_path / "out")) == 2000
