"""From the arguments of `edgeconv diff` to the comparison: pictures or folders, and which is the reference."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from edgeconv.difference import folders, results
from edgeconv.difference.inputs import FileInput, parse_conversions
from edgeconv.errors import UsageError


def run_request(
    names: Sequence[str], reference: str | None, convert: str | None, update: bool, wanted: results.Wanted
) -> results.DiffOutcome:
    """Do what was asked for. Raises EdgeconvError; then nothing is written."""
    conversions = parse_conversions(convert)
    if any(map(os.path.isdir, names)):
        if len(names) != 2 or reference is not None or not all(map(os.path.isdir, names)):
            raise UsageError("A folder is compared with one other folder: name two, without --reference.")
        return folders.run(Path(names[0]), Path(names[1]), conversions, wanted, update)
    if update:
        raise UsageError("--update is for two folders: name a baseline folder and a new one.")
    everything = list(names) if reference is None else [reference, *names]
    if len(everything) < 2:
        raise UsageError("One picture alone cannot be compared: name another, or a --reference.")
    if everything.count("-") > 1:
        raise UsageError("Standard input can be only one of the pictures: name a file for the others.")
    first, *others = (FileInput(name, conversions, wanted.rules, all_pages=True) for name in everything)
    return results.run(first, others, wanted)
