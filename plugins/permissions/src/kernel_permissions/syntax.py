"""What a shell command is, once it has been read: words, assignments, redirections, simple commands.

Nothing here parses. ``reader.py`` makes these objects from a tree, ``shell.py`` for plain literal commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")
RESERVED = frozenset("! { } [[ ]] if then elif else fi for while until do done case esac select function in coproc".split())
"""Words that the shell takes for syntax where a command's name would stand."""
MAX_BRACES = 64
"""Words that one brace list may become; more counts as unknown."""


class lazy(Generic[T]):
    """A property that is worked out once. (``functools.cached_property`` takes a lock each time in Python 3.11.)"""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> T:
        value = instance.__dict__[self.function.__name__] = self.function(instance)
        return value


class Opaque(Exception):
    """The command is not understood (permissions contract, 5.1); the text says which part."""


class Part(NamedTuple):
    """A piece of a word.

    ``kind``: ``u`` literal text outside quotes, ``q`` literal text from quotes or escapes, ``v`` a plain variable
    (``text`` is its name), ``d`` anything else that is only known when it runs. ``raw`` is the piece as written.
    """

    kind: str
    text: str
    raw: str
    quoted: bool = False


class Word:
    """One word of a command: as written (``text``) and in pieces (``parts``)."""

    def __init__(self, text: str, parts: tuple[Part, ...]) -> None:
        self.text = text
        self.parts = parts

    def __repr__(self) -> str:
        return f"Word({self.text!r})"

    @lazy
    def dynamic(self) -> bool:
        """Whether a part of it is only known when the command runs."""
        return any(p.kind in "vd" for p in self.parts)

    @lazy
    def glob(self) -> bool:
        text = "".join(p.text if p.kind == "u" else "x" for p in self.parts)
        return "*" in text or "?" in text or ("[" in text and "]" in text[text.index("["):])

    @lazy
    def brace(self) -> bool:
        """Whether it may be a brace list; ``{}`` alone is none."""
        text = "".join(p.text if p.kind == "u" else "x" for p in self.parts)
        return "{" in text and "}" in text and ("," in text or ".." in text)

    @lazy
    def tilde(self) -> bool:
        return bool(self.parts) and self.parts[0].kind == "u" and self.parts[0].text.startswith("~")

    @lazy
    def value(self) -> str:
        """Quotes and backslashes resolved; dynamic pieces stay as written."""
        return "".join(p.text if p.kind in "uq" else p.raw for p in self.parts)

    @lazy
    def literal(self) -> str | None:
        """The one value that it certainly has, or ``None``."""
        return None if self.dynamic or self.glob or self.brace or self.tilde else self.value

    @lazy
    def plain(self) -> bool:
        """Written without quotes, escapes, globs, braces or expansions: what you see is what runs."""
        return self.literal == self.text

    def sliced(self, start: int) -> Word:
        """The word without the first ``start`` characters, which must lie in its first literal piece."""
        first = self.parts[0]
        return Word(self.text[start:], (first._replace(text=first.text[start:], raw=first.raw[start:]), *self.parts[1:]))


def literal_word(text: str, quoted: bool = False) -> Word:
    return Word(text, (Part("q" if quoted else "u", text, text, quoted),))


class Assign(NamedTuple):
    """``NAME=value``. ``value`` is ``None`` where it is an array or comes from a loop or ``read``."""

    name: str
    text: str
    value: Word | None
    each: tuple[Word, ...] = ()
    """What a ``for`` loop gives it, one after the other."""


class Redirect(NamedTuple):
    """``op`` is the operator without a descriptor. ``target`` is ``None`` for a heredoc or a closed descriptor."""

    op: str
    target: Word | None
    body: str | None = None
    """Literal text that the command reads (heredoc, here-string); ``None`` where there is none or it is dynamic."""


class Simple:
    """One simple command. Compound commands are flattened into these; a loop's redirections stand in one without words.

    ``kind``: ``command``; ``assign`` for assignments, loop variables and ``export``; ``cond`` for ``[[ ]]``;
    ``redirect`` for the redirections of a compound command.
    """

    __slots__ = ("assigns", "in_loop", "kind", "redirects", "words")

    def __init__(self, words: list[Word], assigns: list[Assign] | None = None, redirects: list[Redirect] | None = None,
                 kind: str = "command", in_loop: bool = False) -> None:
        self.words = words
        self.assigns = assigns or []
        self.redirects = redirects or []
        self.kind = kind
        self.in_loop = in_loop

    def __repr__(self) -> str:
        return f"Simple({self.text!r})"

    @property
    def text(self) -> str:
        """Form F0: as written, one space between words, redirections left out."""
        return " ".join([*(a.text for a in self.assigns), *(w.text for w in self.words)])

    @property
    def stdin(self) -> Redirect | None:
        """The last redirection that feeds text to the command."""
        return next((r for r in reversed(self.redirects) if r.op in ("<<", "<<-", "<<<")), None)


