"""`edgeconv batch`: many pictures, none lost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgeconv.cli import shared_options
from edgeconv.cli.printing import say, say_lines


def batch(
    places: Annotated[
        list[str] | None, typer.Argument(help="Pictures, and folders of pictures; URLs such as s3://bucket/in too.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder or URL for outputs and ledger (made if missing).")
    ] = "edges",
    files_from: Annotated[
        Path | None, typer.Option(help="Take paths from a text file, one a line; - for standard input.")
    ] = None,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Search folders deeper, keeping their shape.")
    ] = (False),
    filter_name: shared_options.FilterName = shared_options.DEFAULT_FILTER,
    kernel: shared_options.KernelText = None,
    kernel_file: shared_options.KernelFile = None,
    method: shared_options.MethodName = "auto",
    device: shared_options.DeviceWord = "auto",
    stride: shared_options.Stride = 1,
    padding: shared_options.Padding = "same",
    border: shared_options.BorderWord = "zero",
    channels: shared_options.ChannelsWord = "mix",
    luma: shared_options.LumaWord = "bt601",
    output_mode: shared_options.OutputModeWord = None,
    name: Annotated[
        str,
        typer.Option(help="Output names: {stem} {source_ext} {filter} {method} {stride} {width} {height} {ext}."),
    ] = shared_options.DEFAULT_NAME,
    format: Annotated[
        str | None, typer.Option(help="png, jpg, tiff, webp, bmp or npy. Default: the one that keeps every bit.")
    ] = None,
    quality: Annotated[int | None, typer.Option(help="1 to 100, for --format jpg or webp.")] = None,
    png_level: Annotated[
        int | None, typer.Option(help="PNG: 0 (stored), 1 (fastest, the default) to 9 (smallest).")
    ] = (None),
    jpeg_codec: Annotated[
        str,
        typer.Option(help="Who decodes and encodes JPEG: host, or GPU (nvImageCodec; see docs/batch.md)."),
    ] = "host",
    jobs: Annotated[str, typer.Option("--jobs", "-j", help="Pictures in hand at once; auto is one a usable core.")] = (
        "auto"
    ),
    scheduler: Annotated[
        str | None, typer.Option(help="Let a Dask cluster work: its address, or local for one of this machine's own.")
    ] = None,
    worker_timeout: Annotated[
        float, typer.Option(help="Seconds to wait when a cluster has no worker left; what is left then fails.")
    ] = 60,
    tls_ca: Annotated[
        str | None, typer.Option(help="TLS to --scheduler ADDRESS: a PEM file with the authority that signed for it.")
    ] = None,
    tls_cert: Annotated[str | None, typer.Option(help="... with your own certificate.")] = None,
    tls_key: Annotated[str | None, typer.Option(help="... and with its key.")] = None,
    devices: Annotated[
        str | None, typer.Option(help="Several GPUs of this machine, one worker each: all, or numbers such as 0,1.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Pass over what the ledger calls done and is unchanged.")] = (
        False
    ),
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Resume, and try failed ones again.")] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Filter the others when pictures fail. This is the default.")
    ] = (False),
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failure.")] = False,
    max_failures: Annotated[int | None, typer.Option(help="Stop at this many failures.")] = None,
    shard: Annotated[str | None, typer.Option(help="Only a share of the pictures: 2/8 is the second of eight.")] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace what is not an earlier result of the same input and parameters."),
    ] = (False),
    threads: shared_options.Threads = None,
    workspace_limit: shared_options.WorkspaceLimit = shared_options.DEFAULT_WORKSPACE_LIMIT,
    math: shared_options.MathWord = "fma",
    gemm: shared_options.GemmWord = "own",
    cudnn_find: shared_options.CudnnFind = False,
    max_pixels: shared_options.MaxPixels = shared_options.DEFAULT_MAX_PIXELS,
    max_bytes: shared_options.MaxBytes = shared_options.DEFAULT_MAX_BYTES,
    strict: shared_options.Strict = False,
    json_only: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Filter many pictures into a folder, with a ledger of what became of each; ends with 1 where some failed."""
    import json

    from edgeconv.batch import auto, encoding, plan
    from edgeconv.batch.codecs import require_jpeg_codec
    from edgeconv.batch.engines import engine_for
    from edgeconv.batch.engines.connection import Connection, parse_certificates
    from edgeconv.batch.ledger import ALL
    from edgeconv.batch.names import Names, refuse_collisions, split_off_outputs
    from edgeconv.batch.pipeline import Batch
    from edgeconv.batch.settings import Settings
    from edgeconv.batch.stores import plain
    from edgeconv.batch.text import links_note, note, skipped_files_note, summary_text
    from edgeconv.cli.options import chosen_filter, parse_jobs, parse_options, parse_read_rules
    from edgeconv.cli.stopping import stopping
    from edgeconv.core.records import plain as to_plain
    from edgeconv.core.request import make_request
    from edgeconv.errors import EXIT_DIFFERENT, UsageError
    from edgeconv.io import temporary_files
    from edgeconv.methods import require
    from edgeconv.run.progress import Progress
    from edgeconv.runtime.auto import Choice

    if not worker_timeout >= 0:
        raise UsageError(f"--worker-timeout {worker_timeout:g} is not a number of seconds from 0.")
    certificates = parse_certificates(tls_ca, tls_cert, tls_key)
    if max_failures is not None and max_failures < 1:
        raise UsageError(f"--max-failures {max_failures} is not a whole number from 1.")
    if keep_going and (fail_fast or max_failures is not None):
        raise UsageError("--keep-going excludes --fail-fast and --max-failures.")
    request = make_request(
        chosen_filter(filter_name, kernel, kernel_file),
        channels=channels,
        luma=luma,
        stride=stride,
        padding=padding,
        border=border,
        output_mode=output_mode,
    )
    listed = plan.read_list(files_from) if files_from is not None else []
    if not places and not listed:
        raise UsageError("No picture was named: give files or folders, or --files-from.")
    output_format = encoding.parse_format(format)

    def settings_for(choice: Choice) -> Settings:
        return Settings(
            request=request,
            choice=choice,
            output=plain(output),
            names=Names(name, request.filter.name, choice.method, request.stride),
            options=parse_options(workspace_limit, threads, math, gemm, cudnn_find),
            format=output_format,
            quality=encoding.parse_quality(quality, output_format),
            png_level=encoding.parse_png_level(png_level, output_format),
            jpeg_codec=encoding.parse_jpeg_codec(jpeg_codec),
            share=ALL if shard is None else plan.parse_shard(shard),
            overwrite=overwrite,
            resume=resume or retry_failed,
            retry_failed=retry_failed,
            jobs=parse_jobs(jobs),
            max_failures=1 if fail_fast else max_failures,
            rules=parse_read_rules(max_pixels, max_bytes, strict),
        )

    settings_for(Choice(method, "cpu", "to check the words before anything is made"))
    found = plan.find_tasks(places or [], recursive, plain(output), listed)
    if found.links_passed_over:
        say(f"edgeconv: {links_note(found.links_passed_over)}", err=True)
    if found.passed_over:
        say(f"edgeconv: {skipped_files_note(found.passed_over)}", err=True)
    how = Connection(certificates, worker_timeout, lambda text: say(f"edgeconv: {text}", err=True))
    with engine_for(scheduler, devices, device, parse_jobs(jobs), len(found.tasks), how) as cluster:
        if cluster is not None and cluster.warning:
            say(f"edgeconv: {cluster.warning}", err=True)
        settings = auto.settle(settings_for, found.tasks, method, device, cluster)
        if cluster is None or settings.choice.device == "cpu":  # GPUs of other machines are theirs to ask
            require_jpeg_codec(settings, device)
            require(settings.choice.method, settings.choice.device, settings.options)
        named = (settings.output, settings.names, settings.format)
        tasks, outputs = split_off_outputs(found.tasks, *named) if settings.resume else (found.tasks, [])
        earlier_outputs = found.earlier_outputs + len(outputs)
        refuse_collisions(tasks, *named)
        if cluster is not None or settings.share != ALL:
            settings.names.refuse_late_collisions()
        work = Batch(tasks, settings, cluster, outputs)
        progress = Progress(len(work.tasks), "pictures")
        with stopping(work.stop, temporary_files.remove_being_written) as received:
            summary = work.run(lambda now: progress.update(now.finished, note(now)))
        progress.close()
    for source, error in summary.failures:
        say(f"edgeconv: failed: {error if source in error else f'{source}: {error}'}", err=True)
    say_lines(
        json.dumps(to_plain(summary.record(earlier_outputs, found.passed_over)), indent=2)
        if json_only
        else summary_text(summary, settings, earlier_outputs, found.passed_over)
    )
    if received.exit_code is not None:
        raise typer.Exit(received.exit_code)
    if summary.failed:
        raise typer.Exit(EXIT_DIFFERENT)
