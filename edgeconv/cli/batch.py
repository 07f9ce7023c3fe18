"""`edgeconv batch`: many pictures, none lost."""

from __future__ import annotations

from typing import Annotated

from edgeconv.cli.printing import say, say_lines
from edgeconv.core.option import Positional
from edgeconv.options import (
    Applying,
    BatchInput,
    BatchOutput,
    Failing,
    MethodChoice,
    MethodOptions,
    Reading,
    Workers,
)


def batch(
    inputs: BatchInput,
    target: BatchOutput,
    filtering: Applying,
    wanted: MethodChoice,
    method: MethodOptions,
    workers: Workers,
    failing: Failing,
    reading: Reading,
    places: Annotated[
        list[str] | None, Positional("Pictures, and folders of pictures; URLs such as s3://bucket/in too.")
    ] = None,
) -> int:
    """Filter many pictures, with a ledger of results.

    Ends with 1 where some failed.
    """
    import json

    from edgeconv.batch import tasks
    from edgeconv.batch.run import open_batch
    from edgeconv.batch.settings import ALL, Settings
    from edgeconv.batch.stores import plain
    from edgeconv.batch.summary import summary_text
    from edgeconv.cli.progress import Progress
    from edgeconv.core.records import plain as to_plain
    from edgeconv.errors import EXIT_DIFFERENT, EXIT_OK, UsageError
    from edgeconv.io import atomic, encoding
    from edgeconv.signals import stopping

    workers.parsed_jobs()
    request = filtering.request()
    listed = tasks.read_list(inputs.files_from) if inputs.files_from is not None else []
    if not places and not listed:
        raise UsageError("No picture was named: give files or folders, or --files-from.")
    format = encoding.settle_bank(encoding.parse_format(target.format), request.filter, target.name)
    settings = Settings(
        request=request,
        output=plain(target.output),
        method=wanted.method,
        device=wanted.device,
        options=method.options(),
        name=target.name,
        ledger=target.ledger,
        format=format,
        quality=encoding.parse_quality(target.quality, format),
        png_level=encoding.parse_png_level(target.png_level, format),
        jpeg_codec=target.jpeg_codec,
        share=ALL if inputs.shard is None else tasks.parse_shard(inputs.shard),
        overwrite=target.overwrite,
        resume=failing.resume or failing.retry_failed,
        retry_failed=failing.retry_failed,
        max_failures=1 if failing.fail_fast else failing.max_failures,
        rules=reading.rules(),
        workers=workers,
    )
    found = tasks.Inputs(places or [], listed, inputs.recursive)
    with open_batch(settings, found, lambda text: say(f"edgeconv: {text}", err=True)) as running:
        progress = Progress("pictures")
        with stopping(running.stop, atomic.remove_being_written) as received:
            summary = running.run(lambda now: progress.update(now.finished, now.pictures, now.note))
        progress.clear()
    if inputs.shard is not None and not summary.pictures:
        say(
            f"edgeconv: --shard {inputs.shard} has no picture: there are fewer pictures than shares.",
            err=True,
        )
    for failure in summary.failures:
        error = failure.error if failure.input in failure.error else f"{failure.input}: {failure.error}"
        say(f"edgeconv: failed: {error}", err=True)
    say_lines(json.dumps(to_plain(summary), indent=2) if target.json_only else summary_text(summary))
    return received.exit_code or (EXIT_DIFFERENT if summary.failed else EXIT_OK)
