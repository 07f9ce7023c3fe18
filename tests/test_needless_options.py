"""No option is ignored in silence: every option of every command stands in the tables here, and each rule is tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import edgeconv
from problems import random_image

from edgeconv.cli import COMMANDS
from edgeconv.cli.commands import load
from edgeconv.cli.needless_options import RULES, RefusingCommand, option_name
from edgeconv.io.image import write_image
from edgeconv.methods.options import special_options

NEEDLESS = {
    "run": [
        "photo.png --luma bt709",
        "photo.png --luma bt601 --channels each",
        "photo.png --border reflect --padding valid",
        "photo.png --border zero --padding 0",
        "photo.png --filter laplacian8 --kernel 0,1,0;1,-4,1;0,1,0",
        "photo.png --filter laplacian8 --kernel-file k.json",
        "photo.png --filter laplacian8 --filters sobel-x,sobel-y",
        "photo.png --time-limit 1 --samples 0",
        "photo.png --time-limit 1 --tile 16",
        "photo.png --samples 3 --memory-limit 1GiB",
        "photo.png --max-pixels 9 --verify-tiles",
        "photo.png --max-bytes 1M --tile 32",
        "photo.png --strict --tile 32",
        "photo.png --format tiff --tile 32",
        "photo.png --quality 9 --tile 32 --format jpg",
        "photo.png --thresholds 50,150 --filter sobel",
        "photo.png --gradient l2",
        "photo.png --blur 3",
        "photo.png --channels mix --filter canny",
        "photo.png --stride 1 --filter canny",
        "photo.png --padding same --chain sobel,thin",
        "photo.png --border zero --chain sobel,thin",
        "photo.png --luma bt709 --filter canny",
        "photo.png --filter laplacian8 --chain sobel,thin",
    ],
    "view": [
        "photo.png --filter laplacian8 --kernel 0,1,0;1,-4,1;0,1,0",
        "photo.png --filter sobel --chain sobel,thin",
    ],
    "batch": [
        "photo.png --luma bt709",
        "photo.png --border reflect --padding 00",
        "photo.png --filter laplacian8 --kernel 0,1,0;1,-4,1;0,1,0",
        "photo.png --max-failures 3 --fail-fast",
        "photo.png --worker-timeout 60",
        "photo.png --tls-ca photo.png --tls-cert photo.png --tls-key photo.png",
        "photo.png --tls-cert photo.png --tls-ca photo.png --tls-key photo.png --scheduler local",
        "photo.png --png-level 3 --name {stem}_{method}.tiff",
        "photo.png --png-level 3 --output-mode raw",
        "photo.png --thresholds otsu",
        "photo.png --gradient l1",
        "photo.png --blur 0",
        "photo.png --channels each --filter canny",
        "photo.png --stride 2 --filter canny",
        "photo.png --padding valid --filter canny",
        "photo.png --border reflect --filter canny",
        "photo.png --luma bt601 --chain sobel,thin",
        "photo.png --filter sobel --chain sobel,thin",
    ],
    "compare": [
        "photo.png --luma bt709",
        "photo.png --border reflect --padding valid",
        "photo.png --filter laplacian8 --kernel 0,1,0;1,-4,1;0,1,0",
        "photo.png --thresholds median",
        "photo.png --gradient l1",
        "photo.png --blur 5",
        "photo.png --channels each --filter canny",
        "photo.png --stride 2 --filter canny",
        "photo.png --padding valid --filter canny",
        "photo.png --border reflect --filter canny",
        "photo.png --luma bt601 --filter canny",
        "photo.png --filter laplacian8 --filters sobel-x,sobel-y",
        "photo.png --filter laplacian8 --chain sobel,thin",
    ],
    "grid": ["--border reflect --padding valid"],
}
"""What each rule is for, by command."""

METHOD_OPTIONS = [option.name for option in special_options()]

REFUSED_ELSEWHERE = {
    *(("run", name) for name in ("verbose", "quiet")),
    *(
        ("run", name)
        for name in (*METHOD_OPTIONS, "kernel", "kernel_file", "filters", "verify_tiles", "memory_limit", "tile")
    ),
    *(("compare", name) for name in (*METHOD_OPTIONS, "kernel", "kernel_file", "filters", "ssim", "flip", "crop")),
    *(("batch", name) for name in (*METHOD_OPTIONS, "kernel", "kernel_file", "filters", "scheduler", "devices")),
    *(("batch", name) for name in ("jobs", "quality", "format", "name", "jpeg_codec", "keep_going", "fail_fast")),
    *(("batch", name) for name in ("tls_ca", "tls_cert", "tls_key")),
    *(("diff", name) for name in ("reference", "update", "contact_sheet", "pictures", "ssim", "flip")),
    *(("grid", name) for name in ("seed", "cases")),
    *((command, "chain") for command in ("run", "batch", "compare")),
}
"""Options that the code which reads them refuses where they do not apply; its own tests show it."""

ALLOWS = {
    "overwrite": "a permission",
    "recursive": "a permission to search deeper",
    "resume": "a permission to pass over",
    "retry_failed": "implies --resume",
    "threads": "a limit",
    "workspace_limit": "a limit",
    "max_pixels": "a limit; by tiles there is a rule",
    "max_bytes": "a limit; by tiles there is a rule",
    "strict": "what a decoder may complain of; by tiles there is a rule",
    "rgb": "what becomes of a picture that is grey",
    "page_limit": "a limit",
    "stop_after": "a limit",
    "max_failures": "a limit; with --fail-fast there is a rule",
    "atol": "what a comparison accepts",
    "rtol": "what a comparison accepts",
    "ulp": "what a comparison accepts",
    "max_count": "what a comparison accepts",
    "ignore_border": "what a comparison accepts",
    "ignore": "what a comparison accepts",
    "allow": "what a comparison accepts",
}
"""Limits and permissions hold wherever they are given, also where nothing comes near them."""

COUNTS_ALWAYS = {
    *(("run", name) for name in ("method", "device", "output_mode", "threshold", "output", "check")),
    *(("run", name) for name in ("json_only",)),
    *(("batch", name) for name in ("method", "device", "output_mode", "output")),
    ("batch", "threshold"),
    *(("batch", name) for name in ("files_from", "shard", "json_only")),
    *(("compare", name) for name in ("output_mode", "html", "contact_sheet")),
    *(("compare", name) for name in ("pictures", "junit", "json_only")),
    *(("diff", name) for name in ("convert", "html", "junit", "json_only")),
    *(("grid", name) for name in ("grid", "sizes", "strides", "methods", "peers", "dtypes", "filters", "channels")),
    *(
        ("grid", name)
        for name in ("devices", "padding", "output_mode", "l2", "noise", "time_limit", "samples", "check")
    ),
    *(("grid", name) for name in ("around", "output", "name", "formats")),
    *((ladder, name) for ladder in ("gemm", "conv") for name in ("sizes", "blocks", "time_limit", "output")),
    ("gemm", "dtypes"),
    ("conv", "strides"),
    *(("bench compare", name) for name in ("fail_on", "markdown", "junit")),
    *(("report", name) for name in ("html", "markdown", "csv", "plots")),
    *(("resize", name) for name in ("sizes", "square", "interpolation", "output")),
}
"""Options that change what is done, whatever stands beside them. Those of `view` are knobs, which it keeps."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by a name that is its own."""
    for name in COMMANDS:
        command: Any = load(name)
        if hasattr(command, "commands"):
            for below, each in command.commands.items():
                yield (f"{name} {below}" if below in COMMANDS else below), each
        else:
            yield name, command


