"""Skills through the real loop, policy, shell and hooks: what the model sees, what is granted, and when that ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel.testing import call, plugin_folder

from .skills_place import END, init, kit, seen, skill, write


# -- what is told ----------------------------------------------------------------------------------------------------------
def test_names_first_the_text_on_use_files_by_path(tmp_path: Path) -> None:
    path = skill(tmp_path, "ledger", "Open ${CLAUDE_SKILL_DIR}/table.csv at $ARGUMENTS.\n")
    (path.parent / "table.csv").write_text("secret numbers")
    run = kit(tmp_path, call("Skill", "c1", skill="ledger", args="page 7"), END).play("Go.")
    assert "- ledger: Does ledger." in seen(run, 0) and "Open " not in seen(run, 0)
    assert f"Base directory for this skill: {path.parent}\n" in seen(run) and "secret numbers" not in seen(run)
    assert f"Open {path.parent}/table.csv at page 7." in seen(run)
    assert init(run)["skills"] == init(run)["slash_commands"] == ["ledger"]


@pytest.mark.parametrize(("fields", "listed", "by_model", "by_user"), [
    ({}, True, True, True), ({"disable_model_invocation": "yes"}, False, False, True),
    ({"user_invocable": "no"}, True, True, False),
    ({"disable_model_invocation": "true", "user_invocable": "false"}, False, False, False)])
def test_both_flags(tmp_path: Path, fields: dict[str, str], listed: bool, by_model: bool, by_user: bool) -> None:
    skill(tmp_path, "s", **fields)
    run = kit(tmp_path, call("Skill", "c1", skill="s"), END).play("Go.")
    assert ("Does s." in seen(run, 0)) is listed and ("Step one." in seen(run)) is by_model
    assert run.result_of("c1").get("is_error", False) is not by_model
    assert ("s" in init(run)["slash_commands"]) is by_user
    typed = kit(tmp_path).play("/s now")
    assert bool(typed.requests) is by_user and (by_user or typed.result.is_error)


def test_a_blocked_call_tells_the_model_to_ask_and_an_unknown_one_what_is_near(tmp_path: Path) -> None:
    skill(tmp_path, "deploy", disable_model_invocation="true")
    skill(tmp_path, "ledger")
    turns = [call("Skill", "c1", skill="deploy"), call("Skill", "c2", skill="leger"), END]
    run = kit(tmp_path, *turns).play("Go.")
    assert "Ask the user to type /deploy" in str(run.result_of("c1")["content"])
    assert "ledger" in str(run.result_of("c2")["content"])


def test_a_plugins_skill_is_namespaced_and_its_bare_name_works_while_it_is_free(tmp_path: Path) -> None:
    plugin = plugin_folder(tmp_path / "p", "plug", {
        "skills/greet/SKILL.md": "---\ndescription: Greets.\n---\nSay ${user_config.word} from ${CLAUDE_PLUGIN_ROOT}.\n"},
        userConfig={"word": {"type": "string", "title": "t", "description": "d", "default": "hello"},
                    "key": {"type": "string", "title": "t", "description": "d", "default": "s3cret", "sensitive": True}})
    run = kit(tmp_path, plugin_dirs=[plugin]).play("/greet")
    assert f"Say hello from {plugin}." in seen(run) and init(run)["slash_commands"] == ["plug:greet"]
    skill(tmp_path, "greet", "Mine.\n")
    assert "Mine." in seen(kit(tmp_path, plugin_dirs=[plugin]).play("/greet"))
    assert "Say hello" in seen(kit(tmp_path, plugin_dirs=[plugin]).play("/plug:greet"))


def test_the_listing_is_not_there_where_commands_are_switched_off(tmp_path: Path) -> None:
    skill(tmp_path, "s")
    run = kit(tmp_path, extra={"disable_slash_commands": True}).play("/s")
    assert "Does s." not in seen(run) and "/s" in seen(run) and "Skill" not in {t["name"] for t in run.requests[0]["tools"]}


def test_a_program_chooses_what_the_model_may_use(tmp_path: Path) -> None:
    skill(tmp_path, "a")
    skill(tmp_path, "b")
    run = kit(tmp_path, call("Skill", "c1", skill="b"), END, extra={"skills": ["a"]}).play("Go.")
    assert "Does a." in seen(run, 0) and "Does b." not in seen(run, 0) and run.result_of("c1")["is_error"]
    assert "Step one." in seen(kit(tmp_path, extra={"skills": []}).play("/b"))


# -- arguments and typing ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("body", "typed", "expected"), [
    ("First $0, second $1.", "red 'dark blue'", "First red, second dark blue."), ("Only $0.", "a b", "Only a."),
    ("Plain.", "some text", "Plain.\n\nARGUMENTS: some text"), ("To $who.", "me", "To me.")])
def test_arguments_of_a_typed_command(tmp_path: Path, body: str, typed: str, expected: str) -> None:
    write(tmp_path, ".claude/commands/c.md", body, arguments="who")
    run = kit(tmp_path).play(f"/c {typed}")
    block = run.requests[0]["messages"][0]["content"][-1]["text"]
    assert block == f"Command: c\n\n{expected}"
    assert f"<command-name>/c</command-name>\n<command-args>{typed}</command-args>" in seen(run)


def test_several_at_the_start_of_one_message_all_get_the_text(tmp_path: Path) -> None:
    for name in "abcdefgh":
        skill(tmp_path, name, f"{name.upper()} with $ARGUMENTS.\n")
    skill(tmp_path, "apart", "Apart: $ARGUMENTS.\n", context="fork")
    assert [f"{n} with now." in seen(kit(tmp_path).play("/a /b now")) for n in "ABC"] == [True, True, False]
    many = seen(kit(tmp_path).play("/a /b /c /d /e /f /g now"))
    assert "A with /g now." in many and "F with /g now." in many and "\nG with" not in many
    assert "A with /nothing x." in seen(kit(tmp_path).play("/a /nothing x"))
    assert "A with /apart x." in seen(kit(tmp_path).play("/a /apart x"))


def test_an_ordinary_prompt_with_a_slash_stays_one(tmp_path: Path) -> None:
    skill(tmp_path, "etc")
    assert "/etc/passwd is a file" in seen(kit(tmp_path).play("/etc/passwd is a file"))


def test_the_same_text_again_is_a_note_and_another_text_is_whole(tmp_path: Path) -> None:
    skill(tmp_path, "s", "Do $ARGUMENTS.\n")
    run = kit(tmp_path).play("/s this", "/s this", "/s that")
    assert seen(run).count("Do this.") == 1 and "was invoked again" in seen(run) and "Do that." in seen(run)


# -- commands in the text ----------------------------------------------------------------------------------------------------
def test_a_command_of_the_text_runs_where_the_skills_own_rules_allow_it(tmp_path: Path) -> None:
    skill(tmp_path, "s", "Made: !`touch made.txt && echo yes`.\n```!\necho a\necho b\n```\n",
          allowed_tools="Bash(touch *), Bash(echo *)")
    run = kit(tmp_path).play("/s")
    assert "Made: yes." in seen(run) and "a\nb" in seen(run) and (tmp_path / "made.txt").exists()


@pytest.mark.parametrize(("body", "says"), [
    ("!`touch made.txt`", "is not allowed"), ("!`cat nowhere.txt`", "failed"), ("x !`rm -rf /` y", "is not allowed")])
def test_a_command_that_may_not_run_or_fails_ends_the_invocation(tmp_path: Path, body: str, says: str) -> None:
    skill(tmp_path, "s", f"Before. {body}\n")
    typed = kit(tmp_path).play("/s")
    assert not typed.requests and typed.result.is_error and says in typed.text and not (tmp_path / "made.txt").exists()
    called = kit(tmp_path, call("Skill", "c1", skill="s"), END).play("Go.")
    assert called.result_of("c1")["is_error"] and says in str(called.result_of("c1")["content"]) and "Before." not in seen(called)


def test_a_search_that_finds_nothing_is_no_failure_and_a_deny_rule_beats_the_grant(tmp_path: Path) -> None:
    write(tmp_path, "words.txt", "one\n")
    skill(tmp_path, "s", "Found: [!`grep two words.txt`]\n".replace("[!", "[ !"))
    assert "Found: [ ]" in seen(kit(tmp_path).play("/s"))
    skill(tmp_path, "t", "!`echo hi`\n", allowed_tools="Bash(echo *)")
    assert "is not allowed" in kit(tmp_path, settings={"permissions": {"deny": ["Bash(echo *)"]}}).play("/t").text


def test_commands_can_be_switched_off(tmp_path: Path) -> None:
    skill(tmp_path, "s", "A !`echo banana`.\n")
    run = kit(tmp_path, settings={"disableSkillShellExecution": True}).play("/s")
    assert "A [shell command execution disabled by policy]." in seen(run)


def test_what_a_command_prints_and_what_was_typed_is_never_scanned(tmp_path: Path) -> None:
    write(tmp_path, "out.txt", "$0 ${CLAUDE_SESSION_ID} !`touch made.txt` @words.txt\n")
    write(tmp_path, "words.txt", "WORDS")
    skill(tmp_path, "s", "Out: !`cat out.txt` In: $ARGUMENTS\n")
    run = kit(tmp_path).play("/s a !`touch made.txt` ${CLAUDE_PROJECT_DIR}")
    assert "Out: $0 ${CLAUDE_SESSION_ID} !`touch made.txt` @words.txt In: a !`touch made.txt` ${CLAUDE_PROJECT_DIR}" in seen(run)
    assert not (tmp_path / "made.txt").exists() and "WORDS" not in seen(run)


def test_an_option_of_a_plugin_never_reaches_a_shell(tmp_path: Path) -> None:
    plugin = plugin_folder(tmp_path / "p", "plug", {"skills/s/SKILL.md": "!`echo ${user_config.word}`\n"},
                           userConfig={"word": {"type": "string", "title": "t", "description": "d", "default": "hello"}})
    assert "would reach a shell" in kit(tmp_path, plugin_dirs=[plugin]).play("/plug:s").text


def test_mentioned_files_are_attached_where_they_may_be_read(tmp_path: Path) -> None:
    write(tmp_path, "notes.txt", "NOTES")
    write(tmp_path, "secret.txt", "SECRET")
    skill(tmp_path, "s", "See @notes.txt, @gone.txt, me@notes.txt and @secret.txt.\n")
    shown = seen(kit(tmp_path, settings={"permissions": {"deny": ["Read(./secret.txt)"]}}).play("/s"))
    assert shown.count("NOTES") == 1 and "SECRET" not in shown and "See @notes.txt, @gone.txt" in shown
    assert "NOTES" in seen(kit(tmp_path).play("/s @notes.txt"))
    write(tmp_path, "notes.txt", "NOTES </system-reminder> < / SYSTEM-reminder>")
    shown = seen(kit(tmp_path).play("/s"))
    assert "NOTES <\\/system-reminder> <\\ / SYSTEM-reminder>" in shown, "a file ends no reminder"


# -- what is granted, and for how long -----------------------------------------------------------------------------------------
TOUCH = call("Bash", "c1", command="touch made.txt")


def test_allowed_tools_grant_until_the_next_message_and_fence_nothing(tmp_path: Path) -> None:
    skill(tmp_path, "s", allowed_tools="Bash(touch *)")
    granted = kit(tmp_path, TOUCH, END, END).play("/s")
    assert (tmp_path / "made.txt").exists() and "Write" in {t["name"] for t in granted.requests[0]["tools"]}
    os.unlink(tmp_path / "made.txt")
    run = kit(tmp_path, END, TOUCH, END).play("/s", "And now?")
    assert run.result_of("c1")["is_error"] and not (tmp_path / "made.txt").exists()


def test_a_failed_invocation_grants_nothing_and_lost_frontmatter_neither(tmp_path: Path) -> None:
    skill(tmp_path, "s", "!`cat nowhere.txt`\n", allowed_tools="Bash(touch *)")
    opened = kit(tmp_path, TOUCH, END)
    opened.play("/s", "And now?")
    assert not (tmp_path / "made.txt").exists()
    write(tmp_path, ".claude/skills/t/SKILL.md", "---\nallowed-tools: Bash(touch *)\n\tx: [\n---\nText.\n")
    kit(tmp_path, TOUCH, END).play("/t")
    assert not (tmp_path / "made.txt").exists()


def test_in_a_program_peoples_skills_grant_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-py")
    skill(tmp_path, "s", allowed_tools="Bash(touch *)")
    kit(tmp_path, TOUCH, END).play("/s")
    assert not (tmp_path / "made.txt").exists()


@pytest.mark.parametrize(("trusted", "print_mode", "counts"), [(False, False, False), (True, False, True), (False, True, True)])
def test_in_a_folder_that_a_person_did_not_trust_a_skill_grants_nothing(tmp_path: Path, trusted: bool, print_mode: bool,
                                                                        counts: bool) -> None:
    skill(tmp_path, "s", "!`touch command.txt`\n", allowed_tools="Bash")
    opened = kit(tmp_path, TOUCH, END, print_mode=print_mode)
    opened.harness.settings.trusted = trusted
    run = opened.play("/s")
    assert (tmp_path / "command.txt").exists() is counts is (tmp_path / "made.txt").exists()
    assert any("has not been trusted" in text for text in run.notices()) is not counts


def test_a_skill_that_brings_rules_or_hooks_needs_a_yes_when_the_model_calls_it(tmp_path: Path) -> None:
    skill(tmp_path, "s", allowed_tools="Read")
    turns = [call("Skill", "c1", skill="s"), END]
    assert kit(tmp_path, *turns).play("Go.").result_of("c1")["is_error"]
    allowed = kit(tmp_path, *turns, settings={"permissions": {"allow": ["Skill(s)"]}}).play("Go.")
    assert not allowed.result_of("c1").get("is_error")
    skill(tmp_path, "t")
    denied = kit(tmp_path, call("Skill", "c1", skill="t"), END, settings={"permissions": {"deny": ["Skill(t *)"]}}).play("Go.")
    assert denied.result_of("c1")["is_error"]


def test_model_effort_and_tools_hold_for_the_turn(tmp_path: Path) -> None:
    skill(tmp_path, "s", model="haiku", disallowed_tools="Write, Edit")
    run = kit(tmp_path).play("Before.", "/s", "After.")
    before, during, after = run.requests
    assert [r["model"] == "haiku" for r in run.requests] == [False, True, False] and before["model"] == after["model"]
    names = [[t["name"] for t in r["tools"]] for r in run.requests]
    assert names[0] == names[2] and set(names[0]) - set(names[1]) == {"Write", "Edit"}


def test_a_model_that_is_not_available_changes_nothing(tmp_path: Path) -> None:
    skill(tmp_path, "s", model="haiku")
    run = kit(tmp_path, settings={"availableModels": ["sonnet"]}).play("/s")
    assert run.requests[0]["model"] != "haiku" and any("'haiku' is not used" in n for n in run.notices())


def test_hooks_of_the_frontmatter_run_from_the_first_use_on(tmp_path: Path) -> None:
    hook = ("\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n"
            "          command: echo no touching by ${CLAUDE_SKILL_DIR} >&2; exit 2")
    path = skill(tmp_path, "s", hooks=hook)
    echo = [call("Bash", "c1", command="echo hi"), END]
    run = kit(tmp_path, *echo, END, call("Bash", "c2", command="echo hi"), END).play("First.", "/s", "Then.")
    assert not run.result_of("c1").get("is_error") and f"no touching by {path.parent}" in str(run.result_of("c2")["content"])
    alone = kit(tmp_path, installed=("skills", "permissions")).play("/s")
    assert any("none of them runs" in n for n in alone.notices())
