"""An absolute home path of a person in skill, command or agent text (placeholders excluded).

Why: Private, and wrong elsewhere.

Bad:

    /home/<name>/notes

Good:

    ~/notes
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SEC009"
SEVERITY = "info"
FIX = "none"
ON = "text"
SINCE = "0.1.0"

HOME = re.compile(r"(?<![\w/.$}~])(?:/(?:home|Users)/([A-Za-z][\w.-]*)|[A-Za-z]:\\\\?Users\\\\?([A-Za-z][\w.-]*))[/\\]")
SAMPLE = re.compile(
    r"^(?:user(?:name)?|you|your[-_]?(?:name|user|username)?|me|name|username|john|jane|alice|bob|dev|developer|example|foo"
    r"|runner|"
    r"vscode|node|ubuntu|app|agent|claude|admin|shared|someone|person|<.*)$",
    re.IGNORECASE,
)


def check(text: TextFile) -> Iterator[Diagnostic]:
    if "/home/" not in text.text and "Users" not in text.text:
        return
    for match in HOME.finditer(text.text):
        if not SAMPLE.match(match[1] or match[2]):
            yield text.at(f"{shown(match[0])}...: the home folder of a person: private, and wrong elsewhere", span=match.span())
