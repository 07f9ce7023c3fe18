"""Everything that writes, as jobs to be disturbed: what it writes below a folder, and what must hold whatever happens.

    python fault_jobs.py JOB FOLDER     end the job at its first call that writes, at its second, … and look each time

That is a process of its own, which has no threads yet: each job is a fork of it, so that one costs milliseconds.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from pathlib import Path

import cv2
import pytest
from batch_folders import contents, draw_photos, run_here
from bench_records import FEW, TimedMethod, grid, use
from faults import DIED, Faults
from picture_files import resize_file
from problems import random_image, save_image

from edgeconv.batch import ledger
from edgeconv.bench import runner
from edgeconv.core.request import make_request
from edgeconv.difference import folders
from edgeconv.difference import results as diff_job
from edgeconv.difference.inputs import FileInput
from edgeconv.errors import EdgeconvError
from edgeconv.io.atomic import TEMPORARY_NAME
from edgeconv.run.job import Job
from edgeconv.run.picture import run_picture
from edgeconv.run.tiles import run_by_tiles

FAILED = 1


@dataclass(frozen=True)
class FaultJob:
    """Something that writes into `out` what it reads in `photos`, both below one folder."""

    name: str
    run: Callable[[Path], None]
    """May be called again and again; at the second call it goes on where it was stopped."""
    prepare: Callable[[Path], None] = lambda folder: None
    """What earlier runs left, beside the pictures."""
    check: Callable[[Path], None] = lambda folder: None
    """What must hold whatever happened."""
    all_or_nothing: bool = False
    """Where a call fails, it leaves all of its files or none; else each of them by itself."""


def draw(folder: Path) -> None:
    """The inputs."""
    draw_photos(folder / "photos")
    save_image(random_image(9, 30, "uint8"), folder / "photos" / "b.tiff")  # two tiles
    (folder / "out").mkdir()


def batch(folder: Path) -> None:
    summary = run_here([folder / "photos"], folder / "out", recursive=True, jobs=1, resume=True, retry_failed=True)
    if summary.failures:
        raise EdgeconvError(summary.failures[0].error)


def change_inputs(folder: Path) -> None:
    """A batch was here, and two of its inputs are no longer what they were."""
    batch(folder)
    for seed, name in enumerate(("a.png", "deep/a.png")):
        save_image(random_image(20, 30, "uint8", 70 + seed), folder / "photos" / name)


def ledger_is_sound(folder: Path) -> None:
    assert ledger.read(folder / "out").damaged == []


def wanted_run(folder: Path, output: str) -> Job:
    """A run without the clock, which may replace its own output of before."""
    place = str(folder / "out" / output)
    return Job(str(folder / "photos" / "b.tiff"), make_request(), "reference", "cpu", place, samples=0)


def run(folder: Path) -> None:
    run_picture(wanted_run(folder, "b.png"))


def run_a_bank(folder: Path) -> None:
    """Three pictures and their report."""
    run_picture(replace(wanted_run(folder, "b.png"), request=make_request(["sobel-x", "sobel-y", "laplacian8"])))


def by_tiles_to(suffix: str) -> Callable[[Path], None]:
    def run_tiles(folder: Path) -> None:
        run_by_tiles(replace(wanted_run(folder, f"b.{suffix}"), tile=16))

    return run_tiles


def pictures_have_reports(folder: Path) -> None:
    """No picture without its report, not even where a run was killed."""
    for picture in (folder / "out").glob("b[._]*"):
        assert picture.with_name("b.json").exists()


def resize(folder: Path) -> None:
    resize_file(folder / "photos" / "a.png", (5, 10), folder=folder / "out", overwrite=True)


def diff_page(folder: Path) -> None:
    pictures = [FileInput(str(folder / "photos" / name)) for name in ("a.png", "c.png")]
    out = folder / "out"
    diff_job.run(
        pictures[0],
        pictures[1:],
        diff_job.Wanted(html=str(out / "page.html"), junit=str(out / "cases.xml"), overwrite=True),
    )


def draw_another(folder: Path) -> None:
    save_image(random_image(20, 30, "uint8", 9), folder / "photos" / "c.png")


def make_baseline(folder: Path) -> None:
    """A baseline with one picture that is replaced, one that goes, and one that is missing."""
    for seed, name in enumerate(("out/a.png", "out/old.png")):
        save_image(random_image(20, 30, "uint8", 80 + seed), folder / name)


def update_baseline(folder: Path) -> None:
    folders.run(folder / "out", folder / "photos", diff_job.Wanted(), update=True)


def nothing_of_the_baseline_is_lost(folder: Path) -> None:
    """Each file of before is there yet, or kept beside the baseline."""
    before = folder / "before"
    before.mkdir(exist_ok=True)
    (before / "out").mkdir(exist_ok=True)
    make_baseline(before)
    kept = set(contents(folder / "out").values())
    for place in folder.glob("out.before-*"):
        kept |= set(contents(place).values())
    assert set(contents(before / "out").values()) <= kept
    shutil.rmtree(before)


def bench(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(patch, TimedMethod("reference", [1e-3]))
        patch.setattr(runner, "SAVE_EVERY_SECONDS", 0)
        path = folder / "out" / "bench.json"
        runner.run(grid(4), FEW, path=path)


JOBS = {
    each.name: each
    for each in (
        FaultJob("batch", batch, check=ledger_is_sound),
        FaultJob("batch again", batch, change_inputs, ledger_is_sound),
        FaultJob("run", run, check=pictures_have_reports, all_or_nothing=True),
        FaultJob("run a bank", run_a_bank, check=pictures_have_reports, all_or_nothing=True),
        *(
            FaultJob(
                f"run by tiles to {name}", by_tiles_to(name.lower()), check=pictures_have_reports, all_or_nothing=True
            )
            for name in ("TIFF", "Zarr")
        ),
        FaultJob("resize", resize),
        FaultJob("diff page", diff_page, draw_another),
        FaultJob("diff update", update_baseline, make_baseline, nothing_of_the_baseline_is_lost),
        FaultJob("bench record", bench),
    )
}


@contextmanager
def fresh(each: FaultJob, folder: Path) -> Iterator[Path]:
    """A folder with what the job reads, and with what earlier runs left."""
    draw(folder)
    each.prepare(folder)
    yield folder
    shutil.rmtree(folder)


def whole(path: Path) -> bool:
    """Whether a file ends as one of its kind does: JSON and pages change from run to run, so bytes are no measure."""
    data = path.read_bytes()
    if path.suffix == ".json":
        with suppress(ValueError):
            json.loads(data)
            return True
        return False
    return not (path.suffix == ".html" and not data.rstrip().endswith(b"</html>"))


def results(folder: Path) -> dict[str, bytes]:
    """What is in the output folder, temporaries and what changes with the time of day left out."""
    changing = (".json", ".html", ".xml")
    found = {name: data for name, data in contents(folder / "out").items() if temporary_in(name) is None}
    return {name: b"" if name.endswith(changing) and "zarr" not in name else data for name, data in found.items()}


def temporary_in(name: str) -> str | None:
    """The part of a relative name that is a temporary's."""
    return next((part for part in name.split("/") if TEMPORARY_NAME.fullmatch(part)), None)


