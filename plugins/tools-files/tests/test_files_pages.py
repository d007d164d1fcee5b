"""The page reader against a plain one, on any text and any cut of it into chunks."""

from __future__ import annotations

import io

from hypothesis import given, strategies as st
from kernel_tools_files import pages
from kernel_tools_files.pages import Page, read_page

TEXTS = st.text(st.sampled_from("ab\n\r\u2028é😀\t"), max_size=60)


def read(raw: bytes, start: int = 1, limit: int | None = None, max_chars: int = 10**9) -> Page:
    return read_page(io.BytesIO(raw), "f", start=start, limit=limit, explicit=False, max_chars=max_chars, check=lambda: None)


def plain(text: str) -> list[str]:
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


@given(TEXTS, st.integers(1, 12), st.none() | st.integers(1, 12), st.integers(1, 9))
def test_lines_and_counts_are_those_of_a_plain_split(text: str, start: int, limit: int | None, chunk: int) -> None:
    before, pages.CHUNK = pages.CHUNK, chunk
    try:
        page = read(text.encode(), start, limit)
    finally:
        pages.CHUNK = before
    wanted = plain(text)
    assert page.total == len(wanted)
    assert page.lines == wanted[start - 1:None if limit is None else start - 1 + limit]
    assert page.end == start + len(page.lines) - 1


@given(TEXTS, st.integers(1, 60))
def test_a_capped_page_is_as_long_as_fits_and_never_empty(text: str, max_chars: int) -> None:
    page = read(text.encode(), max_chars=max_chars)
    view = pages.numbered(page.lines, 1)
    wanted = plain(text)
    assert page.lines == wanted[:len(page.lines)] and page.total == len(wanted)
    assert page.capped == (len(page.lines) < len(wanted))
    assert len(view) <= max_chars or len(page.lines) == 1
    if page.capped:
        assert len(pages.numbered(wanted[:len(page.lines) + 1], 1)) > max_chars


@given(TEXTS)
def test_content_is_the_text_with_plain_line_ends(text: str) -> None:
    text = text.replace("\r", "")
    assert read(text.encode()).content == text


@given(st.binary(max_size=40))
def test_any_bytes_give_a_page_or_a_tool_error(raw: bytes) -> None:
    from kernel import ToolError

    try:
        lines = read(raw).lines
    except ToolError:
        assert b"\0" in raw or raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        return
    "".join(lines).encode()
