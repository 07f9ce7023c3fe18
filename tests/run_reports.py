"""The reports of `edgeconv run` below docs/results."""

from __future__ import annotations

from typing import Any

from command import script

from edgeconv.run.report import RunReport, as_report

committed = script("committed")


def run_report(machine: str, name: str) -> RunReport:
    """A report of scripts/run_matrix.py."""
    return as_report(committed.one_of(f"run/{machine}", name))


def all_run_reports() -> dict[str, Any]:
    """All of them, as their JSON is."""
    files = sorted((committed.RESULTS / "run").glob("*.json.xz"))
    return {
        name: report
        for path in files
        for name, report in committed.record(f"run/{path.name.removesuffix('.json.xz')}")["reports"].items()
    }
