"""What the tests of `edgeconv batch` share: a small folder of pictures, the quickest rules, and what came out."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from command import unmeasured
from problems import random_image

from edgeconv.batch import ledger, plan
from edgeconv.batch.names import Names
from edgeconv.batch.pipeline import Batch
from edgeconv.batch.settings import Settings
from edgeconv.batch.summary import Summary
from edgeconv.core.request import make_request
from edgeconv.io.image import write_image
from edgeconv.options import DEFAULT_NAME
from edgeconv.runtime.auto import Choice

RULES = ("--method", "reference", "--channels", "each")
SUFFIX = "_laplacian8_each_reference_s1"


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


def under_way(photos: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    """A batch in a process group of its own whose ledger has a first row."""
    words = [sys.executable, "-m", "edgeconv", "batch", str(photos), "-o", str(out), *RULES, *more]
    process = subprocess.Popen(
        words, env=unmeasured(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    book = out / ledger.LEDGER_NAME
    while process.poll() is None and not (book.exists() and book.stat().st_size):
        time.sleep(0.002)
    return process
