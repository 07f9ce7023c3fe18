"""`edgeconv doctor`: every method has a verdict, and known conflicts are named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command import PROJECT, edgeconv, edgeconv_process
from problems import random_image
from selection import few_then_slow

from edgeconv.api import doctor
from edgeconv.hardware.cuda import probe
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.io.encoding import write_image
from edgeconv.methods import METHODS


def test_every_method_works_or_says_why_not() -> None:
    lines = edgeconv("doctor").text.splitlines()
    for entry in METHODS:
        (line,) = (line for line in lines if line.split()[:2] == [entry.device, entry.name])
        if entry.device == "cpu":
            assert line.endswith("works")
        elif cuda_unavailable_reason() is not None:
            assert line.endswith("needs a GPU")


def test_two_opencvs_at_once_are_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "conflict" not in doctor.text()
    monkeypatch.setattr(doctor, "_installed", lambda name: name.startswith("opencv"))
    assert "conflict: opencv-python and opencv-python-headless" in doctor.text()


def test_what_is_missing_for_cuda_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (probe, doctor):
        monkeypatch.setattr(module, "cuda_unavailable_reason", lambda: "CuPy is not installed")
        monkeypatch.setattr(module, "cuda_remedy", lambda: probe.INSTALL_CUPY)
    assert doctor.text().count("CuPy is not installed") == doctor.text().count(probe.INSTALL_CUPY) == 1


OPEN_A_DEVICE = (
    "doctor",
    "run photo.png --device cuda -o edges.png",
    "batch photo.png --device cuda -o out",
    "run photo.tif --device cuda --tile 16 -o edges.tif",
    "compare photo.png",
    "bench --sizes 8 --strides 1 --devices cuda --methods sliding --peers none -o out",
    "bench conv --sizes 8 -o out",
    "bench gemm --sizes 8 -o out",
)


@pytest.mark.parametrize("words", few_then_slow(OPEN_A_DEVICE, 3))
def test_a_gpu_without_memory_left_is_one_line(words: str, tmp_path: Path) -> None:
    shutil.copy(PROJECT / "tests" / "host_cuda" / "full_gpu.py", tmp_path / "cupy.py")
    for name in ("photo.png", "photo.tif"):
        write_image(random_image(20, 30, "uint8"), tmp_path / name)
    done = edgeconv_process(*words.split(), cwd=tmp_path)
    assert done.code == 5
    (line,) = done.error_lines
    assert "The memory of the GPU is full (cudaErrorMemoryAllocation: out of memory)" in line
    assert "--device cpu" in line
