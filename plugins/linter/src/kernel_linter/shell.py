"""Command lines as texts: first words, quoting, plugin paths in them, what a command does. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator

ROOT_VARIABLES = ("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_PROJECT_DIR")
_PLUGIN_PATH = re.compile(r"\$\{CLAUDE_PLUGIN_ROOT\}[\"']?((?:/[^\s\"';|&<>()`$\\]+)+)")
_ANY_ROOT = re.compile(rf"\$\{{(?:{'|'.join(ROOT_VARIABLES)})\}}")
INTERPRETERS = frozenset("""
    bash sh zsh dash fish python python3 python2 node nodejs bun deno ruby perl php pwsh powershell uv uvx npx bunx tsx
    ts-node env sudo exec source . nohup time timeout command nice
""".split())
_PIPED = re.compile(r"\b(?:curl|wget|fetch|iwr|Invoke-WebRequest)\b[^;&\n]*\|\s*(?:sudo\s+)?(?:env\s+)?(?:ba|z|da|fi|k)?sh\b"
                    r"|\b(?:curl|wget)\b[^;&\n]*\|\s*(?:sudo\s+)?(?:python3?|node|perl|ruby)\b"
                    r"|\b(?:ba|z|da)?sh\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:curl|wget)\b|\biwr\b[^;\n]*\|\s*iex\b"
                    r"|\bsource\s+<\(\s*curl\b")
INSTALLS = re.compile(r"\b(?:npm|pnpm|yarn|bun)\s+(?:install|i|ci|add)\b|\bpip3?\s+install\b|\buv\s+(?:pip\s+install|sync"
                      r"|add)\b|\bgem\s+install\b"
                      r"|\bcargo\s+install\b|\bgo\s+install\b|\bapt(?:-get)?\s+install\b|\bbrew\s+install\b"
                      r"|\bpoetry\s+install\b|\byarn\s*(?:$|&&|;)")
LOCKED = re.compile(r"\bnpm\s+ci\b|--frozen-lockfile|--immutable|--locked|--require-hashes|--frozen\b")
NETWORK = re.compile(r"\b(?:curl|wget|npx|bunx|uvx|docker|git\s+(?:push|pull|fetch|clone)|ssh|scp|rsync|gh)\b")
SLOW = re.compile(r"(?:^|[;&|]\s*|\s)(?:npx|bunx|uvx|docker|cargo|go\s+run|tsc|mvn|gradle|dotnet\s+(?:run|build)|make|gcc"
                  r"|g\+\+|javac)\b")
READ_ONLY = frozenset("""
    ls cat head tail wc pwd echo date whoami id uname hostname which type file stat du df find grep rg egrep fgrep sort uniq cut
    tr printf basename dirname realpath readlink test true false env printenv tree nl tac column jq diff cmp comm ps
""".split())
_READ_ONLY_GIT = re.compile(r"^git(?:\s+-C\s+\S+)?\s+(?:status|log|diff|show|branch|rev-parse|remote|config\s+--get|ls-files"
                            r"|describe|blame|tag|stash\s+list|"
                            r"symbolic-ref|merge-base|shortlog|cat-file|for-each-ref|worktree\s+list|rev-list|ls-tree|reflog)\b")


def plugin_paths(text: str) -> Iterator[tuple[str, int]]:
    """Paths below ``${CLAUDE_PLUGIN_ROOT}`` in a text, without the leading slash, with their offsets."""
    for match in _PLUGIN_PATH.finditer(text):
        path = match[1].rstrip(".,:)]}\"'").strip("/")
        if path and not any(c in path for c in "*?{}[]<>"):
            yield path, match.start()


def leaves_root(text: str) -> str:
    """The first ``${CLAUDE_PLUGIN_ROOT}/../`` path that leaves the plugin."""
    for match in re.finditer(r"\$\{CLAUDE_PLUGIN_ROOT\}[\"']?(/[^\s\"';|&<>`]*)", text):
        depth = 0
        for part in match[1].strip("/").split("/"):
            depth += -1 if part == ".." else 0 if part in ("", ".") else 1
            if depth < 0:
                return match[0]
    return ""


def _bare(text: str) -> Iterator[tuple[int, str]]:
    """The characters of a shell line that stand outside quotes and are not escaped, with their places."""
    quote, at = "", 0
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            at += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        else:
            yield at, char
        at += 1


def quoted_roots(text: str) -> tuple[str, str] | None:
    """The first path variable outside quotes in a shell line, and the line with the words of all of them quoted."""
    found = [match for at, char in _bare(text) if char == "$" and (match := _ANY_ROOT.match(text, at))]
    for match in reversed(found):
        end = match.end()
        while end < len(text) and (text[end].isalnum() or text[end] in "/._-+@%"):
            end += 1
        text = f'{text[:match.start()]}"{text[match.start():end]}"{text[end:]}'
    return (found[0][0], text) if found else None


def words(text: str) -> list[str]:
    """The words of a shell line, quotes removed; a line that cannot be split is cut at spaces."""
    import shlex

    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def parts(text: str) -> list[str]:
    """A line cut at the operators that stand outside quotes; parentheses of groups are dropped."""
    out, start = [], 0
    for at, char in _bare(text):
        if char in ";|\n()" or (char == "&" and text[at - 1:at] not in (">", "<") and text[at + 1:at + 2] != ">"):
            out.append(text[start:at])
            start = at + 1
    return [p for p in (w.strip() for w in [*out, text[start:]]) if p]


_KEYWORDS = frozenset(("if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "time", "xargs", "command"))


def commands(text: str) -> Iterator[list[str]]:
    """The simple commands of a line, each as words, without assignments, keywords and redirections."""
    for part in parts(text):
        found = [w for w in words(part) if not re.match(r"^\d*[<>]", w) and w not in ("/dev/null", "fi", "done")]
        while found and (found[0] in _KEYWORDS or re.match(r"^[A-Za-z_]\w*=", found[0]) or (found[0][:1] == "-" and found[1:])):
            found = found[1:]
        if found:
            yield found


def read_only(text: str) -> bool:
    """Whether every part of a line only reads, so that it needs no grant."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", text)
    if re.search(r"(?<![\d&])>(?!\s*/dev/null|&)", bare) or "$(" in re.sub(r"'[^']*'", "", text) or "`" in bare:
        return False
    for found in commands(text):
        line = " ".join(found)
        if _READ_ONLY_GIT.match(line):
            continue
        if found[0] not in READ_ONLY or (found[0] == "find" and re.search(r"-(?:exec|delete|ok)", line)):
            return False
    return True


def piped_to_shell(text: str) -> bool:
    return bool(_PIPED.search(text))


def relative_script(found: list[str]) -> str:
    """The script of a command when its path is relative to the working directory."""
    for index, word in enumerate(found):
        if index and found[0] not in INTERPRETERS:
            return ""
        if re.match(r"^\.{1,2}/[\w.-]", word):
            return word
        if index and re.match(r"^[\w.-]+(?:/[\w.-]+)*\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|ps1)$", word):
            return word
        if index and not word.startswith("-") and word not in INTERPRETERS and word not in ("run", "exec", "-"):
            return ""
    return ""


def local_host(host: str) -> bool:
    return host in ("localhost", "::1", "[::1]", "0.0.0.0") or host.startswith("127.") or host.endswith(  # noqa: S104
        (".localhost", ".local"))
