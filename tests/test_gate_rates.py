"""scripts/gate_rates.py: what it counts, on records of invented times."""

from __future__ import annotations

from collections import Counter

import pytest
from bench_records import TimedMethod, measured
from command import script

from edgeconv.bench.compare import Gate

gate_rates = script("gate_rates")


def test_a_planted_slowdown_is_counted_and_the_same_code_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    base, new = (measured(monkeypatch, TimedMethod("own", [2e-3])) for _ in range(2))
    assert gate_rates.verdicts([base], [new], Gate()) == Counter(same=2)
    slowed = gate_rates.slowed(new, 1.07)
    assert gate_rates.verdicts([base], [slowed], Gate()) == Counter(slower=2)
    assert gate_rates.verdicts([base], [slowed], Gate(margin=0.08)) == Counter(same=2)
    floors = [row.lead_series.median_seconds for row in slowed.rows if row.kind == "copy"]
    assert floors == [1e-3, 1e-3], "the floor is as it was"
    for row in slowed.rows:
        row.machine.flags.append("other processes kept 40% of the cores busy")
    assert gate_rates.verdicts([base], [slowed], Gate()) == Counter(refused=1)
    assert gate_rates.verdicts([base], [slowed], Gate(), ("load",)) == Counter(slower=2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--statistics", "median,mean"], "--statistics 'mean' is not one of median, p10, p90"),
        (["--runs", "3"], "3 runs are too few for two sides of 20"),
        (["--neighbour-runs", "0"], "0 runs beside a neighbour are too few for two sides of 1"),
    ],
)
def test_what_cannot_be_drawn_from_is_one_line(monkeypatch, tmp_path, capsys, words: list[str], says: str) -> None:
    monkeypatch.setattr("sys.argv", ["gate_rates.py", "--output", str(tmp_path / "rates.json"), *words])
    with pytest.raises(SystemExit) as ended:
        gate_rates.main()
    assert says in f"{ended.value} {capsys.readouterr().err}"
    assert not list(tmp_path.iterdir())
