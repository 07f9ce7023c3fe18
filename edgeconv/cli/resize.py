"""`edgeconv resize`: the same pictures in other sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from edgeconv.cli.printing import say, say_error
from edgeconv.core.option import Positional
from edgeconv.options import PICTURE_HELP, Reading, Resizing


def resize(
    places: Annotated[list[Path], Positional(f"{PICTURE_HELP}; folders of them.")],
    resizing: Resizing,
    reading: Reading,
) -> int:
    """Save pictures in several sizes.

    As NAME_SIZE.png, with aspect and type unchanged: floats as .tiff, float16 as .npy. Of several pictures one that
    fails stops no other; exit code 1 then.
    """
    from edgeconv.core.text import counted
    from edgeconv.errors import EXIT_DIFFERENT, EXIT_OK, EdgeconvError
    from edgeconv.io.resize import find_pictures, parse_sizes, resize_files

    sizes, rules, pictures = parse_sizes(resizing.sizes), reading.rules(), find_pictures(places)
    failed = 0
    for picture, resized in resize_files(
        pictures,
        sizes,
        folder=resizing.output,
        square=resizing.square,
        overwrite=resizing.overwrite,
        rules=rules,
    ):
        if isinstance(resized, EdgeconvError):
            if pictures == places[:1]:  # one picture, and no folder
                raise resized
            say_error(resized, picture)
            failed += 1
            continue
        if resized.notes:
            say(f"edgeconv: note: {picture}: {', '.join(resized.notes)}", err=True)
        for path in resized.files:
            say(path)
    if failed:
        say(f"edgeconv: {failed} of {counted(len(pictures), 'picture')} failed.", err=True)
    return EXIT_DIFFERENT if failed else EXIT_OK
