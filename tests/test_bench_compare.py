"""The gate: four verdicts from samples, a failure only for a real slowdown, no comparison of unlike machines."""

from __future__ import annotations

import copy
import math
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from bench_records import TimedMethod, WrongMethod, changed, measured, measured_once
from command import edgeconv, script

from edgeconv.bench import record
from edgeconv.bench.compare import Gate, compare, compare_runs, judge, parse_gate
from edgeconv.bench.intervals import STUDENT_T, Ratio, mean_of_cases, mean_ratio, ratio_interval, ratio_of_runs
from edgeconv.errors import UsageError
from edgeconv.export.comparison import to_junit, to_markdown
from edgeconv.methods.options import Options


def series(middle: float, spread: float = 0.01, n: int = 40, seed: int = 0) -> list[float]:
    rng = np.random.default_rng(seed)
    return (middle * (1 + spread * rng.standard_normal(n))).tolist()


def test_constant_samples_have_an_exact_interval() -> None:
    assert ratio_interval([2.0] * 9, [3.0] * 9) == Ratio(1.5, 1.5, 1.5, 9)
    assert ratio_interval([1.0] * 8 + [9.0] * 2, [1.0] * 8 + [18.0] * 2, "p90").ratio == 2.0


def test_one_sample_of_each_tells_nothing() -> None:
    assert ratio_interval([1.0], [9.0]) == Ratio(9.0, 0.0, float("inf"), 1)
    assert judge(ratio_interval([1.0], [9.0]), 0.05) == "ambiguous"
    assert str(ratio_interval([1.0], [9.0])) == "9 (few samples)"


@pytest.mark.parametrize("interval", [ratio_interval, ratio_of_runs], ids=["samples", "runs"])
def test_few_samples_and_runs_have_the_interval_of_student(interval) -> None:
    """Mean logarithms 0 and 3, each with a variance of 1 of three: pooled 1, error sqrt(2/3), 4.604 of them."""
    found = interval(np.exp([-1.0, 0.0, 1.0]).tolist(), np.exp([2.0, 3.0, 4.0]).tolist())
    assert np.log([found.low, found.ratio, found.high]) == pytest.approx(
        [3 - 4.604 * (2 / 3) ** 0.5, 3, 3 + 4.604 * (2 / 3) ** 0.5]
    )


@pytest.mark.parametrize(("statistic", "percent"), [("median", 50), ("p10", 10), ("p90", 90)])
def test_an_interval_is_the_middle_of_2000_resampled_ratios(statistic: str, percent: int) -> None:
    """Again from the same draws, in plain Python: quantiles between two samples lie on the line between them."""
    base = [1.0 + 0.01 * (7 * n % 19) for n in range(19)]
    new = [1.2 + 0.02 * (5 * n % 23) for n in range(23)]

    def quantile(values: list[float], percent: float) -> float:
        ordered, place = sorted(values), (len(values) - 1) * percent / 100
        low = int(place)
        return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])

    rng = np.random.default_rng(20_261_121)
    drawn = [
        [
            quantile([values[pick] for pick in picks], percent)
            for picks in rng.integers(0, len(values), (2000, len(values)))
        ]
        for values in (new, base)
    ]
    ratios = [mine / theirs for mine, theirs in zip(*drawn, strict=True)]
    found = ratio_interval(base, new, statistic)
    expected = (quantile(new, percent) / quantile(base, percent), quantile(ratios, 0.5), quantile(ratios, 99.5))
    assert (found.ratio, found.low, found.high) == pytest.approx(expected, rel=1e-12)


def test_four_samples_are_too_few_to_draw_from_and_five_are_not() -> None:
    """Student's interval lies evenly round the ratio; one that is drawn ends at ratios of samples."""
    base, new = [1.0, 1.1, 1.3, 1.8, 1.9], [2.0, 2.1, 2.6, 2.7, 3.9]
    for count, evenly in ((2, True), (4, True), (5, False)):
        found = ratio_interval(base[:count], new[:count])
        assert (found.low * found.high == pytest.approx(found.ratio**2, rel=1e-9)) == evenly, count
    assert found.low >= min(new) / max(base)
    assert found.high <= max(new) / min(base)


