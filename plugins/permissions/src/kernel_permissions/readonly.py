"""Whether a subcommand only reads, and only inside the working directories (permissions contract, 5.7).

Every check answers with ``""`` or with the reason why the command does not belong to the read-only set.
"""

from __future__ import annotations

import re

from . import readonly_forms, repository
from .forms import Sub
from .options import Options, take_apart
from .readonly_table import DOCKER, EXACT, FIND_OPTIONS, FIND_TESTS, GIT, TABLE, WIDE, Spec
from .scripts import awk_only_prints, sed_only_prints
from .shellpaths import ShellPaths, counts, exports_safely
from .syntax import Word, expand_braces, literal_word

_FIND = {name: kind for kind, names in FIND_TESTS.items() for name in names.split()}
_PLAIN_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+:-]*")
_PATTERN_FLAGS = frozenset(("e", "f", "--regexp", "--file", "--files", "--type-list"))
_UNARY = frozenset("-b -c -d -e -f -g -h -k -n -p -r -s -u -w -x -z -L -O -G -N -S".split())
_PRINTS_TEXT = re.compile(r"(?:[^%\\]|\\[abefnrtv\\\"']|%(?:%|[-+ 0#]*[0-9]*(?:\.[0-9]+)?[sbqc]))*")
_SEQ = re.compile(r"\$\(seq(?: [0-9]+){1,3}\)")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_BINARY = frozenset("= == != -eq -ne -lt -le -gt -ge -nt -ot -ef".split())


def why_not(sub: Sub, paths: ShellPaths) -> str:
    """``""`` where the subcommand is read-only, else the reason."""
    if counts(sub.simple):
        return next((why for a in sub.simple.assigns for w in a.each if (why := _looped(w, paths))), "")
    if exports_safely(sub.simple):
        return ""
    if sub.simple.kind != "command" or not sub.words:
        return "it is no plain command"
    words = settled(paths.without_loops(sub))
    if sub.assigns:
        return f"the assignment {sub.assigns[0].text[:60]!r} is not known to be safe"
    name = words[0].text
    if not words[0].plain or paths.redefined(name):
        return f"{name[:60]!r} is not known to be read-only"
    if sub.via_xargs and name != "echo":
        return "its arguments come from another command"
    exact = " ".join(w.text for w in words) in EXACT
    if (exact or name in WIDE) and not paths.wide:
        return f"{name[:60]!r} is in the read-only set only where kernel.permissions.readOnly is \"wide\""
    special = _SPECIAL.get(name)
    if exact:
        return ""
    if special is not None:
        return special(words, paths)
    spec = TABLE.get(name)
    if spec is None:
        return f"{name[:60]!r} is not in the read-only set"
    return _by_table(words, spec, paths)


def _looped(word: Word, paths: ShellPaths) -> str:
    """A word that a ``for`` loop goes through. What becomes a glob later looks into folders that nobody asked about."""
    if word.dynamic:
        return "" if _SEQ.fullmatch(word.text) else f"{word.text[:60]!r} is only known when it runs"
    if word.glob:
        return paths.not_readable(word)
    return f"{word.text[:60]!r} holds a glob" if any(c in word.value for c in "*?[~") else ""


def settled(words: list[Word]) -> list[Word]:
    """The words behind brace expansion. ``<(...)`` is a file that may be read: its command is a part of its own."""
    found = words[:1]
    for word in words[1:]:
        if len(word.parts) == 1 and word.parts[0].kind == "d" and word.parts[0].raw.startswith("<("):
            found.append(literal_word("/dev/null", quoted=True))
        else:
            found += expand_braces(word) or [word]
    return found


def _by_table(words: list[Word], spec: Spec, paths: ShellPaths) -> str:
    if spec.operands == "text":
        return _text(words, paths)
    if spec.operands == "word":
        if len(words) == 2 and words[1].plain and _PLAIN_WORD.fullmatch(words[1].text):
            return ""
        return "it is read-only with one plain word only"
    taken = take_apart(words[1:], spec.flags)
    if isinstance(taken, str):
        return taken
    if not spec.globs and any(w.glob for w in taken.operands):
        return "it has a glob outside quotes"
    return _operands(taken, spec, paths)


