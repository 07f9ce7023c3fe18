"""Records as typed classes: from and to JSON, and the JSON Schema that a class stands for.

A record is a `Part` made of parts. Its fields carry their units in their names and their limits in their types, so that
reading a file checks it, and `edgeconv report --schema` makes the schema of a class when it is asked for.
What is written keeps the order of the fields.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta as Meta
from msgspec import Struct as Struct
from msgspec import field as field

from edgeconv import __version__
from edgeconv.core.text import visible_lines

Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
"""Seconds, rates, shares, errors: no negative number, and no NaN."""
Share = Annotated[float, Meta(ge=0, le=1)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Moment = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d", extra_json_schema={"format": "date-time"})]

T = TypeVar("T")

SCHEMA_VERSION = 1


def keyed_by(names: Sequence[str]) -> Meta:
    """For a dictionary: which keys it may have."""
    return Meta(extra_json_schema={"propertyNames": {"enum": list(names)}})


class Part(Struct, forbid_unknown_fields=True):
    """A record, or a part of one."""


class RecordHead(Part):
    """What every record begins with."""

    schema_version: Literal[1]
    edgeconv_version: str
    created_utc: Moment
    kind: str


def header() -> dict[str, Any]:
    """The fields of `RecordHead` but for the kind, of now."""
    return {
        "schema_version": SCHEMA_VERSION,
        "edgeconv_version": __version__,
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def plain(value: Any) -> Any:
    """As JSON gives it back: dictionaries for parts, lists for tuples, Python's numbers for NumPy's."""
    return _with_lists(msgspec.to_builtins(value, enc_hook=lambda scalar: scalar.item(), str_keys=True))


def _with_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_lists(inner) for name, inner in value.items()}
    return [_with_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def as_type(value: Any, kind: type[T]) -> T:
    """What `plain` gave, or JSON, as the class that it stands for; raises ValueError that names what is wrong where."""
    return msgspec.convert(value, kind)


def fields_of(part: Struct) -> dict[str, Any]:
    """The fields of a part, for another that has them too."""
    return msgspec.structs.asdict(part)


def finite(value: float) -> float | None:
    """The number, or None for an infinity or NaN, which JSON cannot hold."""
    return value if math.isfinite(value) else None


def to_json(record: Any) -> bytes:
    """UTF-8, two spaces, keys in the order of the record; raises ValueError on NaN."""
    return json_bytes(json.dumps(plain(record), indent=2, ensure_ascii=False, allow_nan=False))


def json_bytes(text: str) -> bytes:
    """JSON text as the content of a file, in which no name can do anything to a terminal."""
    return (visible_lines(text) + "\n").encode()


def schema_of(kinds: Sequence[type[Part]], title: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a record that is of one of some classes."""
    roots, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    root = {"oneOf": list(roots)} if len(kinds) > 1 else roots[0]
    for part in definitions.values():
        if "properties" in part:  # a field that is not known is a mistake, also where a class would pass over it
            part["additionalProperties"] = False
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **root, "$defs": definitions}
