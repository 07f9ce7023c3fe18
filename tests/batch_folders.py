"""What the tests of `edgeconv batch` share: a small folder of pictures, the quickest rules, and what came out."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from meet import Child, held
from problems import random_image

from edgeconv.api.auto import Choice
from edgeconv.batch import plan
from edgeconv.batch.names import Names
from edgeconv.batch.pipeline import Batch
from edgeconv.batch.settings import Settings
from edgeconv.batch.summary import Summary
from edgeconv.core.request import make_request
from edgeconv.io.image import write_image
from edgeconv.options import DEFAULT_NAME

RULES = ("--method", "reference", "--channels", "each")
SUFFIX = "_laplacian8_each_reference_s1"

PICTURE, OUTPUT, ROW = "edgeconv.batch.worker:PictureWorker.one", "os:link", "edgeconv.batch.ledger:Ledger.append"
"""Points of a batch: a picture is begun, an output is whole and takes its name, its row is written."""


def draw_photos(folder: Path) -> Path:
    """Three pictures in a folder, one of them deeper."""
    (folder / "deep").mkdir(parents=True)
    for seed, name in enumerate(("a.png", "b.tiff", "deep/a.png")):
        write_image(random_image(20 + seed, 30, "uint8", seed), folder / name)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every output by relative name, the ledger left out."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("edgeconv-ledger"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def settings_for(output: Path | str, **settings: Any) -> Settings:
    """The settings that RULES stand for."""
    choice = Choice("reference", "cpu", "for a test")
    request = make_request(channels="each")
    names = Names.of(DEFAULT_NAME, request, choice.method)
    return Settings(request, choice, str(output), names, **settings)


def run_here(
    places: list[Path] | list[str], output: Path | str, *, recursive: bool = False, **settings: Any
) -> Summary:
    """A batch by RULES in this process."""
    found = plan.find_tasks(places, recursive, output)
    return Batch(found.tasks, settings_for(output, **settings)).run()


def held_batch(
    photos: Path, out: Path, *more: object, point: str = PICTURE, at: int = 1
) -> AbstractContextManager[Child]:
    """A batch by RULES, held where it calls `point` for the `at`-th time: see `meet.held`."""
    return held(point, ["batch", photos, "-o", out, *RULES, *more], at)
