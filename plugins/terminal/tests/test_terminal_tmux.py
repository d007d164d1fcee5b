"""The terminal as a person uses it: keys go in, the screen is looked at."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

for _plugin in ("kernel_model_script", "kernel_tools_shell", "kernel_tools_files", "kernel_permissions", "kernel_sessions"):
    pytest.importorskip(_plugin, reason="a plugin that the conversations need is not installed")


def bash(command: str, **more: Any) -> dict[str, Any]:
    return {"calls": [{"tool": "Bash", "input": {"command": command, **more}}]}


def settings(tmux: Any, name: str = "settings.local.json") -> dict[str, Any]:
    path: Path = tmux.project / ".claude" / name
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def test_a_prompt_is_answered_in_markdown(tmux: Any) -> None:
    tmux.script({"text": "# Title\n\nSome **bold** words.\n\n- one\n- two\n\n```python\nx = 1\n```\n\nThe end."}, pace=0.01)
    tmux.start()
    tmux.ready()
    tmux.type("hello there")
    shown = tmux.wait("> hello there", "The end.")
    assert "# Title" in shown and "Some bold words." in shown and "• one" in shown and "  x = 1" in shown
    assert shown.count("Some bold words.") == 1, "what was streamed is there once"
    tmux.type("/quit")
    shown = tmux.wait("ended with 0")
    session = re.search(r"kernel --resume ([0-9a-f-]{36}) --model script:talk.yaml", shown)
    assert session and list(tmux.config.rglob(f"{session[1]}.jsonl")), "it says how to go on with what was kept"


def test_a_prompt_on_the_command_line_is_submitted(tmux: Any) -> None:
    tmux.script({"text": "I heard: {{last_prompt}}"})
    tmux.start("what is this")
    tmux.wait("> what is this", "I heard: what is this")


def test_permission_once_with_a_rule_and_refused_with_words(tmux: Any) -> None:
    tmux.script(bash("touch a.txt"), bash("mkdir sub"), bash("touch c.txt"), {"text": "{{last_result}} - all done"})
    tmux.start("go")
    tmux.wait("$ touch a.txt", "Yes, this once", "Yes, and add the rule Bash(touch *)")
    tmux.key("1")
    tmux.wait("Yes, and add the rule Bash(mkdir *)", "settings.local.json", gone="Bash(touch *)")
    assert (tmux.project / "a.txt").exists() and not settings(tmux)
    tmux.key("Down", "Enter")
    tmux.wait("$ touch c.txt")
    assert settings(tmux) == {"permissions": {"allow": ["Bash(mkdir *)"]}}
    tmux.wait("3. No, and tell")
    tmux.key("3")
    tmux.wait("What instead")
    tmux.type("use the folder sub")
    shown = tmux.wait("all done")
    assert "The person refused the call and says: use the folder sub - all done" in shown
    assert not (tmux.project / "c.txt").exists() and "⊘ Bash touch c.txt · refused" in shown


def test_a_change_is_shown_before_it_is_allowed(tmux: Any) -> None:
    (tmux.project / "hello.py").write_text("a = 1\nb = 2\nc = 3\n")
    edit = {"file_path": "hello.py", "old_string": "b = 2", "new_string": "b = 22"}
    tmux.script({"calls": [{"tool": "Read", "input": {"file_path": "hello.py"}}]}, {"calls": [{"tool": "Edit", "input": edit}]},
                {"text": "changed"})
    tmux.start("go")
    shown = tmux.wait("The model wants to use Edit", "Yes, this once")
    assert "     2 - b = 2\n" in shown and "     2 + b = 22\n" in shown
    tmux.key("Enter")
    tmux.wait("● Edit hello.py · 1 added, 1 removed", "changed")
    assert (tmux.project / "hello.py").read_text() == "a = 1\nb = 22\nc = 3\n"


def test_the_screen_of_the_documentation_is_what_is_shown(tmux: Any) -> None:
    page = Path(__file__).parents[3] / "docs" / "terminal.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    wanted = next(block for block in page.read_text("utf-8").split("```") if "kernel 0.1.0 · " in block)
    (tmux.project / "hello.py").write_text('def greet(name):\n    return "Hello " + name\n')
    edit = {"file_path": "hello.py", "old_string": '"Hello " + name', "new_string": 'f"Hello {name}!"'}
    tmux.script({"text": "I will look at the file first.", "calls": [{"tool": "Read", "input": {"file_path": "hello.py"}}]},
                {"text": "Now the change.", "calls": [{"tool": "Edit", "input": edit}]})
    tmux.start("make the greeting friendlier", columns=79)
    tmux.wait("esc: no answer")
    shown = re.sub(r" · \d+\.\d s$", "", tmux.everything(), flags=re.MULTILINE)
    shown = re.sub(r"\s*".join(map(re.escape, str(tmux.project))), "/work", shown)

    # the folder's name may be long, so lines may break elsewhere than in the page
    assert "".join(shown[shown.index("kernel 0.1.0 · "):].split()) == "".join(wanted.split())


def test_a_running_command_is_interrupted_and_the_waiting_message_goes_next(tmux: Any) -> None:
    tmux.script(bash("touch began; sleep 300"), {"text": "I heard: {{last_prompt}}"})
    tmux.start("--allowedTools", "Bash", "--", "go")
    tmux.wait("Bash touch began; sleep 300")
    tmux.until((tmux.project / "began").exists)
    tmux.type("do something else")
    tmux.wait("waits: do something else")
    tmux.key("Escape")
    tmux.wait("interrupted", "> do something else", "I heard: do something else")


def test_words_reach_the_running_turn(tmux: Any) -> None:
    tmux.script(bash("touch began; while [ ! -e go ]; do sleep 0.05; done"), {"text": "first", "calls": [
        {"tool": "Bash", "input": {"command": "true"}}]}, {"text": "the end"})
    tmux.start("--allowedTools", "Bash", "--", "go")
    tmux.until((tmux.project / "began").exists)
    tmux.type("mind the gap")
    tmux.wait("waits: mind the gap")
    (tmux.project / "go").touch()
    tmux.wait("> mind the gap", "the end", gone="waits:")
    (transcript,) = tmux.config.rglob("projects/*/*.jsonl")
    assert "The user sent this message while you were working" in transcript.read_text()
    assert tmux.everything().count("> mind the gap") == 1


def test_commands_and_files_complete(tmux: Any) -> None:
    tmux.script({"text": "read {{last_prompt}}"})
    (tmux.project / "notes about.md").write_text("x")
    tmux.start()
    tmux.ready()
    tmux.type("/con", enter=False)
    tmux.wait("/context", "what fills the model's window")
    tmux.key("Tab", "Enter")
    tmux.wait("> /context", "tokens (")
    tmux.type("/mod", enter=False)
    tmux.wait("/model", "/mode")
    tmux.key("Tab")
    tmux.wait("> /mode ")
    tmux.key("Enter")
    tmux.wait("Which permission mode?")
    tmux.key("Escape")
    tmux.wait("The mode is default.")
    tmux.type("see @notes", enter=False)
    tmux.wait("  notes about.md")
    tmux.key("Tab")
    tmux.wait('> see @"notes about.md"')
    tmux.key("Enter")
    tmux.wait('read see @"notes about.md"')
    tmux.type("/nonsense")
    tmux.wait("There is no command /nonsense")


def test_a_conversation_is_picked_and_goes_on(tmux: Any) -> None:
    tmux.script({"text": "The first answer."}, {"text": "The second answer."})
    tmux.start("Remember the parrot")
    tmux.wait("The first answer.")
    tmux.type("/quit")
    tmux.wait("ended with 0")
    tmux.script({"text": "Another one.", "when": {"first_contains": "weather"}},
                {"text": "Still the parrot.", "when": {"first_contains": "parrot"}})
    tmux.start("What weather?")
    tmux.wait("Another one.")
    tmux.type("/resume")
    tmux.wait("Which conversation?", "1. Remember the parrot")
    tmux.key("Enter")
    tmux.wait("The conversation goes on:", "> Remember the parrot", "The first answer.")
    tmux.type("and now?")
    tmux.wait("Still the parrot.")
    tmux.key("C-d")
    tmux.wait("ended with 0")
    tmux.start("--resume")
    tmux.wait("Which conversation?", "2. What weather?")
    tmux.key("2")
    tmux.wait("The conversation goes on:", "Another one.")


def test_questions_of_the_model(tmux: Any) -> None:
    pytest.importorskip("kernel_tools_user")
    asked = {"questions": [
        {"question": "Which colour?", "header": "Colour",
         "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]},
        {"question": "Which sizes?", "header": "Size", "multiSelect": True, "options": [{"label": "S"}, {"label": "M"}]},
        {"question": "Why?", "header": "Why", "options": [{"label": "Fun"}, {"label": "Work"}]}]}
    tmux.script({"calls": [{"tool": "AskUserQuestion", "input": asked}]}, {"text": "{{last_result}} THE END"})
    tmux.start("go")
    tmux.wait("[Colour] Which colour? (1 of 3)", "1. Red  warm")
    tmux.key("2")
    tmux.wait("Which sizes? (2 of 3)")
    tmux.key("1", "2", "Enter")
    tmux.wait("Why? (3 of 3)")
    tmux.key("3")
    tmux.wait("Your answer")
    tmux.type("because I can")
    shown = tmux.wait("THE END")
    told = " ".join(shown[shown.index("The person answered"):].split())
    assert "Which colour? -> Blue Which sizes? -> S, M Why? -> because I can" in told


def test_a_plan_is_shown_and_approved(tmux: Any) -> None:
    pytest.importorskip("kernel_tools_user")
    tmux.script({"calls": [{"tool": "ExitPlanMode", "input": {"plan": "1. Look\n2. Leap"}}]}, {"text": "Leaping."})
    tmux.start("--permission-mode", "plan", "--", "go")
    tmux.wait("1. Look", "2. Leap", "The plan is ready. Go on with it?", "plan")
    tmux.key("2")
    tmux.wait("Leaping.")
    assert "acceptEdits" in tmux.screen()


def test_modes_are_walked_through(tmux: Any) -> None:
    tmux.script({"text": "x"})
    tmux.start()
    tmux.ready()
    for mode in ("acceptEdits", "plan", "default"):
        tmux.key("BTab")
        tmux.until(lambda mode=mode: f"· {mode}" in tmux.screen())


def test_it_fits_into_narrow_windows_without_colour(tmux: Any) -> None:
    tmux.script({"text": "Wide 漢字 characters 漢字漢字漢字漢字 and many, many words in one long line that has to be broken.",
                 **bash("echo one two three four five six seven eight nine ten")}, {"text": "end of it"})
    tmux.start("--allowedTools", "Bash(echo *)", "--", "go", columns=40, NO_COLOR="1")
    tmux.wait("end of it")
    screen = tmux.screen(colours=True)
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|10[0-7])[;m]", screen), "there is a colour"
    assert all(len(line) <= 40 for line in tmux.screen().splitlines())
    assert "words in" in screen and "● Bash" in tmux.screen()


def test_the_plain_form_says_everything_in_words(tmux: Any) -> None:
    (tmux.project / "hello.py").write_text("b = 2\n")
    edit = {"file_path": "hello.py", "old_string": "b = 2", "new_string": "b = 22"}
    tmux.script({"text": "A **word**.", "calls": [{"tool": "Read", "input": {"file_path": "hello.py"}}]},
                {"calls": [{"tool": "Edit", "input": edit}]}, {"text": "done"})
    tmux.start("go", KERNEL_TERMINAL_PLAIN="1")
    tmux.wait("Permission: The model wants to use Edit. Allow it?", "Detail: Removed line 1: b = 2",
              "Detail: Added line 1: b = 22", "Choice 1: Yes, this once", "Type a number from 1 to 3:")
    tmux.type("7")
    tmux.wait("that is no such number")
    tmux.type("1")
    shown = tmux.wait("Assistant: done")
    assert "Assistant: A **word**." in shown and "Tool started: Read: hello.py" in shown and "Tool finished: Edit" in shown
    assert "\x1b" not in tmux.everything(colours=True), "nothing is coloured, nothing moves"
    tmux.key("C-d")
    tmux.wait("ended with 0")


def test_a_dumb_terminal_gets_the_plain_form(tmux: Any) -> None:
    tmux.script({"text": "plain enough"})
    tmux.start("go", TERM="dumb")
    tmux.wait("kernel 0.1.0. Model: ", "Assistant: plain enough")


def test_control_c_twice_leaves(tmux: Any) -> None:
    tmux.script({"text": "x"})
    tmux.start()
    tmux.ready()
    tmux.type("some words", enter=False)
    tmux.wait("> some words")
    tmux.key("C-c")
    tmux.wait(gone="> some words")
    tmux.key("C-c")
    tmux.wait("ctrl-c once more leaves")
    tmux.key("C-c")
    tmux.wait("ended with 0")


def test_a_closed_terminal_leaves_a_session_that_can_be_resumed(tmux: Any) -> None:
    tmux.script(bash("touch began; sleep 300"), {"text": "on again"})
    (tmux.project / ".claude").mkdir()
    hook = {"hooks": [{"type": "command", "command": f"touch {tmux.folder}/session-end"}]}
    (tmux.config / "settings.json").write_text(json.dumps({"hooks": {"SessionEnd": [hook]}}))
    tmux.start("--allowedTools", "Bash", "--", "go")
    tmux.until((tmux.project / "began").exists)
    pid = int(tmux.run("list-panes", "-F", "#{pane_pid}"))
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    tmux.end()
    tmux.until(lambda: not any(Path(f"/proc/{child}/fd").exists() and os.path.exists(f"/proc/{child}/exe") for child in children))
    assert (tmux.folder / "session-end").exists(), "the session was closed, its hooks ran"
    (transcript,) = tmux.config.rglob("projects/*/*.jsonl")
    tmux.script({"text": "on again"})
    tmux.start("--resume", transcript.stem)
    tmux.wait("goes on:")
    tmux.type("go on")
    tmux.wait("on again")


def test_what_a_model_writes_does_not_steer_the_terminal(tmux: Any) -> None:
    tmux.script({"text": "one \x1b]0;stolen\x07 two \x1b[2J\x1b[H three \x9b31m four"}, )
    tmux.start("go")
    tmux.wait("> go", "one", "three", "four")
    assert "stolen" not in tmux.run("display-message", "-p", "#{pane_title}")


def test_a_folder_is_trusted_once_and_then_counts(tmux: Any) -> None:
    (tmux.config / ".claude.json").write_text('{"numStartups": 7}')
    (tmux.project / ".claude").mkdir()
    mine = {"permissions": {"allow": ["Bash(touch *)"]}, "env": {"COLOUR": "green"}, "hooks": {
        "SessionStart": [{"hooks": [{"type": "command", "command": "touch hook-ran"}]}]}}
    (tmux.project / ".claude" / "settings.json").write_text(json.dumps(mine))
    tmux.script(bash("touch a.txt"), {"text": "done it"})
    tmux.start("go")
    shown = tmux.wait("Do you trust this folder?", "1. Yes, I trust it")
    assert "SessionStart: touch hook-ran" in shown and "Bash(touch *)" in shown and "COLOUR=green" in shown
    assert not (tmux.project / "hook-ran").exists()
    tmux.key("1")
    tmux.wait("done it")
    assert (tmux.project / "a.txt").exists() and (tmux.project / "hook-ran").exists()
    kept = json.loads((tmux.config / ".claude.json").read_text())
    assert kept["numStartups"] == 7 and kept["projects"][str(tmux.project)]["hasTrustDialogAccepted"] is True
    tmux.type("/quit")
    tmux.wait("ended with 0")
    tmux.start("go")
    assert "Do you trust" not in tmux.wait("done it")


def test_keys_meant_for_the_input_line_do_not_answer_a_question(tmux: Any) -> None:
    """Whoever types while a question comes up has not seen it."""
    tmux.script({"delay": 2, "text": "now", **bash("touch a.txt")}, {"text": "the end"})
    tmux.start("go")
    tmux.wait("Thinking")
    tmux.until(lambda: tmux.type("1", enter=False) or "Allow it?" in tmux.screen())  # a person who types on
    for _ in range(5):
        tmux.type("1", enter=False)
    assert "Allow it?" in tmux.screen() and not (tmux.project / "a.txt").exists()
    time.sleep(1.0)  # the pause is what makes the difference
    tmux.type("1", enter=False)
    tmux.wait("the end")
    assert (tmux.project / "a.txt").exists()


def test_a_server_of_the_folder_is_asked_about(tmux: Any) -> None:
    pytest.importorskip("kernel_mcp")
    server = {"command": sys.executable, "args": ["-c", ""]}
    (tmux.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"local": server}}))
    tmux.script({"text": "hello"})
    tmux.start("go")
    tmux.wait("The MCP server local stands in this folder's .mcp.json. Use it?")
    tmux.key("2")
    tmux.wait("hello")
    assert settings(tmux) == {"disabledMcpjsonServers": ["local"]}


def test_words_for_a_running_turn_pass_the_hooks_of_a_prompt(tmux: Any) -> None:
    pytest.importorskip("kernel_command_hooks")
    command = "grep -q forbidden && { echo 'not these words' >&2; exit 2; }; exit 0"
    (tmux.config / "settings.json").write_text(json.dumps(
        {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}}))
    tmux.script(bash("touch began; while [ ! -e go ]; do sleep 0.05; done"), {"text": "the end"})
    tmux.start("--allowedTools", "Bash", "--", "go")
    tmux.until((tmux.project / "began").exists)
    tmux.type("forbidden words")
    tmux.wait("waits: forbidden words")
    (tmux.project / "go").touch()
    tmux.wait("blocked the message", "not these words", "the end")
    (transcript,) = tmux.config.rglob("projects/*/*.jsonl")
    assert "forbidden words" not in transcript.read_text()


def test_agents_and_background_commands_have_rows(tmux: Any) -> None:
    pytest.importorskip("kernel_subagents")
    (tmux.config / "agents").mkdir()
    (tmux.config / "agents" / "looker.md").write_text("---\nname: looker\ndescription: looks\n---\nLook.\n")
    (tmux.project / "a.txt").write_text("x")
    first = {"first_contains": "hello"}
    look = {"tool": "Agent", "input": {"description": "look around", "subagent_type": "looker", "prompt": "look now"}}
    serve = {"tool": "Bash", "input": {"command": "sleep 300", "run_in_background": True, "description": "A long server"}}
    tmux.script({"when": first, "calls": [look, serve]}, {"when": first, "text": "started"},
                {"when": first, "text": "All is well."},
                {"when": {"first_contains": "look now"}, "calls": [{"tool": "Read", "input": {"file_path": "a.txt"}}]},
                {"when": {"first_contains": "look now"}, "text": "One file."})
    tmux.start("--allowedTools", "Bash", "--", "hello")
    tmux.wait("● Agent look around", "● Bash sleep 300 · goes on in the background", 'Agent "look around" completed',
              "All is well.")
    tmux.until(lambda: "1 in the background" in tmux.screen())
    tmux.type("/tasks")
    shown = tmux.wait("A long server", "/stop TASK ends one.")
    (task,) = re.findall(r"(\w+)  running    A long server", shown)
    tmux.type(f"/stop {task}")
    tmux.wait('"A long server" was stopped')
    tmux.until(lambda: "in the background" not in tmux.screen().rstrip().splitlines()[-1])
    assert tmux.everything().count('Agent "look around" completed') == 1


def test_the_history_file_is_private(tmux: Any) -> None:
    tmux.script({"text": "x", "repeat": True})
    tmux.start()
    tmux.ready()
    tmux.type("remember me")
    tmux.wait("> remember me")
    path = tmux.config / "kernel" / "history"
    tmux.until(lambda: path.exists() and "+remember me" in path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    tmux.key("Up")
    tmux.until(lambda: tmux.screen().count("> remember me") == 2)


def test_suspended_and_back(tmux: Any) -> None:
    tmux.script({"text": "still here"})
    tmux.trust()
    tmux.open("bash --norc -i")
    env = f"HOME={tmux.home} CLAUDE_CONFIG_DIR={tmux.config}"
    tmux.type(f"cd {tmux.project}; {env} {sys.executable} -m kernel --model script:talk.yaml")
    tmux.ready()
    tmux.key("C-z")
    tmux.wait("Stopped")
    tmux.type("fg")
    tmux.until(lambda: tmux.screen().rstrip().endswith("/help"))
    tmux.type("hello")
    tmux.wait("still here")


def test_a_narrower_window_goes_on(tmux: Any) -> None:
    tmux.script({"text": "word " * 60})
    tmux.start()
    tmux.ready()
    tmux.run("resize-window", "-x", "50", "-y", "20")
    tmux.type("hello")
    tmux.wait("> hello", "word word")
    assert all(len(line) <= 50 for line in tmux.screen().splitlines())
