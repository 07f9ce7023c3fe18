"""Methods of other packages: one that is installed works everywhere, and faults of another are its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from command import PROJECT
from problems import random_image
from selection import few_then_slow

from edgeconv.bench.record import read_record
from edgeconv.io.image import write_image
from edgeconv.methods import METHODS

EXAMPLE = PROJECT / "docs" / "examples" / "edgeconv-shifts"

FAULTY = """
import sys
import numpy as np
from edgeconv.methods.base import Method, Plan, Options
from edgeconv.methods.reference import Reference, ReferencePlan


class Sound(Reference):
    pass


class NotAMethod:
    pass


class FailsWhenMade(Reference):
    def __init__(self):
        raise RuntimeError("no licence\\nfound")


class FailsWhenAsked(Reference):
    def unavailable_reason(self):
        raise KeyError("asked")


class AnswersWrongly(Reference):
    def unavailable_reason(self):
        return False


class FailsInPrepare(Reference):
    def prepare(self, problem, options):
        raise ZeroDivisionError("prepared")


class PreparesNothing(Reference):
    def prepare(self, problem, options):
        return None


class CountsWrongly(Reference):
    def prepare(self, problem, options):
        return ReferencePlan(problem, workspace_bytes=-1)


class ChoosesWrongly(Reference):
    def prepare(self, problem, options):
        return ReferencePlan(problem, choice={"tile": np.zeros(3)})


class FailsOnChains(Reference):
    def chain_reason(self, problem):
        raise KeyError("chained")


class PreparesNoChain(Reference):
    def prepare_chain(self, problem, options):
        return None


class FailingPlan(Plan):
    def run(self, image, out):
        raise IndexError("ran")


class FailsInRun(Reference):
    def prepare(self, problem, options):
        return FailingPlan(problem)
"""

NEVER_RUNS = {
    "missing": (
        "edgeconv_nowhere:Method",
        "cannot be loaded (ModuleNotFoundError: No module named 'edgeconv_nowhere')",
    ),
    "nomethod": ("edgeconv_faulty:NotAMethod", "edgeconv_faulty:NotAMethod is no subclass of edgeconv.methods.base"),
    "unmade": ("edgeconv_faulty:FailsWhenMade", "cannot be loaded (RuntimeError: no licence found)"),
    "unasked": ("edgeconv_faulty:FailsWhenAsked", "failed when asked whether it can run (KeyError: 'asked')"),
    "misanswer": ("edgeconv_faulty:AnswersWrongly", "unavailable_reason() gave bool, not a sentence or None"),
}
"""By the method's name: what the entry point names, and why the method cannot run."""
FAILS_AT_WORK = {
    "unprepared": ("edgeconv_faulty:FailsInPrepare", "failed in prepare() (ZeroDivisionError: prepared)"),
    "nothing": ("edgeconv_faulty:PreparesNothing", "prepare() gave NoneType, not a Plan"),
    "miscount": ("edgeconv_faulty:CountsWrongly", "workspace_bytes is -1, not a whole number from 0"),
    "mischoice": ("edgeconv_faulty:ChoosesWrongly", "choice is no dict that JSON can hold"),
    "unrun": ("edgeconv_faulty:FailsInRun", "failed in run() (IndexError: ran)"),
}
"""The same for what says that it can run and then does not."""
FAILS_ON_CHAINS = {
    "unchained": ("edgeconv_faulty:FailsOnChains", "failed in chain_reason() (KeyError: 'chained')"),
    "nochain": ("edgeconv_faulty:PreparesNoChain", "prepare_chain() gave NoneType, not a PicturePlan"),
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

    def bench(self) -> dict[str, str]:
        """By candidate, of all methods at one small case: "right" for what ran and passed its check, else why not.

        Whether a time is believed depends on the machine, and is not asked.
        """
        words = "bench --sizes 32 --strides 1 --devices cpu --samples 3 --methods all --no-around --formats json -o ."
        done = self.edgeconv(*words.split())
        assert done.returncode in (0, 1), done.stderr
        rows = read_record(self.folder / "bench.json").rows
        return {row.candidate: "right" if row.check and row.check.passed else str(row.reason) for row in rows}

    def edgeconv(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "edgeconv", *words)

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(self.site), str(PROJECT)])
        environment = {**os.environ, "PYTHONPATH": paths, "QT_QPA_PLATFORM": "offscreen"}
        return subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The example of the documents, installed as a user installs it."""
    for tool in ("pip", "setuptools"):  # of the extra `test`; not imported, as setuptools replaces distutils
        if find_spec(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("example")
    source = folder / "source"
    source.mkdir()
    for path in EXAMPLE.iterdir():
        (source / path.name).write_bytes(path.read_bytes())
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--no-index"]
    subprocess.run([sys.executable, "-m", "pip", *words, "--target", folder / "site", source], check=True)
    write_image(random_image(24, 32, "uint8"), folder / "photo.png")
    return Installed(folder / "site", folder)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Packages with every fault that is known, and one method among them that is sound."""
    folder = tmp_path_factory.mktemp("faulty")
    installed = Installed(folder / "site", folder)
    found = {f"cpu.{name}": value for name, (value, _) in (NEVER_RUNS | FAILS_AT_WORK | FAILS_ON_CHAINS).items()}
    wrong = {name: "edgeconv_faulty:Sound" for name in LEFT_OUT} | {"cpu.shell": "os"}
    points = found | wrong | {"cpu.sound": "edgeconv_faulty:Sound", "cpu.twice": "edgeconv_faulty:Sound"}
    installed.offer("edgeconv-faulty", points, FAULTY)
    installed.offer("edgeconv-other", {"cpu.twice": "edgeconv_faulty:Sound"})
    write_image(random_image(24, 32, "uint8"), folder / "photo.png")
    return installed


