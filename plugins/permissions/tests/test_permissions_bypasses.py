"""Commands that once were allowed although bash ran, wrote or told something that rules deny. The smallest form of each.

They were found by the corpus of hostile commands (``benchmarks/security``), which bash itself judges.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_permissions.paper import Paper
from kernel_permissions.view import RealView

GUARDS = ["Bash(evil *)", "Bash(git push *)", "Bash(rm *)", "Read(.env)", "Edit(keep/**)"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("keep", ".git", "src"):
        (tmp_path / name).mkdir()
    (tmp_path / ".env").write_text("K=1\n")
    (tmp_path / "a.txt").write_text("x\n")
    return tmp_path


def paper(root: Path, allow: list[str]) -> Paper:
    return Paper(allow=allow, deny=GUARDS, view=RealView(str(root / "home")), cwd=str(root))


@pytest.mark.parametrize("command", [
    # redirections of scripts inside a command
    "bash -c 'echo x > keep/a'", "sh -c 'cat < .env'", "env bash -c 'echo x >> keep/a'", "eval 'echo x > .git/config'",
    "trap 'echo x > keep/a' EXIT", "bash <<'E'\necho x > keep/a\nE", "bash <<< 'echo x > .git/config'",
    "find . -exec sh -c ': > keep/a' \\;", "echo x | xargs -I% sh -c 'echo % > keep/a'", "flock a.txt -c 'echo x > keep/a'",
    "bash -c 'cd keep; echo x > a'",
    # scripts that are fed through a descriptor, or with -s
    ". /dev/stdin <<< evil", "source /dev/fd/0 <<< evil", "bash /dev/stdin <<< evil", "sh /proc/self/fd/0 <<< evil",
    "echo evil | . /dev/stdin", "echo evil | bash /dev/stdin", "bash /dev/fd/3 3<<< evil <<< true",
    "cat <<'E' | sh -s x\nevil\nE",
    "bash <<< true < <(echo evil)",
    # names and numbers that the shell evaluates
    "x='a[$(evil)]'; test -v \"$x\"", "x='a[$(evil)]'; [ -v $x ]", "x='a[$(evil)]'; unset \"$x\"",
    "x='a[$(evil)]'; read \"$x\" <<< y",
    "x='a[$(evil)]'; printf -v \"$x\" y", "x='a[$(evil)]'; declare \"$x=1\"", "x='a[$(evil)]'; let x",
    "x='a[$(evil)]'; let 'y = x + 1'",
    "declare -n r='a[$(evil)]'; echo $r", "typeset -n r; r='a[$(evil)]'; echo $r", "declare -i y='a[$(evil)]'",
    "x='a[$(evil)]'; declare -i y=x", "f() { local -n r=$1; echo $r; }; f 'a[$(evil)]'",
    # prompts and what shells read when they start
    "PS4='$(evil)'; set -x; :", "set -x; PS4='`evil`'; :", "x='$(evil)'; PS4=$x; set -x; :",
    "read -r PS4 <<< '$(evil)'; set -x; :",
    "printf -v PS4 %s '$(evil)'; set -x; :", "for PS4 in '$(evil)'; do set -x; :; done", "env PS4='$(evil)' bash -xc :",
    "BASH_ENV='$(evil)' bash -c :", "PROMPT_COMMAND=evil bash -ic :", "env 'BASH_FUNC_ls%%=() { evil; }' bash -c ls",
    # names that get another meaning
    "hash -p ../bin/evil foo; foo", "shopt -s expand_aliases\nalias g=git\ng push origin", "alias ls=evil",
    # words that a wrapper reads
    "echo push | xargs -I% git % origin", "xargs -i git {} origin <<< push", "xargs --replace=Z git Z <<< push",
    "xargs env git <<< push",
    "echo evil | xargs timeout 5", "echo evil | xargs env -i A=1", "echo evil | xargs -n1 nice -n 1",
    "echo evil | xargs -I% env %",
    "echo '; evil' | xargs -I% sh -c 'echo %'", "find . -name '*;*' -exec sh -c 'ls {}' \\;",
    "echo '-exec evil ;' | xargs find . -prune",
    "x=-exec; find . -maxdepth 0 $x evil \\;", "find . \"$x\" evil \\;", "flock a.txt -c evil", "su -c evil",
    # places
    "cat /proc/self/cwd/.env", "cat < /proc/self/cwd/.env", "cat /proc/$$/cwd/.env", "cat /proc/thread-self/cwd/src/../.env",
    "for i in 1; do cd src && cat ../.env; done", "while true; do cd keep; touch new; break; done", "ln -s keep k; touch k/new",
    "ln -s .git k && echo x > k/config", "ln -s keep k; cd k; touch new", "sed -i'keep/*' s/a/b/ a.txt",
])
def test_what_rules_deny_is_not_allowed_by_a_bare_rule(root: Path, command: str) -> None:
    assert paper(root, ["Bash"]).bash(command) in ("ask", "deny")


@pytest.mark.parametrize("command", [
    "bash -c 'echo x > out'", "bash <<< 'echo hi'", ". ./script.sh", "[ -n \"$x\" ]", "test \"$x\" = y",
    "printf '%s' \"$x\"", "read -r a b", "read -p \"$x\" y", "unset X", "export A=$B", "let i=1", "PS1='> ' ls",
    "ENV=prod npm run x",
    "ls | xargs -I% cp % b", "xargs -I% sh -c 'echo ok' < a.txt", "find \"$d\" -name x", "xargs < names", "flock a.txt ls",
    "cat /proc/cpuinfo", "for i in 1; do cd src; done", "ln -s a b", "ln -s a b && ls", "sed -i.bak s/a/b/ a.txt",
    "env A=1 make",
    "mkdir -p x/{a,b}", "git $x", "trap 'echo x' EXIT",
])
def test_what_no_rule_denies_stays_allowed(root: Path, command: str) -> None:
    """The guards above cost little: under a bare rule these ask for nothing, except ``git $x``, which may be a push."""
    assert paper(root, ["Bash"]).bash(command) == ("ask" if command == "git $x" else "allow")


@pytest.mark.parametrize(("command", "mode", "expected"), [
    ("mkdir -p src/{a,b}", "acceptEdits", "allow"), ("mkdir {src/a,../b}", "acceptEdits", "ask"),
    ("touch {keep,src}/x", "acceptEdits", "deny"),
    ("cp {a.txt,.git/x}", "acceptEdits", "ask"), ("rm {a.txt,-r} src", "acceptEdits", "deny"),
    ("diff <(ls src) <(cat a.txt)", "default", "allow"),
    ("diff <(evil) a.txt", "default", "deny"), ("cat <(make)", "default", "ask"), ("test $? -eq 0", "default", "allow"),
    ("[ $x -eq 0 ]", "default", "ask"),
])
def test_braces_and_process_substitutions_are_what_they_become(root: Path, command: str, mode: str, expected: str) -> None:
    assert paper(root, []).bash(command, mode=mode) == expected
