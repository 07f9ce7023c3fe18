"""`edgeconv run` by tiles as a stranger would use it: what appears on disk and on the screen, and what never does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from command import edgeconv
from jsonschema import Draft202012Validator
from meet import held, run_program
from picture_files import saved, smooth_image
from pieces import assert_same, by_whole
from problems import random_image
from selection import few_then_slow, pairs_then_slow

import edgeconv as package
from edgeconv.core.request import make_request
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.export.schemas import schema
from edgeconv.io.atomic import STALE_SECONDS
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.run import tiles
from edgeconv.run.job import Job
from edgeconv.run.tiles import WindowFilter

HEIGHT, WIDTH = 141, 203


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An 8-bit, a 16-bit, a float and a grey TIFF."""
    for dtype, name in (("uint8", "photo.tif"), ("uint16", "deep.tif"), ("float32", "field.tif")):
        pixels = random_image(HEIGHT, WIDTH, dtype)
        tifffile.imwrite(tmp_path / name, pixels, photometric="rgb", tile=(48, 64), compression="lzw")
    write_image(random_image(HEIGHT, WIDTH, "float64")[:, :, :1], tmp_path / "grey.tif")
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def checked(text: str) -> dict:
    """A report, which fits its schema."""
    record = json.loads(text)
    Draft202012Validator(schema("run"), format_checker=Draft202012Validator.FORMAT_CHECKER).validate(record)
    return record


def test_the_output_is_that_of_the_whole_picture_and_the_report_says_how(folder: Path) -> None:
    before = names(folder)
    done = edgeconv(
        *("run", "photo.tif", "--tile", 64, "--stride", 2, "-f", "sobel", "--device", "cpu", "--check", "full", "-v"),
        cwd=folder,
    )
    assert (done.code, done.err) == (0, "")
    assert names(folder) - before == {"photo_sobel_sliding_s2.tiff", "photo_sobel_sliding_s2.json"}
    expected = by_whole(read_image(folder / "photo.tif").pixels, make_request("sobel", stride=2), "sliding")
    assert_same(read_image(folder / "photo_sobel_sliding_s2.tiff").pixels, expected)
    record = checked((folder / "photo_sobel_sliding_s2.json").read_text())
    assert (record["tiles"]["rows"], record["tiles"]["count"]) == (64, 4)
    assert record["tiles"]["chunks"] == record["tiles"]["chunks_decoded"] == 12
    assert record["check"]["checked_share"] == 1.0
    assert record["timing"]["kernel"]["n"] == 1
    assert record["input"]["file_bytes"] == (folder / "photo.tif").stat().st_size
    for word in ("102×71×3 uint8", "GFLOPS", "right", "decoded once", "peak"):
        assert word in done.text, word


CASES = [
    *(("--output-mode", mode, source) for source, mode in product(
        ["photo.tif", "deep.tif", "field.tif", "grey.tif"], ["abs", "clip", "normalize", "raw"]
    )),
    *(("--threshold", "90", "--output-mode", mode, "photo.tif") for mode in ("abs", "normalize", "raw")),
    ("--rgb", "grey.tif"),
    *((*words.split(), "photo.tif") for words in (
        "--chain gaussian,sobel,thin", "--chain gaussian5,sobel --output-mode raw", "--chain sobel,thin --threshold 90",
        "--chain sobel,direction --gradient l2",
    )),
]  # fmt: skip


