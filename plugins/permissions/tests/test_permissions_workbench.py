"""``kernel permissions``: explain, test and check through the command line."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from kernel_permissions.workbench.app import main
from kernel_permissions.workbench.batch import Batch
from kernel_permissions.workbench.files import entries, shown

from kernel import Session
from kernel.testing import Kit

SETTINGS = """{
  "model": "x",
  "permissions": {
    "defaultMode": "default",
    "allow": ["Bash(npm test *)",
              "Bash(git log *)", "Bash(sleep *)"],
    "ask": [
      "Bash(git commit *)"
    ],
    "deny": [
      "Bash(git push *)",
      "Read(./.env)"
    ]
  }
}
"""


class World:
    """A project with settings, a home without any, and the command line in it."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        (self.home / ".claude").mkdir(parents=True)
        (self.project / ".claude").mkdir(parents=True)
        self.settings = self.project / ".claude" / "settings.json"
        self.settings.write_text(SETTINGS)
        self.trust()

    def trust(self, trusted: bool = True) -> None:
        projects = {str(self.project): {"hasTrustDialogAccepted": trusted}}
        (self.home / ".claude.json").write_text(json.dumps({"projects": projects}))

    def run(self, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "KERNEL", "ANTHROPIC"))}
        return subprocess.run([sys.executable, "-m", "kernel", "permissions", *args], cwd=self.project, input=stdin,
                              capture_output=True, timeout=60, env={**environment, "HOME": str(self.home)})

    def explain(self, command: str, *args: str) -> dict[str, Any]:
        done = self.run("explain", "--tool", "Bash", "--input", json.dumps({"command": command}), "--json", *args)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# -- explain ---------------------------------------------------------------------------------------------------------------
def test_the_deciding_rule_is_named_with_scope_file_and_line(world: World) -> None:
    report = world.explain("npm test && timeout 5 git push origin main")
    assert report["decision"] == "deny"
    assert report["rule"] == {"text": "Bash(git push *)", "list": "deny", "scope": "project", "file": str(world.settings),
                              "line": 11}


def test_each_part_of_a_command_has_its_own_verdict_and_forms(world: World) -> None:
    report = world.explain("npm test -- -v && ls; git commit -m x | timeout 5 git push origin main")
    verdicts = {p["text"]: (p["decision"], (p["rule"] or {}).get("line")) for p in report["parts"]}
    assert verdicts == {"npm test -- -v": ("allow", 5), "ls": ("allow", None), "git commit -m x": ("ask", 8),
                        "timeout 5 git push origin main": ("deny", 11)}
    push = report["parts"][-1]["forms"]
    assert push["allow"] == ["timeout 5 git push origin main", "git push origin main"]
    assert "git push origin main" in push["ask_and_deny"]


def test_a_part_is_decided_where_it_stands(world: World) -> None:
    """A change of directory beside it counts."""
    alone, beside = world.explain("git status"), world.explain("cd / && git status")
    assert (alone["decision"], beside["decision"]) == ("allow", "ask")
    assert [p["decision"] for p in beside["parts"]] == ["ask", "ask"]


def test_it_says_that_hooks_are_not_asked(world: World) -> None:
    settings = json.loads(world.settings.read_text())
    hook = {"hooks": [{"type": "command", "command": "touch asked; exit 2"}]}
    world.settings.write_text(json.dumps({**settings, "hooks": {"PreToolUse": [hook]}}))
    report = world.explain("ls")
    assert (report["decision"], report["hooks_asked"]) == ("allow", False) and not (world.project / "asked").exists()
    told = world.run("explain", "--tool", "Bash", "--input", '{"command": "ls"}').stdout.decode()
    assert "kernel hooks test PreToolUse --tool Bash" in told


@pytest.mark.parametrize(("mode", "decision", "reason"), [
    ("default", "ask", "other"), ("dontAsk", "deny", "mode"), ("bypassPermissions", "allow", "mode"), ("plan", "ask", "mode"),
    ("manual", "ask", "other")])
def test_the_mode_can_be_chosen(world: World, mode: str, decision: str, reason: str) -> None:
    report = world.explain("make", "--mode", mode)
    assert (report["decision"], report["reason_type"]) == (decision, reason)


