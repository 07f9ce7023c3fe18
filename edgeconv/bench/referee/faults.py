"""What a candidate can be disqualified for, each under one name that its row has."""

from __future__ import annotations

from typing import Literal

Fault = Literal[
    "stale output",
    "recognises addresses",
    "recognises pictures",
    "only the check's picture",
    "unwritten samples",
    "unfinished",
    "changed its input",
    "wrong when timed",
    "reduced arithmetic",
    "impossible time",
    "allocates while timed",
]

FAULTS: dict[Fault, str] = {
    "stale output": "it gave the output of an earlier run, or left it there, for another picture",
    "recognises addresses": "other pixels at an address that it had seen gave the output of the earlier ones",
    "recognises pictures": "a picture that has some rows of an earlier one gave the earlier output",
    "only the check's picture": "it is right for the picture of the check and wrong for one that was drawn at run time",
    "unwritten samples": "it left samples of the output as they were",
    "unfinished": "its output was not complete when the run was over, and was later",
    "changed its input": "the picture is another after its runs",
    "wrong when timed": "its output was right when it was checked and wrong while or after it was timed",
    "reduced arithmetic": "its errors are those of half precision, and it states a better one",
    "impossible time": "its time is clearly below that of only reading and writing the bytes",
    "allocates while timed": "its runs take memory from the GPU or give it back",
}
"""In a sentence; every fault has one."""


class FaultError(Exception):
    """A fault that was found in a candidate, and what was seen."""

    def __init__(self, fault: Fault, seen: str = "") -> None:
        super().__init__(f"{fault}: {FAULTS[fault]}{f' ({seen})' if seen else ''}")
        self.fault = fault
