"""`edgeconv view`: from the command line to the window."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from edgeconv.core.option import Given, Positional
from edgeconv.options import Masking, MethodChoice, MethodOptions, Reading


def view(
    filtering: Masking,
    choice: MethodChoice,
    method: MethodOptions,
    reading: Reading,
    given: Given,
    pictures: Annotated[list[str] | None, Positional("Pictures to open; the first is shown.")] = None,
) -> None:
    """Open a window with controls, edges and speed.

    Turn the controls, see edges and speed at once, compare methods side by side. Parameters that are not given are
    those of last time. Needs PySide6: pip install '.[gui]' in edgeconv's folder.
    """
    from edgeconv.errors import UsageError
    from edgeconv.io.files import is_standard_stream
    from edgeconv.signals import note

    if any(map(is_standard_stream, pictures or [])):
        raise UsageError(
            "The window reads a picture again when it saves, and standard input is gone by then: name a file."
        )
    from edgeconv.view.qt.start import require_parts, require_qt

    require_parts("QtCore")
    from edgeconv.view.render import RenderService, leave

    service = RenderService(reading.rules())
    if pictures:
        service.begin(pictures[0])  # while Qt is loaded and the window built
    signals = note()
    require_qt()
    from edgeconv.view.qt.app import run

    groups: tuple[object, ...] = (filtering, choice, method)
    named = {entry.name: getattr(group, entry.name) for group in groups for entry in fields(group)}  # type: ignore[arg-type]
    changes = {name: value for name, value in named.items() if name in given}
    leave(run(pictures or [], changes, service, signals))