def _operands(taken: Options, spec: Spec, paths: ShellPaths) -> str:
    files = list(taken.files)
    operands = list(taken.operands)
    if spec.operands.isdigit() and len(operands) > int(spec.operands):
        return f"the argument {operands[int(spec.operands)].text[:60]!r} is not expected"
    if spec.operands == "none" and operands:
        return f"the argument {operands[0].text[:60]!r} is not expected"
    if spec.operands in ("none", "any"):
        return next((f"{w.text[:60]!r} is not plain" for w in operands if w.literal is None or w.value.startswith("+")), "")
    if spec.operands == "pattern" and operands and not taken.flags & _PATTERN_FLAGS:
        if operands[0].glob:
            operands.append(operands[0])  # it may expand to names of files
        operands = operands[1:]
    deep = spec.deep == "*" or not taken.flags.isdisjoint(spec.deep.split())
    fault = next((why for w in (*files, *operands) if (why := paths.not_readable(w))), "")
    if fault:
        return fault
    if not operands and spec.bare:
        fault = paths.not_readable_here()
    if not fault and deep:
        fault = paths.not_deeply_readable(operands, readonly_forms.suffixes(taken))
    return fault


def _text(words: list[Word], paths: ShellPaths) -> str:
    """``echo`` and ``printf``: what they print may be anything; a glob still looks into folders."""
    if words[0].text == "printf":
        rest = words[1:]
        if not rest or rest[0].dynamic or rest[0].brace or rest[0].glob or rest[0].value.startswith("-"):
            return "printf needs a literal format"
        if not _PRINTS_TEXT.fullmatch(rest[0].value) and not all(w.literal and _NUMBER.fullmatch(w.literal) for w in rest[1:]):
            return "printf may evaluate what it prints as a number"  # zsh does, subscripts with commands included
    for word in words[1:]:
        if word.glob and not word.dynamic and (why := paths.not_readable(word)):
            return why
        if word.glob and word.dynamic and any("/" in p.text for p in word.parts if p.kind in "uq"):
            return f"{word.text[:60]!r} is only known when it runs"
    return ""


def _test(words: list[Word], paths: ShellPaths) -> str:
    """``test`` and ``[``: one operator at its place; ``-v`` evaluates subscripts."""
    inner = words[1:]
    if words[0].text == "[":
        if not inner or inner[-1].text != "]":
            return "a test of unusual form"
        inner = inner[:-1]
    while inner and inner[0].text == "!":
        inner = inner[1:]
    if any(w.glob or w.brace for w in inner):
        return "it has a glob outside quotes"
    if len(inner) == 2 and inner[0].text == "-t":
        return "" if (inner[1].literal or "").isdigit() else "zsh evaluates the operand of -t"
    if len(inner) == 2 and inner[0].plain and inner[0].text in _UNARY:
        return _single(inner[1])
    if len(inner) == 3 and inner[1].plain and inner[1].text in _BINARY:
        return _single(inner[0]) or _single(inner[2])
    if len(inner) <= 1 and all(w.literal is not None for w in inner):
        return ""
    return "a test of unusual form"


def _single(word: Word) -> str:
    """One word, whatever it becomes: it must be quoted where it is dynamic, except for numbers of the shell's own."""
    loose = any(p.kind in "vd" and not p.quoted and p.raw not in ("$?", "$#", "$$", "$!") for p in word.parts)
    return f"{word.text[:60]!r} stands outside quotes" if loose else ""


def _sed(words: list[Word], paths: ShellPaths) -> str:
    fault, files = sed_script(words)
    return fault or next((why for w in files if (why := paths.not_readable(w))), "")


