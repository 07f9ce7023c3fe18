"""What `auto` means for a batch, which has one method and one device for all its pictures.

A resumed batch keeps the method of its ledger, since another method means other parameters, and every picture would be
filtered again. A chain is settled for the first picture, which represents all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from edgeconv.api.auto import Choice, choose
from edgeconv.batch.engines.cluster import Cluster
from edgeconv.batch.ledger import read_rows
from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import store_of
from edgeconv.batch.task import Task
from edgeconv.core.chains import ChainProblem
from edgeconv.core.option import AUTO
from edgeconv.core.problem import Problem
from edgeconv.errors import EdgeconvError, UnavailableError
from edgeconv.hardware.cuda.probe import cuda_missing_reason
from edgeconv.io.image import decode_image
from edgeconv.methods import METHODS

MOST_TRIED = 8
"""Pictures that are tried until one can be read."""


def settle(
    settings_for: Callable[[Choice], Settings], tasks: Iterable[Task], method: str, device: str, cluster: Cluster | None
) -> Settings:
    """The settings with `method` and `device` resolved for these pictures, here or in a cluster.

    Raises UsageError, UnavailableError.
    """

    def chosen(method: str, device: str, problem: Problem | ChainProblem | None) -> Choice:
        if cluster is not None:
            return cluster.choose(method, device, problem)
        return choose(method, device, problem)

    draft = settings_for(Choice(method, "cpu", "not settled yet"))
    if draft.jpeg_codec == "gpu" and device == AUTO and cuda_missing_reason() is None:
        device = "cuda"  # pictures that are decoded on a GPU do not cross the bus
    chain = draft.request.chain is not None
    if method == AUTO and draft.resume:
        for choice in _of_earlier_run(draft.output, device, settings_for):
            try:
                chosen(choice.method, choice.device, None)
            except UnavailableError:
                continue
            return settings_for(choice)
    # Only some methods compute chains, which is said before the first picture.
    return settings_for(chosen(method, device, _first_problem(tasks, draft) if chain else None))


def _of_earlier_run(output: str, device: str, settings_for: Callable[[Choice], Settings]) -> list[Choice]:
    """The choice that produced the last done row of a ledger, or none where that is unknown."""
    done = [row.parameters_sha256 for row in read_rows(output) if row.status == "done"]
    why = "as in the earlier run that this one resumes"
    choices = [Choice(entry.name, entry.device, why) for entry in METHODS if device in (AUTO, entry.device)]
    return [choice for choice in choices if done and settings_for(choice).parameters_sha256() == done[-1]]


def _first_problem(tasks: Iterable[Task], settings: Settings) -> Problem | ChainProblem | None:
    """The problem of the first picture that can be read."""
    readable = (task for task in tasks if task.problem is None)
    for task, _ in zip(readable, range(MOST_TRIED), strict=False):
        try:
            data = store_of(task.source).read(task.source, settings.rules)
            pixels = decode_image(data, task.source, settings.rules).pixels
            return settings.request.settled(pixels).picture_problem(pixels.shape, pixels.dtype)
        except EdgeconvError:  # reported in its row of the ledger
            continue
    return None
