"""The project itself: pages that match the code, one version, a bootstrap that picks the right extra."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from command import PROJECT, script
from jsonschema import Draft202012Validator

import edgeconv
from edgeconv import report
from edgeconv.methods import METHODS

docs_tables = script("docs_tables")
bootstrap = script("bootstrap")


@pytest.mark.parametrize("page", docs_tables.PAGES)
def test_tables_of_the_pages_are_current(page: str) -> None:
    text = (PROJECT / page).read_text(encoding="utf-8")
    assert docs_tables.renewed(text) == text, "run python3 scripts/docs_tables.py"


def test_every_table_stands_on_some_page() -> None:
    pages = "".join((PROJECT / page).read_text(encoding="utf-8") for page in docs_tables.PAGES)
    assert {found["name"] for found in docs_tables.MARKED.finditer(pages)} == set(docs_tables.TABLES)


def test_a_stale_table_is_renewed() -> None:
    stale = "a\n<!-- table methods -->\nold\n<!-- end methods -->\nb\n"
    fresh = docs_tables.renewed(stale)
    assert "old" not in fresh
    for entry in METHODS:
        assert f"`{entry.name}`" in fresh
    assert (fresh.startswith("a\n"), fresh.endswith("b\n")) == (True, True)


def test_there_is_one_version() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == edgeconv.__version__


@pytest.mark.parametrize(
    ("driver", "extra"),
    [("580.159.04", "cuda13"), ("595.1", "cuda13"), ("570.86", "cuda12"), ("470.2", None), ("", None)],
)
def test_the_bootstrap_takes_the_extra_that_fits_the_driver(driver: str, extra: str | None) -> None:
    assert bootstrap.cuda_extra(driver) == extra
    if extra is not None:
        assert (
            extra
            in tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
                "optional-dependencies"
            ]
        )


def committed_reports() -> list[Path]:
    return sorted((PROJECT / "docs" / "results" / "run").glob("*/*.json"))


def test_committed_reports_fit_the_schema_and_passed_their_check() -> None:
    validator = Draft202012Validator(report.schema())
    reports = committed_reports()
    assert reports
    for path in reports:
        record = json.loads(path.read_text(encoding="utf-8"))
        validator.validate(record)
        assert record["check"]["passed"], path.name
        assert record["check"]["checked_share"] == 1.0, path.name


def test_links_of_the_readme_lead_somewhere() -> None:
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (PROJECT / target).exists(), target
