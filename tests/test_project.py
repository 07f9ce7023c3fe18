"""The project itself: pages that match the code, one version, a bootstrap that picks the right extra."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from command import PROJECT, script

import edgeconv

docs = script("docs")
bootstrap = script("bootstrap")
DECLARED = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_table_stands_on_some_page() -> None:
    folders = (PROJECT, PROJECT / "docs", PROJECT / "edgeconv" / "bench" / "ladders")
    places = set()
    for path in (path for folder in folders for path in folder.iterdir() if path.suffix in (".md", ".cu")):
        markers = re.findall(r"^(?:// )?<!-- table ([\w-]+)\b[^>]*-->$", path.read_text(encoding="utf-8"), re.MULTILINE)
        places |= {(path.relative_to(PROJECT).as_posix(), marker) for marker in markers}
    assert places == {(document, marker) for document, marker, _ in docs.TABLES}


@pytest.mark.parametrize(
    ("caption", "is_said"), [("", False), ("Two GPUs.\n\n## another day", False), ("Taken on several\ndays.", True)]
)
def test_a_table_of_several_days_says_so_beside_it(
    monkeypatch: pytest.MonkeyPatch, caption: str, is_said: bool
) -> None:
    records = {
        name: (PROJECT / name, {"kind": "bench conv", "created_utc": f"2026-11-{day}T00:00:00"})
        for name, day in (("a", 11), ("b", 12))
    }
    monkeypatch.setattr(docs, "kept", records.__getitem__)
    text = f"<!-- table t -->\nold\n<!-- end t -->\n{caption}"
    if is_said:
        made = docs.renewed(text, "t", lambda: str(len([docs.record(name) for name in "ab"])) + "\n")
        told = "; ".join(f"{name}, edgeconv bench conv (2026-11-{day})" for name, day in (("a", 11), ("b", 12)))
        assert made == f"<!-- table t: {told} -->\n2\n<!-- end t -->\n{caption}"
    else:
        with pytest.raises(SystemExit, match="the table 't' is of several days, and nothing beside it says so"):
            docs.renewed(text, "t", lambda: str([docs.record(name) for name in "ab"]))
    assert docs.renewed(text, "t", lambda: "new\n").startswith("<!-- table t -->\nnew\n")


def test_there_is_one_version() -> None:
    assert DECLARED["version"] == edgeconv.__version__
    assert f"\nversion: {edgeconv.__version__}\n" in (PROJECT / "CITATION.cff").read_text(encoding="utf-8")


def test_classifiers_say_what_was_tried_and_no_more() -> None:
    tried = (PROJECT / "docs" / "platforms.md").read_text(encoding="utf-8").partition("# Where it was tried\n")[2]
    first_sentence = tried.partition(", and the oldest")[0]
    versions = re.findall(r"\b3\.\d+", first_sentence)
    listed = [word.rpartition(" :: ")[2] for word in DECLARED["classifiers"] if word.startswith("Programming Language")]
    assert [word for word in listed if "." in word] == versions
    assert f">={versions[0]}" == DECLARED["requires-python"]
    systems = [word for word in DECLARED["classifiers"] if word.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    assert first_sentence.split()[0] == "Linux"


def test_the_source_archive_takes_everything_that_tests_read() -> None:
    """CI builds one and collects its tests; here that no folder beside the package was forgotten."""
    rules = [line.split() for line in (PROJECT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()]
    grafted = {word for rule, *words in rules if rule == "graft" for word in words}
    read = set(re.findall(r'PROJECT / "(\w+)"', "".join(map(_text, (PROJECT / "tests").rglob("*.py")))))
    assert grafted >= {folder for folder in read if (PROJECT / folder).is_dir()} - {"edgeconv"} | {"tests"}


@pytest.mark.skipif(not (PROJECT / ".ci").is_dir(), reason="the source archive has no .ci")
def test_every_file_that_ci_names_is_there() -> None:
    words = {word for path in (PROJECT / ".ci").iterdir() for word in path.read_text(encoding="utf-8").split()}
    named = {word for word in words if re.fullmatch(r"(tests|scripts)/[\w/]+\.\w+", word)}
    assert len(named) >= 10
    assert not [name for name in named if not (PROJECT / name).is_file()]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("driver", "extra"),
    [("580.159.04", "cuda13"), ("595.1", "cuda13"), ("570.86", "cuda12"), ("470.2", None), ("", None)],
)
def test_the_bootstrap_takes_the_extra_that_fits_the_driver(driver: str, extra: str | None) -> None:
    assert bootstrap.cuda_extra(driver) == extra
    assert extra is None or extra in DECLARED["optional-dependencies"]


def test_a_clone_is_small() -> None:
    """At most 8 MB beside .git: pages, spreadsheets and large pictures are made, not kept."""
    if shutil.which("git") is None or not (PROJECT / ".git").exists():
        pytest.skip("needs git and a clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=True)
    files = [PROJECT / name for name in listed.stdout.decode().split("\0") if name]
    blocks = sum(-(-path.stat().st_size // 4096) * 4096 for path in files if path.is_file())
    assert blocks <= 8_000_000
    made = {path.suffix for path in files if "results" in path.parts} - {".json", ".xz", ".svg"}
    assert not made, f"docs/results holds more than records and the plots of pages: {made}"


def test_reports_of_another_device_stay_when_a_file_of_runs_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "machine.json.xz"
    batch = script("benchmark_batch")
    batch.write_together(path, {"cpu_a_s1": {"n": 1}, "cuda_a_s1": {"n": 2}})
    batch.write_together(path, {"cpu_a_s1": {"n": 3}})
    assert docs.read(path)["reports"] == {"cpu_a_s1": {"n": 3}, "cuda_a_s1": {"n": 2}}
