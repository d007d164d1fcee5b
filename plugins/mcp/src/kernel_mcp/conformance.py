"""The client that the public conformance suite drives: ``python -m kernel_mcp.conformance URL`` (MCP contract, section 12).

Connecting, logging in and calling are the bridge's own; the scenario's name only chooses which tools are called.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kernel import ToolError
from kernel_mcp.asked import defaults_of
from kernel_mcp.desk import Desk
from kernel_mcp.entries import Server
from kernel_mcp.host import PERSON, Host
from kernel_mcp.link import Link

REDIRECT = "http://localhost:3000/callback"
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"


class Follow:
    """A login without a browser: the authorization server of the suite redirects at once, and the answer is in the address."""

    redirect_uri = REDIRECT
    client_metadata_url: str | None = CLIENT_METADATA
    remembers = False

    def __init__(self) -> None:
        self._answer: tuple[str, str | None, str | None] = ("", None, None)

    async def show(self, url: str) -> None:
        import httpx2

        async with httpx2.AsyncClient(follow_redirects=False) as client:
            response = await client.get(url)
        query = parse_qs(urlsplit(response.headers.get("location", "")).query)
        first: dict[str, str] = {key: values[0] for key, values in query.items()}
        self._answer = (first.get("code", ""), first.get("state"), first.get("iss"))

    async def answer(self) -> tuple[str, str | None, str | None]:
        return self._answer


async def accept_defaults(server: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The person of the suite takes what a form proposes."""
    return {"action": "accept", "content": defaults_of(asked.get("requestedSchema"))}


def arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Something for each required argument, and for those that go into headers."""
    by_type: dict[Any, Any] = {"string": "text", "number": 1, "integer": 1, "boolean": True, "object": {}, "array": []}
    properties = schema.get("properties") or {}
    wanted = [*schema.get("required", ()), *(n for n, p in properties.items() if isinstance(p, dict) and "x-mcp-header" in p)]
    return {n: by_type.get(properties.get(n, {}).get("type"), "text") for n in dict.fromkeys(wanted)}


async def play(url: str, scenario: str, context: dict[str, Any]) -> int:
    """Run one scenario; 0 when everything that it asks for was done."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        desk.plugin_state[PERSON] = accept_defaults
        host = Host(desk, login=Follow())  # type: ignore[arg-type]  # what a host asks of a session, a desk has
        oauth = await _oauth(url, scenario, context)
        link = Link(Server(name="conformance", kind="http", scope="run", url=url, oauth=oauth), host, lambda link: None)
        link.start()
        await link.settled.wait()
        try:
            if link.status != "connected":
                print(f"{link.status}: {link.error}", file=sys.stderr)
                return 1
            await _call_tools(link, scenario)
            return 0
        except ToolError as error:
            print(f"{error.code}: {error}", file=sys.stderr)
            return 1
        finally:
            await link.stop()


async def _oauth(url: str, scenario: str, context: dict[str, Any]) -> dict[str, Any]:
    """What a configuration would hold that knows what the suite tells its clients."""
    known = {"clientId": context.get("client_id"), "clientSecret": context.get("client_secret"),
             "privateKey": context.get("private_key_pem"), "algorithm": context.get("signing_algorithm")}
    if scenario.startswith("auth/client-credentials"):
        known["grantType"] = "client_credentials"
    if scenario == "auth/enterprise-managed-authorization":
        known |= {"grantType": "identity_assertion", "issuer": await _issuer(url), "identityProvider": {
            "tokenEndpoint": context["idp_token_endpoint"], "clientId": context["idp_client_id"],
            "idToken": context["idp_id_token"]}}
    return {k: v for k, v in known.items() if v is not None}


async def _issuer(url: str) -> str:
    """The authorization server that the fixture's resource names; a real configuration holds it."""
    import httpx2

    parts = urlsplit(url)
    async with httpx2.AsyncClient() as client:
        response = await client.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}")
    return str(response.json()["authorization_servers"][0])


async def _call_tools(link: Link, scenario: str) -> None:
    from kernel_mcp.calls import call_tool
    from kernel_mcp.tools import tools_of

    tools = {t.tool_name: t for t in tools_of(link)}
    if scenario == "tools_call":
        await call_tool(link, "add_numbers", {"a": 5, "b": 3})
    elif scenario == "json-schema-2020-12-preservation":
        focal = next(t for t in link.lists.tools if t.name != "json_schema_echo")
        await call_tool(link, "json_schema_echo", {"schema": focal.input_schema})
    elif scenario == "sep-2322-client-request-state":
        import anyio

        async with anyio.create_task_group() as group:
            for name in tools:
                group.start_soon(partial(call_tool, link, name, {}))
    elif scenario == "http-custom-headers":
        await _with_headers(link, tools)
    elif scenario != "json-schema-ref-no-deref":
        for name, tool in tools.items():
            await call_tool(link, name, arguments(tool.schema))


async def _with_headers(link: Link, tools: dict[str, Any]) -> None:
    from kernel_mcp.calls import call_tool

    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    calls = given.get("toolCalls") or given.get("tool_calls") or ()
    for call in calls:
        await call_tool(link, call["name"], call.get("arguments") or {})
    if not calls:
        for name, tool in tools.items():
            await call_tool(link, name, arguments(tool.schema))


def main() -> int:
    import anyio

    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    return int(anyio.run(play, sys.argv[-1], os.environ.get("MCP_CONFORMANCE_SCENARIO", ""), context))


if __name__ == "__main__":
    sys.exit(main())
