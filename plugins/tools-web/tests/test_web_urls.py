"""URLs are read strictly, and every spelling of a host comes down to one."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st
from kernel_tools_web.urls import MAX_URL, BadUrl, Target, follow, parse


@pytest.mark.parametrize(("url", "read"), [
    ("https://example.com", "https://example.com/"),
    ("HTTPS://EXAMPLE.com.:443/a?b=c#d", "https://example.com/a?b=c"),
    ("http://example.com:8080", "http://example.com:8080/"),
    ("https://example.com/ä?ö=%20%zz", "https://example.com/%C3%A4?%C3%B6=%20%zz"),
    ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ("https://ＥＸＡＭＰＬＥ.com/", "https://example.com/"),
    ("https://example。com/", "https://example.com/"),
    ("https://127.0.0.1/", "https://127.0.0.1/"),
    ("https://[2001:DB8:0:0::1]:8443/x", "https://[2001:db8::1]:8443/x"),
    ("https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/"),
    ("https://a_b.example/", "https://a_b.example/"),
    ("https://example.com:/", "https://example.com/"),
    ("https://example.com?q=a/b?c", "https://example.com/?q=a/b?c"),
])
def test_spellings(url: str, read: str) -> None:
    assert parse(url).url == read


@pytest.mark.parametrize("url", [
    "", "example.com", "//example.com/", "ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)", "data:text/html,x",
    "https://", "https:///x", "https:example.com", "https://user@example.com/", "https://user:secret@example.com/",
    "http://docs.good.test@evil.test/", "https://@example.com/", "https://example.com\\@evil.test/", "https://exam ple.com/",
    "https://example.com/a b", " https://example.com/", "https://example.com/\n", "https://exam\tple.com/", "https://a\0b.test/",
    "https://example.com:0/", "https://example.com:99999/", "https://example.com:x/", "https://example..com/",
    "https://.example.com/", "https://example.com../", "https://exa%6dple.com/", "https://[::1/", "https://[::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[127.0.0.1]/", "https://[example.com]/", "https://exam[ple].com/",
    f"https://{'a' * 64}.example/", f"https://{'a.' * 127}example/", f"https://example.com/{'a' * MAX_URL}",
    "https://exa!mple.com/",
])
def test_what_is_no_plain_url(url: str) -> None:
    with pytest.raises(BadUrl):
        parse(url)


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.01",
                                  "1.2.3.4.5",
                                  "256.1.1.1", "127.0.0.0x1", "example.0x1", "example.1", "１２７.1", "①②⑦.1", "0", "00000177.1"])
def test_unusual_spellings_of_an_address_are_refused(host: str) -> None:
    """Resolvers take them for an address, so a rule for the usual spelling would not see it."""
    with pytest.raises(BadUrl, match="address"):
        parse(f"https://{host}/")


def test_other_digits_become_the_address_that_they_mean() -> None:
    assert parse("https://１２７.０.０.１/").host == "127.0.0.1"


def test_the_longest_url() -> None:
    url = "https://example.com/".ljust(MAX_URL, "a")
    assert parse(url).url == url


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40), st.text(alphabet="aB1.[]:%@/\\?#ü0x-_。\t", max_size=20))
def test_any_text_is_refused_or_read_in_one_way(anything: str, host: str) -> None:
    for url in (anything, f"https://{host}", f"http://{host}/{anything}"):
        try:
            target = parse(url)
        except BadUrl:
            continue
        assert parse(target.url) == target
        assert urlsplit(target.url).hostname == target.host and target.url.isascii() and "@" not in target.netloc


@pytest.mark.parametrize(("location", "leads"), [
    ("/b", "https://example.com/b"), ("c?d", "https://example.com/a/c?d"), ("//other.test/x", "https://other.test/x"),
    ("http://example.com/", "http://example.com/"), ("", "https://example.com/a/"), ("/ü b", "https://example.com/%C3%BC%20b"),
    (" /b ", "https://example.com/b%20"), ("../..", "https://example.com/"), ("#x", "https://example.com/a/"),
])
def test_where_a_redirection_leads(location: str, leads: str) -> None:
    found = follow(parse("https://example.com/a/"), location)
    assert found.url.rstrip("%20") == leads.rstrip("%20")


@pytest.mark.parametrize("location", ["javascript:x", "https://u:p@example.com/", "\\\\evil.test/", "https://[", "/a\\b",
                                      "file:///etc/passwd"])
def test_redirections_to_nowhere(location: str) -> None:
    with pytest.raises(BadUrl):
        follow(parse("https://example.com/a/"), location)


@given(st.text(max_size=50))
def test_any_location_is_a_target_or_a_refusal(location: str) -> None:
    try:
        assert isinstance(follow(parse("https://example.com/"), location), Target)
    except BadUrl:
        pass


def test_https_in_place_of_http() -> None:
    assert parse("http://example.com/x").secure().url == "https://example.com/x"
    assert parse("http://example.com:8080/x").secure().url == "https://example.com:8080/x"
    assert parse("https://example.com/x").secure().url == "https://example.com/x"


def test_the_url_at_an_address() -> None:
    assert parse("https://example.com/x").at("192.0.2.1") == "https://192.0.2.1:443/x"
    assert parse("https://example.com:1/x").at("2001:db8::1") == "https://[2001:db8::1]:1/x"
