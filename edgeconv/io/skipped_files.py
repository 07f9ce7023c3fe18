"""Files that a search for pictures skips because of their suffix: they are counted and reported."""

from __future__ import annotations

from collections.abc import Mapping

from edgeconv.core.safe_text import visible


def suffix_counts_text(kinds: Mapping[str, int]) -> str:
    """`3 .gif, 1 .avif, 2 without a suffix`: numbers of files by suffix, the most frequent first."""
    by_number = sorted(kinds.items(), key=lambda kind: (-kind[1], not kind[0], kind[0]))
    return ", ".join(f"{number:,} {visible(suffix) or 'without a suffix'}" for suffix, number in by_number)
