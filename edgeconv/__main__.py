"""The command `edgeconv`, and `python -m edgeconv`: it listens to Ctrl-C first, and loads the command line then.

Loading takes some tens of milliseconds, in which an interrupt would otherwise be a traceback.
"""

from __future__ import annotations

from edgeconv.signals import end_at_once


def main() -> None:
    """Load the command line and run it."""
    end_at_once()
    from edgeconv.cli import main as run

    run()


if __name__ == "__main__":
    main()
