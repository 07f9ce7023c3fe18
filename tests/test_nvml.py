"""What a GPU says about its clocks, with a library that the test plays."""

from __future__ import annotations

from typing import Any

from edgeconv.hardware import nvml


class FakeLibrary:
    """Answers `values` by the call's name; a call that is not there is refused, as NVML refuses on some GPUs."""

    def __init__(self, **values: int) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            if name not in self.values:
                return 3  # NVML_ERROR_NOT_SUPPORTED
            arguments[-1]._obj.value = self.values[name]
            return 0

        return call


def test_a_reading_names_what_holds_the_gpu_back() -> None:
    library = FakeLibrary(
        nvmlDeviceGetClockInfo=1980,
        nvmlDeviceGetPowerUsage=350_500,
        nvmlDeviceGetTemperature=61,
        nvmlDeviceGetCurrentClocksThrottleReasons=0x01 | 0x04 | 0x40,
    )
    reading = nvml.Gpu(library, None).read()
    assert reading == nvml.GpuReading(1980, 1980, 0x45, 61, 350.5)
    assert reading.slowdowns == ("software power cap", "hardware thermal slowdown")


def test_what_a_gpu_does_not_tell_is_not_made_up() -> None:
    reading = nvml.Gpu(FakeLibrary(), None).read()
    assert reading == nvml.GpuReading(None, None, None, None, None)
    assert reading.slowdowns == ()


def test_a_gpu_that_is_not_there_is_none() -> None:
    assert nvml.open_gpu("ffff:ff:1f.7") is None
