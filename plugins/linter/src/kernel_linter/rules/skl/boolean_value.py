"""A boolean field holds something else than the accepted words; info for words that need host 2.1.218. Fix: `true`/`false`.

Why: The default applies: a manual-only skill becomes automatic.

Bad:

    disable-model-invocation: "sure"

Good:

    disable-model-invocation: true
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import AGENT, FLAG_WORDS, SKILL, TRUE_WORDS
from kernel_linter.words import shown

CODE = "SKL029"
SEVERITY = "error"
FIX = "safe"
ON = "text"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    fields = AGENT if text.kind == "agent" else SKILL
    for key, value in text.data.items():
        if fields.get(key) != "flag" or isinstance(value, bool) or value is None:
            continue
        word = str(value).strip().lower()
        if word in FLAG_WORDS and isinstance(value, str | int):
            right = "true" if word in TRUE_WORDS else "false"
            severity = None if word in ("true", "false") else "info"
            if severity:
                yield text.at(
                    f"{key}: {shown(value)} needs host 2.1.218 or newer; write {right}",
                    key,
                    severity="info",
                    fix=text.set_field(key, right, f"write {right}"),
                )
        else:
            yield text.at(f"{key}: {shown(value)} is neither true nor false; the default applies", key)
