"""Records: schemas are those of their classes, and every committed record is one of its class."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import PROJECT
from jsonschema import Draft202012Validator

from edgeconv.core.records import as_type, plain
from edgeconv.export.schemas import SCHEMAS, RecordSchema

RESULTS = PROJECT / "docs" / "results"


def committed(entry: RecordSchema) -> list[Path]:
    """Files whose `kind` is one of those that the schema allows."""
    kinds = {kind for part in entry.schema()["$defs"].values() for kind in kinds_of(part)}
    found = []
    for path in sorted(RESULTS.rglob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and record.get("kind") in kinds:
            found.append(path)
    return found


def kinds_of(part: dict) -> list[str]:
    fields = part.get("properties", {})
    return fields["kind"].get("enum", []) if "schema_version" in fields else []


@pytest.mark.parametrize("entry", SCHEMAS, ids=lambda entry: entry.file)
def test_a_schema_is_that_of_its_class(entry: RecordSchema) -> None:
    assert entry.stored() == entry.text(), "run python3 -m edgeconv.export.schemas"
    Draft202012Validator.check_schema(entry.schema())


@pytest.mark.parametrize("entry", SCHEMAS, ids=lambda entry: entry.file)
def test_every_committed_record_is_of_its_class_and_comes_back_as_it_was(entry: RecordSchema) -> None:
    validator = Draft202012Validator(entry.schema())
    paths = committed(entry)
    assert paths
    for path in paths:
        record = json.loads(path.read_text(encoding="utf-8"))
        validator.validate(record)
        again = plain(as_type(record, entry.kind))
        validator.validate(again)
        assert_holds(again, record)


def assert_holds(again: object, record: object) -> None:
    """Everything that is in `record` is in `again`; a null may be absent, and what came later may be there."""
    if isinstance(record, dict):
        for name, value in record.items():
            if value is not None or name in again:
                assert_holds(again[name], value)
    elif isinstance(record, list):
        assert len(again) == len(record)
        for ours, theirs in zip(again, record, strict=True):
            assert_holds(ours, theirs)
    else:
        assert again == record
