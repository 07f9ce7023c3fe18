"""A short fuzz of fixed seeds, and proof that the fuzzer finds what it is for. Long ones: scripts/fuzz.py."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import fuzzing
import numpy as np
import oracle
import pytest
import subject
from cases import BORDERS, GROUP, METHODS, TYPES, FuzzCase, draw
from fuzzing import Fuzzed, indices, run_one
from selection import few_then_slow

from edgeconv.core.problem import Problem
from edgeconv.methods.base import Plan

PROGRAM = Path(__file__).resolve().parents[2] / "scripts" / "fuzz.py"

CPU_SEEDS, CUDA_SEEDS = range(8), range(2)
CONFIGURATIONS, CASES_OF_EACH = {"cpu": 15, "cuda": 20}, 8


def fuzz_seed(device: str, seed: int) -> Fuzzed:
    found = Fuzzed()
    for configuration in range(CONFIGURATIONS[device]):
        for number in range(CASES_OF_EACH):
            run_one(draw(device, seed, configuration * GROUP[device] + number), found)
    return found


def assert_nothing(found: Fuzzed) -> None:
    lines = [f"{entry['case']}\n    {entry['what']}\n    {entry['repeat']}" for entry in found.failures]
    assert not lines, f"{len(lines)} of {sum(found.outcomes.values())} cases fail:\n" + "\n".join(lines[:10])


@pytest.mark.parametrize("seed", few_then_slow(CPU_SEEDS))
def test_a_seed_finds_nothing_on_the_cpu(seed: int) -> None:
    assert_nothing(fuzz_seed("cpu", seed))


@pytest.mark.gpu
@pytest.mark.parametrize("seed", CUDA_SEEDS)
def test_a_seed_finds_nothing_on_a_gpu(seed: int) -> None:
    assert_nothing(fuzz_seed("cuda", seed))


@pytest.mark.gpu
@pytest.mark.gpu_alone
@pytest.mark.parametrize("method", ["sliding", "textbook", "im2col", "implicit"])
def test_a_row_whose_samples_need_more_than_31_bits_to_count(method: str) -> None:
    """Columns times three pass 2^31 in the last pixels; those, the first and some between are judged."""
    import cupy

    import edgeconv

    width, looked_at = 2**31 // 3 + 5000, 2000
    cupy.get_default_memory_pool().free_all_blocks()
    if cupy.cuda.Device().mem_info[0] < 3 * 3 * width:
        pytest.skip("needs 7 GB of GPU memory")
    image = cupy.random.default_rng(1).integers(0, 256, (1, width, 3), dtype=cupy.uint8)
    out = edgeconv.convolve(image, "sobel", method, border="zero", device="cuda")
    kernels, combine = oracle.named("sobel")
    asked = oracle.Asked(kernels, combine, "each")
    for first in (0, 2**30 // 3, 2**31 // 3 - looked_at // 2, width - looked_at):
        piece = image[:, first : first + looked_at].get()
        expected, got = oracle.expect(piece, asked), out[:, first : first + looked_at].get()
        inner = slice(0 if first == 0 else 1, None if first == width - looked_at else -1)
        assert not expected.wrong(got)[:, inner].any(), f"{method} is wrong near pixel {first}"


# --- the cases ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", GROUP)
def test_every_class_is_drawn(device: str) -> None:
    cases = [draw(device, 0, index) for index in range(0, 600 * GROUP[device], GROUP[device] // 4)]
    drawn = {kind: {case.classes[kind] for case in cases} for kind in cases[0].classes}
    assert drawn["method"] == set(METHODS[device])
    assert drawn["type"] == set(TYPES)
    assert drawn["border"] == set(BORDERS)
    assert drawn["kernel"] >= {*oracle.NAMED, "small channel", "whole 1e6", "zero sum", "tiny", "large"}
    assert drawn["samples"] >= {"holes", "denormals", "huge", "any bits", "extremes"}
    assert drawn["layout"] >= {"Fortran order", "unaligned", "all reversed", "plan, guard bytes"}
    assert drawn["stride"] >= {"1", "2", "3", "4", "9"}


def test_workers_share_the_cases() -> None:
    shares = [list(islice(indices(subject, 1, 2), 25)) for subject in ("cpu", "reader")]
    assert shares == [[*range(24, 48), 72], list(range(1, 50, 2))]


# --- the oracle ---------------------------------------------------------------------------------------------------


def asked(name: str = "identity", **rules: Any) -> oracle.Asked:
    kernels, combine = oracle.named(name)
    return oracle.Asked(kernels, combine, **{"channels": "each", **rules})


def test_the_oracle_in_a_case_worked_out_by_hand() -> None:
    image = np.zeros((3, 3, 3), np.uint8)
    image[1, 1] = (10, 20, 30)
    raw = oracle.expect(image, asked("laplacian4", mode="raw"))
    assert raw.low[1, 1].tolist() == raw.high[1, 1].tolist() == [-40, -80, -120]
    assert raw.low[0, 1].tolist() == [10, 20, 30]
    mix = oracle.expect(image, asked("laplacian4", channels="mix"))
    assert mix.low[1, 1].tolist() == [240, 240, 240]
    magnitude = oracle.expect(image, asked("sobel"))
    assert magnitude.low[0, 0].tolist() == [14, 28, 42]  # √2 · 10 = 14.14, 28.28, 42.43
    assert oracle.expect(image, asked("kirsch")).low[0, 0].tolist() == [50, 100, 150]


@pytest.mark.parametrize(
    ("border", "row"),
    [
        ("zero", "0 0 1 2 3 0 0"),
        ("replicate", "1 1 1 2 3 3 3"),
        ("reflect", "2 1 1 2 3 3 2"),
        ("reflect101", "3 2 1 2 3 2 1"),
    ],
)
def test_the_oracles_borders(border: str, row: str) -> None:
    image = np.repeat(np.array([[1], [2], [3]], np.uint8)[None], 3, axis=2)
    out = oracle.expect(np.repeat(image, 3, axis=0), asked(border=border, padding=3))
    assert out.low[out.low.shape[0] // 2, :, 0].tolist() == [int(cell) for cell in row.split()]


def test_the_bound_is_that_of_each_output_channel() -> None:
    """A wrong channel of small weights must not hide behind a large one."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(-1, 1, (1, 3, 3, 3, 3))
    weights[:, 2] *= 1e-7
    case = oracle.Asked(weights.astype(np.float32))
    expected = oracle.expect(rng.uniform(0, 1, (6, 7, 3)).astype(np.float32), case)
    assert not expected.wrong(expected.low).any()
    off = expected.low.copy()
    off[..., 2] *= 1.001
    assert expected.wrong(off)[..., 2].all()


