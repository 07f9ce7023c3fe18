"""`edgeconv resize`: the same picture in other sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from edgeconv.cli.printing import say
from edgeconv.core.option import Positional
from edgeconv.options import PICTURE_HELP, Reading, Replacing, Resizing


def resize(
    picture: Annotated[Path, Positional(f"{PICTURE_HELP}.")],
    resizing: Resizing,
    replacing: Replacing,
    reading: Reading,
) -> None:
    """Save a picture in several sizes.

    As NAME_SIZE.png, with aspect and type unchanged: floats as .tiff, float16 as .npy.
    """
    from edgeconv.io.resize import parse_sizes, resize_file

    files, notes = resize_file(
        picture,
        parse_sizes(resizing.sizes),
        folder=resizing.output,
        square=resizing.square,
        overwrite=replacing.overwrite,
        rules=reading.rules(),
    )
    if notes:
        say(f"edgeconv: note: {picture}: {', '.join(notes)}", err=True)
    for path in files:
        say(path)
