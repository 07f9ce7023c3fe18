"""`edgeconv compare`: do the methods agree, and where not?"""

from __future__ import annotations

from typing import Annotated

from edgeconv.cli import comparing
from edgeconv.core.option import Positional
from edgeconv.options import (
    PICTURE_HELP,
    Accepting,
    Bank,
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
    bank: Bank,
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
    from edgeconv.difference import methods

    wanted = comparing.wanted(accepting, showing, reading, replacing)
    request, by_rule = filtering.request(bank.filters, chaining=chaining), accepting.atol is None
    rules = reading.rules()
    done = methods.run(picture, request, method.options(), wanted, crop=cropping.crop, by_rule=by_rule, rules=rules)
    comparing.finish(done, printing.json_only)