@pytest.mark.parametrize("words", pairs_then_slow(CASES, lambda each: (each[:-1], each[-1]), several=False, together=1))
def test_every_mode_type_and_chain_is_that_of_the_whole_picture(folder: Path, words: tuple) -> None:
    """Both commands, file to file: so what pixels go through is compared."""
    common = ("run", *words, "--check", "full")
    method = ("--method", "im2col", "--device", "cpu", "--border", "reflect") if "--chain" not in words else ()
    whole = edgeconv(*common, *method, "-o", "whole.tif", "--samples", 0, cwd=folder)
    done = edgeconv(*common, *method, "--tile", 32, "-o", "tiles.tif", cwd=folder)
    if words[-1] in ("field.tif", "grey.tif") and "clip" in words:
        assert whole.code == done.code == 2
        return
    assert (whole.code, done.code, done.err) == (0, 0, "")
    assert_same(tifffile.imread(folder / "tiles.tif"), tifffile.imread(folder / "whole.tif"))
    record = checked((folder / "tiles.json").read_text())
    assert record["check"]["passed"]
    assert (record["speed"] is None) == ("--chain" in words or "normalize" in words)
    behind = [name for name, word in (("normalize", "normalize"), ("threshold", "--threshold")) if word in words]
    assert record["timing"]["leaves_out"] == (" and ".join(behind) or None)
    assert ("threshold" in record["phases_seconds"]) == ("--threshold" in words)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_the_range_is_of_what_is_finite_and_rounding_noise_is_none(tmp_path: Path, dtype: str) -> None:
    words = ("--tile", 32, "--output-mode", "normalize", "--border", "replicate", "--device", "cpu", "-m", "sliding")
    rows = np.repeat(random_image(1, WIDTH, dtype), HEIGHT, axis=0)
    tifffile.imwrite(tmp_path / "rows.tif", rows, photometric="rgb")
    flat = ("-f", "sobel-y", "--channels", "luma", "-o", "flat.tif")
    assert edgeconv("run", "rows.tif", *words, *flat, cwd=tmp_path).code == 0
    assert not read_image(tmp_path / "flat.tif").pixels.any()
    if dtype == "float32":
        rows[70, 100] = np.nan, np.inf, -np.inf
        tifffile.imwrite(tmp_path / "odd.tif", rows, photometric="rgb")
        assert edgeconv("run", "odd.tif", *words, "-f", "laplacian8", "-o", "out.tif", cwd=tmp_path).code == 0
        out = read_image(tmp_path / "out.tif").pixels
        finite = out[np.isfinite(out)]
        assert (finite.size, finite.min(), finite.max()) == (out.size - 27, 0.0, 1.0)


@pytest.mark.parametrize("channels", ["mix", "each"])
def test_a_bank_by_tiles_is_one_file_with_all(folder: Path, channels: str) -> None:
    bank = ["sobel-x", "sobel-y", "laplacian8", "emboss"]
    words = ("run", "photo.tif", "-m", "reference", "--samples", 0, "--tile", 32, "--filters", ",".join(bank))
    expected = package.convolve(read_image(folder / "photo.tif").pixels, bank, "reference", channels=channels)
    for output in ("out.tif", "out.zarr"):
        for check in ("none", "full"):  # its own result is replaced
            done = edgeconv(*words, "--channels", channels, "--check", check, "-o", output, cwd=folder)
            assert done.code == 0, done.err
        record = checked((folder / "out.json").read_text())
        assert record["output"]["channels"] == expected.shape[2]
        assert record["check"]["checked_share"] == 1
        (folder / "out.json").unlink()
    assert_same(np.moveaxis(zarr.open_array(str(folder / "out.zarr" / "0"))[...], 0, 2), expected)
    with tifffile.TiffFile(folder / "out.tif") as file:
        for number, page in enumerate(file.pages):
            assert_same(page.asarray().reshape(HEIGHT, WIDTH, -1), expected[:, :, number :: len(bank)])


def test_a_zarr_needs_no_option_and_gives_a_zarr(folder: Path) -> None:
    assert edgeconv("run", "deep.tif", "--tile", 64, "-o", "deep.zarr", "-f", "identity", cwd=folder).code == 0
    done = edgeconv("run", "deep.zarr", "--device", "cpu", "--json", cwd=folder)
    assert done.code == 0, done.err
    record = json.loads(done.text)
    assert record["output"]["file"] == "deep_sobel_sliding_s1.zarr"
    assert record["tiles"]["limit_bytes"] == tiles.DEFAULT_LIMIT_BYTES
    assert edgeconv("run", "deep_sobel_sliding_s1.zarr", "-f", "identity", "-o", "edges.tif", cwd=folder).code == 0