def test_nan_reaches_its_own_windows_and_no_other() -> None:
    image = np.ones((5, 6, 3), np.float32)
    image[2, 3, 1] = np.nan
    expected = oracle.expect(image, asked("laplacian4", mode="raw"))
    places = {tuple(place) for place in np.argwhere(expected.not_finite).tolist()}
    assert places == {(2, 3, 1), (1, 3, 1), (3, 3, 1), (2, 2, 1), (2, 4, 1)}
    assert {tuple(place) for place in np.argwhere(expected.free).tolist()} == {
        (y, x, 1) for y in (1, 3) for x in (2, 4)
    }
    got = expected.low.copy()
    assert expected.wrong(got).sum() == len(places)
    got[expected.not_finite] = np.inf
    assert not expected.wrong(got).any()


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-23, 1.0, 1e19, 1e35])
def test_magnitudes_neither_vanish_nor_overflow(scale: float) -> None:
    image = (np.random.default_rng(1).uniform(0, 1, (4, 4, 3)) * scale).astype(np.float32)
    expected = oracle.expect(image, asked("sobel", padding=0))
    assert np.isfinite(expected.high).all()
    assert (expected.low > 0).all()


# --- what the fuzzer must notice ------------------------------------------------------------------------------------


class FaultyPlan(Plan):
    """A right plan, and then a mistake."""

    def __init__(self, problem: Problem, right: Plan, mistake: str) -> None:
        super().__init__(problem, workspace_bytes=10**9 if mistake == "workspace limit" else 0)
        self._right, self._mistake, self._runs = right, mistake, 0

    def run(self, image: Any, out: Any) -> None:
        self._right.run(image, out)
        self._runs += 1
        flat = out.reshape(-1)
        if self._mistake == "values":
            flat[-1] += 1
        elif self._mistake == "memory":
            behind = np.lib.stride_tricks.as_strided(flat, (flat.size + 1,), flat.strides)
            behind[-1] = 0
        elif self._mistake == "input changed":
            image[0, 0, 0] ^= 1
        elif self._mistake == "repetition" and self._runs == 2:
            flat[0] ^= 1


