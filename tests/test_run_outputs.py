"""Names, ownership and overwriting of outputs: the one rule behind `run`, `run` by tiles and `batch`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batch_folders import RULES
from command import Finished, edgeconv
from problems import random_image, save_image

from edgeconv.batch import ledger
from edgeconv.core.request import make_request
from edgeconv.errors import UsageError
from edgeconv.io.contained_paths import file_identity
from edgeconv.run.job import Job
from edgeconv.run.naming import default_name, output_path

BANK = ("--filters", "sobel-x,sobel-y")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A picture, a kernel, and another picture of the same name."""
    monkeypatch.chdir(tmp_path)
    Path("x").mkdir()
    save_image(random_image(9, 8, "uint8"), "a.png")
    save_image(random_image(9, 8, "uint8", 7), "x/a.png")
    Path("kern.json").write_text("[[0, 1, 0], [1, -4, 1], [0, 1, 0]]")
    np.save("m_k00.npy", np.ones((2, 1, 3, 3)))
    return tmp_path


def run(*words: object) -> Finished:
    return edgeconv("run", "-m", "reference", "--samples", 0, "--check", "none", *words)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def job(output: str | None = None, **settings: object) -> Job:
    return Job("a.png", make_request(**settings), "reference", "cpu", output, samples=0)  # type: ignore[arg-type]


def test_a_name_that_is_not_given_says_what_was_done(folder: Path) -> None:
    assert default_name(job(), "sliding", "png") == "a_sobel_sliding_s1.png"
    assert output_path(job(), "sliding", "tiff") == Path("a_sobel_sliding_s1.tiff")
    assert output_path(job("made/"), "sliding", "png") == Path("made/a_sobel_sliding_s1.png")
    assert output_path(job("b.webp"), "sliding", "png") == Path("b.webp")
    assert output_path(job("-"), "sliding", "png") is None
    (folder / "old.zarr").mkdir()
    assert output_path(job("old.zarr"), "sliding", "zarr", (".zarr",)) == Path("old.zarr")
    with pytest.raises(UsageError, match=r"ends in \.json, the suffix of the report"):
        output_path(job("b.json"), "sliding", "png")
    with pytest.raises(UsageError, match="--check 'some' is not one of sample, full, none"):
        Job("a.png", make_request(), check="some")


def set_output(value: Any) -> Callable[[], object]:
    """Anybody may have put anything where the report goes."""
    return lambda: Path("e.json").write_text(json.dumps(json.loads(Path("e.json").read_text()) | {"output": value}))


def nothing() -> None:
    pass


def edited(name: str) -> Callable[[], object]:
    """As many bytes as before, and another one among them."""

    def edit() -> None:
        content = bytearray(Path(name).read_bytes())
        content[-1] ^= 1
        Path(name).write_bytes(content)

    return edit


FOREIGN = ["text", [], 5, None, {"files": 5}, {"files": "ab"}, {"files": [5, 6]}, {"files": [{}, {}]}, {"files": {}}]


@pytest.mark.parametrize(
    ("first", "change", "second", "reason"),
    [
        ((), nothing, ("a.png", "--stride", 2), "holds a result with other settings"),
        ((), nothing, ("a.png", "--border", "reflect"), "holds a result with other settings"),
        (("-t", 40), nothing, ("a.png", "-t", 41), "holds a result with other settings"),
        (("-t", 40), nothing, ("a.png",), "holds a result with other settings"),
        (
            ("--filter", "canny", "--thresholds", "50,150"),
            nothing,
            ("a.png", "--filter", "canny", "--thresholds", "50,151"),
            "holds a result with other settings",
        ),
        ((), nothing, ("x/a.png",), "holds the result of another picture, a.png"),
        (
            (),
            lambda: save_image(random_image(9, 8, "uint8", 5), "a.png"),
            ("a.png",),
            "holds the result of an earlier version of a.png",
        ),
        ((), lambda: Path("e.png").write_bytes(b"mine"), ("a.png",), "exists and was changed since edgeconv wrote it"),
        ((), edited("e.png"), ("a.png",), "exists and was changed since edgeconv wrote it"),
        ((), nothing, ("a.png", "-m", "opencv"), "holds a result with other settings"),
        ((), lambda: save_image(random_image(9, 8, "uint8", channels=1), "a.png"), ("a.png",), "holds a result with"),
        ((), lambda: Path("e.json").write_text("{}"), ("a.png",), "exists"),
        ((), lambda: Path("e.json").unlink(), ("a.png",), "exists"),
        ((), lambda: Path("e.png").unlink(), ("a.png", "--stride", 2), "holds a result with other settings"),
        (BANK, nothing, ("a.png", "--filters", "sobel-x,scharr-y"), "holds a result with other settings"),
        (BANK, nothing, ("a.png", "--filters", "sobel-x"), "holds a result with other settings"),
        (BANK, lambda: Path("e_sobel-y.png").write_bytes(b"mine"), ("a.png", *BANK), "exists and was changed since"),
        (BANK, edited("e_sobel-x.png"), ("a.png", *BANK), "exists and was changed since"),
        (BANK, lambda: Path("e.json").unlink(), ("a.png", *BANK), "exists"),
        *((BANK, set_output(value), ("a.png", *BANK), "exists") for value in FOREIGN),
    ],
)
def test_what_edgeconv_did_not_write_of_this_picture_and_settings_is_kept(
    folder: Path, first: tuple, change: Callable[[], object], second: tuple, reason: str
) -> None:
    for _ in range(2):  # its own result is replaced
        assert run("a.png", *first, "-o", "e.png").code == 0
    change()
    before = contents(folder)
    refused = run(*second, "-o", "e.png")
    assert (refused.code, len(refused.error_lines)) == (2, 1)
    assert f" {reason}" in refused.err
    assert "pass --overwrite" in refused.err
    assert contents(folder) == before
    assert run(*second, "-o", "e.png", "--overwrite").code == 0


