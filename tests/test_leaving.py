"""How commands end: quietly where nobody reads any more, in one line at Ctrl-C and where nothing can be put."""

from __future__ import annotations

import io
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from bench_records import TimedMethod, measured
from command import PROJECT, edgeconv, edgeconv_process, shell, unmeasured
from meet import join, run_program
from problems import random_image
from selection import few_then_slow

from edgeconv import signals
from edgeconv.api import doctor
from edgeconv.cli import COMMANDS
from edgeconv.core.records import to_json
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.signals import SIGNALS

SIGPIPE_EXIT = 141

PRINTING = {
    "run": ["run photo.png -m opencv --samples 0 --check none -o out/", "run photo.png -m opencv -o -"],
    "batch": ["batch photo.png -m opencv -o edges", "batch photo.png -m opencv -o edges2 --json"],
    "verify": ["verify done"],
    "compare": ["compare photo.png"],
    "view": [],  # prints nothing but its help
    "diff": ["diff photo.png photo.png", "diff photo.png other.png"],
    "bench": ["bench --sizes 32 --methods opencv --strides 1 --samples 2 --formats json --overwrite"],
    "bench ab": [],
    "bench gemm": [],
    "bench conv": [],
    "report": ["report bench.json"],
    "resize": ["resize photo.png --sizes 8 -o small"],
    "filters": ["filters"],
    "doctor": ["doctor"],
}
"""What each command prints on standard output, once for each way in which it does."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: two small pictures, a batch that is done and a record."""
    monkeypatch.chdir(tmp_path)
    write_image(random_image(20, 30, "uint8"), "photo.png")
    write_image(random_image(20, 30, "uint8", 1), "other.png")
    return tmp_path


def closed_pipe() -> io.TextIOWrapper:
    """Something to write to that nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    return io.TextIOWrapper(io.FileIO(writing, "w"), "utf-8", write_through=False)


def test_the_table_of_what_commands_print_is_complete() -> None:
    assert PRINTING.keys() == COMMANDS.keys()


@pytest.mark.parametrize(
    "words", [*(f"{name} --help" for name in COMMANDS), *(words for each in PRINTING.values() for words in each)]
)
def test_a_closed_pipe_ends_every_command_quietly(folder: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    if words == "verify done":
        assert edgeconv(*["batch", "photo.png", "-m", "opencv", "-o", "done"]).code == 0
    if "bench.json" in words:
        Path("bench.json").write_bytes(to_json(measured(monkeypatch, TimedMethod("opencv", [1e-3], "opencv"))))
    done = edgeconv(*words.split(), stdout=closed_pipe())
    assert (done.code, done.err) == (SIGPIPE_EXIT, "")


@pytest.mark.parametrize(("words", "errors"), [("nonsense", subprocess.STDOUT), ("filters", subprocess.PIPE)])
def test_a_closed_pipe_ends_the_process_itself_quietly(folder: Path, words: str, errors: int) -> None:
    with closed_pipe() as pipe:
        command = [sys.executable, "-m", "edgeconv", words]
        done = subprocess.run(command, env=unmeasured(), stdout=pipe, stderr=errors, check=False)
    assert (done.returncode, done.stderr or b"") == (SIGPIPE_EXIT, b"")


def test_a_pipe_that_is_named_and_closed_ends_the_command_quietly(folder: Path) -> None:
    os.mkfifo("pipe")
    opened = threading.Thread(target=lambda: os.close(os.open("pipe", os.O_RDONLY)))
    opened.start()
    write_image(random_image(300, 400, "uint8"), "large.png")  # more than a pipe holds
    done = edgeconv("run", "large.png", "-m", "opencv", "--samples", 0, "--check", "none", "-o", "pipe")
    join(opened)
    assert (done.code, done.err) == (SIGPIPE_EXIT, "")


def test_without_standard_error_an_error_is_its_exit_code(folder: Path) -> None:
    done = shell('"$0" -m edgeconv nonsense 2>&-', folder)
    assert (done.code, done.out) == (2, b"")
    done = shell('"$0" -m edgeconv batch photo.png -m opencv -o edges 2>&-', folder)
    assert done.code == 0


@pytest.mark.parametrize(
    "module", ["typer", "edgeconv.cli", "edgeconv.options", "edgeconv.cli.run", "edgeconv.run.picture", "numpy", "cv2"]
)
@pytest.mark.parametrize("number", few_then_slow([signal.SIGINT, signal.SIGTERM]))
def test_an_interrupt_while_anything_is_loaded_is_one_line(folder: Path, module: str, number: signal.Signals) -> None:
    """The signal comes when the module's import begins: no moment depends on how quick the machine is."""
    code = (
        "import os, runpy, sys\n"
        "class Signal:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Signal())\n"
        "sys.argv[1:] = ['run', 'photo.png', '-m', 'opencv']\n"
        "runpy.run_module('edgeconv', run_name='__main__', alter_sys=True)\n"
    )
    done = run_program(code, cwd=folder)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr.splitlines() == [f"edgeconv: error: stopped by {number.name}."]
    assert sorted(path.name for path in folder.iterdir()) == ["other.png", "photo.png"]