def test_a_mean_is_as_unsure_as_its_ratios() -> None:
    """Ends are means of ends; one case of few samples leaves no verdict on all."""
    sure, other = Ratio(2.0, 1.98, 2.02, 9), Ratio(8.0, 7.92, 8.08, 30)
    assert mean_ratio([]) is None
    found = mean_ratio([sure, other])
    assert [found.ratio, found.low, found.high, found.samples] == pytest.approx([4.0, 3.96, 4.04, 9])
    assert found.doubt == ""
    assert mean_ratio([sure, Ratio(8.0, 0.0, float("inf"), 1)]).doubt == "1 sample"


def test_the_mean_of_cases_has_the_interval_of_student_over_them() -> None:
    found = mean_of_cases(np.exp([1.0, 2.0, 3.0]).tolist())
    assert np.log([found.low, found.ratio, found.high]) == pytest.approx([2 - 9.925 / 3**0.5, 2, 2 + 9.925 / 3**0.5])
    assert mean_of_cases([3.0]) == Ratio(pytest.approx(3.0), 0.0, float("inf"), 1)


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(1.2, 1.1, 1.3, 9), "slower"),
        (Ratio(1.06, 1.051, 1.07, 9), "slower"),
        (Ratio(1.06, 1.04, 1.08, 9), "ambiguous"),
        (Ratio(1.0, 0.97, 1.04, 9), "same"),
        (Ratio(1.0, 0.90, 1.10, 9), "ambiguous"),
        (Ratio(0.8, 0.7, 0.9, 9), "faster"),
    ],
)
def test_verdicts(ratio: Ratio, verdict: str) -> None:
    assert judge(ratio, 0.05) == verdict


@pytest.mark.parametrize(("text", "gate"), [("median:5%", Gate("median", 0.05)), ("p90:0.1", Gate("p90", 0.1))])
def test_gates_are_read(text: str, gate: Gate) -> None:
    assert parse_gate(text) == gate
    with pytest.raises(UsageError, match="--fail-on"):
        parse_gate(f"mean{text}")


@pytest.fixture
def base() -> record.BenchRecord:
    return measured_once(TimedMethod("a", [1e-3]), TimedMethod("b", [1e-3]))


def test_a_slowdown_fails_and_stands_first(monkeypatch, base) -> None:
    new = measured(monkeypatch, TimedMethod("a", [1e-3]), TimedMethod("b", [1.2e-3]))
    found = compare(base, new, Gate())
    assert not found.passed
    assert [line.verdict for line in found.lines] == ["slower", "slower", "same", "same"]
    assert found.lines[0].ratio == Ratio(pytest.approx(1.2), pytest.approx(1.2), pytest.approx(1.2), 5)
    assert to_markdown(found).startswith("FAILED: 2 slower, 2 same.")
    suite = ElementTree.fromstring(to_junit(found))
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")


def test_noise_of_its_own_hides_no_slowdown(monkeypatch, base) -> None:
    new = measured(monkeypatch, TimedMethod("a", [1e-3]), TimedMethod("b", [1e-3, 3e-3]))
    found = compare(base, new, Gate())
    assert [line.verdict for line in found.lines] == ["unsteady", "unsteady", "same", "same"]
    assert not found.passed
    assert compare(new, new, Gate()).passed, "as noisy as it was"


def test_a_row_that_turns_wrong_is_lost(monkeypatch, base) -> None:
    new = measured(monkeypatch, TimedMethod("a", [1e-3]), WrongMethod("b", [1e-6]))
    found = compare(base, new, Gate())
    assert [line.verdict for line in found.lines] == ["lost", "lost", "same", "same"]
    assert found.lines[0].note.startswith("wrong:")
    assert not found.passed
    assert "lost" in to_markdown(found)


def other_clock(result: record.BenchRecord) -> None:
    for row in result.rows:
        row.machine.sm_clock_min_mhz = 1500


