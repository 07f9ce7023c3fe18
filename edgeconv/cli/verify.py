"""`edgeconv verify`: are the outputs of a batch still what they were?"""

from __future__ import annotations

from typing import Annotated

import typer

from edgeconv.cli.printing import say


def verify(
    folder: Annotated[str, typer.Argument(help="The output folder of 'edgeconv batch', or its URL.")],
) -> None:
    """Hash every output that the ledger calls done; name those that are missing or changed and end with 1.

    So do rows that cannot be read, as the outputs that they tell of are not looked at.
    """
    from edgeconv.batch import ledger
    from edgeconv.batch.stores import plain
    from edgeconv.errors import EXIT_DIFFERENT

    findings = ledger.verify(plain(folder))
    wrong = [finding for finding in findings if finding.state != "same"]
    for finding in wrong:
        say(f"{finding.state}: {finding.output}")
    damaged = ledger.damaged_lines(plain(folder))
    for place, number in damaged:
        say(f"unreadable: line {number:,} of {place}")
    say(f"{len(findings) - len(wrong)} of {len(findings)} outputs are as they were written.")
    if damaged:
        say(
            f"edgeconv: {len(damaged)} rows of the ledger cannot be read, and outputs may be missing from this count: "
            "'edgeconv batch --resume' makes sure of them; then remove those lines.",
            err=True,
        )
    if wrong or damaged:
        raise typer.Exit(EXIT_DIFFERENT)
