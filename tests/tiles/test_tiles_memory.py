"""A limit on memory is kept, refused with a limit that would do, and binds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from command import PROJECT, edgeconv_process, unmeasured
from picture_files import smooth_image
from pieces import ArraySource
from selection import drawn_pairs, few_then_slow

from edgeconv.core.request import make_request
from edgeconv.errors import MemoryLimitError
from edgeconv.io.encoding import write_image
from edgeconv.run.rectangles import KEPT_BYTES, MEBIBYTE, Demand, Rectangle, cut
from edgeconv.run.sources.base import in_order

RESIDENT = 150 * MEBIBYTE


def demand_for(
    height: int, width: int, chunk: tuple[int, int], dtype: str = "uint8", stride: int = 1, **changes: Any
) -> Demand:
    request, kind = make_request(stride=stride), np.dtype(dtype)
    source = ArraySource(np.broadcast_to(np.zeros(3, kind), (height, width, 3)), chunk)
    demand = Demand(
        source=source,
        problem=request.problem((height, width, 3), kind),
        finished_dtype=request.output_dtype(kind),
        finishes=False,
        method="sliding",
        device="cpu",
        threads=2,
        resident_bytes=RESIDENT,
    )
    return replace(demand, **changes)


LARGE = demand_for(60_000, 60_000, (512, 512))


@pytest.mark.parametrize(
    ("change", "least_more"),
    [
        ({"resident_bytes": RESIDENT + 12345}, 12345),
        ({"copies": 2}, 2 * 256 * 512 * 3),
        ({"finishes": True}, 2 * 256 * 512 * 3),
        ({"finishes": True, "finished_dtype": np.dtype("float32")}, 2 * 256 * 512 * 3 * 4),
        ({"threads": 3}, 64 * 64 * 3 * 4 + 3 * 256 * 256 * 3),
        ({"method": "reference"}, 512 * 3 * 8 * 64 * 16),
        ({"source": ArraySource(np.broadcast_to(np.uint8(0), (4096, 4096, 3)), (512, 512))}, 2 * 2**18 * 3 * 3),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_a_part_of_a_plan_costs(change: dict[str, Any], least_more: int) -> None:
    """8-bit rectangles of 256 × 512, chunks of 64 × 64: windows, outputs and chunks are counted, and what is added."""
    plain = demand_for(4096, 4096, (64, 64))
    assert plain.least_bytes(256, 512) - RESIDENT >= (2 * 258 * 514 + 2 * 256 * 512) * 3
    assert replace(plain, **change).least_bytes(256, 512) - plain.least_bytes(256, 512) >= least_more


@pytest.mark.parametrize(
    ("height", "width", "chunk", "limit", "columns"),
    [
        (300, 400, (64, 64), 1024, 400),
        (20_000, 20_000, (512, 512), 400, 20_000),  # whole rows, where they fit
        (40_000, 40_000, (512, 512), 1024, 40_000),
        (100_000, 100_000, (512, 512), 512, None),
        (60_000, 60_000, (4096, 4096), 1024, None),  # chunks that flat rectangles would decode again and again
    ],
)
def test_a_rectangle_is_as_wide_as_fits(height: int, width: int, chunk: tuple, limit: int, columns: int | None) -> None:
    demand = demand_for(height, width, chunk)
    made = cut(demand, None, limit * MEBIBYTE)
    assert made.planned_bytes <= limit * MEBIBYTE
    assert made.columns == columns or (columns is None and made.columns < width)
    shared = demand.kept_bytes(made.rows, made.columns)
    assert made.kept_bytes == shared or (columns is None and demand.decodings(made.rows, made.columns) > 0)
    rectangles = [tile.rectangle for tile in made.tiles(demand.problem)]
    assert sum(len(rows) * len(across) for rows, across in rectangles) == height * width
    assert rectangles[0] == Rectangle(range(min(made.rows, height)), range(made.columns))
    assert all(span.start % made.piece == 0 for rectangle in rectangles for span in rectangle)


LARGE_PICTURES = drawn_pairs(
    (["uint8", "uint16", "float32"], [1, 2, 3], ((512, 512), (16, 60_000), (4096, 4096), (100, 37))), lambda *row: True
)


@pytest.mark.parametrize("drawn", few_then_slow(LARGE_PICTURES, 3), ids=str)
def test_more_memory_never_means_a_refusal_and_a_plan_is_never_above_the_limit(drawn: tuple[Any, ...]) -> None:
    dtype, stride, chunk = drawn
    demand = demand_for(60_000, 60_000, chunk, dtype, stride)
    fitted = False
    for limit in (64, 256, 384, 512, 1024, 2048, 8192):
        try:
            made = cut(demand, None, limit * MEBIBYTE)
        except MemoryLimitError:
            assert not fitted
        else:
            fitted = True
            assert made.planned_bytes <= limit * MEBIBYTE
            assert made.rows % made.piece == 0
            assert made.columns % made.piece == 0 or made.columns == demand.output[1]
    assert fitted


STRIP = demand_for(10_000, 10_000, (10_000, 10_000), threads=64)
"""Of its 300 MB four copies are counted, once, however many threads there are."""


@pytest.mark.parametrize(
    ("demand", "tile", "limit", "says"),
    [
        (LARGE, None, 100, r"the limit is 100 MiB \(150 MiB are the program itself\)"),
        (STRIP, None, 512, "as a piece of 10,000×10,000 pixels is decoded at once"),
        (LARGE, 8192, 512, r"Tiles of 8192×8192 pixels need about .*leave --tile out"),
    ],
)
def test_a_limit_that_is_too_low_is_refused_with_one_that_would_do(
    demand: Demand, tile: int | None, limit: int, says: str
) -> None:
    with pytest.raises(MemoryLimitError, match=says) as error:
        cut(demand, tile, limit * MEBIBYTE)
    assert error.value.exit_code == 5
    enough = int(str(error.value).split("--memory-limit ")[1].removesuffix("MiB.")) * MEBIBYTE
    assert cut(demand, tile, enough).planned_bytes <= enough
    assert demand is not STRIP or 4 * 3 * 10**8 < enough < 5.5 * 3 * 10**8


def test_a_tile_that_is_set_is_taken() -> None:
    made = cut(LARGE, 4096, 2048 * MEBIBYTE)
    assert (made.rows, made.columns, made.piece) == (4096, 4096, 512)
    assert [cut(LARGE, side, None).piece for side in (16, 64, 208, 320, 1008)] == [16, 64, 208, 320, 336]
    assert cut(LARGE, 4096, None).kept_bytes <= KEPT_BYTES


def test_what_neighbours_share_is_whole_chunks() -> None:
    def shared(chunk: int, step: int) -> tuple[int, int]:
        demand = demand_for(64, 64, (chunk, 64))
        return demand.kept_bytes(step, 64) // (64 * 3), demand.decodings(step, 64)

    assert shared(16, 16) == (32, 10)  # rows 15 and 16 at a seam, each in a chunk of its own
    assert shared(64, 16) == (64, 4)
    assert shared(1, 16) == (2, 17 + 18 + 18 + 17)
    assert shared(16, 64) == (0, 4)


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
"""The command, and then the mark of its whole process: nothing that the command itself says is taken for it."""

measured = pytest.mark.xdist_group("memory")
"""The process is near its limit: nothing of that kind beside it."""


def draw(path: Path, side: int) -> None:
    """A deflated TIFF of 512×512 tiles, of which one in eight is new: one tile in memory at a time."""
    import imagecodecs

    pixels = smooth_image(1024, 1024)
    parts = [np.roll(pixels, 97 * number, axis=number % 2)[:512, :512].tobytes() for number in range(8)]
    stored = [bytes(imagecodecs.deflate_encode(part, level=1)) for part in parts]

    def tiles() -> Iterator[bytes]:
        yield from (stored[number * 5 % 8] for number in range((-(-side // 512)) ** 2))

    with tifffile.TiffWriter(path, bigtiff=True) as writer:
        options = {"photometric": "rgb", "tile": (512, 512), "compression": "adobe_deflate", "metadata": None}
        writer.write(tiles(), shape=(side, side, 3), dtype=np.uint8, **options)


def run_under(limit: int, folder: Path, *words: object) -> dict[str, Any]:
    """`edgeconv run WORDS` under a limit in MiB, in a process of its own, whose high-water mark is below it."""
    options = ("--memory-limit", f"{limit}MiB", "--device", "cpu", "--samples", 0, "--json")
    environment = unmeasured() | {"PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", MARKED, "run", *map(str, (*words, *options))]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    mark, record = int(done.stderr.split()[-1]), json.loads(done.stdout)
    assert mark <= record["tiles"]["planned_bytes"] <= limit * MEBIBYTE, f"{mark / MEBIBYTE:.0f} MiB"
    assert record["check"]["passed"]
    return record


def tiled(count: int) -> np.ndarray:
    return np.tile(smooth_image(500, 500), (count, count, 1))


MADE: dict[str, Callable[[Path], object]] = {
    "6000.tif": lambda path: draw(path, 6000),
    "12000.tif": lambda path: draw(path, 12_000),
    "4000.tif": lambda path: draw(path, 4000),
    "large.png": lambda path: write_image(tiled(12), path),
    "strip.tif": lambda path: tifffile.imwrite(path, tiled(10), photometric="rgb"),
    "large.zarr": lambda path: zarr.create_array(str(path), data=tiled(10), chunks=(512, 512, 3)),
}
"""In and out these are 206 MiB, with the program more than the limit; 824 MiB. libvips keeps a PNG's in a file."""
UNDER_A_LIMIT = [
    ("6000.tif", 290, "-o edges.tif"),
    ("12000.tif", 400, "-o edges.tif"),
    *(("4000.tif", 400, f"-o edges.tif {words}") for words in (
        "--filter sobel --stride 2 --output-mode normalize", "--output-mode raw --border reflect",
        "--method im2col --check full --stride 3", "--method reference --stride 3 --channels luma",
        "--chain gaussian,sobel,thin",
    )),
    ("large.png", 400, "-o edges.tif"),
    ("strip.tif", 400, "-o edges.tif --output-mode raw"),
    ("large.zarr", 400, "-o edges.zarr --output-mode raw"),
]  # fmt: skip


