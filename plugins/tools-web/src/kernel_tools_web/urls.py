"""A URL as it will be asked for, read strictly: what two parsers could read differently is refused.

The permission policy matches the host of the URL as written, so every spelling of a host must come down to one here.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, urljoin, urlsplit

from msgspec import Struct

MAX_URL = 2_000
_STRANGE = re.compile(r"[\x00-\x20\x7f\\]")
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)")
_PATH = "/%:@!$&'()*+,;=~-._"
PORTS = {"http": 80, "https": 443}


class BadUrl(ValueError):
    """Why a URL cannot be used, in words for the model."""


class Target(Struct, frozen=True):
    """One address on the web. ``host``: lower case ASCII without a final dot, or an IP address in its usual form."""

    scheme: str
    host: str
    port: int
    path: str
    """Path and query, percent-encoded; begins with a slash."""

    @property
    def netloc(self) -> str:
        """The value of the ``Host`` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.path}"

    def at(self, address: str) -> str:
        """The URL with an IP address in place of the host."""
        return f"{self.scheme}://{f'[{address}]' if ':' in address else address}:{self.port}{self.path}"

    def secure(self) -> Target:
        """The same by https."""
        return self if self.scheme == "https" else Target("https", self.host, 443 if self.port == 80 else self.port, self.path)


def parse(url: str) -> Target:
    """:raises BadUrl: it is no plain http or https URL."""
    if len(url) > MAX_URL:
        raise BadUrl(f"it has {len(url)} characters, at most {MAX_URL} are allowed")
    if _STRANGE.search(url):
        raise BadUrl("it holds a space, a backslash or a control character; write them percent-encoded")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise BadUrl(f"it cannot be read ({error})") from None
    if parts.scheme not in PORTS or not parts.netloc:
        raise BadUrl("it must begin with https:// or http:// and a host")
    if "@" in parts.netloc:
        raise BadUrl("it holds a user name or password, which is not sent")
    if port == 0:
        raise BadUrl("it names port 0")
    path = quote(parts.path or "/", safe=_PATH) + (f"?{quote(parts.query, safe=_PATH + '?')}" if parts.query else "")
    return Target(parts.scheme, _host(host, bracketed="[" in parts.netloc), port or PORTS[parts.scheme], path)


def _host(host: str, bracketed: bool) -> str:
    if bracketed:
        try:
            found = ipaddress.IPv6Address(host)
        except ValueError:
            raise BadUrl(f"{host!r} is no IPv6 address") from None
        if found.scope_id is not None:
            raise BadUrl(f"{host!r} names a zone of this machine")
        return str(found)
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise BadUrl(f"the host {host!r} cannot be written in ASCII") from None
    host = host.lower().removesuffix(".")
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise BadUrl(f"{host[:100]!r} is no host name")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):  # resolvers take 127.1, 0x7f.1, 0177.0.0.1 and 2130706433 too
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise BadUrl(f"{host!r} is an unusual spelling of an address; write four decimal numbers") from None
    return host


def follow(target: Target, location: str) -> Target:
    """Where a redirection leads.

    :raises BadUrl: nowhere that could be asked for.
    """
    try:
        joined = urljoin(target.url, location.strip(" \t"))
    except ValueError as error:
        raise BadUrl(f"it cannot be read ({error})") from None
    return parse(re.sub(r"[^\x21-\x7e]", lambda m: quote(m[0], errors="replace"), joined.partition("#")[0]))
