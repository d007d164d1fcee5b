"""PowerShell commands: a reader for the plain part of the language (permissions contract, 5.9).

Pipelines of commands with literal words and variables are read. Script blocks, sub-expressions, the call operator,
redirections, comments and characters beyond ASCII (which the language takes for quotes and dashes) are opaque.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .paths import Places, under
from .patterns import CommandPattern
from .rules import Rule
from .shell import check_characters
from .syntax import Opaque
from .view import posix

_ALIASES = dict(pair.split("=") for pair in (
    "gci=get-childitem ls=get-childitem dir=get-childitem rm=remove-item del=remove-item ri=remove-item rd=remove-item "
    "rmdir=remove-item erase=remove-item cp=copy-item copy=copy-item cpi=copy-item mv=move-item move=move-item mi=move-item "
    "cat=get-content gc=get-content type=get-content sc=set-content ac=add-content clc=clear-content cd=set-location "
    "chdir=set-location sl=set-location pwd=get-location gl=get-location echo=write-output write=write-output "
    "md=new-item mkdir=new-item ni=new-item ren=rename-item rni=rename-item iex=invoke-expression icm=invoke-command "
    "iwr=invoke-webrequest curl=invoke-webrequest wget=invoke-webrequest irm=invoke-restmethod ps=get-process "
    "gps=get-process kill=stop-process spps=stop-process saps=start-process start=start-process sleep=start-sleep "
    "select=select-object sort=sort-object measure=measure-object tee=tee-object group=group-object sls=select-string "
    "gm=get-member gi=get-item gp=get-itemproperty sp=set-itemproperty rp=remove-itemproperty si=set-item cli=clear-item "
    "sv=set-variable gv=get-variable rv=remove-variable sal=set-alias nal=new-alias ipmo=import-module cls=clear-host "
    "clear=clear-host history=get-history h=get-history man=help pushd=push-location popd=pop-location "
    "diff=compare-object compare=compare-object gwmi=get-wmiobject gsv=get-service sasv=start-service spsv=stop-service"
).split())
_OPAQUE = re.compile(r"\$\(|@[({'\"]|[`{}()\[\]<>#]|--%|(?<!&)&(?!&)")
_SEPARATOR = re.compile(r"\|\||&&|[|;\n]")
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^'\"]")


class Call(NamedTuple):
    """One command of a pipeline. ``text``: as written, one space between words; ``words``: without quotes."""

    text: str
    words: list[str]

    @property
    def name(self) -> str:
        """The cmdlet's name in lower case, aliases, module and ``.exe`` resolved."""
        name = self.words[0].lower().replace("/", "\\").rsplit("\\", 1)[-1].removesuffix(".exe")
        return _ALIASES.get(name, name)


def read(command: str) -> list[Call]:
    """The commands of a text.

    :raises Opaque: it is not understood.
    """
    check_characters(command)
    if not command.isascii():
        raise Opaque("it holds characters beyond ASCII")
    calls: list[Call] = []
    for piece in _pieces(command):
        words, text = _words(piece)
        if not words:
            continue
        if text[0] in "'\"$" or "=" in words[:2]:
            raise Opaque("it is an expression")
        calls.append(Call(text, words))
    return calls


def _pieces(command: str) -> list[str]:
    pieces, current, i = [], "", 0
    while i < len(command):
        token = _TOKEN.match(command, i)
        if token is None:
            raise Opaque("an unclosed quote")
        if token[0][0] == '"' and re.search(r"[$`]\(|`", token[0]):
            raise Opaque("an expression inside quotes")
        if len(token[0]) == 1 and (bad := _OPAQUE.match(command, i)):
            raise Opaque(f"{bad[0]!r} is not understood")
        cut = _SEPARATOR.match(command, i) if len(token[0]) == 1 else None
        if cut:
            pieces.append(current)
            current = ""
            i = cut.end()
        else:
            current += token[0]
            i = token.end()
    return [*pieces, current]


def _words(piece: str) -> tuple[list[str], str]:
    words: list[str] = []
    raw: list[str] = []
    value, written = "", ""
    for match in _TOKEN.finditer(piece + " "):
        text = match[0]
        if text in " \t":
            if written:
                words.append(value)
                raw.append(written)
            value, written = "", ""
            continue
        written += text
        value += text[1:-1].replace(text[0] * 2, text[0]) if len(text) > 1 else text
    return words, " ".join(raw)


def covers(rule: Rule, call: Call) -> bool:
    """Whether a rule covers a command; without case, aliases resolved on both sides."""
    rest = call.text.split(" ", 1)[1:]
    forms = [call.text, " ".join([call.name, *rest]), " ".join([call.name, *call.words[1:]])]
    return any(p.matches(form) for p in (rule.command, _resolved(rule)) for form in forms)


def _resolved(rule: Rule) -> CommandPattern:
    name, blank, rest = rule.command.text.partition(" ")
    return CommandPattern(_ALIASES.get(name, name) + blank + rest, fold=True)


def removal(call: Call, places: Places, cwd: str) -> tuple[str, bool]:
    """What a ``Remove-Item`` must not take away, and whether it is refused outright; empty: nothing."""
    if call.name != "remove-item":
        return "", False
    recurse = any(w.lower().startswith(("-r", "/s")) for w in call.words[1:])
    for word in call.words[1:]:
        if word.startswith("-"):
            continue
        for target in word.split(","):
            path = posix(target).rstrip("/") or "/"
            low = path.lower()
            if target in ("*", ".*") or low.endswith("/*"):
                return f"{target} (a wildcard that takes everything)", True
            if low in ("/", "~", "$home", "$env:userprofile", "$env:systemdrive") or re.fullmatch(r"/[a-z](/[^/]*)?|/[^/]+", low):
                return f"{target} (a root, a direct child of one, or the home directory)", True
            full = places.absolute(target, cwd)
            if full.lower() == places.view.home.lower() or full.count("/") <= 1 or re.fullmatch(r"/[a-z]/[^/]*", full.lower()):
                return f"{target} (a root, a direct child of one, or the home directory)", True
            if recurse and any(under(d.lower(), full.lower()) for d in (*places.directories[:1], places.absolute(cwd, "/"))):
                return f"{target} (the working directory or a parent of it)", False
    return "", False
