"""From bytes to text: kinds, character sets, Markdown, and pages made to hurt."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given, strategies as st
from kernel_tools_web import text
from kernel_tools_web.text import bare_text, decode, kind_of, markdown


@pytest.mark.parametrize(("media", "body", "kind"), [
    ("text/html; charset=utf-8", b"x", "html"), ("TEXT/HTML", b"", "html"), ("application/xhtml+xml", b"<p>", "html"),
    ("text/plain", b"x", "text"), ("text/plain", b"\0\1", "binary"), ("text/plain", "ä".encode("utf-16"), "text"),
    ("text/markdown", b"#", "text"), ("application/json", b"{}", "text"), ("application/ld+json", b"{}", "text"),
    ("image/svg+xml", b"<svg>", "text"), ("application/pdf", b"%PDF", "binary"), ("image/png", b"x", "binary"),
    ("application/octet-stream", b"plain", "binary"), ("", b"<!DOCTYPE HTML><p>", "html"), ("", b"\n <html>", "html"),
    ("", b"plain", "text"), ("", b"\0", "binary"), ("", b"", "text"), (";;;", b"plain", "text"), ("text/html", b"\0<p>", "html"),
])
def test_kinds(media: str, body: bytes, kind: str) -> None:
    assert kind_of(media, body) == kind


UMLAUT = "Grüße, 日本"


@pytest.mark.parametrize(("body", "media", "expected"), [
    (UMLAUT.encode(), "text/html; charset=utf-8", UMLAUT), (UMLAUT.encode(), "text/html", UMLAUT),
    ("Grüße €".encode("cp1252"), "text/html; charset=ISO-8859-1", "Grüße €"),
    ("Grüße".encode("latin-1"), 'text/html; charset="latin1"', "Grüße"),
    ("Grüße".encode("latin-1"), "text/html; charset=us-ascii", "Grüße"),
    ("日本".encode("shift_jis"), "text/html;charset=Shift_JIS", "日本"),
    ("日本".encode("euc_jp"), "text/html; charset=euc-jp", "日本"),
    ("中文".encode("gb18030"), "text/html; charset=GB18030", "中文"),
    ("привет".encode("koi8-r"), "text/html; charset=koi8-r", "привет"),
    ("ελ".encode("cp1253"), "text/html; charset=windows-1253", "ελ"),
    (codecs.BOM_UTF8 + UMLAUT.encode(), "text/html; charset=latin-1", UMLAUT), (UMLAUT.encode("utf-16"), "text/html", UMLAUT),
    (codecs.BOM_UTF16_BE + UMLAUT.encode("utf-16-be"), "text/html; charset=utf-8", UMLAUT),
    (UMLAUT.encode("utf-16-le"), "text/html; charset=utf-16le", UMLAUT),
    ('<meta charset="windows-1251">привет'.encode("cp1251"), "text/html", '<meta charset="windows-1251">привет'),
    ("<meta http-equiv=x content='text/html; charset=iso-8859-15'>€".encode("iso8859-15"), "text/html",
     "<meta http-equiv=x content='text/html; charset=iso-8859-15'>€"),
    ("<meta charset=utf-16>ä".encode(), "text/html", "<meta charset=utf-16>ä"),
    ("ä".encode(), "text/html; charset=nonsense", "ä"), ("ä".encode(), "text/html; charset=", "ä"),
    (b"\\u0041", "text/html; charset=unicode_escape", "\\u0041"), (b"+AGEA", "text/html; charset=utf-7", "+AGEA"),
    (b"abc-", "text/html; charset=punycode", "abc-"), (b"abc", "text/html; charset=rot13", "abc"),
    (b"616263", "text/html; charset=hex", "616263"),
    (b"a\xffb", "text/html; charset=utf-8", "a\ufffdb"), (b"a\r\nb\rc\x1b[31md\0", "text/plain", "a\nb\nc[31md"),
])
def test_character_sets(body: bytes, media: str, expected: str) -> None:
    assert decode(body, media, html="html" in media) == expected


@given(st.binary(max_size=300), st.text(max_size=30))
def test_any_bytes_become_text(body: bytes, label: str) -> None:
    found = decode(body, f"text/html; charset={label}", html=True)
    found.encode()  # no lone surrogates
    assert not set(found) & set("\0\x1b\r")


@pytest.mark.parametrize(("html", "parts", "without"), [
    ("<h1>A</h1><h2>B</h2><p>c <em>d</em> <strong>e</strong> <a href='/f'>g</a>", ["# A", "## B", "*d*", "**e**", "[g](/f)"],
     ["<"]),
    ("<ul><li>a<li>b<ol><li>c</ol></ul>", ["- a", "- b", "1. c"], ["<"]),
    ("<pre><code>  x = 1\n  y</code></pre>", ["```", "  x = 1\n  y"], []),
    ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", ["| a | b |", "| 1 | 2 |"], ["<"]),
    ("<p>shown<script>run()</script><style>a{}</style><noscript>n</noscript><template>t</template><!-- c -->",
     ["shown"], ["run", "a{", "-- c"]),
    ("<form><header><h1>T</h1></header><nav><a href=/n>menu</a></nav><p>all of it</form>", ["# T", "menu", "all of it"], []),
    ("<img src='data:image/png;base64,AAAA' alt='a pie'><svg><text>deep</text></svg><iframe src=x></iframe>", ["a pie"],
     ["base64", "deep"]),
    ("<p>unclosed <b>bold <i>both</b> italic<p>next", ["unclosed", "both", "italic", "next"], ["<"]),
    ("<p>a &amp; b &lt;c&gt; &#xe4; &nosuch; &", ["a & b <c> ä"], []),
    ("<td>lost cell</td></div></p><p>x</div>", ["lost cell", "x"], ["</"]),
    ("no tags at all & so", ["no tags at all & so"], []), ("<title>T</title><p>x", ["title: T", "x"], []), ("", [], []),
    ("<p title='>'>x</p", ["x"], []),
])
def test_html_becomes_markdown(html: str, parts: list[str], without: list[str]) -> None:
    found = markdown(html)
    assert all(p in found for p in parts) and not any(w in found for w in without)


HURTFUL = {
    "deep": "<div>" * 50_000 + "x", "bold": "<b>" * 50_000 + "x", "lists": "<ul><li>" * 20_000 + "x",
    "tables": "<table><tr><td>" * 20_000 + "x",
    "comments": "<!--" * 200_000 + "x", "brackets": "<" * 500_000, "attributes": "<a " + "x=1 " * 200_000 + ">x</a>",
    "half tags": "<a" * 300_000,
    "quotes": '<a href="' * 100_000, "entities": "&#x" * 200_000, "ampersands": "&" * 500_000, "scripts": "<script>" * 100_000,
    "spaces": "<p>x" + " " * 1_000_000 + "x", "no-break": "<p>x" + "&nbsp;" * 100_000 + "x", "paragraphs": "<p>x " * 100_000,
    "closing": "</p>" * 200_000 + "x", "nul": "\0<p>x\0" * 1000, "surrogates": "<p>x\ud800y",
    "right to left": "\u202e<p>x" * 1000,
}


@pytest.mark.parametrize("name", HURTFUL)
def test_pages_made_to_hurt_are_converted(name: str) -> None:
    """Nothing raises, nothing ends the process, and a conversion that was more than linear would not come back."""
    found = markdown(HURTFUL[name])
    assert isinstance(found, str)
    assert "x" in found or name in ("brackets", "half tags", "quotes", "scripts", "entities", "ampersands", "comments")


@pytest.mark.parametrize("name", HURTFUL)
def test_so_is_their_bare_text(name: str) -> None:
    assert isinstance(bare_text(HURTFUL[name]), str)


@pytest.mark.parametrize(("html", "bare"), [
    ("<p>a</p> <b>b</b>\n\n  c", "a b\nc"), ("a<script>if (a<b) x()</script>b<STYLE>c</Style >d", "a b d"),
    ("a<script>never closed", "a"),
    ("&lt;b&gt; &amp;", "<b> &"), ("a<!-- b -->c", "a c"), ("a < b", "a"), ("", ""),
])
def test_bare_text(html: str, bare: str) -> None:
    assert bare_text(html) == bare


def test_elements_nested_too_deeply_for_the_converter_keep_their_text() -> None:
    assert markdown("<div>" * 5_000 + "the text" + "</div>" * 5_000) == "the text"


def test_html_is_cut_before_it_is_converted() -> None:
    assert "end" not in markdown("<p>x</p>" * (text.HTML_CHARS // 8) + "end")


@given(st.text(alphabet="<>/!-abp \"'=&;\n", max_size=200))
def test_any_markup_becomes_text(html: str) -> None:
    assert isinstance(markdown(html), str)
    assert isinstance(bare_text(html), str)
