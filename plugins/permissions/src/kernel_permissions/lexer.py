"""The second reading of words: what the shell itself takes a word to be, checked against the tree.

The tree says where words begin and end and where substitutions stand; the lexer reads the same characters by the
shell's own rules and refuses (``Opaque``) where the two differ. So a substitution that the grammar overlooks is found:
it has no node at its place.

Positions are bytes. The text is handed over as Latin-1 (one character per byte), so that they are string indices too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .syntax import Opaque, Part, Word

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERAL = r"[^`$(){}\"'\\<>\n]*"
_EXPANSION = re.compile(
    r"\$\{(?:#?(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!_-])(?P<index>\[(?:[@*]|[0-9]+)\])?"
    rf"(?P<op>:?[-+?]{_LITERAL}|\#\#?{_LITERAL}|%%?{_LITERAL}|/[/#%]?{_LITERAL}|\^\^?{_LITERAL}|,,?{_LITERAL}"
    r"|:\ ?-?[0-9]+(?::-?[0-9]+)?)?)\}")
"""Parameter expansions that run nothing and assign nothing. ``${x:=y}``, ``${x@P}``, ``${!x}`` and nesting are not here."""
_EQUALS = re.compile(r"=(?!~?$|=)")
_ZSH_DOLLAR = re.compile(r"\$(?:[=~^+]+[A-Za-z0-9_{@*]|(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])\[)")
"""``$=x`` and ``$x[...]``: text to bash, to zsh an expansion and a subscript that may run commands. The command may meet
either shell."""
_NUMBERS_ONLY = re.compile(r"[0-9 \t+*/%<>=!&|^~?:()-]*")
_ARITHMETIC = re.compile(r"[^`'\"\\\[\]]*")
_PLAIN = re.compile(r"[^ \t\n;&|<>()\"'`$\\#]+")
_RAW_DOUBLE = re.compile(r"[^\"`$\\]+")
_ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Lexer:
    """Reads words of one source text.

    :param source: the command as Latin-1.
    :param nodes: start position -> tree node, for substitutions, expansions and arithmetic.
    """

    def __init__(self, source: str, nodes: Mapping[int, Any], ascii: bool) -> None:
        self.source = source
        self.nodes = nodes
        self.ascii = ascii
        self.nested: list[Any] = []
        """Substitution nodes that were met; their commands are still to be read."""
        self.arithmetic = False
        """Whether arithmetic over variables was met: its value may hold a command."""

    def word(self, start: int, end: int) -> Word:
        """The word that fills ``start`` to ``end`` exactly.

        :raises Opaque: the shell would see another word there.
        """
        source, parts, i = self.source, [], start
        if start < end and source[start] == "#":
            raise Opaque("a comment where a word was expected")
        if _EQUALS.match(source, start, end):
            raise Opaque("a word that begins with =, which zsh takes for the path of a program")
        while i < end:
            c = source[i]
            if c == "'":
                stop = source.find("'", i + 1, end)
                if stop < 0:
                    raise Opaque("an unclosed quote")
                parts.append(self._part("q", source[i + 1:stop], source[i:stop + 1]))
                i = stop + 1
            elif c == '"':
                i = self._double(parts, i, end)
            elif c == "\\":
                if i + 1 >= end or source[i + 1] == "\n":
                    raise Opaque("a backslash at the end of a line or word")
                stop = i + 2
                while stop < end and "\x80" <= source[stop] < "\xc0":  # the rest of one UTF-8 character
                    stop += 1
                parts.append(self._part("q", source[i + 1:stop], source[i:stop]))
                i = stop
            elif c == "$" and source.startswith("'", i + 1):
                i = self._ansi(parts, i, end)
            elif c == "$" and source.startswith('"', i + 1):
                raise Opaque("a translated string")
            elif c == "$":
                i = self._dollar(parts, i, end, quoted=False)
            elif c == "`" or (c in "<>" and source.startswith("(", i + 1)):
                i = self._substitution(parts, i, end, quoted=False)
            elif c == "#":
                parts.append(self._part("u", c, c))
                i += 1
            else:
                match = _PLAIN.match(source, i, end)
                if match is None:
                    raise Opaque(f"{c!r} inside a word")
                parts.append(self._part("u", match[0], match[0]))
                i = match.end()
        if i != end:
            raise Opaque("a word that ends elsewhere")
        return Word(self.text(start, end), tuple(parts))

    def body(self, start: int, end: int) -> str | None:
        """Read the body of a heredoc whose delimiter is not quoted; the literal text, ``None`` where it is dynamic."""
        parts: list[Part] = []
        i = self._quoted_run(parts, start, end, closing="")
        if i != end:
            raise Opaque("a heredoc that ends elsewhere")
        return None if any(p.kind in "vd" for p in parts) else "".join(p.text for p in parts)

    def text(self, start: int, end: int) -> str:
        return self._decode(self.source[start:end])

    def _decode(self, piece: str) -> str:
        return piece if self.ascii else piece.encode("latin-1").decode("utf-8", "replace")

    def _part(self, kind: str, text: str, raw: str, quoted: bool = False) -> Part:
        return Part(kind, self._decode(text), self._decode(raw), quoted)

    # -- quotes --------------------------------------------------------------------------------------------------------
    def _double(self, parts: list[Part], start: int, end: int) -> int:
        i = self._quoted_run(parts, start + 1, end, closing='"')
        if i >= end or self.source[i] != '"':
            raise Opaque("an unclosed quote")
        if i == start + 1:
            parts.append(Part("q", "", '""', True))
        return i + 1

    def _quoted_run(self, parts: list[Part], i: int, end: int, closing: str) -> int:
        """Text in which only ``$``, backticks and backslashes are special, up to ``closing`` or the end."""
        source = self.source
        while i < end:
            c = source[i]
            if c == closing:
                return i
            if c == "\\":
                follower = source[i + 1:i + 2]
                if not follower or follower == "\n":
                    raise Opaque("a backslash at the end of a line")
                escaped = follower in "$`\\" or follower == closing
                parts.append(self._part("q", follower if escaped else c + follower, c + follower, True)
                             if follower < "\x80" else self._part("q", c, c, True))
                i += 2 if follower < "\x80" else 1
            elif c == "$":
                i = self._dollar(parts, i, end, quoted=True)
            elif c == "`":
                i = self._substitution(parts, i, end, quoted=True)
            elif c == '"':  # in a heredoc
                parts.append(Part("q", c, c, True))
                i += 1
            else:
                match = _RAW_DOUBLE.match(source, i, end)
                assert match is not None
                parts.append(self._part("q", match[0], match[0], True))
                i = match.end()
        return i

    def _ansi(self, parts: list[Part], start: int, end: int) -> int:
        """``$'...'`` with its escapes."""
        source, out, i = self.source, [], start + 2
        while i < end and source[i] != "'":
            if source[i] != "\\":
                out.append(source[i])
                i += 1
                continue
            i += 1
            c = source[i:i + 1]
            number = re.compile(r"x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}").match(source, i, end)
            if c in _ESCAPES and c:
                out.append(_ESCAPES[c])
                i += 1
            elif c in ("\\", "'", '"', "?"):
                out.append(c)
                i += 1
            elif number:
                digits = number[0]
                code = int(digits.lstrip("xuU"), 8 if digits[0].isdigit() else 16)
                if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000 or (code > 0xFF and digits[0] not in "uU"):
                    raise Opaque("an escape that stands for no character")
                out.append(chr(code) if code < 0x80 or digits[0] not in "uU" else chr(code).encode().decode("latin-1"))
                i = number.end()
            else:
                raise Opaque("an unknown escape in $'...'")
        if i >= end:
            raise Opaque("an unclosed quote")
        parts.append(Part("q", "".join(out).encode("latin-1").decode("utf-8", "replace"),
                          self.text(start, i + 1), True))
        return i + 1

    # -- what is only known at run time --------------------------------------------------------------------------------
    def _dollar(self, parts: list[Part], i: int, end: int, *, quoted: bool) -> int:
        source = self.source
        follower = source[i + 1:i + 2]
        if follower == "(":
            return self._sum(parts, i, end, quoted) if source.startswith("(", i + 2) else \
                self._substitution(parts, i, end, quoted)
        if follower == "{":
            match = _EXPANSION.match(source, i, end)
            if match is None:
                raise Opaque("a parameter expansion of unusual form")
            simple = not match["op"] and not match["index"] and not source.startswith("#", i + 2) and match["name"]
            parts.append(self._part("v" if simple else "d", simple or match[0], match[0], quoted))
            return match.end()
        if follower == "[":
            raise Opaque("arithmetic in the old form")
        if _ZSH_DOLLAR.match(source, i, end):
            raise Opaque("an expansion that only zsh knows")
        name = NAME.match(source, i + 1, end)
        if name:
            parts.append(self._part("v", name[0], "$" + name[0], quoted))
            return name.end()
        if follower and follower in "0123456789@*#?$!-" and i + 1 < end:
            parts.append(Part("d", "$" + follower, "$" + follower, quoted))
            return i + 2
        parts.append(Part("q" if quoted else "u", "$", "$", quoted))
        return i + 1

    def _node(self, start: int, end: int, *types: str) -> Any:
        node = self.nodes.get(start)
        if node is None or node.type not in types or node.end_byte > end:
            raise Opaque("a substitution that the grammar does not see")
        return node

    def _substitution(self, parts: list[Part], i: int, end: int, quoted: bool) -> int:
        backtick = self.source[i] == "`"
        node = self._node(i, end, "process_substitution" if self.source[i] in "<>" else "command_substitution")
        stop: int = node.end_byte
        inner = self.source[i + 1:stop - 1]
        if backtick and ("\\" in inner or "`" in inner or (quoted and '"' in inner)):
            raise Opaque("quoting inside backticks")  # the shell removes a level of it before it reads
        if stop - i < 2 or self.source[stop - 1] != ("`" if backtick else ")"):
            raise Opaque("an unclosed substitution")
        self.nested.append(node)
        parts.append(self._part("d", self.source[i:stop], self.source[i:stop], quoted))
        return stop

    def _sum(self, parts: list[Part], i: int, end: int, quoted: bool) -> int:
        """``$((...))``: nothing but numbers is harmless; variables may hold subscripts that run commands."""
        stop: int = self._node(i, end, "arithmetic_expansion").end_byte
        inner = self.source[i + 3:stop - 2]
        if self.source[stop - 2:stop] != "))" or not _ARITHMETIC.fullmatch(inner) or "$(" in inner or "${" in inner \
                or not _balanced(inner):
            raise Opaque("arithmetic of unusual form")
        if not _NUMBERS_ONLY.fullmatch(inner):
            self.arithmetic = True
        parts.append(self._part("d", self.source[i:stop], self.source[i:stop], quoted))
        return stop


def _balanced(text: str) -> bool:
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0
