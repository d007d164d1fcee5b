"""Paths inside one shell command: where it may stand, and what it may read there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import repository
from .forms import SAFE_VARIABLES, Sub
from .links import Links
from .paths import PathRules, Places, Target, normal
from .readonly_table import TABLE
from .syntax import Script, Simple, Word, expand_braces, lazy, literal_word
from .words import MAX_MATCHES, WordPath, expand, path_of

MAX_DIRECTORIES = 8
MAX_LOOKED_AT = 1_000
"""Names below a folder that are compared with rules before the command asks instead."""
_OF_THE_PROCESS = re.compile(r"/proc/(?:[a-z-]*self|[0-9]+|\$[^/]*)/(?P<place>cwd|root)(?=/|$)")
"""Places that depend on who asks: what they mean for the shell is not what they mean for us."""
_CHANGES_NAMES = frozenset((
    "alias unalias hash enable export declare typeset local readonly source . eval set shopt exec trap read builtin "
    "command_not_found_handle mapfile readarray getopts").split())
_MOVES = frozenset(("cd", "pushd", "popd"))
_TAKES_ONE = frozenset(("test", "[", "echo", "printf", "cd"))
"""Commands that do not take a list of files."""
_ONLY_READS = frozenset((*TABLE, *"cd find git awk docker podman test [ date ps strings".split(),
                          *"timeout time nice nohup stdbuf command builtin".split()))
"""Commands that make no file, as far as they are in the read-only set or only wrap another command."""


class ShellPaths:
    """What is asked about paths while one command is judged.

    :param subs: all subcommands. :param cwd: where the command starts. :param wide: the larger read-only set counts.
    """

    def __init__(self, script: Script, subs: list[Sub], places: Places, rules: PathRules, cwd: str, wide: bool = False) -> None:
        self.wide = wide
        self.script = script
        self.subs = subs
        self.places = places
        self.view = places.view
        self.rules = rules
        self.cwd = cwd
        self._known: dict[str, Target | None] = {}
        self._guesses: dict[int, list[Target]] = {}
        self.links = Links([layer for s in subs for layer in s.layers if layer], places, self.targets)

    def target(self, path: str) -> Target | None:
        """An absolute path; the file system is asked once in the course of one decision."""
        if path not in self._known:
            self._known[path] = self.places.target(path, "/")
        return self._known[path]

    # -- where the command may stand -----------------------------------------------------------------------------------
    @lazy
    def moves(self) -> list[tuple[Sub, list[Word]]]:
        return [(s, layer) for s in self.subs for layer in s.layers if layer and layer[0].value in _MOVES]

    @lazy
    def directories(self) -> list[str]:
        """Every directory that a relative path may be relative to; empty where nobody knows."""
        found = [self.cwd]
        for sub, layer in self.moves:
            target = self._moved_to(layer)
            if target is None or (sub.simple.in_loop and not target.startswith("/")):
                return []
            for start in list(found):
                place = self.places.absolute(target, start)
                if place not in found:
                    found.append(place)
            if len(found) > MAX_DIRECTORIES:
                return []
        return found

    @lazy
    def likely(self) -> list[str]:
        """The directories that are known, where others are not: for deny and ask rules."""
        found = [self.cwd]
        for _, layer in self.moves:
            target = self._moved_to(layer)
            found += [] if target is None else [self.places.absolute(target, start) for start in found[:MAX_DIRECTORIES]]
        return list(dict.fromkeys(found))[:MAX_DIRECTORIES]

    def _moved_to(self, layer: list[Word]) -> str | None:
        operands = [w for w in layer[1:] if w.text != "--"]
        if layer[0].value == "popd" or len(operands) != 1 or operands[0].value.startswith(("-", "+")):
            return None
        found = path_of(operands[0], self.view, self.cwd)
        return found.text if found is not None and found.glob is None else None

    @lazy
    def really_moves(self) -> bool:
        """Whether a ``cd`` leads anywhere but to where the command starts."""
        return bool(self.moves) and self.directories != [self.cwd]

    @lazy
    def git_beside_cd(self) -> bool:
        return self.really_moves and any(layer and layer[0].value == "git" for s in self.subs for layer in s.layers)

    @lazy
    def changing(self) -> bool:
        """Whether some part may make a file or a folder."""
        return any(layer[0].value not in _ONLY_READS and not _sed_reads(layer) for s in self.subs for layer in s.layers) or any(
            r.op.startswith((">", "&>")) and r.target is not None and not is_no_file(r.op, r.target)
            for s in self.subs for r in s.simple.redirects)

    @lazy
    def foreign_repository(self) -> str:
        """``""`` where a git command uses the person's own repository, else what it may use instead."""
        return repository.foreign(self.view, self.cwd, self.places.directories[0], changing=self.changing)

    @lazy
    def redirect_beside_cd(self) -> bool:
        return self.really_moves and any(
            r.op.startswith((">", "&>")) and r.target is not None and not is_no_file(r.op, r.target)
            for s in self.subs for r in s.simple.redirects)

    @lazy
    def _names_changed(self) -> bool:
        for sub in self.subs:
            if exports_safely(sub.simple) or counts(sub.simple):
                continue
            if sub.simple.kind == "assign" and (sub.assigns or sub.simple.words):
                return True
            if any(layer and layer[0].value in _CHANGES_NAMES and not stops_early(layer) for layer in sub.layers):
                return True
        return False

    def redefined(self, name: str) -> bool:
        """Whether the command itself may have given the name another meaning."""
        return name in self.script.functions or self._names_changed

    @lazy
    def _loops(self) -> dict[str, tuple[Word, ...]]:
        """What the variable of a ``for`` loop may be, where nothing else can set it."""
        assigns = [a for s in self.subs for a in s.simple.assigns]
        texts = " ".join(s.simple.text for s in self.subs)
        if self._names_changed or "((" in texts or "$[" in texts:
            return {}
        return {a.name: a.each for a in assigns if a.each and all(map(self._may_be_read, a.each)) and
                sum(b.name == a.name for b in assigns) == 1 and not re.search(rf"\$\{{[!#]?{a.name}[^}}]", texts)}

    def _may_be_read(self, word: Word) -> bool:
        """Whether no rule keeps the files that a word of a loop means from being read."""
        if word.dynamic or word.brace or word.tilde or not re.match(r"[A-Za-z0-9_./]", word.value):
            return False
        targets = self.targets(word)
        return targets is not None and not any(map(self._limited, targets))

    def without_loops(self, sub: Sub) -> list[Word]:
        """The words of a command, ``"$f"`` within ``for f in a b`` replaced by ``a b``: it reads what each of them means."""
        if not sub.simple.in_loop or not sub.words or sub.words[0].text in _TAKES_ONE:
            return sub.words
        found: list[Word] = []
        for word in sub.words:
            part = word.parts[0] if len(word.parts) == 1 else None
            each = self._loops.get(part.raw.strip("${}")) if part is not None and part.kind == "v" and part.quoted else None
            found += each or [word]
        return found

    # -- words as files ------------------------------------------------------------------------------------------------
    def targets(self, word: Word) -> list[Target] | None:
        """Every file that a word may mean; ``None`` where that is only known when it runs."""
        found = path_of(word, self.view, self.cwd)
        if word.glob and "**" in "".join(p.text if p.kind == "u" else p.text and "x" for p in word.parts):
            return None  # zsh goes down all folders, and with *** through links too
        if found is None or _OF_THE_PROCESS.match(normal(found.text)) or not (bases := self._bases(found, self.directories)):
            return None
        return self._at(found, bases)

    def guesses(self, word: Word) -> list[Target]:
        """The files that a word probably means, for deny and ask rules and protected paths: ``$HOME`` and ``$PWD`` are
        known, any other variable in front stands for the working directory."""
        found = self._guesses.get(id(word))
        if found is None:
            found = self._guesses[id(word)] = self._guess(word)
        return found

    def _guess(self, word: Word) -> list[Target]:
        found: list[Target] = []
        process = _OF_THE_PROCESS.match(re.sub(r"/+(\./+)*", "/", word.value))
        if process and not any(c in word.value[process.end():] for c in "$`"):
            rest = literal_word(word.value[process.end():] or "/", quoted=True)
            if process["place"] == "root":
                return self._guess(rest)
            word = literal_word("." + rest.value, quoted=True)
        for one in expand_braces(word) or [word]:
            path = path_of(one, self.view, self.cwd, variables=True)
            if path is None and one.parts and one.parts[0].kind in "vd":
                tail = "".join(p.text for p in one.parts[1:])
                path = WordPath(tail.lstrip("/")) if tail.startswith("/") else None
            if path is not None and path.text:
                bases = self._bases(path, self.directories or self.likely)
                found += self._at(path, bases) or self._at(WordPath(path.text), bases) or ()
        return found

    def _bases(self, found: WordPath, directories: list[str]) -> list[str]:
        absolute = found.text.startswith("/") or (self.view.windows and found.text[1:2] == ":")
        return ["/"] if absolute else directories

    def _at(self, found: WordPath, bases: Iterable[str]) -> list[Target] | None:
        targets: list[Target] = []
        for base in bases:
            names = expand(found, self.view, base)
            if names is None:
                return None
            for name in names:
                target = self.target(name)
                if target is None:
                    return None
                targets.append(target)
        return targets

    def not_readable(self, word: Word) -> str:
        """``""`` where every file that the word may mean lies inside the working directories."""
        if word.value in ("-", "/dev/null"):
            return ""
        if self.view.windows and word.value.startswith(("\\\\", "//")):
            return f"{word.text[:60]!r} is a network path"
        if word.dynamic or word.brace:
            return f"{word.text[:60]!r} is only known when it runs"
        targets = self.targets(word)
        if targets is None:
            return f"where {word.text[:60]!r} leads is not known"
        if self.links.uncertain(word):
            return f"the command itself may change where {word.text[:60]!r} leads"
        if not all(self.places.inside(t) or self.rules.allowed("read", t, self.places.within(t)) for t in targets):
            return f"{word.text[:60]!r} lies outside the working directories"
        return ""

    def not_readable_here(self) -> str:
        if not self.directories:
            return "the directory is not known"
        for directory in self.directories:
            target = self.target(directory)
            if target is None or not self.places.inside(target):
                return "the current directory lies outside the working directories"
        return ""

    def not_deeply_readable(self, operands: Iterable[Word], suffixes: tuple[str, ...] = ()) -> str:
        """A command that reads whole folders must not pass by a rule about files in them.

        :param suffixes: it reads only files whose names end so; none: all files.
        """
        if not self.rules.any_read_limits:
            return ""
        targets = [t for w in operands for t in self.targets(w) or ()]
        if not targets:
            targets = [t for d in self.directories if (t := self.target(d))]
        return self._all_deeply_readable(targets, suffixes)

    def not_deeply_readable_anywhere(self) -> str:
        """The same for a command that may read all that the session works on."""
        if not self.rules.any_read_limits:
            return ""
        return self._all_deeply_readable([t for d in (self.cwd, self.places.directories[0]) if (t := self.target(d))])

    def _all_deeply_readable(self, targets: list[Target], suffixes: tuple[str, ...] = ()) -> str:
        left = MAX_LOOKED_AT
        for target in targets:
            if self.view.is_dir(target.given) and (rule := self.rules.reaches_into(target, self.cwd)):
                left = 0 if self.changing else self._nothing_limited(target, suffixes, left)
                if not left:
                    return f"it reads a whole folder, where {rule.text} keeps files from being read"
        return ""

    def _nothing_limited(self, folder: Target, suffixes: tuple[str, ...], left: int) -> int:
        """Look below a folder for what a deny or ask rule about reading covers; links below it are not followed.

        :return: how many names may still be looked at; 0: a rule covers something, or there is too much to look at.
        """
        below = [folder]
        while below:
            here = below.pop()
            names = self.view.entries(here.given)
            left -= len(names) if names is not None else left
            for name in names if names is not None and left > 0 else ():
                one = Target(f"{here.given}/{name}", tuple(f"{r}/{name}" for r in here.real))
                if self.view.is_link(one.given):
                    continue
                if self.view.is_dir(one.given):
                    below.append(one)
                elif (not suffixes or name.endswith(suffixes)) and self._limited(one):
                    return 0
            if left <= 0:
                return 0
        return left

    def not_openly_readable(self, operands: Iterable[Word]) -> str:
        """A command that opens the files of a folder it is given, but none below."""
        folders = [w for w in operands if any(self.view.is_dir(t.given) for t in self.targets(w) or ())]
        for word in folders:
            for folder in self.targets(word) or ():
                names = self.view.entries(folder.given) or ()
                if len(names) > MAX_MATCHES:
                    return f"{word.text[:60]!r} holds too many files"
                for name in names:
                    target = self.target(f"{folder.given}/{name}")
                    if target is None or not self.places.inside(target):
                        return f"what {word.text[:60]!r} holds leads outside the working directories"
        return self.not_deeply_readable(folders) if folders else ""

    def all_there(self, word: Word) -> bool:
        """Whether a plain word names a file or a folder from wherever the command may stand."""
        targets = self.targets(word) if word.plain else None
        return bool(targets) and all(self.view.exists(t.given) for t in targets or ())

    def is_here(self, word: Word) -> bool:
        targets = self.targets(word)
        here = self.target(self.cwd)
        return targets is not None and here is not None and all(t.given == here.given or t.real == here.real for t in targets)

    def maybe_limited(self, text: str) -> bool:
        """Whether a deny or ask rule about reading may cover the file that an argument of git names: ``HEAD:path``,
        ``:0:path``, ``-L1,9:path``, a pattern, or what stands behind ``:(...)``."""
        if not self.rules.any_read_limits:
            return False
        if text.startswith((":/", ":(", ":^", ":!")) or any(c in text for c in "*?[\\"):
            return True
        starts = dict.fromkeys((self.cwd, self.places.directories[0]))
        names = {text, text.partition(":")[2], text.rpartition(":")[2]}
        targets = [t for name in names if name for start in starts if (t := self.places.target(name, start))]
        return any(map(self._limited, targets))

    def _limited(self, target: Target) -> bool:
        """Whether a deny or ask rule about reading covers the file."""
        return bool(self.rules.denied("read", target, self.cwd) or self.rules.asked("read", target, self.cwd))


