"""Texts for people and logs, without what looks like a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SECRET = re.compile(
    r"(?i)(://)[^/@\s]*@"
    r"|((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]+"
    r"|([?&;](?:[a-z0-9_-]*(?:token|key|secret|password|passwd|signature|sig|code|auth)[a-z0-9_-]*)=)[^&\s]+")
_FLAG = re.compile(r"(?i)^--?[a-z0-9-]*(?:token|key|secret|password|passwd|passphrase|credential|auth)[a-z0-9-]*(=?)")
_NOT_SECRET = re.compile(r"^\$\{\w+\}$")


def without_secrets(text: str) -> str:
    """User information and secret parameters of addresses, and credentials of headers, become ``***``."""
    return _SECRET.sub(lambda m: f"{m[1] or ''}{m[2] or ''}{m[3] or ''}***" + ("@" if m[1] else ""), text)


def arguments(words: Iterable[str]) -> list[str]:
    """A command's arguments; the value of a flag that is named like a secret is hidden, a reference to a variable is not."""
    shown: list[str] = []
    hide = False
    for word in words:
        flag = _FLAG.match(word)
        if hide and not word.startswith("-"):
            shown.append(word if _NOT_SECRET.match(word) else "***")
            hide = False
            continue
        hide = flag is not None and not flag[1]
        if flag is not None and flag[1] and not _NOT_SECRET.match(word[flag.end():]):
            word = word[:flag.end()] + "***"
        shown.append(without_secrets(word))
    return shown
