"""What a GPU says about its clocks: what holds it back, in words, and nothing of a GPU that is not there."""

from __future__ import annotations

import sys

import pytest

from edgeconv.hardware import clocks


@pytest.mark.parametrize(
    ("bits", "words"),
    [(0, ()), (None, ()), (0x01, ()), (0x01 | 0x04 | 0x40, ("software power cap", "hardware thermal slowdown"))],
)
def test_a_reading_names_what_holds_the_gpu_back(bits: int | None, words: tuple[str, ...]) -> None:
    assert clocks.GpuReading(1980, 1980, bits, 61, 350.5).slowdowns == words


def test_a_gpu_that_is_not_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clocks.read_gpu("ffff:ff:1f.7") is None
    monkeypatch.setitem(sys.modules, "pynvml", None)  # as on a machine without the package
    assert clocks.read_gpu("ffff:ff:1f.6") is None


def test_what_a_gpu_refuses_to_tell_is_none() -> None:
    nvml = pytest.importorskip("pynvml")
    assert set(vars(clocks._reading(nvml, None)).values()) == {None}, "there is no such GPU"


@pytest.mark.gpu
def test_the_gpu_that_is_there_tells_its_clock_temperature_and_power() -> None:
    import cupy

    pytest.importorskip("pynvml")
    gpu = clocks.read_gpu(str(cupy.cuda.Device().pci_bus_id))
    assert gpu is not None
    assert 0 < (gpu.sm_clock_mhz or 1) < 10_000
    assert set(gpu.slowdowns) <= set(clocks.SLOWDOWNS.values())
