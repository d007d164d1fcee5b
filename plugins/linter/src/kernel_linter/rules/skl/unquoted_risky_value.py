"""A value that parses today but is one edit from breaking: plain text with `#`, leading `[`…`]` meant as text, `argument-hint:
[a]`.

Why: A list is not a hint; the text after `#` is lost.

Bad:

    argument-hint: [file]

Good:

    argument-hint: "[file]"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.frontmatter import quote
from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL059"
SEVERITY = "info"
FIX = "safe"
ON = "text"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for key, at in text.front.keys.items():
        value = text.data.get(key)
        if key == "argument-hint" and isinstance(value, list | dict):
            start, end = at.value
            raw = text.text[start:end].strip()
            yield text.at(
                f"argument-hint: {shown(raw)} is a list, not a text; quote it",
                key,
                fix=text.set_field(key, quote(raw), "quote it") if "\n" not in raw else None,
            )
        elif (
            key in ("description", "when_to_use", "argument-hint")
            and isinstance(value, str)
            and at.style == ""
            and (lost := re.match(r"[^\n]*?(\s#[^\n]*)", text.text[at.value[0] :]))
            and lost.end() > at.value[1] - at.value[0]
        ):
            yield text.at(
                f"{key}: the text behind '#' is lost; quote the value",
                key,
                fix=text.fix_span((at.value[0], at.value[0] + len(lost[0].rstrip())), quote(lost[0].strip()), "quote it"),
            )