@pytest.mark.parametrize("moment", ["swallowed", "at the end of an object", "after the end"])
def test_an_interrupt_that_python_or_a_library_would_lose_still_ends_the_command(folder: Path, moment: str) -> None:
    kill = f"import os; os.kill(os.getpid(), {int(signal.SIGINT)})"
    code = {
        "swallowed": f"def hurt():\n  try: exec({kill!r})\n  except BaseException: raise ImportError('no luck')",
        "at the end of an object": f"class A:\n  def __del__(self): exec({kill!r})\ndef hurt(): A()",
        "after the end": f"import atexit\ndef hurt(): atexit.register(lambda: exec({kill!r}))",
    }[moment]
    code += (
        "\nimport sys, edgeconv.core.filters; sys.argv[1:] = ['filters']; table = edgeconv.core.filters.FILTERS\n"
        "class Table:\n  def __iter__(self): hurt(); return iter(table)\n"
        "edgeconv.core.filters.FILTERS = Table()\n"
        "from edgeconv.__main__ import main; main()"
    )
    done = run_program(code)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr.splitlines() == ["edgeconv: error: stopped by SIGINT."]


def test_the_installed_command_listens_before_it_loads() -> None:
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'edgeconv = "edgeconv.__main__:main"' in text


QUICK = ("-m", "opencv", "--samples", "0", "--check", "none")


@pytest.mark.parametrize("options", [(), ("--json",), ("--overwrite",)])
def test_a_device_takes_the_picture_alone(folder: Path, options: tuple[str, ...]) -> None:
    done = edgeconv("run", "photo.png", *QUICK, "-o", os.devnull, *options)
    assert (done.code, done.err) == (0, "")
    assert os.devnull in done.text
    assert not [name for name in os.listdir("/dev") if name.startswith((".edgeconv", "null."))]
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert sorted(path.name for path in folder.iterdir()) == ["other.png", "photo.png"]


def test_a_pipe_takes_the_picture_alone(folder: Path) -> None:
    os.mkfifo("pipe.png")
    taken: list[bytes] = []
    reading = threading.Thread(target=lambda: taken.append(Path("pipe.png").read_bytes()))
    reading.start()
    done = edgeconv("run", "photo.png", *QUICK, "-o", "pipe.png")
    join(reading)
    assert (done.code, done.err) == (0, "")
    Path("taken.png").write_bytes(taken[0])
    assert read_image("taken.png").pixels.shape == (20, 30, 3)
    assert not Path("pipe.json").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no /proc")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run photo.png -o /proc/x.png", "/proc/x.png: cannot be written (No such file or directory): choose another"),
        ("run photo.png -o /proc/x/", "'/proc/x' cannot be made: No such file or directory"),
        ("run photo.png -o /dev/null/x/", "'/dev/null/x' cannot be made: Not a directory"),
        ("run photo.png -o other.png/", "'other.png' cannot be made: File exists"),
        ("run photo.png --tile 16 -o /dev/null", "/dev/null: is a stream or a device"),
        ("batch photo.png -o /proc/x", "'/proc/x' cannot be made: No such file or directory"),
        ("batch photo.png -o /dev/null", "'/dev/null' cannot be made: File exists"),
        ("resize photo.png -o /proc/x", "'/proc/x' cannot be made: No such file or directory"),
        ("resize photo.png -o /dev/null", "'/dev/null' cannot be made: File exists"),
        ("bench -o /proc/x", "'/proc/x' cannot be made: No such file or directory"),
        ("bench -o /dev/null", "'/dev/null' cannot be made: File exists"),
        ("diff photo.png other.png --html /proc/x.html", "/proc/x.html: cannot be written"),
        ("diff photo.png other.png --pictures /proc/x", "'/proc/x' cannot be made: No such file or directory"),
    ],
)
def test_a_place_where_nothing_can_be_put_is_called_what_it_is(folder: Path, words: str, says: str) -> None:
    quick = [*QUICK] if words.startswith("run") and "--tile" not in words else []
    done = edgeconv(*words.split(), *quick)
    assert (done.code, len(done.error_lines)) == (2, 1), done.err
    assert says in done.err
    assert sorted(path.name for path in folder.iterdir()) == ["other.png", "photo.png"]


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (BrokenPipeError(32, "Broken pipe"), 2, "should not have happened"),  # a connection
        (MemoryError(), 5, "Out of memory: use a smaller picture, or lower --workspace-limit."),
        (ValueError("a\nb"), 2, "should not have happened (ValueError: a b). Set EDGECONV_DEBUG=1"),
    ],
    ids=repr,
)
def test_an_error_that_no_command_expects_is_one_line(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, says: str
) -> None:
    def fail() -> str:
        raise error

    monkeypatch.setattr(doctor, "text", fail)
    done = edgeconv("doctor")
    assert (done.code, len(done.error_lines)) == (code, 1)
    assert says in done.err


def test_edgeconv_in_a_process_of_its_own_and_here_say_the_same(folder: Path) -> None:
    assert edgeconv("filters") == edgeconv_process("filters")
    assert edgeconv("run", "missing.png") == edgeconv_process("run", "missing.png")


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_and_the_second_ends(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """What a batch does with them; afterwards they mean what they did before."""
    heard: list[Any] = []
    monkeypatch.setattr(signals, "_say", heard.append)
    monkeypatch.setattr(os, "_exit", lambda code: heard.append(code))
    before = signal.getsignal(number)
    with signals.stopping(heard.append, lambda: heard.append("abandoned")) as received:
        assert received.exit_code is None
        signal.raise_signal(number)
        once = f"{number.name}: finishing the pictures in hand; once more to stop at once."
        assert (received.exit_code, heard) == (128 + number, [number.name, once])
        heard.clear()
        signal.raise_signal(number)
        twice = f"{number.name} again: stopped at once; continue with --resume."
        assert heard[:3] == ["abandoned", twice, 128 + number]
    assert signal.getsignal(number) is before