def other_pixels(result: record.BenchRecord) -> None:
    for row in result.rows:
        row.case.input_sha256 = "0" * 64


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda new: changed(new.machine["cpu"], name="another"), "machine"),
        (lambda new: new.versions.update(numpy="0.1"), "versions"),
        (lambda new: changed(new, options=Options(threads=7)), "options"),
        (other_pixels, "pictures"),
        (other_clock, "clocks"),
    ],
)
def test_unlike_records_are_refused_unless_allowed(base, change, kind: str) -> None:
    for row in base.rows:
        row.machine.sm_clock_min_mhz = 1980
    new = copy.deepcopy(base)
    change(new)
    with pytest.raises(UsageError, match=f"--allow {kind}"):
        compare(base, new, Gate())
    assert compare(base, new, Gate(), (kind,)).passed


def runs(monkeypatch, times: list[float]) -> list[record.BenchRecord]:
    return [measured_once(TimedMethod("own", [time])) for time in times]


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ([2e-3, 2.01e-3, 1.99e-3], "same"),
        ([2.3e-3, 2.31e-3, 2.29e-3], "slower"),
        ([1.7e-3, 1.71e-3, 1.69e-3], "faster"),
        ([2e-3, 2.01e-3, 3e-3], "ambiguous"),  # one run, whatever it was, fails nobody
    ],
)
def test_several_runs_are_judged_by_what_changes_between_them(monkeypatch, times: list[float], verdict: str) -> None:
    bases, news = runs(monkeypatch, [2e-3, 2.01e-3, 1.99e-3]), runs(monkeypatch, times)
    found = compare_runs(bases, news, Gate())
    assert {line.verdict for line in found.lines} == {verdict}
    assert found.runs == (3, 3)
    assert "interval by 3 and 3 runs" in to_markdown(found)
    assert found.lines[0].new_seconds == pytest.approx(math.prod(times) ** (1 / 3))


def test_the_command_ends_with_one_only_for_a_slowdown(tmp_path) -> None:
    """Two records, and two folders of runs."""
    for side, times in (("before", [2e-3, 2.01e-3]), ("after", [2.6e-3, 2.61e-3]), ("none", []), ("twice", [2e-3] * 2)):
        (tmp_path / side).mkdir()
        for i, seconds in enumerate(times):
            (tmp_path / side / f"{i}.json").write_bytes(record.to_json(measured_once(TimedMethod("own", [seconds]))))
    for end in ("", "/0.json"):
        words = (f"before{end}", f"after{end}", "--markdown", "gate.md", "--junit", "gate.xml", "--overwrite")
        slower = edgeconv("bench", "compare", *words, cwd=tmp_path)
        assert (slower.code, slower.text.split(":")[0]) == (1, "FAILED")
        assert (tmp_path / "gate.md").read_text(encoding="utf-8") == slower.text
        assert b"<failure" in (tmp_path / "gate.xml").read_bytes()
        assert edgeconv("bench", "compare", *words, "--fail-on", "median:150%", cwd=tmp_path).code == 0
    for words, says in (
        ("before none", "holds no record"),
        ("before twice", "holds one run twice: '0.json' and '1.json'"),
        ("before/0.json none.json", "none.json"),
        ("before/0.json gate.md", "gate.md"),
        ("before after --allow all", "--allow"),
    ):
        refused = edgeconv("bench", "compare", *words.split(), cwd=tmp_path)
        assert (refused.code, len(refused.error_lines)) == (2, 1)
        assert says in refused.err


def test_students_t_holds_99_percent_of_its_own_density() -> None:
    """The density of t with n degrees of freedom, integrated from −t to t by the trapezoid rule."""
    for freedom, width in enumerate(STUDENT_T, 1):
        scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))

        def density(x, freedom: int = freedom, scale: float = scale):
            return scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)

        x = np.linspace(0, width, 20_001)
        inside = 2 * float(np.sum((density(x)[1:] + density(x)[:-1]) / 2 * np.diff(x)))
        assert abs(inside - 0.99) <= 2 * density(width) * 0.0005 + 1e-6, freedom


def test_gate_rates_counts_a_planted_slowdown_and_not_the_same_code(base) -> None:
    rates = script("gate_rates")
    assert rates.verdicts([base], [base], Gate()) == Counter(same=4)
    slowed = rates.slowed(base, 1.07)
    assert rates.verdicts([base], [slowed], Gate()) == Counter(slower=4)
    assert rates.verdicts([base], [slowed], Gate(margin=0.08)) == Counter(same=4)
