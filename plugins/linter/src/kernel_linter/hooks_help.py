"""Questions about hooks and server commands that several rules ask, and repairs that need more than one edit."""

from __future__ import annotations

import json
import re

from kernel_linter.hooks_model import Group, Handler
from kernel_linter.rule import Edit, Fix
from kernel_linter.servers import McpServer
from kernel_linter.source import JsonFile, Pointer


def move_into_handlers(group: Group, key: str) -> Fix | None:
    """Take a key out of a group and write it into each of its handlers."""
    file = group.hooks.file
    handlers = list(group.handlers())
    if not isinstance(file, JsonFile) or not handlers or any(key in h.data for h in handlers):
        return None
    base = (*group.hooks.base, group.event, group.index)
    node = file.node(*base, key)
    targets = [file.node(*h.path) for h in handlers]
    if not node or any(t is None for t in targets):
        return None
    start, end = file.index.removal(node)
    text = f"{json.dumps(key)}: {file.text[node.start:node.end]}"
    edits = [Edit(file, start, end, "")]
    edits += [Edit(file, t.start + 1, t.start + 1, text + (", " if t.items else "")) for t in targets if t]
    return Fix("unsafe", f"move {key} into the handlers", tuple(edits))


def split_matcher(matcher: str) -> list[str]:
    """The alternatives of a matcher: split at ``|`` outside parentheses."""
    out, depth, last = [], 0, 0
    for index, char in enumerate(matcher):
        depth += char == "("
        depth -= char == ")"
        if char == "|" and depth <= 0:
            out.append(matcher[last:index])
            last = index + 1
    return [p.strip() for p in [*out, matcher[last:]]]


def problem_free_alternative(inside: str, path_like: re.Pattern[str]) -> bool:
    """Whether what stands in the parentheses is a plain regular expression such as ``Read|Write`` and no specifier."""
    plain = re.fullmatch(r"[A-Z]\w*(?:\|[A-Z]\w*)*|\.\*|\?:.*|\?=.*|\?!.*", inside)
    return not inside or (plain is not None and not path_like.search(inside))


def rule_to_if(group: Group, tool: str, rule: str) -> Fix | None:
    """The matcher names the tool, every handler gets the rule under ``if``."""
    file = group.hooks.file
    handlers = list(group.handlers())
    if not isinstance(file, JsonFile) or not handlers or any("if" in h.data for h in handlers):
        return None
    matcher = file.node(*group.hooks.base, group.event, group.index, "matcher")
    targets = [file.node(*h.path) for h in handlers]
    if not matcher or any(t is None for t in targets):
        return None
    text = f'"if": {json.dumps(rule)}'
    edits = [Edit(file, matcher.start, matcher.end, json.dumps(tool))]
    edits += [Edit(file, t.start + 1, t.start + 1, text + (", " if t.items else "")) for t in targets if t]
    return Fix("unsafe", f"match {tool} and move the rule to 'if'", tuple(edits))


def split_command(handler: Handler, parts: list[str]) -> Fix | None:
    """An exec-form command line becomes the executable and more arguments."""
    file = handler.file
    if not isinstance(file, JsonFile) or len(parts) < 2:
        return None
    command, args = file.node(*handler.path, "command"), file.node(*handler.path, "args")
    if not command or not args:
        return None
    return Fix("safe", "move the rest into args", (
        Edit(file, command.start, command.end, json.dumps(parts[0])),
        Edit(file, args.start, args.end, json.dumps([*parts[1:], *handler.data["args"]]))))


def writes_to(command: str, path: str) -> bool:
    """Whether a command makes or guards the path itself, so that it need not be there."""
    name = re.escape(path)
    root = r"[\"']?\$\{CLAUDE_PLUGIN_ROOT\}[\"']?/"
    makes = r"(?:>{1,2}\s*|(?:\[+\s*!?\s*-[a-z]|test\s+!?\s*-[a-z]|mkdir\s+-p|touch|--prefix|cd)\s+)"
    return bool(re.search(makes + root + name, command))


def pinned(package: str) -> bool:
    """Whether a package of ``npx`` or ``uvx`` names a version or another fixed source."""
    if re.match(r"(?:git\+|https?:|file:|github:)", package):
        return bool(re.search(r"[@#][0-9a-f]{7,40}$|@v?\d", package))
    _, _, version = package.removeprefix("@").partition("@")
    version = version or package.partition("==")[2]
    return bool(version) and version not in ("latest", "next", "beta", "canary", "*") and bool(re.search(r"\d", version))


def shell_line(server: McpServer, pointer: tuple[Pointer, ...]) -> bool:
    """Whether a text is the program of ``sh -c``, in which plain variables mean something."""
    if pointer[:1] != ("args",) or server.command.rpartition("/")[2] not in ("bash", "sh", "zsh", "cmd", "env"):
        return False
    return any(re.fullmatch(r"-\w*c", a) or a.lower() == "/c" for a in server.args)