def test_steps_are_told_in_their_order(world: World) -> None:
    report = world.explain("make")
    assert [s.split(" ", 1)[0] for s in report["steps"]] == ["2", "3", "4", "5", "6", "7", "8", "9"]
    assert report["suggestions"][0]["rules"] == [{"toolName": "Bash", "ruleContent": "make"}]


def test_untrusted_rules_do_not_count_and_that_is_said(world: World) -> None:
    world.trust(False)
    report = world.explain("npm test")
    assert report["decision"] == "ask" and any("not been trusted" in w for w in report["warnings"])


def test_a_command_that_is_not_understood_says_so(world: World) -> None:
    report = world.explain("coproc ls")
    assert report["decision"] == "ask" and "coproc" in report["not_understood"] and report["parts"] == []


def test_other_tools_are_explained_too(world: World) -> None:
    done = world.run("explain", "--tool", "Read", "--input", '{"file_path": "sub/../.env"}', "--json")
    report = json.loads(done.stdout)
    assert (report["decision"], report["rule"]["line"]) == ("deny", 12)


def test_settings_of_the_command_line_count(world: World) -> None:
    report = world.explain("make", "--settings", '{"permissions": {"allow": ["Bash(make)"]}}')
    assert (report["decision"], report["rule"]["scope"], report["rule"]["file"]) == ("allow", "cli", "--settings")


def test_people_get_a_text(world: World) -> None:
    done = world.run("explain", "--command", "npm test && git push")
    text = done.stdout.decode()
    assert done.returncode == 0 and text.startswith("DENY  Bash")
    assert f"deny Bash(git push *)  [project]  {world.settings}:11" in text and "allow Bash(npm test *)" in text


@pytest.mark.parametrize(("args", "said"), [
    ([], "either --input or --command"), (["--input", "{"], "no JSON"), (["--input", "[]"], "one JSON object"),
    (["--tool", "Bsah", "--input", "{}"], "did you mean Bash?"),
    (["--command", "ls", "--mode", "fast"], "unknown permission mode"),
    (["--command", "ls", "--cwd", "/nowhere"], "is no folder"), (["--command", "ls", "--settings", "none.json"], "regular file"),
    (["--nonsense"], "--nonsense")])
def test_wrong_usage_is_2_and_says_what_is_wrong(world: World, args: list[str], said: str) -> None:
    done = world.run("explain", *args)
    assert done.returncode == 2 and said in done.stderr.decode() and b"Traceback" not in done.stderr


def test_nothing_of_a_command_moves_the_cursor(world: World) -> None:
    done = world.run("explain", "--command", "git push \x1b[2J\u202e")
    assert b"\x1b" not in done.stdout and "\u202e" not in done.stdout.decode() and rb"\x1b" in done.stdout


@given(st.text(max_size=50))
def test_shown_texts_are_printable(text: str) -> None:
    assert shown(text, 100).isprintable()
    shown(text, 100).encode()


# -- where a rule stands -------------------------------------------------------------------------------------------------------
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.lists(
    inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8)


@given(st.lists(JSON, max_size=5), st.dictionaries(st.text(max_size=4), JSON, max_size=3), st.sampled_from([None, 1, 3]))
def test_positions_are_those_of_the_values(items: list[Any], more: dict[str, Any], indent: int | None) -> None:
    """Whatever stands around them: each item is found, and its text begins at its position."""
    text = json.dumps({**more, "permissions": {**more, "allow": items}}, indent=indent)
    found = entries(text, ("permissions", "allow"))
    assert [v for v, _ in found] == items
    assert all(json.JSONDecoder().raw_decode(text, at)[0] == v for v, at in found)


@pytest.mark.parametrize("text", ["", "{", '{"permissions', '{"permissions": {"allow": [', "[]", "5", '{"permissions": 5}'])
def test_broken_json_has_no_positions(text: str) -> None:
    try:
        assert entries(text, ("permissions", "allow")) == []
    except (ValueError, IndexError):
        pass


