"""Which cases of a matrix stand for the others where there is little time: the rest carries the mark `slow`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def few_then_slow(cases: Sequence[Any], few: int = 1) -> list[Any]:
    """The first `few` cases as they are; the others for a run that takes the slow tests too (.ci/run)."""
    return [*cases[:few], *(pytest.param(case, marks=pytest.mark.slow) for case in cases[few:])]
