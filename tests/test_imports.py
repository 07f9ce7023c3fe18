"""Starting is cheap: what a bare import and a `--help` must not load."""

from __future__ import annotations

import pytest
from command import PROJECT, edgeconv
from meet import run_program

from edgeconv.cli import COMMANDS

HEAVY = ("cupy", "numba", "llvmlite", "matplotlib", "cv2", "PIL", "torch", "scipy")

LISTED = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"


def modules_after(code: str) -> set[str]:
    done = run_program(f"{code}; {LISTED}")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code", ["import edgeconv", "import edgeconv.cli", "import edgeconv.methods", "import edgeconv.api.auto"]
)
def test_an_import_loads_nothing_heavy(code: str) -> None:
    assert not modules_after(code) & set(HEAVY)


@pytest.mark.parametrize("module", ["edgeconv.cli", "edgeconv.methods", "edgeconv.options", "edgeconv.view.command"])
def test_the_command_line_and_its_tables_do_not_even_load_numpy(module: str) -> None:
    assert "numpy" not in modules_after(f"import {module}")


def test_explaining_every_command_does_not_load_numpy() -> None:
    assert "numpy" not in modules_after(
        "from edgeconv.cli.parser import COMMANDS, load; [load(name) for name in COMMANDS]"
    )


def test_one_picture_on_the_cpu_loads_no_compiler(tmp_path) -> None:
    code = (
        "import numpy, edgeconv.run.picture, edgeconv; image = numpy.zeros((8, 8, 3), 'uint8');"
        "edgeconv.convolve(image, 'sobel', 'opencv', device='cpu')"
    )
    loaded = modules_after(code)
    assert "cv2" in loaded
    assert not loaded & {"llvmlite", "numba", "cupy", "matplotlib"}


def test_every_public_name_is_there() -> None:
    import edgeconv as package

    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError):
        _ = package.nothing_of_the_kind


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_stands_in_the_readme(command: str) -> None:
    shown = edgeconv(*command.split(), "--help")
    assert shown.code == 0
    assert "--help" in shown.text
    assert f"edgeconv {command.split()[0]}" in (PROJECT / "README.md").read_text(encoding="utf-8")
