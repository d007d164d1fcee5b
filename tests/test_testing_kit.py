"""The test kit tells authors the truth: events as a host makes them, failures that say what happened instead."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st

from kernel import EVENTS, PermissionRequestResult, PreToolUse, PreToolUseResult, ToolError, UsageError, Verdict
from kernel.answers import Decision
from kernel.events import encode
from kernel.testing import (
    FakeClock,
    Kit,
    Run,
    Skill,
    StubPolicy,
    Turn,
    alive,
    alive_with,
    ask_model,
    assert_allowed,
    assert_decision,
    assert_end,
    assert_golden,
    assert_refused,
    assert_request,
    assert_result,
    assert_triggers,
    by_words,
    call,
    event,
    golden,
    installed,
    module,
    plugin_folder,
    provides,
    read_skill,
    run_hook,
    story,
    text,
    until,
    wire,
)


# -- events -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", EVENTS)
def test_every_event_can_be_made_of_nothing(name: str) -> None:
    made = event(name)
    assert type(made) is EVENTS[name]
    assert wire(made) == json.loads(encode(made)) == wire(name) and wire(name)["hook_event_name"] == name
    assert made.permission_mode == ("default" if EVENTS[name].carries_mode else None)


def test_every_event_fits_the_contract(shared: Path) -> None:
    from jsonschema import Draft202012Validator

    contract = json.loads((shared / "contract" / "hook-events.json").read_text())
    for name in EVENTS:
        Draft202012Validator(contract[name]["input"]).validate(wire(name))


def test_given_fields_count() -> None:
    made: Any = event("PreToolUse", tool_name="Write", tool_input={"content": "x"}, cwd="/elsewhere", agent_id="a")
    assert (made.tool_name, made.tool_input, made.cwd, made.agent_id) == ("Write", {"content": "x"}, "/elsewhere", "a")
    assert wire(made)["tool_input"] == {"content": "x"}


@pytest.mark.parametrize(("name", "fields", "kind", "told"), [
    ("PreTolUse", {}, ValueError, "did you mean 'PreToolUse'?"), ("Nothing at all like it", {}, ValueError, "there is no event"),
    ("PreToolUse", {"tool": "Bash"}, TypeError, "PreToolUse has no field 'tool'; its fields are tool_name"),
    ("PreToolUse", {"tool_input": "ls"}, TypeError, "tool_input"), ("SessionStart", {"source": "boot"}, TypeError, "source"),
    ("Stop", {"stop_hook_active": 3}, TypeError, "stop_hook_active"),
    ("PreToolUse", {"tool_input": {"a": object()}}, TypeError, "PreToolUse: ")])
def test_what_is_no_such_event_is_said(name: str, fields: dict[str, Any], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=re.escape(told)):
        event(name, **fields)


# -- commands -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("command", "event_name", "decision", "reason"), [
    ("exit 0", "PreToolUse", None, ""), ("exit 1", "PreToolUse", None, ""), ("echo plain text", "PreToolUse", None, ""),
    ("echo no >&2; exit 2", "PreToolUse", "deny", "no"), ("echo no >&2; exit 2", "Stop", "block", "no"),
    ("echo '{\"decision\": 3}'", "PreToolUse", None, ""),
    ("""echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
        "permissionDecisionReason": "sure?"}}'""", "PreToolUse", "ask", "sure?"),
    ("""echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny",
        "message": "never"}}}'""", "PermissionRequest", "deny", "never"),
    ("""echo '{"decision": "block", "reason": "go on"}'; exit 3""", "Stop", None, ""),
    ("""echo '{"decision": "block", "reason": "go on"}'""", "Stop", "block", "go on")])
def test_a_handler_is_read_as_documented(tmp_path: Path, command: str, event_name: str, decision: str | None,
                                         reason: str) -> None:
    run = run_hook(command, event_name, cwd=tmp_path)
    assert (run.decision, run.reason) == (decision, reason)


def test_an_answer_that_does_not_fit_is_told(tmp_path: Path) -> None:
    assert "decision" in run_hook("echo '{\"decision\": 3}'", "PreToolUse", cwd=tmp_path).problem
    assert run_hook("echo '{}'", "PreToolUse", cwd=tmp_path).problem == ""


