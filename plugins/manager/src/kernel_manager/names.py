"""Which names are refused: of plugins and marketplaces, and of files in archives and folders."""

from __future__ import annotations

import re
import unicodedata

from kernel_manager.errors import ManagerError

RESERVED_MARKETPLACES = {
    name: owners for names, owners in (
        (("claude-code-marketplace", "claude-code-plugins", "claude-plugins-official", "claude-plugins-community",
          "claude-community", "anthropic-marketplace", "anthropic-plugins", "agent-skills", "anthropic-agent-skills",
          "knowledge-work-plugins", "life-sciences", "claude-for-legal", "claude-for-financial-services",
          "financial-services-plugins", "first-party-plugins", "healthcare"), ("anthropics",)),) for name in names}
"""Marketplace names that only the vendor's own repositories may carry (plugins contract, 16.4)."""
OUR_SOURCES = frozenset(("inline", "builtin", "skills-dir", "synced", "installed"))
"""What stands behind the ``@`` of an id that comes from no marketplace."""

_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$", *(f"{d}{n}" for d in ("com", "lpt") for n in "123456789¹²³")}
MAX_PATH, MAX_NAME, MAX_DEPTH = 1024, 255, 32


def canonical(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def check_plugin_name(name: object) -> str:
    """A name that can stand in an id, a folder and a command line without being mistaken for another.

    :raises ManagerError: ``bad-name``.
    """
    why = _why_bad(name)
    if why is None and isinstance(name, str) and len(name) > 128:
        why = "is over 128 characters"
    if why:
        raise ManagerError("bad-name", f"the plugin name {shown(name)} {why}",
                           hint="names are letters, digits, '.', '_' and '-', and begin with a letter or digit")
    assert isinstance(name, str)
    return name


def _why_bad(name: object) -> str | None:
    if not isinstance(name, str) or not name:
        return "must be a non-empty text"
    if not name.isascii():
        return "holds letters outside ASCII, which can be mistaken for others"
    if not re.match(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", name) or ".." in name or name.endswith("."):
        return "holds what is not allowed in a name"
    if name.split(".")[0].lower() in _DEVICES:
        return "is the name of a device on some systems"
    return None


def check_marketplace_name(name: object, repository_owner: str | None) -> str:
    """A marketplace's name (plugins contract, 6.1 and 16.4).

    :param repository_owner: owner of the GitHub repository that it comes from, ``None`` for any other source.
    :raises ManagerError: ``bad-name`` or ``reserved-name``.
    """
    why = _why_bad(name)
    if why:
        raise ManagerError("bad-name", f"the marketplace name {shown(name)} {why}")
    assert isinstance(name, str)
    if name.lower() in OUR_SOURCES:
        raise ManagerError("reserved-name", f"the marketplace name {name!r} is kept for plugins that come from no marketplace")
    owners = RESERVED_MARKETPLACES.get(name.lower())
    if (repository_owner or "").lower() in ("anthropics",):
        return name
    if owners is not None:
        raise ManagerError("reserved-name", f"the marketplace name {name!r} is kept for repositories of {', '.join(owners)}")
    if _imitates(name.lower()):
        raise ManagerError("reserved-name", f"the marketplace name {name!r} looks like one of the vendor's own")
    return name


def _imitates(name: str) -> bool:
    """The words of a reserved name in another order or with more, or one letter away from one."""
    words = set(re.split(r"[-_.]+", name))
    things = words & {"plugin", "plugins", "marketplace", "skills", "community"}
    if things and (words & {"anthropic", "anthropics"} or ("claude" in words and words & {"official", "verified"})):
        return True
    return any(len(known) > 10 and _one_away(name, known) for known in RESERVED_MARKETPLACES)


def _one_away(one: str, other: str) -> bool:
    """Whether one letter was changed, added or left out."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return any(a[start + i:] == b[start + j:] for a, b, i, j in (
        (one, other, 1, 1), (one, other, 1, 0), (one, other, 0, 1)))


def check_member(name: str, where: str) -> tuple[str, ...]:
    """The parts of a file's name in an archive or a repository.

    :raises ManagerError: ``unsafe-archive``: it leaves the folder, or means another file on some systems.
    """
    why = _why_unsafe(name)
    if why:
        raise ManagerError("unsafe-archive", f"the name {shown(name)} {why}", context=where)
    return tuple(p for p in name.split("/") if p not in ("", "."))


def _why_unsafe(name: str) -> str | None:
    if not name or "\0" in name:
        return "is empty or holds a zero byte"
    if name.startswith(("/", "\\")) or re.match(r"^[A-Za-z]:", name):
        return "is absolute"
    if "\\" in name:
        return "holds a backslash"
    parts = [p for p in name.split("/") if p not in ("", ".")]
    if ".." in parts:
        return "holds '..'"
    if len(name) > MAX_PATH or any(len(p.encode("utf-8", "surrogateescape")) > MAX_NAME for p in parts):
        return "is too long"
    if len(parts) > MAX_DEPTH:
        return f"is over {MAX_DEPTH} folders deep"
    for part in parts:
        if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for c in part):
            return "holds control or invisible characters"
        if ":" in part:
            return "holds a colon"
        if part.endswith((".", " ")) and part != ".":
            return "ends with a dot or a space"
        if part.split(".")[0].lower() in _DEVICES:
            return "is the name of a device on some systems"
    return None


def fold(parts: tuple[str, ...]) -> str:
    """The same text for names that are one file on a disk that ignores case or Unicode forms."""
    return "/".join(unicodedata.normalize("NFC", unicodedata.normalize("NFKC", p).casefold()) for p in parts)


def shown(name: object) -> str:
    """A name for a message: short, and with nothing in it that could steer a terminal."""
    return ascii(name)[:120]