class Script:
    """All simple commands of a text, nested ones included.

    ``unsure``: why the text may run commands that nobody sees (arithmetic over variables, ...); empty when it cannot.
    """

    def __init__(self, simples: list[Simple], functions: set[str] | None = None, unsure: str = "") -> None:
        self.simples = simples
        self.functions = functions or set()
        self.unsure = unsure


def split_blanks(text: str) -> str:
    """Runs of blanks and tabs outside quotes as one space; the ends trimmed. Other white space is part of a word."""
    out: list[str] = []
    quote, between, i = "", True, 0
    while i < len(text):
        c = text[i]
        if not quote and c in " \t":
            if not between:
                out.append(" ")
            between = True
            i += 1
            continue
        between = False
        if quote:
            if c == quote:
                quote = ""
            elif c == "\\" and quote == '"' and i + 1 < len(text):
                out.append(c)
                i += 1
                c = text[i]
        elif c in "'\"":
            quote = c
        elif c == "\\" and i + 1 < len(text):
            out.append(c)
            i += 1
            c = text[i]
        out.append(c)
        i += 1
    if between and out:
        out.pop()
    return "".join(out)


def expand_braces(word: Word) -> list[Word] | None:
    """The words that brace expansion makes of it; ``None`` when they are too many."""
    if not word.brace:
        return [word]
    if len(word.text) > 1_000:
        return None
    atoms: list[Part] = []
    for part in word.parts:
        atoms += [Part("u", c, c) for c in part.text] if part.kind == "u" else [part]
    try:
        spread = list(_alternatives(atoms, [MAX_BRACES]))
    except (OverflowError, RecursionError):
        return None
    return [_joined(atoms) for atoms in spread if atoms] or [word]


def _joined(atoms: list[Part]) -> Word:
    parts: list[Part] = []
    for atom in atoms:
        if parts and atom.kind == "u" and parts[-1].kind == "u":
            last = parts.pop()
            atom = Part("u", last.text + atom.text, last.raw + atom.raw)
        parts.append(atom)
    return Word("".join(p.raw for p in parts), tuple(parts))


def _alternatives(atoms: list[Part], budget: list[int]) -> Iterator[list[Part]]:
    for start, atom in enumerate(atoms):
        if (atom.kind, atom.text) == ("u", "{"):
            found = _list_at(atoms, start)
            if found is None:
                continue
            choices, end = found
            for choice in choices:
                for tail in _alternatives(choice + atoms[end:], budget):
                    yield atoms[:start] + tail
            return
    budget[0] -= 1
    if budget[0] < 0:
        raise OverflowError
    yield atoms


def _list_at(atoms: list[Part], start: int) -> tuple[list[list[Part]], int] | None:
    """The alternatives of the brace list that begins at ``start`` and where it ends; ``None``: it is none."""
    depth, begin, choices = 0, start + 1, []
    for i in range(start, len(atoms)):
        c = atoms[i].text if atoms[i].kind == "u" else ""
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                choices.append(atoms[begin:i])
                if len(choices) > 1:
                    return choices, i + 1
                numbers = _sequence(choices[0])
                return (numbers, i + 1) if numbers else None
        elif c == "," and depth == 1:
            choices.append(atoms[begin:i])
            begin = i + 1
    return None


def _sequence(atoms: list[Part]) -> list[list[Part]] | None:
    """``1..5``, ``a..e``, ``1..9..2``."""
    pieces = "".join(a.text if a.kind == "u" else " " for a in atoms).split("..")
    if len(pieces) not in (2, 3):
        return None
    step = pieces[2] if len(pieces) == 3 else "1"
    if any(len(p) > 9 for p in pieces):
        raise OverflowError
    numeric = [p.lstrip("-").isdigit() and p.isascii() for p in (*pieces[:2], step)]
    if not numeric[2]:
        return None
    if numeric[0] and numeric[1]:
        low, high = int(pieces[0]), int(pieces[1])
    elif all(len(p) == 1 and p.isascii() and p.isalpha() for p in pieces[:2]):
        low, high = ord(pieces[0]), ord(pieces[1])
    else:
        return None
    stride = abs(int(step)) or 1
    if abs(high - low) // stride >= MAX_BRACES:
        raise OverflowError
    values = range(low, high + 1, stride) if low <= high else range(low, high - 1, -stride)
    texts = [str(v) if numeric[0] else chr(v) for v in values]
    return [[Part("u", c, c) for c in text] for text in texts]