def test_the_example_is_installed_and_found_by_every_command(example: Installed) -> None:
    assert "cpu   shifts     works (package edgeconv-shifts 1.0)" in example.edgeconv("doctor").stdout
    done = example.edgeconv("run", "photo.png", "-m", "shifts", "--check", "full", "--json")
    report = json.loads(done.stdout)
    assert (report["method"]["name"], report["method"]["package"]) == ("shifts", "edgeconv-shifts 1.0"), done.stderr
    assert report["check"]["passed"]
    shown = example.edgeconv("run", "photo.png", "-m", "shifts", "--samples", "0", "--overwrite", "-v").stdout
    assert "shifts of package edgeconv-shifts 1.0 on " in shown
    compared = json.loads(example.edgeconv("compare", "photo.png", "--json").stdout)
    assert {entry["name"]: entry["check"]["passed"] for entry in compared["methods"]}["shifts"]
    assert example.bench()["shifts"] == "right"
    assert example.edgeconv("batch", "photo.png", "-m", "shifts", "-o", "out").returncode == 0


@pytest.mark.parametrize("words", few_then_slow(["run photo.png -m shfts", "bench --methods shfts"]))
def test_a_name_that_is_nearly_its_own_is_proposed(example: Installed, words: str) -> None:
    done = example.edgeconv(*words.split())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "Did you mean 'shifts'?" in done.stderr


CHECKED = """
import itertools, numpy as np, edgeconv
from edgeconv.bench.candidates import method_candidates
rng = np.random.default_rng(1)
count = 0
for stride, border, channels, name in itertools.product((1, 2, 3), ("zero", "reflect101"), ("mix", "each", "luma"),
                                                        ("sobel", "kirsch")):
    image = rng.integers(0, 256, (13, 9, 3), np.uint8)
    rules = dict(stride=stride, border=border, channels=channels)
    found = edgeconv.convolve(image, name, "shifts", **rules)
    assert np.array_equal(found, edgeconv.convolve(image, name, "reference", **rules)), rules
    count += 1
plan = edgeconv.plan((5, 13, 9, 3), "uint8", method="shifts")
batch = rng.integers(0, 256, (5, 13, 9, 3), np.uint8)
assert np.array_equal(plan(batch)[4], edgeconv.convolve(batch[4], method="reference"))
print(count, edgeconv.plan((9, 9, 3)).method != "shifts")
"""


def test_the_example_computes_what_the_reference_does_and_auto_leaves_it_alone(example: Installed) -> None:
    done = example.python("-c", CHECKED)
    assert done.stdout.split() == ["36", "True"], done.stderr


def test_the_window_offers_it(example: Installed) -> None:
    pytest.importorskip("PySide6")
    done = example.python(
        "-c",
        "from edgeconv.view.parameters import CHOICES; from edgeconv.view.sources import computed_sources\n"
        "print('shifts' in CHOICES['method'], 'shifts on CPU' in [source.label for source in computed_sources()])",
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_nothing_is_imported_for_a_list_of_methods(faulty: Installed) -> None:
    done = faulty.python(
        "-c",
        "import sys; from edgeconv.methods import method_names; names = method_names()\n"
        "print('sound' in names, 'edgeconv_faulty' in sys.modules, 'numpy' in sys.modules)",
    )
    assert done.stdout.split() == ["True", "False", "False"], done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "from edgeconv.cli.commands import COMMANDS, load; [load(name) for name in COMMANDS]",
        "import edgeconv, numpy; edgeconv.convolve(numpy.zeros((4, 4, 3), 'uint8'), method='opencv', device='cpu')",
        "import edgeconv, numpy; edgeconv.convolve(numpy.zeros((4, 4, 3), 'uint8'), device='cpu')",
    ],
    ids=["help", "a built-in method", "auto"],
)
def test_other_packages_are_not_looked_for_without_need(faulty: Installed, code: str) -> None:
    done = faulty.python("-c", f"{code}\nfrom edgeconv.methods.outside import outside_methods as found\n"
                               "print(found.cache_info().currsize)")  # fmt: skip
    assert done.stdout.split() == ["0"], done.stderr


