"""What stands in a skill's text for something else: variables, arguments, commands to run (skills contract, 6.1 to 6.3).

The text is taken apart once, before anything is put in, so that nothing that was put in is ever scanned: an argument that looks
like a variable or like a command stays what it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

# Every pattern here takes time in proportion to the text, whatever a file holds.
_COMMAND = re.compile(r"^```![ \t]*\n|(?<!\S)!`([^`\n]+)`", re.MULTILINE)
_CLOSE = re.compile(r"^```[ \t]*$", re.MULTILINE)
_VARIABLE = r"\$\{(?P<variable>CLAUDE_[A-Z_]+|user_config\.[A-Za-z_]\w*)\}"
_NUMBERED = r"(?<!\\)(?P<slashes>\\*)\$(?:ARGUMENTS\[(?P<index>\d{1,6})\]|(?P<all>ARGUMENTS)(?!\w)|(?P<number>\d{1,6})"


class Piece(Struct):
    """A part of the text; ``command``: it is to be run, and what it prints takes its place."""

    text: str
    command: bool = False


def take_apart(text: str) -> list[Piece]:
    """The text as pieces, in order. A command counts only where the file itself holds it."""
    pieces, end = [], 0
    for start, stop, command in _commands(text):
        pieces += [Piece(text[end:start]), Piece(command.strip("\n"), command=True)]
        end = stop
    pieces.append(Piece(text[end:]))
    return [p for p in pieces if p.text or p.command]


def _commands(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each command begins and ends, and what it is. A block that never closes is none."""
    at, closes = 0, True
    while match := _COMMAND.search(text, at):
        at = match.end()
        if match[1] is not None:
            yield match.start(), at, match[1]
        elif closes:
            close = _CLOSE.search(text, at)
            closes = close is not None  # and none that begins later closes either
            if close is not None:
                yield match.start(), close.end(), text[at:close.start()]
                at = close.end()


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
