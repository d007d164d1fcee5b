"""What can be wrong with one rule by itself. Checks yield (severity, slug, message)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..facts import Facts
from ..filecmds import MOVES, WRITES
from ..forms import Sub
from ..modes import broad_command
from ..rules import KNOWN_TOOLS, NEVER_CONSULTED, PATH_RULES, Rule
from ..shell import Parser
from ..syntax import Opaque
from ..wrappers import EXACT_ONLY, EXEC, LOOSE, SHELLS

if TYPE_CHECKING:
    from .lint import Entry, Severity

Remark = tuple["Severity", str, str]
FILLER = "zzfiller"
"""Stands for what ``*`` matches when a pattern is tried out."""

_REGEX = re.compile(r"\.\*|\\[dws.]|\(\?|\.\+|\[\^|^\^|[^\\]\$$")
_BRACES = re.compile(r"\{[^{}]*,[^{}]*\}")
_ROOTS = frozenset("bin boot dev etc home lib lib64 media mnt opt private proc root run sbin srv sys tmp usr var Users".split())
_HAZARDS = {
    "find": "-exec and -delete are asked for all the same, everything else is allowed",
    "awk gawk": "it runs programs and writes files",
    "sed": "-i changes files everywhere, not only in the working directories",
    "export": "it sets PATH and other variables that decide what later commands run",
    "tar": "its options run programs (--to-command, --checkpoint-action)",
    "git": "that covers push, reset --hard, clean, and -c, which runs programs",
    "docker podman": "run mounts and changes any file",
    "kubectl": "that covers delete and exec",
    "curl": "it sends and fetches anything, and -o writes files",
    "wget": "it sends and fetches anything, and -O writes files",
    "ssh": "it runs anything elsewhere, and ProxyCommand here",
    "scp": "it sends and fetches any file",
    "rsync": "it sends and fetches any file, and -e runs programs",
    "npm pnpm yarn": "that covers publish and running any package",
    "pip pip3": "installing a package runs its code",
    "gh": "that covers repo delete, api and secrets",
    "aws gcloud az": "that covers every service",
    "terraform": "that covers apply and destroy",
    "tee": "it writes any file",
    "dd": "it writes any file and device",
    "vim less man": "it runs programs",
}
HAZARDS = {name: why for names, why in _HAZARDS.items() for name in names.split()}
RUNNERS = frozenset("npm pnpm yarn bun uv poetry pdm hatch rye cargo go make just".split())
_HARMLESS_EXACT = frozenset("ls pwd date whoami hostname uptime id env make".split())


def written(item: Entry, known: set[str]) -> Iterator[Remark]:
    """Faults that the grammar shows."""
    rule = item.rule
    if rule is None:
        yield "error", "unreadable", f"it is skipped: {item.fault}"
        return
    if item.fault:
        slug = "path-rule-not-consulted" if rule.tool in NEVER_CONSULTED else "no-effect"
        yield ("warning" if item.counts else "error"), slug, item.fault
    tool = rule.tool
    if "*" not in tool and not tool.startswith("mcp__") and tool not in KNOWN_TOOLS and tool not in known:
        from difflib import get_close_matches

        near = [k for k in (KNOWN_TOOLS | known) if k.casefold() == tool.casefold()] or \
            get_close_matches(tool, sorted(KNOWN_TOOLS | known), 1, 0.6)
        yield "error", "unknown-tool", f"there is no tool {tool!r}{f'; did you mean {near[0]}?' if near else ''}"


def meaning(rule: Rule, facts: Facts) -> Iterator[Remark]:
    """What a rule that is in order does, where that may surprise."""
    if rule.bare:
        yield from _bare(rule)
    elif rule.tool == "Bash" and rule.parameter_of({"properties": {"run_in_background": {}, "dangerouslyDisableSandbox": {},
                                                                    "timeout": {}, "description": {}}}, "Bash") is None:
        yield from _command(rule)
    elif rule.tool in PATH_RULES:
        yield from _path(rule, facts)
    elif rule.tool == "WebFetch" and rule.parameter and rule.parameter[0] == "domain":
        yield from _domain(rule)


def _bare(rule: Rule) -> Iterator[Remark]:
    if rule.behavior == "allow" and rule.tool in ("Bash", "PowerShell"):
        yield "warning", "too-broad", "it allows every command; deny rules do not reach into programs that a command starts"
    elif rule.behavior == "allow" and rule.tool in ("Edit", "Write", "NotebookEdit"):
        yield "info", "too-broad", "it allows changes everywhere, not only in the working directories"
    elif rule.behavior == "allow" and rule.tool == "Read":
        yield "info", "too-broad", "it allows reading everywhere, keys and passwords included"
    elif rule.behavior == "allow" and rule.tool == "WebFetch":
        yield "info", "too-broad", "it allows every host"


# -- commands ------------------------------------------------------------------------------------------------------------
def _command(rule: Rule) -> Iterator[Remark]:
    specifier = rule.specifier or ""
    why = _never_matches(rule)
    if why:
        yield ("warning" if rule.behavior == "allow" else "error"), "never-matches", why
        return
    yield from _no_glob(specifier)
    yield from _allows_more(rule) if rule.behavior == "allow" else _stops_less(rule)


def samples(rule: Rule) -> list[str]:
    """Commands that the pattern is meant for."""
    text = rule.command.text
    filled = text.replace("*", FILLER)
    return list(dict.fromkeys((filled, text[:-2].replace("*", FILLER) if text.endswith(" *") else filled)))


def subs_of(command: str, parser: Parser | None = None) -> list[Sub] | str:
    """The parts of a command, or why it is not understood."""
    parser = parser or Parser()
    try:
        return parser.analysed(command, parser.parse(command))
    except (Opaque, RecursionError) as error:
        return str(error)


def _never_matches(rule: Rule) -> str:
    """Why no part of any command can match the pattern; ``""``: one can."""
    found = subs_of(samples(rule)[0])
    if isinstance(found, str):
        return "" if rule.behavior != "allow" else f"a command like that is not understood, so it is never allowed: {found}"
    if len(found) > 1:
        return ("commands are cut at && || ; | & and line ends before rules are applied, so a rule with one of them matches "
                "no part; write a rule for each part")
    if not found:
        return "it holds no command"
    sub = found[0]
    if sub.simple.redirects:
        return "redirections are no part of what rules see; write an Edit rule for the file"
    forms = sub.texts if rule.behavior == "allow" else sub.strict
    if not any(rule.command.matches(form) for form in forms):
        return f"rules see such a command as {next(iter(forms), '')!r}"
    if rule.behavior == "allow" and rule.command.wild and sub.exact_only:
        name = sub.words[0].text if sub.words else ""
        kind = f"{name} is" if name.rsplit("/", 1)[-1] in (*EXACT_ONLY, "find") else "such commands are"
        return f"{kind} never allowed by a rule with a wildcard; write the whole command"
    return ""


def _no_glob(specifier: str) -> Iterator[Remark]:
    outside = re.sub(r"'[^']*'|\"[^\"]*\"", "", specifier)
    if _REGEX.search(outside):
        yield "warning", "literal-glob", "patterns are no regular expressions: only * is special, everything else is literal"
    elif re.search(r"(?<!\$)\?|\[[^\]]+\]", outside):
        yield "warning", "literal-glob", "? and [...] are literal in a command pattern; only * is special"
    elif _BRACES.search(outside):
        yield "warning", "literal-glob", "braces are literal in a command pattern; write a rule for each alternative"
    if re.search(r"://[^ ]*:\*$", specifier):
        yield "warning", "literal-glob", "':*' at the end stands for a blank and more words, not for a port; write the port, or *"
    if re.search(r":\*(?!$)", specifier):
        yield "warning", "literal-glob", "':*' is special at the end only; here the colon is literal"


def _allows_more(rule: Rule) -> Iterator[Remark]:
    pattern = rule.command
    text = pattern.text
    if not pattern.wild:
        return
    lead = text.split("*", 1)[0]
    words = lead.split()
    name = words[0].rsplit("/", 1)[-1] if words else ""
    if not lead.strip():
        yield "warning", "too-broad", "a pattern that begins with * allows any program"
    elif re.fullmatch(r"\S*[A-Za-z0-9]\*", text) and text.count("*") == 1:
        yield "warning", "too-broad", f"it also allows other programs whose names begin with {words[0]}; write {words[0]} *"
    elif broad_command(text) and name in RUNNERS:
        yield "info", "too-broad", f"{' '.join(words[:2])} runs whatever the project or a package says"
    elif broad_command(text):
        yield "warning", "too-broad", f"{words[0]} runs any code that stands behind it"
    elif name in SHELLS or name in EXEC or name in LOOSE:
        yield "warning", "too-broad", f"{name} runs any command that stands behind it"
    elif len(words) == 1 and name in WRITES | MOVES:
        yield "info", "too-broad", f"{name} changes files everywhere, not only in the working directories"
    elif len(words) == 1 and name in HAZARDS:
        yield "warning", "too-broad", f"{name} with any arguments: {HAZARDS[name]}"
    elif "*" in text.removesuffix("*"):
        yield "info", "wide-star", "a * in the middle stands for any number of words, options included"
    elif name in ("curl", "wget") and "://" in lead:
        yield "warning", "too-broad", "what follows may be more options and other addresses; use WebFetch(domain:...)"


def _stops_less(rule: Rule) -> Iterator[Remark]:
    pattern = rule.command
    words = pattern.text.split("*", 1)[0].split()
    if not pattern.wild and len(words) <= 2 and words and words[0] not in _HARMLESS_EXACT:
        yield "warning", "narrow-guard", f"it covers {pattern.text!r} without further words only; write {pattern.text} *"
    elif pattern.wild and any(w.startswith("-") for w in words[1:]):
        flag = next(w for w in words[1:] if w.startswith("-"))
        yield "warning", "narrow-guard", f"with {flag} in another place or spelling it passes by; cover the whole command"
    elif words and words[0] in ("curl", "wget") and "://" in pattern.text:
        yield "warning", "narrow-guard", "options in front of the address, or another spelling of it, pass by"


# -- paths and hosts -------------------------------------------------------------------------------------------------------
def _path(rule: Rule, facts: Facts) -> Iterator[Remark]:
    text = rule.specifier or ""
    names = text.split("/")
    guard: Severity = "warning" if rule.behavior == "allow" else "error"
    if ".." in names:
        yield guard, "never-matches", "paths are resolved before rules are applied, so a pattern with '..' matches none"
        return
    if text.startswith("$") or re.search(r"\$\{?[A-Z]", text):
        yield guard, "never-matches", "variables are not expanded in rules; write ~/ for the home directory"
        return
    if re.match(r"[A-Za-z]:[\\/]", text) and not facts.view.windows:
        yield guard, "never-matches", "a Windows path matches nothing here"
        return
    if _BRACES.search(text):
        yield "warning", "literal-glob", "braces are literal in a path pattern; write a rule for each alternative"
    if text.startswith("/") and not text.startswith("//") and rule.source != "managed":
        first = names[1] if len(names) > 1 else ""
        if first in _ROOTS and not facts.view.exists(f"{rule.directory.rstrip('/')}/{first}"):
            yield "warning", "misleading-anchor", f"'/' means {rule.directory} here; write /{text} for the file system's root"
    if rule.behavior == "allow" and text.rstrip("*/") in ("", "~") and text.startswith(("//", "~")):
        place = "the whole file system" if text.startswith("//") else "the whole home directory"
        yield "warning", "too-broad", f"it covers {place}, keys and passwords included"


def _domain(rule: Rule) -> Iterator[Remark]:
    host = (rule.specifier or "").partition(":")[2].strip()
    guard: Severity = "warning" if rule.behavior == "allow" else "error"
    if "/" in host or ":" in host or "@" in host:
        yield guard, "never-matches", "a domain is a host name alone: no scheme, port, path or user"
    elif not host:
        yield guard, "never-matches", "there is no host behind 'domain:'"
    elif host == "*" and rule.behavior == "allow":
        yield "info", "too-broad", "it allows every host"
    elif host.startswith("*.") and host.count(".") == 1:
        yield "warning", "too-broad", f"it covers every host under {host[1:]}"
    elif host.startswith("*.") and rule.behavior != "allow":
        yield "info", "narrow-guard", f"it does not cover {host[2:]} itself"
