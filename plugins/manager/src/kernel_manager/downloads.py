"""Fetch an archive by https (plugins contract, 6.3 and 16.8): no other scheme, no address of this machine or its network
neighbours on any redirect, a limit on size and time, and credentials only for the host that they were given for."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kernel_manager.errors import ManagerError
from kernel_manager.sources import without_secrets
from kernel_manager.unpack import LIMITS

TIMEOUT = 60.0
AGENT = "kernel-manager"
_METADATA_HOSTS = frozenset(("metadata.google.internal", "metadata", "instance-data"))


def check_url(url: str) -> None:
    """:raises ManagerError: ``unsafe-url``: not https, or it points at this machine, its links or a metadata service."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".").lower()
    where = without_secrets(url)[:200]
    if parts.scheme != "https" or not host:
        raise ManagerError("unsafe-url", "is no https URL", context=where)
    if host in _METADATA_HOSTS or host == "localhost" or host.endswith(".localhost"):
        raise ManagerError("unsafe-url", f"the host {host} is not fetched from", context=where)
    if not urllib.request.getproxies().get("https"):  # a proxy resolves names itself, and this machine perhaps cannot
        checked_address(host, parts.port or 443, where)


def checked_address(host: str, port: int, where: str) -> str:
    """An address of the host to connect to, after all of its addresses were found to be allowed.

    :raises ManagerError: ``unsafe-url``, ``fetch-failed``.
    """
    try:
        found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        raise ManagerError("fetch-failed", f"the host {host} is not known: {error}", context=where) from None
    for text in found:
        if is_near(text):
            raise ManagerError("unsafe-url", f"the host {host} is {text}, which is not fetched from", context=where)
    return found[0]


def is_near(address: str) -> bool:
    """This machine, or what is reached over a link without a router (cloud metadata services among it)."""
    found = ipaddress.ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast


class _Connection(http.client.HTTPSConnection):
    """Connects to the address that was checked: a name that answers differently the second time gains nothing."""

    def connect(self) -> None:
        if getattr(self, "_tunnel_host", None):  # through a proxy
            super().connect()
            return
        address = checked_address(self.host, self.port, self.host)
        plain = socket.create_connection((address, self.port), self.timeout)
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)  # type: ignore[attr-defined]


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Connection, req, context=ssl.create_default_context())


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        check_url(newurl)
        made = super().redirect_request(req, fp, code, msg, headers, newurl)
        if made is not None and urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            made.headers = {"User-agent": AGENT}  # whatever else was sent may be a secret of the first host
        return made


def download(url: str, target: Path, *, headers: dict[str, str] | None = None, limit: int = LIMITS.archive_bytes) -> str:
    """Fetch a URL into a file and return the SHA-256 of its bytes.

    :raises ManagerError: ``unsafe-url``, ``fetch-failed``, ``unsafe-archive`` (too large).
    """
    check_url(url)
    where = without_secrets(url)[:200]
    opener = urllib.request.build_opener(_Redirects(), _Https())
    request = urllib.request.Request(url, headers={"User-Agent": AGENT, **(headers or {})})  # noqa: S310
    digest, size = hashlib.sha256(), 0
    try:
        with opener.open(request, timeout=TIMEOUT) as answer, open(target, "wb") as file:
            while chunk := answer.read(1 << 16):
                size += len(chunk)
                if size > limit:
                    raise ManagerError("unsafe-archive", f"is over {limit >> 20} MiB", context=where)
                digest.update(chunk)
                file.write(chunk)
    except urllib.error.HTTPError as error:
        raise ManagerError("fetch-failed", f"the server answered {error.code}", context=where) from None
    except (urllib.error.URLError, TimeoutError, ValueError, ConnectionError) as error:
        raise ManagerError("fetch-failed", f"cannot be fetched: {getattr(error, 'reason', error)}", context=where) from None
    return digest.hexdigest()
