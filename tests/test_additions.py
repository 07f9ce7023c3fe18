"""What is added in one line is found everywhere: a method, and an option of it, in a copy of the package."""

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

from edgeconv.io.encoding import write_image

OPTION = '    shade: Literal[1, 2, 4] = option(1, "how dark, {choices}.", methods=("mirror",), device="cpu")\n'
METHOD = '    MethodEntry("mirror", "cpu", "edgeconv.methods.mirror:Mirror", "a method that a test adds"),\n'
CODE = """
from edgeconv.methods.reference import Reference, ReferencePlan

class Mirror(Reference):
    def prepare(self, problem, options, pictures=1):
        return ReferencePlan(problem, choice={"shade": options.shade})
"""
ON_COMMANDS = """
import json
from edgeconv.cli.parser import load
print(json.dumps({name: {each.name: each.help for each in load(name).params if each.param_type_name == "option"}
                  for name in ("run", "batch", "compare", "view")}))
"""
ELSEWHERE = """
from edgeconv.batch.settings import Settings
from edgeconv.bench.candidates import method_candidates
from edgeconv.core.request import Request
from edgeconv.methods.base import Options
from edgeconv.view.parameters import CHOICES, Parameters, value_of
(found,) = method_candidates(["mirror:shade=2"], "cpu")
print(found.label, found.options.shade)
def batch(options):
    return Settings(Request(), ".", "mirror", "cpu", options)
print(batch(Options()).parameters_sha256() == batch(Options(shade=2)).parameters_sha256())
print(CHOICES["shade"], *Parameters(shade=value_of("shade", "4")).arguments())
"""


def insert(path: Path, before: str, line: str) -> None:
    """Add a line to a file."""
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, line + before), encoding="utf-8")


@pytest.mark.slow
def test_a_new_method_and_its_option_are_on_every_command_in_reports_benches_batches_and_the_window(
    tmp_path: Path,
) -> None:
    package = tmp_path / "source" / "edgeconv"
    shutil.copytree(PROJECT / "edgeconv", package)  # with what Python has compiled, so that starts are quick
    insert(package / "methods" / "options.py", "    threads: int | None", OPTION)
    insert(package / "methods" / "__init__.py", '    MethodEntry("sliding", "cpu"', METHOD)
    (package / "methods" / "mirror.py").write_text(CODE, encoding="utf-8")
    write_image(random_image(12, 16, "uint8"), tmp_path / "photo.png")
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}

    def ended(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    def edgeconv(words: str) -> subprocess.CompletedProcess[str]:
        return ended("-m", "edgeconv", *words.split())

    shown = json.loads(ended("-c", ON_COMMANDS).stdout)
    assert {options["shade"] for options in shown.values()} == {"CPU mirror: how dark, 1, 2 or 4."}
    assert all("mirror" in shown[name]["method"] for name in ("run", "batch", "view"))
    method = json.loads(edgeconv("run photo.png -m mirror --samples 0 --json --shade 4 -o shaded.png").stdout)["method"]
    assert (method["name"], method["options"]["shade"], method["choice"]["shade"]) == ("mirror", 4, 4)
    for words, code, says in (
        ("-m reference --shade 2", 4, "--shade 2 does not apply to method 'reference' on cpu: it is for mirror"),
        ("-m mirror --shade 3", 2, "--shade '3' is not one of 1, 2, 4."),
    ):
        done = edgeconv(f"run photo.png {words}")
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
        assert says in done.stderr
    compared = json.loads(edgeconv("compare photo.png --json").stdout)
    assert "mirror" in [entry["name"] for entry in compared["methods"]]
    assert "cpu   mirror     works" in edgeconv("doctor").stdout
    printed = ended("-c", ELSEWHERE).stdout.splitlines()
    assert printed == ["mirror:shade=2 2", "False", "('1', '2', '4') --shade=4"]
