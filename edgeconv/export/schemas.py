"""The JSON Schemas in the package, generated from the classes of the records.

python3 -m edgeconv.export.schemas            write them
python3 -m edgeconv.export.schemas --check    only compare; exit code 1 where one is out of date
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from edgeconv.core.records import schema_text
from edgeconv.io.files import parse_json
from edgeconv.run.report import RunReport

PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class RecordSchema:
    """A schema: its file in the package, and the class (or the union of classes) that it describes."""

    file: str
    title: str
    kind: Any

    def text(self) -> str:
        """As it should be."""
        return schema_text(self.kind, self.title)

    def stored(self) -> str:
        """As it is in the package."""
        return files("edgeconv").joinpath(self.file).read_text(encoding="utf-8")

    def schema(self) -> dict[str, Any]:
        """The same, as JSON holds it."""
        loaded: dict[str, Any] = parse_json(self.stored())
        return loaded


RUN = RecordSchema("run/report.schema.json", "edgeconv run report", RunReport)

SCHEMAS: tuple[RecordSchema, ...] = (RUN,)


def main() -> int:
    """Write the schemas, or with --check say which are out of date."""
    stale = [entry for entry in SCHEMAS if not (PACKAGE / entry.file).exists() or entry.stored() != entry.text()]
    for entry in stale:
        print(entry.file)
        if "--check" not in sys.argv:
            (PACKAGE / entry.file).write_text(entry.text(), encoding="utf-8", newline="\n")
    return int("--check" in sys.argv and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
