"""Commands that run other commands: what to look through, for which kind of rule (permissions contract, 5.4).

Safe wrappers are seen through by every rule, and only with flags that are listed. Exec wrappers are seen through by
deny and ask rules; where their flags are not understood, every later word is taken as a possible command, so that a
denied command is found all the same.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from .evaluates import is_descriptor
from .syntax import Word

_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[smhd]?")


class Flags(NamedTuple):
    """Options of a wrapper. ``takes``: letters with a value; ``bare``: letters without; ``long``: names, with ``=`` for a
    value. ``operands``: words between the options and the command."""

    bare: str = ""
    takes: str = ""
    long: tuple[str, ...] = ()
    operands: int = 0
    number: bool = False  # -5 is a flag
    assigns: bool = False  # NAME=value words may stand before the command


SAFE = {
    "timeout": Flags("v", "ks", ("kill-after=", "signal=", "foreground", "preserve-status", "verbose"), operands=1),
    "time": Flags("p"),
    "nice": Flags("", "n", ("adjustment=",), number=True),
    "nohup": Flags(),
    "stdbuf": Flags("", "ioe", ("input=", "output=", "error=")),
    "command": Flags("p"),
    "builtin": Flags(),
    "noglob": Flags(),
}
"""The fixed list of safe wrappers."""

EXEC = {
    "env": Flags("i0v", "uC", ("ignore-environment", "null", "debug", "unset=", "chdir="), assigns=True),
    "sudo": Flags("AbEHiKknPSsB", "CDghpRrtTuU", (
        "askpass", "background", "preserve-env", "set-home", "login", "non-interactive", "preserve-groups", "stdin", "shell",
        "close-from=", "chdir=", "group=", "host=", "prompt=", "chroot=", "role=", "type=", "user=", "other-user="),
        assigns=True),
    "doas": Flags("Lns", "aCu"),
    "setsid": Flags("cfw", "", ("ctty", "fork", "wait")),
    "ionice": Flags("t", "cnpPu", ("class=", "classdata=", "ignore")),
    "chroot": Flags("", "", ("userspec=", "groups=", "skip-chdir"), operands=1),
    "flock": Flags("sxnuoF", "wE", ("shared", "exclusive", "nonblock", "nb", "unlock", "close", "timeout=", "wait="), operands=1),
    "unshare": Flags("muinpUCTfr", "", ("mount", "uts", "ipc", "net", "pid", "user", "fork", "map-root-user")),
    "xargs": Flags("0prtxo", "adEILnPs", (
        "null", "interactive", "no-run-if-empty", "verbose", "exit", "open-tty", "arg-file=", "delimiter=", "max-lines=",
        "max-args=", "max-procs=", "max-chars=", "replace=")),
    "chrt": Flags("bfiordamv", "TPD", operands=1),
    "taskset": Flags("acp", "", ("all-tasks", "cpu-list", "pid"), operands=1),
    "exec": Flags("cl", "a"),
    "busybox": Flags(),
    "toybox": Flags(),
    "linux32": Flags(), "linux64": Flags(),
    "fakeroot": Flags(),
    "unbuffer": Flags("p"),
    "rlwrap": Flags(),
}
"""Exec wrappers whose options are known."""

LOOSE = frozenset((
    "watch parallel nsenter strace ltrace systemd-run runuser su script pkexec firejail bwrap setarch prlimit cgexec "
    "dbus-run-session xvfb-run faketime numactl gdb valgrind perf entr caffeinate gtimeout gnice chpst softlimit "
    "start-stop-daemon daemonize torsocks proxychains proxychains4 ccache distcc catchsegv sg runcon setpriv capsh "
    "cpulimit repeat nocorrect - emulate").split())
"""Exec wrappers with options of their own: every later word is a possible command."""

EXACT_ONLY = frozenset(("watch", "setsid", "ionice", "flock"))
"""Never approved by a rule with a wildcard."""

FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
FIND_WRITES = FIND_RUNS | {"-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "rbash", "fish"))
OPENS_SHELL = frozenset("chroot unshare nsenter script su newgrp runuser sg fakeroot linux32 linux64".split())
"""Without a command these run a shell, which runs what it reads."""
CALLBACKS = frozenset(("mapfile", "readarray", "compgen", "complete"))
"""Builtins that run the value of ``-C``."""
STRING_RUNNERS = frozenset(("watch", "su", "script", "runuser", "flock", "sg", "parallel", "systemd-run"))
"""These hand a string to a shell: their literal arguments are parsed as commands."""
_SHELL_TAKES = frozenset(("--rcfile", "--init-file"))


def strip_options(words: list[Word], flags: Flags) -> list[Word] | None:
    """The words behind a wrapper's name, options and operands; ``None`` where they are not understood."""
    i, operands = 1, flags.operands
    while i < len(words):
        text = words[i].literal
        if text is None:
            return None
        if text == "--":
            i += 1
            break
        if text == "-" and flags.assigns:  # env - means env -i
            i += 1
            continue
        if not text.startswith("-") or text == "-":
            break
        taken = _option(text, flags)
        if taken is None or any(w.literal is None for w in words[i:i + taken]):
            return None
        i += taken
    if i > len(words) or any(w.literal is None for w in words[i:i + operands]):
        return None
    return words[i + operands:]


