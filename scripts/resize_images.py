"""Every picture of some folders in every size: the batch form of `edgeconv resize`, with the same options.

    python scripts/resize_images.py images/                            128 to 4096, beside the pictures
    python scripts/resize_images.py photos/ more/ -o sized --sizes 256:1024 --square

`python` is one that has edgeconv installed: .venv/bin/python after scripts/bootstrap.py. Smaller sizes that an earlier
run left among the pictures are no pictures of their own: see `edgeconv.io.resize.find_pictures`.

A picture that cannot be read or written is named and left out, and the others go on: exit code 1. Nothing that
exists is replaced without --overwrite, and no two pictures of one run may take the same name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from edgeconv.cli.commands import SETTINGS
from edgeconv.cli.mistakes import explained
from edgeconv.cli.parameters import spread
from edgeconv.core.option import Positional
from edgeconv.errors import EXIT_DIFFERENT, EdgeconvError, UsageError
from edgeconv.io.resize import find_pictures, parse_sizes, resize_file
from edgeconv.options import Reading, Replacing, Resizing


def resize_images(
    places: Annotated[list[Path], Positional("Folders of pictures, or pictures.")],
    resizing: Resizing,
    replacing: Replacing,
    reading: Reading,
) -> None:
    """Save every picture of some folders in several sizes as NAME_SIZE.png, aspect kept, 16 bits kept."""
    failed = 0
    try:
        wanted = parse_sizes(resizing.sizes)
        rules = reading.rules()
        pictures = find_pictures(places)
    except EdgeconvError as error:
        print(f"resize_images: error: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from None
    output = resizing.output
    taken: dict[tuple[Path | str, str], Path] = {}
    for picture in pictures:
        first = taken.setdefault((output or picture.parent, picture.stem.lower()), picture)
        try:
            if first is not picture:
                raise EdgeconvError(f"{picture}: has the same stem as {first}: give it its own output folder.")
            resized = resize_file(
                picture,
                wanted,
                folder=output,
                square=resizing.square,
                interpolation=resizing.interpolation,
                overwrite=replacing.overwrite,
                rules=rules,
            )
        except EdgeconvError as error:
            print(f"resize_images: error: {error}", file=sys.stderr)
            failed += 1
            continue
        if resized.notes:
            print(f"resize_images: note: {picture}: {', '.join(resized.notes)}", file=sys.stderr)
        for path in resized.files:
            print(path)
    if failed:
        print(f"resize_images: {failed} of {len(pictures)} pictures failed.", file=sys.stderr)
        raise typer.Exit(EXIT_DIFFERENT)


def main() -> int:
    """Read the command line as the commands do; a mistake in it is one line."""
    app = typer.Typer(**SETTINGS)
    app.command()(spread(resize_images))
    try:
        return app(prog_name="python3 scripts/resize_images.py", standalone_mode=False) or 0
    except Exception as error:
        mistake: Any = error
        if not hasattr(error, "format_message") and not isinstance(error, UsageError):
            raise
        said = explained(mistake, sys.argv[1:]) if hasattr(error, "format_message") else error
        print(f"resize_images: error: {said}", file=sys.stderr)
        return UsageError.exit_code


if __name__ == "__main__":
    sys.exit(main())
