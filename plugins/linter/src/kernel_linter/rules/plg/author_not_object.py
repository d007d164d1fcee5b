"""`author` is a string, or an object without a non-empty `name`. Fix: wrap a string as `{"name": …}`.

Why: The plugin does not load. Tutorials show the string form.

Bad:

    {"author": "Acme"}

Good:

    {"author": {"name": "Acme"}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG011"
SEVERITY = "error"
FIX = "safe"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    author = target.object.get("author")
    if "author" not in target.object:
        return
    if isinstance(author, str):
        yield target.at(
            f"author: must be an object with a name, found {shown(author)}",
            "author",
            fix=target.set_value({"name": author}, "author", message="write it as an object") if author.strip() else None,
        )
    elif not isinstance(author, dict):
        yield target.at(f"author: must be an object with a name, found {shown(author)}", "author")
    elif not isinstance(author.get("name"), str) or not author["name"].strip():
        yield target.at("author.name: required: a non-empty text", "author", *(["name"] if "name" in author else []))
