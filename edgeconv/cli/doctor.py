"""`edgeconv doctor`: what works on this machine, what does not and why."""

from __future__ import annotations

from edgeconv.cli.printing import say


def doctor() -> None:
    """Show what works on this machine, and why not.

    Which methods run here, why the others do not, what auto takes, libraries and devices.
    """
    from edgeconv.api import doctor as checkup

    for line in checkup.text().split("\n"):
        say(line)
