"""Which addresses may be asked for: public ones, and what the person's settings allow.

A name is resolved once; the connection goes to the addresses that were checked, so a name server that answers differently
the second time gains nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from kernel import Session, ToolError
from kernel_tools_web.urls import Target

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]
"""(host, port) -> IP addresses; raises ``OSError`` for a name that does not exist."""

METADATA = frozenset(ipaddress.ip_address(a) for a in (
    "169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"))
"""Where clouds keep credentials of the machine; one of them is a public address."""
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_DOCUMENTATION = ipaddress.IPv6Network("3fff::/20")


class Access(Struct, frozen=True):
    """What the settings allow (``kernel.web.*``). ``private``: hosts, ``host:port`` or addresses that need not be public."""

    private: frozenset[str] = frozenset()
    proxy: bool = False

    def lists(self, target: Target) -> bool:
        return target.host in self.private or f"{target.host}:{target.port}" in self.private

    @classmethod
    def of(cls, session: Session) -> Access:
        """These keys widen rights, so a project's files count only where the folder is trusted."""
        private: set[str] = set()
        proxy: list[Any] = []
        for key in ("kernel.web.allowPrivate", "kernel.web.useProxy"):
            for layer, value in session.settings.by_layer(key):
                if layer.scope in ("project", "local") and not session.settings.trusted:
                    session.debug(f"{layer.path}, {key}: ignored, this workspace has not been trusted")
                elif key.endswith("useProxy"):
                    proxy.append(value)
                elif isinstance(value, list):
                    private |= {entry for v in value if isinstance(v, str) and (entry := _entry(v))}
        return cls(frozenset(private), proxy[:1] == [True])


def _entry(text: str) -> str:
    """A listed host in the form in which ``Target`` has it: ``[::1]:80`` and ``::1`` are ``::1:80`` and ``::1``."""
    text = text.strip().lower().replace("[", "").replace("]", "").removesuffix(".")
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def forbidden(address: str) -> str:
    """Why nothing is asked of the address, or an empty string. IPv4 addresses inside of IPv6 ones count as themselves."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "no address that can be judged"
    return next((why for a in (found, *_inside(found)) if (why := _why(a))), "")


def _inside(address: Address) -> list[Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found: list[Any] = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64 or address in _COMPATIBLE:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [a for a in found if a is not None]


def _why(address: Address) -> str:
    if address in METADATA:
        return "a metadata address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified:
        return "no address of a host"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None or address in _NAT64:
            return ""  # judged by what it holds
        public = address in _GLOBAL_V6 and address.is_global and address not in _DOCUMENTATION
    else:
        public = address.is_global and not address.is_reserved
    return "" if public else "a private or reserved address"


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, by the machine's resolver."""
    import socket

    import anyio

    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def checked(target: Target, access: Access, resolver: Resolver) -> list[str]:
    """The addresses that a connection may go to, never none.

    :raises ToolError: ``blocked_address``: one of them is not public; ``unreachable``: there are none.
    """
    try:
        addresses = [target.host] if _is_address(target.host) else await resolver(target.host, target.port)
    except (OSError, UnicodeError):
        addresses = []
    if not addresses:
        raise ToolError("unreachable", f"The host {target.host} has no address; check its name.")
    if access.lists(target):
        return addresses
    for address in addresses:
        why = forbidden(address)
        if why:
            raise refusal(target, address, why)
    return addresses


def refusal(target: Target, address: str, why: str) -> ToolError:
    where = target.host if target.host == address else f"{target.host} ({address})"
    return ToolError("blocked_address", f"{where} is {why}. Only public addresses are fetched, so this one was not contacted. "
                                        "The person can list the host in the setting kernel.web.allowPrivate.")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
