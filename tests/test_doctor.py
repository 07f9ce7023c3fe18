"""`edgeconv doctor`: every method has a verdict, and known conflicts are named."""

from __future__ import annotations

import pytest
from command import edgeconv

from edgeconv import doctor
from edgeconv.methods import METHODS
from edgeconv.methods.cuda.probe import cuda_unavailable_reason


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
    assert "auto for one picture: " in text
    assert "auto for many pictures: " in text


def test_two_opencvs_at_once_are_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "conflict" not in doctor.text()
    monkeypatch.setattr(doctor, "_installed", lambda name: name.startswith("opencv"))
    assert "conflict: opencv-python and opencv-python-headless" in doctor.text()
