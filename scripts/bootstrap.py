"""Set edgeconv up in .venv beside this project, with nothing but Python 3.11 and pip, and run it or its tests.

    python3 scripts/bootstrap.py run  [edgeconv run's own arguments]     default: images/input_2048.png, to edges/ here
    python3 scripts/bootstrap.py test [pytest's own arguments]           default: without the tests marked slow
    python3 scripts/bootstrap.py test -m ""                              all tests
    python3 scripts/bootstrap.py test --extras dev [pytest's own arguments]

It needs no root, no compiler and no activation, and is safe to repeat. Where nvidia-smi names a driver, the CUDA extra
that fits it is installed too. Only the standard library is used here.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
ENVIRONMENT = PROJECT / ".venv"
MINIMUM_PYTHON = (3, 11)

LARGE_SIZES = (256, 512, 1024, 2048, 4096)
"""Of the pictures in images/ that are too large to keep in the repository."""

TEST_DEFAULTS = ("-n", "auto", "--dist", "worksteal", "-m", "not slow")
"""`auto`: one process more than processors (tests/conftest.py). What pytest is given after these takes their place."""

DEFAULT_JOB = ("images/input_2048.png", "--output", "edges/")
"""Of `run` with nothing after it; the project's own picture and folder, wherever it is called from."""

CUDA_EXTRAS = ((580, "cuda13"), (525, "cuda12"))
"""Least NVIDIA driver branch for each extra, newest first (CUDA Compatibility, minor version compatibility)."""


def cuda_extra(driver_version: str) -> str | None:
    """The extra for a driver such as `580.159.04`, or None for one that is too old or not a version."""
    branch = re.match(r"\d+", driver_version)
    if branch is None:
        return None
    return next((extra for least, extra in CUDA_EXTRAS if int(branch.group()) >= least), None)


def driver_version() -> str:
    """What nvidia-smi says of the first GPU, or nothing."""
    command = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    lines = answer.stdout.split()
    return lines[0] if answer.returncode == 0 and lines else ""


def environment_python() -> Path:
    """The interpreter of .venv, made without pip where it is missing (Debian's Python has no ensurepip)."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=False, symlinks=True)
    return python


def install(python: Path, extras: list[str]) -> None:
    """Install the project, editable, with this interpreter's pip working on the other environment."""
    target = f"{PROJECT}[{','.join(extras)}]" if extras else str(PROJECT)
    print(
        f"bootstrap: pip installs edgeconv and what it needs into {ENVIRONMENT}; the first time takes minutes",
        flush=True,
    )
    pip = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check")
    subprocess.run((*pip, "install", "--quiet", "--editable", target), check=True)


def main() -> int:
    """Install what the word needs, then do it; the exit code is that of what was run."""
    if sys.version_info < MINIMUM_PYTHON:
        least = ".".join(map(str, MINIMUM_PYTHON))
        print(f"bootstrap: error: edgeconv needs Python {least} or newer.", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("what", choices=("run", "test"), help="Run a picture, or the tests.")
    parser.add_argument("--extras", default="", help="More extras to install, with commas.")
    arguments, rest = parser.parse_known_args()

    extras = [name for name in arguments.extras.split(",") if name]
    if arguments.what == "test":
        extras.append("test")
    gpu = cuda_extra(driver_version())
    if gpu is not None:
        extras.append(gpu)
    python = environment_python()
    try:
        install(python, extras)
    except subprocess.CalledProcessError as error:
        said = f"pip could not install edgeconv (exit {error.returncode}); see pip's output above."
        print(f"bootstrap: error: {said}", file=sys.stderr)
        return 2
    if arguments.what == "test":
        # Some 200 processes of edgeconv start: what the first one compiles of it is kept for the others.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        tests = (str(python), "-m", "pytest", *TEST_DEFAULTS, *rest)
        return subprocess.run(tests, cwd=PROJECT, env=environment, check=False).returncode
    missing = [str(size) for size in LARGE_SIZES if not (PROJECT / "images" / f"input_{size}.png").exists()]
    if missing:
        words = (python, PROJECT / "scripts" / "make_input.py", "--sizes", ",".join(missing))
        subprocess.run(words, cwd=PROJECT, check=True)
    job = rest or [str(PROJECT / word) if "/" in word else word for word in DEFAULT_JOB]
    return subprocess.run((python, "-m", "edgeconv", "run", *job), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