# -- test FILE -----------------------------------------------------------------------------------------------------------------
EXAMPLES = """
rules:
  allow: ["Bash(git log *)", "Edit(src/**)"]
  ask: ["Bash(git commit *)"]
  deny: ["Bash(git push *)", "Read(.env)"]
cwd: /proj
files: [/proj/.env, /proj/src/a.py]
links: {/proj/notes: .env}
allowed:
  - git log -1
  - {tool: Edit, input: {file_path: src/a.py}}
  - {command: make, mode: bypassPermissions}
asked: [git commit -m x, make]
denied:
  - echo a; git push
  - {tool: Read, input: {file_path: notes}}
  - {command: make, mode: dontAsk}
"""


def test_examples_that_hold_are_0(world: World) -> None:
    (world.project / "rules.yaml").write_text(EXAMPLES)
    done = world.run("test", "rules.yaml")
    assert (done.returncode, done.stdout.decode()) == (0, "8 examples, 0 wrong\n")


def test_examples_that_do_not_hold_are_1_and_shown_like_a_diff(world: World) -> None:
    (world.project / "rules.yaml").write_text(EXAMPLES.replace("- git log -1", "- git log -1\n  - git push"))
    done = world.run("test", "rules.yaml")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1 and lines[-1] == "9 examples, 1 wrong"
    assert lines[:3] == ["  git push", "- allow", "+ deny   deny Bash(git push *)  [project]  rules.yaml"]
    report = json.loads(world.run("test", "rules.yaml", "--json").stdout)
    assert report["wrong"][0]["rule"]["text"] == "Bash(git push *)" and report["examples"] == 9


def test_rules_of_a_settings_file_are_tested_with_their_lines(world: World) -> None:
    (world.project / "t.json").write_text(json.dumps({"settings": ".claude/settings.json", "allowed": ["git push"]}))
    report = json.loads(world.run("test", "t.json", "--json").stdout)
    assert report["wrong"][0]["rule"]["line"] == 11


@pytest.mark.parametrize(("content", "said"), [
    ("[]", "must hold an object"), ("{", "no YAML"), ("rules: []\nallowed: [ls]", "'rules' must be"),
    ("rules: {alow: [x]}\nallowed: [ls]", "'rules' must be"), ("rules: {allow: [5]}\nallowed: [ls]", "list of strings"),
    ("rules: {}\n", "no example"), ("alowed: [ls]", "unknown key 'alowed'"), ("allowed: [5]", "allowed[0]"),
    ("allowed: [{tool: Zork, input: {}}]", "no tool 'Zork'"), ("allowed: [{tool: Read}]", "a tool and an input"),
    ("allowed: [ls]\nmode: fast", "unknown permission mode"), ("settings: none.json\nallowed: [ls]", "No such file"),
    ("allowed: ls", "must be a list"), ("a: &a [*a]\nallowed: [ls]", "unknown key"), ("allowed: [ls]\nlinks: [x]", "'links'"),
    ("\x00", "no YAML")])
def test_a_file_that_cannot_be_used_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str) -> None:
    (tmp_path / "f.yaml").write_text(content)
    assert main(["test", str(tmp_path / "f.yaml")]) == 2
    assert said in capsys.readouterr().err


