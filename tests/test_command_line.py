"""What holds for every command: words that cannot be used are refused by name, and a full disk is one line."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from command import PROJECT, edgeconv, shell
from problems import random_image
from selection import few_then_slow

from edgeconv.api import auto
from edgeconv.cli import COMMANDS
from edgeconv.io.encoding import write_image
from edgeconv.methods import METHODS, find, require
from edgeconv.methods.options import Options, special_options

LONGEST_SUMMARY = 50
"""Characters of a command in `--help`: longer sentences are cut."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one small picture."""
    write_image(random_image(20, 30, "uint8"), tmp_path / "photo.png")
    return tmp_path


def test_what_is_not_asked_for_is_never_refused() -> None:
    assert Options(threads=2, workspace_limit_bytes=1).asked() == {}
    require("sliding", "cpu", Options(threads=2))
    known = {option for entry in METHODS for option in entry.special_options}
    assert known == {option.name for option in special_options()}
    assert find("cudnn", "cuda").special_options == ("math", "cudnn_find")


def test_every_command_has_a_description_that_is_shown_whole() -> None:
    lines = edgeconv("--help").text.partition("Commands:")[2].splitlines()
    described = {name: text.strip() for name, _, text in (line.strip().partition("  ") for line in lines) if name}
    assert described.keys() == COMMANDS.keys()
    assert all(len(text) <= LONGEST_SUMMARY and text.endswith(".") and "..." not in text for text in described.values())


def offered(words: str) -> list[str]:
    """What bash is offered where the last of these words is to be completed."""
    asked = {"_EDGECONV_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    line = " ".join(f"{name}='{value}'" for name, value in asked.items())
    done = shell(f'{line} "$0" -m edgeconv', PROJECT)
    assert (done.code, done.err) == (0, "")
    return done.text.split()


COMPLETIONS = (
    ("edgeconv re", ["report", "resize"]),
    ("edgeconv run --samp", ["--samples"]),
    ("edgeconv run --filter sobel", ["sobel-x", "sobel-y", "sobel"]),
    ("edgeconv run phot", []),
    ("edgeconv bench --gri", ["--grid"]),
    ("edgeconv run -m sl", ["sliding"]),
    ("edgeconv batch --border refl", ["reflect", "reflect101"]),
    ("edgeconv run --format w", ["webp"]),
)


@pytest.mark.parametrize("case", few_then_slow(COMPLETIONS, 4), ids=lambda case: case[0])
def test_a_shell_is_offered_commands_options_and_their_values(case: tuple[str, list[str]]) -> None:
    words, expected = case
    assert offered(words) == expected


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_is_installed_for_a_shell(folder: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    home = folder / "home"
    home.mkdir()
    line = f"{sys.executable} -m edgeconv --install-completion; true"
    done = shell(f"HOME='{home}' {name} -c '{line}'", PROJECT)
    assert "completion installed in" in done.text, done.err
    assert any("edgeconv" in path.read_text(encoding="utf-8") for path in home.rglob("*") if path.is_file())


def test_a_file_whose_name_begins_with_a_hyphen_is_read_as_the_line_says(folder: Path) -> None:
    (folder / "photo.png").rename(folder / "-photo.png")
    done = edgeconv("run", "-m", "opencv", "--samples", 0, "--", "-photo.png", cwd=folder)
    assert done.code == 0, done.err


def test_a_device_that_cannot_be_used_is_named_and_no_method_that_nobody_chose(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "cuda_unavailable_reason", lambda: "no NVIDIA GPU found")
    monkeypatch.chdir(folder)
    done = edgeconv("run", "photo.png", "--device", "cuda")
    assert (done.code, len(done.error_lines)) == (4, 1)
    assert "--device cuda cannot be used here: no NVIDIA GPU found." in done.err
    assert "sliding" not in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "words", few_then_slow(["filters", "run photo.png -m opencv --overwrite", "doctor", "--help", "--version"], 2)
)
def test_standard_output_that_is_full_is_one_line(folder: Path, words: str) -> None:
    done = shell(f'"$0" -m edgeconv {words} > /dev/full', folder)
    line = "edgeconv: error: Standard output cannot be written (No space left on device)."
    assert (done.code, done.error_lines) == (2, [line])
