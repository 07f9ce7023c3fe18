"""What the tests of `edgeconv batch` share: a small folder of pictures, the quickest rules, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from meet import Child, held
from problems import random_image, save_image

from edgeconv.batch import ledger
from edgeconv.batch.engines import Engine
from edgeconv.batch.ledger import LedgerRow, PreviousResults
from edgeconv.batch.names import Names
from edgeconv.batch.process import PictureProcessor
from edgeconv.batch.run import open_batch
from edgeconv.batch.settings import ALL, Settings
from edgeconv.batch.summary import BatchSummary
from edgeconv.batch.tasks import Inputs
from edgeconv.core.request import make_request
from edgeconv.options import Workers

RULES = ("--method", "reference")
SUFFIX = "_sobel_reference_s1"

PICTURE, OUTPUT, ROW = (
    "edgeconv.batch.process:PictureProcessor.compute",
    "os:link",
    "edgeconv.batch.ledger:Ledger.append",
)
"""Points of a batch: a picture is computed, an output is whole and takes its name, its row is written."""


def draw_photos(folder: Path) -> Path:
    """Three pictures in a folder, one of them deeper."""
    (folder / "deep").mkdir(parents=True)
    for seed, name in enumerate(("a.png", "b.tiff", "deep/a.png")):
        save_image(random_image(20 + seed, 30, "uint8", seed), folder / name)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every output by relative name, the ledger left out."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("edgeconv-ledger"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def settings_for(output: Path | str, jobs: int | None = None, **settings: Any) -> Settings:
    """The settings that RULES stand for."""
    workers = Workers() if jobs is None else Workers(jobs=str(jobs))
    given = {"request": make_request(), "method": "reference", "workers": workers} | settings
    return Settings(output=str(output), **given)


def processor_for(settings: Settings, kind: type[PictureProcessor] = PictureProcessor) -> PictureProcessor:
    """What processes the pictures of a batch into a new folder, with no batch around it."""
    return kind(settings, Names(settings), frozenset(), PreviousResults([], settings))


def run_here(
    places: Sequence[Path | str],
    output: Path | str,
    *,
    recursive: bool = False,
    engine: Engine | None = None,
    watch: Callable[[BatchSummary], None] = lambda summary: None,
    **settings: Any,
) -> BatchSummary:
    """A batch by RULES in this process; `watch` sees the summary after each picture."""
    inputs = Inputs(places, recursive=recursive)
    with open_batch(settings_for(output, **settings), inputs, engine=engine) as batch:
        return batch.run(watch)


def a_row(name: str, digest: str = "y", **fields: Any) -> LedgerRow:
    """A row of a ledger."""
    given = {
        "input": name,
        "input_realpath": f"/{name}",
        "input_bytes": 1,
        "input_sha256": "x",
        "parameters_sha256": "p",
        "method": "reference",
        "device": "cpu",
        "output": name,
        "output_bytes": 2,
        "output_sha256": digest,
        "status": "done",
        "seconds": 0.1,
        "error": None,
    }
    return LedgerRow(**(given | fields))


@contextmanager
def opened_ledger(folder: Path, share: tuple[int, int] = ALL) -> Iterator[ledger.Ledger]:
    """A ledger to append to, as a batch opens it."""
    with closing(ledger.Ledger(folder, share, ledger.read(folder).rows)) as book:
        yield book
        book.refuse_if_moved()


def held_batch(
    photos: Path, out: Path, *more: object, point: str = PICTURE, at: int = 1
) -> AbstractContextManager[Child]:
    """A batch by RULES, held where it calls `point` for the `at`-th time: see `meet.held`."""
    return held(point, ["batch", photos, "-o", out, *RULES, *more], at)
