"""Records as typed classes: from and to JSON, and the JSON Schema that a class stands for.

A record is a `Part` made of parts. Its fields carry their units in their names and their limits in their types, so that
reading a file checks it, and schemas are generated (`python3 -m edgeconv.export.schemas`), never written by hand.
What is written keeps the order of the fields.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta as Meta
from msgspec import Struct as Struct
from msgspec import field as field

from edgeconv.core.safe_text import visible_lines

Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
"""Seconds, rates, shares, errors: no negative number, and no NaN."""
Share = Annotated[float, Meta(ge=0, le=1)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]

T = TypeVar("T")


def keyed_by(names: Sequence[str]) -> Meta:
    """For a dictionary: which keys it may have."""
    return Meta(extra_json_schema={"propertyNames": {"enum": list(names)}})


class Part(Struct, forbid_unknown_fields=True):
    """A record, or a part of one."""


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


# --- schemas ------------------------------------------------------------------------------------------------------


def schema_text(kinds: Sequence[type[Part]], title: str) -> str:
    """The JSON Schema (2020-12) of a record that is of one of some classes: a line for each property."""
    roots, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    root = {"oneOf": list(roots)} if len(kinds) > 1 else roots[0]
    parts = [f'"$schema": "https://json-schema.org/draft/2020-12/schema",\n  "title": {_line(title)}']
    parts += [f"{_line(name)}: {_line(value)}" for name, value in root.items()]
    return (
        "{\n  "
        + ",\n  ".join([*parts, '"$defs": {\n' + ",\n".join(map(_definition, definitions.items()))])
        + "\n  }\n}\n"
    )


def _definition(named: tuple[str, dict[str, Any]]) -> str:
    name, found = named
    properties = found.pop("properties", {})
    found.pop("title", None)
    if properties:
        found["additionalProperties"] = False
    lines = ",\n".join(f"      {_line(key)}: {_line(_bare(value))}" for key, value in properties.items())
    head = _line(found)[:-1]
    return f"    {_line(name)}: {head}" + (f', "properties": {{\n{lines}\n    }}}}' if properties else "}")


def _bare(value: dict[str, Any]) -> dict[str, Any]:
    """Without defaults, and null last, wherever the version of msgspec puts it."""
    bare = {name: inner for name, inner in value.items() if name != "default"}
    if "anyOf" in bare:
        bare["anyOf"] = sorted(bare["anyOf"], key=lambda inner: inner == {"type": "null"})
    return bare


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