_LOOP_VARIABLE = re.compile(r"[a-z][a-z0-9_]*")
_ZSH_KNOWS = frozenset((
    "path fpath cdpath manpath mailpath module_path fignore psvar watch prompt argv status pipestatus signals options commands "
    "functions aliases galiases saliases parameters modules nameddirs userdirs history historywords jobdirs jobstates jobtexts "
    "dirstack keymaps widgets terminfo termcap errnos sysparams mapfile langinfo histchars reswords patchars builtins "
    "zsh_eval_context usergroups funcstack functrace funcfiletrace funcsourcetrace dis_aliases dis_functions "
    "dis_builtins").split())
"""Variables in small letters that mean something to zsh."""


def counts(simple: Simple) -> bool:
    """``for f in ...``: a variable that no program and no shell reads."""
    return simple.kind == "assign" and not simple.words and all(
        a.text.startswith("for ") and _LOOP_VARIABLE.fullmatch(a.name) and a.name not in _ZSH_KNOWS for a in simple.assigns)


def exports_safely(simple: Simple) -> bool:
    """``export NODE_ENV=test``: what may stand before any command may stand for all that follow."""
    words = [w.literal for w in simple.words]
    return simple.kind == "assign" and len(words) > 1 and words[0] == "export" and not simple.words[0].glob and all(
        w is not None and w.partition("=")[0] in SAFE_VARIABLES and "=" in w for w in words[1:])


def stops_early(layer: list[Word]) -> bool:
    """``set -e``, ``set -o pipefail``: when a script ends changes no command."""
    words = [w.literal for w in layer]
    return words[0] == "set" and len(words) > 1 and not any(w.brace for w in layer) and re.fullmatch(
        r"(?:-[eu]+|-[eu]*o (?:pipefail|errexit|nounset))(?: (?:-[eu]+|-[eu]*o (?:pipefail|errexit|nounset)))*",
        " ".join(w or "?" for w in words[1:])) is not None


def _sed_reads(layer: list[Word]) -> bool:
    if layer[0].value != "sed":
        return False
    from .readonly import sed_script

    return not sed_script(layer)[0]


def is_no_file(op: str, target: Word) -> bool:
    """Whether a redirection names a descriptor, or ``/dev/null``."""
    text = target.literal
    if text == "/dev/null":
        return True
    return op in (">&", "<&") and text is not None and (text == "-" or text.rstrip("-").isdigit())
