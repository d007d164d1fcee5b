"""What stands in a skill's text for something else: variables, arguments, commands to run (skills contract, 6.1 to 6.3).

The text is taken apart once, before anything is put in, so that nothing that was put in is ever scanned: an argument that looks
like a variable or like a command stays what it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from msgspec import Struct

_COMMAND = re.compile(r"^```![ \t]*\n(?P<block>.*?)^```[ \t]*$|(?<!\S)!`(?P<inline>[^`\n]+)`", re.MULTILINE | re.DOTALL)
_VARIABLE = r"\$\{(?P<variable>CLAUDE_[A-Z_]+|user_config\.[A-Za-z_]\w*)\}"
_NUMBERED = r"(?P<slashes>\\*)\$(?:ARGUMENTS\[(?P<index>\d{1,6})\]|(?P<all>ARGUMENTS)(?!\w)|(?P<number>\d{1,6})"


class Piece(Struct):
    """A part of the text; ``command``: it is to be run, and what it prints takes its place."""

    text: str
    command: bool = False


def take_apart(text: str) -> list[Piece]:
    """The text as pieces, in order. A command counts only where the file itself holds it."""
    pieces, end = [], 0
    for match in _COMMAND.finditer(text):
        pieces.append(Piece(text[end:match.start()]))
        found = match["block"] if match["block"] is not None else match["inline"]
        pieces.append(Piece(found.strip("\n"), command=True))
        end = match.end()
    pieces.append(Piece(text[end:]))
    return [p for p in pieces if p.text or p.command]


class Arguments:
    """What was typed behind the name. ``used``: some token of the text was replaced by a part of it."""

    def __init__(self, typed: str, names: Iterable[str] = ()) -> None:
        self.typed = typed
        self.words = split(typed)
        self.names = {name: n for n, name in enumerate(names) if re.fullmatch(r"[A-Za-z_][\w-]*", name)}
        self.used = False
        named = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True)))
        self._pattern = re.compile(_VARIABLE + "|" + _NUMBERED + (rf"|(?P<name>{named})(?![\w-]))" if named else ")"))

    def put_into(self, text: str, variables: Mapping[str, str]) -> str:
        """The text with variables and arguments in place, each looked for once."""
        return self._pattern.sub(lambda match: self._value(match, variables), text)

    def _value(self, match: re.Match[str], variables: Mapping[str, str]) -> str:
        if match["variable"] is not None:
            return variables.get(match["variable"], match[0])
        slashes = match["slashes"]
        if len(slashes) % 2:  # the last one makes the token literal
            return match[0][1:]
        if match["all"] is not None:
            value: str | None = self.typed
        elif match.groupdict().get("name") is not None:
            n = self.names[match["name"]]
            value = self.words[n] if n < len(self.words) else ""
        else:
            n = int(match["index"] if match["index"] is not None else match["number"])
            value = self.words[n] if n < len(self.words) else None
        if value is None:
            return match[0]  # a missing position stays as it is
        self.used = True
        return slashes + value


def split(typed: str) -> list[str]:
    """Words as a shell groups them; where quotes do not close, at white space."""
    try:
        return shlex.split(typed)
    except ValueError:
        return typed.split()


def only_variables(text: str, variables: Mapping[str, str]) -> str:
    """A text with variables alone in place, for example a rule."""
    return re.sub(_VARIABLE, lambda match: variables.get(match["variable"], match[0]), text)
