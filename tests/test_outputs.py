"""Files that a command writes: what is refused before any work, and that all of them appear or none does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeconv.errors import ImageWriteError
from edgeconv.io.atomic import TEMPORARY_NAME, NewFile
from edgeconv.io.outputs import Outputs


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an input `in.png`, a file `old` and a folder `x.zarr`."""
    monkeypatch.chdir(tmp_path)
    Path("in.png").write_bytes(b"input")
    os.link("in.png", "hard")
    os.symlink("in.png", "link")
    os.symlink("nowhere", "dangling")
    Path("old").write_bytes(b"old")
    Path("x.zarr").mkdir()
    (tmp_path / "x.zarr" / "chunk").write_bytes(b"chunk")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("in.png", "is the input itself"),
        ("./link", "is the input itself"),
        ("hard", "is the input itself"),
        ("old", r"'old' exists: pass --overwrite to replace it, or choose another place\."),
        ("dangling", "is a link that leads nowhere"),
        ("x.zarr", "is a folder: name a file in it"),
        (".", "is a folder"),
        ("missing/a", "the folder missing does not exist: create it first"),
        ("new", "is named twice"),
        ("NEW", "is named twice"),
        ("a\0b", "cannot be written"),
        ("a" * 300, "cannot be written"),
    ],
)
def test_what_is_refused_before_any_work(here: Path, path: str, reason: str) -> None:
    outputs = Outputs(["in.png", "-", "no such input"])
    outputs.reserve("new")
    with pytest.raises(ImageWriteError, match=reason):
        outputs.reserve(path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("in.png", "is the input itself"),
        ("x.zarr/a", "lies inside the input"),
        (".", "the input lies inside it"),
        ("dangling", "is a link that leads nowhere"),
    ],
)
def test_what_overwrite_does_not_lift(here: Path, path: str, reason: str) -> None:
    outputs = Outputs(["in.png", "x.zarr"], overwrite=True, is_own_folder=lambda path: True)
    for name in ("old", "/dev/null", "/dev/null"):
        outputs.reserve(name)
    with pytest.raises(ImageWriteError, match=reason):
        outputs.reserve(path)


def test_a_folder_is_made_where_that_is_asked_for(here: Path) -> None:
    with Outputs() as outputs:
        path = outputs.reserve("a", "made/below")
        assert not Path("made").exists()
        outputs.add(path, b"data")
        assert outputs.put() == [(path, 4)]
        os.mkfifo("made/pipe")
        with pytest.raises(ImageWriteError, match="is not a plain file"):
            outputs.reserve("pipe", "made")
    assert names(here / "made" / "below") == ["a"]


def test_files_appear_together_in_the_order_of_their_names(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, order = names(here), []
    put = NewFile.put
    monkeypatch.setattr(NewFile, "put", lambda new, replace: (order.append(new), put(new, replace))[1])
    with Outputs() as outputs:
        first, second = outputs.reserve("first"), outputs.reserve("second")
        outputs.add(second, b"2")
        outputs.begin(first).write_bytes(b"in pieces")
        assert [name for name in names(here) if name not in before and not TEMPORARY_NAME.fullmatch(name)] == []
        assert outputs.put() == [(first, 9), (second, 1)]
    assert [new.path.exists() for new in order] == [False, False]
    assert sorted({*names(here)} - {*before}) == ["first", "second"]


@pytest.mark.parametrize("moment", ["meanwhile", "at the last moment"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_name_that_is_taken(here: Path, overwrite: bool, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between the question and the answer: the name is taken in a step that fails if it exists."""
    put = NewFile.put

    def taken(new: NewFile, replace: bool) -> int:
        if moment != "meanwhile" and not Path("a").exists():
            Path("b").write_bytes(b"theirs")
        return put(new, replace)

    monkeypatch.setattr(NewFile, "put", taken)
    with Outputs(overwrite=overwrite) as outputs:
        for name in ("a", "b"):
            outputs.add(outputs.reserve(name), b"ours")
        if moment == "meanwhile":
            Path("b").write_bytes(b"theirs")
        if overwrite:
            outputs.put()
        else:
            says = "'b' exists" if moment == "meanwhile" else r"b: cannot be written \(File exists\)"
            with pytest.raises(ImageWriteError, match=says):
                outputs.put()
    assert (Path("a").exists(), Path("b").read_bytes()) == ((True, b"ours") if overwrite else (False, b"theirs"))
    assert not [name for name in names(here) if TEMPORARY_NAME.fullmatch(name)]


@pytest.mark.parametrize("is_there", [False, True])
def test_a_folder_as_an_output(here: Path, is_there: bool) -> None:
    name = "x.zarr" if is_there else "y.zarr"
    with Outputs(overwrite=is_there, is_own_folder=lambda path: path.suffix == ".zarr") as outputs:
        new = outputs.begin(outputs.reserve(name))
        new.mkdir()
        (new / "0").write_bytes(b"0")
        outputs.put()
    assert names(Path(name)) == ["0"]
    assert len(names(here)) == 6 + (not is_there)


def test_a_folder_that_is_taken_meanwhile(here: Path) -> None:
    with Outputs(is_own_folder=lambda path: True) as outputs:
        outputs.begin(outputs.reserve("y.zarr")).mkdir()
        Path("y.zarr").mkdir()
        Path("y.zarr", "theirs").write_bytes(b"1")
        with pytest.raises(ImageWriteError, match=r"'y\.zarr' exists"):
            outputs.put()
    assert names(Path("y.zarr")) == ["theirs"]


def test_one_picture_after_the_other(here: Path) -> None:
    """What is discarded is not put later, and its name stays reserved."""
    with Outputs() as outputs:
        outputs.add(outputs.reserve("a"), b"1")
        outputs.discard()
        outputs.add(outputs.reserve("b"), b"2")
        assert outputs.put() == [(Path("b"), 1)]
        with pytest.raises(ImageWriteError, match="named twice"):
            outputs.reserve("a")
        outputs.add(outputs.reserve("c"), b"3")
        assert outputs.put() == [(Path("c"), 1)]