@measured
@pytest.mark.parametrize("case", few_then_slow(UNDER_A_LIMIT), ids=str)
def test_a_picture_larger_than_the_limit_is_filtered_under_it(tmp_path: Path, case: tuple[str, int, str]) -> None:
    """Each chunk is decoded once where it is a tile of 512 and nothing comes behind."""
    name, limit, words = case
    MADE[name](tmp_path / name)
    record = run_under(limit, tmp_path, name, *words.split())
    if words == "-o edges.tif" and name.endswith(".tif"):
        side = int(name.removesuffix(".tif"))
        assert record["tiles"]["chunks_decoded"] == record["tiles"]["chunks"] == (-(-side // 512)) ** 2
        with tifffile.TiffFile(tmp_path / "edges.tif") as file:
            assert file.pages.first.shape == (side, side, 3)


@measured
@pytest.mark.slow
def test_a_limit_that_a_wide_jpeg_does_not_keep_to_is_refused_with_one_that_it_keeps_to(tmp_path: Path) -> None:
    """Under 300 MiB its tiles would be narrow: libvips looks at whole rows for each, and 343 MiB were measured."""
    write_image(np.tile(smooth_image(600, 600), (3, 20, 1)), tmp_path / "wide.jpg")
    words = ("wide.jpg", "-o", "edges.tif")
    refused = edgeconv_process("run", *words, "--memory-limit", "250MiB", cwd=tmp_path)
    assert refused.code == 5
    run_under(int(refused.err.split("--memory-limit ")[1].split("MiB")[0]), tmp_path, *words)
