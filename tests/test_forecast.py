"""What `auto` expects without a profile, what it takes by that, and what it says; nothing is loaded for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import PROJECT

from edgeconv.core.request import make_request
from edgeconv.hardware.cuda import probe
from edgeconv.runtime import auto, forecast
from edgeconv.runtime.auto import choose
from edgeconv.runtime.forecast import Forecast, forecasts

PURPOSES: tuple[Any, ...] = ("one picture", "many pictures", "calls")


def problem(side: int = 2048, dtype: str = "uint8", filter: str = "laplacian8", **rules: Any) -> Any:
    return make_request(filter, **rules).problem((side, side, 3), dtype)


def of(found: list[Forecast], method: str, device: str = "cpu") -> Forecast:
    (one,) = (each for each in found if (each.method, each.device) == (method, device))
    return one


@pytest.fixture
def gpu_may_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with a driver and CuPy, which must not be tried where it is not taken."""
    monkeypatch.setattr(auto, "cuda_missing_reason", lambda: None)
    monkeypatch.setattr(auto, "cuda_unavailable_reason", lambda: 1 / 0)


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_more_work_is_expected_to_take_longer(purpose: Any, threads: int) -> None:
    base = {(one.method, one.device): one.seconds for one in forecasts(problem(), purpose, 4, threads)}
    for more in (problem(4096), problem(dtype="float32"), problem(filter="sobel", channels="each")):
        for one in forecasts(more, purpose, 4, threads):
            assert one.seconds >= base[one.method, one.device], (one.method, one.device)
    if purpose != "one picture":
        for one in forecasts(problem(), purpose, 400, threads):
            assert one.seconds > base[one.method, one.device]


def test_more_threads_are_expected_to_help_what_they_can_help() -> None:
    for purpose in PURPOSES:
        two, sixteen = (forecasts(problem(4096), purpose, 100, threads) for threads in (2, 16))
        assert of(sixteen, "sliding").seconds < of(two, "sliding").seconds


@pytest.mark.parametrize(
    ("method", "device", "purpose", "side", "dtype", "threads", "measured_seconds"),
    [
        ("sliding", "cpu", "calls", 2048, "uint8", 2, 0.000588),  # docs/results/run/two-core-epyc: warm
        ("opencv", "cpu", "one picture", 2048, "uint8", 2, 0.0059 + 0.0161),  # set_up and cold
        ("sliding", "cpu", "one picture", 2048, "uint8", 2, 0.1057 + 0.0019),
        ("im2col", "cpu", "one picture", 2048, "uint8", 2, 0.131 + 0.0054),
        ("sliding", "cpu", "calls", 4096, "float32", 2, 0.0088 + 0.0065),  # bench, and the first touch of 201 MB
    ],
)
def test_what_was_measured_is_expected_within_a_factor(
    method: str,
    device: str,
    purpose: Any,
    side: int,
    dtype: str,
    threads: int,
    measured_seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The constants stand for the records that they are from."""
    monkeypatch.setattr(forecast, "COMPILER", "a module that is not loaded")
    expected = of(forecasts(problem(side, dtype), purpose, 1, threads), method, device).seconds
    assert measured_seconds / 2 < expected < measured_seconds * 2


def test_only_a_process_that_has_not_started_it_pays_for_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    known = forecast.CPU_METHODS["sliding"]
    for module, start in (("a module that is not loaded", known.start_seconds), ("sys", known.again_seconds)):
        monkeypatch.setattr(forecast, "COMPILER", module)
        assert of(forecasts(problem(), "one picture", 1, 2), "sliding").start_seconds == start
    assert all(one.start_seconds == 0 for one in forecasts(problem(), "calls", 1, 2))
    assert all(one.start_seconds == 0 for one in forecasts(problem(), "many pictures", None, 2))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_arrays_of_the_host_stay_there_where_the_bus_costs_more(
    dtype: str, stride: int, gpu_may_be_there: None
) -> None:
    """What was measured on one H200 and its host: 4.3 ms on the CPU for 4096×4096, 5 to 8 over the bus."""
    for side in (32, 128, 512, 1024, 2048, 4096):
        choice = choose("auto", "auto", "calls", problem(side, dtype, stride=stride), threads=16)
        assert (choice.method, choice.device) == ("sliding", "cpu")
        assert choice.why.startswith("predicted ")
        assert "; next: " in choice.why
        assert "over the bus" in choice.why


def test_one_picture_does_not_wait_for_cuda(gpu_may_be_there: None) -> None:
    choice = choose("auto", "auto", "one picture", problem(), threads=2)
    assert (choice.method, choice.device) == ("opencv", "cpu")
    assert "the start of CUDA takes" in choice.why
    assert "--device cuda takes it" in choice.why


def test_a_large_picture_pays_for_the_compiler(gpu_may_be_there: None) -> None:
    small, large = (problem(side, filter="kirsch", channels="each") for side in (256, 8192))
    assert choose("auto", "auto", "one picture", small, threads=2).method == "opencv"
    assert choose("auto", "auto", "one picture", large, threads=2).method == "sliding"


def slow_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU on which the arithmetic of a picture takes longer than its way to the GPU and back."""
    monkeypatch.setattr(forecast, "BYTES_PER_THREAD", 1e9)
    monkeypatch.setattr(forecast, "MOST_CPU_BYTES", 1e9)


def test_the_gpu_is_taken_where_it_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_cpu(monkeypatch)
    best = forecasts(problem(), "calls", 1, 2)[0]
    assert (best.method, best.device) == ("sliding", "cuda")
    assert 0 < best.bus_seconds < best.work_seconds
    few, many = (forecasts(problem(), "many pictures", pictures, 2)[0].device for pictures in (10, 100_000))
    assert (few, many) == ("cpu", "cuda")


def test_it_is_said_from_how_many_pictures_the_gpu_pays(
    monkeypatch: pytest.MonkeyPatch, gpu_may_be_there: None
) -> None:
    slow_cpu(monkeypatch)
    found = forecasts(problem(), "many pictures", 10, 2)
    pictures = forecast.break_even(found[0], of(found, "sliding", "cuda"))
    assert pictures is not None
    why = choose("auto", "auto", "many pictures", problem(), 10, 2).why
    assert f"cuda would pay from about {round(pictures):,} such pictures" in why
    fewer, more = (forecasts(problem(), "many pictures", round(pictures * share), 2) for share in (0.9, 1.1))
    assert of(fewer, found[0].method).seconds < of(fewer, "sliding", "cuda").seconds
    assert of(more, found[0].method).seconds > of(more, "sliding", "cuda").seconds


def test_a_gpu_that_is_not_there_is_not_the_runner_up() -> None:
    assert probe.cuda_unavailable_reason() is None or "cuda" not in choose("auto", "auto", "calls", problem()).why


def test_a_runner_up_that_loses_by_its_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "COMPILER", "a module that is not loaded")
    why = choose("auto", "cpu", "one picture", problem(), threads=2).why
    assert "CPU asked for; predicted " in why
    assert "; next: sliding on cpu, " in why
    assert "because its start takes 106 ms" in why


