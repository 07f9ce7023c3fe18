"""Records: schemas are those of their classes, and every committed record is one of its class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from command import PROJECT
from jsonschema import Draft202012Validator

from edgeconv.core.records import as_type, plain
from edgeconv.export.schemas import BATCH, SCHEMAS, RecordSchema

RESULTS = PROJECT / "docs" / "results"


def committed(entry: RecordSchema) -> list[Path]:
    """Files whose `kind` is one of those that the schema allows."""
    kinds = {kind_of(kind) for kind in entry.kinds}
    found = []
    for path in sorted(RESULTS.rglob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and record.get("kind") in kinds:
            found.append(path)
    return found


def kind_of(record: type) -> str:
    """What stands in the file as its kind."""
    (word,) = get_args(get_type_hints(record)["kind"])
    return word


@pytest.mark.parametrize("entry", SCHEMAS, ids=lambda entry: entry.file)
def test_a_schema_is_that_of_its_class(entry: RecordSchema) -> None:
    assert entry.stored() == entry.text(), "run python3 -m edgeconv.export.schemas"
    Draft202012Validator.check_schema(entry.schema())


@pytest.mark.parametrize("entry", [entry for entry in SCHEMAS if entry != BATCH], ids=lambda entry: entry.file)
def test_every_committed_record_is_of_its_class_and_comes_back_as_it_was(entry: RecordSchema) -> None:
    validator = Draft202012Validator(entry.schema())
    paths = committed(entry)
    assert paths
    for path in paths:
        record = json.loads(path.read_text(encoding="utf-8"))
        validator.validate(record)
        (kind,) = (kind for kind in entry.kinds if kind_of(kind) == record["kind"])
        again = plain(as_type(record, kind))
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
