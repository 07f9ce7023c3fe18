"""What mkdocs calls while it builds the site: pages that stand outside docs/, and links that lead out of it.

README.md, CONTRIBUTING.md and CHANGELOG.md stand at the top of the project, where people look for them; the site
has them as pages of their own. Links to sources cannot work on a site without a repository's address: they become
the path, set as code.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PROJECT = Path(__file__).resolve().parent.parent
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Their places in the project, and on the site."""

LINK = re.compile(r"(?P<before>!?\[(?P<text>[^\]]*)\]\()(?P<target>(?!https?:|#)[^)#\s]+)(?P<rest>[^)]*\))")
ATTRIBUTE = re.compile(r"(?P<before>\b(?:src|srcset)=\")(?P<target>[^\"]+)\"")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the top of the project."""
    from mkdocs.structure.files import File

    for source, place in PAGES.items():
        text = (PROJECT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as they must be on the site."""
    place = page.file.src_uri
    source = next((name for name, on_site in PAGES.items() if on_site == place), f"docs/{place}")
    return site_links(markdown, source)


def site_links(text: str, source: str) -> str:
    """`text` of the project's file `source` with every link as the site needs it."""

    def place(target: str) -> tuple[str, str | None]:
        """The path of a target in the project, and on the site: None for what is not there."""
        path = os.path.normpath(PurePosixPath(source).parent / target).replace(os.sep, "/")
        is_page = path.startswith("docs/") and (PROJECT / path).is_file()
        return path, PAGES.get(path) or (path.removeprefix("docs/") if is_page else None)

    def link(found: re.Match[str]) -> str:
        path, on_site = place(found["target"])
        if on_site is not None:
            return f"{found['before']}{on_site}{found['rest']}"
        words = found["text"].strip("`")
        return f"{words} (`{path}`)" if words != path else f"`{path}`"

    def attribute(found: re.Match[str]) -> str:
        return f'{found["before"]}{place(found["target"])[1] or found["target"]}"'

    return ATTRIBUTE.sub(attribute, LINK.sub(link, text))
