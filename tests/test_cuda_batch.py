"""A batch on the GPU: several workers, each with its stream, plan and staging, give what the CPU gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from batch_folders import contents, run_here
from problems import random_image

from edgeconv.api.check import check
from edgeconv.batch.summary import BatchSummary
from edgeconv.batch.verify import verify
from edgeconv.core.choices import DeviceName
from edgeconv.core.request import Request, make_request
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.methods import method_names

pytestmark = pytest.mark.gpu

SHAPES = ((64, 64), (517, 301), (1200, 900), (1200, 900), (1, 1), (37, 2049), (900, 1200), (1024, 1024))
"""The larger ones are staged through page-locked slots, the smaller ones copied directly; shapes change in between."""
WORKERS = 4


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, (height, width) in enumerate(SHAPES):
        kind = "uint16" if number % 4 == 1 else "uint8"
        write_image(random_image(height, width, kind, number), folder / f"{number}.png")
    return folder


def run(photos: Path, output: Path, method: str, device: DeviceName, request: Request) -> BatchSummary:
    words = {"name": "{stem}{ext}", "method": method, "device": device, "request": request}
    return run_here([photos], output, jobs=WORKERS, **words)


@pytest.mark.parametrize("channels", ["each", "mix"])
def test_the_gpu_gives_the_very_files_that_the_cpu_gives(photos: Path, channels: str) -> None:
    request = make_request("laplacian8", channels=channels)
    expected, out = photos.parent / "cpu", photos.parent / "cuda"
    assert run(photos, expected, "sliding", "cpu", request).done == len(SHAPES)
    summary = run(photos, out, "sliding", "cuda", request)
    assert (summary.done, summary.failures) == (len(SHAPES), [])
    assert contents(out) == contents(expected)
    assert summary.stage_seconds["host_to_device"] > 0
    assert summary.peak_bytes["cuda"]
    assert {finding.state for finding in verify(out).findings} == {"same"}


@pytest.mark.parametrize("method", method_names("cuda"))
def test_no_worker_disturbs_another(photos: Path, method: str) -> None:
    request = make_request("sobel", stride=2)
    out = photos.parent / method
    summary = run(photos, out, method, "cuda", request)
    assert (summary.done, summary.failures) == (len(SHAPES), [])
    for path in sorted(photos.iterdir()):
        pixels = read_image(path).pixels
        problem = request.problem(pixels.shape, pixels.dtype)
        result = np.ascontiguousarray(read_image(out / path.name).pixels[:, :, : problem.output_shape[2]])
        found = check(pixels, result, problem)
        assert found.passed, f"{path.name}: {found.unexplained_samples} wrong samples, worst {found.worst}"


def bus_address() -> str:
    """Where the GPU sits that this process calls the first."""
    import cupy

    return str(cupy.cuda.Device(0).pci_bus_id)


def test_two_gpus_work_side_by_side_and_give_the_very_files_of_one(photos: Path) -> None:
    cluster = pytest.importorskip("edgeconv.batch.engines.cluster", reason="Dask is not installed")
    gpus = cluster.gpus_here()
    if len(gpus) < 2:
        pytest.skip("there is one GPU here")
    request = make_request("laplacian8", channels="each")
    expected, out = photos.parent / "one", photos.parent / "two"
    assert run(photos, expected, "sliding", "cuda", request).done == len(SHAPES)
    seats = cluster.seats_for(gpus[:2], jobs=WORKERS, pictures=len(SHAPES))
    with cluster.local_cluster(seats, 60.0, print) as engine:
        assert len(set(engine.client.run(bus_address).values())) == 2
        assert engine.choose("auto", "cuda", None).device == "cuda"
        words = {"name": "{stem}{ext}", "method": "sliding", "device": "cuda", "request": request}
        summary = run_here([photos], out, engine=engine, **words)
    assert (summary.done, summary.failures) == (len(SHAPES), [])
    assert contents(out) == contents(expected)
    assert summary.peak_bytes["cuda"]
