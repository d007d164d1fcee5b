"""OAuth of remote servers through the package's provider (MCP contract, section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from kernel_mcp.faults import LoginNeeded

if TYPE_CHECKING:
    from kernel_mcp.credentials import Credentials
    from kernel_mcp.entries import Server
    from kernel_mcp.gate import Gate
    from kernel_mcp.host import Host

CLIENT_NAME = "kernel"


class Login(Protocol):
    """Whoever can take a person through a login. ``redirect_uri`` is where the authorization server sends them back."""

    redirect_uri: str
    client_metadata_url: str | None
    remembers: bool
    """Whether what the login gives is kept for later runs."""

    async def show(self, url: str) -> None:
        """Open or print the address."""

    async def answer(self) -> tuple[str, str | None, str | None]:
        """Wait for the way back: code, state, issuer."""


class NoLogin:
    """Nobody can log in now: a run without a person goes on and says what it needs."""

    client_metadata_url: str | None = None
    remembers = True

    def __init__(self, port: int | None) -> None:
        self.redirect_uri = f"http://localhost:{port or 0}/callback"

    async def show(self, url: str) -> None:
        raise LoginNeeded("it needs a login")

    async def answer(self) -> tuple[str, str | None, str | None]:
        raise LoginNeeded("it needs a login")


async def provider_of(host: Host, server: Server, gate: Gate) -> Any:
    """The package's provider for a server, or ``None``: nobody logged in, and nobody can now.

    Without a provider a refusal stays a refusal; nothing is registered anywhere without a person's wish.
    """
    login: Login | None = host.login
    credentials = host.credentials(server)
    gate.metadata_url = metadata_url(server)
    if server.oauth.get("grantType"):
        from kernel_mcp.machine import provider

        gate.logged_in = True
        return provider(server, credentials)
    if login is None:
        if not credentials.has_login:
            return None
        login = NoLogin(credentials.redirect_port)
    gate.logged_in = credentials.has_login
    return make_provider(server, credentials, login)


def metadata_url(server: Server) -> str | None:
    """``oauth.authServerMetadataUrl``, where it is one that may be used."""
    url = server.oauth.get("authServerMetadataUrl")
    return url if isinstance(url, str) and url.startswith("https://") else None


def make_provider(server: Server, credentials: Credentials, login: Login) -> Any:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata, OAuthMetadata, ProtectedResourceMetadata

    pinned = server.oauth.get("scopes")
    pinned = " ".join(pinned.split()) if isinstance(pinned, str) and pinned.strip() else None

    async def show(url: str) -> None:
        _fit_client(provider.context)
        credentials.keep_facts(provider.context)
        await login.show(with_scope(url, pinned) if pinned else url)

    async def answer() -> Any:
        code, state, issuer = await login.answer()
        return AuthorizationCodeResult(code=code, state=state, iss=issuer)

    provider = OAuthClientProvider(
        server_url=server.url, storage=credentials, redirect_handler=show, callback_handler=answer,
        client_metadata_url=login.client_metadata_url,
        client_metadata=OAuthClientMetadata(
            client_name=CLIENT_NAME, redirect_uris=[login.redirect_uri], scope=pinned,  # type: ignore[list-item]
            grant_types=["authorization_code", "refresh_token"], response_types=["code"]))
    known = credentials.facts()  # the package keeps none of this between processes
    context = provider.context
    context.token_expiry_time = known["expires_at"]
    context.auth_server_url = known["issuer"]
    if known["metadata"]:
        context.oauth_metadata = OAuthMetadata.model_validate(known["metadata"])
    if known["resource"]:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(known["resource"])
    return provider


def _fit_client(context: Any) -> None:
    """A client that was registered by hand authenticates as the authorization server's metadata says."""
    client, metadata = context.client_info, context.oauth_metadata
    able = metadata.token_endpoint_auth_methods_supported if metadata else None
    if client is not None and client.client_secret and able and client.token_endpoint_auth_method not in able:
        method = next((m for m in ("client_secret_basic", "client_secret_post") if m in able), None)
        if method:
            client.token_endpoint_auth_method = method


def with_scope(url: str, scope: str) -> str:
    """The authorization address with that scope and no other: what a person pinned stays pinned."""
    parts = urlsplit(url)
    query = [(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if k != "scope"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("scope", scope)])))

