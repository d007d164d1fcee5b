"""The forms of a subcommand that rules are matched against, F0 to F5 (permissions contract, 5.2).

An allow rule sees F0, F1 and F3: as written, and without what is certainly harmless in front. Ask and deny rules see
every form, and every command that a wrapper, a shell's ``-c``, ``find -exec``, ``eval`` or ``trap`` would run; so
wrapping, quoting and spelling can only make a decision stricter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise, takewhile

from . import dynamic, evaluates, sedrules, wrappers
from .shell import Parser
from .syntax import RESERVED, Assign, Opaque, Redirect, Script, Simple, Word, expand_braces, literal_word

MAX_INNER = 200
"""Inner commands that are followed; beyond, the command counts as unknown."""
MAX_LEVELS = 8

SAFE_VARIABLES = frozenset((
    "LANG LANGUAGE TZ NO_COLOR FORCE_COLOR CLICOLOR TERM COLUMNS LINES CI NODE_ENV RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED "
    "PYTHONDONTWRITEBYTECODE GOOS GOARCH CGO_ENABLED DEBUG").split())
_SPLITS = re.compile(r"-[A-Za-z0-9]*S|--split-string=?")
_ASSIGN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


class Sub:
    """One subcommand as the rules see it.

    ``texts``: F0, F1, F3. ``words``: the words of the most stripped form that an allow rule may see, with ``assigns``
    that could not be stripped. ``strict``: all texts for ask and deny rules. ``layers``: resolved words of each command
    that it runs, for path rules and critical removals. ``open_ended``: beginnings of commands whose next words nobody
    knows. ``unknown``: why nobody can say what it runs. ``redirects``: those of scripts inside it (``bash -c 'x > y'``).
    """

    __slots__ = ("assigns", "exact_only", "layers", "open_ended", "redirects", "simple", "strict", "texts", "unknown",
                 "via_xargs", "words")

    def __init__(self, simple: Simple) -> None:
        self.simple = simple
        self.texts: list[str] = []
        self.strict: dict[str, None] = {}
        self.layers: list[list[Word]] = []
        self.open_ended: list[str] = []
        self.words = simple.words
        self.assigns: list[Assign] = []
        self.exact_only = False
        self.via_xargs = False
        self.unknown = ""
        self.redirects: list[Redirect] = []


def analyse(script: Script, parser: Parser) -> list[Sub]:
    return [_Analysis(simple, parser).sub for simple in script.simples]


def safe_assign(assign: Assign) -> bool:
    known = assign.name in SAFE_VARIABLES or assign.name.startswith("LC_")
    return known and assign.value is not None and assign.value.literal is not None


class _Analysis:
    def __init__(self, simple: Simple, parser: Parser) -> None:
        self.parser = parser
        self.budget = MAX_INNER
        self.mark = ""
        """What a wrapper around the present command replaces by text that it reads."""
        self.fed_words = False
        """Whether a wrapper adds words that it reads."""
        self.sub = Sub(simple)
        self.lenient()
        if simple.words or simple.assigns:
            self.remember(simple.text)
        if why := evaluates.by_assigns(simple.assigns):
            self.unknown(why)
        self.runs(dynamic.by_variables(simple.assigns, simple.words), 0)
        if simple.kind == "command":
            self.strict(simple.words, simple, 0)
        elif simple.words:
            self.remember_words(simple.words)
            self.names(simple.words)

    # -- allow rules: F0, F1, F3 ---------------------------------------------------------------------------------------
    def lenient(self) -> None:
        sub, simple = self.sub, self.sub.simple
        sub.assigns = [a for a in simple.assigns if not safe_assign(a)]
        texts = [simple.text]
        if not sub.assigns and simple.kind == "command":
            texts.append(_text(simple.words))
            while (inner := wrappers.strip_safe(sub.words)) is not None:
                sub.via_xargs = sub.via_xargs or sub.words[0].text == "xargs"
                sub.words = inner
                texts.append(_text(inner))
        sub.texts = list(dict.fromkeys(texts))
        if simple.kind == "command" and sub.words:
            self.lenient_name(sub.words)

    def lenient_name(self, words: list[Word]) -> None:
        """What no rule with a wildcard may approve."""
        name = words[0]
        if name.literal is None or not name.value:
            self.sub.exact_only = True
            self.sub.unknown = f"the command's name {name.text!r} is only known when it runs"
        elif name.value.rsplit("/", 1)[-1] in wrappers.EXACT_ONLY:
            self.sub.exact_only = True
        elif name.value.rsplit("/", 1)[-1] == "find":
            self.sub.exact_only = self.sub.via_xargs or any(
                w.value in wrappers.FIND_WRITES or w.dynamic or w.brace or w.glob for w in words[1:])
        elif name.value.rsplit("/", 1)[-1] == "sed":
            self.sub.exact_only = sedrules.does_more(words[1:])
        elif name.value in ("eval", "source", ".", "exec") and any(w.literal is None for w in words[1:]):
            self.sub.exact_only = True

    # -- ask and deny rules: all forms, and what runs inside -------------------------------------------------------------
    def remember(self, text: str) -> None:
        self.sub.strict[text] = None

    def remember_words(self, words: list[Word]) -> list[Word]:
        """Keep a command in its written and its resolved form (F5); the resolved words come back."""
        self.remember(_text(words))
        resolved: list[Word] = []
        for word in words:
            spread = expand_braces(word)
            if spread is None:
                self.sub.unknown = self.sub.unknown or f"the brace list {word.text[:40]!r} is too long"
                spread = [word]
            resolved += spread
        if resolved:
            name = resolved[0].value
            head = name.rsplit("/", 1)[-1] or name
            self.remember(" ".join([head, *(w.value for w in resolved[1:])]))
            self.remember(_text(resolved))
            resolved = [literal_word(head, quoted=True) if resolved[0].literal is not None else resolved[0], *resolved[1:]]
            self.sub.layers.append(resolved)
            known = next((i for i, w in enumerate(resolved) if w.dynamic), 0)
            if known:
                self.sub.open_ended.append(" ".join(w.value for w in resolved[:known]))
        return resolved

    def strict(self, words: list[Word], simple: Simple | None, level: int) -> None:
        """Follow one command: remember it, then what it runs."""
        self.budget -= 1
        if self.budget < 0 or level > MAX_LEVELS:
            self.unknown("too many commands inside one another")
            return
        if level:
            self.runs(dynamic.by_variables(simple.assigns if simple else (), words), level)
        while words and _ASSIGN_WORD.match(words[0].value):
            words = words[1:]
        if not words:
            self.nothing_left()
            return
        resolved = self.remember_words(words)
        if not resolved:
            return
        if resolved[0].literal is None:
            self.unknown(f"the command's name {words[0].text!r} is only known when it runs")
            return
        if resolved[0].value in RESERVED:
            self.unknown(f"{resolved[0].value!r} stands where a command was expected")
        self.names(resolved)
        self.runs(dynamic.by_name(resolved), level)
        self.follow(resolved[0].value, resolved, simple, level)

    def follow(self, name: str, words: list[Word], simple: Simple | None, level: int) -> None:
        if name in wrappers.SHELLS:
            self.shell(words, simple, level)
        elif name in ("eval", "trap", "alias"):
            self.code(name, words, level)
        elif name in wrappers.CALLBACKS:
            for word, later in pairwise(words):
                if word.value == "-C":
                    self.text(later, level)
        elif name in ("source", "."):
            if any(w.literal is None for w in words[1:]):
                self.unknown(f"{name} runs what is only known when it runs")
            elif any(evaluates.is_descriptor(w) for w in words[1:2]):
                self.fed(name, simple, level)
        elif name == "find":
            self.find(words, level)
        elif name == "git":
            plain = wrappers.git_plain(words)
            if wrappers.git_alias(words):
                self.unknown("git runs an alias that the command itself defines")
            if plain is not None:
                self.remember_words(plain)
        elif name in wrappers.SAFE or name in wrappers.EXEC or name in wrappers.LOOSE:
            self.wrapper(name, words, level)

    def find(self, words: list[Word], level: int) -> None:
        if self.fed_words:
            self.unknown("find may be given -exec by xargs")
        for inner in wrappers.find_commands(words):
            self.inner(inner, "find", level)
        for i, word in enumerate(words[1:], 1):
            if any(p.kind in "vd" and not p.quoted for p in word.parts):
                self.unknown(f"find may be given -exec by {word.text[:40]!r}")
            elif word.dynamic:  # it may be -exec
                self.inner(words[i + 1:], "find", level)

    def wrapper(self, name: str, words: list[Word], level: int) -> None:
        if name == "env":
            self.split_string(words, level)
        if why := evaluates.by_environment(words):
            self.unknown(why)
        if name in wrappers.STRING_RUNNERS:
            for before, word in pairwise(words):
                if any(c in word.value for c in " \t;&|\n$`") or re.fullmatch(r"-[A-Za-z]*c|--(session-)?command", before.value):
                    self.text(word, level)
        if name == "parallel" and len(words) == 1:
            self.unknown("parallel runs what it reads")
        flags = wrappers.SAFE.get(name) or wrappers.EXEC.get(name)
        if name == "command" and len(words) > 1 and words[1].value in ("-v", "-V"):
            return
        rest = wrappers.strip_options(words, flags) if flags is not None else None
        if wrappers.opens_shell(words, rest):
            self.unknown(f"{name} runs a shell on what it reads")
        mark = wrappers.replaced(words, rest)
        if rest is not None:
            self.inner(rest, name, level, mark)
            return
        for i in range(1, len(words)):  # options of its own: every later word may be the command
            if not words[i].value.startswith("-"):
                self.inner(words[i:], name, level, mark)

    def split_string(self, words: list[Word], level: int) -> None:
        """``env -S 'command'``."""
        for i, word in enumerate(words[1:], 1):
            match = _SPLITS.match(word.value)
            if match and match.end() < len(word.value):
                self.text(literal_word(word.value[match.end():], quoted=True), level)
            elif match and i + 1 < len(words):
                self.text(words[i + 1], level)

    def inner(self, words: list[Word], wrapper: str, level: int, mark: str = "") -> None:
        """Follow a command that a wrapper runs. ``mark``: what the wrapper replaces by text that it reads."""
        if wrapper in ("xargs", "find", "parallel") and words and (
                "{}" in words[0].value or (words[0].value in wrappers.SHELLS and len(words) < 2)):
            self.unknown(f"{wrapper} runs what it reads")
        if wrapper == "xargs" and len(words) == 1 and (words[0].value in wrappers.SAFE or words[0].value in wrappers.EXEC):
            self.unknown("xargs runs what it reads")
        start, outer = len(self.sub.layers), (self.mark, self.fed_words)
        self.mark = "{}" if wrapper == "find" else mark or self.mark
        self.fed_words = (self.fed_words or wrapper in ("xargs", "parallel")) and wrapper != "find"
        if words:
            self.strict(words, None, level + 1)
        elif wrapper not in ("xargs", "parallel"):
            self.nothing_left()
        self.mark, self.fed_words = outer
        if wrapper in ("xargs", "parallel"):
            for layer in self.sub.layers[start:]:
                known = [w.value for w in takewhile(lambda w: not mark or mark not in w.value, layer)]
                self.sub.open_ended.append(" ".join(known))
                if not known:
                    self.unknown(f"{wrapper} runs what it reads")

    def nothing_left(self) -> None:
        """A wrapper without a command: what ``xargs`` reads would be one."""
        if self.fed_words:
            self.unknown("xargs runs what it reads")

    def shell(self, words: list[Word], simple: Simple | None, level: int) -> None:
        kind, argument = wrappers.shell_script(words)
        if kind == "text" and argument is not None:
            self.sub.exact_only = self.sub.exact_only or argument.dynamic
            self.text(argument, level)
        elif kind == "stdin":
            self.fed(words[0].value, simple, level)
        elif kind == "unknown":
            self.unknown(f"{words[0].value} runs what is only known when it runs")

    def fed(self, name: str, simple: Simple | None, level: int) -> None:
        """A command that runs what it reads from its input."""
        texts = evaluates.scripts_fed(simple) if simple is not None else None
        if texts is None:
            self.unknown(f"{name} runs what it reads")
        for text in texts or ():
            self.text(literal_word(text, quoted=True), level)

    def code(self, name: str, words: list[Word], level: int) -> None:
        """Arguments that a builtin runs as a command."""
        arguments = [w for w in words[1:] if not (w.value.startswith("-") and w.value != "-")]
        if any(w.dynamic for w in arguments):
            self.unknown(f"{name} runs what is only known when it runs")
        elif name == "eval":
            self.text(literal_word(" ".join(w.value for w in arguments), quoted=True), level)
        elif name == "trap" and arguments:
            self.text(literal_word(arguments[0].value, quoted=True), level)
        elif name == "alias":
            for word in arguments:
                self.text(literal_word(word.value.partition("=")[2], quoted=True), level)

    def text(self, word: Word, level: int) -> None:
        """A word that is a script of its own."""
        if word.dynamic or (self.mark and self.mark in word.value):
            self.unknown(f"the script {word.text[:40]!r} is only known when it runs")
            return
        try:
            script = self.parser.parse(word.value)
        except Opaque as error:
            self.unknown(f"the script {word.value[:40]!r} is not understood: {error}")
            for words in rough(word.value):
                self.remember_words(words)
            return
        if script.unsure:
            self.unknown(script.unsure)
        for simple in script.simples:
            self.sub.redirects += simple.redirects
            if why := evaluates.by_assigns(simple.assigns):
                self.unknown(why)
            if simple.words:
                self.strict(simple.words, simple, level + 1)
            elif simple.assigns:
                self.remember(simple.text)
                self.runs(dynamic.by_variables(simple.assigns, ()), level + 1)

    def runs(self, found: Iterable[dynamic.Runs], level: int) -> None:
        for script, unknown in found:
            if script is not None and level < MAX_LEVELS:
                self.text(script, level)
            elif unknown or script is not None:
                self.unknown(unknown or "too many commands inside one another")

    def names(self, words: list[Word]) -> None:
        """Builtins that evaluate what they are given: ``test -v 'a[$(x)]'``."""
        if why := evaluates.by_words(words):
            self.unknown(why)

    def unknown(self, why: str) -> None:
        self.sub.unknown = self.sub.unknown or why


def _text(words: list[Word]) -> str:
    return " ".join(w.text for w in words)


def rough(text: str) -> list[list[Word]]:
    """The words of a text that is not understood, cut wherever a command could begin. Only for deny rules."""
    text = re.sub(r"['\"\\]", "", text.replace("\\\n", ""))
    pieces = re.split(r"[;&|\n(){}`<>]+|\$\(", text)
    if "{" in text:
        pieces += re.split(r"[;&|\n()`<>]+|\$\(", re.sub(r"[{},]", " ", text))
    return [[literal_word(w, quoted=True) for w in piece.split()] for piece in pieces if piece.split()]