def test_a_handler_gets_event_folder_and_variables(tmp_path: Path) -> None:
    command = 'cat; printf "%s|%s|%s|%s" "$PWD" "$CLAUDE_PROJECT_DIR" "${CLAUDE_PLUGIN_ROOT}/x" "$MORE"'
    run = run_hook(command, "PreToolUse", cwd=tmp_path, plugin_root=Path("/plug in"), env={"MORE": "1"},
                   tool_input={"command": "é"})
    said, _, rest = run.stdout.rpartition("}")
    assert json.loads(said + "}")["tool_input"] == {"command": "é"} and json.loads(said + "}")["cwd"] == str(tmp_path)
    assert rest == f"{tmp_path}|{tmp_path}|/plug in/x|1"
    assert run_hook([sys.executable, "-c", "print('$HOME')"], "Stop", cwd=tmp_path).stdout == "$HOME\n"
    assert run_hook("printf '\\377'", "Stop", cwd=tmp_path).stdout == "\ufffd"


def test_a_handler_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_hook("exec sleep 60", "Stop", cwd=tmp_path, timeout=0.2)


# -- the kit ------------------------------------------------------------------------------------------------------------
def test_a_plugin_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no installed plugin 'no-such'.*pip install -e"):
        Kit(tmp_path, installed=["permissions", "no-such"])


def test_prompts_of_one_session_follow_each_other(kernel_kit: Callable[..., Kit]) -> None:
    run = kernel_kit(text("one"), text("two")).play("first", "second")
    assert run.text == "two" and len(run.requests) == 2
    assert_request(run, contains="first")
    assert_request(run, 0, lacks="second")


