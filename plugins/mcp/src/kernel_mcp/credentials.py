"""Tokens and registrations of remote servers, in one file that only its owner may read (MCP contract, 7.2).

Kept per server and, inside, per issuer: what one authorization server gave is never shown to another.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_mcp.store import change, read_object, state_dir

if TYPE_CHECKING:
    from kernel_mcp.entries import Server

SECRET_VARIABLE = "MCP_CLIENT_SECRET"  # noqa: S105  # the name of a variable


def place() -> Path:
    return state_dir() / "credentials.json"


class Credentials:
    """The package's token storage for one server.

    :param path: ``None`` keeps everything in memory.
    """

    def __init__(self, server: Server, path: Path | None) -> None:
        self._url = server.url
        self._oauth = server.oauth
        self._path = path
        self._memory: dict[str, Any] = {}

    # -- the record ------------------------------------------------------------------------------------------------------
    def _record(self) -> dict[str, Any]:
        if self._path is None:
            return self._memory
        try:
            record = (read_object(self._path) or {}).get(self._url)
        except ValueError:
            return {}  # what cannot be read gives no access; a new login writes it anew after the file is mended
        return record if isinstance(record, dict) else {}

    def _change(self, **fields: Any) -> None:
        if self._path is None:
            self._memory |= fields
            return

        def edit(data: dict[str, Any]) -> None:
            record = data.get(self._url)
            data[self._url] = {**(record if isinstance(record, dict) else {}), **fields}

        change(self._path, edit, mode=0o600)

    def forget(self) -> bool:
        """Drop everything about the server; whether there was anything."""
        had = bool(self._record())
        if had and self._path is not None:
            change(self._path, lambda data: data.pop(self._url, None) and None, mode=0o600)
        self._memory = {}
        return had

    @property
    def has_login(self) -> bool:
        return bool(self._record().get("tokens"))

    @property
    def can_refresh(self) -> bool:
        tokens = self._record().get("tokens")
        return isinstance(tokens, dict) and bool(tokens.get("refresh_token"))

    @property
    def redirect_port(self) -> int | None:
        """The port that a registration is bound to."""
        port = self._record().get("redirect_port")
        return port if isinstance(port, int) else None

    def expire(self) -> None:
        """The access token is of no use any more; the next connection refreshes it."""
        self._change(expires_at=1)  # long ago; 0 would mean that it is not known

    def facts(self) -> dict[str, Any]:
        """What a provider must know again after a restart; ``expires_at`` in seconds since the epoch."""
        record = self._record()
        return {key: record.get(key) for key in ("expires_at", "metadata", "resource", "issuer")}

    def keep_facts(self, context: Any) -> None:
        """Remember what a flow found out, for a refresh in another process."""
        found: dict[str, Any] = {"issuer": context.auth_server_url}
        for key, model in (("metadata", context.oauth_metadata), ("resource", context.protected_resource_metadata)):
            if model is not None:
                found[key] = model.model_dump(mode="json", exclude_none=True)
        self._change(**found)

    # -- what the package asks ---------------------------------------------------------------------------------------------
    async def get_tokens(self) -> Any:
        from mcp.shared.auth import OAuthToken

        tokens = self._record().get("tokens")
        return OAuthToken.model_validate(tokens) if isinstance(tokens, dict) else None

    async def set_tokens(self, tokens: Any) -> None:
        expires = time.time() + tokens.expires_in if tokens.expires_in is not None else None
        self._change(tokens=tokens.model_dump(mode="json", exclude_none=True), expires_at=expires)

    async def get_client_info(self) -> Any:
        from mcp.shared.auth import OAuthClientInformationFull

        record = self._record()
        given = self._oauth.get("clientId")
        if isinstance(given, str) and given:
            secret = self._oauth.get("clientSecret") or os.environ.get(SECRET_VARIABLE) or record.get("client_secret")
            return OAuthClientInformationFull(
                client_id=given, client_secret=secret, issuer=record.get("issuer"),
                token_endpoint_auth_method="client_secret_basic" if secret else "none")
        client = record.get("client")
        return OAuthClientInformationFull.model_validate(client) if isinstance(client, dict) else None

    async def set_client_info(self, client_info: Any) -> None:
        port = next((u.port for u in client_info.redirect_uris or () if u.port), None)
        # a new registration: the tokens of the old one belong to another issuer or another client
        self._change(client=client_info.model_dump(mode="json", exclude_none=True), tokens=None, expires_at=None,
                     **({"redirect_port": port} if port else {}))
