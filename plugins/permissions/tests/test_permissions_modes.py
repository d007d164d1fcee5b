"""Modes, hooks, the sandbox, protected paths and critical removals (permissions contract, sections 4 and 7 to 10)."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_permissions.paper import Paper, PaperView
from kernel_permissions.safety import PROTECTED_FILES, PROTECTED_FOLDERS

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")
VIEW = PaperView(
    files=["/proj/app/a.txt", "/proj/app/b.txt", "/proj/app/d/x", "/srv/x", "/proj/app/.git/config"],
    dirs=["/proj/app/gen", "/proj/app/.claude", "/added/data"],
    links={"/proj/app/away": "/srv", "/proj/app/gen/out": "/srv/x"})
ASKED: dict[str, Any] = {"questions": [{"question": "?", "header": "h", "options": []}]}


@pytest.mark.parametrize(("tool", "input", "rules", "expected"), [
    ("Read", {"file_path": "a.txt"}, {}, "allow allow allow allow allow allow"),
    ("Read", {"file_path": "/srv/x"}, {}, "ask ask ask classifier deny allow"),
    ("Edit", {"file_path": "a.txt"}, {}, "ask allow ask allow deny allow"),
    ("Write", {"file_path": "new"}, {}, "ask allow ask allow deny allow"),
    ("Edit", {"file_path": "/srv/x"}, {}, "ask ask ask classifier deny allow"),
    ("Edit", {"file_path": ".git/config"}, {}, "ask ask ask classifier deny allow"),
    ("Edit", {"file_path": ".git/config"}, {"allow": ["Edit"]}, "ask ask ask classifier deny allow"),
    ("Bash", {"command": "ls"}, {}, "allow allow allow allow allow allow"),
    ("Bash", {"command": "touch gen/x"}, {}, "ask allow ask classifier deny allow"),
    ("Bash", {"command": "make"}, {}, "ask ask ask classifier deny allow"),
    ("Bash", {"command": "rm -rf /"}, {}, "ask ask ask classifier deny ask"),
    ("Bash", {"command": "rm -rf /"}, {"allow": ["Bash"]}, "ask ask ask classifier deny ask"),
    ("Bash", {"command": "echo 'x"}, {"allow": ["Bash"]}, "ask ask ask classifier deny allow"),
    ("WebFetch", {"url": "https://a.test/"}, {}, "ask ask ask allow deny allow"),
    ("mcp__a__b", {}, {}, "ask ask ask classifier deny allow"),
    ("mcp__a__b", {}, {"allow": ["mcp__a"]}, "allow allow allow allow allow allow"),
    ("AskUserQuestion", ASKED, {"allow": ["AskUserQuestion"]}, "ask ask ask ask deny ask"),
    ("Bash", {"command": "make x"}, {"deny": ["Bash(make *)"]}, "deny deny deny deny deny deny"),
    ("Bash", {"command": "make x"}, {"ask": ["Bash(make *)"], "allow": ["Bash"]}, "ask ask ask ask deny ask"),
    ("Bash", {"command": "make x"}, {"allow": ["Bash(make x)"]}, "allow allow ask allow allow allow"),
    ("Bash", {"command": "npm run x"}, {"allow": ["Bash(npm run *)"]}, "allow allow ask classifier allow allow"),
    ("Bash", {"command": "make x"}, {"allow": ["Bash"]}, "allow allow ask classifier allow allow"),
    ("Bash", {"command": "python x"}, {"allow": ["Bash(python*)"]}, "allow allow ask classifier allow allow"),
    ("Edit", {"file_path": "/srv/x"}, {"allow": ["Edit(//srv/**)"]}, "allow allow ask allow allow allow"),
    ("Agent", {"subagent_type": "x"}, {}, "allow allow allow allow allow allow"),
    ("TodoWrite", {}, {}, "allow allow allow allow allow allow"),
    ("Skill", {"skill": "x"}, {}, "ask ask ask classifier deny allow"),
    ("WebSearch", {"query": "x"}, {}, "ask ask ask classifier deny allow"),
    ("ExitPlanMode", {}, {}, "ask ask ask classifier deny allow"),
])
def test_the_table_of_modes(tool: str, input: dict[str, Any], rules: dict[str, list[str]], expected: str) -> None:
    """One line of section 7.1 per row; in auto mode ``classifier`` means that its answer counts."""
    for mode, wanted in zip(MODES, expected.split(), strict=True):
        for answer in ("allow", "deny") if mode == "auto" else ("allow",):
            paper = Paper(**rules, view=VIEW, classifier=lambda call, why, answer=answer: answer)  # type: ignore[arg-type,misc]
            verdict = paper.decide(tool, input, mode=mode)
            assert verdict.behavior == (answer if wanted == "classifier" else wanted), (mode, verdict)
            assert (verdict.reason_type == "classifier") is (wanted == "classifier")


def test_auto_without_a_classifier_asks() -> None:
    assert Paper().bash("make", mode="auto") == "ask"


@pytest.mark.parametrize("command", [
    "mkdir gen/x", "mkdir -p gen/a/b", "touch a.txt", "rm a.txt", "rm -rf gen", "rmdir gen", "mv a.txt gen/",
    "mv -f a.txt c.txt", "cp a.txt c.txt",
    "cp -r d e", "sed -i s/a/b/ a.txt", "sed -i -e 's/a/b/' -e '/x/d' a.txt b.txt", "rm *.txt", "LANG=C timeout 5 touch x",
    "mkdir gen && touch gen/y",
    "touch x && ls", "echo x > gen/f", "cat a.txt > c.txt", "cd gen && touch y", "mkdir x; cp a.txt x/; rm -r x", "touch -- -x",
])
def test_accept_edits_allows_seven_commands_inside(command: str) -> None:
    paper = Paper(view=VIEW)
    assert paper.bash(command, mode="acceptEdits") == "allow"
    assert paper.bash(command) == "ask"
    assert paper.bash(command, mode="plan") == "ask"


@pytest.mark.parametrize("command", [
    "touch /srv/y", "mkdir ../x", "rm /srv/x", "rm away/x", "cp a.txt /srv/", "cp /srv/x .", "mv /srv/x .", "mv a.txt away/",
    "touch $X", "rm \"$X\"",
    "rm ../*", "touch ~/x", "mkdir {a,../b}", "touch .git/x", "rm -rf .git", "mv .git x", "cp a.txt .git/",
    "cp a.txt .gitconfig", "touch .bashrc",
    "cp /srv/.mcp.json .", "mv d .git", "mkdir .claude/x", "cp a.txt gen/out", "cp /srv/x gen", "sed -i 'w x' a.txt",
    "sed -i.bak s/a/b/ a.txt",
    "sed -i s/a/b/e a.txt", "sed -i s/a/b/ /srv/x", "sed -i 's/a/b/' $F", "cp -t /srv a.txt",
    "cp --target-directory=/srv a.txt", "mv -t /srv a.txt",
    "cp -L away x", "cp -r d gen/.", "cp -r d/. gen", "FOO=1 touch x", "sudo touch x", "env touch x", "xargs touch",
    "ls | xargs rm", "touch", "mv a.txt",
    "chmod +x a.txt", "ln -s /srv x", "tee x", "dd of=x", "touch x; make", "/bin/touch x", "cd $X && touch y",
    "touch() { x; }; touch y", "truncate -s0 a.txt",
    "cp --odd a b", "rm --no-preserve-root x", "touch -r /srv/x y", "cd /srv && touch y", "rm -rf gen/../..",
])
def test_accept_edits_asks_for_everything_else(command: str) -> None:
    view = PaperView(files=["/proj/app/a.txt", "/proj/app/d/x", "/srv/x", "/srv/.mcp.json", "/proj/app/gen/d/y"],
                     dirs=["/proj/app/gen", "/proj/app/.git"], links={"/proj/app/away": "/srv", "/proj/app/gen/out": "/srv/x"})
    assert Paper(view=view).bash(command, mode="acceptEdits") == "ask"


def test_a_folder_is_not_copied_onto_one_that_exists() -> None:
    """A link inside the target would lead the copy outside."""
    view = PaperView(files=["/proj/app/s/f"], links={"/proj/app/t/s/f": "/srv/x"})
    assert Paper(view=view).bash("cp -r s t", mode="acceptEdits") == "ask"
    assert Paper(view=view).bash("cp -r s u", mode="acceptEdits") == "allow"


@pytest.mark.parametrize("name", sorted(PROTECTED_FOLDERS))
def test_protected_folders_are_protected_at_any_depth(name: str) -> None:
    paper = Paper(allow=["Edit", "Bash"], view=PaperView())
    for path in (name, f"{name}/x", f"a/b/{name}/c", name.upper() + "/x"):
        assert paper.decide("Write", {"file_path": path}, mode="acceptEdits").behavior == "ask", path
    assert paper.bash(f"echo x > {name}/hook", mode="acceptEdits") == "ask"


@pytest.mark.parametrize("name", sorted(PROTECTED_FILES))
def test_protected_files_are_protected_at_any_depth(name: str) -> None:
    paper = Paper(allow=["Edit", "Bash"], view=PaperView())
    assert paper.decide("Write", {"file_path": f"a/{name}"}, mode="acceptEdits").behavior == "ask"
    assert paper.decide("Read", {"file_path": f"a/{name}"}).behavior == "allow"
    assert paper.bash(f"tee a/{name}", mode="acceptEdits") == "ask"


@pytest.mark.parametrize(("path", "expected"), [
    (".claude/worktrees/w/a.txt", "allow"), (".claude/worktrees/w/.git/x", "ask"), (".claude/settings.json", "ask"),
    (".config/git/ignore", "ask"),
    (".config/x", "allow"), ("config/git/x", "allow"), (".github/x", "allow"), (".gitignore", "allow"), ("a.claude/x", "allow"),
    ("own/x", "ask"),
    ("gitlink", "ask"),
])
def test_what_is_protected(path: str, expected: str) -> None:
    paper = Paper(view=PaperView(links={"/proj/app/gitlink": ".git/config"}), own=("/proj/app/own",))
    assert paper.decide("Write", {"file_path": path}, mode="acceptEdits").behavior == expected


@pytest.mark.parametrize("command", [
    "tee .git/x", "cp a .git/hooks/y", "mv x .bashrc", "ln -s x .envrc", "install x .git/hooks/y", "dd of=.git/config",
    "sed -i s/a/b/ .git/config",
    "rm .git/config", "chmod +x .git/hooks/x", "truncate -s0 .npmrc", "sudo tee .git/x", "bash -c 'tee .git/y'",
    "echo x | tee -a $PWD/.git/x", "touch \"$D/.git/x\"", "cp -t .git a", "cp -rt .git/hooks a b",
    "mv --target-directory=.git x", "cp /tmp/.bashrc .", "sort -o .npmrc x",
    "curl -o .git/hooks/x u", "wget -O .envrc u", "find . -fprint .git/x", "ln -s /x .git/y", "cp a /proj/app/.git/",
    "install -D x .git/y", "mkdir -p a/.git/hooks", "echo x >> .git/hooks/pre-commit",
])
def test_no_allow_rule_opens_a_protected_path_for_a_command(command: str) -> None:
    assert Paper(allow=["Bash", "Edit"]).bash(command) == "ask"
    assert Paper(allow=["Bash", "Edit"]).bash(command, mode="bypassPermissions") == "allow"
    assert Paper(allow=["Bash", "Edit"]).bash(command, mode="dontAsk") == "deny"


def test_an_answer_of_this_session_opens_the_claude_folder_and_nothing_else() -> None:
    for source, expected in (("session", "allow"), ("project", "ask"), ("cli", "ask")):
        paper = Paper(allow=[("Edit(.claude/**)", source), ("Edit(.git/**)", source)])  # type: ignore[list-item]
        assert paper.decide("Write", {"file_path": ".claude/x"}).behavior == expected
        assert paper.decide("Write", {"file_path": ".git/x"}).behavior == "ask"


CRITICAL = [
    "rm -rf /", "rm -rf /*", "rm -rf //", "rm -rf /./", "rm -rf /etc", "rm -rf /etc/", "rm -rf /e*", "rmdir /x", "rm -rf ~",
    "rm -rf ~/", "rm -rf $HOME",
    "rm -rf \"$HOME\"", "rm -rf ${HOME}", "rm -rf ${HOME:?}", "rm -rf \"$HOME\"/", "rm -rf /home/u", "rm -rf /home/u/.",
    "rm -rf ~/*", "rm -rf ~root",
    "rm -rf .", "rm -rf ./", "rm -rf ..", "rm -rf ../app", "rm -rf /proj/app", "rm -rf /proj", "rm -rf ../*", "rm -rf $PWD",
    "rm -rf \"$(pwd)\"", "rm -rf `pwd`",
    "rm -rf ../a*", "rm -rf /proj/a??", "rm -rf /pro*/app", "rm -rf /added/data/*", "rm -rf /added/*", "rm -rf $DIR/",
    "rm -rf \"$DIR\"/*", "rm -rf $DIR/*.x",
    "rm -rf ${DIR}/*", "rm -rf $(x)/*", "rm -rf -- /", "rm -r -f / x", "rm / -rf", "rm --recursive /", "sudo rm -rf /",
    "env A=1 rm -rf /", "timeout 5 rm -rf /",
    "nohup rm -rf ~ &", "echo $(rm -rf /)", "echo \"$(rm -rf ~)\"", "echo `rm -rf /`", "cat <(rm -rf /)", "ls; rm -rf /",
    "(rm -rf /)", "bash -c 'rm -rf /'",
    "eval 'rm -rf /'", "r\\m -rf /", "/bin/rm -rf /", "rm -rf \"/\"", "rm -rf '/'", "rm -rf {/,x}", "{rm,-rf,/}",
    "cd / && rm -rf *", "cd / && rm -rf etc",
    "cd ~ && rm -rf *", "cd .. && rm -rf app", "cd d && rm -rf ..", "cd d; rm -rf ../..", "cd $X && rm -rf *",
    "cd $X; rm -rf .", "pushd / && rm -rf etc",
    "xargs rm -rf /", "find . -exec rm -rf / ';'", "rm -rf C:\\\\", "rm -rf 'C:/'", "rm -rf /private/etc", "rm -rf away2",
    "FOO=1 rm -rf /", "time rm -rf /",
    "rm -rf / 2>/dev/null", "if true; then rm -rf /; fi", "rm -rf \"$HOME/..\"", "rm -rf $PWD/..", "rm -rf a.txt /",
    "watch 'rm -rf /'",
]


@pytest.mark.parametrize("command", CRITICAL)
def test_critical_removals_are_asked_whatever_allows_them(command: str) -> None:
    view = PaperView(files=["/proj/app/d/x"], links={"/proj/app/away2": "/home/u"})
    paper = Paper(allow=["Bash", "Bash(rm *)"], view=view, directories=("/added/data",))
    assert paper.bash(command) == "ask"
    assert paper.bash(command, hook="allow") == "ask"
    assert paper.bash(command, mode="acceptEdits") == "ask"
    assert paper.bash(command, mode="dontAsk") == "deny"
    if not command.startswith("{"):  # a brace list as a name is not understood, and bypass runs what is not understood
        assert paper.bash(command, mode="bypassPermissions") == "ask"
    assert Paper(allow=["Bash"], deny=["Bash(rm *)", "Bash(rmdir *)"], view=view).bash(command) == "deny"


@pytest.mark.parametrize("command", [
    "rm -rf build", "rm -rf ./build/*", "rm *.o", "rm -rf /added/data", "rm -rf /added/data/x/*", "rm -rf /tmp/x", "rm -rf ~/x",
    "rm -rf $DIR", "rm -rf \"$DIR\"",
    "rm -rf $DIR/x", "rm -rf $HOME/x", "rm -rf ../other", "rm -rf /proj/other/*", "echo rm -rf /", "echo 'rm -rf /'",
    "rm -f a.txt", "cd d && rm -rf x", "rm",
    "rm -rf \"$(pwd)/build\"", "rm -rf /usr/local/x", "rmdir d", "rm -rf /home/v/x",
])
def test_ordinary_removals_are_not_critical(command: str) -> None:
    view = PaperView(files=["/proj/app/d/x"])
    assert Paper(allow=["Bash"], view=view, directories=("/added/data",)).bash(command) == "allow"


@pytest.mark.parametrize(("hook", "rewrote", "tool", "rules", "expected"), [
    ("allow", False, "Bash", {}, "allow"), ("allow", False, "Bash", {"deny": ["Bash(make *)"]}, "deny"),
    ("allow", False, "Bash", {"ask": ["Bash(make *)"]}, "ask"), ("ask", False, "Bash", {"allow": ["Bash"]}, "ask"),
    ("allow", False, "AskUserQuestion", {}, "ask"), ("allow", True, "AskUserQuestion", {}, "allow"),
    ("allow", False, "ExitPlanMode", {}, "ask"),
    ("allow", True, "ExitPlanMode", {}, "allow"), ("allow", False, "mcp__a__b", {}, "allow"), ("ask", False, "Agent", {}, "ask"),
])
def test_what_a_hook_can_and_cannot_do(hook: Any, rewrote: bool, tool: str, rules: dict[str, Any], expected: str) -> None:
    verdict = Paper(**rules).decide(tool, {"command": "make x"}, hook=hook, hook_rewrote=rewrote)
    assert verdict.behavior == expected


def test_a_hooks_ask_is_a_floor() -> None:
    paper = Paper(allow=["Bash"], classifier=lambda call, why: "allow")
    assert paper.bash("make", mode="auto", hook="ask") == "ask"
    assert paper.bash("make", mode="bypassPermissions", hook="ask") == "ask"
    assert paper.bash("make", mode="dontAsk", hook="ask") == "deny"


@pytest.mark.parametrize(("rules", "command", "mode", "expected"), [
    ({}, "make", "default", "allow"), ({"ask": ["Bash"]}, "make", "default", "allow"),
    ({"ask": ["Bash(*)"]}, "make", "default", "allow"),
    ({"ask": ["Bash(make *)"]}, "make", "default", "ask"), ({"deny": ["Bash(make *)"]}, "make", "default", "deny"),
    ({}, "rm -rf /", "default", "ask"),
    ({}, "make", "plan", "ask"), ({}, "make", "dontAsk", "allow"), ({"deny": ["Bash"]}, "make", "default", "deny"),
])
def test_the_sandbox_stands_in_for_a_question(rules: dict[str, Any], command: str, mode: str, expected: str) -> None:
    assert Paper(**rules, sandboxed=lambda input: True).bash(command, mode=mode) == expected


def test_a_command_outside_the_sandbox_takes_the_normal_way() -> None:
    paper = Paper(ask=["Bash"], sandboxed=lambda input: not input.get("dangerouslyDisableSandbox"))
    assert paper.decide("Bash", {"command": "make", "dangerouslyDisableSandbox": True}).behavior == "ask"
    gate = Paper(deny=["Bash(dangerouslyDisableSandbox:true)"], sandboxed=lambda input: True)
    assert gate.decide("Bash", {"command": "make", "dangerouslyDisableSandbox": True}).behavior == "deny"


def test_plan_mode_writes_the_plan_file_and_opens_where_bypass_is_available() -> None:
    paper = Paper(plan_file=lambda path: path == "/home/u/.claude/plans/p.md")
    assert paper.decide("Write", {"file_path": "/home/u/.claude/plans/p.md"}, mode="plan").behavior == "allow"
    assert paper.decide("Write", {"file_path": "/home/u/.claude/plans/q.md"}, mode="plan").behavior == "ask"
    assert paper.decide("Write", {"file_path": "/home/u/.claude/plans/p.md"}).behavior == "ask"
    assert Paper(bypass_available=True).bash("make", mode="plan") == "allow"
    assert Paper(bypass_available=True, ask=["Bash(make *)"]).bash("make", mode="plan") == "ask"
    assert Paper(bypass_available=True).bash("rm -rf /", mode="plan") == "ask"


def test_every_step_explains_itself_in_order() -> None:
    paper = Paper(allow=["Bash(make *)"], deny=["Bash(rm *)"])
    lines = paper.policy.explain(paper.call("Bash", {"command": "make x"}))
    assert [line[0] for line in lines[:-1]] == list("2345678") and lines[-1] == "verdict: allow by Bash(make *) (project)"
    assert paper.policy.explain(paper.call("Bash", {"command": "rm x"}))[-1] == "verdict: deny by Bash(rm *) (project)"
    assert "not in the read-only set" in paper.policy.explain(paper.call("Bash", {"command": "x"}))[-2]


def test_what_the_model_reads_names_the_rule_but_not_one_of_the_managed_settings() -> None:
    mine = Paper(deny=["Bash(rm *)"]).decide("Bash", {"command": "rm x"})
    assert "Bash" in mine.message and "Bash(rm *)" in mine.message and (mine.rule, mine.source) == ("Bash(rm *)", "project")
    managed = Paper(deny=[("Bash(rm secret-host*)", "managed")]).decide("Bash", {"command": "rm secret-host-1"})
    assert "secret-host*" not in managed.message and managed.rule is None and managed.source == "managed"
    assert Paper().decide("Bash", {"command": "make"}).message.startswith("no rule allows 'make'")


@pytest.mark.parametrize(("tool", "input", "expected"), [
    ("Bash", {"command": "npm run build && make x | tee y"}, [("Bash", "npm run *"), ("Bash", "make x *"), ("Bash", "tee y")]),
    ("Bash", {"command": "git commit -m x; git commit -m y"}, [("Bash", "git commit *")]),
    ("Bash", {"command": "rm x"}, [("Bash", "rm x")]),
    ("Bash", {"command": "cd /srv && make"}, [("Bash", "make"), ("Read", "//srv/**")]), ("Bash", {"command": "echo 'x"}, []),
    ("Bash", {"command": "a; b; c; d; e; f; g"}, [("Bash", f"{c} *") for c in "abcde"]),
    ("Bash", {"command": "watch x"}, [("Bash", "watch x")]),
    ("Bash", {"command": "python3 x.py"}, [("Bash", "python3 x.py")]), ("Read", {"file_path": "/srv/x"}, [("Read", "//srv/**")]),
    ("WebFetch", {"url": "https://A.test/x"}, [("WebFetch", "domain:a.test")]), ("mcp__a__b", {}, [("mcp__a__b", None)]),
    ("Skill", {"skill": "review"}, [("Skill", "review")]), ("AskUserQuestion", ASKED, []),
    ("Bash", {"command": "timeout 5 make"}, [("Bash", "make")]),
])
def test_suggestions_are_rules_that_would_have_allowed_the_call(
        tool: str, input: dict[str, Any], expected: list[tuple[str, str | None]]) -> None:
    paper = Paper()
    found = paper.decide(tool, input).suggestions
    rules = [(r["toolName"], r.get("ruleContent")) for s in found for r in s["rules"]]
    assert rules == expected
    if rules and len(rules) < 5 and tool != "Read" and "cd " not in str(input) and "watch" not in str(input):
        texts = [name if content is None else f"{name}({content})" for name, content in rules]
        assert Paper(allow=texts).decide(tool, input).behavior == "allow"


def test_an_edit_suggests_the_mode() -> None:
    verdict = Paper().decide("Edit", {"file_path": "a.txt"})
    assert verdict.suggestions == [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