def test_its_own_earlier_output_is_replaced_and_nothing_else(folder: Path) -> None:
    """As a whole picture too: the report says what the file was made from."""
    words = ("run", "photo.tif", "-o", "edges.tif", "-m", "sliding", "--samples", 0)
    for more in (("--tile", 64), ("--tile", 64), (), ("--tile", 64)):
        assert edgeconv(*words, *more, cwd=folder).code == 0
    first = (folder / "edges.tif").read_bytes()
    refused = edgeconv(*words, "--tile", 64, "--filter", "scharr", cwd=folder)
    assert (refused.code, len(refused.error_lines)) == (2, 1)
    assert "edges.tif' holds a result with other settings: pass --overwrite" in refused.err
    (folder / "edges.tif").write_bytes(first + b"touched")
    assert edgeconv(*words, "--tile", 64, cwd=folder).code == 2
    assert edgeconv(*words, "--tile", 64, "--overwrite", cwd=folder).code == 0
    assert (folder / "edges.tif").read_bytes() == first


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("photo.tif", "--tile", 100), 2, "--tile 100 is not a multiple of 16"),
        (("photo.tif", "--tile", 64, "-o", "photo.tif", "--overwrite"), 2, "is the input itself"),
        (("photo.tif", "--tile", 64, "-o", "kern.tif", "--kernel-file", "kern.json"), 2, "kern.json: is"),
        (("photo.tif", "--tile", 64, "-o", "made.tif", "--overwrite"), 2, "made.json' is a folder"),
        (("photo.tif", "--tile", 64, "-o", "edges.png"), 2, "'.png' is not a format that can be written by tiles"),
        (("photo.tif", "--tile", 64, "-o", "-"), 2, "name a file"),
        (("-", "--tile", 64), 2, "name a file"),
        (("photo.tif", "--tile", 64, "-o", "photo.bmp/edges.zarr"), 2, "photo.bmp"),
        (("x" * 300, "--tile", 64), 2, "xxx: cannot be read"),
        (("photo.tif", "--tile", 64, "-o", "none/edges.tif"), 2, "the folder none does not exist"),
        (("photo.tif", "--memory-limit", "50MiB"), 5, "set --memory-limit"),
        (("photo.tif", "--memory-limit", "0"), 2, "leaves no memory at all"),
        (("photo.tif", "--tile", 8192, "--memory-limit", "300MiB"), 0, ""),  # the picture is smaller than the tile
        (("thin.tif", "--tile", 64, "--max-pixels", 4 * WIDTH - 1), 2, "a strip of 812 pixels"),
        (("thin.tif", "--tile", 64, "--max-pixels", 4 * WIDTH), 0, ""),  # strips are read in groups
        (("field.tif", "--tile", 64, "--method", "opencv"), 2, "use --method sliding"),
        (("none.tif", "--tile", 64), 2, "there is no such file"),
        (("photo.bmp", "--tile", 64), 2, "convert it to TIFF, or leave the tile options out"),
        ((".", "--tile", 64), 2, "is not a picture that can be read by tiles"),
        (("photo.tif", "--tile", 64, "--overwrite", "-o", "photos.zarr"), 2, "photos.zarr' is a folder"),
        (("in.zarr", "-o", "in.zarr/out.zarr"), 2, "lies inside the input"),
        (("out.zarr/in.zarr", "-o", "out.zarr", "--overwrite"), 2, "out.zarr"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(folder: Path, words: tuple, code: int, says: str) -> None:
    (folder / "photo.bmp").write_bytes(saved(smooth_image(40, 60), "BMP"))
    thin = random_image(HEIGHT, WIDTH, "uint8")
    tifffile.imwrite(folder / "thin.tif", thin, photometric="rgb", rowsperstrip=4, compression="lzw")
    (folder / "kern.json").write_text("[[0, 1, 0], [1, -4, 1], [0, 1, 0]]")
    for name in ("made.json", "photos.zarr"):
        (folder / name).mkdir()
        (folder / name / "precious.txt").write_text("precious")
    zarr.create_array(str(folder / "in.zarr"), data=random_image(9, 8, "uint8"))
    shutil.copytree(folder / "in.zarr", folder / "out.zarr" / "in.zarr")
    before = sorted(folder.rglob("*"))
    done = edgeconv("run", *words, "--device", "cpu", cwd=folder)
    assert done.code == code, done.err
    assert says in done.err
    if code:
        assert len(done.error_lines) == 1
        assert sorted(folder.rglob("*")) == before


# --- stopped in the middle, or not alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("number", few_then_slow([signal.SIGINT, signal.SIGTERM]))
@pytest.mark.parametrize("target", ["edges.tif", "edges.zarr"])
def test_a_run_that_is_stopped_leaves_nothing(folder: Path, number: signal.Signals, target: str) -> None:
    """The signal comes before the third of twelve tiles, when the first is written."""
    before = names(folder)
    words = ("run", "photo.tif", "--tile", 64, "-o", target, "--device", "cpu")
    with held("edgeconv.run.tiles:WindowFilter.run", words, at=4, cwd=folder) as child:
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
def test_an_output_that_is_a_link_is_made_where_the_link_leads(folder: Path, suffix: str) -> None:
    (folder / "disk").mkdir()
    words = ("run", "photo.tif", "--tile", 64, "-o", f"o{suffix}", "--device", "cpu", "--overwrite")
    assert edgeconv(*words, cwd=folder).code == 0
    shutil.move(folder / f"o{suffix}", folder / "disk" / f"o{suffix}")
    (folder / f"o{suffix}").symlink_to(folder / "disk" / f"o{suffix}")
    assert edgeconv(*words, cwd=folder).code == 0
    assert (folder / f"o{suffix}").is_symlink()
    assert names(folder / "disk") == {f"o{suffix}"}


def job_of(folder: Path, source: str = "photo.tif") -> Job:
    output = str(folder / "o.tif")
    return Job(str(folder / source), make_request(), method="sliding", device="cpu", output=output, tile=64)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[np.ndarray], object]], None]:
    """Have something done with the output of every window."""

    def install(happen: Callable[[np.ndarray], object]) -> None:
        class Beside(WindowFilter):
            def run(self, window: np.ndarray) -> np.ndarray:
                out = super().run(window).copy()
                happen(out)
                return out

        monkeypatch.setattr(tiles, "WindowFilter", Beside)

    return install


