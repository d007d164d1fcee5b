"""Words of a command as paths: home and working directory, variables that are known, globs."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from .paths import compile_glob
from .syntax import Part, Word
from .view import View

MAX_MATCHES = 2_000
"""Names that one glob may expand to before it counts as unknown."""
MAX_LOOKED_AT = 50_000
"""Names that are compared with one glob at most."""


class WordPath(NamedTuple):
    """``text``: the path, absolute or relative. ``glob``: its parts, compiled where they have a glob, or ``None``."""

    text: str
    glob: tuple[str | re.Pattern[str], ...] | None = None


def path_of(word: Word, view: View, cwd: str | None, *, variables: bool = False) -> WordPath | None:
    """The path that a word means; ``None`` where that is only known when it runs.

    :param variables: resolve ``$HOME`` and ``$PWD`` (deny and ask rules; an allow decision takes no variable).
    """
    if word.brace:
        return None
    parts = list(word.parts)
    if word.tilde:
        head = parts[0].text.partition("/")[0]
        base = {"~": view.home, "~+": cwd}.get(head)
        if base is None or ("/" not in parts[0].text and len(parts) > 1):
            return None
        parts[0:1] = [Part("q", base, base), Part("u", parts[0].text[len(head):], "")]
    for i, part in enumerate(parts):
        if part.kind == "v" and variables and part.text in ("HOME", "PWD"):
            value = view.home if part.text == "HOME" else cwd
            if value is None:
                return None
            parts[i] = Part("q", value, value)
    if any(p.kind in "vd" for p in parts):
        return None
    text = "".join(p.text for p in parts)
    if not word.glob:
        return WordPath(text)
    return WordPath(text, tuple(_split(parts)))


def _split(parts: list[Part]) -> list[str | re.Pattern[str]]:
    """The path cut at ``/``."""
    names: list[list[tuple[str, bool]]] = [[]]
    for part in parts:
        for c in part.text:
            if c == "/":
                names.append([])
            else:
                names[-1].append((c, part.kind == "u"))
    return [_name(chars) for chars in names]


def _name(chars: list[tuple[str, bool]]) -> str | re.Pattern[str]:
    if not any(live and c in "*?[" for c, live in chars):
        return "".join(c for c, _ in chars)
    return compile_glob("".join(c if live or c not in "*?[]\\!^-" else "\\" + c for c, live in chars), broken=False)


def expand(found: WordPath, view: View, base: str) -> list[str] | None:
    """What a glob stands for, as absolute paths with their ``..`` kept; the pattern itself where nothing matches.

    ``None``: too many names, or a step upwards behind a glob.
    """
    if found.glob is None:
        return [posixpath.join(base, found.text)]
    names = list(found.glob)
    first = next(i for i, name in enumerate(names) if not isinstance(name, str))
    if ".." in names[first:]:
        return None
    places = [posixpath.join(base, "/".join([*(n for n in names[:first] if isinstance(n, str)), ""]))]
    looked_at = 0
    for name in names[first:]:
        if isinstance(name, str):
            places = [posixpath.join(place, name) for place in places]
            continue
        hidden = name.pattern.startswith("\\.")
        following: list[str] = []
        for place in places:
            entries = view.entries(place) or []
            looked_at += len(entries)
            following += [posixpath.join(place, n) for n in entries if (hidden or not n.startswith(".")) and name.fullmatch(n)]
            if looked_at > MAX_LOOKED_AT or len(following) > MAX_MATCHES:
                return None
        places = following
    return places or [posixpath.join(base, found.text)]
