"""Logins without a person: a client's own credentials, or an identity that an enterprise vouches for (MCP contract, 7.3).

``"oauth": {"grantType": "client_credentials", "clientId": ..., "clientSecret": ... | "privateKey": PEM | "privateKeyFile": PATH,
"algorithm": "RS256", "scopes": ..., "issuer": ...}``. The secret may also be in ``MCP_CLIENT_SECRET``.

``"oauth": {"grantType": "identity_assertion", "clientId", "clientSecret", "issuer", "identityProvider": {"tokenEndpoint",
"clientId", "idToken" | "idTokenFile"}}``: the id token is exchanged for an assertion, and that for an access token.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_mcp.credentials import SECRET_VARIABLE, Credentials

if TYPE_CHECKING:
    from kernel_mcp.entries import Server

GRANTS = ("client_credentials", "identity_assertion")
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105  # names, no secrets
_ASSERTION = "urn:ietf:params:oauth:token-type:id-jag"


def provider(server: Server, credentials: Credentials) -> Any:
    """The package's provider for the entry.

    :raises ConnectionError: the entry lacks something, or names a grant that we do not know.
    """
    from mcp.client.auth.extensions.client_credentials import (
        ClientCredentialsOAuthProvider,
        PrivateKeyJWTOAuthProvider,
        SignedJWTParameters,
    )

    oauth = server.oauth
    if oauth["grantType"] not in GRANTS:
        raise ConnectionError(f"oauth.grantType {oauth['grantType']!r}: known is {', '.join(GRANTS)}")
    client = oauth.get("clientId")
    if not isinstance(client, str) or not client:
        raise ConnectionError("oauth.grantType needs oauth.clientId")
    common: dict[str, Any] = {"server_url": server.url, "storage": credentials, "client_id": client,
                              "scope": oauth.get("scopes"), "issuer": oauth.get("issuer")}
    if oauth["grantType"] == "identity_assertion":
        return _identity(server, credentials, client)
    if key := _text(oauth, "privateKey"):
        assertion = SignedJWTParameters(issuer=client, subject=client, signing_key=key,
                                        signing_algorithm=str(oauth.get("algorithm") or "RS256"))
        return PrivateKeyJWTOAuthProvider(**common, assertion_provider=assertion.create_assertion_provider())
    secret = oauth.get("clientSecret") or os.environ.get(SECRET_VARIABLE)
    if not secret:
        raise ConnectionError(f"oauth.grantType needs a secret (oauth.clientSecret or {SECRET_VARIABLE}) or a private key")
    return ClientCredentialsOAuthProvider(**common, client_secret=str(secret))


def _identity(server: Server, credentials: Credentials, client: str) -> Any:
    from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider

    oauth = server.oauth
    provider = oauth.get("identityProvider")
    issuer, secret = oauth.get("issuer"), oauth.get("clientSecret") or os.environ.get(SECRET_VARIABLE)
    if not isinstance(provider, dict) or not provider.get("tokenEndpoint") or not issuer or not secret:
        raise ConnectionError("identity_assertion needs oauth.issuer, a client secret and oauth.identityProvider.tokenEndpoint")

    async def assertion(audience: str, resource: str) -> str:
        return await exchange(provider, audience, resource)

    method: Any = oauth.get("tokenEndpointAuthMethod") or "client_secret_basic"
    return IdentityAssertionOAuthProvider(
        server_url=server.url, storage=credentials, client_id=client, client_secret=str(secret), issuer=str(issuer),
        assertion_provider=assertion, scope=oauth.get("scopes"), token_endpoint_auth_method=method)


async def exchange(provider: dict[str, Any], audience: str, resource: str) -> str:
    """An assertion for one authorization server, from the enterprise's identity provider (token exchange, RFC 8693).

    :raises ConnectionError: it gives none.
    """
    import httpx2

    data = {"grant_type": _EXCHANGE, "requested_token_type": _ASSERTION, "audience": audience, "resource": resource,
            "subject_token": _text(provider, "idToken"), "subject_token_type": _ID_TOKEN,
            "client_id": str(provider.get("clientId") or "")}
    async with httpx2.AsyncClient(follow_redirects=False, timeout=30.0) as client:
        response = await client.post(str(provider["tokenEndpoint"]), data=data)
    try:
        token = response.json().get("access_token") if response.status_code == 200 else None
    except ValueError:
        token = None
    if not isinstance(token, str):
        raise ConnectionError(f"the identity provider gave no assertion (HTTP {response.status_code})")
    return token


def _text(entry: dict[str, Any], key: str) -> str:
    """A value of the entry, or the content of the file that ``<key>File`` names."""
    if entry.get(f"{key}File"):
        try:
            return Path(str(entry[f"{key}File"])).expanduser().read_text().strip()
        except OSError as error:
            raise ConnectionError(f"oauth {key}File: {error.strerror}") from None
    return str(entry.get(key) or "")
