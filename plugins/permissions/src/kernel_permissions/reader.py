"""A tree-sitter-bash tree, read into simple commands, and certified while it is read.

An error-free tree is not yet a true reading (permissions contract, "Traps of the parse tree"). So the reader accepts
only what it can account for, character by character:

1. Every node type is named here; another one is opaque.
2. What lies between two nodes is blank, and a line end only where it separates commands.
3. Every word is read again by ``lexer.py``; a substitution without a node at its place is opaque.
4. Every operator is the longest one that the shell would read at its place.
5. A command whose name is a reserved word was misread; so was a number or ``{name}`` that touches a redirection.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .lexer import NAME
from .syntax import RESERVED, Assign, Opaque, Redirect, Script, Simple, Word, literal_word
from .tokens import WORDS, Tokens

MAX_DEPTH = 40
"""Levels of nesting that are followed."""

_SEPARATORS = frozenset("; & && || | |& ( { ! then do else if elif while until $( ` <( >(".split())
_CLOSERS = frozenset(") } fi done esac `".split())
_CONTAINERS = frozenset((
    "program list pipeline subshell compound_statement do_group if_statement elif_clause else_clause while_statement "
    "negated_command command_substitution process_substitution").split())
_COMPARES = frozenset("== = != -z -n -e -f -d -r -w -x -s -L -h -p -S -b -c -g -k -u -O -G -N -nt -ot -ef ! && ||".split())


def read(source: str, root: Any, *, ascii: bool) -> Script:
    """The script of a tree.

    :param source: the command as Latin-1, one character per byte of the parsed text.
    :raises Opaque: some part is not understood.
    """
    if root.has_error:
        raise Opaque("it does not parse")
    reader = Reader(source, ascii)
    reader.container(root, 0, len(source))
    return Script(reader.simples, reader.functions, "arithmetic over variables" if reader.arithmetic else "")


class Reader(Tokens):
    def __init__(self, source: str, ascii: bool) -> None:
        super().__init__(source, ascii)
        self.simples: list[Simple] = []
        self.functions: set[str] = set()
        self.depth = 0
        self.loops = 0
        self.statements: dict[str, Callable[[Any], object]] = {
            "command": self.command, "redirected_statement": self.redirected, "variable_assignment": self.assignments,
            "variable_assignments": self.assignments, "declaration_command": self.declaration, "unset_command": self.declaration,
            "test_command": self.test, "for_statement": self.loop, "case_statement": self.case,
            "function_definition": self.function, **dict.fromkeys(_CONTAINERS, self.container)}

    # -- compound commands ---------------------------------------------------------------------------------------------
    def container(self, node: Any, start: int | None = None, end: int | None = None) -> bool:
        """Commands one after the other, with the operators between them. Whether a separator stands last."""
        position = node.start_byte if start is None else start
        separated = True
        looping = node.type == "while_statement"
        self.loops += looping
        for child in self.enter(node):
            if "\n" in self.gap(position, child.start_byte, " \t\n"):
                separated = True
            if child.type == "comment":
                self.comment(child)
            elif child.type == "((" or child.type == "$((":
                raise Opaque("an arithmetic command")
            elif child.type in ("elif_clause", "else_clause", "do_group"):
                if not separated:
                    raise Opaque("commands without a separator")
                separated = self.container(child) and child.type != "do_group"
            elif child.type == "file_redirect" and node.type == "command_substitution":  # $(< file)
                redirect, rest = self.redirect(child)
                if rest:
                    raise Opaque("words behind a redirection")
                self.simples.append(Simple([], redirects=[redirect], kind="redirect"))
            elif child.type in self.statements:
                if not separated:
                    raise Opaque("commands without a separator")
                self.statements[child.type](child)
                separated = False
            elif child.type in _SEPARATORS or child.type in _CLOSERS:
                text = self.operator(child)
                separated = text not in _CLOSERS or (text == "`" and child.start_byte == node.start_byte)
            elif child.type != "\n":
                raise Opaque(f"{child.type}, which is not understood")
            position = child.end_byte
        self.gap(position, node.end_byte if end is None else end, " \t\n")
        self.loops -= looping
        self.depth -= node.type not in ("list", "pipeline")
        return separated

    def enter(self, node: Any) -> list[Any]:
        self.depth += node.type not in ("list", "pipeline")  # a chain of && is a tree as deep as it is long
        if self.depth > MAX_DEPTH:
            raise Opaque("nesting that is too deep")
        children: list[Any] = node.children
        return children

    def leave(self, node: Any, position: int) -> None:
        self.gap(position, node.end_byte)
        self.depth -= 1

    def statement(self, node: Any) -> None:
        handler = self.statements.get(node.type)
        if handler is None:
            raise Opaque(f"{node.type}, which is not understood")
        handler(node)

    def comment(self, node: Any) -> None:
        before = self.source[node.start_byte - 1:node.start_byte]
        text = self.source[node.start_byte:node.end_byte]
        if (before and before not in " \t\n;&|()") or not text.startswith("#") or "\n" in text:
            raise Opaque("a comment that is none")
        if self.source[node.end_byte:node.end_byte + 1] not in ("", "\n"):
            raise Opaque("a comment that ends within its line")

    def loop(self, node: Any) -> None:
        """``for NAME in words``; the variable counts as an assignment."""
        children = self.enter(node)
        words: list[Any] = []
        name, position = "", node.start_byte
        for child in children:
            text = self.source[child.start_byte:child.end_byte]
            if child.type == "do_group":
                values = self.words(words)
                only = values[0] if len(values) == 1 else None
                self.simples.append(Simple([], [Assign(name, f"for {name}", only, tuple(values))], kind="assign"))
                self.gap(position, child.start_byte, " \t\n")
                self.loops += 1
                self.container(child)
                self.loops -= 1
            elif child.type in ("for", "in") or (child.type == ";" and self.operator(child)):
                self.gap(position, child.start_byte, " \t\n" if child.type == "in" else " \t")
            elif child.type == "variable_name" and not name and NAME.fullmatch(text):
                self.gap(position, child.start_byte)
                name = text
            elif child.type in WORDS and name:
                self.gap(position, child.start_byte)
                words.append(child)
            else:
                raise Opaque(f"{child.type} in a loop")
            position = child.end_byte
        self.leave(node, position)

    def case(self, node: Any) -> None:
        position = node.start_byte
        for child in self.enter(node):
            self.gap(position, child.start_byte, " \t\n")
            if child.type == "case_item":
                self.case_item(child)
            elif child.type in WORDS:
                self.words([child])
            elif child.type == "comment":
                self.comment(child)
            elif child.type == "esac":
                self.operator(child)
            elif child.type not in ("case", "in"):
                raise Opaque(f"{child.type} in a case")
            position = child.end_byte
        self.leave(node, position)

    def case_item(self, node: Any) -> None:
        position, opened, separated = node.start_byte, False, True
        for child in self.enter(node):
            between = self.gap(position, child.start_byte, " \t\n")
            position = child.end_byte
            if not opened:
                if child.type == ")":
                    opened = True
                elif child.type in WORDS:
                    self.words([child])
                elif child.type not in ("|", "("):
                    raise Opaque(f"{child.type} in a case")
                continue
            separated = separated or "\n" in between
            if child.type == "comment":
                self.comment(child)
            elif child.type in (";;", ";&", ";;&", ";", "&"):
                self.operator(child)
                separated = True
            elif separated:
                self.statement(child)
                separated = False
            else:
                raise Opaque("commands without a separator")
        self.leave(node, position)

    def function(self, node: Any) -> None:
        position = node.start_byte
        for child in self.enter(node):
            self.gap(position, child.start_byte, " \t\n")
            text = self.source[child.start_byte:child.end_byte]
            if child.type == "word":
                self.functions.add(self.words([child])[0].value)
            elif child.type in self.statements:
                self.loops += 1  # it may run more than once, and from anywhere
                self.statement(child)
                self.loops -= 1
            elif text not in ("function", "(", ")"):
                raise Opaque(f"{child.type} in a function")
            position = child.end_byte
        self.leave(node, position)

    # -- simple commands -----------------------------------------------------------------------------------------------
    def add(self, simple: Simple) -> None:
        simple.in_loop = self.loops > 0
        self.simples.append(simple)

    def command(self, node: Any, redirects: list[Redirect] | None = None, more: list[Word] | None = None) -> None:
        assigns: list[Assign] = []
        found: list[Redirect] = []
        nodes: list[Any] = []
        rest: list[Word] = []
        position = node.start_byte
        for child in self.enter(node):
            blank = self.gap(position, child.start_byte)
            if child.type == "variable_assignment" and not nodes:
                assigns.append(self.assignment(child))
                if not blank and position != node.start_byte:
                    raise Opaque("an assignment inside a word")
            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                redirect, behind = self.redirect(child)
                found.append(redirect)
                rest += behind
            elif child.type in WORDS:
                if rest or (not blank and found and position != node.start_byte and not nodes):
                    raise Opaque("words behind a redirection")
                nodes.append(child)
            else:
                raise Opaque(f"{child.type} in a command")
            position = child.end_byte
        self.leave(node, position)
        words = [*self.words(nodes), *rest, *(more or ())]
        if words and nodes:
            self.check_name(words)
        self.add(Simple(words, assigns, [*found, *(redirects or ())]))

    def check_name(self, words: list[Word]) -> None:
        """A reserved word cannot be the name of a command, nor what ``time`` is put before."""
        names = [words[0]]
        if words[0].text == "time":
            names = [w for w in words[1:] if w.text not in ("-p", "--")][:1]
            if not names:
                return
        if names[0].text in RESERVED or (names[0].text == "time" and len(words) > 1):
            raise Opaque(f"the reserved word {names[0].text!r} as a command")

    def redirected(self, node: Any) -> None:
        """A command with redirections behind it; what follows a redirection's target are words of the command."""
        children = self.enter(node)
        body: Any = None
        redirects: list[Redirect] = []
        more: list[Word] = []
        position = node.start_byte
        for child in children:
            blank = self.source[position:child.start_byte]
            if body is not None and re.fullmatch(r"[ \t]+-[ \t]+", blank):
                more.append(literal_word("-"))  # the grammar drops a lone dash in front of a redirection
            else:
                self.gap(position, child.start_byte)
            if child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                redirect, rest = self.redirect(child)
                redirects.append(redirect)
                more += rest
            elif body is None and not redirects and child.type in self.statements:
                body = child
            else:
                raise Opaque(f"{child.type} beside a redirection")
            position = child.end_byte
        self.leave(node, position)
        if body is None or body.type != "command":
            if more:
                raise Opaque("words behind a redirection")
            self.add(Simple([], redirects=redirects, kind="redirect"))
            if body is not None:
                self.statement(body)
        else:
            self.command(body, redirects, more)

    def assignments(self, node: Any) -> None:
        nodes = [node] if node.type == "variable_assignment" else node.children
        position = node.start_byte
        found: list[Assign] = []
        for child in nodes:
            self.gap(position, child.start_byte)
            if child.type != "variable_assignment":
                raise Opaque(f"{child.type} beside an assignment")
            found.append(self.assignment(child))
            position = child.end_byte
        self.add(Simple([], found, kind="assign"))

    def declaration(self, node: Any) -> None:
        """``export``, ``declare``, ``unset`` ...: plain words for matching; an assignment for everything else."""
        children = self.enter(node)
        self.add(Simple(self.words(children, extra=("variable_assignment",)), kind="assign"))
        self.leave(node, children[-1].end_byte)

    def test(self, node: Any) -> None:
        """``[ ... ]`` is an ordinary command; ``[[ ... ]]`` is read where it compares text and asks about files."""
        start, end = node.start_byte, node.end_byte
        text = self.source[start:end]
        double = text.startswith("[[")
        if "\n" in text or not text.endswith("]]" if double else "]"):
            raise Opaque("a test of unusual form")
        lexer, words, i = self.lexer([node]), [], start
        while i < end:
            if self.source[i] in " \t":
                i += 1
                continue
            stop = self.word_end(lexer, i, end)
            operator = double and self.source[i:stop] in ("&&", "||")
            words.append(literal_word(self.source[i:stop]) if operator else lexer.word(i, stop))
            i = stop
        self.follow(lexer)
        self.ends(end)
        if words[-1].text != ("]]" if double else "]"):
            raise Opaque("a test of unusual form")
        for word in words[1:-1] if double else ():
            if word.text.startswith("-") and word.text not in _COMPARES:
                self.arithmetic = True  # -eq and -v evaluate subscripts
            if word.text in ("=~", "(", ")", "<", ">"):
                raise Opaque("a test of unusual form")
        self.add(Simple(words, kind="cond" if double else "command"))
