"""The parts of a tree that are not commands yet, each accounted for: gaps, operators, words, redirections, heredocs.

``reader.py`` builds commands from them; there the five rules of certification are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .lexer import Lexer
from .syntax import Assign, Opaque, Redirect, Simple, Word, literal_word

_OPERATOR = re.compile(r";;&|;;|;&|;|&&|&>>|&>|&|\|\||\|&|\||<<<|<<-|<<|<&|<>|<\(|<|>>|>&|>\||>\(|>|\(\(|\(|\)")
_NEEDS_SPACE = frozenset("{ ! then do else if elif while until".split())
WORDS = frozenset((
    "word number string raw_string ansi_c_string concatenation simple_expansion expansion command_substitution "
    "process_substitution arithmetic_expansion brace_expression extglob_pattern special_variable_name variable_name "
    "command_name regex $").split())
_INNER = frozenset("command_substitution process_substitution arithmetic_expansion expansion".split())
_DECLARES = ("export", "declare", "typeset", "local", "readonly", "unset", "unsetenv")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[0-9]+\])?\+?=")
_DELIMITER = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)|'([^'\"\n\\$`]+)'|\"([^'\"\n\\$`]+)\"|\\([A-Za-z0-9_.-]+)")
_TOUCHES = re.compile(r"(?:^|[ \t\n;&|()<>])(?:[0-9]+|\{[^{} \t\n]*\})$")
_AFTER_WORD = frozenset(" \t\n;&|<>()`")


class Tokens:
    """What every part of the reader uses. ``statement`` and ``add`` come from the reader."""

    def __init__(self, source: str, ascii: bool) -> None:
        self.source = source
        self.ascii = ascii
        self.arithmetic = False

    def statement(self, node: Any) -> None:
        raise NotImplementedError

    def container(self, node: Any) -> bool:
        raise NotImplementedError

    def add(self, simple: Simple) -> None:
        raise NotImplementedError

    # -- what lies between nodes ---------------------------------------------------------------------------------------
    def gap(self, start: int, end: int, allowed: str = " \t") -> str:
        text = self.source[start:end]
        if text.strip(allowed):
            raise Opaque("text that belongs to no part of the command")
        return text

    def operator(self, node: Any) -> str:
        """The text of an operator or keyword, checked against what the shell would read there."""
        start, end = node.start_byte, node.end_byte
        text = self.source[start:end]
        match = _OPERATOR.match(self.source, start)
        if match and match[0] != text:
            raise Opaque(f"an operator that is really {match[0]!r}")
        follower = self.source[end:end + 1]
        if text in _NEEDS_SPACE and follower not in ("", " ", "\t", "\n"):
            raise Opaque(f"{text!r} that is part of a longer word")
        if text in ("fi", "done", "esac", "}") and follower and follower not in _AFTER_WORD:
            raise Opaque(f"{text!r} that is part of a longer word")
        if text == "$(" and follower == "(":
            raise Opaque("arithmetic or a subshell")
        return text

    # -- words ---------------------------------------------------------------------------------------------------------
    def groups(self, nodes: list[Any], between: str = " \t") -> Iterator[list[Any]]:
        """Nodes that touch each other are one word."""
        group: list[Any] = []
        for node in nodes:
            if group and self.gap(group[-1].end_byte, node.start_byte, between):
                yield group
                group = []
            group.append(node)
        if group:
            yield group

    def words(self, nodes: list[Any], extra: tuple[str, ...] = ()) -> list[Word]:
        for node in nodes:
            if node.type not in WORDS and node.type not in extra and node.type not in (
                    "export", "declare", "typeset", "local", "readonly", "unset", "unsetenv"):
                raise Opaque(f"{node.type} where a word was expected")
        return [self.lex(group) for group in self.groups(nodes)]

    def lex(self, group: list[Any]) -> Word:
        start, end = group[0].start_byte, group[-1].end_byte
        while start < end and self.source[start] in " \t":
            start += 1
        self.ends(end)
        lexer = self.lexer(group)
        word = lexer.word(start, end)
        self.follow(lexer)
        return word

    def ends(self, end: int) -> None:
        if end < len(self.source) and self.source[end] not in _AFTER_WORD:
            raise Opaque("a word that goes on")

    def lexer(self, nodes: list[Any]) -> Lexer:
        found: dict[int, Any] = {}
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node.type in _INNER:
                start = node.start_byte
                while self.source[start] in " \t\n":  # inside quotes the grammar counts blanks before it as its own
                    start += 1
                found.setdefault(start, node)
                if node.type in ("command_substitution", "process_substitution"):
                    continue
            stack += node.children
        return Lexer(self.source, found, self.ascii)

    def follow(self, lexer: Lexer) -> None:
        """Read the commands inside the substitutions that were met."""
        self.arithmetic = self.arithmetic or lexer.arithmetic
        for node in lexer.nested:
            self.container(node)

    def word_end(self, lexer: Lexer, start: int, end: int) -> int:
        """Where the next blank stands that is in no quote and no substitution."""
        i, quote = start, ""
        while i < end:
            c = self.source[i]
            node = lexer.nodes.get(i)
            if node is not None and node.type in _INNER and c in "$`" and quote != "'":
                i = node.end_byte
                continue
            if c == "\\" and quote != "'":
                i += 1
            elif quote:
                quote = "" if c == quote else quote
            elif c in "'\"":
                quote = c
            elif c in " \t":
                break
            i += 1
        return min(i, end)

    def assignment(self, node: Any) -> Assign:
        start, end = node.start_byte, node.end_byte
        match = _ASSIGNMENT.match(self.source, start, end)
        if match is None:
            raise Opaque("an assignment of unusual form")
        text = self.lexer([]).text(start, end)
        if self.source.startswith("(", match.end()):
            array = next((c for c in node.children if c.type == "array"), None)
            if array is None or array.end_byte != end or self.source[end - 1] != ")":
                raise Opaque("an array of unusual form")
            inner = array.children[1:-1]
            edges = [match.end() + 1, *(p for n in inner for p in (n.start_byte, n.end_byte)), end - 1]
            self.gap(edges[0], edges[1], " \t\n")
            self.gap(edges[-2], edges[-1], " \t\n")
            for group in self.groups(inner, " \t\n"):
                self.lex(group)
            return Assign(match[1], text, None)
        self.ends(end)
        lexer = self.lexer([node])
        value = lexer.word(match.end(), end) if match.end() < end else literal_word("")
        self.follow(lexer)
        return Assign(match[1], text, value)

    # -- redirections --------------------------------------------------------------------------------------------------
    def redirect(self, node: Any) -> tuple[Redirect, list[Word]]:
        if node.type == "heredoc_redirect":
            return self.heredoc(node)
        children = list(node.children)
        position = node.start_byte
        self.untouched(position)
        if children and children[0].type == "file_descriptor":
            position = children.pop(0).end_byte
        if not children:
            raise Opaque("a redirection of unusual form")
        operator = children.pop(0)
        self.gap(position, operator.start_byte, "")
        op = self.source[operator.start_byte:operator.end_byte]
        if op in (">&-", "<&-"):
            if children:
                raise Opaque("a redirection of unusual form")
            return Redirect(op, None), []
        self.operator(operator)
        if op not in (">", ">>", ">|", "&>", "&>>", ">&", "<", "<&", "<<<") or not children:
            raise Opaque("a redirection of unusual form")
        self.gap(operator.end_byte, children[0].start_byte)
        self.gap(children[-1].end_byte, node.end_byte)
        target, *rest = self.words(children)
        if ">" in op and target.text.startswith("!"):
            raise Opaque("a redirection to !, which zsh takes for a part of the operator")
        literal = target.value if op == "<<<" and not target.dynamic else None
        return Redirect(op, target, literal), rest

    def untouched(self, start: int) -> None:
        """The shell takes a number or ``{name}`` that touches a redirection as a part of it."""
        if _TOUCHES.search(self.source[max(0, start - 200):start]):
            raise Opaque("a descriptor of unusual form")

    def heredoc(self, node: Any) -> tuple[Redirect, list[Word]]:
        """A heredoc: its end is looked for again, line by line, as the shell does it."""
        op, start, *others = node.children
        mark = _DELIMITER.fullmatch(self.source, start.start_byte, start.end_byte)
        if op.type not in ("<<", "<<-") or mark is None or op.start_byte != node.start_byte:
            raise Opaque("a heredoc of unusual form")
        self.operator(op)
        self.untouched(op.start_byte)
        self.gap(op.end_byte, start.start_byte)
        line_end = self.source.find("\n", start.end_byte)
        body_end, stop = self.find_end(line_end + 1, mark[mark.lastindex or 1], strip=op.type == "<<-")
        position, words = start.end_byte, []
        for child in others:
            if child.start_byte > line_end:
                continue
            between = self.gap(position, child.start_byte)
            if child.end_byte > line_end:
                raise Opaque("a heredoc of unusual form")
            if child.type in ("&&", "||"):
                self.operator(child)
            elif child.type == "file_redirect":
                redirect, rest = self.redirect(child)
                self.add(Simple([], redirects=[redirect], kind="redirect"))
                words += rest
            elif child.type in WORDS and between:
                words += self.words([child])
            else:
                self.statement(child)
            position = child.end_byte
        self.gap(position, line_end)
        tail = [c for c in others if c.start_byte > line_end]
        if any(c.type not in ("heredoc_body", "heredoc_end") for c in tail) or not tail or tail[-1].type != "heredoc_end" \
                or tail[-1].end_byte != stop or node.end_byte != stop:
            raise Opaque("a heredoc that ends elsewhere")
        if mark.lastindex != 1:
            return Redirect(op.type, None, self.lexer([]).text(line_end + 1, body_end)), words
        lexer = self.lexer(tail)
        body = lexer.body(line_end + 1, body_end)
        self.follow(lexer)
        return Redirect(op.type, None, body), words

    def find_end(self, start: int, delimiter: str, strip: bool) -> tuple[int, int]:
        """Where the body ends and where the delimiter behind it ends."""
        if start == 0:
            raise Opaque("a heredoc without a body")
        while start <= len(self.source):
            stop = self.source.find("\n", start)
            stop = len(self.source) if stop < 0 else stop
            line = self.source[start:stop]
            if (line.lstrip("\t") if strip else line) == delimiter:
                return start, stop
            start = stop + 1
        raise Opaque("a heredoc without its end")
