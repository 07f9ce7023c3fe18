"""What Windows does differently, played on any system: names of devices, files held open, folders of DLLs."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from edgeconv.batch.names import Names
from edgeconv.batch.windows_filenames import DEVICES, DIGITS, NUMBERED_DEVICES, windows_problem
from edgeconv.errors import ImageWriteError
from edgeconv.io import replace_file
from edgeconv.io.files import write_bytes_atomically
from edgeconv.methods.cuda import libcudnn
from edgeconv.options import DEFAULT_NAME
from edgeconv.run.tiled.sinks import kind_for
from edgeconv.run.tiled.sinks.base import OutputShape

DEVICE_NAMES = (*DEVICES, *(f"{port}{digit}" for port in NUMBERED_DEVICES for digit in DIGITS))


@pytest.mark.parametrize("device", DEVICE_NAMES)
def test_a_device_is_no_name_whatever_its_case_and_ending(device: str) -> None:
    for name in (device, device.lower(), f"{device}.png", f"{device.title()}.tar.gz", f"{device} .png"):
        assert f"reserves the name {device} " in str(windows_problem(name)), name
    for name in (f"{device}_s1.png", f"a{device}.png", f"{device}X.png", f"_{device}"):
        assert windows_problem(name) is None, name


@pytest.mark.parametrize("sign", '<>:"/\\|?*\0\n\x1f')
def test_a_sign_that_windows_forbids_is_named(sign: str) -> None:
    assert "does not allow" in str(windows_problem(f"a{sign}b.png"))


@pytest.mark.parametrize("name", ["a.", "a ", "a.png.", "a.png "])
def test_an_end_that_windows_drops_is_refused(name: str) -> None:
    assert "drops" in str(windows_problem(name))


@pytest.mark.parametrize("name", ["a.png", "com.png", "com10.png", "lpt.tif", "con-1.png", ".png", "ä ö.png", "c.o.n"])
def test_plain_names_are_fine(name: str) -> None:
    assert windows_problem(name) is None


def test_an_output_with_the_name_of_a_device_is_refused_on_windows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names("{stem}{ext}", "sobel", "sliding", 1)
    assert names.name("CON", ".png", ".png", 8, 8) == "CON.png"
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(ImageWriteError, match=r"'CON\.png' cannot be made: Windows reserves the name CON .*--name"):
        names.name("CON", ".png", ".png", 8, 8)
    with pytest.raises(ImageWriteError, match=r"does not allow ':'"):
        names.name("a:b", ".png", ".png", 8, 8)
    with pytest.raises(ImageWriteError) as error:
        names.name("a\x1b[2Jb", ".png", ".png", 8, 8)
    assert str(error.value).isprintable()
    assert Names(DEFAULT_NAME, "sobel", "sliding", 1).name("CON", ".png", ".png", 8, 8) == "CON_sobel_sliding_s1.png"


class Held:
    """os.replace and os.rename of a Windows where a program holds the target for so many tries."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tries: int, platform: str = "win32") -> None:
        self.tries, self.waited = tries, 0.0
        for name in ("replace", "rename"):
            move = getattr(os, name)
            monkeypatch.setattr(os, name, lambda source, target, move=move: self._move(move, source, target))
        monkeypatch.setattr(replace_file.time, "sleep", self._wait)
        monkeypatch.setattr(replace_file, "sys", SimpleNamespace(platform=platform))

    def _move(self, move, source: str, target: str) -> None:
        self.tries -= 1
        if self.tries >= 0:
            raise PermissionError(errno.EACCES, "Access is denied", str(source))
        move(source, target)

    def _wait(self, seconds: float) -> None:
        self.waited += seconds


def prepared(target: Path):
    """The last step of a writer for `target`: the one that moves it over its name."""
    if target.suffix == ".png":
        return lambda: write_bytes_atomically(target, b"new")
    sink = kind_for(target).make(target, OutputShape(16, 16, 3, np.dtype(np.uint8)), 16)
    sink.finish()
    return sink.commit


WRITERS = ["a.png", "a.tif", "a.zarr"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_held_for_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    put = prepared(tmp_path / name)
    held = Held(monkeypatch, tries=3)
    put()
    assert 0 < held.waited < 0.1
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_stays_open_is_one_line_with_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    put = prepared(tmp_path / name)
    held = Held(monkeypatch, tries=1000)
    with pytest.raises(ImageWriteError, match=rf"{name}: cannot be written \(another program has it open: close it"):
        put()
    assert held.waited == pytest.approx(sum(replace_file.WAITS_SECONDS))
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", WRITERS)
def test_elsewhere_a_refusal_is_taken_at_its_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    put = prepared(tmp_path / name)
    held = Held(monkeypatch, tries=1000, platform="linux")
    with pytest.raises(ImageWriteError, match="Access is denied"):
        put()
    assert (held.waited, held.tries) == (0.0, 999)


def test_a_read_only_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.png").write_bytes(b"old")
    held = Held(monkeypatch, tries=1000)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write to whatever is read-only
    with pytest.raises(ImageWriteError, match="Access is denied"):
        write_bytes_atomically(tmp_path / "a.png", b"new")
    assert held.waited == 0
    assert (tmp_path / "a.png").read_bytes() == b"old"


def test_nothing_moves_a_file_but_by_the_patient_way() -> None:
    """Every os.replace and os.rename that puts an output in place is handed to `move_with_retries`."""
    import re

    allowed = re.compile(
        r"move_with_retries\(os\.(replace|rename)|replace_file|os\.rename\(aside, (target|going)\)|`os\.replace`"
    )
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted(Path(replace_file.__file__).parent.rglob("*.py"))
        if path.name != "replace_file.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"os\.(replace|rename)\b", line) and not allowed.search(line)
    ]
    assert not found


def test_windows_is_shown_the_folders_of_cudnn_and_of_what_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "nvidia" / place for place in ("cudnn/bin", "cublas/bin", "cu13/bin", "cu13/bin/x86_64")]
    for folder in folders:
        folder.mkdir(parents=True)
    (tmp_path / "nvidia" / "cudnn" / "include").mkdir()
    shown: list[str] = []
    package = SimpleNamespace(submodule_search_locations=[str(tmp_path / "nvidia")])
    monkeypatch.setattr(libcudnn.importlib.util, "find_spec", lambda name: package)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)  # as where it is not installed
    monkeypatch.setattr(os, "add_dll_directory", shown.append, raising=False)
    opened: list[int] = []
    monkeypatch.setattr(libcudnn, "ctypes", SimpleNamespace(CDLL=lambda name: opened.append(len(shown)) or name))
    libcudnn._open()
    assert set(map(Path, shown)) == set(folders)
    assert opened == [len(folders)]  # before the library is opened


def test_no_folder_is_shown_where_there_is_no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "add_dll_directory", raising=False)
    libcudnn._show_dll_folders()
