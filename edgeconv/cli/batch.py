"""`edgeconv batch`: many pictures, none lost."""

from __future__ import annotations

from typing import Annotated

import typer

from edgeconv.cli.printing import say, say_lines
from edgeconv.core.option import Positional
from edgeconv.options import (
    Bank,
    BatchInput,
    BatchOutput,
    Chaining,
    Failing,
    Filtering,
    Masking,
    MethodChoice,
    MethodOptions,
    Overwriting,
    Printing,
    Reading,
    Workers,
)


def batch(
    inputs: BatchInput,
    target: BatchOutput,
    filtering: Filtering,
    masking: Masking,
    bank: Bank,
    chaining: Chaining,
    wanted: MethodChoice,
    method: MethodOptions,
    workers: Workers,
    failing: Failing,
    overwriting: Overwriting,
    reading: Reading,
    printing: Printing,
    places: Annotated[
        list[str] | None, Positional("Pictures, and folders of pictures; URLs such as s3://bucket/in too.")
    ] = None,
) -> None:
    """Filter many pictures, with a ledger of results.

    Ends with 1 where some failed.
    """
    import json

    from edgeconv.api.auto import Choice
    from edgeconv.batch import auto, plan
    from edgeconv.batch.codecs import require_jpeg_codec
    from edgeconv.batch.engines import engine_for
    from edgeconv.batch.engines.base import Connection
    from edgeconv.batch.ledger import ALL
    from edgeconv.batch.names import Names, refuse_collisions, split_off_outputs
    from edgeconv.batch.pipeline import Batch
    from edgeconv.batch.settings import Settings
    from edgeconv.batch.stores import plain
    from edgeconv.batch.text import links_note, note, skipped_files_note, summary_text
    from edgeconv.cli.progress import Progress
    from edgeconv.core.records import plain as to_plain
    from edgeconv.errors import EXIT_DIFFERENT, UsageError
    from edgeconv.io import encoding, temporary_files
    from edgeconv.methods import require
    from edgeconv.signals import stopping

    workers.refuse_impossible()
    failing.refuse_impossible()
    request = filtering.request(bank.filters, masking.threshold, chaining)
    listed = plan.read_list(inputs.files_from) if inputs.files_from is not None else []
    if not places and not listed:
        raise UsageError("No picture was named: give files or folders, or --files-from.")
    format = encoding.settle_bank(encoding.parse_format(target.format), request.filter, target.name)
    jobs, output = workers.parsed_jobs(), plain(target.output)

    def settings_for(choice: Choice) -> Settings:
        return Settings(
            request=request,
            choice=choice,
            output=output,
            names=Names.of(target.name, request, choice.method),
            options=method.options(),
            format=format,
            quality=encoding.parse_quality(target.quality, format),
            png_level=encoding.parse_png_level(target.png_level, format),
            jpeg_codec=target.jpeg_codec,
            share=ALL if inputs.shard is None else plan.parse_shard(inputs.shard),
            overwrite=overwriting.overwrite,
            resume=failing.resume or failing.retry_failed,
            retry_failed=failing.retry_failed,
            jobs=jobs,
            max_failures=1 if failing.fail_fast else failing.max_failures,
            rules=reading.rules(),
        )

    settings_for(Choice(wanted.method, "cpu", "to check the options before anything is made"))
    found = plan.find_tasks(places or [], inputs.recursive, output, listed)
    if found.links_passed_over:
        say(f"edgeconv: {links_note(found.links_passed_over)}", err=True)
    if found.passed_over:
        say(f"edgeconv: {skipped_files_note(found.passed_over)}", err=True)
    how = Connection(workers.worker_timeout, lambda text: say(f"edgeconv: {text}", err=True))
    with engine_for(workers.scheduler, workers.devices, wanted.device, jobs, len(found.tasks), how) as cluster:
        if cluster is not None and cluster.warning:
            say(f"edgeconv: {cluster.warning}", err=True)
        device = "cuda" if workers.devices is not None else wanted.device  # --devices are GPUs
        settings = auto.settle(settings_for, found.tasks, wanted.method, device, cluster)
        if cluster is None or settings.choice.device == "cpu":  # GPUs of other machines are theirs to ask
            require_jpeg_codec(settings, wanted.device)
            require(settings.choice.method, settings.choice.device, settings.options)
        named = (settings.output, settings.names, settings.format)
        tasks, outputs = split_off_outputs(found.tasks, *named) if settings.resume else (found.tasks, [])
        earlier_outputs = found.earlier_outputs + len(outputs)
        refuse_collisions(tasks, *named)
        if cluster is not None or settings.share != ALL:
            settings.names.refuse_late_collisions()
        running = Batch(tasks, settings, cluster, outputs)
        progress = Progress("pictures")
        with stopping(running.stop, temporary_files.remove_being_written) as received:
            summary = running.run(lambda now: progress.update(now.finished, len(running.tasks), note(now)))
        progress.clear()
    for source, error in summary.failures:
        say(f"edgeconv: failed: {error if source in error else f'{source}: {error}'}", err=True)
    say_lines(
        json.dumps(to_plain(summary.record(earlier_outputs, found.passed_over)), indent=2)
        if printing.json_only
        else summary_text(summary, settings, earlier_outputs, found.passed_over)
    )
    if received.exit_code is not None:
        raise typer.Exit(received.exit_code)
    if summary.failed:
        raise typer.Exit(EXIT_DIFFERENT)
