"""Small tests of words and texts that several rules share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

KEBAB = re.compile(r"^[a-z0-9]+(?:-[a-z0-9]+)*$")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:.")
STRAY = frozenset(("readme.md", "claude.md", "index.md", "changelog.md", "contributing.md", "agents.md", "license.md"))
_LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
OPTION_TOKEN = re.compile(r"\$\{user_config\.([A-Za-z0-9_.-]*)\}")
MAYBE_HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
HIDDEN = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\U000e0000-\U000e007f]"
                    "|(?<=[\x00-\u024f])[\u200c\u200d](?=[\x00-\u024f])"
                    "|(?<!^)\ufeff")


def nearest(word: str, known: Iterable[str], distance: int = 2) -> str:
    """The one known word at an edit distance of at most ``distance``, or nothing."""
    flat = re.sub(r"[-_]", "", word).lower()
    same = [k for k in known if re.sub(r"[-_]", "", k).lower() == flat and k != word]
    if len(same) == 1:
        return same[0]
    close = [k for k in known if k != word and abs(len(k) - len(word)) <= distance and len(k) > 3 and edits(word, k,
                                                                                                            distance) <= distance]
    return close[0] if len(close) == 1 else ""


def edits(a: str, b: str, limit: int) -> int:
    """The edit distance of two short words."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        new = [i]
        for j, right in enumerate(b, 1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (left != right)))
        row = new
        if min(row) > limit:
            return limit + 1
    return row[-1]


def is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(_SCHEME.match(text)) and (parts.scheme not in ("http", "https", "ws", "wss") or bool(parts.netloc))


def host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def links(text: str) -> Iterator[tuple[str, int]]:
    """Targets of Markdown links with their offsets."""
    for match in _LINK.finditer(text):
        yield match[1], match.start(1)


def local_link(target: str) -> str:
    """The path of a relative link without its fragment; empty for anything else."""
    from urllib.parse import unquote

    if re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:|^[#/~<$]|^\{", target) or any(c in target for c in "${}<>*|…") or target in ("url",
        "link", "path", "..."):
        return ""
    return unquote(target.split("#")[0].split("?")[0])


def counted(items: Iterable[Any]) -> dict[Any, list[int]]:
    """Value -> the positions at which it comes, for those that come more than once."""
    out: dict[Any, list[int]] = {}
    for index, item in enumerate(items):
        out.setdefault(item, []).append(index)
    return {k: v for k, v in out.items() if len(v) > 1}


def shown(value: Any, limit: int = 60) -> str:
    """A value for a message: short, on one line."""
    import json

    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError):
        text = type(value).__name__
    text = " ".join(re.sub(r"[\x00-\x1f\x7f]", "?", text).split())
    return repr(text if len(text) <= limit else text[:limit - 1] + "…") if isinstance(value,
        str) else text if len(text) <= limit else text[:limit - 1] + "…"
