"""The reading against a real bash: what it would run is what was judged.

Commands are put together from pieces, often nonsense. Only those that the policy lets through are run, in an empty
folder; their mark must not appear.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from kernel_permissions.paper import Paper
from kernel_permissions.readonly_table import GIT, TABLE
from kernel_permissions.shell import Parser
from kernel_permissions.syntax import Opaque, expand_braces
from kernel_permissions.view import RealView

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash here")

MARK = "touch mark"
PIECES = [
    "echo a", "echo ", "cat", " ", "  ", ";", "; ", " && ", " || ", "\n", "\\\n", "#", " #", "'", '"', "$(", ")", "`", "{ ",
    "}", "(", ")",
    "<<EOF", "<<'EOF'", "<<-EOF", "EOF", "\nEOF\n", "\n\tEOF\n", "${x#", "${x:-", "}", "! ", "time ", "coproc ",
    "if true; then ", "; fi",
    "for x in a; do ", "; done", "case a in a) ", ";; esac", ";;", "2>&1", "| ", "|& ", "& ", "[[ ", " ]]", "[ ", " ]", "((",
    "))", "x=", "$x",
    "$'", "\t", "<(", "<<<", "{fd}>f ", "f() { ", "; }", "=", "~", "*", "eval ", "command ", "\\", "while true; do break; ",
    "-", '"$(', "$((",
    " -", "else ", "then ", "function g ", "$", "<", "2", "a", "\\\\", '""', "''", "{", "{a,b}", ",", "<&", "@", "!", "%", "${",
    "in", "do ",
    "a=1 ", "LANG=C ", "[a]", "a[1]=", "=(", " A=(", "export ", "declare ", '$"', "\u00a0", "\u3000", "é", "- ", MARK, MARK,
]
ENDINGS = ["\nEOF", "\nEOF\n", ")", '"', "'", "; }", "; fi", "; done", "`"]
INSERTS = [MARK, f"\n{MARK}", f"$({MARK})", f"`{MARK}`", f";{MARK}", f"|{MARK}", f"&{MARK}\n"]


def nonsense(rng: random.Random) -> str:
    text = "".join(rng.choice(PIECES) for _ in range(rng.randint(2, 9)))
    if MARK not in text:
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(INSERTS) + text[at:]
    if rng.random() < 0.3:
        text = "echo " + text
    return text + rng.choice(ENDINGS) if rng.random() < 0.2 else text


def nested(rng: random.Random, depth: int = 0) -> str:
    """A command that parses: the mark wrapped and composed a few levels deep."""
    if depth > 3 or rng.random() < 0.25:
        return rng.choice([MARK, "echo a", "true", MARK])
    one = nested(rng, depth + 1)
    two = nested(rng, depth + 1)
    quoted = one.replace("'", "'\\''")
    return rng.choice([
        f"{one} && {two}", f"{one} || {two}", f"{one}; {two}", f"{one} | {two}", f"{one} & {two}", f"{one}\n{two}", f"({one})",
        f"{{ {one}; }}", f"echo $({one})", f"echo \"$({one})\"", f"echo <({one})", f"if {one}; then {two}; fi", f"! {one}",
        f"for i in 1; do {one}; done", f"while {one}; do break; done", f"case a in a) {one};; esac", f"f() {{ {one}; }}; f",
        f"bash -c '{quoted}'", f"sh -c '{quoted}'", f"eval '{quoted}'", f"timeout 5 bash -c '{quoted}'",
        f"env X=1 bash -c '{quoted}'",
        f"cat <<EOF\n$({one})\nEOF", f"bash <<'END'\n{one}\nEND", f"echo \"${{x:-$({one})}}\"", f"x=$({one}) true",
        f"bash <<< '{quoted}'",
        f"trap '{quoted}' EXIT", f"nice -n 1 {one}", f"command {one}", f"time {one}", f"echo x | xargs -I% {one}",
        f"[ -n \"$({one})\" ]",
        f"find . -maxdepth 0 -exec bash -c '{quoted}' \\;", f"echo `{one}`" if "`" not in one and "\\" not in one else one,
    ])


def judge(root: Path, allow: list[str], deny: list[str], command: str) -> str:
    rules = Paper(allow=[(a, "user") for a in allow], deny=[(d, "user") for d in deny], view=RealView("/root"), cwd=str(root))
    return rules.bash(command)


def ran(root: Path, command: str) -> bool:
    """Whether the mark appeared. Everything in the folder is removed again."""
    assert BASH is not None
    try:
        subprocess.run([BASH, "-c", command], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=10)
    except subprocess.TimeoutExpired:
        pass
    found = (root / "mark").exists()
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return found


@pytest.mark.parametrize("seed", range(int(os.environ.get("PERMISSIONS_FUZZ", "3"))))
@pytest.mark.parametrize("make", [nonsense, nested])
def test_nothing_that_leaves_the_mark_is_allowed(tmp_path: Path, make: object, seed: int) -> None:
    """Neither under a rule for ``echo``, nor under a bare allow with a deny rule for the mark."""
    rng = random.Random(seed)
    echo = Paper(allow=[("Bash(echo *)", "user"), ("Bash(cat *)", "user")], view=RealView("/root"), cwd=str(tmp_path))
    bare = Paper(allow=[("Bash", "user")], deny=[("Bash(touch *)", "user")], view=RealView("/root"), cwd=str(tmp_path))
    checked = 0
    for _ in range(1_500 if make is nonsense else 300):
        command = make(rng)  # type: ignore[operator]
        if MARK not in command or "allow" not in (echo.bash(command), bare.bash(command)):
            continue
        checked += 1
        assert not ran(tmp_path, command), command
    if make is nonsense:
        assert checked, "no command was let through, so nothing was checked"


def test_the_marks_do_appear_when_the_commands_run(tmp_path: Path) -> None:
    """The harness of this test works: most composed commands leave the mark, and each of them is refused."""
    rng = random.Random(7)
    left = 0
    for _ in range(60):
        command = nested(rng)
        if ran(tmp_path, command):
            left += 1
            assert judge(tmp_path, ["Bash"], ["Bash(touch *)"], command) in ("deny", "ask"), command
            assert judge(tmp_path, ["Bash(echo *)"], [], command) != "allow", command
    assert left > 20


WORD_PIECES = [
    "a", "b", "é", "'x y'", "'\"'", '"p q"', '"\\""', '"\\a"', "\\'", "\\ ", "\\\\", "\\$", "$'\\n\\x41\\101\\u00e9'", "$'\\''",
    "''", '""', "#", "=", "{a,b}", "{1..3}", "{", "}", ",", "-", '"$"', "%", '"a\'b"', "'a\\b'", '"\\\\"', "@", "+",
    "{x,{y,z}}", "漢",
]


@pytest.mark.parametrize("seed", range(3))
def test_words_have_the_values_that_bash_gives_them(seed: int) -> None:
    """Quotes, escapes and braces resolve to the same arguments; what the reader does not resolve is not compared."""
    assert BASH is not None
    rng, parser, compared = random.Random(seed), Parser(), 0
    for _ in range(150):
        written = ["".join(rng.choice(WORD_PIECES) for _ in range(rng.randint(1, 5))) for _ in range(rng.randint(1, 3))]
        command = f"printf '%s\\0' {' '.join(written)}"
        try:
            words = parser.parse(command).simples[0].words[2:]
        except Opaque:
            continue
        spread = [expand_braces(w) for w in words]
        if any(w.dynamic or w.glob for w in words) or None in spread:
            continue
        mine = [w.value for some in spread for w in some or []]
        done = subprocess.run([BASH, "-c", command], capture_output=True, timeout=10,
                              env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]})
        assert (mine or [""]) == done.stdout.decode().split("\0")[:-1], command
        compared += 1
    assert compared > 50


VALUES = ["1", "a", "x", "a.txt", "src", "HEAD", "-", "0", "out", "s/a/b/", "name", "%H", "*.py", "b.txt", "v1", "side", "../q",
          "new"]
WAITS = frozenset(("man", "help", "lsof", "ss", "pgrep", "tput", "tail"))


def flagged(rng: random.Random) -> str:
    """A command of the read-only set with random flags of its table, and values that often make no sense."""
    if rng.random() < 0.5:
        name = rng.choice(sorted(GIT))
        spec, words = GIT[name], ["git", name]
    else:
        name = rng.choice(sorted(TABLE.keys() - WAITS))
        spec, words = TABLE[name], [name]
    flags = [f for f in spec.flags.split() if f != "-#"] or ["x"]
    for token in rng.choices(flags, k=rng.randint(0, 3)):
        flag, kind = (token[:-1], token[-1]) if token[-1] in ":@?=" and len(token) > 1 else (token, "")
        value = rng.choice(VALUES) if kind in ("=", ":", "@") or (kind == "?" and rng.random() < 0.5) else ""
        if flag.startswith("--"):
            words.append(f"{flag}={value}" if value else flag)
        else:
            words.append(f"-{flag}{rng.choice(['', ' ']) if kind != '?' else ''}{value}")
    return " ".join([*words, *rng.choices(VALUES, k=rng.randint(0, 3))])


def contents(root: Path) -> dict[str, bytes]:
    """Every file of a folder; git's index is left out, which git refreshes while it reads."""
    return {str(p): p.read_bytes() if p.is_file() else b"" for p in root.rglob("*") if not str(p).endswith(".git/index")}


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_what_the_read_only_set_allows_changes_no_file(tmp_path: Path) -> None:
    assert BASH is not None
    setup = ("git init -q .; git config user.email a@b.test; git config user.name n; echo a > a.txt; echo b > b.txt; mkdir src; "
             "echo x > src/m.py; git add .; git commit -qm one; echo more >> a.txt; git tag v1; git branch side")
    subprocess.run([BASH, "-ec", setup], cwd=tmp_path, check=True, timeout=60)
    paper, rng, allowed = Paper(view=RealView("/root"), cwd=str(tmp_path)), random.Random(5), 0
    before = contents(tmp_path)
    for _ in range(300):
        command = flagged(rng)
        if paper.bash(command) != "allow":
            continue
        allowed += 1
        subprocess.run([BASH, "-c", command], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        assert contents(tmp_path) == before, command
    assert allowed > 100
