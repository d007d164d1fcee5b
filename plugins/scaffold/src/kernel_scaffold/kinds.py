"""The kinds of plugins that can be made, and of which folders of templates each is put together."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """``summary`` is for ``--help``; ``description`` goes into the new plugin; ``layers`` are folders below ``templates``."""

    summary: str
    description: str
    layers: tuple[str, ...]


KINDS = {
    "tool": Kind("a tool for the model", "A tool that counts the words of a text file", ("python", "tool")),
    "hooks": Kind("answers to events, in Python", "Keeps secrets out of files and asks for narrower commands",
                  ("python", "hooks")),
    "skill": Kind("know-how for the model, as text", "Knows how to write release notes", ("skill",)),
    "provider": Kind("a source of model answers", "A model provider that repeats what was said", ("python", "provider")),
    "policy": Kind("who may do what", "A permission policy that lets the model look and not touch", ("python", "policy")),
    "compactor": Kind("makes room in the model's window", "A compactor that clears old tool results", ("python", "compactor")),
    "claude": Kind("a folder for Claude Code: skills, hooks, agents, commands", "Reviews changes and keeps secrets out of files",
                   ("claude",)),
}
