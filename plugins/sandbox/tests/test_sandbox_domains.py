"""Which hosts a list of domains means."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from kernel_sandbox.domains import Domains, HostPattern, ascii_host, parse_all, refusal

CASES = [
    ("example.com", "example.com", 443, True), ("example.com", "a.example.com", 443, False),
    ("example.com", "example.com.evil.com", 443, False), ("example.com", "notexample.com", 443, False),
    ("*.example.com", "a.example.com", 443, True), ("*.example.com", "a.b.example.com", 80, True),
    ("*.example.com", "example.com", 443, False), ("*.example.com", ".example.com", 443, False),
    ("*", "anything.test", 1, True), ("example.com:8443", "example.com", 8443, True),
    ("example.com:8443", "example.com", 443, False), ("EXAMPLE.com.", "example.com", 443, True),
    ("example.*", "example.org", 443, True), ("example.*", "example.evil.com", 443, False),
    ("api-*.example.com", "api-1.example.com", 443, True), ("api-*.example.com", "api-1.x.example.com", 443, False),
    ("bücher.example", "xn--bcher-kva.example", 443, True), ("10.0.0.1", "10.0.0.1", 80, True), ("[::1]:80", "::1", 80, True),
    ("::1", "::1", 443, True), ("*:80", "a.test", 80, True), ("*:80", "a.test", 443, False),
]


@pytest.mark.parametrize(("pattern", "host", "port", "covered"), CASES)
def test_a_pattern_covers_what_it_says(pattern: str, host: str, port: int, covered: bool) -> None:
    assert HostPattern.parse(pattern).covers(host, port) is covered


@pytest.mark.parametrize("text", ["", " ", "a b", "http://example.com", "example.com/path", "example.com:port", "a:0", "a:70000",
                                  "a\r\nb", "x" * 300])
def test_what_is_no_host_is_said(text: str) -> None:
    patterns, problems = parse_all([text, "good.test"])
    assert [p.host for p in patterns] == ["good.test"] and len(problems) == 1


def test_a_denial_wins_and_the_exact_pattern_is_named() -> None:
    domains = Domains(parse_all(["*.a.test", "x.a.test", "b.test"])[0], parse_all(["bad.a.test", "*.b.test"])[0])
    assert domains.permits("x.a.test", 443) == HostPattern("x.a.test")
    assert domains.permits("y.a.test", 443) == HostPattern("*.a.test")
    assert domains.permits("bad.a.test", 443) is None and domains.permits("c.test", 443) is None
    assert domains.permits("b.test", 80) and not domains.permits("x.b.test", 80)


REFUSALS = [
    ("93.184.216.34", "*", True), ("127.0.0.1", "*", False), ("127.8.8.8", "example.com", False), ("::1", "example.com", False),
    ("::ffff:127.0.0.1", "example.com", False), ("0.0.0.0", "*", False), ("169.254.169.254", "metadata.test", False),
    ("fe80::1%eth0", "example.com", False), ("224.0.0.1", "example.com", False), ("10.1.2.3", "*.corp.test", False),
    ("10.1.2.3", "git.corp.test", True), ("192.168.1.1", "*", False), ("fd00::1", "*", False), ("2606:4700::1", "*", True),
    ("127.0.0.1", "localhost", True), ("127.0.0.1", "app.localhost", True), ("127.0.0.1", "127.0.0.1", True),
    ("169.254.169.254", "169.254.169.254", True), ("not an address", "*", False),
]


@pytest.mark.parametrize(("address", "pattern", "fine"), REFUSALS)
def test_a_name_does_not_open_more_than_it_says(address: str, pattern: str, fine: bool) -> None:
    assert (refusal(address, HostPattern.parse(pattern)) is None) is fine


@given(st.text(max_size=40), st.text(max_size=40), st.integers(1, 65535))
def test_no_text_makes_matching_fail_otherwise_than_by_saying_so(pattern: str, host: str, port: int) -> None:
    try:
        parsed, name = HostPattern.parse(pattern), ascii_host(host)
    except ValueError:
        return
    assert parsed.covers(name, port) in (True, False)


@given(st.lists(st.sampled_from(["a.test", "*.a.test", "*", "b.test:80", "c.*"])),
       st.sampled_from(["a.test", "x.a.test", "b.test"]), st.sampled_from([80, 443]))
def test_more_denials_never_permit_more(denied: list[str], host: str, port: int) -> None:
    allowed = parse_all(["*"])[0]
    for n in range(len(denied)):
        fewer, more = (Domains(allowed, parse_all(denied[:m])[0]).permits(host, port) for m in (n, n + 1))
        assert not (more and not fewer)
