"""What a session asks, with a screen that answers by itself: forms of servers, and what becomes of a terminal that is gone."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
from kernel_terminal import own
from kernel_terminal.asking import SERVERS, Asking
from kernel_terminal.lines import text_of
from kernel_terminal.questions import Given, Question
from kernel_terminal.view import View

from kernel import PermissionCall, Tool, Verdict
from kernel.testing import Kit, text


class Answers:
    """A screen for which somebody already knows the answers: the number of a choice, or words."""

    plain = False
    columns = 80

    def __init__(self, *answers: int | str) -> None:
        self.answers = deque(answers)
        self.asked: list[Question] = []
        self.shown: list[Any] = []

    def show(self, lines: list[Any]) -> None:
        self.shown += lines

    async def ask(self, question: Question) -> Given:
        self.asked.append(question)
        answer = self.answers.popleft()
        return Given(text=answer) if isinstance(answer, str) else Given([question.choices[answer]] if answer >= 0 else [])


def elicited(tmp_path: Path, asked: dict[str, Any], *answers: int | str) -> tuple[dict[str, Any], Answers]:
    async def run() -> tuple[dict[str, Any], Answers]:
        session = Kit(tmp_path, [text("x")]).open()
        screen: Any = Answers(*answers)
        asking = Asking(session, screen, View())
        found = await asking.elicit("server", asked)
        await session.close()
        return found, screen

    return anyio.run(run)


FORM = {"message": "Who are you?", "requestedSchema": {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string", "title": "Your name"}, "age": {"type": "integer"}, "kind": {"type": "string", "enum": ["a", "b"]},
    "sure": {"type": "boolean"}, "note": {"type": "string"}}}}


def test_a_form_is_filled_field_by_field(tmp_path: Path) -> None:
    answer, screen = elicited(tmp_path, FORM, 0, "Ada", "many", "36", 1, 0, "")
    assert answer == {"action": "accept", "content": {"name": "Ada", "age": 36, "kind": "b", "sure": True}}
    assert "Your name" in screen.asked[1].open and "may stay empty" not in screen.asked[1].open
    assert "integer" in str(screen.shown), "what does not fit is said and asked again"


def test_a_form_may_be_declined_or_left(tmp_path: Path) -> None:
    assert elicited(tmp_path, FORM, 1)[0] == {"action": "decline"}
    assert elicited(tmp_path, FORM, -1)[0] == {"action": "cancel"}
    assert elicited(tmp_path, FORM, 0, "")[0] == {"action": "cancel"}, "a field that must be there stays empty"


def test_an_address_is_shown_and_never_opened(tmp_path: Path) -> None:
    answer, screen = elicited(tmp_path, {"mode": "url", "url": "https://login.test/\x1b[2J", "message": "Log in"}, 0)
    assert answer == {"action": "accept"}
    assert r"https://login.test/\x1b[2J" in str(screen.asked[0].body).replace("\\\\", "\\")


def test_sessions_are_listed_through_the_store(tmp_path: Path) -> None:
    harness = Kit(tmp_path, [text("x")]).harness
    assert own.sessions(harness) is None, "no store is there that could list them"


def test_the_question_for_one_server_shows_what_it_starts(tmp_path: Path) -> None:
    decided: list[Any] = []

    async def decide(name: str, approved: bool) -> None:
        decided.append((name, approved))

    async def run() -> Answers:
        session = Kit(tmp_path, [text("x")]).open()
        screen: Any = Answers(1)
        entry = SimpleNamespace(raw={"type": "stdio", "url": "http://fine", "command": "sh", "args": ["-c", "a b\u200b"]})
        session.plugin_state[SERVERS] = SimpleNamespace(undecided=lambda: ["s"], off={"s": (entry, "waits")}, decide=decide)
        await Asking(session, screen, View()).servers()
        await session.close()
        return screen

    screen = anyio.run(run)
    assert r"  runs sh -c 'a b\u200b'" in [text_of(line) for line in screen.asked[0].body] and decided == [("s", False)]


def test_showing_all_of_a_call_asks_again(tmp_path: Path) -> None:
    tool: Any = type("Bash", (Tool,), {"name": "Bash", "description": "", "input_schema": {}})()
    call = PermissionCall(tool=tool, input={"command": "a\n" * 100 + "END"}, cwd="/w", mode="default")

    async def run() -> tuple[dict[str, Any], Answers]:
        session = Kit(tmp_path, [text("x")]).open()
        screen: Any = Answers(2, 0)
        answer = await Asking(session, screen, View()).ask(call, Verdict(behavior="ask"), "c1")
        await session.close()
        return answer, screen

    answer, screen = anyio.run(run)
    assert answer["behavior"] == "allow" and ["END" in str(question.body) for question in screen.asked] == [False, True]
