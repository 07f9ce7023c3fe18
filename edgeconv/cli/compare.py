"""`edgeconv compare`: do the methods agree, and where not?"""

from __future__ import annotations

from typing import Annotated

from edgeconv.cli import comparing
from edgeconv.core.option import Positional
from edgeconv.options import (
    PICTURE_HELP,
    Accepting,
    Chaining,
    Cropping,
    Filtering,
    MethodOptions,
    Printing,
    Reading,
    Replacing,
    Showing,
)


def compare(
    picture: Annotated[str, Positional(f"{PICTURE_HELP}.")],
    filtering: Filtering,
    chaining: Chaining,
    cropping: Cropping,
    method: MethodOptions,
    accepting: Accepting,
    showing: Showing,
    reading: Reading,
    replacing: Replacing,
    printing: Printing,
) -> None:
    """Compare every method with the float64 reference.

    Those that work here filter the picture. Unless told otherwise, outputs of exact methods must be equal, others
    agree within their error bounds. Exit code 0: all agree; 1: one does not; 2 to 5: errors.
    """
    from edgeconv.diff import methods

    wanted = comparing.wanted(accepting, showing, reading, replacing)
    request, options, by_rule = filtering.request(chaining=chaining), method.options(), accepting.atol is None
    done = methods.run(picture, request, options, wanted, crop=cropping.crop, by_rule=by_rule, rules=reading.rules())
    comparing.finish(done, printing.json_only)
