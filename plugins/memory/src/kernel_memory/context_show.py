"""``kernel context show``: the parts of a first request as a table or as JSON."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_memory.anatomy import Anatomy

NO_HOOKS = "command-hooks"


class ContextShow:
    name = "context show"
    summary = "what a first request would hold, part by part, with sizes and sources; nothing is sent"

    def run(self, args: list[str]) -> int:
        import argparse

        import anyio

        from kernel import Options
        from kernel_memory.anatomy import PROMPT, anatomy

        parser = argparse.ArgumentParser("kernel context show", description=f"Show {self.summary}. MCP servers are connected, as "
                                         "for a run; hooks that are commands run only with --hooks.")
        parser.add_argument("prompt", nargs="?", default=PROMPT, help="what the run would be asked")
        parser.add_argument("--json", action="store_true", help="as one JSON object")
        parser.add_argument("--full", action="store_true", help="with the texts themselves")
        parser.add_argument("--hooks", action="store_true", help="also run hooks that are commands")
        parser.add_argument("--model")
        parser.add_argument("--settings", help="one more settings file, or JSON text")
        parser.add_argument("--setting-sources", default="user,project,local", help="which of user,project,local to read")
        parser.add_argument("--plugin-dir", action="append", default=[], type=_folder)
        parser.add_argument("--add-dir", action="append", default=[], type=_folder)
        parser.add_argument("--block", action="append", default=[], help="a plugin to leave out")
        try:
            given = parser.parse_args(args)
        except SystemExit as error:
            return int(error.code or 0)
        options = Options(persist=False, output_format="text", model=given.model, settings=given.settings, add_dirs=given.add_dir,
                          setting_sources=tuple(s for s in given.setting_sources.split(",") if s), plugin_dirs=given.plugin_dir,
                          block=[*given.block, *([] if given.hooks else [NO_HOOKS])])
        found = anyio.run(anatomy, options, given.prompt)
        print(_json(found, given.full) if given.json else _table(found, given.full))
        for problem in found.problems:
            print(problem, file=sys.stderr)
        return 0


def _folder(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _json(found: Anatomy, full: bool) -> str:
    import msgspec

    data = {**msgspec.to_builtins(found), "tokens": found.tokens, "characters": sum(p.characters for p in found.parts)}
    if not full:
        for part in data["parts"]:
            del part["text"]
    return msgspec.json.format(msgspec.json.encode(data), indent=1).decode()


def _table(found: Anatomy, full: bool) -> str:
    lines = []
    where = {id(p): p.file or p.source for p in found.parts}
    name = max([len(p.name) for p in found.parts], default=0)
    source = max([len(where[id(p)]) for p in found.parts], default=0)
    for group, members in groupby(found.parts, key=lambda p: p.group):
        parts = list(members)
        lines.append(_line(group, "", sum(p.characters for p in parts), sum(p.tokens for p in parts), name + 2, source))
        for part in parts:
            lines.append(_line(f"  {part.name}", where[id(part)], part.characters, part.tokens, name + 2, source))
            if full and part.text.strip():
                lines += [f"  | {line}" for line in part.text.strip().splitlines()]
    lines.append(_line("in all", "", sum(p.characters for p in found.parts), found.tokens, name + 2, source))
    if found.window:
        lines.append(f"model {found.model}: {found.tokens / found.window:.1%} of a window of {found.window:,} tokens")
    if found.later:
        lines.append(f"known by name, schemas not sent: {', '.join(found.later)}")
    if found.ended:
        lines.append(f"no request would be sent: {found.ended}")
    return "\n".join(["Tokens are estimated: four characters of text, two of JSON.", *lines])


def _line(name: str, source: str, characters: int, tokens: int, width: int, room: int) -> str:
    return f"{name:<{width}}  {source:<{room}}  {characters:>9,} characters  {tokens:>8,} tokens"
