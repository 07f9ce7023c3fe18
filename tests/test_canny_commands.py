"""canny and chains wherever a filter may be named: commands, Python, the check of outputs, and what refuses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from canny_pictures import canny_chain, oracle, picture_of
from command import edgeconv
from jsonschema import Draft202012Validator

import edgeconv as package
from edgeconv.api.check import check
from edgeconv.core import chains
from edgeconv.core.canny import STRONG, WEAK
from edgeconv.core.chains import chain_problem, make_chain
from edgeconv.core.choices import CHAINS
from edgeconv.core.request import make_request
from edgeconv.errors import MemoryLimitError, UsageError
from edgeconv.export.schemas import schema
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.methods.opencv import ThreadLimit
from edgeconv.methods.options import Options
from edgeconv.run import report_text
from edgeconv.run.report import as_report


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_image(picture_of("smooth", (60, 80, 3), 3), "photo.png")
    write_image(picture_of("smooth", (60, 80, 1), 4), "grey.png")
    return tmp_path


def report_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(name).with_suffix(".json").read_text(encoding="utf-8"))
    Draft202012Validator(schema("run")).validate(found)
    return found


# --- run ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "name", "low", "high", "l2", "blur"),
    [
        ("", "photo_canny_sliding_s1.png", None, None, False, 0),
        ("--thresholds 50,150", "photo_canny_50-150_sliding_s1.png", 50, 150, False, 0),
        ("--thresholds 150,50.5 --gradient l2", "photo_canny_l2_50.5-150_sliding_s1.png", 50.5, 150, True, 0),
        ("--thresholds otsu --blur 3", "photo_canny_blur3_otsu_sliding_s1.png", None, None, False, 3),
        ("--blur 5 --method reference", "photo_canny_blur5_reference_s1.png", None, None, False, 5),
    ],
)
def test_run_gives_what_opencv_gives(
    folder: Path, words: str, name: str, low: float | None, high: float | None, l2: bool, blur: int
) -> None:
    done = edgeconv("run", "photo.png", "--filter", "canny", "--check", "full", "--samples", 2, *words.split())
    assert done.code == 0, done.err
    chain = report_of(name)["problem"]["filter"]["chain"]
    if low is not None:
        assert (chain["low"], chain["high"], chain["rule"]) == (low, high, None)
    picture = read_image("photo.png").pixels
    smoothed = cv2.GaussianBlur(picture, (blur, blur), 0) if blur else picture
    expected = cv2.Canny(smoothed, chain["low"], chain["high"], L2gradient=l2)
    np.testing.assert_array_equal(read_image(name).pixels[:, :, 0], expected)
    assert expected.any()


def test_the_report_says_what_is_counted_and_gives_no_gflops(folder: Path) -> None:
    edgeconv("run", "photo.png", "--filter", "canny", "--blur", 3, "--samples", 3, "-o", "edges.png")
    found = report_of("edges.png")
    assert found["speed"] is None
    rates, counts = found["throughput"], found["counts"]
    assert counts["nominal_flops"] == 2 * (9 + 2 * 9) * 3 * 60 * 80
    assert counts["useful_flops"] == 2 * (9 + 2 * 6) * 3 * 60 * 80
    assert counts["fewest_bytes"] == 4 * 60 * 80
    median = found["timing"]["kernel"]["median_seconds"]
    assert rates["pixels_per_second"] == pytest.approx(60 * 80 / median, rel=1e-3)
    assert "hysteresis are not counted" in rates["counted"]
    assert {"decode", "set_up", "convolve", "encode"} <= found["phases_seconds"].keys()
    rows = {row.label: row.text for row in report_text.table(as_report(found))}
    assert rows["filter"].startswith("canny (gaussian, sobel, thin, hysteresis; l1, thresholds ")
    assert "by median)" in rows["filter"]
    assert "pixels/s" in rows["speed"]
    assert "GFLOPS" not in " ".join(rows.values())


@pytest.mark.parametrize(
    ("stages", "mode"),
    [("gaussian", None), ("sobel,direction", None), ("sobel", "abs"), ("gaussian5,scharr,thin", "raw")],
)
def test_run_computes_any_chain(folder: Path, stages: str, mode: str | None) -> None:
    words = () if mode is None else ("--output-mode", mode)
    done = edgeconv("run", "photo.png", "--chain", stages, *words, "-o", "out.npy", "--check", "full", "--samples", 0)
    assert done.code == 0, done.err
    assert done.text.splitlines()[0].endswith("; by reference, as sliding does not compute this chain")
    picture = read_image("photo.png").pixels
    stored = make_request(make_chain(stages), output_mode=mode).mode_for(picture.dtype)
    assert stored == (mode or ("raw" if stages.endswith("direction") else "abs"))
    problem = make_request(make_chain(stages), output_mode=mode).picture_problem(picture.shape, picture.dtype)
    expected = chains.compute(picture, problem)
    np.testing.assert_array_equal(np.load("out.npy"), expected if stages == "gaussian" else expected[:, :, 0])


def test_a_mask_of_a_gradient(folder: Path) -> None:
    done = edgeconv("run", "photo.png", "--chain", "sobel,thin", "--threshold", 100, "-o", "mask.png", "--samples", 0)
    assert done.code == 0, done.err
    mask = read_image("mask.png").pixels[:, :, 0]
    expected = cv2.Canny(read_image("photo.png").pixels, 99, 99)
    np.testing.assert_array_equal(mask, expected, "hysteresis with equal thresholds is a threshold")


# --- other commands -----------------------------------------------------------------------------------------------


def test_a_batch_finds_thresholds_for_each_picture(folder: Path) -> None:
    words = ("batch", "photo.png", "grey.png", "--filter", "canny", "-o", "edges", "--method", "opencv")
    done = edgeconv(*words)
    assert done.code == 0, done.err
    for name in ("photo", "grey"):
        picture = read_image(f"{name}.png").pixels
        low, high = chains.automatic_thresholds("median", picture)
        found = read_image(f"edges/{name}_canny_opencv_s1.png").pixels[:, :, 0]
        np.testing.assert_array_equal(found, cv2.Canny(picture, low, high))
    assert "2 unchanged" in edgeconv(*words, "--resume").text
    other = edgeconv(*words, "--resume", "--thresholds", "10,20")
    assert "2 done" in other.text


def test_compare_sets_every_method_beside_the_reference(folder: Path) -> None:
    done = edgeconv("compare", "photo.png", "--filter", "canny")
    assert done.code == 0, done.err
    assert "opencv on CPU: float64 oracle: right, largest relative error 0 in 4,800 of 4,800 samples" in done.text
    assert "did not run: Method 'im2col' cannot compute the chain 'canny'" in done.text


def test_filters_lists_chains_and_stages() -> None:
    listed = edgeconv("filters").text
    assert all(f"{name}: " in listed for name in CHAINS)
    assert all(f"    {stage.name}: " in listed for stage in chains.STAGES)


# --- Python -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["reference", "opencv", "sliding"])
@pytest.mark.parametrize("high", [2.0**20, 2.0**31 - 1, 2.0**31, 1e10, 1e300])
@pytest.mark.parametrize("gradient", ["l1", "l2"])
def test_no_edge_is_above_a_threshold_above_every_magnitude(method: str, high: float, gradient: str) -> None:
    picture = picture_of("noise", (40, 50), 5)
    assert not package.canny(picture, 30, high, gradient=gradient, method=method, device="cpu").any()


def test_opencv_keeps_the_limit_of_its_workspace_for_canny() -> None:
    with pytest.raises(MemoryLimitError, match="workspace_limit_bytes"):
        package.canny(np.zeros((9, 9), np.uint8), method="opencv", options=package.Options(workspace_limit_bytes=1))


@pytest.mark.parametrize("shape", [(30, 41), (30, 41, 1), (30, 41, 3)])
def test_python_gives_what_opencv_gives(shape: tuple[int, ...]) -> None:
    picture = picture_of("smooth", shape, 5)
    expected = cv2.Canny(picture, 60, 120)
    assert expected.any()
    if shape[2:] == (1,):
        expected = expected[:, :, np.newaxis]
    out = np.empty(expected.shape, np.uint8)
    for method in ("auto", "reference", "opencv"):
        found = package.canny(picture, 60, 120, method=method, device="cpu")
        np.testing.assert_array_equal(found, expected)
        assert package.canny(picture, 60, 120, method=method, device="cpu", out=out) is out
        np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(package.convolve(picture, package.chain("canny", low=60, high=120)), expected)
    plan = package.plan(shape, filter=package.chain("canny", low=120, high=60))
    np.testing.assert_array_equal(plan(picture), expected)
    assert plan.bound.max() == 0
    assert "canny" in repr(plan)
    assert "sobel, thin, hysteresis; l1, thresholds 60 and 120\n" in plan.explain()
    assert "exact" in plan.explain()


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(300, 401), (300, 401, 1), (300, 401, 3), (5, 200, 131, 3), (3, 64, 64, 1)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_arrays_on_a_gpu(shape: tuple[int, ...], dtype: str) -> None:
    """CuPy in, CuPy out; a batch is one run; strided views, `out=`, rules, and arrays of the host by --device cuda."""
    import cupy

    pictures = picture_of("smooth", shape[-3:], 4, dtype)
    if len(shape) == 4:
        pictures = np.stack([picture_of("smooth", shape[1:], seed, dtype) for seed in range(shape[0])])
    low, high = (60, 120) if dtype == "uint8" else (9000, 30000)
    batch = pictures if len(shape) == 4 else pictures[np.newaxis]
    expected = np.stack([oracle(each, canny_chain(low, high, True, 3)) for each in batch])
    expected = expected if len(shape) == 4 else expected[0]
    if len(shape) > 2 and shape[-1] == 1:
        expected = expected[..., np.newaxis]
    words: dict[str, Any] = {"gradient": "l2", "blur": 3}
    on_gpu = cupy.asarray(pictures)
    found = package.canny(on_gpu, low, high, **words)
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_array_equal(found.get(), expected)
    out = cupy.zeros(expected.shape, cupy.uint8)
    assert package.canny(on_gpu, low, high, out=out, **words) is out
    np.testing.assert_array_equal(out.get(), expected)
    np.testing.assert_array_equal(package.canny(pictures, low, high, device="cuda", **words), expected)
    plan = package.plan(shape, dtype, filter=package.chain("canny", low=low, high=high, **words), device="cuda")
    assert plan.method_plan.launches == 4
    np.testing.assert_array_equal(plan(on_gpu).get(), expected)
    mirrored = on_gpu[..., ::-1] if len(shape) == 2 else on_gpu[..., ::-1, :]
    plain = package.canny(np.ascontiguousarray(mirrored.get()), low, high, device="cpu", **words)
    np.testing.assert_array_equal(package.canny(mirrored, low, high, **words).get(), plain)
    for rule in chains.THRESHOLD_RULES:
        by_rule = package.canny(pictures, rule=rule, device="cpu")
        np.testing.assert_array_equal(package.canny(on_gpu, rule=rule).get(), by_rule)
    with pytest.raises(MemoryLimitError, match="raise options=Options"):
        package.canny(on_gpu, low, high, options=Options(workspace_limit_bytes=1000))


@pytest.mark.gpu
@pytest.mark.parametrize("words", ["", "--thresholds 50,150 --gradient l2 --blur 5", "--thresholds otsu"])
def test_commands_on_a_gpu(folder: Path, words: str) -> None:
    done = edgeconv("run", "photo.png", "--filter", "canny", "--device", "cuda", "--check", "full", *words.split())
    assert done.code == 0, done.err
    batch = ("batch", "photo.png", "grey.png", "--filter", "canny", "--device", "cuda", "-o", "out")
    done = edgeconv(*batch, *words.split())
    assert done.code == 0, done.err
    assert "2 done" in done.text
    done = edgeconv("compare", "photo.png", "--filter", "canny", *words.split())
    assert done.code == 0, done.err
    assert "sliding on CUDA: float64 oracle: right" in done.text


def test_a_rule_looks_at_each_picture_and_a_plan_needs_numbers() -> None:
    for seed in (1, 2):
        picture = picture_of("few levels", (20, 30, 3), seed)
        for rule in chains.THRESHOLD_RULES:
            low, high = chains.automatic_thresholds(rule, picture)
            np.testing.assert_array_equal(package.canny(picture, rule=rule), cv2.Canny(picture, low, high))
        np.testing.assert_array_equal(package.convolve(picture, "canny"), package.canny(picture))
    with pytest.raises(UsageError, match="depend on the picture"):
        package.plan((20, 30, 3), filter="canny")
    for name, value, says in (("stride", 2, "stride=2 does not apply"), ("luma", "bt709", "of RGB the channel")):
        with pytest.raises(UsageError, match=says):
            package.convolve(picture, "canny", **{name: value})


# --- every method, and the check ----------------------------------------------------------------------------------


def test_opencv_has_its_threads_again_after_runs_that_overlapped() -> None:
    before = cv2.getNumThreads()
    limit = ThreadLimit()
    with limit.held(None):
        assert cv2.getNumThreads() == before
    first, second = limit.held(1), limit.held(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert cv2.getNumThreads() == 1, "the second still runs"
    second.__exit__(None, None, None)
    assert cv2.getNumThreads() == before
    picture = picture_of("smooth", (64, 64, 3), 1)
    edges = package.canny(picture, 60, 120, method="opencv", options=Options(threads=1))
    np.testing.assert_array_equal(edges, cv2.Canny(picture, 60, 120))
    assert cv2.getNumThreads() == before


@pytest.mark.parametrize("samples", [None, 2000])
@pytest.mark.parametrize(
    "stages", ["canny", "gaussian,sobel,thin,hysteresis", "gaussian5,sobel,thin", "gaussian", "prewitt,direction"]
)
def test_the_check_passes_what_is_right_and_finds_what_is_not(stages: str, samples: int | None) -> None:
    picture = picture_of("smooth", (200, 61, 3), 8)
    thresholds = {"low": 60.0, "high": 120.0} if make_chain(stages).has_hysteresis else {}
    problem = make_request(make_chain(stages, **thresholds)).picture_problem(picture.shape, picture.dtype)
    right = chains.compute(picture, problem)
    found = check(picture, right, problem, max_samples=samples)
    assert found.passed
    assert found.exact
    assert (found.checked_share == 1) == (samples is None)
    for y in (0, 1, 199):
        wrong = right.copy()
        wrong[y, 30, 0] = 255 if wrong[y, 30, 0] != 255 else 0
        found = check(picture, wrong, problem, max_samples=samples)
        assert not found.passed, y
        assert found.worst is not None
        assert abs(found.worst.y - y) <= 1


def test_the_check_of_rows_knows_weak_and_strong_ones() -> None:
    """Each fault that only hysteresis can make, at a pixel of that kind in the first rows."""
    picture = picture_of("smooth", (300, 80, 1), 6)
    problem = chain_problem((300, 80, 1), np.uint8, make_chain("canny", low=60, high=160), "abs")
    right, kinds = chains.compute(picture, problem), chains.edge_map(picture, problem)
    faults = {
        "a strong one is missing": (kinds == STRONG, 0),
        "a weak one beside an edge is missing": ((kinds == WEAK) & (right[:, :, 0] == 255), 0),
        "no edge": (kinds == 0, 255),
    }
    for fault, (places, value) in faults.items():
        wrong = right.copy()
        y, x = (int(place) for place in np.argwhere(places[:7])[0])
        wrong[y, x] = value
        assert not check(picture, wrong, problem, max_samples=2400).passed, fault


def test_thresholds_that_nothing_reaches_are_a_note(folder: Path) -> None:
    done = edgeconv("run", "photo.png", "-f", "canny", "--thresholds", "5000,6000", cwd=folder)
    assert done.code == 0
    assert "no edge: no gradient here is above the upper threshold, 6000" in done.text
    assert "no edge" not in edgeconv("run", "photo.png", "-f", "canny", "--thresholds", "1,2", cwd=folder).text
