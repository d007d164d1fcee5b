"""Specifiers of tools that are neither shell nor file tools: hosts, agents, skills, parameters.

Permissions contract, 2.8 and 6.3 to 6.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kernel import Tool

from .patterns import CommandPattern, Star
from .rules import Rule, scalar_text

DEFAULT_AGENT = "general-purpose"
_HOST = re.compile(r"[a-z0-9_*-]+(?:\.[a-z0-9_*-]+)*|[0-9a-f]*:[0-9a-f:.]*")
_NO_URL = re.compile(r"[\x00-\x20\x7f\\]")


def covers(rule: Rule, tool: Tool, input: Mapping[str, Any]) -> bool:
    """Whether a rule with a specifier, whose tool part means this tool, covers the call."""
    parameter = rule.parameter_of(tool.input_schema, tool.name)
    if parameter is not None and not (rule.tool == "WebFetch" and parameter[0] == "domain"):
        name, value = parameter
        text = scalar_text(input[name]) if name in input else None
        return text is not None and value.matches(text)
    specifier = rule.specifier or "*"
    if tool.name == "WebFetch":
        return bool(rule.parameter) and _web(rule, input)
    if tool.name == "Agent":
        return _agent(rule, specifier, input)
    if tool.name == "Skill":
        return _skill(specifier, input)
    content = tool.permission_content(dict(input)) if tool.permission == "ask" else None
    return content is not None and Star(specifier).matches(content)


def _agent(rule: Rule, specifier: str, input: Mapping[str, Any]) -> bool:
    given = input.get("subagent_type")
    if given is None:
        return rule.behavior != "allow" and specifier == DEFAULT_AGENT
    return bool(given == specifier)


def _skill(specifier: str, input: Mapping[str, Any]) -> bool:
    name, arguments = input.get("skill"), input.get("args")
    if not isinstance(name, str):
        return False
    name = name.strip().lstrip("/")
    pattern = CommandPattern(specifier)
    if not pattern.wild:
        return specifier == name
    return pattern.matches(f"{name} {arguments}" if isinstance(arguments, str) and arguments else name)


def _web(rule: Rule, input: Mapping[str, Any]) -> bool:
    if rule.parameter is None or rule.parameter[0] != "domain":
        return False
    host = host_of(input.get("url"))
    if host is None:  # whoever reads it otherwise must not be let through
        return rule.behavior != "allow"
    return host_matches((rule.specifier or "").partition(":")[2].strip(), host)


def host_of(url: Any) -> str | None:
    """The host of an http(s) URL in lower-case ASCII form; ``None`` where the URL has none that is certain."""
    from urllib.parse import urlsplit

    if not isinstance(url, str) or _NO_URL.search(url):
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or "%" in host:
        return None
    return _ascii(host.rstrip("."))


def _ascii(host: str) -> str | None:
    """The ASCII form of a host; ``None`` where clients may differ on it (IDNA 2003 and 2008 map some letters apart)."""
    host = host.lower()
    if not host.isascii():
        try:
            coded = host.encode("idna")
            if coded.decode("idna") != host:
                return None
            host = coded.decode("ascii").lower()
        except UnicodeError:
            return None
    return host if _HOST.fullmatch(host) else None


def host_matches(pattern: str, host: str) -> bool:
    """``*.x`` any subdomain of x and not x itself; any other ``*`` stays within its label."""
    pattern = pattern.rstrip(".")
    if pattern == "*":
        return True
    wanted = [_ascii(label) or "" for label in pattern.split(".")]
    labels = host.split(".")
    if wanted[0] == "*" and len(wanted) > 1:
        wanted = wanted[1:]
        if len(labels) <= len(wanted):
            return False
        labels = labels[-len(wanted):]
    return len(wanted) == len(labels) and all(Star(w).matches(n) for w, n in zip(wanted, labels, strict=True))
