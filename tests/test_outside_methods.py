"""Methods of other packages: one that is installed works everywhere, and faults of another are its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from caches import clear_caches
from command import PROJECT, Finished, edgeconv
from problems import random_image

from edgeconv import canny, convolve, plan
from edgeconv.errors import one_line_with_class
from edgeconv.export.schemas import read as read_record
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.methods import METHODS

EXAMPLE = PROJECT / "docs" / "examples" / "edgeconv-shifts"

HEADER = """
from edgeconv.core.chains import ChainProblem
from edgeconv.methods.base import Plan
from edgeconv.methods.reference import Reference, ReferencePlan

class FailingPlan(Plan):
    def run(self, image, out):
        raise IndexError("ran")

class Sound(Reference):
    pass
"""
NEVER_RUNS = {
    "missing": ("", "ModuleNotFoundError: No module named 'edgeconv_nowhere'"),
    "unmade": ("__init__(self): raise RuntimeError('no licence\\nfound')", "RuntimeError: no licence found"),
    "unasked": ("unavailable_reason(self): raise KeyError('asked')", "KeyError: 'asked'"),
}
"""By the method's name: what its class does, and why the method cannot run."""
FAILS_AT_WORK = {
    "unprepared": ("prepare(self, *words): raise ZeroDivisionError('prepared')", "ZeroDivisionError: prepared"),
    "nothing": ("prepare(self, *words): return None", "TypeError: prepare() gave NoneType, not a Plan"),
    "unrun": ("prepare(self, problem, *words): return FailingPlan(problem)", "IndexError: ran"),
}
"""The same for what says that it can run and then does not."""
FAILS_ON_CHAINS = {
    "unchained": (
        "reason(self, problem, options):\n        if isinstance(problem, ChainProblem): raise KeyError('chained')",
        "KeyError: 'chained'",
    ),
}
FAULTS = NEVER_RUNS | FAILS_AT_WORK | FAILS_ON_CHAINS
CODE = HEADER + "".join(
    f"class {name.title()}(Reference):\n    def {does}\n" for name, (does, _) in FAULTS.items() if does
)
CLASSES = {name: f"edgeconv_faulty:{name.title()}" for name in FAULTS} | {
    "missing": "edgeconv_nowhere:Method",
}
LEFT_OUT = {
    "cpu.sliding": "offers a method 'sliding', which is the name of one of edgeconv's own",
    "tpu.rows": "offers a method as 'tpu.rows', which is not a device",
    "cpu.auto": "offers a method as 'cpu.auto', which is not a device",
    "cpu.a:b": "offers a method as 'cpu.a:b', which is not a device",
    "cpu.shell": "offers method 'shell' as 'os', which is not module:class",
}
"""Entry points that no list of methods shows, and why."""


class Installed:
    """A folder with packages, and how edgeconv is run beside them."""

    def __init__(self, site: Path, folder: Path) -> None:
        self.site, self.folder = site, folder

    def offer(self, package: str, points: dict[str, str], code: str = "") -> None:
        """Put a package there as an installer would leave it: its metadata and its module."""
        metadata = self.site / f"{package.replace('-', '_')}-0.5.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.5\n", encoding="utf-8")
        lines = "".join(f"{name} = {value}\n" for name, value in points.items())
        (metadata / "entry_points.txt").write_text(f"[edgeconv.methods]\n{lines}", encoding="utf-8")
        if code:
            (self.site / f"{package.replace('-', '_')}.py").write_text(code, encoding="utf-8")

    @contextmanager
    def here(self) -> Iterator[None]:
        """This process finds the packages, which no other test does."""
        clear_caches()
        before = set(sys.modules)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.syspath_prepend(str(self.site))
                yield
        finally:
            for name in set(sys.modules) - before:
                if name.startswith("edgeconv_"):
                    del sys.modules[name]
            clear_caches()

    def edgeconv(self, *words: str) -> Finished:
        with self.here():
            return edgeconv(*words, cwd=self.folder)

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(self.site), str(PROJECT)])
        environment = {**os.environ, "PYTHONPATH": paths, "QT_QPA_PLATFORM": "offscreen"}
        return subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The example of the documents, without a tool that installs it."""
    folder = tmp_path_factory.mktemp("example")
    installed = Installed(folder / "site", folder)
    code = (EXAMPLE / "edgeconv_shifts.py").read_text(encoding="utf-8")
    installed.offer("edgeconv-shifts", {"cpu.shifts": "edgeconv_shifts:Shifts"}, code)
    write_image(random_image(24, 32, "uint8"), folder / "photo.png")
    return installed


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Packages with every fault that is known, and one method among them that is sound."""
    folder = tmp_path_factory.mktemp("faulty")
    installed = Installed(folder / "site", folder)
    found = {f"cpu.{name}": value for name, value in CLASSES.items()}
    wrong = {name: "edgeconv_faulty:Sound" for name in LEFT_OUT} | {"cpu.shell": "os"}
    points = found | wrong | {"cpu.sound": "edgeconv_faulty:Sound", "cpu.twice": "edgeconv_faulty:Sound"}
    installed.offer("edgeconv-faulty", points, CODE)
    installed.offer("edgeconv-other", {"cpu.twice": "edgeconv_faulty:Sound"})
    write_image(random_image(24, 32, "uint8"), folder / "photo.png")
    return installed


