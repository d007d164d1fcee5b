"""The http handler against a real server (hooks contract, sections 3.4 and 6.3)."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import pytest
from kernel_command_hooks.run_http import MAX_REDIRECTS, covers

from kernel import EVENTS

pytestmark = pytest.mark.anyio

PRE = EVENTS["PreToolUse"]
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                               "permissionDecisionReason": "no shell"}}


async def fire(world: Any, *handlers: dict[str, Any], event: str = "PreToolUse") -> Any:
    world.settings(hooks=world.hooks(event, *({"type": "http", **h} for h in handlers)))
    session = world.start()
    return await world.fire(session, PRE, tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="i")


async def test_the_event_is_posted_and_json_decides(world: Any, server: Any) -> None:
    server.answer("/h", DENY)
    merged = await fire(world, {"url": f"{server.url}/h?token=secret", "headers": {"content-type": "text/plain"}})
    server.answers["/h?token=secret"] = server.answers["/h"]
    assert merged.decision is None  # that path has no answer; the next has
    merged = await fire(world, {"url": f"{server.url}/h"})
    assert (merged.decision, merged.reason) == ("deny", "no shell")
    _, headers, body = server.seen[-1]
    assert headers["Content-Type"] == "application/json" and json.loads(body)["tool_input"] == {"command": "ls"}
    assert server.seen[0][1]["Content-Type"] == "application/json"


@pytest.mark.parametrize(("status", "body", "notice"), [
    (204, b"", ""), (200, b" \n", ""), (200, b"{}", ""), (403, DENY, "status 403"), (500, b"", "status 500"),
    (200, b"remember the freeze", "something else"), (200, b"[1]", "something else"), (302, b"", "status 302"),
    (200, {"hookSpecificOutput": {"permissionDecision": "deny"}}, "hookEventName"), (200, b"\xff{}", "something else")])
async def test_only_json_of_a_good_answer_can_decide(world: Any, server: Any, status: int, body: Any, notice: str) -> None:
    server.answer("/h", body, status)
    merged = await fire(world, {"url": f"{server.url}/h"})
    assert merged.decision is None
    assert [notice in n and "PreToolUse:Bash hook error" in n for n in world.notices()] == ([True] if notice else [])


async def test_nobody_there_is_a_non_blocking_error(world: Any) -> None:
    assert (await fire(world, {"url": "http://127.0.0.1:1/h"})).decision is None
    assert "could not be asked" in world.notices()[0]


async def test_a_timeout_gives_no_decision(world: Any, server: Any) -> None:
    server.answer("/slow", DENY)
    assert (await fire(world, {"url": f"{server.url}/slow", "timeout": 0.3})).decision is None
    assert "timed out after 0.3 s" in world.notices()[0]


async def test_a_redirect_is_followed_on_the_same_host_only(world: Any, server: Any) -> None:
    server.answer("/h", DENY)
    server.answer("/here", b"", 307, Location="/h")
    server.answer("/away", b"", 307, Location=server.url.replace("127.0.0.1", "localhost") + "/h")
    server.answer("/loop", b"", 308, Location="/loop")
    assert (await fire(world, {"url": f"{server.url}/here"})).decision == "deny"
    assert server.seen[-1][2] == server.seen[-2][2]
    for path in ("/away", "/loop"):
        assert (await fire(world, {"url": server.url + path})).decision is None
        assert "redirect" in world.notices()[0]


@pytest.mark.parametrize(("hops", "decision"), [(MAX_REDIRECTS, "deny"), (MAX_REDIRECTS + 1, None)])
async def test_redirects_are_followed_up_to_the_limit(world: Any, server: Any, hops: int, decision: str | None) -> None:
    for n in range(hops):
        server.answer(f"/{n}", b"", 307, Location=f"/{n + 1}")
    server.answer(f"/{hops}", DENY)
    assert (await fire(world, {"url": f"{server.url}/0"})).decision == decision


async def test_headers_get_allowed_variables_only(world: Any, server: Any) -> None:
    os.environ.update(TOKEN="t1\r\nX-Evil: 1", SECRET="s1")
    headers = {"A": "Bearer $TOKEN", "B": "x${SECRET}y", "C": "$UNSET.", "D": "ünï"}
    await fire(world, {"url": f"{server.url}/h", "headers": headers, "allowedEnvVars": ["TOKEN", "UNSET"]})
    seen = server.seen[0][1]
    assert (seen["A"], seen["B"], seen["C"]) == ("Bearer t1X-Evil: 1", "xy", ".") and "X-Evil" not in seen
    assert "t1" not in "".join(world.debug + world.notices())


async def test_settings_narrow_the_variables(world: Any, server: Any) -> None:
    os.environ.update(TOKEN="t1", OTHER="o1")
    world.settings("user", httpHookAllowedEnvVars=["OTHER"])
    await fire(world, {"url": f"{server.url}/h", "headers": {"A": "$TOKEN$OTHER"}, "allowedEnvVars": ["TOKEN", "OTHER"]})
    assert server.seen[0][1]["A"] == "o1"


@pytest.mark.parametrize(("lists", "runs"), [
    ({}, True), ({"user": []}, False), ({"user": ["http://other/*"]}, False), ({"user": [], "local": ["*"]}, True),
    ({"managed": "no list"}, False)])
async def test_urls_must_be_listed_once_a_list_exists(world: Any, server: Any, lists: dict[str, Any], runs: bool) -> None:
    for scope, value in lists.items():
        world.settings(scope, allowedHttpHookUrls=value)
    server.answer("/h", DENY)
    merged = await fire(world, {"url": f"{server.url}/h"})
    assert (merged.decision == "deny") is runs and bool(server.seen) is runs
    assert any("allowedHttpHookUrls" in n for n in world.notices()) is not runs


@pytest.mark.parametrize(("pattern", "url", "covered"), [
    ("https://a.example.com/*", "https://A.example.com./x", True), ("https://a.example.com/*", "http://a.example.com/x", False),
    ("https://*.example.com/*", "https://a.example.com/x", True),
    ("https://*.example.com/*", "https://evil.net/.example.com/", False),
    ("https://a.example.com/*", "https://a.example.com@evil.net/", False), ("https://a/*", "https://u:p@a/x", True),
    ("https://a.example.com", "https://a.example.com/", True), ("https://a.example.com", "https://a.example.com/x", False),
    ("https://a.example.com*", "https://a.example.com/x", True), ("http://a:80/*", "http://a/x", True),
    ("http://a:81/*", "http://a/x", False), ("http://[::1]:8080/*", "http://[::1]:8080/h", True), ("*", "http://a/x", True),
    ("http://a/x?y=*", "http://a/x?y=1", True), ("http://a/x", "http://a/x?y=1", False), ("http://a./*", "http://A/x", True)])
def test_a_pattern_covers_what_it_says(pattern: str, url: str, covered: bool) -> None:
    assert covers(pattern, httpx.URL(url)) is covered


@pytest.mark.parametrize("url", ["ftp://a/x", "no url", "http://", "http://a b/", "file:///etc/passwd"])
async def test_a_url_that_cannot_work_is_announced(world: Any, url: str) -> None:
    merged = await fire(world, {"url": url, "onFailure": "block"})
    assert merged.decision == "deny" and world.notices()


async def test_secrets_of_a_url_stay_out_of_labels(world: Any, server: Any) -> None:
    await fire(world, {"url": server.url.replace("//", "//user:pw@") + "/gone?token=t1", "onFailure": "block", "timeout": 5})
    server.answer("/gone?token=t1", b"", 500)
    await fire(world, {"url": server.url.replace("//", "//user:pw@") + "/gone?token=t1"})
    told = "".join(world.notices() + world.debug)
    assert "/gone" in told and "t1" not in told and "pw" not in told