def expected_of(each: FaultJob, folder: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The results of before, and those of a job that nobody disturbs."""
    with fresh(each, folder):
        before = results(folder)
        each.run(folder)
        return before, results(folder)


def look(each: FaultJob, folder: Path, before: dict[str, bytes], after: dict[str, bytes], may_leave: bool) -> None:
    """After a fault every file is whole, and what it was or what it becomes; then the job is done again to its end."""
    for name, data in results(folder).items():
        assert data in (before.get(name), after.get(name)), f"{name} is neither what it was nor what it becomes"
    left = [name for name in contents(folder / "out") if temporary_in(name) is not None]
    assert may_leave or not left, left
    for path in (folder / "out").rglob("*"):
        assert not path.is_file() or temporary_in(path.relative_to(folder).as_posix()) or whole(path), path
    each.check(folder)
    each.run(folder)
    assert results(folder) == after
    each.check(folder)


def child(call: Callable[[], None]) -> int:
    """The exit code of a fork that makes a call."""
    process = os.fork()
    if process == 0:
        code = FAILED
        try:
            call()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def end_at_every_call(each: FaultJob, folder: Path) -> int:
    """How many calls there were to be ended at; AssertionError where something did not hold after one."""
    folder.mkdir()
    place, template, told = folder / "job", folder / "template", folder / "told"

    def undisturbed() -> None:
        draw(place)  # where the job will be each time, as ledgers hold paths
        each.prepare(place)
        told.write_bytes(pickle.dumps((*expected_of(each, folder / "expected"), list(sys.modules))))

    assert child(undisturbed) == 0
    before, after, modules = pickle.loads(told.read_bytes())
    for name in modules:
        with suppress(ImportError):
            import_module(name)  # once, in place of once in each fork
    place.rename(template)
    for at in count(1):
        shutil.copytree(template, place)

        def disturbed(at: int = at) -> None:
            with Faults(place, "dies", at):
                each.run(place)

        code = child(disturbed)
        if code == 0:
            return at - 1
        assert code == DIED, f"ended with {code} at call {at}"
        assert child(lambda: look(each, place, before, after, may_leave=True)) == 0, f"after call {at}"
        shutil.rmtree(place)
        for kept in folder.glob("*.before-*"):
            shutil.rmtree(kept)
    raise AssertionError("unreachable")


if __name__ == "__main__":
    cv2.setNumThreads(1)
    os.fsync = os.fstat  # as in conftest.py: no write waits for the disk
    print(end_at_every_call(JOBS[sys.argv[1]], Path(sys.argv[2])))
