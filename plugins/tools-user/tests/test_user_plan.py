"""Plan mode: in by the tool, by flag and by hand; the plan file; out with approval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kernel_tools_user import plan, plugin

from kernel import Decision, Layer, PermissionRequestResult, PreToolUseResult, Session, SessionStart
from kernel.testing import Kit, Run, call, module, text

pytestmark = pytest.mark.anyio


def kit(cwd: Path, *turns: Any, installed: tuple[str, ...] = ("permissions",), **more: Any) -> Kit:
    more["hooks"] = {"tools-user": plugin, **more.get("hooks", {})}
    return Kit(cwd, turns, installed=installed, **more)


def answering(session: Session, *answers: dict[str, Any]) -> list[dict[str, Any]]:
    """A front end that gives these answers; the inputs it was shown."""
    left, seen = list(answers), []

    async def asker(question: Any, verdict: Any, id: str) -> dict[str, Any]:
        seen.append(question.input)
        return left.pop(0)

    session.asker = asker
    return seen


def results(run: Run) -> list[Any]:
    return [m.tool_use_result for m in run.outputs if getattr(m, "tool_use_result", None) is not None]  # type: ignore[attr-defined]


def modes(run: Run) -> list[str]:
    return [m.data["permissionMode"] for m in run.outputs if getattr(m, "subtype", "") == "status"]  # type: ignore[attr-defined]


def reminders(run: Run, words: str) -> list[str]:
    return [b["text"] for m in run.requests[-1]["messages"] for b in m["content"] if words in b.get("text", "")]


@pytest.mark.parametrize("before", ["default", "acceptEdits"])
async def test_the_way_into_plan_mode_and_out_again(tmp_path: Path, before: str) -> None:
    path = tmp_path / ".config" / "plans" / "s.md"
    it = kit(tmp_path, call("EnterPlanMode"), call("Write", file_path=str(path), content="1. do it"), call("ExitPlanMode"),
             call("Write", file_path=str(tmp_path / "out.txt"), content="x"), text("done"), permission_mode=before,
             installed=("permissions", "tools-files"), session_id="s")
    session = it.open()
    seen = answering(session, {"behavior": "allow"}, {"behavior": "deny"})
    run = await it.run("go", session)
    entered, written, left = (run.result_of(f"call_{n}") for n in (1, 2, 3))
    assert str(path) in entered["content"] and results(run)[0] == {"message": entered["content"]}
    assert "is_error" not in written, "plan mode lets the plan be written without a question"
    assert seen[0] == {"plan": "1. do it", "planFilePath": str(path)}
    assert results(run)[2] == {"plan": "1. do it", "isAgent": False, "filePath": str(path)}
    assert "approved" in left["content"] and str(path) in left["content"]
    assert modes(run) == ["plan", before] and session.state.permission_mode == before
    assert len(seen) == (2 if before == "default" else 1), "the mode from before decides again"


async def test_in_plan_mode_other_files_are_asked_about(tmp_path: Path) -> None:
    it = kit(tmp_path, call("EnterPlanMode"), call("Write", file_path=str(tmp_path / "x"), content="x"), text("done"),
             permission_mode="acceptEdits", installed=("permissions", "tools-files"))
    run = await it.run("go")
    assert run.result_of("call_2")["is_error"] and not (tmp_path / "x").exists()


async def test_a_refusal_keeps_plan_mode_and_says_why(tmp_path: Path) -> None:
    it = kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode", plan="all at once"), text("done"))
    session = it.open()
    answering(session, {"behavior": "deny", "message": "in smaller steps"})
    run = await it.run("go", session)
    assert run.result_of("call_2")["is_error"] and "in smaller steps" in run.result_of("call_2")["content"]
    assert session.state.permission_mode == "plan"


async def test_without_anybody_to_ask_it_stays_in_plan_mode(tmp_path: Path) -> None:
    run = await kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode"), text("done")).run("go")
    assert run.result_of("call_2")["is_error"] and run.session.state.permission_mode == "plan"


async def test_outside_of_plan_mode_there_is_nothing_to_approve(tmp_path: Path) -> None:
    it = kit(tmp_path, call("ExitPlanMode", plan="x"), text("done"))
    session = it.open()
    seen = answering(session)
    run = await it.run("go", session)
    assert "not_in_plan_mode" in run.result_of("call_1")["content"] and seen == []


async def test_hooks_see_the_plan_and_an_approval_gives_the_mode_from_before_back(tmp_path: Path) -> None:
    """hooks contract, 13.5 rule 7"""
    inputs: list[dict[str, Any]] = []

    def permission_request(event: Any) -> PermissionRequestResult | None:
        inputs.append(event.tool_input)
        return PermissionRequestResult(permission=Decision(behavior="allow"))

    it = kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode"), text("done"), permission_mode="acceptEdits", session_id="s",
             hooks={"boss": module(permission_request=permission_request)})
    (tmp_path / ".config" / "plans").mkdir(parents=True)
    (tmp_path / ".config" / "plans" / "s.md").write_text("the plan")
    run = await it.run("go")
    assert inputs == [{"plan": "the plan", "planFilePath": str(tmp_path / ".config" / "plans" / "s.md")}]
    assert modes(run) == ["plan", "acceptEdits"]


async def test_a_hooks_allow_needs_the_input_with_it(tmp_path: Path) -> None:
    """hooks contract, 13.2 rule 4"""
    def allow(event: Any) -> PreToolUseResult | None:
        return PreToolUseResult(permission_decision="allow") if event.tool_name == "ExitPlanMode" else None

    def rewrite(event: Any) -> PreToolUseResult | None:
        if event.tool_name != "ExitPlanMode":
            return None
        return PreToolUseResult(permission_decision="allow", updated_input=event.tool_input)

    for hook, mode in ((allow, "plan"), (rewrite, "default")):
        run = await kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode", plan="p"), text("done"),
                        hooks={"boss": module(pre_tool_use=hook)}).run("go")
        assert run.session.state.permission_mode == mode


async def test_a_plan_that_the_person_changed_counts_and_is_kept(tmp_path: Path) -> None:
    it = kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode", plan="mine"), text("done"), session_id="s")
    session = it.open()
    path = tmp_path / ".config" / "plans" / "s.md"
    answering(session, {"behavior": "allow", "updatedInput": {"plan": "theirs", "planFilePath": "/elsewhere"}})
    run = await it.run("go", session)
    assert results(run)[1] == {"plan": "theirs", "isAgent": False, "filePath": str(path), "planWasEdited": True}
    assert path.read_text() == "theirs" and "Approved plan:\ntheirs" in run.result_of("call_2")["content"]


@pytest.mark.parametrize("updated", [{}, {"plan": None}, {"allowedPrompts": []}])
async def test_an_answer_without_the_plan_approves_the_one_that_was_shown(tmp_path: Path, updated: dict[str, Any]) -> None:
    it = kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode", plan="mine", allowedPrompts=[{"tool": "Bash"}]), text("done"))
    session = it.open()
    seen = answering(session, {"behavior": "allow", "updatedInput": updated})
    run = await it.run("go", session)
    assert seen[0]["plan"] == "mine" and results(run)[1]["plan"] == "mine" and "planWasEdited" not in results(run)[1]


async def test_the_model_cannot_name_the_plan_file(tmp_path: Path) -> None:
    it = kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode", planFilePath="/etc/passwd"), text("done"), session_id="s")
    session = it.open()
    seen = answering(session, {"behavior": "allow"})
    run = await it.run("go", session)
    assert seen == [{"plan": None, "planFilePath": str(tmp_path / ".config" / "plans" / "s.md")}]
    assert results(run)[1]["plan"] is None and "There is no plan" in run.result_of("call_2")["content"]


async def test_an_approval_that_sets_a_mode_wins_over_the_mode_from_before(tmp_path: Path) -> None:
    it = kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode", plan="p"), text("done"))
    session = it.open()
    answering(session, {"behavior": "allow", "updatedInput": {"plan": "p"}, "updatedPermissions": [
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"}]})
    run = await it.run("go", session)
    assert "is_error" not in run.result_of("call_2") and session.state.permission_mode == "acceptEdits"


@pytest.mark.parametrize(("setting", "after"), [(None, "default"), ("acceptEdits", "acceptEdits"), ("plan", "default"),
                                                ("bypassPermissions", "default")])
async def test_a_session_that_began_in_plan_mode_gets_the_usual_mode(tmp_path: Path, setting: str | None, after: str) -> None:
    it = kit(tmp_path, call("ExitPlanMode", plan="p"), text("done"), permission_mode="plan",
             settings={"permissions": {"defaultMode": setting}} if setting else None)
    session = it.open()
    answering(session, {"behavior": "allow"})
    await it.run("go", session)
    assert session.state.permission_mode == after


async def test_a_mode_that_cannot_be_given_back_becomes_default_and_is_told(tmp_path: Path,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """An administrator switches bypassPermissions off while the plan is made."""
    monkeypatch.setenv("IS_SANDBOX", "1")
    it = kit(tmp_path, permission_mode="bypassPermissions")
    session = it.open()
    plan.enter(session)
    switched_off = {"permissions": {"disableBypassPermissionsMode": "disable"}}
    session.settings.layers.insert(0, Layer("managed", "managed-settings.json", switched_off, "/"))
    assert plan.leave(session) == "default"
    told = [m.data["content"] for m in it.outputs if getattr(m, "subtype", "") == "informational"]  # type: ignore[attr-defined]
    assert any("bypassPermissions is switched off" in text for text in told)


# -- reminders ----------------------------------------------------------------------------------------------------------
async def test_a_session_that_begins_in_plan_mode_is_told_the_rules_once(tmp_path: Path) -> None:
    it = kit(tmp_path, text("one"), text("two"), permission_mode="plan", session_id="s")
    session = it.open()
    await it.run("go", session)
    run = await it.run("go on", session)
    (rules,) = reminders(run, "Plan mode is on")
    assert str(tmp_path / ".config" / "plans" / "s.md") in rules and "<system-reminder>" in rules


async def test_the_model_is_told_when_the_person_changes_the_mode(tmp_path: Path) -> None:
    it = kit(tmp_path, text("one"), text("two"), text("three"))
    session = it.open()
    await it.run("go", session)
    session.set_mode("plan")
    assert len(reminders(await it.run("plan it", session), "Plan mode is on")) == 1
    session.set_mode("default")
    run = await it.run("do it", session)
    assert len(reminders(run, "Plan mode is off")) == 1 and len(reminders(run, "Plan mode is on")) == 1


async def test_after_the_tools_nothing_is_told_twice(tmp_path: Path) -> None:
    it = kit(tmp_path, call("EnterPlanMode"), text("one"), call("ExitPlanMode", plan="p"), text("two"), text("three"))
    session = it.open()
    answering(session, {"behavior": "allow"})
    for prompt in ("plan", "leave", "go"):
        run = await it.run(prompt, session)
    assert reminders(run, "Plan mode is") == []


async def test_the_rules_are_told_again_when_the_history_was_replaced(tmp_path: Path) -> None:
    it = kit(tmp_path, text("one"), text("two"), permission_mode="plan")
    session = it.open()
    await it.run("go", session)
    await session.fire(session.make(SessionStart, source="compact"))
    assert len(reminders(await it.run("go on", session), "Plan mode is on")) == 2


# -- the plan file ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("setting", "folder"), [
    (None, ".config/plans"), ("docs/plans", "docs/plans"), ("./plans/", "plans"), ("a/../b", "b"),
    *((other, ".config/plans") for other in ("../elsewhere", "/tmp", ".", "", 5, "link", "link/sub", "a\0b", "~/x", ["plans"])),
])
async def test_plans_lie_in_the_project_or_in_the_config_folder(tmp_path: Path, setting: Any, folder: str) -> None:
    project = tmp_path / "project"
    (tmp_path / "outside").mkdir()
    project.mkdir()
    (project / "link").symlink_to(tmp_path / "outside")
    it = kit(project, session_id="s", settings={"plansDirectory": setting} if setting is not None else None)
    session = it.open()
    assert plan.plan_file(session) == project / folder / "s.md" == Path(session.plan_file or "")
    told = [m.data["content"] for m in it.outputs if getattr(m, "subtype", "") == "informational"]  # type: ignore[attr-defined]
    assert bool(told) == (setting is not None and folder == ".config/plans")


async def test_a_plan_that_cannot_be_read_or_kept_is_told_and_ends_nothing(tmp_path: Path) -> None:
    it = kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode", plan="p"), call("EnterPlanMode"), call("ExitPlanMode"),
             text("done"), session_id="s")
    (tmp_path / ".config" / "plans" / "s.md").mkdir(parents=True)
    session = it.open()
    answering(session, {"behavior": "allow"}, {"behavior": "allow"})
    run = await it.run("go", session)
    assert results(run)[1]["plan"] == "p" and results(run)[3]["plan"] is None and run.result.result == "done"
    assert any("could not be kept" in n for n in run.notices()) and any("cannot be read" in n for n in run.notices())


async def test_a_plan_in_any_encoding_and_size_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / ".config" / "plans" / "s.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff" + b"x" * (plan.PLAN_CHARS + 5))
    it = kit(tmp_path, call("EnterPlanMode"), call("ExitPlanMode"), text("done"), session_id="s")
    session = it.open()
    seen = answering(session, {"behavior": "allow"})
    await it.run("go", session)
    assert len(seen[0]["plan"]) == plan.PLAN_CHARS and seen[0]["plan"].startswith("\ufffdx")


# -- classes ------------------------------------------------------------------------------------------------------------
async def test_classes_and_schemas(tmp_path: Path) -> None:
    session = kit(tmp_path).open()
    await session.start()
    tools = {t.name: t for t in session.toolbox.offered}
    assert {n: (t.permission, t.is_read_only({}), t.is_concurrency_safe({})) for n, t in tools.items()} == {
        "AskUserQuestion": ("user", True, False), "EnterPlanMode": ("free", True, False), "ExitPlanMode": ("ask", True, False)}
    assert session.toolbox.by_name["exit_plan_mode"] is tools["ExitPlanMode"]
    assert all(f"# {n}\n" in session.system[0]["text"] for n in tools)
    json.dumps(session.toolbox.definitions)


async def test_a_subagent_leaves_plan_mode_only_where_it_is_in_it(tmp_path: Path) -> None:
    for mode, offered in (("default", []), ("plan", ["ExitPlanMode"])):
        session = kit(tmp_path, permission_mode=mode).open()
        session.agent_id = "agent"
        await session.start()
        assert [t.name for t in session.toolbox.offered] == offered
