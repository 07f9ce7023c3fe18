"""Starting is cheap: what a bare import and a `--help` must not load."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import PROJECT, edgeconv
from meet import run_program
from problems import random_image

from edgeconv.cli import COMMANDS
from edgeconv.io.encoding import write_image

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


START = """
__main__ cli core errors hardware io methods options signals hardware.cuda hardware.cuda.probe io.read_limits
cli.commands cli.ending cli.needless cli.parser cli.printing methods.entry methods.options
core.choices core.option core.optional core.records core.text core.timing
"""
PICTURES = """
core.canny core.chains core.filters core.geometry core.output core.problem
hardware.pool hardware.system_files hardware.threads io.atomic io.contained_paths io.decoding io.encoding io.files
io.formats io.formats.avif io.formats.base io.formats.by_pillow io.formats.jpeg io.formats.jpeg2000 io.formats.messages
io.formats.npy io.formats.png io.formats.pnm io.formats.tiff io.formats.unread io.formats.webp io.huffman io.outputs
io.png io.reading
"""
RUN = """
api api.auto api.check api.figures api.figures_text api.measure api.prepared cli.run run run.job run.naming
run.ownership run.picture run.report run.report_text io.kernel_file
core.cost core.exactness core.lowering core.noise core.progress core.request
hardware.cache hardware.device hardware.devices hardware.versions hardware.cpu hardware.cpu.caches hardware.cpu.crew
hardware.cpu.device hardware.cpu.jit hardware.cpu.limits hardware.cpu.mapped hardware.cpu.processor
methods.base methods.reference methods.cpu methods.cpu.arrays
methods.cpu.division methods.cpu.layout methods.cpu.native methods.cpu.rows methods.cpu.sliding methods.cpu.sums
"""
DIFF = """
cli.diff difference difference.compare difference.figures difference.folders difference.ignored difference.inputs
difference.maps difference.page difference.pictures difference.results difference.scale difference.text difference.tiles
io.folder_lock io.junit io.records page
"""
MAY_LOAD = {"run": START + PICTURES + RUN, "diff": START + PICTURES + DIFF}
"""The package's own modules that a command may load for a picture on the CPU whose machine code is in the cache."""
SLOW_TO_LOAD = {"llvmlite", "pydantic", "rich", "email", "statistics", "secrets", "multiprocessing", "asyncio", "http"}
"""Each takes milliseconds of every start."""


@pytest.mark.parametrize("words", [("run", "photo.png"), ("diff", "photo.png", "photo.png")], ids=" ".join)
def test_a_command_loads_only_what_it_needs(tmp_path: Path, words: tuple[str, ...]) -> None:
    write_image(random_image(40, 50, "uint8"), tmp_path / "photo.png")
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from edgeconv.__main__ import main; main()"
    )
    for _ in range(2):  # the second finds the machine code of the first
        done = run_program(code, *words, cwd=tmp_path)
    loaded = set(done.stderr.split())
    own = {name.removeprefix("edgeconv.") for name in loaded if name.startswith("edgeconv.")}
    assert own <= set(MAY_LOAD[words[0]].split())
    assert not {name.partition(".")[0] for name in loaded} & SLOW_TO_LOAD
    assert "numpy.ma" not in loaded
