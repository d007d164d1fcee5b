"""Values that look like live credentials. Samples and placeholders are not."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from kernel_linter.source import File, JsonFile

_KNOWN = re.compile("|".join((
    r"(?P<anthropic_key>sk-ant-[A-Za-z0-9_-]{24,})", r"(?P<api_key>\bsk-(?:proj-)?[A-Za-z0-9]{32,})",
    r"(?P<stripe_key>\b[sr]k_live_[A-Za-z0-9]{20,})",
    r"(?P<github_token>\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{40,})",
    r"(?P<gitlab_token>\bglpat-[A-Za-z0-9_-]{20,})",
    r"(?P<slack_token>\bxox[abprs]-[A-Za-z0-9-]{20,})", r"(?P<aws_key>\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)",
    r"(?P<google_key>\bAIza[A-Za-z0-9_-]{35})",
    r"(?P<npm_token>\bnpm_[A-Za-z0-9]{36})", r"(?P<hf_token>\bhf_[A-Za-z0-9]{34,})",
    r"(?P<linear_key>\blin_api_[A-Za-z0-9]{32,})",
    r"(?P<private_key>-----BEGIN (?:RSA |EC |OPENSSH |DSA )?PRIVATE KEY-----\s*\n?[A-Za-z0-9+/=\\n\s]{60,})",
)))
_HINT = re.compile(r"\b(?:sk-|[sr]k_live_|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|npm_|hf_|lin_api_)|-----BEGIN")
"""How they all begin: fast to look for; the long expression is tried there only."""
_SAMPLE = re.compile(r"example|sample|your|xxxx|placeholder|changeme|dummy|fake|redacted|\.\.\.|test|0{6}|1234567|abcdefg"
                     r"|(.)\1{7}", re.IGNORECASE)
_KEY_NAME = re.compile(r"(?:^|[_-])(?:token|secret|password|passwd|apikey|api[_-]key|key|auth|authorization|credential)s?(?:$"
                       r"|[_-])", re.IGNORECASE)


def credentials(file: File) -> Iterator[tuple[int, int, str]]:
    """Spans of what looks live, with what it is."""
    for hint in _HINT.finditer(file.text):
        match = _KNOWN.match(file.text, hint.start())
        if match and not _SAMPLE.search(match[0]):
            yield match.start(), match.end(), (match.lastgroup or "credential").replace("_", " ")
    if isinstance(file, JsonFile) and file.object:
        yield from _in_maps(file)


def _in_maps(file: JsonFile) -> Iterator[tuple[int, int, str]]:
    """Random-looking values of key-like names in ``env`` and ``headers``."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), file.object)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, list):
            pending += [((*path, i), v) for i, v in enumerate(value) if isinstance(v, dict | list)]
        if not isinstance(value, dict):
            continue
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                pending.append(((*path, key), inner))
            elif path and path[-1] in ("env", "headers") and isinstance(inner,
                                                                        str) and _KEY_NAME.search(key) and random_looking(inner) \
                    and not _KNOWN.search(inner):
                yield (*file.locate((*path, key)), f"credential in {key}")


def random_looking(value: str) -> bool:
    """Whether a value has the length and the mixture of a generated secret and no variable in it."""
    word = value.removeprefix("Bearer ").removeprefix("Basic ").removeprefix("token ").strip()
    if not re.fullmatch(r"[A-Za-z0-9+/_=.-]{16,}", word) or "$" in word or _SAMPLE.search(word) or "/" in word[:3]:
        return False
    counts = [word.count(c) / len(word) for c in set(word)]
    entropy = -sum(p * math.log2(p) for p in counts)
    return entropy > 3.2 and bool(re.search(r"\d", word)) and bool(re.search(r"[A-Za-z]",
        word)) and not re.fullmatch(r"[a-z]+(?:[-_.][a-z0-9]+)*", word)


def masked(text: str) -> str:
    """The first characters only."""
    word = text.strip('"')
    return f"{word[:6]}… ({len(word)} characters)"
