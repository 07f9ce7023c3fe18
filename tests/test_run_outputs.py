"""Names, ownership and overwriting of outputs: the one rule behind `run`, `run` by tiles and `batch`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from batch_folders import RULES
from command import edgeconv
from problems import random_image

from edgeconv.batch import ledger
from edgeconv.core.request import make_request
from edgeconv.errors import ImageWriteError, UsageError
from edgeconv.io.encoding import write_image
from edgeconv.io.file_identity import file_identity
from edgeconv.run.job import Job
from edgeconv.run.naming import default_name, output_path
from edgeconv.run.picture import run_picture

LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_image(random_image(9, 8, "uint8"), "a.png")
    return tmp_path


def job(output: str | None = None, **settings: object) -> Job:
    return Job("a.png", make_request(**settings), "reference", "cpu", output, samples=0)  # type: ignore[arg-type]


def test_a_name_that_is_not_given_says_what_was_done(folder: Path) -> None:
    assert default_name(job(), "sliding", "png") == "a_laplacian8_sliding_s1.png"
    assert output_path(job(), "sliding", "tiff") == Path("a_laplacian8_sliding_s1.tiff")
    assert output_path(job("made/"), "sliding", "png") == Path("made/a_laplacian8_sliding_s1.png")
    assert output_path(job("b.webp"), "sliding", "png") == Path("b.webp")
    assert output_path(job("-"), "sliding", "png") is None
    (folder / "old.zarr").mkdir()
    assert output_path(job("old.zarr"), "sliding", "zarr", (".zarr",)) == Path("old.zarr")
    with pytest.raises(UsageError, match=r"ends in \.json, the suffix of the report"):
        output_path(job("b.json"), "sliding", "png")
    with pytest.raises(UsageError, match="--check 'some' is not one of sample, full, none"):
        Job("a.png", make_request(), check="some")


def test_a_run_says_why_it_does_not_replace_a_file(folder: Path) -> None:
    run_picture(job("o.png"))
    run_picture(job("o.png"))  # its own result
    for change, reason in (
        (lambda: None, "holds a result with other settings"),
        (
            lambda: write_image(random_image(9, 8, "uint8", 5), "a.png"),
            "holds the result of an earlier version of a.png",
        ),
        (lambda: write_image(random_image(3, 3, "uint8"), "o.png"), "exists and was changed since edgeconv wrote it"),
        (lambda: Path("o.json").write_text("{}"), "exists"),
    ):
        change()
        before = Path("o.png").read_bytes()
        with pytest.raises(ImageWriteError, match=rf"^Output 'o\.png' {reason}: pass --overwrite"):
            run_picture(job("o.png", stride=2) if "settings" in reason else job("o.png"))
        assert Path("o.png").read_bytes() == before


def test_a_folder_is_not_replaced_by_a_picture(folder: Path) -> None:
    (folder / "made" / "a_laplacian8_reference_s1.png").mkdir(parents=True)
    with pytest.raises(ImageWriteError, match="is a folder: name a file in it"):
        run_picture(job("made"))


@LINKS
def test_a_batch_does_not_replace_its_kernel_file_through_a_link(folder: Path) -> None:
    (folder / "out").mkdir()
    kernel = folder / "out" / "kernel.json"
    kernel.write_text(json.dumps([[0, 1, 0], [1, -4, 1], [0, 1, 0]]))
    before = kernel.read_bytes()
    (folder / "out" / "a.png").symlink_to("kernel.json")
    words = ("--kernel-file", "out/kernel.json", "--name", "{stem}{ext}", "--overwrite")
    done = edgeconv("batch", "a.png", "-o", "out", *RULES, *words)
    assert done.code == 1
    assert "a.png: is one of the inputs" in done.err
    assert [row.status for row in ledger.read("out").rows] == ["failed"]
    assert kernel.read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have names of Unicode alone")
def test_a_folder_may_have_files_whose_names_are_no_text(tmp_path: Path) -> None:
    """A Zarr that was unpacked from an old archive: names are bytes."""
    empty = file_identity(tmp_path)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")).write_bytes(b"content")
    found = file_identity(tmp_path)
    assert found["file_bytes"] == len(b"content")
    assert found["file_sha256"] != empty["file_sha256"]