@pytest.mark.slow
def test_the_example_is_installed_as_a_user_installs_it(tmp_path: Path) -> None:
    for tool in ("pip", "setuptools"):  # of the extra `test`; not imported, as setuptools replaces distutils
        if find_spec(tool) is None:
            pytest.skip(f"{tool} is not installed")
    shutil.copytree(EXAMPLE, tmp_path / "source")
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--no-index"]
    pip = [sys.executable, "-m", "pip", *words, "--target", tmp_path / "site", tmp_path / "source"]
    subprocess.run(pip, check=True)
    installed = Installed(tmp_path / "site", tmp_path)
    assert "cpu   shifts     works (package edgeconv-shifts 1.0)" in installed.edgeconv("doctor").text
    write_image(random_image(24, 32, "uint8"), tmp_path / "photo.png")
    shown = installed.edgeconv("run", "photo.png", "-m", "shifts", "--samples", "0", "-v").text
    assert "shifts of package edgeconv-shifts 1.0 on " in shown
    assert installed.edgeconv("batch", "photo.png", "-m", "shifts", "-o", "out").code == 0


def test_a_method_of_another_package_is_named_with_its_package(example: Installed) -> None:
    done = example.edgeconv("run", "photo.png", "-m", "shifts", "--check", "full", "--json")
    report = json.loads(done.text)
    assert (report["method"]["name"], report["method"]["package"]) == ("shifts", "edgeconv-shifts 0.5"), done.err
    assert report["check"]["passed"]


def test_the_example_computes_what_the_reference_does_and_auto_leaves_it_alone(example: Installed) -> None:
    borders, filters = ("zero", "reflect101"), ("sobel", "kirsch")
    with example.here():
        for stride, border, channels, name in product((1, 2, 3), borders, ("mix", "each", "luma"), filters):
            image = random_image(13, 9, "uint8", stride)
            rules = {"filter": name, "stride": stride, "border": border, "channels": channels}
            found = convolve(image, method="shifts", **rules)
            assert np.array_equal(found, convolve(image, method="reference", **rules)), rules
        batch = np.stack([random_image(13, 9, "uint8", seed) for seed in range(5)])
        found = plan(batch.shape, "uint8", method="shifts")(batch)
        assert np.array_equal(found[4], convolve(batch[4], method="reference"))
        assert plan((9, 9, 3)).method != "shifts"


