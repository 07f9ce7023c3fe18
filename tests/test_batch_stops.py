"""A batch that is stopped, killed or short of room: what is done stays, nothing is left half-written."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from batch_folders import RULES, SUFFIX, contents, draw_photos, under_way
from command import PROJECT, edgeconv, unmeasured
from problems import random_image
from selection import few_then_slow

from edgeconv.batch import ledger
from edgeconv.io import temporary_files
from edgeconv.io.image import write_image
from edgeconv.runtime.devices import get_device

POSIX_SIGNALS = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
MANY = 40


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return draw_photos(tmp_path / "photos")


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Enough pictures to be interrupted among."""
    folder = tmp_path / "many"
    folder.mkdir()
    for index in range(MANY):
        write_image(random_image(200, 200, "uint8", index), folder / f"{index:03}.png")
    return folder


def started(folder: Path, out: Path) -> subprocess.Popen[bytes]:
    return under_way(folder, out, "--resume", "--jobs", "2")


@POSIX_SIGNALS
def test_a_batch_killed_at_random_moments_resumes_to_the_same_bytes(many: Path) -> None:
    whole, broken = many.parent / "whole", many.parent / "broken"
    assert edgeconv("batch", many, "-o", whole, *RULES).code == 0
    moments = random.Random(7)
    kills = 0
    for _ in range(12):
        process = started(many, broken)
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        kills += process.wait() == -signal.SIGKILL
    assert kills >= 3
    assert edgeconv("batch", many, "-o", broken, *RULES, "--resume").code == 0
    assert contents(broken) == contents(whole)
    assert edgeconv("verify", broken).code == 0


@POSIX_SIGNALS
@pytest.mark.parametrize("number", few_then_slow([signal.SIGINT, signal.SIGTERM]))
def test_a_polite_stop_finishes_what_is_in_hand(many: Path, number: signal.Signals) -> None:
    out = many.parent / "out"
    process = started(many, out)
    process.send_signal(number)
    assert process.wait() == 128 + number
    rows = list(ledger.read_rows(out))
    assert 0 < len(rows) < MANY
    assert set(contents(out)) == {row.output for row in rows}
    assert edgeconv("verify", out).code == 0


@POSIX_SIGNALS
@pytest.mark.parametrize("number", few_then_slow([signal.SIGINT, signal.SIGTERM]))
def test_a_second_signal_ends_the_batch_at_once(tmp_path: Path, number: signal.Signals) -> None:
    photos, out = tmp_path / "photos", tmp_path / "out"
    photos.mkdir()
    write_image(random_image(8, 8, "uint8"), photos / "0.png")
    for index in range(1, 5):
        write_image(np.zeros((4000, 4000, 3), np.uint8), photos / f"{index}.png")  # seconds each for the oracle
    process = started(photos, out)
    process.send_signal(number)
    assert b"once more" in process.stderr.readline()
    process.send_signal(number)
    assert process.wait() == 128 + number
    assert b"stopped at once" in process.stderr.read()
    assert {row.output for row in ledger.read_rows(out)} == set(contents(out)) == {f"0{SUFFIX}.png"}


def test_what_a_killed_run_left_half_written_is_removed_and_named(photos: Path) -> None:
    out = photos.parent / "edges"
    (out / "deep").mkdir(parents=True)
    stale = [out / ".edgeconv-0123456789ab.tmp", out / "deep" / ".edgeconv-0123456789ac.tmp"]
    fresh = out / ".edgeconv-0123456789ad.tmp"
    for path in (*stale, fresh):
        path.write_bytes(b"half")
    for path in stale:
        os.utime(path, (time.time() - 2 * temporary_files.STALE_SECONDS,) * 2)
    done = edgeconv("batch", photos, "-r", "-o", out, *RULES)
    assert done.code == 0
    assert [line.split()[1].rstrip(",") for line in done.text.splitlines() if "half-written" in line] == list(
        map(str, stale)
    )
    assert [path.exists() for path in (*stale, fresh)] == [False, False, True]


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits are POSIX")
def test_a_full_disk_is_a_clear_error_with_no_half_file(photos: Path) -> None:
    write_image(random_image(300, 300, "uint8"), photos / "large.png")
    out = photos.parent / "edges"
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "from edgeconv.cli import main; main()"
    )
    words = [sys.executable, "-c", code, "batch", str(photos), "-o", str(out), *RULES, "--jobs", "1"]
    done = subprocess.run(words, env=unmeasured(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "large" in line and "cannot be written" in line]
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from edgeconv.batch import plan; from edgeconv.batch.pipeline import Batch;"
        "from edgeconv.batch.names import Names; from edgeconv.options import DEFAULT_NAME;"
        "from edgeconv.batch.settings import Settings; from edgeconv.runtime.devices import get_device;"
        "from edgeconv.core.request import make_request; from edgeconv.runtime.auto import Choice;"
        "folder = Path(sys.argv[1]); tasks = plan.find_tasks([folder], False).tasks;"
        "peaks = [];"
        "watch = lambda now: peaks.append(get_device('cpu').peak_bytes());"
        "names = Names(DEFAULT_NAME, 'f', 'm', 1);"
        "choice = Choice('opencv', 'cpu', 'test');"
        "Batch(tasks, Settings(make_request(channels='each'), choice, str(folder / 'out'), names, jobs=2)).run(watch);"
        "print(len(peaks), peaks[len(peaks) // 4], peaks[-1])"
    )
    source = tmp_path / "0000.png"
    write_image(random_image(96, 96, "uint8"), source)
    for index in range(1, 2000):
        os.link(source, tmp_path / f"{index:04}.png")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    words = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    steps, early, late = map(int, done.stdout.split())
    assert steps > 500
    if get_device("cpu").peak_bytes() is not None:
        assert late - early < 8 * 2**20
    assert len(contents(tmp_path / "out")) == 2000