TRIED = """
import json, sys, edgeconv, numpy
said = {}
for name in sys.argv[2:]:
    try:
        edgeconv.convolve(numpy.zeros((4, 4, 3), "uint8"), filter=sys.argv[1], method=name)
    except edgeconv.EdgeconvError as error:
        said[name] = [str(error), type(error).__name__, type(error.__cause__).__name__]
print(json.dumps(said))
"""


def test_a_fault_of_a_method_is_one_line_that_names_its_package(faulty: Installed) -> None:
    said = {}
    for chosen, faults in (("laplacian8", NEVER_RUNS | FAILS_AT_WORK), ("canny", FAILS_ON_CHAINS)):
        said |= json.loads(faulty.python("-c", TRIED, chosen, *faults).stdout)
    for name, (_, reason) in (NEVER_RUNS | FAILS_AT_WORK | FAILS_ON_CHAINS).items():
        message, kind, cause = said[name]
        assert reason in message
        assert "package edgeconv-faulty 0.5" in message
        assert (kind, "\n" in message) == ("UnavailableError", False)
        assert (cause == "NoneType") == ("failed in" not in reason), "the traceback is there for who asks"


CHAINED = """
import edgeconv, numpy
picture = numpy.random.default_rng(1).integers(0, 256, (2, 30, 40, 3), "uint8")
found, expected = (edgeconv.convolve(picture, "canny", method=name) for name in ("sound", "reference"))
print(numpy.array_equal(found, expected), expected.any())
"""


def test_a_method_of_another_package_computes_chains_too(faulty: Installed) -> None:
    done = faulty.python("-c", CHAINED)
    assert done.stdout.split() == ["True", "True"], done.stderr


@pytest.mark.parametrize("name", few_then_slow(["unrun", "unmade", "nothing"]))
def test_a_command_leaves_nothing_behind_where_a_method_fails(faulty: Installed, name: str) -> None:
    done = faulty.edgeconv("run", "photo.png", "-m", name, "-o", f"{name}.png")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (4, "", 1), done.stderr
    assert (NEVER_RUNS | FAILS_AT_WORK)[name][1] in done.stderr
    assert not list(faulty.folder.glob(f"{name}*"))


def test_doctor_names_every_fault_that_is_seen_without_work(faulty: Installed) -> None:
    lines = faulty.edgeconv("doctor").stdout.splitlines()
    for name, (_, reason) in NEVER_RUNS.items():
        (line,) = (line for line in lines if line.split()[:2] == ["cpu", name])
        assert reason in line
    for fault in LEFT_OUT.values():
        assert any(line.startswith("  left out: package edgeconv-faulty 0.5 ") and fault in line for line in lines), (
            fault
        )
    twice = (
        "method 'twice' on cpu is offered by two packages, edgeconv-faulty 0.5 and edgeconv-other 0.5: uninstall one"
    )
    assert f"  left out: {twice}" in lines
    assert [line.split()[1] for line in lines if line.endswith("works")][:4] == [
        "reference",
        "opencv",
        "sliding",
        "im2col",
    ]
    assert any(line.split()[:3] == ["cpu", "sound", "works"] for line in lines)


def test_compare_goes_on_without_the_methods_that_fail(faulty: Installed) -> None:
    done = faulty.edgeconv("compare", "photo.png", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    ran = [entry["name"] for entry in record["methods"] if entry["name"] not in FAILS_ON_CHAINS]
    assert ran == [*(entry.name for entry in METHODS if entry.device == "cpu"), "sound"]
    for name, (_, reason) in (NEVER_RUNS | FAILS_AT_WORK).items():
        assert any(line.startswith(f"{name} on CPU did not run: ") and reason in line for line in record["left_out"])


def test_bench_goes_on_without_the_methods_that_fail(faulty: Installed) -> None:
    rows = faulty.bench()
    assert {rows[name] for name in ("sound", "sliding", "opencv", "im2col")} == {"right"}
    for name, (_, reason) in FAILS_AT_WORK.items():
        assert reason in rows[name]


def test_a_name_that_two_packages_offer_says_so(faulty: Installed) -> None:
    done = faulty.edgeconv("run", "photo.png", "-m", "twice")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "Method 'twice' cannot be used: method 'twice' on cpu is offered by two packages" in done.stderr


def test_damaged_metadata_of_any_package_stops_nothing(tmp_path: Path) -> None:
    installed = Installed(tmp_path / "site", tmp_path)
    installed.offer("edgeconv-broken", {"cpu.sound": "edgeconv_broken:Mirror"},
                    "from edgeconv.methods.reference import Reference as Mirror")  # fmt: skip
    (tmp_path / "site" / "edgeconv_broken-0.5.dist-info" / "METADATA").unlink()
    other = tmp_path / "site" / "odd-1.dist-info"
    other.mkdir()
    (other / "entry_points.txt").write_bytes(b"\xff\xfe no table\n= =\n[edgeconv.methods\n")
    done = installed.edgeconv("doctor")
    assert done.returncode == 0, done.stderr
    assert "cpu   sliding    works" in done.stdout
