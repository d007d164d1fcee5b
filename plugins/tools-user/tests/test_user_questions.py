"""AskUserQuestion: who answers, what the model cannot say itself, what it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kernel_tools_user import plugin

from kernel import Decision, PermissionRequestResult, PreToolUseResult
from kernel.testing import Kit, Run, call, module, text

pytestmark = pytest.mark.anyio

TWO = [{"label": "A"}, {"label": "B", "description": "the other one", "preview": "b()"}]
WHICH = {"question": "Which?", "header": "Choice", "options": TWO, "multiSelect": False}
ALSO = {"question": "And also?", "header": "More", "options": [{"label": "x"}, {"label": "y"}], "multiSelect": True}


def kit(cwd: Path, *turns: Any, **more: Any) -> Kit:
    """With the real rules."""
    more["hooks"] = {"tools-user": plugin, **more.get("hooks", {})}
    return Kit(cwd, turns, installed=["permissions"], **more)


async def asked(cwd: Path, answer: dict[str, Any], *questions: dict[str, Any], **more: Any) -> tuple[Run, list[Any]]:
    """A run in which a front end answers; and what it was asked."""
    it = kit(cwd, call("AskUserQuestion", questions=list(questions) or [WHICH], **more), text("done"))
    session, seen = it.open(), []

    async def asker(question: Any, verdict: Any, id: str) -> dict[str, Any]:
        seen.append(question.input)
        return answer

    session.asker = asker
    return await it.run("go", session), seen


def result(run: Run) -> Any:
    return next(m.tool_use_result for m in run.outputs if getattr(m, "tool_use_result", None) is not None)  # type: ignore[attr-defined]


async def test_a_front_end_answers_through_the_input(tmp_path: Path) -> None:
    answers = {"Which?": "A", "And also?": ["x", "y"]}
    notes = {"Which?": {"notes": "for now"}}
    run, seen = await asked(tmp_path, {"behavior": "allow", "updatedInput": {
        "questions": [WHICH, ALSO], "answers": answers, "annotations": notes}}, WHICH, ALSO)
    assert seen == [{"questions": [WHICH, ALSO]}]
    assert result(run) == {"questions": [WHICH, ALSO], "answers": {"Which?": "A", "And also?": "x, y"}, "annotations": notes}
    assert run.result_of("call_1")["content"] == "The person answered:\nWhich?\n-> A (note: for now)\nAnd also?\n-> x, y"


async def test_a_free_answer_is_shown_instead_of_the_list(tmp_path: Path) -> None:
    run, _ = await asked(tmp_path, {"behavior": "allow", "updatedInput": {
        "questions": [WHICH], "answers": {}, "response": "neither!"}})
    assert result(run) == {"questions": [WHICH], "answers": {}, "response": "neither!"}
    assert "neither!" in run.result_of("call_1")["content"] and "Which?" not in run.result_of("call_1")["content"]


async def test_an_answer_that_came_by_the_clock_says_so(tmp_path: Path) -> None:
    run, _ = await asked(tmp_path, {"behavior": "allow", "updatedInput": {
        "questions": [WHICH, ALSO], "answers": {"Which?": "A"}, "afkTimeoutMs": 60000}}, WHICH, ALSO)
    assert result(run)["afkTimeoutMs"] == 60000
    content = run.result_of("call_1")["content"]
    assert "And also?\n-> (not answered)" in content and "may be away" in content


async def test_a_refusal_reaches_the_model_in_the_persons_words(tmp_path: Path) -> None:
    run, _ = await asked(tmp_path, {"behavior": "deny", "message": "ask me tomorrow"})
    assert run.result_of("call_1")["is_error"] and "ask me tomorrow" in run.result_of("call_1")["content"]


async def test_the_model_cannot_answer_its_own_question(tmp_path: Path) -> None:
    """Whoever allows the call without an answer has given none, whatever the model wrote there."""
    run, seen = await asked(tmp_path, {"behavior": "allow"}, answers={"Which?": "B"}, response="B", annotations={"Which?": {}})
    assert seen == [{"questions": [WHICH]}]
    assert run.result_of("call_1")["is_error"] and "nobody answered" in run.result_of("call_1")["content"]


async def test_a_hook_answers_with_allow_and_the_input(tmp_path: Path) -> None:
    """hooks contract, 13.2"""
    def pre_tool_use(event: Any) -> PreToolUseResult:
        return PreToolUseResult(permission_decision="allow", updated_input={**event.tool_input, "answers": {"Which?": "A"}})

    run = await kit(tmp_path, call("AskUserQuestion", questions=[WHICH]), text("done"),
                    hooks={"answers": module(pre_tool_use=pre_tool_use)}).run("go")
    assert result(run)["answers"] == {"Which?": "A"}


async def test_a_permission_request_hook_answers_for_the_absent_person(tmp_path: Path) -> None:
    def permission_request(event: Any) -> PermissionRequestResult:
        return PermissionRequestResult(permission=Decision(
            behavior="allow", updated_input={**event.tool_input, "answers": {"Which?": "B"}}))

    run = await kit(tmp_path, call("AskUserQuestion", questions=[WHICH]), text("done"),
                    hooks={"answers": module(permission_request=permission_request)}).run("go")
    assert result(run)["answers"] == {"Which?": "B"}


@pytest.mark.parametrize("more", [
    {}, {"settings": {"permissions": {"allow": ["AskUserQuestion"]}}}, {"permission_mode": "dontAsk"},
    {"hooks": {"yes": module(pre_tool_use=lambda event: PreToolUseResult(permission_decision="allow"))}},
])
async def test_without_an_answer_the_call_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    run = await kit(tmp_path, call("AskUserQuestion", questions=[WHICH]), text("done"), **more).run("go")
    assert run.result_of("call_1")["is_error"]
    assert [d["tool_name"] for d in run.result.permission_denials] == ["AskUserQuestion"]


async def test_the_call_can_be_put_off_even_without_a_question(tmp_path: Path) -> None:
    run = await kit(tmp_path, call("AskUserQuestion", "toolu_q", questions=[]), hooks={
        "later": module(pre_tool_use=lambda event: PreToolUseResult(permission_decision="defer"))}).run("go")
    assert run.result.stop_reason == "tool_deferred"
    assert run.result.deferred_tool_use == {"id": "toolu_q", "name": "AskUserQuestion", "input": {"questions": []}}


async def test_no_question_is_none(tmp_path: Path) -> None:
    it = Kit(tmp_path, [call("AskUserQuestion", questions=[]), text("done")], hooks={"tools-user": plugin})
    assert "one to four" in (await it.run("go")).result_of("call_1")["content"]


@pytest.mark.parametrize(("change", "field"), [
    ({"header": "13 characters"}, "header"), ({"options": TWO[:1]}, "options"), ({"options": [*TWO, *TWO, *TWO]}, "options"),
    ({"options": [{"label": "A"}, {"label": "A"}]}, "label"), ({"options": [{"text": "A"}, {"label": "B"}]}, "options"),
    ({"question": ""}, "question"), ({"multiSelect": "perhaps"}, "multiSelect"),
])
async def test_questions_that_cannot_be_put(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    run = await kit(tmp_path, call("AskUserQuestion", questions=[{**WHICH, **change}]), text("done")).run("go")
    content = run.result_of("call_1")["content"]
    assert "invalid_arguments" in content and field in content
    assert run.result.permission_denials == []


@pytest.mark.parametrize("questions", [[WHICH, WHICH], [{**WHICH, "question": str(n)} for n in range(5)]])
async def test_one_to_four_different_questions(tmp_path: Path, questions: list[Any]) -> None:
    run = await kit(tmp_path, call("AskUserQuestion", questions=questions), text("done")).run("go")
    assert "invalid_arguments" in run.result_of("call_1")["content"]


async def test_a_header_of_twelve_characters_and_four_options_fit(tmp_path: Path) -> None:
    question = {**WHICH, "header": "twelve chars", "options": [{"label": str(n)} for n in range(4)]}
    _, seen = await asked(tmp_path, {"behavior": "deny"}, question)
    assert seen == [{"questions": [question]}]


async def test_subagents_do_not_have_it(tmp_path: Path) -> None:
    session = kit(tmp_path).open()
    session.agent_id = "agent"
    await session.start()
    assert [t.name for t in session.toolbox.offered] == []