def sed_script(words: list[Word]) -> tuple[str, list[Word]]:
    """Why the script may do more than print, and the files it is for."""
    taken = take_apart(words[1:], "n E r e: s u z l: --expression= --quiet --silent --regexp-extended --separate --null-data "
                                  "--posix --line-length= --unbuffered")
    if isinstance(taken, str):
        return taken, []
    operands = list(taken.operands)
    if any(w.glob for w in operands):
        return "it has a glob outside quotes", []
    given = taken.flags & {"e", "--expression"}
    scripts = list(taken.values) if given else operands[:1]
    if not scripts or not all(sed_only_prints(w.value) for w in scripts if not (given and w.value.isdigit())):
        return "its script is not known to only print", []
    return "", operands if given else operands[1:]


def _awk(words: list[Word], paths: ShellPaths) -> str:
    taken = take_apart(words[1:], "F:")
    if isinstance(taken, str):
        return taken
    operands = list(taken.operands)
    if not operands or operands[0].literal is None or not awk_only_prints(operands[0].value):
        return "its program is not known to only print"
    if any("=" in w.value for w in operands[1:]):
        return "an argument may be an assignment"
    return next((why for w in operands[1:] if (why := paths.not_readable(w))), "")


def _find(words: list[Word], paths: ShellPaths) -> str:
    rest = words[1:]
    odd = next((w for w in rest if w.dynamic or w.brace or w.glob), None)
    if odd is not None:
        return f"{odd.text[:60]!r} is a glob outside quotes or only known when it runs"
    while rest and rest[0].value in FIND_OPTIONS:
        rest = rest[1:]
    roots = []
    while rest and not rest[0].value.startswith("-") and rest[0].value not in ("(", "!", ")", ","):
        roots.append(rest[0])
        rest = rest[1:]
    i = 0
    while i < len(rest):
        word = rest[i]
        kind = _FIND.get(word.value)
        if kind is None or (word.value.startswith("-") and "\\" in word.text):
            return f"the test or action {word.text[:60]!r} is not on its list"
        if kind:
            if i + 1 >= len(rest):
                return f"{word.text!r} lacks its value"
            if kind == "file" and (why := paths.not_readable(rest[i + 1])):
                return why
            i += 1
        i += 1
    if not roots:
        return paths.not_readable_here()
    return next((why for w in roots if (why := paths.not_readable(w))), "")


def _cd(words: list[Word], paths: ShellPaths) -> str:
    operands = words[1:]
    if operands and operands[0].text == "--":
        operands = operands[1:]
    if len(operands) != 1 or operands[0].value.startswith("-") or operands[0].glob:
        return "where it leads is not known"
    if paths.git_beside_cd:
        return "it changes the directory beside a git command"
    if paths.redirect_beside_cd:
        return "it changes the directory beside an output redirection"
    return paths.not_readable(operands[0])


def _diff(words: list[Word], paths: ShellPaths) -> str:
    """Of a folder it opens what lies in it, through links too."""
    taken = take_apart(words[1:], TABLE["diff"].flags)
    if isinstance(taken, str):
        return taken
    return _operands(taken, TABLE["diff"], paths) or paths.not_openly_readable(taken.operands)


def _docker(words: list[Word], paths: ShellPaths) -> str:
    spec = DOCKER.get(words[1].text) if len(words) > 1 and words[1].plain else None
    return _by_table(words[1:], spec, paths) if spec else "this form is not known to be read-only"


_JQ_REACHES_OUT = re.compile(r"\b(?:import|include|env|ENV|input_filename|get_search_list|modulemeta|debug|stderr)\b|\$__loc__")


def _jq(words: list[Word], paths: ShellPaths) -> str:
    """A program can load files and print the environment, by name only."""
    taken = take_apart(words[1:], TABLE["jq"].flags)
    if isinstance(taken, str):
        return taken
    if taken.operands and (taken.operands[0].literal is None or _JQ_REACHES_OUT.search(taken.operands[0].value)):
        return "its program is not known to only filter"
    return _operands(taken, TABLE["jq"], paths)


def _strings(words: list[Word], paths: ShellPaths) -> str:
    """``@file`` stands for the options in that file."""
    if any(w.value.startswith("@") or w.glob for w in words[1:]):
        return "an argument may stand for options in a file"
    return _by_table(words, Spec("a f n: t: e: o w s: --all --bytes= --print-file-name --radix= --encoding="), paths)


