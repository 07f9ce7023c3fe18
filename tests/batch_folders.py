"""What the tests of `edgeconv batch` share: a small folder of pictures, the quickest rules, and what came out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from problems import random_image

from edgeconv.batch import ledger, plan
from edgeconv.batch.pipeline import Batch
from edgeconv.batch.settings import Settings
from edgeconv.batch.summary import Summary
from edgeconv.choose import Choice
from edgeconv.image import write_image
from edgeconv.request import make_request

RULES = ("--method", "reference", "--channels", "each")
SUFFIX = "_laplacian8_reference_s1"


def draw_photos(folder: Path) -> Path:
    """Three pictures in a folder, one of them deeper."""
    (folder / "deep").mkdir(parents=True)
    for seed, name in enumerate(("a.png", "b.tiff", "deep/a.png")):
        write_image(random_image(20 + seed, 30, "uint8", seed), folder / name)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every output by relative name, the ledger left out."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ledger.LEDGER_NAME)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def run_here(places: list[Path], output: Path, *, recursive: bool = False, **settings: Any) -> Summary:
    """A batch by RULES in this process."""
    choice = Choice("reference", "cpu", "for a test")
    names = plan.Names(plan.DEFAULT_NAME, "laplacian8", choice.method, 1)
    found = plan.find_tasks(places, recursive, output)
    return Batch(found.tasks, Settings(make_request(channels="each"), choice, output, names, **settings)).run()
