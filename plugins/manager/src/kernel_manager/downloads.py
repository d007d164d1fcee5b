"""Fetch an archive by https (plugins contract, 6.3 and 16.8): no other scheme, no address of this machine or its network
neighbours on any redirect, a limit on size and time, and credentials only for the host that they were given for."""

from __future__ import annotations

import hashlib
import ipaddress
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kernel_manager.errors import ManagerError
from kernel_manager.sources import without_secrets
from kernel_manager.unpack import LIMITS

TIMEOUT = 60.0
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
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        raise ManagerError("fetch-failed", f"the host {host} is not known: {error}", context=where) from None
    for text in found:
        address = ipaddress.ip_address(str(text).partition("%")[0])
        address = getattr(address, "ipv4_mapped", None) or address
        if address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast:
            raise ManagerError("unsafe-url", f"the host {host} is {address}, which is not fetched from", context=where)


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        check_url(newurl)
        made = super().redirect_request(req, fp, code, msg, headers, newurl)
        if made is not None and urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            made.headers.pop("Authorization", None)
            for name in getattr(req, "kernel_headers", ()):
                made.headers.pop(name.capitalize(), None)
        return made


def download(url: str, target: Path, *, headers: dict[str, str] | None = None, limit: int = LIMITS.archive_bytes) -> str:
    """Fetch a URL into a file and return the SHA-256 of its bytes.

    :raises ManagerError: ``unsafe-url``, ``fetch-failed``, ``unsafe-archive`` (too large).
    """
    check_url(url)
    where = without_secrets(url)[:200]
    opener = urllib.request.build_opener(_Redirects())
    request = urllib.request.Request(url, headers={"User-Agent": "kernel-manager", **(headers or {})})  # noqa: S310
    request.kernel_headers = list(headers or {})  # type: ignore[attr-defined]
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
