"""A limit on memory is kept, refused with a limit that would do, and binds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from command import PROJECT
from selection import drawn_pairs, few_then_slow

from edgeconv.core.request import make_request
from edgeconv.errors import MemoryLimitError
from edgeconv.run.tiled import memory
from edgeconv.run.tiled.grid import WindowRules, even_cuts
from edgeconv.run.tiled.memory import MEBIBYTE, PIECES, TileDemand, plan_chosen, plan_given
from edgeconv.run.tiled.reader import in_order
from edgeconv.run.tiled.sources.base import ChunkLayout

RESIDENT = 150 * MEBIBYTE


def work_for(
    height: int,
    width: int,
    chunk: tuple[int, int],
    dtype: str = "uint8",
    stride: int = 1,
    method: str = "sliding",
    output_mode: str | None = None,
) -> TileDemand:
    request = make_request(stride=stride, output_mode=output_mode)
    kind = np.dtype(dtype)
    layout = ChunkLayout(
        height, width, 3, kind, "TIFF", (), even_cuts(height, chunk[0]), even_cuts(width, chunk[1]), 3 * kind.itemsize
    )
    return TileDemand(
        finishes=request.mode_for(kind) == "normalize",
        layout=layout,
        rules=WindowRules(stride, 1, "zero"),
        problem=request.problem((height, width, 3), kind),
        finished_dtype=request.output_dtype(kind),
        method=method,
        device="cpu",
        threads=2,
        resident_bytes=RESIDENT,
    )


@pytest.mark.parametrize(
    ("change", "more_bytes"),
    [
        ({}, 0),
        ({"resident_bytes": RESIDENT + 12345}, 12345),
        ({"verifying": True}, 256 * 512 * 3),
        ({"copies_of_a_tile": 2}, 2 * 256 * 512 * 3),
        ({"threads": 3}, 3 * 128 * 128 * 3 + 514 * 3 * 8 * 3 * 2 + 3 * 64 * 64 * 3 + 10_000),
        ({"method": "reference"}, 514 * 3 * 8 * (16 * (2 + 2 + 2) - 3 * 2 * 2)),
        ({"finishes": True}, 256 * 512 * 3),
        (
            {"finished_dtype": np.dtype("float32"), "finishes": True},
            256 * 512 * 3 * (1 + 2 * 4 - 2) + 3 * 3 * 128 * 128 * 3 * 3,
        ),
    ],
    ids=lambda value: next(iter(value), "nothing") if isinstance(value, dict) else "",
)
def test_what_each_part_of_a_plan_costs(
    change: dict[str, Any], more_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8-bit tiles of 256 × 512 in pieces of 128, chunks of 64 × 64 whose library holds 10,000 bytes beside."""
    monkeypatch.setattr(memory, "ROWS_PER_BAND", 16)
    work = work_for(4096, 4096, (64, 64))
    work = replace(work, layout=replace(work.layout, loader_bytes=10_000))
    plain = (
        RESIDENT
        + 2 * 258 * 514 * 3  # windows
        + 2 * 256 * 512 * 3  # outputs
        + 3 * 3 * 128 * 128 * 3  # pieces: two threads and one, in three copies
        + 48 * MEBIBYTE
        + 514 * 3 * 8 * 3 * 2 * 2  # rows of the method, for two threads
        + 2 * (3 * 64 * 64 * 3 + 10_000)  # chunks, for two threads
    )
    assert replace(work, **change).cost((256, 512), 128).least == plain + more_bytes


@pytest.mark.parametrize(
    ("height", "width", "chunk", "limit", "tile"),
    [
        (300, 400, (64, 64), 1024, (512, 400)),
        (40_000, 40_000, (512, 512), 1024, (512, 40_000)),  # whole rows, where they fit
        (100_000, 100_000, (512, 512), 512, None),
        (60_000, 60_000, (4096, 4096), 1024, None),  # chunks that flat tiles would decode again and again
    ],
)
def test_a_tile_is_as_wide_as_fits_and_as_tall_as_its_chunks(
    height: int, width: int, chunk: tuple[int, int], limit: int, tile: tuple[int, int] | None
) -> None:
    plan = plan_chosen(work_for(height, width, chunk), limit * MEBIBYTE)
    assert plan.planned_bytes <= limit * MEBIBYTE
    assert plan.tile == tile or (tile is None and plan.tile[1] < width and plan.tile[0] >= chunk[0])


