"""What is added in one line is found everywhere: an option of a method, and a method, each in a copy of the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import PROJECT
from problems import random_image

from edgeconv.io.image import write_image

OPTION = '    shade: Literal[1, 2, 4] = option(1, "how dark, {choices}.", methods=("opencv",), device="cpu")\n'
CODE_OF_THE_OPTION = """
_prepare = OpenCV.prepare


def _prepare_shaded(self, problem, options):
    plan = _prepare(self, problem, options)
    plan.choice["shade"] = options.shade
    return plan


OpenCV.prepare = _prepare_shaded
"""

METHOD = '    MethodEntry("mirror", "cpu", "edgeconv.methods.mirror:Mirror", "a method that a test adds"),\n'
CODE_OF_THE_METHOD = '''
"""The reference under another name."""

from edgeconv.methods.reference import Reference


class Mirror(Reference):
    """See Reference."""
'''

ON_COMMANDS = """
import json
from edgeconv.cli.commands import load
print(json.dumps({name: {each.name: each.help for each in load(name).params if each.param_type_name == "option"}
                  for name in ("run", "batch", "compare", "view")}))
"""


class Changed:
    """A copy of the package, and a folder with a picture to work in."""

    def __init__(self, folder: Path) -> None:
        self.package, self.folder = folder / "source" / "edgeconv", folder
        shutil.copytree(PROJECT / "edgeconv", self.package)  # with what Python has compiled, so that starts are quick
        write_image(random_image(12, 16, "uint8"), folder / "photo.png")

    def insert(self, file: str, before: str, line: str) -> None:
        """Add a line to a file of the copy."""
        path = self.package / file
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, line + before), encoding="utf-8")

    def append(self, file: str, code: str) -> None:
        """Add code to the end of a file of the copy, which is made where there is none."""
        with (self.package / file).open("a", encoding="utf-8") as stream:
            stream.write(code)

    def python(self, code: str) -> str:
        """What `code` prints when it imports the copy."""
        return self._run("-c", code).stdout

    def edgeconv(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The copy's command line."""
        return self._run("-m", "edgeconv", *words, check=False)

    def _run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.package.parent)}
        return subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=check
        )


@pytest.fixture(scope="module")
def with_option(tmp_path_factory: pytest.TempPathFactory) -> Changed:
    """A copy that has one more option of a method: one line in the table, and the method's own code."""
    changed = Changed(tmp_path_factory.mktemp("option"))
    changed.insert("methods/options.py", "    threads: int | None", OPTION)
    changed.append("methods/opencv.py", CODE_OF_THE_OPTION)
    return changed


@pytest.fixture(scope="module")
def with_method(tmp_path_factory: pytest.TempPathFactory) -> Changed:
    """A copy that has one more method: one line in the table, and one file."""
    changed = Changed(tmp_path_factory.mktemp("method"))
    changed.insert("methods/__init__.py", '    MethodEntry("sliding", "cpu"', METHOD)
    changed.append("methods/mirror.py", CODE_OF_THE_METHOD)
    return changed


@pytest.mark.slow
def test_a_new_option_is_on_every_command_and_reaches_its_method_report_bench_batch_and_window(
    with_option: Changed,
) -> None:
    shown = json.loads(with_option.python(ON_COMMANDS))
    assert {name: options.get("shade") for name, options in shown.items()} == dict.fromkeys(
        ("run", "batch", "compare", "view"), "CPU opencv: how dark, 1, 2 or 4."
    )
    words = "run photo.png -m opencv --samples 0 --json --shade 4 -o shaded.png"
    method = json.loads(with_option.edgeconv(*words.split()).stdout)["method"]
    assert (method["options"]["shade"], method["choice"]["shade"]) == (4, 4)
    for words, code, says in (
        ("-m reference --shade 2", 4, "--shade 2 does not apply to method 'reference' on cpu: use --method opencv"),
        ("-m opencv --shade 3", 2, "--shade '3' is not one of 1, 2, 4."),
    ):
        done = with_option.edgeconv("run", "photo.png", *words.split())
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
        assert says in done.stderr
    printed = with_option.python(
        "from edgeconv.bench.candidates import method_candidates\n"
        "from edgeconv.methods.base import Options\n"
        "from edgeconv.batch.settings import Settings; from edgeconv.batch.names import Names\n"
        "from edgeconv.core.request import Request; from edgeconv.runtime.auto import Choice\n"
        "from edgeconv.view.parameters import CHOICES, Parameters, value_of\n"
        "(found,) = method_candidates(['opencv:shade=2'], 'cpu', Options())\n"
        "print(found.label, found.options.shade)\n"
        "def batch(options):\n"
        "    return Settings(Request(), Choice('opencv', 'cpu', ''), '.', Names('{stem}{ext}', 'f', 'm', 1), options)\n"
        "print(batch(Options()).parameters_sha256() == batch(Options(shade=2)).parameters_sha256())\n"
        "print(CHOICES['shade'], *Parameters(shade=value_of('shade', '4')).arguments())\n"
    )
    assert printed.splitlines() == ["opencv:shade=2 2", "False", "('1', '2', '4') --shade=4"]


@pytest.mark.slow
def test_a_new_method_runs_is_compared_and_is_a_choice_of_every_command(with_method: Changed) -> None:
    done = with_method.edgeconv("run", "photo.png", "-m", "mirror", "--samples", "0", "--json")
    assert json.loads(done.stdout)["method"]["name"] == "mirror", done.stderr
    compared = with_method.edgeconv("compare", "photo.png", "--json")
    assert "mirror" in [entry["name"] for entry in json.loads(compared.stdout)["methods"]], compared.stderr
    assert "cpu   mirror     works" in with_method.edgeconv("doctor").stdout
    shown = json.loads(with_method.python(ON_COMMANDS))
    assert all("mirror" in shown[name]["method"] for name in ("run", "batch", "view"))