def test_the_window_offers_it(example: Installed) -> None:
    pytest.importorskip("PySide6")
    done = example.python(
        "-c",
        "from edgeconv.view.parameters import CHOICES; from edgeconv.view.state import computed_sources\n"
        "print('shifts' in CHOICES['method'], 'shifts on CPU' in [source.label for source in computed_sources()])",
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


SPARING = """
import sys
from edgeconv.methods import method_names
from edgeconv.methods.entry import plugins as found
print('numpy' in sys.modules)
import edgeconv, numpy
from edgeconv.cli.parser import COMMANDS, load
for name in COMMANDS:
    load(name)
for method in ("opencv", "auto"):
    edgeconv.convolve(numpy.zeros((4, 4, 3), "uint8"), method=method, device="cpu")
print(found.cache_info().currsize, 'sound' in method_names(), 'edgeconv_faulty' in sys.modules)
"""


def test_other_packages_are_looked_for_by_a_list_alone_which_imports_none(faulty: Installed) -> None:
    """Not for help, a built-in method or auto; and NumPy is not needed either."""
    done = faulty.python("-c", SPARING)
    assert done.stdout.split() == ["False", "0", "True", "False"], done.stderr


def error_of(filter_name: str, method: str) -> str:
    """What a call raises, in a line."""
    try:
        convolve(random_image(4, 4, "uint8"), filter=filter_name, method=method)
    except Exception as error:
        return one_line_with_class(error)
    return "nothing"


def test_an_exception_of_a_method_propagates_with_a_note_that_names_its_package(faulty: Installed) -> None:
    with faulty.here():
        said = {name: error_of("laplacian8", name) for name in NEVER_RUNS | FAILS_AT_WORK}
        said |= {name: error_of("canny", name) for name in FAILS_ON_CHAINS}
    for name, (_, reason) in NEVER_RUNS.items():
        loaded = f"package edgeconv-faulty 0.5 cannot be loaded ({reason})"
        assert said[name].startswith(f"UnavailableError: Method '{name}' cannot run here: {loaded}")
    for name, (_, reason) in (FAILS_AT_WORK | FAILS_ON_CHAINS).items():
        assert said[name] == f"{reason}, in method '{name}' of package edgeconv-faulty 0.5"


def test_a_method_of_another_package_computes_chains_too(faulty: Installed) -> None:
    done = faulty.edgeconv("run", "photo.png", "--filter", "canny", "-m", "sound", "-o", "sound.png")
    assert done.code == 0, done.err
    expected = canny(read_image(faulty.folder / "photo.png").pixels, method="reference")
    assert np.array_equal(read_image(faulty.folder / "sound.png").pixels[..., 0], expected)
    assert expected.any()


def test_doctor_names_every_fault_that_is_seen_without_work(faulty: Installed) -> None:
    lines = faulty.edgeconv("doctor").text.splitlines()
    for name, (_, reason) in NEVER_RUNS.items():
        (line,) = (line for line in lines if line.split()[:2] == ["cpu", name])
        assert reason in line
    left_out = [line for line in lines if line.startswith("  left out: package edgeconv-faulty 0.5 ")]
    assert [fault for fault in LEFT_OUT.values() if not any(fault in line for line in left_out)] == []
    twice = (
        "method 'twice' on cpu is offered by two packages, edgeconv-faulty 0.5 and edgeconv-other 0.5: uninstall one"
    )
    assert f"  left out: {twice}" in lines
    asked = {name: faulty.edgeconv("run", "photo.png", "-m", name) for name in ("twice", "sond")}
    assert [(done.code, done.err.count("\n")) for done in asked.values()] == [(2, 1)] * 2
    assert f"Method 'twice' cannot be used: {twice}" in asked["twice"].err
    assert "Did you mean 'sound'?" in asked["sond"].err
    assert any(line.split()[:3] == ["cpu", "sound", "works"] for line in lines)


def test_compare_goes_on_without_the_methods_that_fail(faulty: Installed) -> None:
    done = faulty.edgeconv("compare", "photo.png", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.text)
    ran = [entry["name"] for entry in record["methods"] if entry["name"] not in FAILS_ON_CHAINS]
    assert ran == [*(entry.name for entry in METHODS if entry.device == "cpu"), "sound"]
    for name, (_, reason) in (NEVER_RUNS | FAILS_AT_WORK).items():
        assert any(line.startswith(f"{name} on CPU did not run: ") and reason in line for line in record["left_out"])


def test_bench_goes_on_without_the_methods_that_fail(faulty: Installed) -> None:
    """Whether a time is believed depends on the machine, and is not asked."""
    words = "bench --sizes 32 --strides 1 --devices cpu --samples 3 --methods all --formats json -o ."
    done = faulty.edgeconv(*words.split())
    assert done.code in (0, 1), done.err
    rows = {row.candidate: row for row in read_record(faulty.folder / "bench.json").rows}
    checks = [rows[name].check for name in ("sound", "sliding", "opencv", "im2col")]
    assert [check.passed for check in checks if check] == [True] * 4
    for name, (_, reason) in FAILS_AT_WORK.items():
        assert reason in str(rows[name].reason)


def test_damaged_metadata_of_any_package_stops_nothing(tmp_path: Path) -> None:
    installed = Installed(tmp_path / "site", tmp_path)
    installed.offer("edgeconv-broken", {"cpu.sound": "edgeconv_broken:Mirror"},
                    "from edgeconv.methods.reference import Reference as Mirror")  # fmt: skip
    (tmp_path / "site" / "edgeconv_broken-0.5.dist-info" / "METADATA").unlink()
    other = tmp_path / "site" / "odd-1.dist-info"
    other.mkdir()
    (other / "entry_points.txt").write_bytes(b"\xff\xfe no table\n= =\n[edgeconv.methods\n")
    done = installed.edgeconv("doctor")
    assert done.code == 0, done.err
    assert "cpu   sliding    works" in done.text