@pytest.mark.parametrize("there", ["o.tif", "o.json"])
def test_what_another_run_wrote_meanwhile_is_not_replaced(folder: Path, beside: Any, there: str) -> None:
    beside(lambda _: (folder / there).write_bytes(b"of another run"))
    with pytest.raises(ImageWriteError, match="--overwrite"):
        tiles.run_by_tiles(job_of(folder))
    assert (folder / there).read_bytes() == b"of another run"
    assert not (folder / ("o.json" if there == "o.tif" else "o.tif")).exists()


@pytest.mark.parametrize("source", ["photo.tif", "in.zarr"])
def test_an_input_that_changes_while_it_is_read_is_noticed(folder: Path, beside: Any, source: str) -> None:
    zarr.create_array(str(folder / "in.zarr"), data=random_image(90, 80, "uint8"))
    before = names(folder)
    beside(lambda _: os.utime(folder / source if source.endswith("tif") else folder / "in.zarr/c/0/0/0"))
    with pytest.raises(ImageReadError, match="was changed while it was read"):
        tiles.run_by_tiles(job_of(folder, source))
    assert names(folder) == before


def spoil(out: np.ndarray) -> None:
    """One sample: the last of all, or one of a tile whose output begins inside that of its window."""
    if out.shape[:2] == (66, 66):
        out[1 + 4, 1 + 7, 1] ^= 16
    if out.shape[0] > 66:
        out[-1, -1, 2] ^= 16


@pytest.mark.parametrize("words", [(), ("--chain", "gaussian"), ("--stride", 2, "--padding", 3, "--border", "reflect")])
def test_the_check_finds_one_wrong_sample(folder: Path, beside: Any, words: tuple) -> None:
    """In the last tile, at the last place that is checked."""
    beside(spoil)
    done = edgeconv("run", "photo.tif", *words, "--tile", 512, "--check", "full", "-o", "o.tif", cwd=folder)
    assert done.code == 1, done.err
    record = json.loads((folder / "o.json").read_text())
    worst, output = record["check"]["worst"], record["output"]
    assert not record["check"]["passed"]
    assert (worst["y"], worst["x"]) == (output["height"] - 1, output["width"] - 1)


@pytest.mark.parametrize("check", ["sample", "full"])
def test_a_wrong_sample_is_placed_in_the_whole_picture(folder: Path, beside: Any, check: str) -> None:
    beside(spoil)
    found = tiles.run_by_tiles(replace(job_of(folder), check=check, tile=64)).check
    assert not found.passed
    assert (found.worst.y, found.worst.x, found.worst.channel) == (64 + 4, 64 + 7, 1)


def test_tiles_cost_nothing_where_they_are_not_asked_for() -> None:
    """A plain run loads none of the libraries of tiles."""
    code = (
        "import sys; import edgeconv.cli.run, edgeconv.run.tiles;"
        "print(*{'tifffile', 'zarr', 'imagecodecs'} & set(sys.modules))"
    )
    done = run_program(code)
    assert (done.returncode, done.stdout) == (0, "\n")
