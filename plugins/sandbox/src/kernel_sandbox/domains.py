"""Which hosts confined commands may reach (settings contract, 5.3; permissions contract, 6.3 for the patterns)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct


class HostPattern(Struct, frozen=True, dict=True):
    """``example.com``, ``*.example.com`` (any depth, not the apex), ``*``, an address; each with an optional port.

    A ``*`` anywhere else stands for text within one label.
    """

    host: str
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> HostPattern:
        """:raises ValueError: it is no such pattern; the text says why."""
        host, port = split_port(text.strip())
        return cls(ascii_host(host), port)

    def covers(self, host: str, port: int) -> bool:
        if self.port is not None and self.port != port:
            return False
        if "*" not in self.host:
            return self.host == host
        return self._glob.fullmatch(host) is not None

    @cached_property
    def _glob(self) -> re.Pattern[str]:
        if self.host == "*":
            return re.compile(".*")
        deep = self.host.startswith("*.")
        rest = "[^.]*".join(map(re.escape, (self.host[1:] if deep else self.host).split("*")))
        return re.compile((".+" if deep else "") + rest)

    @property
    def wild(self) -> bool:
        return "*" in self.host


class Domains(Struct, frozen=True, dict=True):
    """What is allowed and what is not; a denial counts more."""

    allowed: tuple[HostPattern, ...] = ()
    denied: tuple[HostPattern, ...] = ()

    @cached_property
    def local(self) -> bool:
        """Whether hosts of the machine itself are reached through the proxy too."""
        return any(p.host == "*" or _names_this_machine(p.host) for p in self.allowed)

    def permits(self, host: str, port: int) -> HostPattern | None:
        """The pattern that allows it; the host as ``ascii_host`` gives it."""
        if any(p.covers(host, port) for p in self.denied):
            return None
        fitting = [p for p in self.allowed if p.covers(host, port)]
        return min(fitting, key=lambda p: p.wild, default=None)


def split_port(text: str) -> tuple[str, int | None]:
    """A host and the port behind it; an IPv6 address with a port stands in brackets.

    :raises ValueError: the port is none.
    """
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    if not port:
        return host, None
    if not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError(f"{port[:20]!r} is no port")
    return host, int(port)


def ascii_host(host: str) -> str:
    """Lower case, no final dot, ASCII (punycode).

    :raises ValueError: no such host can exist.
    """
    host = host.strip().lower()
    if host.endswith("."):
        host = host[:-1]
    if not host.isascii():
        host = host.encode("idna").decode("ascii")  # UnicodeError is a ValueError
    if not host or len(host) > 253 or not all(c.isalnum() or c in "-._:*" for c in host):
        raise ValueError("it is no host name")
    return host


def refusal(address: str, pattern: HostPattern) -> str | None:
    """Why an address that a name led to is not connected to; ``None``: it may be.

    Whoever owns a name chooses its addresses. So a name does not open the machine's own services, and a wildcard does
    not open the private network; only who is named as such (``localhost``, the address, an exact host) does.
    """
    ip: Any = address_of(address)
    if ip is None:
        return "it is no address"
    literal = address_of(pattern.host) is not None
    if not literal and not _names_this_machine(pattern.host):
        if ip.is_loopback or ip.is_unspecified:
            return "the name leads to this machine itself"
        if ip.is_link_local or ip.is_multicast or (ip.is_reserved and ip.version == 4):
            return "the name leads to a special address"
        if ip.is_private and pattern.wild:
            return "the name leads into the private network; name the host itself, without '*'"
    return None


def address_of(text: str) -> Any:
    """The IP address that the text is; ``None``: it is none. An IPv4 address in IPv6 clothes is the IPv4 address."""
    from ipaddress import ip_address

    try:
        ip = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip


def _names_this_machine(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def parse_all(texts: Sequence[str]) -> tuple[tuple[HostPattern, ...], list[str]]:
    """The patterns, and what is wrong with the other texts, in words."""
    patterns: list[HostPattern] = []
    problems: list[str] = []
    for text in texts:
        try:
            patterns.append(HostPattern.parse(text))
        except ValueError as error:
            problems.append(f"{text!r}: {error}")
    return tuple(patterns), problems