def test_where_no_memory_is_left_the_reason_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    from edgeconv.runtime.devices import get_device

    monkeypatch.setattr(type(get_device("cpu")), "free_bytes", lambda self: 5)
    choice = choose("auto", "cpu", "calls", problem(64))
    assert choice.device == "cpu"
    assert "needs 24,576 bytes of 5 free" in choice.why


@pytest.mark.parametrize("driver", [True, False])
def test_cuda_is_not_started_to_learn_that_it_is_not_needed(tmp_path: Path, driver: bool) -> None:
    """One picture on the CPU imports neither CuPy nor the compiler, on a machine that has both."""
    (tmp_path / "cupy.py").write_text("raise SystemExit('CuPy was imported')", encoding="utf-8")
    code = (
        "import sys; sys.platform = 'linux'\n"
        f"from edgeconv.hardware.cuda import probe; probe.DRIVER_FILES = {('/',) if driver else ('/no/such',)!r}\n"
        "from edgeconv.core.request import make_request; from edgeconv.runtime.auto import choose\n"
        "choice = choose('auto', 'auto', 'one picture', make_request().problem((64, 64, 3), 'uint8'))\n"
        "print(choice.method, 'llvmlite' in sys.modules, 'no NVIDIA GPU found' in choice.why)"
    )
    environment = {"PYTHONPATH": f"{tmp_path}:{PROJECT}:{':'.join(sys.path)}", "EDGECONV_PROFILE": "/no/such"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["opencv", "False", str(not driver)], done.stderr


STARTS, CROSSES = ", because its start takes 200 ms", ", because the picture crosses the bus twice"
BEST = Forecast("sliding", "cpu", 0.010, 0.100)


@pytest.mark.parametrize(
    ("second", "because"),
    [
        (Forecast("sliding", "cuda", 0.010, 0.200), STARTS),
        (Forecast("opencv", "cpu", 0.105, 0.200), STARTS),  # 95 ms of work against 100 ms of start
        (Forecast("opencv", "cpu", 0.115, 0.200), ""),  # 105 ms: its work loses more
        (Forecast("opencv", "cpu", 0.030, 0.200, pictures=4), STARTS),  # 20 ms for each of four
        (Forecast("opencv", "cpu", 0.030, 0.200, pictures=6), ""),
        (Forecast("sliding", "cuda", 0.400, 0.200, bus_seconds=0.210), CROSSES),  # more than half of the work
        (Forecast("sliding", "cuda", 0.400, 0.200, bus_seconds=0.190), ""),
        (Forecast("sliding", "cuda", 0.400, 0.200, bus_seconds=0.390), CROSSES),
        (Forecast("opencv", "cpu", 0.400, 0.200, bus_seconds=0.390), ""),  # no bus leads to the CPU
    ],
)
def test_the_runner_up_comes_with_what_it_loses_its_time_with(second: Forecast, because: str) -> None:
    text = auto._next([BEST, second])
    assert text.startswith(f"; next: {second.method} on {second.device}, ")
    assert text.endswith(because) if because else "because" not in text


def test_one_that_is_alone_has_no_runner_up() -> None:
    assert auto._next([BEST]) == ""
