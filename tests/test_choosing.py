"""Which method a word and a device lead to, on machines with and without a GPU, of any profile."""

from __future__ import annotations

import pytest

from edgeconv.errors import UnavailableError
from edgeconv.runtime import auto


@pytest.mark.parametrize(
    ("device", "reason", "one", "many"),
    [
        ("cuda", None, ("sliding", "cuda"), ("sliding", "cuda")),
        ("auto", None, ("sliding", "cuda"), ("sliding", "cuda")),
        ("cpu", None, ("opencv", "cpu"), ("sliding", "cpu")),
        ("auto", "no driver", ("opencv", "cpu"), ("sliding", "cpu")),
        ("cpu", "no driver", ("opencv", "cpu"), ("sliding", "cpu")),
        ("cuda", "no driver", None, None),
    ],
)
def test_auto_takes_the_gpu_where_there_is_one(
    device: str,
    reason: str | None,
    one: tuple[str, str] | None,
    many: tuple[str, str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(auto, "cuda_unavailable_reason", lambda: reason)
    monkeypatch.setattr(auto, "require", lambda name, device, *more: asked.append((name, device)))
    for purpose, chosen in (("one picture", one), ("many pictures", many)):
        asked.clear()
        if chosen is None:
            with pytest.raises(UnavailableError, match=r"--device cuda cannot be used here: no driver\. Use --dev"):
                auto.choose("auto", device, purpose)
            continue
        choice = auto.choose("auto", device, purpose)
        assert (choice.method, choice.device) == chosen
        if choice.device == "cpu":
            assert choice.why.startswith("CPU asked for" if device == "cpu" else "CPU, as no driver")
        assert asked in ([], [chosen])


def test_a_method_by_name_that_cannot_run_here_is_refused_and_not_only_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(auto, "require", lambda name, device, *more: asked.append((name, device)))
    monkeypatch.setattr(auto, "cuda_unavailable_reason", lambda: None)
    for method, device, chosen in (
        ("sliding", "auto", ("sliding", "cuda")),
        ("sliding", "cpu", ("sliding", "cpu")),
        ("opencv", "auto", ("opencv", "cpu")),
        ("cudnn", "cuda", ("cudnn", "cuda")),
    ):
        choice = auto.choose(method, device, "one picture")
        assert ((choice.method, choice.device), asked.pop()) == (chosen, chosen)
        assert asked == []