@pytest.mark.parametrize("words", [(), BANK, ("--filter", "canny", "--thresholds", "50,150")], ids=str)
def test_an_output_that_is_kept_is_known_before_a_pixel_is_decoded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    for name in ("e.png", "e_sobel-x.png"):
        Path(name).write_bytes(b"mine")
    monkeypatch.setattr("edgeconv.io.reading.decode", lambda *_: pytest.fail("it was decoded"))
    refused = edgeconv("run", "a.png", *words, "-o", "e.png")
    assert (refused.code, " exists: pass --overwrite" in refused.err) == (2, True)


def test_what_a_killed_run_left_out_is_made(folder: Path) -> None:
    for words, names in (((), ["e.png"]), (BANK, ["e_sobel-x.png", "e_sobel-y.png"])):
        Path("e.json").unlink(missing_ok=True)
        assert run("a.png", *words, "-o", "e.png").code == 0
        Path(names[-1]).unlink()
        assert run("a.png", *words, "-o", "e.png").code == 0
        assert set(contents(folder)) >= {"e.json", *names}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("a.png", "-o", "a.png"), "a.png: is the input itself"),
        (("a.png", "-o", "./link.png"), "link.png: is the input itself"),
        (("a.png", "--kernel-file", "kern.json", "-o", "kern.png"), "kern.json: is the input itself"),
        (("a.png", "--kernel-file", "m_k00.npy", "-o", "m_k00.npy"), "m_k00.npy: is the input itself"),
        (("e_sobel-x.png", *BANK, "-o", "e.png"), "e_sobel-x.png: is the input itself"),
        (("a.png", "-o", "o.png"), "o.json' is a folder"),
        (("a.png", "-o", "made"), "a_sobel_reference_s1.png' is a folder"),
        (("a.png", *BANK, "-o", "f.png"), "f_sobel-y.png' is a folder"),
        (("a.png", "-o", "none/b.png"), "the folder none does not exist"),
    ],
)
def test_what_may_never_be_replaced(folder: Path, words: tuple, says: str) -> None:
    for name in ("o.json", "made/a_sobel_reference_s1.png", "f_sobel-y.png"):
        Path(name).mkdir(parents=True)
    Path("link.png").symlink_to("a.png")
    Path("e_sobel-x.png").write_bytes(Path("a.png").read_bytes())
    before = contents(folder)
    for more in ((), ("--overwrite",)):
        done = run(*words, *more)
        assert (done.code, len(done.error_lines)) == (2, 1), done.err
        assert says in done.err
        assert contents(folder) == before


@pytest.mark.parametrize("tiles", [[], ["--tile", 16]], ids=["whole", "tiles"])
@pytest.mark.parametrize("linked", ["x.tif", "x.json"])
def test_a_link_is_no_earlier_output_whatever_the_report_beside_it_says(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, tiles: list[object], linked: str
) -> None:
    """A folder of somebody else's may hold a report that calls any file outside it an earlier output."""
    words = ("a.png", *tiles, "-o", "theirs/x.tif")
    Path("theirs").mkdir()
    assert run(*words).code == 0
    outside = tmp_path_factory.mktemp("outside") / "precious"
    (folder / "theirs" / linked).rename(outside)
    (folder / "theirs" / linked).symlink_to(outside)
    state = outside.stat()
    done = run(*words)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert "exists: pass --overwrite" in done.err
    assert (outside.stat().st_ino, outside.stat().st_mtime_ns) == (state.st_ino, state.st_mtime_ns)


def test_a_batch_does_not_replace_its_kernel_file_through_a_link(folder: Path) -> None:
    Path("out").mkdir()
    kernel = Path("kern.json").rename(folder / "out" / "kernel.json")
    before = kernel.read_bytes()
    (folder / "out" / "a.png").symlink_to("kernel.json")
    words = ("--kernel-file", "out/kernel.json", "--name", "{stem}{ext}", "--overwrite")
    done = edgeconv("batch", "a.png", "-o", "out", *RULES, *words)
    assert done.code == 1
    assert "a.png: is one of the inputs" in done.err
    assert [row.status for row in ledger.read("out").rows] == ["failed"]
    assert kernel.read_bytes() == before


def test_a_folder_may_have_files_whose_names_are_no_text(tmp_path: Path) -> None:
    """A Zarr that was unpacked from an old archive: names are bytes."""
    empty = file_identity(tmp_path)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")).write_bytes(b"content")
    found = file_identity(tmp_path)
    assert found["file_bytes"] == len(b"content")
    assert found["file_sha256"] != empty["file_sha256"]