def _option(text: str, flags: Flags) -> int | None:
    """How many words the option takes up."""
    if text.startswith("--"):
        name, equals, _ = text[2:].partition("=")
        if f"{name}=" in flags.long:
            return 1 if equals else 2
        return 1 if name in flags.long and (not equals or name == "preserve-env") else None
    if flags.number and text[1:].isdigit():
        return 1
    for n, letter in enumerate(text[1:], 2):
        if letter in flags.takes:
            return 1 if n < len(text) else 2
        if letter not in flags.bare:
            return None
    return 1


def strip_safe(words: list[Word]) -> list[Word] | None:
    """The command inside a safe wrapper, or inside ``xargs`` without flags, for allow rules; ``None`` where there is none."""
    if not words or not words[0].plain:
        return None
    name = words[0].text
    if name == "xargs":
        return words[1:] if len(words) > 1 and words[1].plain and not words[1].text.startswith("-") else None
    flags = SAFE.get(name)
    if flags is None:
        return None
    if name == "timeout":
        rest = strip_options(words, flags._replace(operands=0))
        return rest[1:] or None if rest and _DURATION.fullmatch(rest[0].literal or "") else None
    return strip_options(words, flags) or None


def shell_script(words: list[Word]) -> tuple[str, Word | None]:
    """What a shell command runs: ``text``, with the argument of ``-c``; ``file``; ``stdin``; or ``unknown``."""
    i, dash_c, dash_s = 1, False, False
    while i < len(words):
        text = words[i].literal
        if text is None:
            return ("text", words[i]) if dash_c else ("unknown", None)
        if text in ("--", "-"):
            i += 1
            break
        if text[:1] not in "-+" or len(text) < 2:
            break
        if not text.startswith("--"):
            dash_c = dash_c or (text[0] == "-" and "c" in text)
            dash_s = dash_s or (text[0] == "-" and "s" in text)
            i += 1 if "o" in text.lower() else 0
        elif text in _SHELL_TAKES:
            i += 1
        i += 1
    if i >= len(words):
        return ("unknown", None) if dash_c else ("stdin", None)
    if dash_c:
        return "text", words[i]
    return ("stdin", None) if dash_s or is_descriptor(words[i]) else ("file", None)


def replaced(words: list[Word], rest: list[Word] | None) -> str:
    """The mark that ``xargs`` or ``parallel`` replaces by text that it reads; ``""`` where it adds the text at the end.

    :param rest: the command, where the options are understood.
    """
    if words[0].value == "parallel":
        return "{"
    if words[0].value != "xargs":
        return ""
    options = words[1:] if rest is None else words[1:len(words) - len(rest)]
    for word, later in pairwise([*options, words[0]]):
        text = word.value
        if match := re.match(r"-[0prtxo]*I(.*)", text, re.DOTALL):
            return match[1] or later.value
        if match := re.match(r"(?:-[0prtxo]*i|--replace=?)(.*)", text, re.DOTALL):
            return match[1] or "{}"
    return ""


def opens_shell(words: list[Word], rest: list[Word] | None) -> bool:
    """Whether a wrapper runs a shell on what it reads. ``rest``: the command it was given, ``None``: not known."""
    name = words[0].value
    if name in ("sudo", "doas"):
        return not rest and any(re.match(r"-[A-Za-z]*[si]|--shell|--login", w.value) for w in words[1:])
    if name not in OPENS_SHELL:
        return False
    return not rest if rest is not None else not any(re.match(r"-[A-Za-z]*c|--command|--", w.value) for w in words[1:])


def find_commands(words: list[Word]) -> list[list[Word]]:
    """The commands behind ``-exec`` and its kin."""
    found: list[list[Word]] = []
    for i, word in enumerate(words):
        if word.value in FIND_RUNS:
            inner: list[Word] = []
            for later in words[i + 1:]:
                if later.value in (";", "+"):
                    break
                inner.append(later)
            found.append(inner)
    return found


_GIT_TAKES = frozenset(("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--exec-path",
                        "--list-cmds", "--attr-source"))


def git_plain(words: list[Word]) -> list[Word] | None:
    """A git command without the options before its subcommand; ``None`` where it has none."""
    i = 1
    while i < len(words) and words[i].value.startswith("-"):
        i += 2 if words[i].value in _GIT_TAKES else 1
    return None if i == 1 else [words[0], *words[i:]]


def git_alias(words: list[Word]) -> bool:
    """Whether ``-c`` or the environment defines what a git subcommand means."""
    glued = any(w.value.lower().startswith(("-calias.", "--config-env=alias.")) for w in words)
    return glued or any(
        w.value in ("-c", "--config-env") and later.value.lower().startswith("alias.") for w, later in pairwise(words))
