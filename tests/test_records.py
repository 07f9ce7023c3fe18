"""Records: schemas are those of their classes, and every committed record is one of its class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from command import PROJECT, edgeconv
from jsonschema import Draft202012Validator
from jsonschema_rs import validator_for
from run_reports import all_run_reports

from edgeconv.api.check import Check
from edgeconv.core.records import as_type, plain, to_json
from edgeconv.errors import UsageError
from edgeconv.export.schemas import SCHEMAS, schema
from edgeconv.export.schemas import read as read_record
from edgeconv.io.files import RECORD_BYTES, parse_json, read_text

RESULTS = PROJECT / "docs" / "results"


def loaded(path: Path) -> dict:
    """A committed record, packed or not."""
    return parse_json(read_text(path, RECORD_BYTES))


def committed(name: str) -> list[dict]:
    """Records whose `kind` is one of those that the schema allows."""
    kinds = {word for kind in SCHEMAS[name][1] for word in kinds_of(kind)}
    found = list(all_run_reports().values())
    found += [record for path in sorted(RESULTS.rglob("*.json*")) if isinstance(record := loaded(path), dict)]
    return [record for record in found if record.get("kind") in kinds]


def kinds_of(record: type) -> tuple[str, ...]:
    """What stands in the file as its kind."""
    return get_args(get_type_hints(record)["kind"])


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed_where_it_is_asked_for(name: str) -> None:
    printed = json.loads(edgeconv("report", "--schema", name).text)
    assert printed == plain(schema(name))
    Draft202012Validator.check_schema(printed)
    assert all(part["additionalProperties"] is False for part in printed["$defs"].values() if "properties" in part)


@pytest.mark.parametrize("name", ["run", "bench", "ladder"])
def test_every_committed_record_is_of_its_class_and_comes_back_as_it_was(name: str) -> None:
    validator = validator_for(schema(name))  # compiled: the samples of all records are millions of numbers
    records = committed(name)
    assert records
    for record in records:
        validator.validate(record)
        (kind,) = (kind for kind in SCHEMAS[name][1] if record["kind"] in kinds_of(kind))
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


def first_bench() -> dict:
    (path,) = (RESULTS / "bench" / "h200").glob("gpu_earlier.json*")
    return loaded(path)


def without_times(record: dict) -> None:
    record["rows"][0]["timings"] = {}


def with_a_time_that_is_wrong(record: dict) -> None:
    record["rows"][0]["status"] = "wrong"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda record: record["rows"][0].pop("work"), "work` - at `$.rows[0]`"),
        (lambda record: record["rows"][1].update(odd=1), "unknown field `odd` - at `$.rows[1]`"),
        (lambda record: record["rows"][0]["counts"].update(nominal_flops=-1), "`$.rows[0].counts.nominal_flops`"),
        (lambda record: record["rows"][0]["options"].update(math="bf16"), "`$.rows[0].options.math`"),
        (lambda record: record.update(wall_seconds=float("nan")), "`$.wall_seconds`"),
        (without_times, "0 timings"),
        (with_a_time_that_is_wrong, "'wrong' with 2 timings"),
    ],
)
def test_a_damaged_record_is_one_line_that_says_where(tmp_path: Path, damage, words: str) -> None:
    record = first_bench()
    damage(record)
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(UsageError, match=r"^Record .*bench\.json. is damaged .*copy it once more") as caught:
        read_record(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_record_is_written_with_its_fields_in_order_and_never_with_a_nan() -> None:
    check = Check(True, 0.0, None, 0.5, 0, 0, np.int64(7), 1.0, None)
    written = to_json({"file": "\x1b\udcff é", "check": check}).decode()
    lines = written.splitlines()
    assert lines[1] == '  "file": "\\u001b\\udcff é",'
    assert list(json.loads(written)["check"]) == list(Check.__struct_fields__)
    assert json.loads(written)["check"]["checked_samples"] == 7
    check.relative_error = float("nan")
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json(check)
