"""A store of objects on this machine that speaks enough of S3 for s3fs: whole objects, no appending, no renaming.

with serving() as store:
    store.objects["bucket/in/a.png"] = data
    edgeconv("batch", "s3://bucket/in", ..., environment=store.environment)
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

STAMP = "2026-01-01T00:00:00.000Z"


@dataclass
class Store:
    """What is in it, by `bucket/key`, and how it is reached."""

    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """(method, path) of everything that was asked."""
    cut_short: bool = False
    """Keep only half of what is put, as no real store should."""
    environment: dict[str, str] = field(default_factory=dict)


@contextmanager
def serving() -> Iterator[Store]:
    """A store behind a port of the loopback address, as long as the block lasts."""
    store = Store()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *words: object) -> None:
            """Nothing is printed."""

        def answer(
            self, code: int, body: bytes = b"", length: int | None = None, kind: str = "application/xml"
        ) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.send_header("Last-Modified", formatdate(0, usegmt=True))
            self.send_header("ETag", f'"{hashlib.md5(body).hexdigest()}"')
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def key(self) -> str:
            key = unquote(urlsplit(self.path).path).strip("/")
            store.requests.append((self.command, key))
            return key

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            key = self.key()
            if self.headers.get("If-None-Match") == "*" and key in store.objects:
                words = b"<Error><Code>PreconditionFailed</Code><Message>it is there</Message></Error>"
                self.answer(412, words)
                return
            store.objects[key] = data[: len(data) // 2] if store.cut_short else data
            self.answer(200)

        def do_DELETE(self) -> None:
            store.objects.pop(self.key(), None)
            self.answer(204)

        def do_HEAD(self) -> None:
            data = store.objects.get(self.key())
            self.answer(404) if data is None else self.answer(200, b"", len(data))

        def do_GET(self) -> None:
            words = parse_qs(urlsplit(self.path).query)
            key = self.key()
            if "list-type" in words:
                self.answer(200, listing(store, key, words.get("prefix", [""])[0], words.get("delimiter", [""])[0]))
            elif not key:
                self.answer(200, buckets(store))  # as s3fs of before 2026 asks whether there is one
            elif key in store.objects:
                self.answer(200, store.objects[key], kind="application/octet-stream")
            else:
                self.answer(404, b"<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    store.environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    }
    thread = threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()


def buckets(store: Store) -> bytes:
    """The answer to ListBuckets."""
    names = sorted({name.partition("/")[0] for name in store.objects})
    entries = (f"<Bucket><Name>{name}</Name><CreationDate>{STAMP}</CreationDate></Bucket>" for name in names)
    return f"<ListAllMyBucketsResult><Buckets>{''.join(entries)}</Buckets></ListAllMyBucketsResult>".encode()


def listing(store: Store, bucket: str, prefix: str, delimiter: str) -> bytes:
    """The answer to ListObjectsV2."""
    keys = sorted(name.removeprefix(f"{bucket}/") for name in store.objects if name.startswith(f"{bucket}/{prefix}"))
    folders = set()
    entries = []
    for key in keys:
        rest = key.removeprefix(prefix)
        if delimiter and delimiter in rest:
            folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
            continue
        size = len(store.objects[f"{bucket}/{key}"])
        entries.append(
            f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size><LastModified>{STAMP}</LastModified>"
            "<ETag>x</ETag><StorageClass>STANDARD</StorageClass></Contents>"
        )
    entries += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)]
    head = f"<Name>{bucket}</Name><IsTruncated>false</IsTruncated><KeyCount>{len(entries)}</KeyCount>"
    return f"<ListBucketResult>{head}{''.join(entries)}</ListBucketResult>".encode()