def test_a_rule_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.yaml").write_text('rules: {deny: ["Bash(rm", "Nope"]}\nallowed: [ls]')
    assert main(["test", str(tmp_path / "f.yaml")]) == 0
    out = capsys.readouterr().out
    assert "Bash(rm: a rule with '(' must end with ')'" in out and "Nope: there is no such tool" in out


# -- check --batch ---------------------------------------------------------------------------------------------------------------
def line(id: Any, command: str, **more: Any) -> bytes:
    return json.dumps({"id": id, "tool": "Bash", "input": {"command": command}, "cwd": "/proj", **more}).encode() + b"\n"


def test_every_line_has_its_answer_in_order_and_a_bad_one_does_not_end_the_stream(world: World) -> None:
    rules = {"allow": ["Bash(make *)"], "ask": [], "deny": ["Bash(rm *)"]}
    given = [line(1, "make x", rules=rules), b"nonsense\n", b"\n", line("two", "rm x", rules=rules), b"[1]\n", b"\xff\xfe\n",
             b'{"id": 3}\n', line(4, "rm x"), line(5, "ls", mode="fast"), line(6, "ls", rules={"allow": "x"}),
             line(7, "ls", cwd="sub"), line(8, "ls", rules={"deny": ["Bash(x"]}), b'{"id": NaN}\n', b"[" * 100_000 + b"\n",
             b'{"id": 9, "tool": "Bash", "input": {"command": 5}}\n', b'{"id": 10, "tool": "Zork", "input": {}}\n',
             b"x" * (5 << 20) + b"\n", line(11, "\ud800"), line({"a": [1]}, "make x", rules=rules, mode="plan").rstrip()]
    done = world.run("check", "--batch", stdin=b"".join(given))
    answers = [json.loads(a) for a in done.stdout.splitlines()]
    assert done.returncode == 0 and done.stderr == b""
    assert [(a["id"], a.get("decision"), a.get("rule")) for a in answers if "error" not in a] == [
        (1, "allow", "Bash(make *)"), ("two", "deny", "Bash(rm *)"), (4, "ask", None), (8, "allow", None), (11, "ask", None),
        ({"a": [1]}, "ask", None)]
    assert [a["id"] for a in answers if "error" in a] == [None, None, None, 3, 5, 6, 7, None, None, 9, 10, None]
    assert all(set(a) == {"id", "error"} or set(a) - {"warnings"} == {"id", "decision", "rule", "reason"} for a in answers)
    assert next(a for a in answers if a["id"] == 8)["warnings"] == ["Bash(x: a rule with '(' must end with ')'"]


def test_an_answer_comes_before_the_next_line_is_written(world: World) -> None:
    process = subprocess.Popen([sys.executable, "-m", "kernel", "permissions", "check", "--batch"], cwd=world.project,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "HOME": str(world.home)})
    assert process.stdin and process.stdout
    with process:
        for n in range(3):
            process.stdin.write(line(n, "ls"))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == n
        process.stdin.close()


def test_check_without_batch_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2 and "--batch" in capsys.readouterr().err


def test_rule_sets_are_kept_but_not_without_end() -> None:
    batch, rng = Batch(), random.Random(3)
    for n in range(600):
        rules = {"allow": [f"Bash(a{rng.randint(0, 400)} *)"]}
        assert batch.answer(line(n, "ls", rules=rules))["decision"] == "allow"
    assert len(batch._papers) <= 256


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_no_line_ends_the_stream(data: bytes) -> None:
    assert set(Batch().answer(data)) == {"id", "error"}


@given(JSON, JSON, JSON, JSON)
@settings(max_examples=200)
def test_no_kind_of_field_ends_the_stream(tool: Any, input: Any, rules: Any, mode: Any) -> None:
    batch = Batch()
    for given_tool in (tool, "Bash", "Read"):
        for given_input in (input, {"command": input, "file_path": input}, {"command": "ls"}):
            fields = {"id": 1, "tool": given_tool, "input": given_input, "rules": rules, "mode": mode}
            answer = batch.answer(json.dumps(fields).encode())
            assert "error" in answer or answer["decision"] in ("allow", "ask", "deny")


# -- the same decision as in a session -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["ls", "make", "git push", "npm test; git log", "cat .env", "echo $(git push)"])
def test_explain_check_and_a_session_agree(tmp_path: Path, command: str) -> None:
    rules = json.loads(SETTINGS)["permissions"]
    kit = Kit(tmp_path, installed=["permissions", "tools-shell"], settings={"permissions": rules})
    session: Session = kit.open()
    from kernel import PermissionCall

    tool = next(t for t in kit.harness.tools if t.name == "Bash")
    mine = session.policy.decide(PermissionCall(tool=tool, input={"command": command}, cwd=str(tmp_path), mode="default"))
    lists = {k: rules[k] for k in ("allow", "ask", "deny")}
    assert Batch().answer(line(1, command, rules=lists, cwd=str(tmp_path)))["decision"] == mine.behavior
    (tmp_path / ".claude").mkdir()
    (tmp_path / "s.json").write_text(json.dumps({"permissions": lists}))
    line_ = ["permissions", "explain", "--command", command, "--settings", "s.json", "--json"]
    done = subprocess.run([sys.executable, "-m", "kernel", *line_], cwd=tmp_path, capture_output=True, timeout=60,
                          env={**os.environ, "HOME": str(tmp_path)})
    assert json.loads(done.stdout)["decision"] == mine.behavior
