"""Markdown as lines for a terminal, and where a text that still grows can be cut so that what is in front will not change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kernel_terminal.lines import Line, Piece, cut, width_of, wrapped

if TYPE_CHECKING:
    from markdown_it.token import Token

WIDEST = 100
"""Columns that running text takes at most: longer lines are hard to read."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def settled(text: str) -> int:
    """How many characters at the front are whole blocks, whatever comes behind: up to a blank line outside of fenced code behind
    which something begins at the left edge."""
    fence = ""
    place = found = 0
    blank = False
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if not fence and blank and line.strip() and not line[0].isspace():
            found = place
        if mark and not fence:
            fence = mark[1]
        elif fence and mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        blank = not line.strip() and line.endswith("\n")
        place += len(line)
    return found


def rendered(text: str, columns: int) -> list[Line]:
    """:param text: Markdown without control characters (``safe.plain``)."""
    return _Renderer(max(min(columns, WIDEST), 20), columns).lines(text)


_parser: Any = None


def _parse(text: str) -> list[Token]:
    global _parser
    if _parser is None:
        from markdown_it import MarkdownIt

        _parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        _parser.disable(["html_block", "html_inline"])
    tokens: list[Token] = _parser.parse(text)
    return tokens


class _Renderer:
    def __init__(self, columns: int, code_columns: int) -> None:
        self.columns = columns
        self.code_columns = code_columns
        self.out: list[Line] = []
        self._indents: list[str] = []
        self._marker = ""
        self._lists: list[list[int | None]] = []
        """Of each open list: the next number (``None``: bullets), and whether it is tight."""

    def lines(self, text: str) -> list[Line]:
        tokens = _parse(text)
        place = 0
        while place < len(tokens):
            place = self._block(tokens, place)
        while self.out and not self.out[-1]:
            self.out.pop()
        return self.out

    # -- blocks ----------------------------------------------------------------------------------------------------------
    def _block(self, tokens: list[Token], place: int) -> int:
        token = tokens[place]
        kind = token.type
        if kind == "heading_open":
            level = int(token.tag[1:])
            self._text([("heading", f"{'#' * level} "), *_inline(tokens[place + 1], "heading")])
            self._gap()
            return place + 3
        if kind == "paragraph_open":
            self._text(_inline(tokens[place + 1]))
            if not token.hidden:
                self._gap()
            return place + 3
        if kind in ("fence", "code_block"):
            self._code(token)
        elif kind == "hr":
            self._text([("dim", "─" * min(self.columns - self._used(), 24))])
            self._gap()
        elif kind in ("bullet_list_open", "ordered_list_open"):
            start = token.attrGet("start")
            self._lists.append([None if kind.startswith("bullet") else int(start) if start is not None else 1])
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()
            if not self._lists:
                self._gap()
        elif kind == "list_item_open":
            number = self._lists[-1][0]
            marker = "• " if number is None else f"{number}. "
            if number is not None:
                self._lists[-1][0] = number + 1
            self._marker = self._front() + marker
            self._indents.append(" " * width_of(marker))
        elif kind == "list_item_close":
            if self._marker:  # an empty item
                self._text([])
            self._indents.pop()
        elif kind == "blockquote_open":
            self._indents.append("│ ")
        elif kind == "blockquote_close":
            self._indents.pop()
            self._gap()
        elif kind == "table_open":
            return self._table(tokens, place)
        elif kind == "inline":
            self._text(_inline(token))
        return place + 1

    def _front(self) -> str:
        return "".join(self._indents)

    def _used(self) -> int:
        return width_of(self._front())

    def _take_marker(self) -> str:
        marker, self._marker = self._marker or self._front(), ""
        return marker

    def _text(self, pieces: list[Piece]) -> None:
        self.out += wrapped(pieces, self.columns, self._take_marker(), self._front())

    def _gap(self) -> None:
        if self.out and self.out[-1]:
            self.out.append([])

    def _code(self, token: Token) -> None:
        """Code is not broken: what is copied from the screen must be what was written."""
        if self._marker:
            self._text([])
        for line in token.content.rstrip("\n").split("\n"):
            self.out.append([("", self._front() + "  "), ("code", line)])
        self._gap()

    def _table(self, tokens: list[Token], place: int) -> int:
        rows: list[list[str]] = []
        while tokens[place].type != "table_close":
            if tokens[place].type == "tr_open":
                rows.append([])
            elif tokens[place].type == "inline":
                rows[-1].append("".join(text for _, text in _inline(tokens[place])).replace("\n", " "))
            place += 1
        self.out += table(rows, self.code_columns - self._used(), self._take_marker())
        self._gap()
        return place + 1


def table(rows: list[list[str]], columns: int, front: str = "") -> list[Line]:
    """The first row is the head. Columns that do not fit are cut, the widest first."""
    count = max(map(len, rows), default=0)
    rows = [[*row, *[""] * (count - len(row))] for row in rows]
    wide = [max(width_of(row[n]) for row in rows) for n in range(count)]
    while sum(wide) + 2 * (count - 1) > max(columns, 4 * count) and max(wide) > 3:
        wide[wide.index(max(wide))] -= 1
    out: list[Line] = []
    for number, row in enumerate(rows):
        cells = [cut(cell, size) for cell, size in zip(row, wide, strict=True)]
        padded = "  ".join(cell + " " * (size - width_of(cell)) for cell, size in zip(cells, wide, strict=True)).rstrip()
        out.append([("", front), ("bold" if number == 0 else "", padded)])
        if number == 0:
            out.append([("", " " * width_of(front)), ("dim", "  ".join("─" * size for size in wide))])
    return out


# -- text in a line ----------------------------------------------------------------------------------------------------------
def _inline(token: Token, base: str = "") -> list[Piece]:
    pieces: list[Piece] = []
    styles = [base]
    links: list[str] = []
    for child in token.children or ():
        kind = child.type
        if kind == "text":
            pieces.append((styles[-1], child.content))
        elif kind == "code_inline":
            pieces.append(("code", child.content))
        elif kind == "softbreak":
            pieces.append((styles[-1], " "))
        elif kind == "hardbreak":
            pieces.append((styles[-1], "\n"))
        elif kind in ("strong_open", "em_open", "s_open"):
            styles.append({"strong_open": "bold", "em_open": "italic", "s_open": "strike"}[kind])
        elif kind in ("strong_close", "em_close", "s_close"):
            styles.pop()
        elif kind == "link_open":
            links.append(str(child.attrGet("href") or ""))
            styles.append("link")
        elif kind == "link_close":
            styles.pop()
            target = links.pop()
            shown = "".join(text for style, text in pieces if style == "link")
            if target and not shown.endswith(target.removeprefix("mailto:")):  # where it leads is always shown
                pieces.append(("dim", f" ({target})"))
        elif kind == "image":
            pieces.append(("dim", f"[image: {child.content or child.attrGet('src')}]"))
        else:
            pieces.append((styles[-1], child.content))
    return pieces
