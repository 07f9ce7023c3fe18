"""`edgeconv doctor`: what works on this machine, what does not and why."""

from __future__ import annotations

import typer


def doctor() -> None:
    """Show which methods run here, why the others do not, what auto takes by which profile, libraries and devices."""
    from edgeconv import doctor as checkup

    typer.echo(checkup.text())