CHUNKS = ((512, 512), (16, 60_000), (4096, 4096))
LARGE_PICTURES = drawn_pairs((["uint8", "uint16", "float32"], [1, 2, 3], CHUNKS), lambda *row: True)


@pytest.mark.parametrize("drawn", few_then_slow(LARGE_PICTURES, 3), ids=str)
def test_more_memory_never_means_a_refusal_and_a_plan_is_never_above_the_limit(drawn: tuple[Any, ...]) -> None:
    dtype, stride, chunk = drawn
    work = work_for(60_000, 60_000, chunk, dtype, stride)
    fitted = False
    for limit in (64, 256, 384, 512, 1024, 2048, 8192):
        try:
            plan = plan_chosen(work, limit * MEBIBYTE)
        except MemoryLimitError:
            assert not fitted
        else:
            fitted = True
            assert plan.planned_bytes <= limit * MEBIBYTE
            assert all(side % plan.piece == 0 or side == 60_000 // stride for side in plan.tile)
    assert fitted


def test_a_limit_below_the_program_itself_is_refused_with_one_that_would_do() -> None:
    work = work_for(60_000, 60_000, (512, 512))
    with pytest.raises(MemoryLimitError, match=r"the limit is 100 MiB \(150 MiB are the program itself\)") as error:
        plan_chosen(work, 100 * MEBIBYTE)
    assert error.value.exit_code == 5
    suggested = int(str(error.value).split("--memory-limit ")[1].removesuffix("MiB."))
    assert plan_chosen(work, suggested * MEBIBYTE).planned_bytes <= suggested * MEBIBYTE


def test_no_more_chunks_are_in_hand_than_a_window_reaches() -> None:
    """A strip of 300 MB is needed three times over, however many threads there are."""
    one = work_for(10_000, 10_000, (10_000, 10_000))
    many = replace(one, threads=64)
    assert many.cost((256, 256), 256).loading == one.cost((256, 256), 256).loading == one.layout.loading_bytes
    assert plan_chosen(many, 1400 * MEBIBYTE).planned_bytes <= 1400 * MEBIBYTE
    tiled = replace(work_for(10_000, 10_000, (500, 500)), threads=64)
    assert tiled.cost((512, 512), 512).loading == 2 * 2 * tiled.layout.loading_bytes
    assert replace(tiled, verifying=True).cost((512, 512), 512).loading == 3 * 3 * tiled.layout.loading_bytes


def test_a_tile_that_is_set_is_taken_or_refused() -> None:
    work = work_for(60_000, 60_000, (512, 512))
    assert plan_given(work, 4096, 2048 * MEBIBYTE).tile == (4096, 4096)
    assert plan_given(work, 4096, None).piece == PIECES[0]
    with pytest.raises(
        MemoryLimitError, match=r"Tiles of 8192×8192 pixels need about .*leave --tile out, or set"
    ) as error:
        plan_given(work, 8192, 512 * MEBIBYTE)
    suggested = int(str(error.value).split("--memory-limit ")[1].removesuffix("MiB."))
    assert plan_given(work, 8192, suggested * MEBIBYTE).planned_bytes <= suggested * MEBIBYTE


def test_what_neighbouring_tiles_share_is_whole_chunks() -> None:
    def seams(chunk: int, step: int) -> tuple[int, int]:
        found = work_for(64, 64, (chunk, chunk)).sharing(0, step)
        return found.shared_pixels, found.chunks_reached

    assert seams(16, 16) == (32, 10)  # rows 15 and 16 of the first seam, each in a chunk of its own
    assert seams(64, 16) == (64, 4)
    assert seams(1, 16) == (2, 17 + 18 + 18 + 17)
    assert seams(16, 64) == (0, 4)


def test_results_come_in_order_and_no_more_are_begun_than_asked_for() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        return item * item

    with ThreadPoolExecutor(4) as pool:
        results = in_order(pool, work, range(20), 3)
        assert next(results) == 0
        assert len(begun) <= 4
        assert [0, *results] == [item * item for item in range(20)]


# --- measured ------------------------------------------------------------------------------------------------------

MARKED = """
import sys
from edgeconv.cli import main
from edgeconv.hardware.devices import get_device
try:
    main()
finally:
    print(get_device("cpu").peak_bytes(), file=sys.stderr)
"""
"""The command, and then the mark of its whole process."""
TILE = 512


def draw(path: Path, side: int) -> None:
    """A BigTIFF of deflated tiles, some noise on a level of their own each."""
    noise = np.random.default_rng(0).integers(0, 60, (TILE, TILE, 3), dtype=np.uint8)
    count = (-(-side // TILE)) ** 2
    tiles = (noise + np.uint8(number * 13 % 190) for number in range(count))
    kind = {"photometric": "rgb", "tile": (TILE, TILE), "compression": "adobe_deflate", "metadata": None}
    with tifffile.TiffWriter(path, bigtiff=True) as writer:
        writer.write(tiles, shape=(side, side, 3), dtype=np.uint8, **kind)


def measured(test: Any) -> Any:
    """The process is near its limit: nothing of that kind beside it."""
    return pytest.mark.slow(pytest.mark.xdist_group("memory")(test))


LARGE = "EDGECONV_TEST_LARGE"
"""The environment variable that asks for the full size."""


def run_marked(*words: object) -> tuple[int, dict[str, object]]:
    """`edgeconv run WORDS --json` in a process of its own: its high-water mark, and its report."""
    done = subprocess.run(
        [sys.executable, "-c", MARKED, "run", *map(str, words), "--json"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1]), json.loads(done.stdout)


def measured_under(limit: int, side: int, folder: Path, *words: object, target: str = "edges.tif") -> dict[str, object]:
    """Filter a picture of `side` under a limit in MiB; the report, once mark and comparison are found to be right."""
    draw(folder / "large.tif", side)
    options = ("--memory-limit", f"{limit}MiB", "--verify-tiles", "--device", "cpu", *words)
    mark, record = run_marked(folder / "large.tif", "-o", folder / target, *options)
    assert mark <= limit * MEBIBYTE, f"{mark / MEBIBYTE:.0f} MiB under a limit of {limit} MiB"
    assert record["tiles"]["proof"]["passed"]
    assert record["check"]["passed"]
    return record


@measured
def test_a_picture_larger_than_the_limit_is_filtered_under_it_and_at_once_would_not_fit(tmp_path: Path) -> None:
    """6,000 × 6,000 are 103 MiB, in and out 206: with the program more than the limit."""
    limit = 290
    record = measured_under(limit, 6000, tmp_path)
    assert record["tiles"]["proof"]["against"] == "other tiles"
    with tifffile.TiffFile(tmp_path / "edges.tif") as file:
        assert file.pages.first.shape == (6000, 6000, 3)
    whole, _ = run_marked(
        tmp_path / "large.tif", "-o", tmp_path / "whole.tif", "--samples", 0, "--check", "none", "--device", "cpu"
    )
    assert whole > limit * MEBIBYTE


@measured
@pytest.mark.parametrize(
    "words",
    [
        ("--filter", "sobel", "--stride", "2", "--output-mode", "normalize"),
        ("--output-mode", "raw", "--border", "reflect"),
        ("--method", "im2col", "--check", "full", "--stride", "3"),
        ("--method", "reference", "--stride", "3", "--channels", "luma"),
    ],
)
def test_the_limit_is_kept_by_other_modes_and_methods(tmp_path: Path, words: tuple[str, ...]) -> None:
    measured_under(400, 4000, tmp_path, *words)


@measured
def test_the_limit_is_kept_from_zarr_to_zarr(tmp_path: Path) -> None:
    measured_under(400, 5000, tmp_path, "--output-mode", "raw", target="edges.zarr")
    mark, _ = run_marked(tmp_path / "edges.zarr", "-o", tmp_path / "again.zarr", "--memory-limit", "500MiB")
    assert mark <= 500 * MEBIBYTE


@measured
@pytest.mark.skipif(LARGE not in os.environ, reason=f"takes minutes and 7 GB of disk: set {LARGE} to run it")
def test_forty_thousand_pixels_square_are_filtered_under_one_gibibyte(tmp_path: Path) -> None:
    """4.8 GB of samples; the test above is the same at a size that every machine has room for."""
    measured_under(1024, 40_000, tmp_path)
