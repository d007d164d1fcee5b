"""Instruction files: what one is, and how the model is shown it (context contract, 2.2)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kernel import inert

Kind = Literal["Managed", "User", "Project", "Local"]
Reason = Literal["session_start", "nested_traversal", "path_glob_match", "include", "compact"]

LABELS: dict[Kind, str] = {
    "Managed": "set by the organization", "User": "the user's own, for all projects",
    "Project": "of this project, checked into the code base", "Local": "the user's own for this project, not checked in"}
OPENING = ("Instructions that people wrote for your work follow, each with the file that it stands in. Follow them as they are "
           "written; where they differ from what you would do by default, they win.")
NESTED = ("Instructions for the files that you just met follow, each with the file that it stands in. They hold from here on as "
          "those of the beginning do; do not talk about this message unless you are asked.")
SINCE = ("Instructions that are new or different since this conversation began follow; what they say now counts. Do not talk "
         "about this message unless you are asked.")
CLOSING = ("Not all of this has to do with the task at hand: use what does, leave the rest aside, and do not talk about this "
           "message unless you are asked.")


class Instruction(Struct, frozen=True, kw_only=True):
    """One file that enters the context. ``globs``, ``trigger`` and ``parent`` are the fields of ``InstructionsLoaded``."""

    path: str
    kind: Kind
    text: str
    reason: Reason = "session_start"
    globs: tuple[str, ...] = ()
    trigger: str = ""
    parent: str = ""

    def shown(self) -> str:
        return f"{heading(self.path)} ({LABELS[self.kind]}):\n\n{inert(self.text.strip())}"


def heading(path: str) -> str:
    """The line ahead of a file's content; in a history it says that the file was told."""
    return f"Contents of {path}"


