"""What is shown: lines of (style, text) pieces. No terminal in here; whoever has one, draws them.

A style is the name of a class (see ``STYLES``). The text of a line holds no line end and nothing that steers a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable

from wcwidth import wcwidth

Piece = tuple[str, str]
Line = list[Piece]

STYLES = {
    "dim": "fg:ansibrightblack", "bold": "bold", "italic": "italic", "code": "fg:ansicyan", "link": "underline",
    "heading": "bold", "strike": "strike", "quote": "italic",
    "added": "fg:ansigreen", "removed": "fg:ansired", "ok": "fg:ansigreen", "bad": "fg:ansired", "warn": "fg:ansiyellow",
    "accent": "fg:ansicyan", "you": "bold", "tool": "bold", "chosen": "bold fg:ansicyan", "running": "fg:ansiyellow",
}
"""Class -> colours of the person's own palette, so that it is readable on dark and on light ground."""


def words(text: str, style: str = "") -> Line:
    return [(style, text)]


def text_of(line: Line) -> str:
    return "".join(text for _, text in line)


def spoken(line: Line) -> str:
    """A line for somebody who hears it: signs and columns as words."""
    for number, (style, text) in enumerate(line):
        if style in ("added", "removed") and number == 1:
            return f"{style.capitalize()} line {line[0][1].strip()}: {text[2:]}"
    return text_of(line).strip()


def width_of(text: str) -> int:
    """Columns that a text takes."""
    return len(text) if text.isascii() else sum(max(wcwidth(c), 0) for c in text)


def cut(text: str, columns: int) -> str:
    """At most so many columns, with an ellipsis where something is missing."""
    if width_of(text) <= columns:
        return text
    room, kept = max(columns - 1, 0), []
    for character in text:
        room -= max(wcwidth(character), 0)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + "…" if columns > 0 else ""


def cut_line(line: Line, columns: int) -> Line:
    out: Line = []
    for style, text in line:
        room = columns - sum(width_of(t) for _, t in out)
        if width_of(text) > room:
            return [*out, (style, cut(text, room))] if room > 0 else out
        out.append((style, text))
    return out


def wrapped(pieces: Iterable[Piece], columns: int, first: str = "", rest: str = "") -> list[Line]:
    """Pieces broken at blanks into lines of so many columns; ``first`` and ``rest`` stand in front of them.

    A piece may hold line ends, which break as well. A word that is too long is broken anywhere; but a path or an address is left
    whole, for the terminal to break, so that it can be copied.
    """
    columns = max(columns, 10)
    lines: list[Line] = []
    line: Line = [("", first)] if first else []
    used = width_of(first)
    begun = False

    def end() -> None:
        nonlocal line, used, begun
        while line and line[-1][1].endswith(" ") and len(line) > (1 if rest or first else 0):
            style, text = line.pop()
            if text.rstrip(" "):
                line.append((style, text.rstrip(" ")))
        lines.append(line)
        line, used, begun = [("", rest)] if rest else [], width_of(rest), False

    for style, word in _words(pieces):
        if word == "\n":
            end()
            continue
        size = width_of(word)
        if word.isspace():
            if begun and used + size <= columns:
                line.append((style, word))
                used += size
            continue
        if begun and used + size > columns:
            end()
        while used + width_of(word) > columns and width_of(word) > 1 and not is_place(word):
            room, part = columns - used, ""
            for character in word:
                room -= max(wcwidth(character), 0)
                if room < 0:
                    break
                part += character
            if not part:
                part = word[0]
            line.append((style, part))
            word = word[len(part):]
            end()
            if not word:
                break
        if word:
            line.append((style, word))
            used, begun = used + width_of(word), True
    end()
    return lines


def is_place(word: str) -> bool:
    """Whether a word looks like a path or an address."""
    return "/" in word and word.isascii()


def hung(line: Line, columns: int) -> list[Line]:
    """A line that may be too long, broken at blanks; what goes on stands under its beginning."""
    text = text_of(line)
    if width_of(text) <= columns or not line:
        return [line]
    front = text[: len(text) - len(text.lstrip(" "))]
    style, first = line[0]
    return wrapped([(style, first.lstrip(" ")), *line[1:]], columns, front, f"{front}  ")


def _words(pieces: Iterable[Piece]) -> Iterable[Piece]:
    import re

    for style, text in pieces:
        for word in re.findall(r"\n|[^\S\n]+|\S+", text):
            yield style, word
