"""What a process has found out and keeps, forgotten: as in a process that has just started, but for compiled code."""

from __future__ import annotations

import sys

from edgeconv.api.convolve import PLANS

COMPILED = ("edgeconv.hardware.cpu.", "edgeconv.hardware.cuda.", "edgeconv.methods.cpu.", "edgeconv.methods.cuda.")
"""What is compiled is kept: its key is its source."""


def clear_caches() -> None:
    """Nothing that one test file made known to the package is known to the next."""
    PLANS.plans.clear()
    for name, module in list(sys.modules.items()):
        if name.startswith("edgeconv.") and not name.startswith(COMPILED):
            for owner in list(vars(module).values()):
                for each in (owner, *(vars(owner).values() if isinstance(owner, type) else ())):
                    if callable(clear := getattr(each, "cache_clear", None)):
                        clear()
