"""What a GPU says about its clocks: what holds it back, in words, and nothing of a GPU that is not there."""

from __future__ import annotations

import pytest

from edgeconv.hardware import nvml


@pytest.mark.parametrize(
    ("bits", "words"),
    [(0, ()), (None, ()), (0x01, ()), (0x01 | 0x04 | 0x40, ("software power cap", "hardware thermal slowdown"))],
)
def test_a_reading_names_what_holds_the_gpu_back(bits: int | None, words: tuple[str, ...]) -> None:
    assert nvml.GpuReading(1980, 1980, bits, 61, 350.5).slowdowns == words


def test_a_gpu_that_is_not_there_is_none() -> None:
    assert nvml.open_gpu("ffff:ff:1f.7") is None


@pytest.mark.gpu
def test_the_gpu_that_is_there_tells_its_clock_temperature_and_power() -> None:
    import cupy

    gpu = nvml.open_gpu(str(cupy.cuda.Device().pci_bus_id))
    assert gpu is not None
    reading = gpu.read()
    assert reading.sm_clock_mhz is None or 0 < reading.sm_clock_mhz < 10_000
    assert set(reading.slowdowns) <= set(nvml.SLOWDOWNS.values())