def options() -> Iterator[tuple[str, str]]:
    """(command, parameter) of every option."""
    for name, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                yield name, parameter.name


@pytest.mark.parametrize(("command", "option"), [pair for pair in options() if pair[0] != "view"])
def test_every_option_is_known_to_count_or_to_be_refused(command: str, option: str) -> None:
    """A new option fails here until it is said what becomes of it where it does not apply."""
    ruled = any(rule.option == option and command in (rule.commands or (command,)) for rule in RULES)
    always, elsewhere = (command, option) in COUNTS_ALWAYS, (command, option) in REFUSED_ELSEWHERE
    assert ruled or always or elsewhere or option in ALLOWS
    assert not (always and (ruled or elsewhere))


def test_the_tables_name_nothing_that_is_gone() -> None:
    assert set(options()) >= COUNTS_ALWAYS | REFUSED_ELSEWHERE
    assert {option for _, option in options()} >= {*ALLOWS, *(rule.option for rule in RULES)}
    names = {command.name for _, command in commands()}
    assert names >= {name for rule in RULES for name in rule.commands}


def test_every_command_refuses() -> None:
    assert all(isinstance(command, RefusingCommand) for _, command in commands())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_image(random_image(20, 30, "uint8"), "photo.png")
    Path("k.json").write_text("[[0, 1, 0], [1, -4, 1], [0, 1, 0]]", encoding="ascii")
    return tmp_path


@pytest.mark.parametrize(("command", "words"), [(name, words) for name, each in NEEDLESS.items() for words in each])
def test_what_would_be_ignored_is_refused_by_name(folder: Path, command: str, words: str) -> None:
    named = [word for word in words.split() if word.startswith("--")]
    done = edgeconv("bench" if command == "grid" else command, *words.split())
    assert (done.code, done.out, len(done.error_lines)) == (2, b"", 1), done.err
    assert any(f"edgeconv: error: {option} " in done.err for option in named)
    assert sorted(path.name for path in folder.iterdir()) == ["k.json", "photo.png"]


def test_every_rule_has_its_example() -> None:
    shown = {
        (command, word)
        for command, each in NEEDLESS.items()
        for words in each
        for word in words.split()
        if "--" in word
    }
    by_name = dict(commands())
    for rule in RULES:
        for name in rule.commands or ("batch",):
            assert (name, option_name(by_name[name], rule.option)) in shown, rule


@pytest.mark.parametrize(
    "words",
    [
        "run photo.png --luma bt709 --channels luma --samples 0",
        "run photo.png --border reflect --padding 1 --samples 0",
        "run photo.png --max-pixels 900 --time-limit 0.01 --samples 1",
        "batch photo.png --png-level 3 --name {stem}_{method}.png",
        "batch photo.png --png-level 3 --output-mode raw --format png --resume",
    ],
)
def test_what_does_count_is_not_refused(folder: Path, words: str) -> None:
    done = edgeconv(*words.split(), "-m", "opencv")
    assert "leave" not in done.err, done.err


@pytest.mark.parametrize("number", range(len(RULES)))
def test_a_rule_reads_only_options_that_its_commands_have(number: int) -> None:
    """Else the command ends with an error that nobody made, as soon as the option of the rule is given."""
    rule = RULES[number]
    by_name = dict(commands())
    for name in rule.commands or [each for each, command in by_name.items() if _has(command, rule.option)]:
        rule.is_needless({option.name: [] if option.nargs == -1 else option.default for option in by_name[name].params})


def _has(command: Any, option: str) -> bool:
    return any(parameter.name == option for parameter in command.params)
