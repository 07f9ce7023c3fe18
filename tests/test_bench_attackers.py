"""Methods that cheat, as installed packages: each is refused by the name of its fault, and honest ones are not.

The attackers are in tests/attackers; `edgeconv bench` finds them through their entry points, as it finds any method.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attackers.edgeconv_attackers import CPU_ATTACKS, CUDA_ATTACKS, HONEST
from command import PROJECT

from edgeconv.bench.record import BenchRecord, BenchRow, read_record
from edgeconv.bench.referee.faults import FAULTS

SIDE = 400
"""More samples than the check before looks at, so that rows are left that it does not see."""
OF_WHOLE_NUMBERS = ("skips", "replays", "sampled-rows", "leaves-one", "tires")


def bench_of(folder: Path, device: str, names: list[str], *words: str) -> tuple[BenchRecord, int]:
    """The record of a bench of these methods beside edgeconv's own, and its exit code."""
    metadata = folder / "site" / "edgeconv_attackers-0.5.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: edgeconv-attackers\nVersion: 0.5\n", "utf-8")
    points = "".join(f"{device}.{name} = edgeconv_attackers:{device}_{name.replace('-', '_')}\n" for name in names)
    (metadata / "entry_points.txt").write_text(f"[edgeconv.methods]\n{points}", "utf-8")
    inherited = filter(None, [os.environ.get("PYTHONPATH")])
    paths = os.pathsep.join(map(str, [folder / "site", PROJECT / "tests" / "attackers", PROJECT, *inherited]))
    command = [sys.executable, "-m", "edgeconv", "bench", "--sizes", str(SIDE), "--strides", "1", "--samples", "5"]
    command += ["--time-limit", "0.01", "--devices", device, "--no-around", "--methods", "all", "--formats", "json"]
    done = subprocess.run(
        [*command, *words, "-o", str(folder / "out")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (folder / "out" / "bench.json").exists(), done.stderr
    return read_record(folder / "out" / "bench.json"), done.returncode


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BenchRow]:
    """By candidate, of one bench in which all attackers and honest methods are side by side."""
    record, code = bench_of(tmp_path_factory.mktemp("attackers"), "cpu", [*CPU_ATTACKS, *HONEST])
    assert code == 1
    return {row.candidate: row for row in record.rows}


@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, (_, fault) in CPU_ATTACKS.items()])
def test_an_attacker_is_refused_by_the_name_of_its_fault(rows: dict[str, BenchRow], name: str, fault: str) -> None:
    row = rows[name]
    assert (row.fault, row.timings) == (fault, {}), row.reason
    assert row.status == "disqualified"
    assert row.reason.startswith(f"{fault}: ")


@pytest.fixture(scope="module")
def whole_numbers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BenchRow]:
    """The same where no value of the output is none, so that what is unwritten does not show at once."""
    words = ("--dtypes", "uint8", "--filters", "laplacian8", "--channels", "each")
    record, _ = bench_of(tmp_path_factory.mktemp("whole"), "cpu", [*OF_WHOLE_NUMBERS, *HONEST], *words)
    return {row.candidate: row for row in record.rows}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_WHOLE_NUMBERS)
def test_an_attacker_of_whole_numbers_is_refused(whole_numbers: dict[str, BenchRow], name: str) -> None:
    assert whole_numbers[name].fault == CPU_ATTACKS[name][1], whole_numbers[name].reason
    assert {whole_numbers[honest].status for honest in ("copy", "opencv", "sliding", "plain")} == {"measured"}


@pytest.mark.parametrize("name", ["copy", "opencv", "sliding", "im2col", "plain", "leaves-settings"])
def test_an_honest_method_is_accepted_beside_them(rows: dict[str, BenchRow], name: str) -> None:
    assert (rows[name].status, rows[name].reason) == ("measured", None)


def test_settings_that_a_method_leaves_changed_are_put_back_and_noted(rows: dict[str, BenchRow]) -> None:
    assert rows["leaves-settings"].restored == ["affinity of the process", "garbage collection"]
    assert rows["plain"].restored == []


def test_every_fault_has_an_attacker_or_a_test_of_its_own() -> None:
    tried = {fault for _, fault in (*CPU_ATTACKS.values(), *CUDA_ATTACKS.values())}
    assert set(FAULTS) - tried == {"wrong when timed", "impossible time"}  # test_bench_measure.py


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, (_, fault) in CUDA_ATTACKS.items()])
def test_an_attacker_on_a_gpu_is_refused_by_the_name_of_its_fault(tmp_path: Path, name: str, fault: str) -> None:
    record, code = bench_of(tmp_path, "cuda", [name])
    rows = {row.candidate: row for row in record.rows}
    assert (rows[name].fault, rows[name].timings, code) == (fault, {}, 1), rows[name].reason
    assert rows["sliding"].status == "measured"
