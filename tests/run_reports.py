"""The reports of `edgeconv run` below docs/results."""

from __future__ import annotations

from typing import Any

from command import script

from edgeconv.run.report import RunReport, as_report

docs = script("docs")


def run_report(machine: str, name: str) -> RunReport:
    """One of them."""
    return as_report(docs.record(f"run/{machine}")["reports"][name])


def all_run_reports() -> dict[str, Any]:
    """All of them, as their JSON is."""
    files = (docs.RESULTS / "run").glob("*.json.xz")
    return {name: report for path in sorted(files) for name, report in docs.read(path)["reports"].items()}
