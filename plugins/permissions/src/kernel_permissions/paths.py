"""Path rules: gitignore patterns with an anchor, links, working directories (permissions contract, 6.2)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple
from unicodedata import normalize

from .rules import PATH_RULES, Rule, RuleSet
from .view import View, posix

Access = Literal["read", "write", "notebook"]


class Target(NamedTuple):
    """One file of a call. ``given`` is absolute with ``.`` and ``..`` resolved as text; ``real`` are the places that it
    leads to when links are followed (two, where the system reads ``..`` behind a link differently)."""

    given: str
    real: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (self.given, *(r for r in self.real if r != self.given))


class PathPattern:
    """The specifier of a path rule with its anchor.

    :param loose: the reading for deny and ask rules, which covers more.
    """

    __slots__ = ("_folded", "_parts", "anchor", "below_only", "reach", "text")

    def __init__(self, text: str, *, loose: bool, cwd: str, home: str, directory: str) -> None:
        self.text = text
        dotted = text.startswith("./")
        if text.startswith("//"):
            self.anchor, rest, anchored = "/", text[2:], True
        elif text.startswith("~/") or text == "~":
            self.anchor, rest, anchored = home, text[2:], True
        elif text.startswith("/"):
            self.anchor, rest, anchored = directory, text[1:], True
        else:
            self.anchor, rest = cwd, text
            while rest.startswith("./"):
                rest = rest[2:]
            anchored = dotted and not loose and "/" not in rest
        self.anchor = self.anchor.rstrip("/") or "/"
        folder = rest.endswith("/")
        names = [n for n in rest.split("/") if n not in ("", ".")]
        deep = not anchored and (len(names) <= 1 or (loose and len(names) == 2 and names[1] == "**" and not _wild(names[0])))
        self.below_only = (names[-1:] == ["**"] or folder) and not loose
        while names[-1:] == ["**"]:
            names.pop()
        if deep and names[:1] != ["**"]:
            names.insert(0, "**")
        fixed = next((i for i, n in enumerate(names) if _wild(n) or "\\" in n), len(names))
        self.reach = normal("/".join([self.anchor, *names[:fixed]]))
        self._parts = [_part(n, False, loose) for n in names]
        self._folded = [_part(n, True, loose) for n in names]

    def covers(self, path: str, *, fold: bool = False) -> bool:
        """Whether it matches the path or a folder above it."""
        anchor = self.anchor
        if fold:
            path, anchor = path.casefold(), anchor.casefold()
        if not path.isascii():
            path, anchor = normalize("NFC", path), normalize("NFC", anchor)
        if anchor == "/":
            rest = path[1:]
        elif path == anchor:
            rest = ""
        elif path.startswith(anchor + "/"):
            rest = path[len(anchor) + 1:]
        else:
            return False
        names = rest.split("/") if rest else []
        return _covers(self._folded if fold else self._parts, names, 1 if self.below_only else 0)


Part = re.Pattern[str] | str | None
"""One part of a pattern: a compiled glob, a plain name, or ``None`` for ``**``."""


def _wild(name: str) -> bool:
    return any(c in name for c in "*?[")


def _part(name: str, fold: bool, loose: bool) -> Part:
    if name == "**":
        return None
    name = normalize("NFC", name.casefold() if fold else name)
    return compile_glob(name, broken=loose) if _wild(name) or "\\" in name else name


def compile_glob(name: str, *, broken: bool) -> re.Pattern[str]:
    """One part of a path as a regular expression.

    :param broken: whether a glob that cannot be read (``[z-a]``) matches everything or nothing.
    """
    try:
        return re.compile(glob_regex(name), re.DOTALL)
    except re.error:
        return re.compile("" if not broken else ".*", re.DOTALL)


def glob_regex(name: str) -> str:
    """A regular expression for one part of a path.

    What follows a ``*`` stands in an atomic group: the first place that fits is enough for a glob, and so no pattern can
    make matching slow.
    """
    out, i = [], 0
    while i < len(name):
        star = name[i] == "*"
        while name[i:i + 1] == "*":
            i += 1
        stop = _next_star(name, i)
        fixed = "".join(_fixed(name[i:stop]))
        if not star:
            out.append(fixed)
        else:
            out.append(f"(?>.*?{fixed})" if stop < len(name) else f".*{fixed}")
        i = stop
    return "".join(out)


def _next_star(name: str, start: int) -> int:
    i = start
    while i < len(name) and name[i] != "*":
        if name[i] == "[" and (close := _class_end(name, i + 1)) > 0:
            i = close
        i += 2 if name[i] == "\\" else 1
    return min(i, len(name))


def _class_end(text: str, start: int) -> int:
    """Where the ``]`` of a character class stands whose inside begins at ``start``; -1: there is none."""
    return text.find("]", start + (2 if text[start:start + 1] in ("!", "^") else 1))


def _fixed(text: str) -> list[str]:
    """The regular expression of a piece of a glob without ``*``."""
    out, i = [], 0
    while i < len(text):
        c = text[i]
        i += 1
        if c == "?":
            out.append(".")
        elif c == "\\" and i < len(text):
            out.append(re.escape(text[i]))
            i += 1
        elif c == "[":
            negated = text[i:i + 1] in ("!", "^")
            close = _class_end(text, i)
            if close < 0:
                out.append(r"\[")
                continue
            inner = text[i + negated:close].replace("\\", "\\\\").replace("[", r"\[").replace("]", r"\]").replace("^", r"\^")
            inner = re.sub(r"([&~|])\1", lambda m: "\\" + m[1] + "\\" + m[1], inner)
            out.append(f"[{'^' if negated else ''}{inner}]")
            i = close + 1
        else:
            out.append(re.escape(c))
    return out


def _covers(parts: Sequence[Part], names: list[str], more: int) -> bool:
    """Whether the parts match the beginning of the names, with at least ``more`` names left.

    ``**`` takes any number of names; going back to the last ``**`` alone is enough.
    """
    limit = len(names) - more
    p = n = 0
    back: tuple[int, int] | None = None
    while p < len(parts):
        part = parts[p]
        if part is None:
            back = (p, n)
            p += 1
        elif n < limit and (names[n] == part if isinstance(part, str) else part.fullmatch(names[n]) is not None):
            p += 1
            n += 1
        elif back is not None and back[1] < limit:
            back = (back[0], back[1] + 1)
            p, n = back[0] + 1, back[1]
        else:
            return False
    return n <= limit


class PathRules:
    """The path rules of a rule set, ready to be asked.

    :param cwd: the directory that the session started in. :param now: the working directory of this moment: deny and ask
        patterns hold from both.
    """

    def __init__(self, rules: RuleSet, view: View, cwd: str) -> None:
        self.view = view
        self.cwd = cwd
        self._compiled: dict[tuple[str, str, str], list[tuple[Rule, PathPattern | None]]] = {}
        self._rules = rules

    def _patterns(self, tool: str, behavior: str, cwd: str) -> list[tuple[Rule, PathPattern | None]]:
        key = (tool, behavior, cwd)
        found = self._compiled.get(key)
        if found is None:
            if len(self._compiled) > 64:
                self._compiled.clear()
            # a bare rule is about its tool, except that a bare allow approves every path
            found = self._compiled[key] = [
                (rule, None if rule.specifier is None else PathPattern(
                    rule.specifier, loose=behavior != "allow", cwd=cwd, home=self.view.home, directory=rule.directory))
                for rule in self._rules.lists[behavior]
                if (rule.tool == tool and behavior == "allow") or (rule.specifier is not None and rule.names((tool,)))]
        return found

    def _hit(self, tool: str, behavior: str, target: Target, now: str) -> Rule | None:
        for cwd in dict.fromkeys((self.cwd, now)):
            patterns = self._patterns(tool, behavior, cwd)
            if not patterns:
                continue
            fold = self.view.ignores_case(target.given)
            for rule, pattern in patterns:
                if pattern is not None and any(pattern.covers(p) or (fold and pattern.covers(p, fold=True)) for p in target.all):
                    return rule
        return None

    def denied(self, access: Access, target: Target, now: str) -> Rule | None:
        """The deny rule that covers it. Reading a file is also the first half of changing it; a notebook is exempt."""
        tools = ("Read",) if access == "read" else ("Edit",) if access == "notebook" else ("Edit", "Read")
        return next((rule for tool in tools if (rule := self._hit(tool, "deny", target, now))), None)

    def asked(self, access: Access, target: Target, now: str) -> Rule | None:
        return self._hit("Read" if access == "read" else "Edit", "ask", target, now)

    def allowed(self, access: Access, target: Target, inside: Sequence[bool], allow: Iterable[Rule] | None = None) -> Rule | None:
        """The allow rule that covers every place of the target which is not inside the working directories.

        :param inside: for each place of ``target.all`` whether it lies inside; for a write outside counts everywhere.
        """
        tools = PATH_RULES if access == "read" else ("Edit",)
        usable = None if allow is None else set(map(id, allow))
        known = [pair for tool in tools for pair in self._patterns(tool, "allow", self.cwd)]
        patterns = [(r, p) for r, p in known if usable is None or id(r) in usable]
        if not patterns:
            return None
        decided: Rule | None = None
        for path, within in zip(target.all, inside, strict=True):
            rule = next((r for r, p in patterns if p is None or p.covers(path)), None)
            if rule is None and not within:
                return None
            decided = decided or rule
        return decided

    @property
    def any_read_limits(self) -> bool:
        return bool(self._patterns("Read", "deny", self.cwd) or self._patterns("Read", "ask", self.cwd))

    def reaches_into(self, folder: Target, now: str) -> Rule | None:
        """A deny or ask rule about reading that may cover something inside the folder."""
        for behavior in ("deny", "ask"):
            for cwd in dict.fromkeys((self.cwd, now)):
                for rule, pattern in self._patterns("Read", behavior, cwd):
                    if pattern is not None and any(
                            under(pattern.reach, p) or under(p, pattern.reach) for p in folder.all):
                        return rule
        return None


def under(path: str, folder: str) -> bool:
    return path == folder or folder == "/" or path.startswith(folder + "/")


class Places:
    """Where the session works: its directories, and how a path of a call is read.

    :param directories: working directories, absolute.
    """

    def __init__(self, view: View, directories: Iterable[str]) -> None:
        self.view = view
        self.directories = tuple(dict.fromkeys(self.absolute(d, "/") for d in directories))
        real = [r for d in self.directories if (r := view.resolve(d)) is not None]
        self.roots = tuple(dict.fromkeys((*self.directories, *real)))

    def absolute(self, path: str, base: str) -> str:
        if self.view.windows:
            path, base = posix(path), posix(base)
        return normal(posixpath.join(base, path))

    def target(self, path: str, base: str) -> Target | None:
        """The places that a path means; ``None`` where that cannot be told."""
        if "\0" in path or not path:
            return None
        if path == "~" or path.startswith("~/"):
            path = self.view.home + path[1:]
        elif path.startswith("~"):
            return None
        if self.view.windows:
            path, base = posix(path), posix(base)
        raw = posixpath.join(base, path)
        given = normal(raw)
        real = [self.view.resolve(given)]
        if ".." in raw:
            real.append(self.view.resolve(raw))
        known = tuple(dict.fromkeys(r for r in real if r is not None))
        return Target(given, known) if len(known) and None not in real else None

    def within(self, target: Target) -> list[bool]:
        return [any(under(path, root) for root in self.roots) for path in target.all]

    def inside(self, target: Target) -> bool:
        """Whether the path as given and everything that it leads to lie inside the working directories."""
        return all(self.within(target))


def normal(path: str) -> str:
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path