@pytest.mark.parametrize("mistake", ["none", "values", "memory", "input changed", "repetition", "workspace limit"])
def test_a_mistake_is_found(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    prepare = subject._prepare
    monkeypatch.setattr(subject, "_prepare", lambda case, problem: FaultyPlan(problem, prepare(case, problem), mistake))
    case = replace(
        draw("cpu", 0, 1 if mistake == "repetition" else 2),
        method="reference",
        dtype="uint8",
        filter="laplacian8",
        kernel_kind="named",
        channels="each",
        stride=1,
        padding=1,
        border="zero",
        mode="raw" if mistake == "values" else "abs",
        options={"workspace_limit_bytes": 1000} if mistake == "workspace limit" else {},
        shape=(9, 11),
        samples="noise",
        layout="contiguous",
        door="plan",
    )
    found = Fuzzed()
    run_one(case, found)
    assert [entry["group"] for entry in found.failures] == (
        [] if mistake == "none" else [f"{mistake}: reference uint8"]
    )


# --- the script -----------------------------------------------------------------------------------------------------


def run_script(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run((sys.executable, str(PROGRAM), *words), capture_output=True, text=True, check=False)


def test_the_script_records_what_it_ran(tmp_path: Path) -> None:
    record = tmp_path / "fuzz.json"
    ran = run_script("--seconds", "0.5", "--seed", "3", "--record", str(record))
    found = json.loads(record.read_text(encoding="utf-8"))
    assert ran.returncode == (1 if found["failures"] else 0), ran.stderr
    assert (found["seed"], found["device"]) == (3, "cpu")
    assert found["cases"] == sum(found["outcomes"].values()) == sum(found["counts"]["method"].values()) > 0
    assert all(entry["repeat"].startswith("python3 scripts/fuzz.py") for entry in found["failures"])


def test_the_script_reads_damaged_pictures(tmp_path: Path) -> None:
    record = tmp_path / "reader.json"
    ran = run_script("reader", "--seconds", "0.5", "--seed", "3", "--jobs", "2", "--record", str(record))
    assert ran.returncode == 0, ran.stderr + ran.stdout
    found = json.loads(record.read_text(encoding="utf-8"))
    assert found["cases"] == sum(sum(counts.values()) for counts in found["counts"].values()) > 0
    assert (found["device"], found["failures"]) == ("reader", [])


def dies_at_three(subject: str, seed: int, connection: Any) -> None:
    """A process that a crash of native code ends, once."""
    for index in iter(connection.recv, None):
        if index == 3:
            os._exit(11)
        found = Fuzzed()
        found.count(draw(subject, seed, index), "right")
        connection.send(found)


def test_a_crash_is_a_finding_and_the_run_goes_on_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    import fuzz

    monkeypatch.setattr(fuzzing, "indices", lambda *_: range(6))
    found = fuzz.share("cpu", 0, 0, 1, math.inf, dies_at_three)
    assert [(entry["index"], entry["what"]) for entry in found.failures] == [(3, "ended the process with code 11")]
    assert found.outcomes["right"] == 5


def test_every_named_filter_is_typed_anew() -> None:
    """The oracle's table has the names of the package's, and none of its numbers came from there."""
    from edgeconv.core.filters import filter_names

    assert set(oracle.NAMED) == set(filter_names())


def test_the_line_of_a_case_says_what_repeats_it() -> None:
    case: FuzzCase = draw("cpu", 3, 0)
    assert case.command == "python3 scripts/fuzz.py --device cpu --seed 3 --case 0"
    ran = run_script(*case.command.split()[2:])
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[0] == str(case)