def _tput(words: list[Word], paths: ShellPaths) -> str:
    if any(w.value in ("init", "reset") or w.value.startswith("-") for w in words[1:]):
        return "this form is not known to be read-only"
    return _by_table(words, TABLE["tput"], paths)


def _git(words: list[Word], paths: ShellPaths) -> str:
    rest = words[1:]
    while rest and rest[0].value in ("--no-pager", "-P", "-C"):
        if rest[0].value == "-C":
            if len(rest) < 2 or rest[1].literal is None or not paths.is_here(rest[1]):
                return "-C leads to another directory"
            rest = rest[1:]
        rest = rest[1:]
    spec = GIT.get(rest[0].text) if rest and rest[0].plain else None
    if spec is None:
        return "this form of git is not known to be read-only"
    if paths.git_beside_cd:
        return "it runs git beside a change of directory"
    if why := paths.not_readable_here():
        return why
    if why := paths.foreign_repository:
        return why
    taken = take_apart(rest[1:], spec.flags)
    if isinstance(taken, str):
        return taken
    if any(w.glob for w in (*taken.operands, *taken.values)):
        return "it has a glob outside quotes"
    if any("%G" in w.value for w in taken.values):
        return "its format runs another program"
    return _git_operands(rest[0].text, spec, taken, paths)


_GIT_PRINTS = frozenset(("log", "show", "diff", "blame", "cat-file", "grep"))
"""These print contents of files."""
_GIT_LISTS = frozenset(("l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"))
_GIT_READS_CONFIG = frozenset(("l", "--list", "--get", "--get-all", "--get-regexp"))


def _git_operands(name: str, spec: Spec, taken: Options, paths: ShellPaths) -> str:
    operands = [w.value for w in taken.operands]
    wrong = "this form of git is not known to be read-only"
    if spec.operands == "list":
        return wrong if operands and not taken.flags & _GIT_LISTS else ""
    if spec.operands == "remote":
        return "" if not operands or (len(operands) == 2 and operands[0] == "get-url") else wrong
    if spec.operands == "config":
        return "" if taken.flags & _GIT_READS_CONFIG else wrong
    if spec.operands in ("stash", "worktree"):
        allowed = ("list", "show") if spec.operands == "stash" else ("list",)
        return "" if operands and operands[0] in allowed else wrong
    if spec.operands == "reflog":
        return "" if not operands or operands[0] == "show" else wrong
    if spec.operands == "any":
        return ""
    if spec.operands == "none":
        return wrong if operands else ""
    if name == "grep":
        places = list(taken.operands[0 if "e" in taken.flags else 1:])
        sure = bool(places) and "--cached" not in taken.flags and all(map(paths.all_there, places)) and taken.ended in (
            None, len(taken.operands) - len(places))  # without -- git refuses what may be a revision too
        if why := paths.not_deeply_readable(places) if sure else paths.not_deeply_readable_anywhere():
            return why
    if name == "diff" and not repository.found(paths.view, paths.cwd) and taken.operands:  # plain diff, of whole folders
        if why := paths.not_deeply_readable(taken.operands):
            return why
    # revisions and files cannot be told apart; a revision read as a path lies inside, a path outside is found
    pattern = spec.operands == "pattern" and "e" not in taken.flags
    for word in taken.operands[1:] if pattern else taken.operands:
        if why := paths.not_readable(word):
            return why
    lines = [literal_word(w.value.rpartition(":")[2]) for w in taken.values if ":" in w.value]  # -L 1,9:file
    for word in (*taken.operands, *lines) if name in _GIT_PRINTS else ():
        if paths.maybe_limited(word.value):
            return f"{word.text[:60]!r} may be a file that a rule keeps from being read"
    return ""


_SPECIAL = {"diff": _diff, "find": _find, "cd": _cd, "git": _git, "docker": _docker, "podman": _docker, "sed": _sed, "awk": _awk,
            "test": _test, "[": _test, "tput": _tput, "jq": _jq, "strings": _strings, "date": readonly_forms.date,
            "set": readonly_forms.set_options, "expr": readonly_forms.expr, "ps": readonly_forms.ps,
            "command": readonly_forms.command}
