"""What `--method auto` means for a batch: the profile's word for the first picture, and the ledger's when resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from batch_folders import draw_photos
from command import edgeconv
from test_tune import curve, keep

from edgeconv.batch import auto, ledger
from edgeconv.runtime.auto import Choice

AUTO = ("--method", "auto", "--device", "cpu", "--channels", "each")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return draw_photos(tmp_path / "photos")


def method_line(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("method"))


def test_a_batch_goes_by_the_profile(photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep(monkeypatch, tmp_path, curve("opencv", 1e-3), curve("sliding", 2e-3))
    done = edgeconv("batch", photos, "-o", tmp_path / "out", *AUTO)
    assert done.code == 0, done.err
    assert method_line(done.text).startswith("method    opencv on cpu (the least time by this machine's profile")
    keep(monkeypatch, tmp_path, curve("opencv", 2e-3), curve("sliding", 1e-3))
    other = edgeconv("batch", photos, "-o", tmp_path / "other", *AUTO, "--scheduler", "local", "--jobs", 1)
    assert method_line(other.text).startswith("method    sliding on cpu (the least time by this machine's profile")


def test_the_first_picture_that_can_be_read_stands_for_all(
    photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keep(monkeypatch, tmp_path, curve("opencv", 1e-3))
    (photos / "0.png").write_bytes(b"no picture")
    done = edgeconv("batch", photos, "-o", tmp_path / "out", *AUTO)
    assert done.code == 1
    assert method_line(done.text).startswith("method    opencv on cpu (the least time")


def test_a_batch_that_is_resumed_stays_with_its_method(
    photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    keep(monkeypatch, tmp_path, curve("opencv", 1e-3), curve("sliding", 2e-3))
    assert edgeconv("batch", photos / "a.png", "-o", out, *AUTO).code == 0
    keep(monkeypatch, tmp_path, curve("opencv", 2e-3), curve("sliding", 1e-3))
    again = edgeconv("batch", photos, "-o", out, *AUTO, "--resume")
    assert "1 done, 1 unchanged" in again.text
    assert method_line(again.text) == "method    opencv on cpu (as in the earlier run that this one resumes)"
    assert len({row.parameters_sha256 for row in ledger.read_rows(out)}) == 1
    named = edgeconv("batch", photos, "-o", out, *AUTO[2:], "--method", "reference", "--resume", "--json")
    assert json.loads(named.text)["done"] == 2
    changed = edgeconv("batch", photos, "-o", out, *AUTO, "--resume", "--stride", 2)
    assert method_line(changed.text).startswith("method    sliding on cpu (the least time by this machine's profile")


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), ("auto", 2)),
        (("--jpeg-codec", "gpu"), ("cuda", 2)),
        (("--shard", "2/2"), ("auto", 1)),
        (("--device", "cpu"), ("cpu", 2)),
    ],
    ids=["nothing", "the GPU for JPEG", "a half", "the CPU"],
)
def test_a_machine_with_a_gpu_is_asked_for_what_the_batch_needs(
    photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], asked: tuple[str, int]
) -> None:
    """JPEG that is decoded on a GPU is filtered there; otherwise the number of pictures decides."""
    seen: list[tuple[str, int]] = []

    def choose(method: str, device: str, purpose: str, problem: object, pictures: int, threads: object) -> Choice:
        assert (purpose, problem is None) == ("many pictures", device != "auto")
        seen.append((device, pictures))
        return Choice("opencv", "cpu", "for a test")

    monkeypatch.setattr(auto, "cuda_missing_reason", lambda: None)
    monkeypatch.setattr(auto, "choose", choose)
    edgeconv("batch", photos, "-o", tmp_path / "out", *words)
    assert seen == [asked]
