"""`source` missing, or an object whose kind is unknown or lacks its required field.

Why: The entry cannot be installed; hosts before 2.1.120 drop the whole marketplace.

Bad:

    {"source": {"source": "github"}}

Good:

    {"source": {"source": "github", "repo": "acme/x"}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import SOURCES
from kernel_linter.words import shown

CODE = "MKT010"
SEVERITY = "error"
FIX = "none"
ON = "entry"
SINCE = "0.1.0"


def check(entry: Entry) -> Iterator[Diagnostic]:
    source = entry.source
    name = entry.data.get("name")
    if not isinstance(name, str) or not name:
        yield entry.at("name: required: a non-empty text", *(["name"] if "name" in entry.data else []))
    if not isinstance(source, str | dict) or not source:
        yield entry.at("source: required: a path or an object", *(["source"] if "source" in entry.data else []))
    elif isinstance(source, dict):
        kind = source.get("source")
        if not isinstance(kind, str) or kind not in SOURCES:
            yield entry.at(f"source: Invalid input: unknown kind {shown(kind)}; known: {', '.join(SOURCES)}", "source")
            return
        for key in SOURCES[kind][0]:
            if not isinstance(source.get(key), str) or not source[key]:
                yield entry.at(f"source.{key}: required for the kind {kind}", "source", *([key] if key in source else []))
        for key in SOURCES[kind][1]:
            if (
                key in source
                and key in ("ref", "sha", "version", "registry", "mode", "sha256")
                and not isinstance(source[key], str)
            ):
                yield entry.at(f"source.{key}: must be text", "source", key)
