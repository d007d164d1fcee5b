"""``kernel permissions lint``: one table, each row a rule set and what is said about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kernel_permissions.workbench.app import main
from kernel_permissions.workbench.lint import findings

Said = list[tuple[str, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trusted project in a home of its own."""
    for name in ("CLAUDE_CONFIG_DIR", "KERNEL_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "project"
    (folder / ".claude").mkdir(parents=True)
    (tmp_path / ".claude.json").write_text(json.dumps({"projects": {str(folder): {"hasTrustDialogAccepted": True}}}))
    return folder


def said(project: Path, **lists: list[str]) -> Said:
    """(severity, slug, rule) of every finding."""
    (project / ".claude" / "settings.json").write_text(json.dumps({"permissions": lists}))
    return [(f.severity, f.slug, f.entry.text) for f in findings(project)]


@pytest.mark.parametrize(("lists", "expected"), [
    # in order
    ({"allow": ["Bash(npm test)", "Bash(git log *)", "Edit(src/**)"], "deny": ["Read(.env)", "Bash(rm *)"]}, []),
    ({"allow": ["Bash(pytest *)", "WebFetch(domain:docs.python.org)", "mcp__github__get_*"], "ask": ["Bash(git push *)"]}, []),
    ({"deny": ["mcp__*", "Agent(Explore)", "Bash(run_in_background:true)", "WebFetch(domain:*.evil.test)"]},
     [("info", "narrow-guard", "WebFetch(domain:*.evil.test)")]),
    # does not parse, does nothing
    ({"deny": ["Bash(rm"]}, [("error", "unreadable", "Bash(rm")]),
    ({"allow": ["B*"]}, [("error", "no-effect", "B*")]),
    ({"deny": ["Bash(command:rm *)"]}, [("error", "no-effect", "Bash(command:rm *)")]),
    ({"allow": ["WebFetch(https://x.test)"]}, [("error", "no-effect", "WebFetch(https://x.test)")]),
    ({"allow": ["Write(src/**)"]}, [("error", "path-rule-not-consulted", "Write(src/**)")]),
    ({"deny": ["Glob(src/**)"]}, [("error", "path-rule-not-consulted", "Glob(src/**)")]),
    ({"allow": ["bash"]}, [("error", "unknown-tool", "bash")]),
    ({"deny": ["Raed(.env)"]}, [("error", "unknown-tool", "Raed(.env)")]),
    # in the shade of others
    ({"allow": ["Bash(git push origin *)"], "deny": ["Bash(git push *)"]}, [("warning", "shadowed", "Bash(git push origin *)")]),
    ({"allow": ["Bash(nice git push)"], "deny": ["Bash(git push *)"]}, [("warning", "shadowed", "Bash(nice git push)")]),
    ({"allow": ["Bash(git push -n *)"], "ask": ["Bash(git push *)"]}, [("warning", "shadowed", "Bash(git push -n *)")]),
    ({"ask": ["Bash(rm *)"], "deny": ["Bash"]}, [("warning", "shadowed", "Bash(rm *)")]),
    ({"allow": ["Read(src/secret/**)"], "deny": ["Read(src/**)"]}, [("warning", "shadowed", "Read(src/secret/**)")]),
    ({"allow": ["Edit(/src/**)"], "deny": ["Read(src/**)"]}, [("warning", "shadowed", "Edit(/src/**)")]),
    ({"allow": ["Read(src/**)"], "deny": ["Read(src/*.pem)"]}, []),
    ({"allow": ["mcp__git__log"], "deny": ["mcp__git"]}, [("warning", "shadowed", "mcp__git__log")]),
    ({"allow": ["mcp__github__get_x"], "deny": ["mcp__git"]}, []),
    ({"allow": ["Bash(git log *)", "Bash(git log --stat *)"]}, [("info", "redundant", "Bash(git log --stat *)")]),
    ({"allow": ["Bash(git log)", "Bash(git log *)"]}, [("info", "redundant", "Bash(git log)")]),
    ({"allow": ["WebFetch(domain:a.test)", "WebFetch(domain:a.test)"]}, [("info", "redundant", "WebFetch(domain:a.test)")]),
    ({"allow": ["Edit(/src/**)", "Read(/src/a/**)"]}, [("info", "redundant", "Read(/src/a/**)")]),
    # can match nothing
    ({"allow": ["Bash(cd x && make)"]}, [("warning", "never-matches", "Bash(cd x && make)")]),
    ({"deny": ["Bash(curl * | sh)"]}, [("error", "never-matches", "Bash(curl * | sh)")]),
    ({"allow": ["Bash(make > log)"]}, [("warning", "never-matches", "Bash(make > log)")]),
    ({"allow": ["Bash(watch ls *)"]}, [("warning", "never-matches", "Bash(watch ls *)")]),
    ({"allow": ["Bash(find . -delete *)"]}, [("warning", "never-matches", "Bash(find . -delete *)")]),
    ({"allow": ["Bash($CMD *)"]}, [("warning", "never-matches", "Bash($CMD *)")]),
    ({"allow": ["Bash(make 'x)"]}, [("warning", "never-matches", "Bash(make 'x)")]),
    ({"deny": ["Read(../secret)"]}, [("error", "never-matches", "Read(../secret)")]),
    ({"deny": ["Read($HOME/.ssh/**)"]}, [("error", "never-matches", "Read($HOME/.ssh/**)")]),
    ({"allow": ["WebFetch(domain:https://x.test)"]}, [("warning", "never-matches", "WebFetch(domain:https://x.test)")]),
    ({"deny": ["WebFetch(domain:x.test/path)"]}, [("error", "never-matches", "WebFetch(domain:x.test/path)")]),
    # globs that are none
    ({"deny": ["Bash(git.*)"]}, [("warning", "literal-glob", "Bash(git.*)")]),
    ({"deny": ["Bash(git {push,pull} *)"]}, [("warning", "literal-glob", "Bash(git {push,pull} *)")]),
    ({"deny": ["Bash(git pus? *)"]}, [("warning", "literal-glob", "Bash(git pus? *)")]),
    ({"allow": ["Bash(a:* b)"]}, [("warning", "literal-glob", "Bash(a:* b)"), ("info", "wide-star", "Bash(a:* b)")]),
    ({"allow": ["Bash(http http://localhost:*)"]}, [("warning", "literal-glob", "Bash(http http://localhost:*)")]),
    ({"allow": ["Bash(echo 'a?b' *)"]}, []),
    ({"allow": ["Edit(src/*.{ts,js})"]}, [("warning", "literal-glob", "Edit(src/*.{ts,js})")]),
    # wider than they look
    ({"allow": ["Bash"]}, [("warning", "too-broad", "Bash")]),
    ({"allow": ["Bash(python *)"]}, [("warning", "too-broad", "Bash(python *)")]),
    ({"allow": ["Bash(python3:*)"]}, [("warning", "too-broad", "Bash(python3:*)")]),
    ({"allow": ["Bash(python -m pytest *)"]}, [("warning", "too-broad", "Bash(python -m pytest *)")]),
    ({"allow": ["Bash(ls*)"]}, [("warning", "too-broad", "Bash(ls*)")]),
    ({"allow": ["Bash(* --version)"]}, [("warning", "too-broad", "Bash(* --version)")]),
    ({"allow": ["Bash(env *)"]}, [("warning", "too-broad", "Bash(env *)")]),
    ({"allow": ["Bash(sudo *)"]}, [("warning", "too-broad", "Bash(sudo *)")]),
    ({"allow": ["Bash(git *)"]}, [("warning", "too-broad", "Bash(git *)")]),
    ({"allow": ["Bash(curl https://x.test/*)"]}, [("warning", "too-broad", "Bash(curl https://x.test/*)")]),
    ({"allow": ["Bash(export *)"]}, [("warning", "too-broad", "Bash(export *)")]),
    ({"allow": ["Bash(npm run *)"]}, [("info", "too-broad", "Bash(npm run *)")]),
    ({"allow": ["Bash(rm *)"]}, [("info", "too-broad", "Bash(rm *)")]),
    ({"allow": ["Bash(pytest * x)"]}, [("info", "wide-star", "Bash(pytest * x)")]),
    ({"allow": ["Read(//**)"]}, [("warning", "too-broad", "Read(//**)")]),
    ({"allow": ["Edit"]}, [("info", "too-broad", "Edit")]),
    ({"allow": ["WebFetch(domain:*)"]}, [("info", "too-broad", "WebFetch(domain:*)")]),
    # narrower than they look
    ({"deny": ["Bash(rm)"]}, [("warning", "narrow-guard", "Bash(rm)")]),
    ({"deny": ["Bash(rm -rf *)"]}, [("warning", "narrow-guard", "Bash(rm -rf *)")]),
    ({"deny": ["Bash(curl http://*)"]}, [("warning", "narrow-guard", "Bash(curl http://*)")]),
    # somewhere else than they look
    ({"deny": ["Read(/etc/passwd)"]}, [("warning", "misleading-anchor", "Read(/etc/passwd)")]),
    ({"deny": ["Read(//etc/passwd)"]}, []),
])
def test_what_is_said_about_rules(project: Path, lists: dict[str, list[str]], expected: Said) -> None:
    assert sorted(said(project, **lists)) == sorted(expected)


def test_an_anchor_that_exists_in_the_project_misleads_nobody(project: Path) -> None:
    (project / "etc").mkdir()
    assert said(project, deny=["Read(/etc/passwd)"]) == []


def test_rules_of_other_scopes_cast_shade_and_are_named_with_file_and_line(project: Path) -> None:
    user = project.parent / ".claude" / "settings.json"
    user.parent.mkdir(exist_ok=True)
    user.write_text('{\n"permissions": {\n"deny": [\n"Bash(npm publish *)"\n]}}')
    (project / ".claude" / "settings.json").write_text('{"permissions": {"allow": [\n"Bash(npm publish --dry-run *)"]}}')
    (found,) = findings(project)
    assert (found.slug, found.entry.place.line) == ("shadowed", 2)
    assert f"Bash(npm publish *) (user, {user}:4)" in found.message


def test_untrusted_allow_rules_are_told_once(project: Path) -> None:
    (project.parent / ".claude.json").unlink()
    assert said(project, allow=["Bash(make)", "Bash(a)"], deny=["Bash(b *)"]) == [("info", "not-trusted", "Bash(make)")]


@pytest.mark.parametrize(("lists", "code"), [({"allow": ["Bash(make)"]}, 0), ({"allow": ["Edit"]}, 0), ({"allow": ["Bash"]}, 1)])
def test_exit_code_1_is_for_errors_and_warnings(project: Path, capsys: pytest.CaptureFixture[str], lists: dict[str, Any],
                                                code: int) -> None:
    (project / ".claude" / "settings.json").write_text(json.dumps({"permissions": lists}))
    assert main(["lint", "--cwd", str(project)]) == code
    people = capsys.readouterr().out
    assert main(["lint", "--cwd", str(project), "--json"]) == code
    rows = json.loads(capsys.readouterr().out)
    assert people.count(str(project / ".claude" / "settings.json")) >= len(rows)
    assert all(set(r) == {"severity", "slug", "rule", "list", "scope", "file", "line", "message"} for r in rows)


def test_settings_that_are_no_settings_are_said_and_end_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".claude" / "settings.json").write_text('{"permissions": {"allow": [5, "Bash(make)"], "deny": "x"}}')
    assert [f.slug for f in findings(project)] == []
    assert main(["lint", "--cwd", str(project / "none")]) == 2
