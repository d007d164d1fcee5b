"""Builtins and variables that make the shell run text: what looks like a name or a value may hold a command.

Each function answers with a reason, ``""`` where nothing runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from .syntax import Assign, Redirect, Simple, Word

_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_PLAIN_LET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[0-9+*/%() -]*")
_DESCRIPTOR = re.compile(r"/dev/(stdin|fd/[0-9]+)|/proc/(self|thread-self|[0-9]+)/fd/[0-9]+")
_PROMPTS = frozenset(("PS0", "PS1", "PS2", "PS4", "BASH_ENV", "ENV"))
"""Variables whose value is expanded when the shell uses it, substitutions included."""
_COMMANDS = frozenset(("PROMPT_COMMAND", "BASH_ALIASES", "BASH_CMDS"))
_DECLARES = frozenset(("declare", "typeset", "local", "export", "readonly"))
_TAKES = {"read": "adinNptu", "mapfile": "CcdnOsu", "readarray": "CcdnOsu", "unset": "", "wait": "p"}
"""Builtins whose operands are names, with their flags that take a value."""
_LOADS = {"hash": "p", "enable": "f", "complete": "CFW", "compgen": "CFW", "bind": "x"}
"""Builtins that give a name another meaning, or run code, where one of these flags is given."""


def by_words(words: list[Word]) -> str:
    """Whether a builtin evaluates a word it is given: ``test -v 'a[$(x)]'``, ``declare -i n=x``, ``printf -v "$x"``."""
    name, rest = words[0].value, words[1:]
    if name in _DECLARES:
        return _declares(name, rest)
    if name in ("test", "["):
        names = [later for word, later in pairwise(rest) if word.value in ("-v", "-R")]
    elif name == "printf":
        names = rest[1:2] if rest and rest[0].value == "-v" else rest[:1] if rest and rest[0].value.startswith("-v") else []
    elif name == "let":
        return "" if all(not w.dynamic and _PLAIN_LET.fullmatch(w.value) for w in rest) else "let evaluates variables"
    elif name == "getopts":
        names = rest[1:2]
    elif name in _TAKES:
        names = _operands(rest, _TAKES[name])
    elif name == "alias" and any("=" in w.value for w in rest):
        return "alias gives a name another meaning"
    elif name in _LOADS and any(re.match(rf"-[A-Za-z]*[{_LOADS[name]}]", w.value) for w in rest):
        return f"{name} gives a name another meaning"
    else:
        return ""
    return next((why for w in names if (why := _name(name, w))), "")


def _declares(name: str, words: list[Word]) -> str:
    for word in words:
        if re.match(r"[-+][A-Za-z]*[in]", word.value) and not word.dynamic and name != "export":
            return f"{name} {word.value} evaluates what it is given"
        variable, equals, _ = word.value.partition("=")
        if why := _name(name, word):
            return why
        if equals and (why := _variable(variable.rstrip("+"), word)):
            return why
    return ""


def _operands(words: list[Word], takes: str) -> list[Word]:
    found: list[Word] = []
    skip = False
    for word in words:
        text = word.value
        if skip:
            skip = False
            if takes == "p":  # wait -p NAME
                found.append(word)
        elif text.startswith("-") and len(text) > 1 and not word.dynamic:
            skip = text[-1] in takes
            if "a" in text and "a" in takes and text[-1] != "a":
                found.append(word.sliced(text.index("a") + 1) if word.plain else word)
        else:
            found.append(word)
    return found


def _name(builtin: str, word: Word) -> str:
    """A word that a builtin takes for a name."""
    if word.parts and word.parts[0].kind in "vd":
        return f"{builtin} is given the name {word.text[:40]!r}, which is only known when it runs"
    if _SUBSCRIPT.match(word.value):
        return f"{builtin} evaluates a subscript"
    if builtin not in _DECLARES and word.value in _PROMPTS | _COMMANDS:
        return f"{builtin} sets {word.value}, which the shell evaluates"
    return ""


def by_assigns(assigns: Iterable[Assign]) -> str:
    """Whether the shell itself evaluates a variable that is set: ``PS4='$(x)'``."""
    return next((why for a in assigns if (why := _variable(a.name, a.value))), "")


def by_environment(words: list[Word]) -> str:
    """The same for ``env NAME=value ...``."""
    for word in words[1:]:
        name, equals, _ = word.value.partition("=")
        if equals and not word.value.startswith("-") and (why := _variable(name, word)):
            return why
    return ""


def _variable(name: str, value: Word | None) -> str:
    if name in _COMMANDS or name.startswith("BASH_FUNC_"):
        return f"the shell runs what {name} holds"
    if name in _PROMPTS and (value is None or value.dynamic or any(c in value.value for c in "$`")):
        return f"the shell evaluates what {name} holds"
    return ""


def scripts_fed(simple: Simple) -> list[str] | None:
    """The literal texts that a command may read as its input; ``None`` where another text may come first."""
    texts: list[str] = []
    for redirect in simple.redirects:
        if redirect.op in ("<<", "<<-", "<<<"):
            if redirect.body is None:
                return None
            texts.append(redirect.body)
        elif redirect.op in ("<", "<&", "<>") and not _a_file(redirect):
            return None
    return texts or None


def _a_file(redirect: Redirect) -> bool:
    """A script in a file is that file's business."""
    target = redirect.target
    return target is None or (redirect.op == "<" and target.literal is not None and not is_descriptor(target))


def is_descriptor(word: Word) -> bool:
    """Whether a path means an open descriptor: ``/dev/stdin``."""
    return _DESCRIPTOR.fullmatch(re.sub(r"/+", "/", word.value)) is not None
