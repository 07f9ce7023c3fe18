"""The command `edgeconv`, and `python -m edgeconv`: it listens to Ctrl-C first, and loads the command line then.

Loading takes some tens of milliseconds, in which an interrupt would otherwise be a traceback.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading

from edgeconv.signals import end_at_once

TYPE_CHECKING = False  # as type checkers know it
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> None:
    """Load the command line and run it."""
    end_at_once()
    from edgeconv.cli import main as run

    try:
        run()
    except SystemExit as ended:
        if isinstance(ended.code, int) and sys.gettrace() is None and sys.getprofile() is None:
            _end(ended.code)
        raise


def _end(code: int) -> NoReturn:
    """End the process as Python does, but for taking its modules apart: a tenth of the time of a small picture.

    Threads are waited for, and what was registered for the end is called.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except Exception:  # the command has said what there is to say
            continue
    os._exit(code)


if __name__ == "__main__":
    main()
