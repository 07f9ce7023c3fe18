"""A command that checks, compares or measures never succeeds where it found nothing to check: one table of all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import edgeconv
from problems import random_image, save_image

BATCH = ("-m", "opencv", "-o", "edges")


CASES = (
    ("verify edges", "There is nothing to verify: 2 pictures failed, and no output was written.", 1),
    ("verify share", "There is nothing to verify: the ledger names no picture, and no output was written.", 1),
    ("verify ledger", "There is nothing to verify: the ledger names no picture", 1),
    ("verify empty", "there is no empty/edgeconv-ledger.jsonl", 2),
    ("batch bad -m opencv -o edges", "0 done, 0 unchanged since an earlier run, 2", 1),
    ("batch empty -m opencv -o edges", "No picture was found", 2),
    ("diff empty empty-too", "have no pictures", 2),
    ("diff photo.png", "One picture alone cannot be compared", 2),
    ("diff photo.png photo.png --ignore all.json", "leave no pixel of 30×20", 2),
    ("diff photo.png photo.png --ignore-border 10", "leave no pixel of 30×20", 2),
    ("resize empty", "no picture there", 2),
    ("resize bad", "2 of 2 pictures failed", 1),
    ("compare photo.png --workspace-limit 1", "of workspace", 5),
    (
        "bench --sizes 64 --strides 1 --filters sobel --methods im2col:workspace-limit=1 --devices cpu -o bench",
        "no method was timed",
        1,
    ),
    ("bench ab . . --grid nothing", "is not known", 2),
    ("report", "Name records to show", 2),
)
BEFORE = {
    "verify edges": "batch bad -m opencv -o edges",
    "verify share": "batch photo.png -m opencv -o share --shard 1/2",
}
"""What is run first."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a picture, two empty folders, one of damaged pictures, an empty ledger."""
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "empty-too", "bad", "ledger"):
        Path(name).mkdir()
    save_image(random_image(20, 30, "uint8"), "photo.png")
    for name in ("a.png", "b.png"):
        Path("bad", name).write_bytes(b"text")
    Path("ledger", "edgeconv-ledger.jsonl").touch()
    region = {"left": 0, "top": 0, "right": 29, "bottom": 19}
    regions = {"schema_version": 1, "kind": "ignored_regions", "regions": [region]}
    Path("all.json").write_text(json.dumps(regions), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("command", "says", "code"), CASES)
def test_nothing_checked_is_never_success(command: str, says: str, code: int, here: Path) -> None:
    if command in BEFORE:
        edgeconv(*BEFORE[command].split(), cwd=here)
    done = edgeconv(*command.split(), cwd=here)
    assert done.code == code, done.text + done.err
    assert says in done.text + done.err


def test_verify_counts_the_pictures_that_have_no_output(here: Path) -> None:
    Path("photo.png").rename(Path("bad", "photo.png"))
    edgeconv("batch", "bad", *BATCH, cwd=here)
    found = edgeconv("verify", "edges", cwd=here)
    assert (found.code, found.text) == (0, "1 of 1 outputs are as they were written; 2 pictures failed.\n")
    for name in ("a.png", "b.png"):
        save_image(random_image(20, 30, "uint8"), Path("bad", name))
    edgeconv("batch", "bad", *BATCH, "--resume", cwd=here)
    found = edgeconv("verify", "edges", cwd=here)
    assert (found.code, found.text) == (0, "3 of 3 outputs are as they were written.\n")


def test_a_picture_of_nan_alone_is_called_right_nowhere(here: Path) -> None:
    save_image(np.full((9, 9, 3), np.nan, np.float32), "nan.tiff")
    told = [
        edgeconv("run", "nan.tiff", "-m", "opencv", "--samples", "0", cwd=here).text,
        edgeconv("compare", "nan.tiff", cwd=here).text,
        edgeconv("report", *(path.name for path in here.glob("nan*.json")), cwd=here).text,
    ]
    assert not [text for text in told if "right" in text]
    for text in told[:2]:
        assert "nothing to check: every output reaches a pixel that is not a finite number" in text
