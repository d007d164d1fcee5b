"""From bytes to text: what kind of content it is, its character set, and HTML as Markdown."""

from __future__ import annotations

import codecs
import re
from typing import Literal

Kind = Literal["html", "text", "binary"]

HTML_CHARS = 2_000_000
"""HTML is cut here before it is converted, which bounds the work."""
_SNIFFED = 1024

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET = re.compile(r"charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w.:-]{1,40})", re.IGNORECASE)
_META = re.compile(rb"""<meta\b[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""", re.IGNORECASE)
_CHARSETS = re.compile(r"utf-8|utf-16(-[lb]e)?|iso8859-\d+|cp(125\d|866|874|932|949|950)|koi8-[ru]|mac-roman|gb2312|gbk|gb18030|"
                       r"big5(hkscs)?|euc_(jp|kr)|shift_jis|iso2022_jp|johab|tis-620")
"""Codecs that web pages use. Python has others (``unicode_escape``, ``idna`` ...), which a page must not choose."""
_HIDDEN = re.compile(r"<(script|style|noscript|template)\b", re.IGNORECASE)
_HIDDEN_END = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "noscript", "template")}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_TEXTS = ("application/json", "application/xml", "application/javascript", "application/x-javascript", "application/ecmascript",
          "application/yaml", "application/x-yaml", "application/toml", "application/x-sh", "application/sql", "message/rfc822")


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def kind_of(content_type: str, body: bytes) -> Kind:
    """By the declared type; by the bytes where there is none, or where "text" is none."""
    media = media_type(content_type)
    if media in ("text/html", "application/xhtml+xml"):
        return "html"
    if media.startswith("text/") or media in _TEXTS or media.endswith(("+json", "+xml", "+yaml")):
        return "binary" if _looks_binary(body) else "text"
    if media:
        return "binary"
    if _looks_binary(body):
        return "binary"
    start = body[:_SNIFFED].lstrip().lower()
    return "html" if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")) else "text"


def _looks_binary(body: bytes) -> bool:
    return b"\0" in body[:_SNIFFED] and not body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decode(body: bytes, content_type: str, *, html: bool = False) -> str:
    """The text: by its mark, else the header's charset, else the page's, else UTF-8. Never raises."""
    for mark, charset in _MARKS:
        if body.startswith(mark):
            return _clean(body[len(mark):].decode(charset, "replace"))
    given = _CHARSET.search(content_type)
    name = _codec(given[1]) if given else None
    if name is None and html and (meta := _META.search(body[:_SNIFFED])):
        name = _codec(meta[1].decode("ascii", "replace"))
        name = "utf-8" if name and name.startswith("utf-16") else name  # it could not be read if that were true
    return _clean(body.decode(name or "utf-8", "replace"))


def _codec(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    if name in ("iso8859-1", "ascii"):  # as browsers do
        return "cp1252"
    return name if _CHARSETS.fullmatch(name) else None


def _clean(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def markdown(html: str) -> str:
    """HTML as Markdown; blocking, linear in its length. What the converter cannot do comes as bare text."""
    from html_to_markdown import ConversionOptions, InlineDataMedia, PreprocessingOptions, convert

    html = html[:HTML_CHARS]
    options = ConversionOptions(
        # Whole pages stand inside of one form, and titles in a header: nothing that can be seen is left out.
        preprocessing=PreprocessingOptions(remove_forms=False, remove_navigation=False),
        inline_data_media=InlineDataMedia.ALT_TEXT_ONLY, exclude_selectors=["svg", "iframe"])
    try:
        found = str(convert(html, options).content or "")
    except Exception:  # whatever a page does to it
        found = ""
    # Elements that nest without end are dropped by the converter, and leave at most their marks.
    return found.strip() if any(map(str.isalnum, found)) else bare_text(html)


def bare_text(html: str) -> str:
    """The text between the tags, without scripts and styles; one pass over the page."""
    from html import unescape

    parts: list[str] = []
    position = 0
    while (start := html.find("<", position)) >= 0:
        parts.append(html[position:start])
        hidden = _HIDDEN.match(html, start)
        if hidden:
            ends = _HIDDEN_END[hidden[1].lower()].search(html, start)
            start = ends.start() if ends else len(html)
        end = html.find(">", start)
        position = end + 1 if end >= 0 else len(html)
        parts.append(" ")
    text = unescape("".join([*parts, html[position:]]))
    return re.sub(r" ?\n\s*", "\n", re.sub(r"[ \t]{2,}", " ", text)).strip()
