"""What managed settings allow: which marketplaces, which plugins, which kinds of source (contract, 9). Asked before any
network or disk work."""

from __future__ import annotations

import re
from typing import Any

from kernel import Settings
from kernel_manager.errors import ManagerError
from kernel_manager.sources import Source


def check_marketplace(settings: Settings, source: dict[str, Any]) -> None:
    """:raises ManagerError: ``blocked-by-policy``."""
    hint = str(settings.managed("pluginTrustMessage") or "ask who manages this machine")
    blocked = settings.managed("blockedMarketplaces")
    if isinstance(blocked, list) and any(_same_repository(entry, source) for entry in blocked):
        raise ManagerError("blocked-by-policy", f"the marketplace {_shown(source)} is blocked by managed settings", hint=hint)
    allowed = settings.managed("strictKnownMarketplaces")
    if allowed is None:
        allowed = settings.managed("allowedMarketplaces")
    if allowed is None:
        return
    if not isinstance(allowed, list) or not any(_allows(entry, source) for entry in allowed):
        raise ManagerError("blocked-by-policy", f"the marketplace {_shown(source)} is none that managed settings allow",
                           hint=hint)


def check_plugin(settings: Settings, id: str) -> None:
    """:raises ManagerError: ``blocked-by-policy``: managed settings switch it off."""
    value = settings.managed("enabledPlugins")
    if isinstance(value, dict) and value.get(id) is False:
        raise ManagerError("blocked-by-policy", f"the plugin {id} is switched off by managed settings",
                           hint=str(settings.managed("pluginTrustMessage") or "ask who manages this machine"))


def check_direct(settings: Settings, source: Source) -> None:
    """A source that no marketplace names: with an allowlist in force there is none that could allow it."""
    if settings.managed("strictKnownMarketplaces") is not None or settings.managed("allowedMarketplaces") is not None:
        raise ManagerError("blocked-by-policy", f"managed settings allow plugins of listed marketplaces only, not {source}",
                           hint=str(settings.managed("pluginTrustMessage") or "ask who manages this machine"))


def check_command(settings: Settings) -> None:
    """Command sources are off with ``disableCommandPluginSources``, which follows ``allowManagedHooksOnly``."""
    off = settings.managed("disableCommandPluginSources")
    if off is True or (off is None and settings.managed("allowManagedHooksOnly") is True):
        raise ManagerError("blocked-by-policy", "managed settings allow no command sources")


def repository(source: dict[str, Any]) -> str | None:
    """``host/owner/name`` in one spelling, for every way to write the same repository."""
    url = source.get("repo") or source.get("url")
    if not isinstance(url, str):
        return None
    if re.fullmatch(r"[\w.-]+/[\w.*-]+", url):
        url = f"github.com/{url}"
    match = re.match(r"^(?:[a-z+]+://)?(?:[^/@]*@)?([^/:]+)(?::\d+(?=/))?[/:]+(.+?)(?:\.git)?/*$", url.strip(), re.IGNORECASE)
    return f"{match[1]}/{match[2]}".lower() if match else url.lower()


def owner(source: dict[str, Any]) -> str | None:
    """The owner of a GitHub repository; ``None`` for any other place."""
    found = (repository(source) or "").split("/")
    return found[1] if len(found) == 3 and found[0] == "github.com" else None


def _same_repository(entry: Any, source: dict[str, Any]) -> bool:
    if not isinstance(entry, dict):
        return False
    mine, theirs = repository(entry), repository(source)
    if mine is not None and theirs is not None:
        return mine == theirs or (mine.endswith("/*") and theirs.startswith(mine[:-1]))
    return _allows(entry, source)


def _allows(entry: Any, source: dict[str, Any]) -> bool:
    """Exact, ``ref`` and ``path`` included; ``owner/*`` and the two kinds of pattern are the exceptions."""
    if not isinstance(entry, dict):
        return False
    kind = entry.get("source")
    if kind == "hostPattern":
        host = (repository(source) or "").partition("/")[0]
        return bool(host) and _matches(entry.get("hostPattern") or entry.get("pattern"), host)
    if kind == "pathPattern":
        return source.get("source") in ("directory", "file") and _matches(
            entry.get("pathPattern") or entry.get("pattern"), str(source.get("path")))
    if kind == "github" and str(entry.get("repo", "")).endswith("/*"):
        owner_of = str(entry["repo"])[:-1].lower()
        return source.get("source") == "github" and str(source.get("repo", "")).lower().startswith(owner_of)
    keys = ("source", "repo", "url", "path", "ref", "package", "name")
    return all(entry.get(k) == source.get(k) for k in keys)


def _matches(pattern: Any, text: str) -> bool:
    try:
        return isinstance(pattern, str) and re.fullmatch(pattern, text) is not None
    except re.error:
        return False


def _shown(source: dict[str, Any]) -> str:
    return str(source.get("repo") or source.get("url") or source.get("path") or source.get("source"))[:200]
