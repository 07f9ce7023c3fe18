"""`edgeconv verify`: are the outputs of a batch still what they were?"""

from __future__ import annotations

from typing import Annotated

from edgeconv.cli.printing import say
from edgeconv.core.option import Only, Positional
from edgeconv.options import BatchOutput


def verify(
    folder: Annotated[str, Positional("The output folder of 'edgeconv batch', or its URL.")],
    recorded: Annotated[BatchOutput, Only(("ledger",))],
) -> int:
    """Check that a batch's outputs are unchanged.

    Every output that the ledger calls done is hashed; those that are missing or changed are named, and the command
    ends with 1. It does so too for rows that cannot be read, as their outputs are not looked at, for rows that
    name something outside the folder, which is not opened, and where there is no output to check. How many pictures
    failed, and so have no output, is said.
    """
    from edgeconv.batch.stores import plain
    from edgeconv.batch.verify import verify as verify_folder
    from edgeconv.core.text import counted
    from edgeconv.errors import EXIT_DIFFERENT, EXIT_OK

    found = verify_folder(plain(folder), recorded.ledger)
    wrong = [finding for finding in found.findings if finding.state != "same"]
    for finding in wrong:
        say(f"{finding.state}: {finding.output or repr('')}{f' {finding.detail}' if finding.detail else ''}")
    for place, number in found.damaged:
        say(f"unreadable: line {number:,} of {place}")
    total = len(found.findings)
    failed = f"{counted(found.failed, 'picture')} failed" if found.failed else ""
    if total:
        say(f"{total - len(wrong)} of {total} outputs are as they were written{f'; {failed}' if failed else ''}.")
    else:
        say(f"There is nothing to verify: {failed or 'the ledger names no picture'}, and no output was written.")
    if found.damaged:
        say(
            f"edgeconv: {counted(len(found.damaged), 'row')} of the ledger cannot be read, and outputs may be missing "
            "from this count: 'edgeconv batch --resume' makes sure of them; then remove what cannot be read.",
            err=True,
        )
    if any(finding.state == "foreign" for finding in wrong):
        say(
            "edgeconv: rows of the ledger name something other than a plain file inside the folder, which was not "
            "opened: find out who wrote them.",
            err=True,
        )
    if (wrong or not total) and found.in_progress:
        say("edgeconv: a batch is writing into this folder: verify it again when that has ended.", err=True)
    return EXIT_DIFFERENT if wrong or found.damaged or not total else EXIT_OK
