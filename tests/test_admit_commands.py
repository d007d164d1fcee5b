"""Several typed commands at the start of one prompt, and looking again after the start (skills contract, section 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel.events import SessionStartResult, UserPromptExpansion, UserPromptExpansionResult
from kernel.extension import Expansion, Extension
from kernel.messages import text_block
from kernel.session import Session
from kernel.testing import Kit, Run, module, text


class Command:
    """Becomes its name and what it was given."""

    description = argument_hint = ""
    kind, source = "slash_command", "test"

    def __init__(self, name: str, stacks: bool = True, hidden: bool = False) -> None:
        self.name, self.stacks, self.hidden = name, stacks, hidden

    async def expand(self, session: Session, args: str) -> Expansion:
        return Expansion(blocks=[text_block(f"{self.name}({args})")], extra={"commandName": self.name})


class Commands(Extension):
    name = "commands"

    def __init__(self) -> None:
        self.reloaded = 0

    async def open(self, session: Session) -> None:
        for name in "abcdefgh":
            session.commands[name] = Command(name)
        session.commands["apart"] = Command("apart", stacks=False)
        session.commands["short"] = Command("whole:short", hidden=True)

    async def reload(self, session: Session) -> None:
        self.reloaded += 1


def play(root: Path, prompt: str, **hooks: Any) -> tuple[Run, Commands]:
    commands = Commands()
    kit = Kit(root, [text("done")], hooks={"test": module(register_extensions=lambda register: register(commands), **hooks)})
    return kit.play(prompt), commands


@pytest.mark.parametrize(("typed", "expected"), [
    ("/a one  two", "a(one  two)"), ("/a", "a()"), ("/a\nnext line", "a(next line)"), ("/a /b text", "a(text)b(text)"),
    ("/a  /b\ntext", "a(text)b(text)"), ("/a /b", "a()b()"), ("/a b /c", "a(b /c)"), ("/a /x text", "a(/x text)"),
    ("/a /apart text", "a(/apart text)"), ("/apart /a text", "apart(/a text)"), ("/a/b text", None),
    ("/x /a", None), ("see /a", None),
    ("/a /b /c /d /e /f /g text", "".join(f"{n}(/g text)" for n in "abcdef")), ("/short x", "whole:short(x)")])
def test_what_stands_at_the_start_is_expanded(tmp_path: Path, typed: str, expected: str | None) -> None:
    run, _ = play(tmp_path, typed)
    said = "".join(b["text"] for b in run.requests[0]["messages"][0]["content"])
    assert said == (typed if expected is None else expected)


def test_each_command_raises_its_event_under_its_own_name_and_each_may_be_refused(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []

    def hook(event: UserPromptExpansion) -> UserPromptExpansionResult | None:
        heard.append((event.command_name, event.command_args))
        return UserPromptExpansionResult(decision="block", reason="not this") if event.command_name == "b" else None

    run, _ = play(tmp_path, "/short /a /b /c now", user_prompt_expansion=hook)
    assert heard == [("whole:short", "now"), ("a", "now"), ("b", "now")] and not run.requests and "not this" in run.text


def test_the_init_message_lists_what_is_shown(tmp_path: Path) -> None:
    run, _ = play(tmp_path, "Go.")
    [init] = [m.data for m in run.outputs if getattr(m, "subtype", "") == "init"]
    assert init["slash_commands"] == [*"abcdefgh", "apart"]


@pytest.mark.parametrize(("answer", "times"), [(None, 0), (SessionStartResult(reload_skills=False), 0),
                                               (SessionStartResult(reload_skills=True), 1)])
def test_a_session_start_hook_makes_extensions_look_again(tmp_path: Path, answer: SessionStartResult | None, times: int) -> None:
    _, commands = play(tmp_path, "Go.", session_start=lambda event: answer)
    assert commands.reloaded == times
