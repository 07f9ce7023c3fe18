"""`edgeconv run` by tiles as a stranger would use it: what appears on disk and on the screen, and what never does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import tifffile
from command import edgeconv, edgeconv_process
from jsonschema import Draft202012Validator
from meet import held, run_program
from picture_files import saved, smooth_image
from pieces import assert_same, by_whole
from problems import random_image
from selection import few_then_slow, pairs_then_slow

from edgeconv.core.request import make_request
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.export.schemas import schema
from edgeconv.io.image import read_image
from edgeconv.io.temporary_files import STALE_SECONDS
from edgeconv.run.job import Job
from edgeconv.run.tiled import filtering as tiled
from edgeconv.run.tiled.pipeline import WindowFilter
from edgeconv.run.tiled.sinks import kind_for
from edgeconv.run.tiled.sinks.base import OutputShape

HEIGHT, WIDTH = 141, 203


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An 8-bit, a 16-bit and a float TIFF."""
    for dtype, name in (("uint8", "photo.tif"), ("uint16", "deep.tif"), ("float32", "field.tif")):
        tifffile.imwrite(
            tmp_path / name, random_image(HEIGHT, WIDTH, dtype), photometric="rgb", tile=(48, 64), compression="lzw"
        )
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_output_is_that_of_the_whole_picture_and_the_report_fits_its_schema(folder: Path) -> None:
    done = edgeconv(
        "run", "photo.tif", "--tile", 64, "--stride", 2, "-f", "sobel", "--device", "cpu", "--verify-tiles", "-v",
        cwd=folder,
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert names(folder) == {
        "photo.tif", "deep.tif", "field.tif", "photo_sobel_sliding_s2.tiff", "photo_sobel_sliding_s2.json"
    }  # fmt: skip
    request = make_request("sobel", stride=2)
    expected = by_whole(read_image(folder / "photo.tif").pixels, request, "sliding")
    assert_same(read_image(folder / "photo_sobel_sliding_s2.tiff").pixels, expected)
    record = json.loads((folder / "photo_sobel_sliding_s2.json").read_text())
    Draft202012Validator(schema("run"), format_checker=Draft202012Validator.FORMAT_CHECKER).validate(record)
    assert (record["tiles"]["rows"], record["tiles"]["count"]) == (64, 4)
    assert record["tiles"]["proof"]["against"] == "whole picture"
    assert record["tiles"]["proof"]["compared_samples"] == expected.size
    assert record["check"]["checked_share"] == 1.0  # the windows cover a picture as small as this
    assert record["timing"]["kernel"]["n"] == 1  # the tiles of the full size after the first
    for word in ("102×71×3 uint8", "GFLOPS", "right", "byte for byte", "peak"):
        assert word in done.text, word


@pytest.mark.parametrize(
    ("source", "mode"),
    pairs_then_slow(
        [*product(["photo.tif", "deep.tif", "field.tif"], ["abs", "clip", "normalize", "raw"])], together=1
    ),
)
def test_every_mode_and_type_is_that_of_the_whole_picture(folder: Path, source: str, mode: str) -> None:
    """Both commands, file to file: so what pixels go through is compared."""
    common = ("run", source, "--output-mode", mode, "--method", "im2col", "--device", "cpu", "--border", "reflect")
    whole = edgeconv(*common, "-o", "whole.tif", "--samples", 0, cwd=folder)
    if source == "field.tif" and mode == "clip":
        assert whole.code == edgeconv(*common, "--tile", 32, "-o", "tiles.tif", cwd=folder).code == 2
        return
    assert whole.code == 0
    done = edgeconv(*common, "--tile", 32, "-o", "tiles.tif", "--verify-tiles", cwd=folder)
    assert (done.code, done.err) == (0, "")
    assert_same(read_image(folder / "tiles.tif").pixels, read_image(folder / "whole.tif").pixels)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_the_range_is_of_what_is_finite_and_rounding_noise_is_none(tmp_path: Path, dtype: str) -> None:
    words = ("--tile", 32, "--output-mode", "normalize", "--border", "replicate", "--device", "cpu", "--verify-tiles")
    rows = np.repeat(random_image(1, WIDTH, dtype), HEIGHT, axis=0)
    tifffile.imwrite(tmp_path / "rows.tif", rows, photometric="rgb")
    flat = ("-m", "sliding", "-f", "sobel-y", "--channels", "luma", "-o", "flat.tif")
    done = edgeconv("run", "rows.tif", *words, *flat, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert not read_image(tmp_path / "flat.tif").pixels.any()
    if dtype == "float32":
        rows[70, 100] = np.nan, np.inf, -np.inf
        tifffile.imwrite(tmp_path / "odd.tif", rows, photometric="rgb")
        done = edgeconv("run", "odd.tif", *words, "-m", "sliding", "--channels", "each", "-o", "out.tif", cwd=tmp_path)
        assert (done.code, done.err) == (0, "")
        out = read_image(tmp_path / "out.tif").pixels
        finite = out[np.isfinite(out)]
        assert finite.size == out.size - 27
        assert (finite.min(), finite.max()) == (0.0, 1.0)


def test_a_zarr_needs_no_option_and_gives_a_zarr(folder: Path) -> None:
    assert edgeconv("run", "deep.tif", "--tile", 64, "-o", "deep.zarr", "-f", "identity", cwd=folder).code == 0
    done = edgeconv("run", "deep.zarr", "--device", "cpu", "--json", cwd=folder)
    assert done.code == 0, done.err
    record = json.loads(done.text)
    assert record["output"]["file"] == "deep_laplacian8_sliding_s1.zarr"
    assert record["tiles"]["limit_bytes"] == tiled.DEFAULT_LIMIT_BYTES
    assert edgeconv("run", "deep_laplacian8_sliding_s1.zarr", "-f", "identity", "-o", "edges.tif", cwd=folder).code == 0


def test_its_own_earlier_output_is_replaced_and_nothing_else(folder: Path) -> None:
    words = ("run", "photo.tif", "--tile", 64, "-o", "edges.tif", "--device", "cpu")
    assert edgeconv(*words, cwd=folder).code == 0
    first = (folder / "edges.tif").read_bytes()
    assert edgeconv(*words, cwd=folder).code == 0
    assert (folder / "edges.tif").read_bytes() == first
    refused = edgeconv(*words, "--filter", "sobel", cwd=folder)
    assert (refused.code, len(refused.error_lines)) == (2, 1)
    assert "pass --overwrite" in refused.err
    (folder / "edges.tif").write_bytes(first + b"touched")
    assert edgeconv(*words, cwd=folder).code == 2
    assert edgeconv(*words, "--overwrite", cwd=folder).code == 0
    assert (folder / "edges.tif").read_bytes() == first


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("photo.tif", "--tile", 100), 2, "--tile 100 is not a multiple of 16"),
        (("photo.tif", "--tile", 64, "-o", "photo.tif", "--overwrite"), 2, "is the input itself"),
        (("photo.tif", "--tile", 64, "-o", "kern.tif", "--kernel-file", "kern.json"), 2, "is the kernel file"),
        (("photo.tif", "--tile", 64, "-o", "made.tif", "--overwrite"), 2, "made.json: is a folder"),
        (("photo.tif", "--tile", 64, "-o", "edges.png"), 2, "'.png' is not a format that can be written by tiles"),
        (("photo.tif", "--tile", 64, "-o", "-"), 2, "name a file"),
        (("-", "--tile", 64), 2, "name a file"),
        (("photo.tif", "--tile", 64, "-o", "photo.bmp/edges.zarr"), 2, "photo.bmp/edges.zarr: cannot be written"),
        (("x" * 300, "--tile", 64), 2, "xxx: cannot be read"),
        (("photo.tif", "--tile", 64, "-o", "none/edges.tif"), 2, "the folder none does not exist"),
        (("photo.tif", "--memory-limit", "50MiB"), 5, "set --memory-limit"),
        (("photo.tif", "--memory-limit", "0"), 2, "leaves no memory at all"),
        (("photo.tif", "--tile", 8192, "--memory-limit", "300MiB"), 0, ""),  # the picture is smaller than the tile
        (("field.tif", "--tile", 64, "--method", "opencv"), 2, "use --method sliding"),
        (("none.tif", "--tile", 64), 2, "there is no such file"),
        (("photo.bmp", "--verify-tiles"), 2, "convert it to TIFF, or leave the tile options out"),
        ((".", "--tile", 64), 2, "is not a picture that can be read by tiles"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(folder: Path, words: tuple, code: int, says: str) -> None:
    (folder / "photo.bmp").write_bytes(saved(smooth_image(40, 60), "BMP"))
    (folder / "kern.json").write_text("[[0, 1, 0], [1, -4, 1], [0, 1, 0]]")
    (folder / "made.json").mkdir()
    before = names(folder)
    start = edgeconv_process if "--memory-limit" in words else edgeconv  # a limit is that of a process
    done = start("run", *words, "--device", "cpu", cwd=folder)
    assert done.code == code, done.err
    assert says in done.err
    if code:
        assert len(done.error_lines) == 1
        assert names(folder) == before


def test_a_damaged_tile_is_one_line_with_its_place_and_leaves_nothing(folder: Path) -> None:
    with tifffile.TiffFile(folder / "photo.tif") as file:
        place, count = file.pages.first.dataoffsets[5], file.pages.first.databytecounts[5]
    data = bytearray((folder / "photo.tif").read_bytes())
    data[place : place + count] = bytes(count)
    (folder / "photo.tif").write_bytes(bytes(data))
    before = names(folder)
    for words in (("--tile", 32), ("--tile", 32, "--output-mode", "normalize"), ("--memory-limit", "1GiB")):
        start = edgeconv_process if "--memory-limit" in words else edgeconv
        done = start("run", "photo.tif", "--device", "cpu", *words, cwd=folder)
        assert (done.code, len(done.error_lines)) == (2, 1)
        assert "photo.tif: TIFF: the piece at rows 48 to 95, columns 64 to 127 cannot be decoded" in done.err
        assert names(folder) == before


def test_never_does_a_folder_that_is_no_zarr_go(folder: Path) -> None:
    (folder / "photos.zarr").mkdir()
    (folder / "photos.zarr" / "precious.txt").write_text("precious")
    done = edgeconv("run", "photo.tif", "--tile", 64, "-o", "photos.zarr", "--overwrite", cwd=folder)
    assert done.code == 2
    assert "not a Zarr that could be replaced" in done.err
    assert (folder / "photos.zarr" / "precious.txt").read_text() == "precious"


def test_an_output_inside_the_input_or_around_it_is_refused(folder: Path) -> None:
    assert edgeconv("run", "photo.tif", "--tile", 64, "-o", "in.zarr", cwd=folder).code == 0
    inside = edgeconv("run", "in.zarr", "-o", "in.zarr/out.zarr", cwd=folder)
    assert (inside.code, "lies inside the input" in inside.err) == (2, True)
    (folder / "out.zarr").mkdir()
    shutil.move(folder / "in.zarr", folder / "out.zarr" / "in.zarr")
    around = edgeconv("run", "out.zarr/in.zarr", "-o", "out.zarr", "--overwrite", cwd=folder)
    assert (around.code, "the input lies inside it" in around.err) == (2, True)


# --- stopped in the middle -----------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("number", few_then_slow([signal.SIGINT, signal.SIGTERM]))
@pytest.mark.parametrize("target", ["edges.tif", "edges.zarr"])
def test_a_run_that_is_stopped_leaves_nothing(folder: Path, number: signal.Signals, target: str) -> None:
    """The signal comes before the third of twelve tiles, when the first is written."""
    before = names(folder)
    words = ("run", "photo.tif", "--tile", 64, "-o", target, "--device", "cpu")
    with held("edgeconv.run.tiled.pipeline:WindowFilter.run", words, at=3, cwd=folder) as child:
        child.arrived()
        assert any(name.startswith(".edgeconv") for name in names(folder))
        child.process.send_signal(number)
        assert child.process.wait() == 128 + number
        assert child.errors() == f"edgeconv: error: stopped by {number.name}.\n"
    assert names(folder) == before


@pytest.mark.parametrize("words", [(), ("--tile", 64), ("--tile", 64, "-o", "o.zarr")])
def test_what_a_killed_run_left_half_written_is_removed_by_the_next_one(folder: Path, words: tuple) -> None:
    long_ago = time.time() - 2 * STALE_SECONDS
    (folder / ".edgeconv-01234567-1-0123456789ab.tmp").write_bytes(b"half")
    (folder / ".edgeconv-01234567-1-ba9876543210.tmp" / "0").mkdir(parents=True)
    (folder / ".edgeconv-01234567-1-ba9876543210.tmp" / "0" / "zarr.json").write_bytes(b"half")
    for left in folder.glob(".edgeconv-*.tmp"):
        os.utime(left, (long_ago, long_ago))
    (folder / ".edgeconv-01234567-1-0000456789ab.tmp").write_bytes(b"somebody is writing this")
    assert edgeconv("run", "photo.tif", *words, "--samples", 0, cwd=folder).code == 0
    assert [left.name for left in folder.glob(".edgeconv-*")] == [".edgeconv-01234567-1-0000456789ab.tmp"]


@pytest.mark.parametrize("suffix", [".tif", ".zarr"])
def test_an_output_that_is_a_link_is_made_where_the_link_leads(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "disk").mkdir()
    target = tmp_path / f"o{suffix}"
    target.symlink_to(tmp_path / "disk" / target.name)
    sink = kind_for(target).make(target, OutputShape(32, 32, 3, np.dtype(np.uint8)), 16)
    assert sink.path.parent == tmp_path / "disk"
    sink.discard()
    assert list((tmp_path / "disk").iterdir()) == []


# --- verifying can fail --------------------------------------------------------------------------------------------


def job_of(folder: Path, check: str = "sample") -> Job:
    source, target = (str(folder / name) for name in ("photo.tif", "o.tif"))
    return Job(source, make_request(), method="sliding", device="cpu", output=target, check=check)


def test_what_another_run_wrote_meanwhile_is_not_replaced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class BesideAnotherRun(WindowFilter):
        def run(self, padded: np.ndarray) -> np.ndarray:
            (folder / "o.tif").write_bytes(b"of another run")
            return super().run(padded)

    monkeypatch.setattr(tiled, "WindowFilter", BesideAnotherRun)
    with pytest.raises(ImageWriteError, match="--overwrite"):
        tiled.run(job_of(folder), tiled.TileOptions(side=64))
    assert (folder / "o.tif").read_bytes() == b"of another run"


@pytest.mark.parametrize("source", ["photo.tif", "in.zarr"])
def test_an_input_that_changes_while_it_is_read_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    assert edgeconv("run", "photo.tif", "--tile", 64, "-o", "in.zarr", cwd=folder).code == 0
    touched = folder / source if source.endswith("tif") else next(path for path in folder.rglob("in.zarr/0/c/0/0/0"))
    before = names(folder)

    class BesideAnEditor(WindowFilter):
        def run(self, padded: np.ndarray) -> np.ndarray:
            os.utime(touched)
            return super().run(padded)

    monkeypatch.setattr(tiled, "WindowFilter", BesideAnEditor)
    with pytest.raises(ImageReadError, match="was changed while it was read"):
        tiled.run(replace(job_of(folder), source=str(folder / source)), tiled.TileOptions(side=64))
    assert names(folder) == before


class Askew(WindowFilter):
    """A filter whose output depends on the shape of its tile in one sample."""

    def run(self, padded: np.ndarray) -> np.ndarray:
        out = super().run(padded)
        if padded.shape[0] == 66:
            out[3, 5, 1] ^= 1
        return out


@pytest.mark.parametrize("whole_fits", [True, False])
def test_verifying_finds_one_sample_that_depends_on_the_tile(
    folder: Path, monkeypatch: pytest.MonkeyPatch, whole_fits: bool
) -> None:
    monkeypatch.setattr(tiled, "WindowFilter", Askew)
    monkeypatch.setattr(tiled.TiledRun, "_whole_fits", lambda self: whole_fits)
    words = ("--tile", 64, "--verify-tiles", "--device", "cpu", "--check", "none", "-o", "o.tif")
    done = edgeconv("run", "photo.tif", *words, cwd=folder)
    assert (done.code, "the output is not that of" in done.err) == (1, True)
    proof = json.loads((folder / "o.json").read_text())["tiles"]["proof"]
    first = proof["first"]
    assert (proof["passed"], first["channel"], (first["y"] - 3) % 32, (first["x"] - 5) % 32) == (False, 1, 0, 0)


@pytest.mark.parametrize("words", [(), ("--chain", "gaussian")])
def test_the_check_finds_one_wrong_sample(folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple) -> None:
    class Wrong(WindowFilter):
        def run(self, padded: np.ndarray) -> np.ndarray:
            out = super().run(padded).copy()
            out[-1, -1, 2] ^= 16
            return out

    monkeypatch.setattr(tiled, "WindowFilter", Wrong)
    done = edgeconv("run", "photo.tif", *words, "--tile", 512, "--check", "full", "-o", "o.tif", cwd=folder)
    assert done.code == 1, done.err
    check = json.loads((folder / "o.json").read_text())["check"]
    assert (check["passed"], check["worst"]["y"], check["worst"]["x"]) == (False, HEIGHT - 1, WIDTH - 1)


def test_tiles_cost_nothing_where_they_are_not_asked_for() -> None:
    """A plain run loads none of the libraries of tiles."""
    code = (
        "import sys; import edgeconv.cli.run, edgeconv.run.tiled.filtering;"
        "print(*{'tifffile', 'zarr', 'imagecodecs'} & set(sys.modules))"
    )
    done = run_program(code)
    assert (done.returncode, done.stdout) == (0, "\n")
