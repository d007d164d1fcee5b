"""`archive.url` is not `https`, points at a local or metadata host, or `sha256` is not 64 hex.

Why: Download refused.

Bad:

    "url": "http://x/p.zip"

Good:

    "url": "https://x/p.zip", "sha256": "…"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import local_host
from kernel_linter.words import host_of, shown

CODE = "MKT024"
SEVERITY = "error"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    if entry.kind != "archive":
        return
    url, digest = entry.fields.get("url"), entry.fields.get("sha256")
    if isinstance(url, str) and url:
        host = host_of(url)
        if not url.startswith("https://") or not host:
            yield entry.at(f"source.url: {shown(url)} must be an https URL", "source", "url")
        elif local_host(host) or re.match(r"169\.254\.|fe80|metadata\.", host):
            yield entry.at(f"source.url: {shown(url)} points at a local or metadata host", "source", "url")
    if digest is not None and not (isinstance(digest, str) and re.fullmatch(r"[0-9a-fA-F]{64}", digest)):
        yield entry.at(f"source.sha256: {shown(digest)} is not 64 hex digits", "source", "sha256")
