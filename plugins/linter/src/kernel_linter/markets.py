"""Questions about catalogues that several rules ask."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kernel_linter.catalogue import Marketplace
from kernel_linter.rule import Diagnostic
from kernel_linter.source import Pointer
from kernel_linter.tables import RESERVED_MARKETPLACES
from kernel_linter.words import edits, nearest, shown

_VENDOR = re.compile(r"github\.com[:/](?:anthropics|anthropic)/", re.IGNORECASE)
_LIMITS = {"cwd": (10, 256), "cli": (10, 64), "hosts": (20, 128), "filesRead": (10, 256), "manifestDeps": (10, 256)}


def claims_vendor(market: Marketplace) -> bool:
    """Whether the owner calls itself the vendor, which anybody can write."""
    owner = market.data.get("owner")
    name = owner.get("name") if isinstance(owner, dict) else None
    return isinstance(name, str) and bool(re.fullmatch(r"anthropic(?:s|, pbc)?", name.strip().lower()))


def of_vendor(market: Marketplace) -> bool:
    """Whether the git remote of the repository is one of the vendor's."""
    try:
        with open(market.root / ".git" / "config", "rb") as file:
            return bool(_VENDOR.search(file.read(20_000).decode("utf-8", "replace")))
    except (OSError, ValueError):
        return False


def imitates(name: str) -> bool:
    """Whether a name looks like a reserved one: the same words in another order or with more, or one letter away."""
    flat = name.lower()
    if any(abs(len(flat) - len(r)) <= 1 and len(r) > 8 and edits(flat, r, 1) <= 1 for r in RESERVED_MARKETPLACES):
        return True
    words = set(re.split(r"[-_.]+", flat))
    vendor, product = words & {"anthropic", "anthropics"}, words & {"claude"}
    things = words & {"plugin", "plugins", "marketplace", "skills", "community"}
    official = words & {"official", "verified"}
    return bool((vendor and things) or (product and things and official) or (flat.startswith("claude-code-plugins")
                                                                             and len(words) > 3 and official))


def unknown(market: Marketplace, named: str, table: Iterable[str], *pointer: Pointer) -> Diagnostic:
    """A key that nobody reads, with a repair where one known key is near."""
    near = nearest(str(pointer[-1]), table)
    node = market.file.node(*pointer[:-1])
    free = near and node is not None and near not in node.children
    return market.at(f"{named if len(named) < 60 else shown(named)}: unknown field, ignored" + (f"; did you mean {near}?"
                                                                                                if near else ""), *pointer,
                     span=market.file.key_span(*pointer),
                     fix=market.file.rename_key(near, *pointer, message=f"rename it to {near}") if free else None)


def wrong_relevance(value: dict[str, Any]) -> Iterator[tuple[tuple[Pointer, ...], str]]:
    """What is wrong with a ``relevance`` object (plugins contract, 6.2)."""
    for key in value:
        if key not in ("topic", "signals"):
            yield (key,), f"unknown key {shown(key)}"
    topic = value.get("topic")
    if topic is not None and not (isinstance(topic, str) and len(topic) <= 64):
        yield ("topic",), "topic must be text of at most 64 characters"
    signals = value.get("signals")
    if not isinstance(signals, dict) or not any(k in signals and signals[k] for k in _LIMITS):
        yield ("signals",) if "signals" in value else (), f"needs at least one signal: {', '.join(_LIMITS)}"
        return
    for key, items in signals.items():
        if key not in _LIMITS:
            yield ("signals", key), f"unknown signal {shown(key)}"
            continue
        most, length = _LIMITS[key]
        if not isinstance(items, list) or len(items) > most:
            yield ("signals", key), f"{key} must be a list of at most {most}"
            continue
        for index, item in enumerate(items):
            if wrong := _wrong_signal(key, item, length):
                yield ("signals", key, index), f"{key}: {wrong}"


def _wrong_signal(key: str, item: Any, length: int) -> str:
    from kernel_linter.jsregex import problem

    if key == "manifestDeps":
        if not isinstance(item, dict) or not all(isinstance(item.get(k), str) for k in ("file", "pattern")):
            return "needs file and pattern"
        return next((f"{k}: {p}" for k in ("file",
                                           "pattern") if (p := "too long" if len(item[k]) > length else problem(item[k]))), "")
    if not isinstance(item, str) or not item or len(item) > length:
        return f"must be text of 1 to {length} characters"
    if key == "hosts" and not re.fullmatch(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", item):
        return f"{shown(item)} must be a bare lower-case host, without scheme and port"
    return ""
