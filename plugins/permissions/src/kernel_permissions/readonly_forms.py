"""Commands of the read-only set that need more than a table of flags, and which files a search opens (5.7)."""

from __future__ import annotations

import re

from .options import Options, take_apart
from .shellpaths import ShellPaths, stops_early
from .syntax import Word

_TYPES = {"py": (".py", ".pyi"), "ts": (".ts", ".tsx", ".cts", ".mts"), "js": (".js", ".jsx", ".cjs", ".mjs", ".vue"),
          "rust": (".rs",), "go": (".go",), "java": (".java", ".jsp", ".jspx", ".properties"), "sql": (".sql", ".psql"),
          "css": (".css", ".scss")}
"""Endings of ripgrep's file types, or more of them than it knows."""
_ENDING = re.compile(r"\*(\.[A-Za-z0-9_.]+)")


def suffixes(taken: Options) -> tuple[str, ...]:
    """The endings of the only files that a search opens below a folder; none where that is not certain."""
    found: list[str] = []
    if not taken.flags.isdisjoint(("--exclude", "--iglob")):
        return ()  # beside them a file may be read that no pattern names
    for flag, word in taken.pairs:
        if flag in ("--include", "g", "--glob"):
            ending = _ENDING.fullmatch(word.value)
            if ending is None:
                return ()
            found.append(ending[1])
        elif flag in ("t", "--type"):
            if word.value not in _TYPES:
                return ()
            found += _TYPES[word.value]
    return tuple(found)


def set_options(words: list[Word], paths: ShellPaths) -> str:
    return "" if stops_early(words) else "it changes how the shell reads what follows"


def expr(words: list[Word], paths: ShellPaths) -> str:
    odd = next((w for w in words[1:] if w.literal is None or w.brace or w.glob), None)
    return f"{odd.text[:60]!r} is not plain" if odd else ""


def date(words: list[Word], paths: ShellPaths) -> str:
    """Without a ``+`` in front an operand sets the clock."""
    taken = take_apart(words[1:], "d: I? R u --date= --iso-8601? --rfc-3339= --rfc-email --universal --utc")
    if isinstance(taken, str):
        return taken
    return next((f"{w.text[:60]!r} may set the clock" for w in taken.operands if w.glob or not w.value.startswith("+")), "")


_PS_PLAIN = re.compile(r"-(?:A|e|f|F|l|H|L|T|ef|eF|el|elf|ejH|w|ww)|[aufxwlhrT]+|--(?:forest|headers|no-headers)|"
                       r"--sort=[-+%a-z,]+|--p?pid=[0-9,]+")
_PS_COLUMNS = frozenset((
    "pid ppid pgid sid tty tt user ruser uid group comm cmd args command stat state s etime etimes time start lstart rss vsz "
    "%cpu %mem pcpu pmem pri ni nlwp wchan").split())


def ps(words: list[Word], paths: ShellPaths) -> str:
    """Its ``e`` without a dash shows the environment of processes, secrets included; and what it does not understand with
    a dash, a column or a user too, it reads again without one. So only forms whose every word is known."""
    rest = [w.literal or "" for w in words[1:]]
    while rest:
        if len(rest) > 1 and rest[0] in ("-p", "-o", "-eo", "-q") and (
                re.fullmatch("[0-9,]+", rest[1]) if rest[0] in ("-p", "-q") else set(rest[1].split(",")) <= _PS_COLUMNS):
            rest = rest[1:]
        elif not _PS_PLAIN.fullmatch(rest[0]):
            return "this form of ps is not known to be read-only"
        rest = rest[1:]
    return ""


def command(words: list[Word], paths: ShellPaths) -> str:
    """``command -v name`` says what a name means, as ``type`` does."""
    known = len(words) > 2 and words[1].plain and words[1].text in ("-v", "-V")
    return "" if known and all(w.plain for w in words[2:]) else "this form is not known to be read-only"
