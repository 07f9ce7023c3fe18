"""`edgeconv doctor`: every method has a verdict, and known conflicts are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import edgeconv

from edgeconv.hardware.cuda import probe
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods import METHODS
from edgeconv.runtime import doctor, profile
from edgeconv.runtime.devices import get_device


def test_every_method_works_or_says_why_not() -> None:
    lines = edgeconv("doctor").text.splitlines()
    for entry in METHODS:
        (line,) = (line for line in lines if line.split()[:2] == [entry.device, entry.name])
        if entry.device == "cpu":
            assert line.endswith("works")
        elif cuda_unavailable_reason() is not None:
            assert f"no: {cuda_unavailable_reason()}" in line


def test_auto_is_explained_for_one_and_for_many() -> None:
    text = doctor.text()
    for side in doctor.SIDES:
        for words in ("one picture", "100 pictures", "calls with arrays"):
            assert f"auto for {words} of {side}×{side}: " in text
    assert text.count("predicted ") == 3 * len(doctor.SIDES)


def test_the_profile_and_what_is_taken_by_it_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    monkeypatch.setenv(profile.PLACE_VARIABLE, str(path))
    assert f"profile {path}: is not there yet: run 'edgeconv tune'" in doctor.text()
    points = (profile.Point(2**16, 1e-9, 0), profile.Point(2**20, 1e-9, 0))
    curve = profile.Curve("im2col", "cpu", 1, "uint8", 0.5, points)
    machine = profile.machine_facts(get_device("cpu").describe())
    path.write_bytes(profile.Profile(machine, (curve,)).to_json())
    text = doctor.text()
    assert f"profile {path}: holds for this machine" in text
    for side in doctor.SIDES:
        assert f"auto for one picture of {side}×{side}: im2col on cpu (the least time by this machine's profile" in text
    path.write_bytes(profile.Profile(machine | {"name": "another"}, (curve,)).to_json())
    text = doctor.text()
    assert f"profile {path}: the profile is of another machine: {profile.RETUNE}" in text
    assert "im2col on cpu (" not in text


def test_two_opencvs_at_once_are_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "conflict" not in doctor.text()
    monkeypatch.setattr(doctor, "_installed", lambda name: name.startswith("opencv"))
    assert "conflict: opencv-python and opencv-python-headless" in doctor.text()


def test_what_to_install_for_cuda_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (probe, doctor):
        monkeypatch.setattr(module, "cuda_unavailable_reason", lambda: "CuPy is not installed")
        monkeypatch.setattr(module, "cuda_remedy", lambda: probe.INSTALL_CUPY)
    assert doctor.text().count(probe.INSTALL_CUPY) == 1
