"""What the page about the window promises is there: its pictures, its record, and figures within their goals."""

from __future__ import annotations

import json
import re

from command import PROJECT

PAGE = PROJECT / "docs" / "view.md"
RECORD = PROJECT / "docs" / "results" / "view" / "two-core-epyc.json"


def test_links_and_pictures_of_the_page_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGE.read_text(encoding="utf-8"))
    assert any(target.endswith(".webp") for target in targets)
    for target in targets:
        assert (PAGE.parent / target).exists(), target


def test_the_committed_figures_meet_their_goals() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    opening, stall = record["opening"], record["stall"]
    for name in ("application", "process"):
        assert min(opening[f"{name}_seconds"]) <= opening[f"{name}_goal_seconds"], name
    for method, seconds in stall["longest_seconds"].items():
        assert min(seconds) <= stall["goal_seconds"], method
