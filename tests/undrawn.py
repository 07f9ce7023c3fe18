"""Pages and files without their drawings: most tests ask what stands where, and drawing takes seconds."""

from __future__ import annotations

import pytest

EMPTY = '<svg width="100pt" height="50pt"></svg>'


def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each drawing be an empty one; what a drawing shows: test_shown_plots.py."""
    pytest.importorskip("matplotlib")
    from edgeconv.export import html, plot

    monkeypatch.setattr(html, "svg", lambda drawing: EMPTY)
    monkeypatch.setattr(plot, "svg", lambda drawing: EMPTY)
    monkeypatch.setattr(plot, "png", lambda drawing: drawing.title.encode())
