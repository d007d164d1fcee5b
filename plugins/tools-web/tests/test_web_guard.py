"""Which addresses may be contacted, in every spelling; who may widen it; and that the checked address is the one that is used."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_tools_web import guard
from kernel_tools_web.client import Client
from kernel_tools_web.guard import Access, forbidden
from kernel_tools_web.urls import parse

from kernel import Layer, ToolError
from kernel.testing import Kit

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.0", "192.167.1.1", "100.63.255.255", "100.128.0.0",
          "169.253.1.1", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::200e", "2002:0808:0808::1", "64:ff9b::808:808",
          "::ffff:8.8.8.8"]
if sys.version_info < (3, 11, 5):  # older tables of the standard library call all of 2002::/16 private
    PUBLIC.remove("2002:0808:0808::1")
PRIVATE = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255",
    "192.168.0.1",
    "169.254.169.254", "169.254.0.1", "169.254.170.2", "168.63.129.16", "100.64.0.1", "100.100.100.200", "100.127.255.255",
    "192.0.0.1", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255", "::1", "::", "fe80::1", "fe80::1:2:3:4", "febf::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fd12:3456::1",
    "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:168.63.129.16", "::127.0.0.1",
    "::10.0.0.1",
    "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::1",
    "2001:db8::1",
    "2001:0:7f00:1::", "2001:0:4136:e378:8000:63bf:80ff:fffe", "100::1", "3fff::1", "5f00::1", "4000::1", "not an address", "",
    "1.2.3",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert forbidden(address) == ""


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public(address: str) -> None:
    assert forbidden(address) != ""


@pytest.mark.skipif(sys.version_info < (3, 11, 5), reason="older tables of the standard library call all of 2002::/16 private")
@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_every_ipv6_form(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    for form in (ipaddress.IPv6Address((0xFFFF << 32) + number), ipaddress.IPv6Address((0x64FF9B << 96) + number),
                 ipaddress.IPv6Address((0x2002 << 112) + (number << 80) + 1)):
        assert bool(forbidden(str(form))) == bool(forbidden(str(address)))


@given(st.ip_addresses(v=6))
def test_only_global_unicast_is_public(address: ipaddress.IPv6Address) -> None:
    networks = map(ipaddress.IPv6Network, ("2000::/3", "::ffff:0:0/96", "64:ff9b::/96"))
    assert any(address in network for network in networks) or forbidden(str(address))


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "10.0.0.1",
                                  "169.254.169.254",
                                  "localhost.", "LOCALHOST", "ⓛocalhost"])
async def test_nothing_is_contacted_at_an_address_that_is_not_public(fetch: Callable[..., Any], site: Any, host: str) -> None:
    run = await fetch(f"http://{host}:{site.port}/", web={})
    result = run.result_of("call_1")
    assert result["is_error"] and "Only public addresses" in result["content"] and "kernel.web.allowPrivate" in result["content"]
    assert site.seen == []


def answering(*answers: list[str]) -> tuple[guard.Resolver, list[str]]:
    """A name server whose answers differ from time to time."""
    left, asked = list(answers), []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return left.pop(0)

    return resolver, asked


@pytest.mark.anyio
async def test_a_name_is_resolved_once_and_its_address_contacted(fetch: Callable[..., Any], fetched: Any, site: Any) -> None:
    """A second answer (rebinding) is never asked for; the server still sees the name."""
    resolver, asked = answering(["127.0.0.1"])
    site.routes["/x"] = "<p>hello"
    run = await fetch(f"http://site.test:{site.port}/x", "it says hello", web={"allowPrivate": ["site.test"]},
                      client=Client(resolver=resolver))
    assert fetched(run)["result"] == "it says hello" and asked == ["site.test"]
    assert site.seen[0][1]["host"] == f"site.test:{site.port}"


@pytest.mark.anyio
@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["2606:4700::1111", "::ffff:10.0.0.1"],
                                       ["fe80::1%1"]])
async def test_one_private_address_among_public_ones_refuses_the_name(addresses: list[str]) -> None:
    resolver, _ = answering(addresses)
    with pytest.raises(ToolError) as caught:
        await guard.checked(parse("https://site.test/"), Access(), resolver)
    assert caught.value.code == "blocked_address" and "site.test (" in str(caught.value)


@pytest.mark.anyio
async def test_each_redirection_is_checked_anew(fetch: Callable[..., Any], site: Any) -> None:
    """The first answer was allowed because its port is listed; the same host on another port is not."""
    site.routes["/"] = (302, {"location": f"http://site.test:{site.port + 1}/secret"}, "")
    resolver, asked = answering(["127.0.0.1"], ["127.0.0.1"])
    run = await fetch(f"http://site.test:{site.port}/", web={"allowPrivate": [f"site.test:{site.port}"]},
                      client=Client(resolver=resolver))
    assert "loopback" in run.result_of("call_1")["content"] and asked == ["site.test", "site.test"]


@pytest.mark.anyio
async def test_names_without_an_address(fetch: Callable[..., Any]) -> None:
    async def gone(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    resolver, _ = answering([])
    for client in (Client(resolver=gone), Client(resolver=resolver)):
        run = await fetch("https://nowhere.test/", client=client)
        assert run.result_of("call_1")["is_error"] and "nowhere.test has no address" in run.result_of("call_1")["content"]


@pytest.mark.anyio
async def test_the_next_address_is_tried_where_one_does_not_answer(fetch: Callable[..., Any], fetched: Any, site: Any) -> None:
    resolver, _ = answering(["127.0.0.2", "127.0.0.1"])  # the server listens at the second one only
    site.routes["/"] = "<p>hello"
    run = await fetch(f"http://site.test:{site.port}/", "hello", web={"allowPrivate": ["site.test"]},
                      client=Client(resolver=resolver))
    assert fetched(run)["code"] == 200


# -- settings -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("entry", "url", "listed"), [
    ("127.0.0.1", "http://127.0.0.1:8080/", True), ("127.0.0.1:80", "http://127.0.0.1/", True),
    ("127.0.0.1:80", "http://127.0.0.1:81/", False),
    ("LocalHost.", "http://localhost/", True), ("localhost", "http://127.0.0.1/", False),
    ("example.com", "http://sub.example.com/", False),
    ("::1", "http://[0:0:0:0:0:0:0:1]/", True), ("[::1]", "http://[::1]:5/", True), ("[::1]:5", "http://[::1]:5/", True),
    ("*", "http://localhost/", False), ("", "http://localhost/", False),
])
def test_entries_of_allow_private(tmp_path: Path, entry: str, url: str, listed: bool) -> None:
    session = Kit(tmp_path, settings={"kernel": {"web": {"allowPrivate": [entry, 5, None]}}}).open()
    assert Access.of(session).lists(parse(url)) is listed


@pytest.mark.parametrize(("scope", "trusted", "counts"), [
    ("project", False, False), ("local", False, False), ("project", True, True), ("local", True, True), ("user", False, True),
    ("cli", False, True), ("managed", False, True),
])
def test_a_project_cannot_widen_it_before_it_is_trusted(tmp_path: Path, scope: Any, trusted: bool, counts: bool) -> None:
    session = Kit(tmp_path).open()
    session.settings.trusted = trusted
    data = {"kernel": {"web": {"allowPrivate": ["localhost"], "useProxy": True}}}
    session.settings.layers.append(Layer(scope, "settings.json", data, str(tmp_path)))
    access = Access.of(session)
    assert (access.lists(parse("http://localhost/")), access.proxy) == (counts, counts)


@pytest.mark.parametrize("value", [None, "localhost", {"a": 1}, 5, [["localhost"]]])
def test_a_setting_of_another_shape_allows_nothing(tmp_path: Path, value: Any) -> None:
    session = Kit(tmp_path, settings={"kernel": {"web": {"allowPrivate": value, "useProxy": "yes"}}}).open()
    assert Access.of(session) == Access()
