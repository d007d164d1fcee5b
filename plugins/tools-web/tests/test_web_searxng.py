"""The search backend ``searxng`` against a real server of the same form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from kernel_tools_web import plugin, searxng

from kernel import Layer, Settings
from kernel.testing import Kit, Run, call, text

pytestmark = pytest.mark.anyio


def answer(*urls: str, **more: Any) -> bytes:
    return json.dumps({"query": "q", "results": [{"title": f"T{n}", "url": u, "content": "c"} for n, u in enumerate(urls)],
                       **more}).encode()


class Engine:
    """Every search gets the same answer; ``asked`` keeps what was searched for."""

    def __init__(self, site: Any) -> None:
        self.site, self.asked = site, []
        self.status, self.body = 200, answer()
        site.answer = self.reply

    def reply(self, handler: Any) -> None:
        parts = urlsplit(handler.path)
        self.asked.append((parts.path, {k: v[0] for k, v in parse_qs(parts.query).items()}))
        handler.send_response(self.status)
        handler.send_header("content-length", str(len(self.body)))
        handler.end_headers()
        handler.wfile.write(self.body)


@pytest.fixture
def engine(site: Any) -> Engine:
    return Engine(site)


async def searched(cwd: Path, url: Any, **input: Any) -> Run:
    it = Kit(cwd, (call("WebSearch", query="cats", **input), text("done")), hooks={"tools-web": plugin},
             settings={"kernel": {"search": {"name": "searxng", "url": url}}})
    return await it.run("go")


async def test_titles_and_urls_come_from_the_server(tmp_path: Path, engine: Engine) -> None:
    engine.body = answer("https://a.test/1", "javascript:alert(1)", "https://b.test/", "https://a.test/1")
    run = await searched(tmp_path, engine.site.url + "/")
    content = run.result_of("call_1")["content"]
    assert engine.asked == [("/search", {"q": "cats", "format": "json"})]
    assert "- T0: https://a.test/1" in content and "- T2: https://b.test/" in content and "javascript" not in content


@pytest.mark.parametrize(("input", "query", "kept"), [
    ({"allowed_domains": ["a.test"]}, "cats site:a.test", ["https://a.test/", "https://sub.a.test/"]),
    ({"allowed_domains": ["A.test", "b.test"]}, "cats", ["https://a.test/", "https://sub.a.test/", "https://b.test/"]),
    ({"blocked_domains": ["a.test"]}, "cats", ["https://nota.test/", "https://b.test/"]),
])
async def test_domains_are_kept_and_left_out(tmp_path: Path, engine: Engine, input: dict[str, Any], query: str,
                                             kept: list[str]) -> None:
    urls = ["https://a.test/", "https://sub.a.test/", "https://nota.test/", "https://b.test/"]
    engine.body = answer(*urls)
    content = (await searched(tmp_path, engine.site.url, **input)).result_of("call_1")["content"]
    assert engine.asked[0][1]["q"] == query and [u for u in urls if f": {u}" in content] == kept


async def test_no_more_hits_than_wanted(tmp_path: Path, engine: Engine) -> None:
    engine.body = answer(*[f"https://a.test/{n}" for n in range(50)])
    assert (await searched(tmp_path, engine.site.url)).result_of("call_1")["content"].count("https://a.test/") == 20


@pytest.mark.parametrize(("status", "body", "said"), [
    (403, b"", "search.formats"), (429, b"", "refuses more"), (500, b"x", "status 500"), (302, b"", "status 302"),
    (200, b"<html>", "no JSON"), (200, b"[" * 200_000, "no JSON"), (200, b"[]", "no list 'results'"),
    (200, b'{"results": 5}', "no list"),
    (200, b"\xff\xfe", "no JSON"), (200, b" " * (searxng.MAX_BYTES + 1), "larger than"),
])
async def test_what_goes_wrong_names_the_setting(tmp_path: Path, engine: Engine, status: int, body: bytes, said: str) -> None:
    engine.status, engine.body = status, body
    result = (await searched(tmp_path, engine.site.url)).result_of("call_1")
    assert result["is_error"] and said in result["content"] and "kernel.search.url" in result["content"]


@pytest.mark.parametrize("url", [None, "", 5, "x.test", "ftp://x.test", "http://", "http://x:99999", "http://u:p@x.test", "http://x/?q=1",
                                 "http://127.0.0.1:1"])
async def test_an_address_that_is_none_names_the_setting(tmp_path: Path, url: Any) -> None:
    result = (await searched(tmp_path, url)).result_of("call_1")
    assert result["is_error"] and ("kernel.search" in result["content"] or '"search"' in result["content"])


async def test_an_untrusted_project_does_not_choose_who_searches(tmp_path: Path, engine: Engine) -> None:
    it = Kit(tmp_path, hooks={"tools-web": plugin})
    layer = Layer("project", "s.json", {"kernel": {"search": {"url": engine.site.url}}}, str(tmp_path))
    for trusted in (False, True):
        it.harness.settings = Settings([layer], [], config_dir=tmp_path / "c", project_root=tmp_path, trusted=trusted)
        from kernel_tools_web.search import backend_name

        assert backend_name(it.open()) == ("searxng" if trusted else "provider")
