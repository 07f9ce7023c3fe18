"""`edgeconv doctor`: every method has a verdict, and known conflicts are named."""

from __future__ import annotations

import pytest
from command import edgeconv

from edgeconv.hardware.cuda import probe
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods import METHODS
from edgeconv.runtime import doctor


def test_every_method_works_or_says_why_not() -> None:
    lines = edgeconv("doctor").text.splitlines()
    for entry in METHODS:
        (line,) = (line for line in lines if line.split()[:2] == [entry.device, entry.name])
        if entry.device == "cpu":
            assert line.endswith("works")
        elif cuda_unavailable_reason() is not None:
            assert f"no: {cuda_unavailable_reason()}" in line


def test_two_opencvs_at_once_are_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "conflict" not in doctor.text()
    monkeypatch.setattr(doctor, "_installed", lambda name: name.startswith("opencv"))
    assert "conflict: opencv-python and opencv-python-headless" in doctor.text()


def test_what_to_install_for_cuda_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (probe, doctor):
        monkeypatch.setattr(module, "cuda_unavailable_reason", lambda: "CuPy is not installed")
        monkeypatch.setattr(module, "cuda_remedy", lambda: probe.INSTALL_CUPY)
    assert doctor.text().count(probe.INSTALL_CUPY) == 1
