"""Which method and device two words lead to, on machines with and without a GPU: a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from command import edgeconv

from edgeconv.api import auto
from edgeconv.api.auto import Choice, choose
from edgeconv.batch import engines, ledger, run
from edgeconv.core.chains import chain_problem, make_chain
from edgeconv.core.request import make_request
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.cuda import probe
from edgeconv.methods import METHODS, find, method_names
from edgeconv.methods.entry import MethodEntry

NO_GPU = "no driver"
ON_GPU = method_names("cuda", METHODS)
PROBLEMS: dict[str, Any] = {
    "filter": make_request("sobel", channels="each").picture_problem((9, 9, 3), "uint8"),
    "canny": chain_problem((9, 9, 3), np.uint8, make_chain("canny", low=50, high=150), "abs"),
    "chain": chain_problem((9, 9, 3), np.uint8, make_chain("sobel,thin"), "abs"),
}


@pytest.mark.parametrize(
    ("method", "device", "gpu", "problem", "expected"),
    [
        ("auto", "auto", None, "filter", ("sliding", "cpu", "where the pixels are; --device cuda takes the GPU")),
        ("auto", "auto", NO_GPU, "filter", ("sliding", "cpu", "where the pixels are")),
        ("auto", "cpu", None, "filter", ("sliding", "cpu", "cpu asked for")),
        ("auto", "cuda", None, None, ("sliding", "cuda", "cuda asked for")),
        ("auto", "cuda", NO_GPU, "filter", "--device cuda cannot be used here: no driver. Use --device cpu"),
        ("auto", "auto", NO_GPU, "canny", ("sliding", "cpu", "where the pixels are")),
        ("auto", "auto", NO_GPU, "chain", ("reference", "cpu", "sliding does not compute this chain")),
        *(
            (name, "auto", None, "filter", (name, "cuda", "an NVIDIA GPU is present"))
            for name in method_names("cuda", METHODS)
        ),
        ("sliding", "auto", NO_GPU, "filter", ("sliding", "cpu", "asked for by name; on the CPU, as no driver")),
        ("sliding", "cpu", None, "filter", ("sliding", "cpu", "asked for by name")),
        ("opencv", "auto", None, "filter", ("opencv", "cpu", "it is a CPU method")),
        ("cudnn", "cuda", None, "filter", ("cudnn", "cuda", "asked for by name")),
        ("im2col", "cpu", NO_GPU, "chain", "cannot compute the chain"),
    ],
)
def test_a_method_and_a_device_lead_to_one_choice(
    method: str, device: str, gpu: str | None, problem: str | None, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "cuda_unavailable_reason", lambda: gpu)
    monkeypatch.setattr(auto, "cuda_missing_reason", lambda: gpu)
    find, real = auto.find, auto.require
    there = MagicMock(device="cuda", **{"unavailable_reason.return_value": None, "reason.return_value": None})
    there.load.return_value = there  # the entry and its method in one
    monkeypatch.setattr(auto, "find", lambda name, device: there if device == "cuda" else find(name, device))
    monkeypatch.setattr(auto, "require", lambda name, device: there if device == "cuda" else real(name, device))
    of = None if problem is None else PROBLEMS[problem]
    if isinstance(expected, str):
        with pytest.raises(UnavailableError, match=expected.replace(".", r"\.")):
            choose(method, device, of)
        return
    choice = choose(method, device, of)
    assert (choice.method, choice.device) == expected[:2]
    assert choice.why.endswith(expected[2])


# --- a batch has one method for all its pictures ---------------------------------------------------------------------


def test_a_batch_that_is_resumed_stays_with_its_method(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--device", "cpu", "--channels", "each")
    assert edgeconv("batch", photos / "a.png", "-o", out, *words, "--method", "opencv").code == 0
    again = edgeconv("batch", photos, "-o", out, *words, "--resume")
    assert "1 done, 1 unchanged" in again.text
    assert "opencv on cpu (as in the earlier run that this one resumes)" in again.text
    assert {(row.method, row.device) for row in ledger.read(out).rows} == {("opencv", "cpu")}
    named = edgeconv("batch", photos, "-o", out, *words, "--method", "reference", "--resume", "--json")
    assert json.loads(named.text)["done"] == 2
    changed = edgeconv("batch", photos, "-o", out, *words, "--resume", "--stride", 2)
    assert "sliding on cpu (cpu asked for)" in changed.text


@pytest.mark.parametrize(
    ("words", "device"),
    [((), "auto"), (("--jpeg-codec", "gpu"), "cuda"), (("--device", "cpu"), "cpu")],
    ids=["nothing", "the GPU for JPEG", "the CPU"],
)
def test_jpeg_that_is_decoded_on_a_gpu_is_filtered_there(
    photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], device: str
) -> None:
    seen: list[str] = []

    def choose(method: str, device: str, problem: object) -> Choice:
        seen.append(device)
        return Choice("opencv", "cpu", "for a test")

    monkeypatch.setattr(run, "cuda_missing_reason", lambda: None)
    monkeypatch.setattr(engines, "choose", choose)
    edgeconv("batch", photos, "-o", tmp_path / "out", *words)
    assert seen == [device]


def test_where_no_method_runs_that_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MethodEntry, "unavailable_reason", lambda self: "broken")
    for problem, what in (("filter", "such pictures"), ("chain", "this chain")):
        with pytest.raises(UnavailableError, match=f"No method on cpu computes {what} here"):
            choose("auto", "auto", PROBLEMS[problem])


@pytest.mark.skipif(sys.platform != "linux", reason="drivers of other systems have no such files")
def test_a_gpu_may_be_there_where_cupy_and_a_driver_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As far as it can be told without loading CuPy."""
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(probe, "DRIVER_FILES", (str(tmp_path / "gone"), str(tmp_path)))
    monkeypatch.setattr(probe, "find_spec", lambda name: None)
    assert probe.cuda_missing_reason() == "CuPy is not installed"
    monkeypatch.setattr(probe, "find_spec", lambda name: name)
    assert probe.cuda_missing_reason() is None
    monkeypatch.setattr(probe, "DRIVER_FILES", (str(tmp_path / "gone"),))
    assert probe.cuda_missing_reason() == "no NVIDIA GPU found"
    assert "cupy" not in sys.modules


def test_a_method_that_is_not_known_or_not_there_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"^Method 'slidng' is not known: use auto or one of .*Did you mean 'sliding'"):
        find("slidng", "cpu")
    with pytest.raises(UsageError, match=r"^Method 'opencv' does not exist for device 'cuda': use --device cpu\.$"):
        find("opencv", "cuda")