def test_a_plugin_folder_takes_part(kernel_kit: Callable[..., Kit], tmp_path: Path) -> None:
    folder = plugin_folder(tmp_path / "p", "says-no", {"hooks/hooks.json": {"hooks": {"UserPromptSubmit": [
        {"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]}}})
    kit = kernel_kit(plugin_dirs=[folder], installed=["command-hooks"])
    assert_decision(kit.play_event("UserPromptSubmit", prompt="hello"), "block", reason="no")


def test_what_is_installed_can_be_asked(tmp_path: Path) -> None:
    assert installed("permissions") and not installed("no-such")
    assert provides("policies", "rules") == ["permissions"] and provides("policies", "no-such") == []


def test_the_kit_sees_nothing_of_the_person(kernel_kit: Callable[..., Kit], tmp_path: Path) -> None:
    assert not [n for n in os.environ if n.startswith(("CLAUDE", "ANTHROPIC", "KERNEL_"))]
    assert os.environ["HOME"] != str(Path("~").expanduser()) or not list(Path.home().iterdir())


# -- assertions -----------------------------------------------------------------------------------------------------------
def deny(event: PreToolUse) -> PreToolUseResult:
    return PreToolUseResult(permission_decision="deny", permission_decision_reason="not today")


@pytest.fixture
def run(kernel_kit: Callable[..., Kit], probe: Any) -> Run:
    """One call that works, one that fails, one that is refused."""
    def broken(input: dict[str, Any], context: Any) -> str:
        raise ToolError("failed", "the tool broke")

    def guard(event: PreToolUse) -> PreToolUseResult | None:
        return deny(event) if event.tool_name == "Never" else None

    turns = [[call("Works", text="a"), call("Breaks")], call("Never"), call("Works", "again"), text("all done")]
    return kernel_kit(*turns, tools=[probe("Works"), probe("Breaks", broken), probe("Never")],
                      hooks={"guard": module(pre_tool_use=guard)}).play("go")


GOOD: dict[str, Callable[[Run], Any]] = {
    "result": lambda run: assert_result(run, "call_1", equals="ran {'text': 'a'}"),
    "error": lambda run: assert_result(run, "Breaks", contains="the tool broke", error=True),
    "either": lambda run: assert_result(run, "Breaks", error=None),
    "refused": lambda run: assert_refused(run, "Never", reason="not today"),
    "allowed": lambda run: [assert_allowed(run, call) for call in ("call_1", "Breaks", "again")],
    "end": lambda run: assert_end(run, text="all done"),
    "first request": lambda run: assert_request(run, 0, contains="go", lacks="ran", tools=["Works", "Never"],
                                                without_tools=["Bash"]),
    "last request": lambda run: assert_request(run, contains="Works {\"text\": \"a\"}", system="Working directory")}

BAD: dict[str, tuple[Callable[[Run], Any], str]] = {
    "unknown call": (lambda run: assert_result(run, "Nope"), "there was no call 'Nope'; calls were Works, Breaks, Never, Works"),
    "several calls": (lambda run: assert_result(run, "Works"), "Works was called 2 times; name the call by its id: call_1, ag"),
    "other text": (lambda run: assert_result(run, "call_1", equals="x"), "and not"),
    "part missing": (lambda run: assert_result(run, "call_1", contains="xyz"), "does not hold 'xyz'"),
    "should work": (lambda run: assert_result(run, "Breaks"), "was expected to work and did not"),
    "should fail": (lambda run: assert_result(run, "call_1", error=True), "was expected to fail and did not"),
    "not refused": (lambda run: assert_refused(run, "Breaks"), "was not refused"),
    "other reason": (lambda run: assert_refused(run, "Never", reason="tomorrow"), "does not hold 'tomorrow'"),
    "refused": (lambda run: assert_allowed(run, "Never"), "was refused"),
    "other end": (lambda run: assert_end(run, subtype="error_max_turns"), "ended with 'success'"),
    "other answer": (lambda run: assert_end(run, text="half"), "does not hold 'half'"),
    "no such request": (lambda run: assert_request(run, 9), "there is no request 9: 4 were sent"),
    "not asked": (lambda run: assert_request(run, contains="xyz"), "does not hold 'xyz'"),
    "asked": (lambda run: assert_request(run, lacks="go"), "holds 'go'"),
    "not offered": (lambda run: assert_request(run, tools=["Bash"]), "does not offer Bash; offered are Works, Breaks, Never"),
    "offered": (lambda run: assert_request(run, without_tools=["Works"]), "offers Works"),
    "not in the prompt": (lambda run: assert_request(run, system="xyz"), "the system prompt of request -1")}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_so_passes(run: Run, name: str) -> None:
    GOOD[name](run)


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_so_fails_and_says_what_was(run: Run, name: str) -> None:
    check, told = BAD[name]
    with pytest.raises(AssertionError) as caught:
        check(run)
    assert told in str(caught.value)


def test_a_failure_shows_the_run(run: Run) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_allowed(run, "Never")
    for part in ("user: go", 'call call_1: Works {"text": "a"}', "error call_2: ", "not today", "assistant: all done",
                 "refused: call_3"):
        assert part in str(caught.value)


@pytest.mark.parametrize(("answer", "decision", "reason"), [
    (None, None, ""), (PreToolUseResult(), None, ""),
    (PreToolUseResult(permission_decision="ask", permission_decision_reason="why"), "ask", "why"),
    (PreToolUseResult(decision="block", reason="why"), "block", "why"), (Verdict(behavior="deny", message="why"), "deny", "why"),
    (PermissionRequestResult(permission=Decision(behavior="deny", message="why")), "deny", "why")])
def test_decisions_of_every_form(answer: Any, decision: str | None, reason: str) -> None:
    assert_decision(answer, decision, reason=reason)
    with pytest.raises(AssertionError, match=f"decided: {decision or 'nothing'}, expected: {'nothing' if decision else 'deny'}"):
        assert_decision(answer, None if decision else "deny")
    if decision:
        with pytest.raises(AssertionError, match="the reason does not hold 'xyz': 'why'"):
            assert_decision(answer, decision, reason="xyz")


def test_the_decision_of_all_hooks_together(kernel_kit: Callable[..., Kit]) -> None:
    kit = kernel_kit(hooks={"guard": module(pre_tool_use=deny), "quiet": module(pre_tool_use=lambda event: None)})
    assert_decision(kit.play_event("PreToolUse"), "deny", reason="not today")
    assert_decision(kit.play_event(event("PreToolUse", tool_name="X")), "deny")


# -- golden transcripts ---------------------------------------------------------------------------------------------------
def played(cwd: Path, probe: Any, answer: str = "done") -> Run:
    cwd.mkdir(exist_ok=True)
    tool = probe("Where", lambda input, context: f"{context.cwd}/a.txt\nat 2026-01-01T00:00:00Z by {os.environ['HOME']}")
    return Kit(cwd, [call("Where"), text(answer)], tools=[tool]).play(f"where is {cwd}?")


def test_a_golden_transcript_is_the_same_elsewhere(tmp_path: Path, probe: Any) -> None:
    first, second = played(tmp_path / "one", probe), played(tmp_path / "two", probe)
    assert golden(first) == golden(second) == """\
user: where is $CWD?
call call_1: Where {}
result call_1: $CWD/a.txt
    at $TIME by $HOME
assistant: done
end: success (completed), 2 turns
"""
    assert str(tmp_path) in story(first)


def test_a_golden_transcript_is_written_compared_and_missed(tmp_path: Path, probe: Any) -> None:
    run, path = played(tmp_path / "w", probe), tmp_path / "golden" / "run.txt"
    with pytest.raises(AssertionError, match=r"there is no golden transcript .*--update-golden"):
        assert_golden(run, path)
    assert_golden(run, path, update=True)
    assert_golden(run, path)
    with pytest.raises(AssertionError, match=r"(?s)differs from the golden transcript.*-assistant: done.*\+assistant: other"):
        assert_golden(played(tmp_path / "w", probe, "other"), path)


def test_names_of_your_own_are_replaced(tmp_path: Path, probe: Any) -> None:
    assert "assistant: finished $WORD" in golden(played(tmp_path / "w", probe, "finished xyzzy"), {"xyzzy": "$WORD"})


def test_an_end_in_an_error_is_told(kernel_kit: Callable[..., Kit]) -> None:
    from kernel import ModelError

    told = story(kernel_kit(Turn(fail=ModelError("no such model", status=404, kind="not_found_error"))).play("go"))
    assert told == "user: go\nend: success (api_error), 1 turns\nerror: API Error 404: no such model\n"


# -- skills ---------------------------------------------------------------------------------------------------------------
def skill_file(folder: Path, frontmatter: str, body: str = "# Title\n\nDo this.\n\nThen that.\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\n{frontmatter}\n---\n{body}")
    return folder


@pytest.mark.parametrize(("frontmatter", "expected"), [
    ("name: x\ndescription: Does it.", ("x", "Does it.", True, True)), ("name: x", ("x", "Do this.", True, True)),
    ("description: Does it.", ("folder", "Does it.", True, True)),
    ("description: Does it.\nwhen_to_use: Now.", ("folder", "Does it. Now.", True, True)),
    ("description: d\ndisable-model-invocation: true", ("folder", "d", False, True)),
    ("description: d\nuser-invocable: no", ("folder", "d", True, False)), ("description: 3000", ("folder", "3000", True, True)),
    ("description: >-\n  Two\n  lines", ("folder", "Two lines", True, True))])
def test_a_skill_is_read_as_the_model_gets_to_know_it(tmp_path: Path, frontmatter: str, expected: tuple[Any, ...]) -> None:
    skill = read_skill(skill_file(tmp_path / "folder", frontmatter))
    assert (skill.name, skill.description, skill.listed, skill.typed) == expected


@pytest.mark.parametrize(("content", "told"), [
    ("no frontmatter", "begins with no frontmatter"), ("---\nname: x\n", "has no closing line"),
    ("---\n- a\n---\n", "must be a map"), ("---\na: b: c\n---\n", "should be in quotes"),
    ("---\na: 1\n b: [\n---\n", "does not parse")])
def test_a_skill_that_cannot_be_read_is_said(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "SKILL.md").write_text(content)
    with pytest.raises(AssertionError, match=told):
        read_skill(tmp_path)


def skill(name: str, description: str, **more: Any) -> Skill:
    return Skill(name=name, path=Path(name), description=description, body="", **more)


NOTES = skill("release-notes", "Writes release notes from the commits since the last tag. Use for a changelog entry.")
REVIEW = skill("review", "Reviews a diff before it is merged. Use for a pull request or a branch.")


@pytest.mark.parametrize(("prompt", "chosen"), [
    ("Write the release notes", "release-notes"), ("draft a CHANGELOG entry, please", "release-notes"),
    ("changelog", "release-notes"),
    ("Please review my pull request", "review"), ("reviewing the branches", "review"), ("What time is it?", None), ("", None),
    ("Tag the docker image and push it", None), ("the of and", None), ("Write a parser for dates", None)])
def test_words_choose(prompt: str, chosen: str | None) -> None:
    assert by_words([NOTES, REVIEW], prompt) == by_words([REVIEW, NOTES], prompt) == chosen


@given(st.lists(st.sampled_from("notes release tag review diff branch commit merge the a of".split()), max_size=6),
       st.permutations([NOTES, REVIEW, skill("other", "Commits and merges branches.")]))
def test_the_order_of_skills_changes_nothing(words: list[str], skills: list[Skill]) -> None:
    assert by_words(skills, " ".join(words)) == by_words(sorted(skills, key=lambda s: s.name), " ".join(words))


def test_all_that_is_wrong_is_said_at_once() -> None:
    hidden, empty = skill("hidden", "Deploys.", listed=False), skill("empty", "")
    with pytest.raises(AssertionError) as caught:
        assert_triggers([NOTES, REVIEW, hidden, empty], should_not=["Review the diff"], should={
            "review": ["Write the release notes"], "hidden": ["Deploy it"], "empty": ["x"], "absent": ["x"]})
    assert str(caught.value).splitlines() == [
        "'Write the release notes' should trigger review, and triggers release-notes; words in common: none",
        "hidden is not listed (disable-model-invocation), so no prompt triggers it",
        "empty has no description, so nothing triggers it",
        "there is no skill 'absent'; there are release-notes, review, hidden, empty",
        "'Review the diff' should trigger nothing, and triggers review; words in common: review, diff"]


def test_only_what_the_model_is_shown_counts() -> None:
    late = skill("late", "x" * 1_600 + " kubernetes deployment")
    with pytest.raises(AssertionError, match="triggers nothing"):
        assert_triggers([late], {"late": ["kubernetes deployment"]})


def test_a_model_can_be_asked_instead(tmp_path: Path, kernel_home: Path) -> None:
    """The script plays a model that calls the tool Skill for one prompt and not for the other."""
    script = tmp_path / "script.yaml"
    script.write_text("turns:\n  - calls:\n      - {tool: Skill, input: {skill: review}}\n")
    assert ask_model(f"script:{script}", tmp_path)([NOTES, REVIEW], "look at this") == "review"
    script.write_text("turns:\n  - text: no skill fits\n")
    assert ask_model(f"script:{script}", tmp_path)([NOTES, REVIEW], "hello") is None


# -- processes and stand-ins -----------------------------------------------------------------------------------------------
def test_processes_are_seen(tmp_path: Path) -> None:
    word = f"sleep-{tmp_path.name}-{os.getpid()}"
    process = subprocess.Popen(["sh", "-c", f"exec sleep 60 # {word}"])
    named = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", word])
    try:
        assert alive(process.pid)
        anyio.run(until, lambda: alive_with(word) == [named.pid])  # its command line is there once it runs
    finally:
        process.kill()
        named.kill()
    anyio.run(until, lambda: not alive(process.pid))  # a zombie until it is waited for
    process.wait()
    named.wait()
    assert not alive(process.pid) and alive_with(word) == []


def test_waiting_ends() -> None:
    with pytest.raises(TimeoutError):
        anyio.run(until, lambda: False, 0.05)


def test_a_clock_that_nobody_waits_for() -> None:
    clock = FakeClock()
    anyio.run(clock.sleep, 3600.0)
    assert clock.sleeps == [3600.0] and clock.monotonic() == 3600.0 and clock.now().hour == 1


def test_a_policy_that_keeps_what_it_was_asked(kernel_kit: Callable[..., Kit], probe: Any) -> None:
    policy = StubPolicy(lambda name, input: "deny")
    run = kernel_kit(call("Probe", n=1), text("no"), tools=[probe()], policy=policy).play("go")
    assert_refused(run, "Probe", reason="decided: deny")
    assert [c.input for c in policy.calls] == [{"n": 1}]
