"""The command: formats, exit codes, selection, configuration, suppression, baselines, rules of other plugins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_linter.command import Lint, Schema, Validate
from kernel_linter.output import clean

GOOD = {"name": "acme", "version": "1.0.0", "description": "Formats SQL files in a folder", "author": {"name": "Acme"}}
SKILL = "---\nname: format\ndescription: Formats SQL files. Use when one is edited\n---\nText.\n"


def plugin(root: Path, manifest: dict[str, Any] | None = None, **files: str) -> Path:
    home = root / "acme"
    data = {".claude-plugin/plugin.json": json.dumps({**GOOD, **(manifest or {})}), "skills/format/SKILL.md": SKILL, **files}
    for name, text in data.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, "utf-8")
    return home


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def run(*args: str | Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = Validate().run([str(a) for a in args])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 nothing or infos, 0 with warnings, 1 with --strict, 1 with errors, 2 for a path or a word that is not there."""
    good = plugin(tmp_path / "good")
    warn = plugin(tmp_path / "warn", {"zzz": 1})
    bad = plugin(tmp_path / "bad", {"author": "Acme"})
    assert run(good, capsys=capsys)[0] == 0
    assert run(warn, capsys=capsys)[0] == 0
    assert run(warn, "--strict", capsys=capsys)[0] == 1
    assert run(warn, "--profile", "strict", capsys=capsys)[0] == 1
    assert run(bad, capsys=capsys)[0] == 1
    assert run(bad, "--exit-zero", capsys=capsys)[0] == 0
    assert run(tmp_path / "nowhere", capsys=capsys)[0] == 2
    assert run(good, "--select", "ZZZ", capsys=capsys)[0] == 2
    assert run(good, "--format", "xml", capsys=capsys)[0] == 2
    assert run(good, "--nonsense", capsys=capsys)[0] == 2
    (tmp_path / "empty").mkdir()
    code, out, _ = run(tmp_path / "empty", capsys=capsys)
    assert code == 1 and "no manifest found" in out


def test_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(tmp_path, {"author": "Acme", "zzz": 1})
    code, out, _ = run("acme", capsys=capsys)
    lines = out.splitlines()
    assert code == 1
    column = Path("acme/.claude-plugin/plugin.json").read_text("utf-8").index('"Acme"') + 1
    assert (
        f"acme/.claude-plugin/plugin.json:1:{column}: PLG011 error author: must be an object with a name, found 'Acme' [safe fix]"
        in lines
    )
    assert lines[-1].startswith("Validation failed: 1 error(s), 1 warning(s), 0 info(s)")
    assert "\033" not in out


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(tmp_path, {"author": "Acme"})
    _, out, _ = run("acme", "--json", capsys=capsys)
    report = json.loads(out)
    assert report["version"] == 1 and report["summary"] == {"errors": 1, "warnings": 0, "infos": 0, "fixable": 1, "files": 2}
    found = report["findings"][0]
    assert (found["code"], found["slug"], found["severity"], found["pointer"], found["plugin"]) == (
        "PLG011",
        "author-not-object",
        "error",
        "/author",
        "acme",
    )
    text = Path("acme/.claude-plugin/plugin.json").read_text("utf-8")
    edit = found["fix"]["edits"][0]
    assert text[edit["start"] : edit["end"]] == '"Acme"' and edit["text"] == '{"name": "Acme"}'
    assert (Path(__file__).resolve().parents[3] / found["docs"]).is_file()


def test_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The parts that readers of SARIF 2.1.0 need: rules with help, levels, regions from 1, fingerprints."""
    plugin(tmp_path, {"author": "Acme", "zzz": 1})
    _, out, _ = run("acme", "--format", "sarif", capsys=capsys)
    log = json.loads(out)
    only = log["runs"][0]
    assert log["version"] == "2.1.0" and len(log["runs"]) == 1
    rules = only["tool"]["driver"]["rules"]
    for result in only["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] and result["level"] in ("error", "warning", "note")
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "acme/.claude-plugin/plugin.json"
        region = place["region"]
        assert region["startLine"] >= 1 and (region["endLine"], region["endColumn"]) >= (
            region["startLine"],
            region["startColumn"],
        )
        assert result["partialFingerprints"]["kernelLint/v1"]
    assert all(r["help"]["text"] and r["shortDescription"]["text"] for r in rules)


def test_github(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(tmp_path, {"author": "50% a,b:c"})
    _, out, _ = run("acme", "--format", "github", capsys=capsys)
    first = out.splitlines()[0]
    assert first.startswith(
        "::error file=acme/.claude-plugin/plugin.json,line=1,endLine=1,col=96,title=PLG011 author-not-object::author"
    )
    assert "50%25 a,b:c" in first


def test_grouped_and_statistics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(tmp_path, {"author": "Acme"})
    _, out, _ = run("acme", "--format", "grouped", "--statistics", capsys=capsys)
    assert out.startswith("acme: 1\n acme/.claude-plugin/plugin.json\n") and "1 PLG011 error   author-not-object" in out


def test_output_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(tmp_path)
    _, out, _ = run("acme", "--json", "--output-file", "report.json", capsys=capsys)
    assert out == "" and json.loads(Path("report.json").read_text())["version"] == 1


@pytest.mark.parametrize(
    ("args", "codes"),
    [
        (["--select", "PLG011"], {"PLG011"}),
        (["--select", "PLG"], {"PLG011", "PLG019"}),
        (["--select", "PLG/unknown-field"], {"PLG019"}),
        (["--ignore", "PLG01"], set()),
        (["--ignore", "PLG", "--extend-select", "PLG011"], {"PLG011"}),
        (["--select", "ALL", "--ignore", "PLG011"], {"PLG019"}),
        (["--select", "PLG011,PLG019", "--ignore", "PLG019"], {"PLG011"}),
        (["--profile", "compat"], {"PLG011"}),
        (["--profile", "security"], set()),
    ],
)
def test_selection(args: list[str], codes: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The longest match wins; ``ignore`` beats ``select`` at the same length."""
    plugin(tmp_path, {"author": "Acme", "zzz": 1})
    _, out, _ = run("acme", "--json", *args, capsys=capsys)
    assert {f["code"] for f in json.loads(out)["findings"]} == codes


def test_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = plugin(tmp_path, {"author": "Acme", "zzz": 1, "skills": ["./dist/a"]})
    (home / "pyproject.toml").write_text(
        '[tool.kernel.lint]\nignore = ["PLG019"]\nignore-paths = ["dist"]\n[tool.kernel.lint.severity]\nPLG011 = "info"\n'
        '[tool.kernel.lint.per-file-ignores]\n"skills/*" = ["SKL005 a sample"]\n',
        "utf-8",
    )
    code, out, _ = run("acme", "--json", capsys=capsys)
    assert code == 0 and [(f["code"], f["severity"]) for f in json.loads(out)["findings"]] == [("PLG011", "info")]
    assert run("acme", "--no-config", capsys=capsys)[0] == 1
    (home / "kernel-lint.toml").write_text('ignore = ["PLG"]\n', "utf-8")
    assert run("acme", capsys=capsys)[0] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense = 1\n", "unknown key 'nonsense'"),
        ("ignore = 5\n", "Expected `array`"),
        ("ignore = [\n", "not valid TOML"),
        ('ignore = ["NOPE9"]\n', "names no rule"),
        ('profile = "x"\n', "Invalid enum"),
    ],
)
def test_a_wrong_configuration_is_named(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = plugin(tmp_path)
    (home / "kernel-lint.toml").write_text(text, "utf-8")
    code, _, err = run("acme", capsys=capsys)
    assert code == 2 and said in err


def test_a_comment_covers_the_next_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SKILL + "<!-- kernel-lint: ignore=SKL037 -- a sample -->\nSee [a](gone.md).\nSee [b](gone.md).\n\nSee [c](gone.md).\n"
    plugin(tmp_path, **{"skills/format/SKILL.md": text})
    _, out, _ = run("acme", "--json", capsys=capsys)
    assert [(f["code"], f["line"]) for f in json.loads(out)["findings"]] == [("SKL037", 10)]


def test_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(tmp_path, {"author": "Acme", "keywords": "a, b", "skills": "skills/format"})
    code, out, err = run("acme", "--fix", "--diff", capsys=capsys)
    assert code == 1 and "+++ b/acme/.claude-plugin/plugin.json" in out
    code, out, err = run("acme", "--fix", capsys=capsys)
    assert code == 0 and "repaired: 3 in 1 file(s)" in err
    data = json.loads(Path("acme/.claude-plugin/plugin.json").read_text())
    assert (data["author"], data["keywords"], data["skills"]) == ({"name": "Acme"}, ["a", "b"], "./skills/format")


def test_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Known findings are hidden, also when lines move; new ones are shown; what is gone is said."""
    home = plugin(tmp_path, {"author": "Acme"})
    run("acme", "--write-baseline", "base.json", capsys=capsys)
    place = home / ".claude-plugin" / "plugin.json"
    place.write_text(json.dumps({**GOOD, "author": "Acme"}, indent=4), "utf-8")
    assert run("acme", "--baseline", "base.json", capsys=capsys)[0] == 0
    place.write_text(json.dumps({**GOOD, "keywords": "x"}), "utf-8")
    code, out, err = run("acme", "--baseline", "base.json", capsys=capsys)
    assert code == 1 and "PLG013" in out and "PLG011 is found no longer" in err


def test_every_kind_of_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plugin, one file of it, a folder of it, a project, a lone file of each kind, a tree."""
    plugin(tmp_path, **{"agents/a.md": "# no\n", "commands/README.md": "# x\n"})
    project = {
        ".claude/settings.json": '{"permissions": {"allow": "x"}}',
        ".claude/skills/s/SKILL.md": "---\nname: [\n---\n",
        "lone/hooks.json": '{"hooks": []}',
        "lone/.mcp.json": "[]",
        "lone/settings.json": '{"env": []}',
        "lone/x.json": "[]",
        "lone/.lsp.json": "[]",
        "lone/monitors.json": "{}",
        "lone/SKILL.md": "---\n---\n",
        "lone/agents/b.md": "text\n",
    }
    for name, text in project.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    expected = {
        "acme": {"AGT002", "CMD004"},
        "acme/agents/a.md": {"AGT002"},
        "acme/agents": {"AGT002"},
        "acme/skills/format/SKILL.md": set(),
        ".claude": {"SET002", "SKL001"},
        "lone/hooks.json": {"HOK003"},
        "lone/.mcp.json": {"MCP001"},
        "lone/settings.json": {"SET002"},
        "lone/x.json": {"PLG004"},
        "lone/.lsp.json": {"LSP001"},
        "lone/monitors.json": {"MON001"},
        "lone/SKILL.md": {"SKL004"},
        "lone/agents/b.md": {"AGT002"},
        ".": {"AGT002", "CMD004", "SET002", "SKL001"},
    }
    for path, codes in expected.items():
        _, out, _ = run(path, "--json", capsys=capsys)
        found = {f["code"] for f in json.loads(out)["findings"] if f["severity"] != "info"}
        assert codes <= found and bool(codes) == bool(found), (path, found)


def test_target_turns_version_findings_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(tmp_path, {"defaultEnabled": False})
    assert "PLG048" not in run("acme", capsys=capsys)[1]
    assert "PLG048" in run("acme", "--target", "2.1.100", capsys=capsys)[1]


def test_what_a_stranger_wrote_does_not_steer_the_terminal() -> None:
    assert clean("a\x1b[2Jb\r\u202ec\x9b") == "a?[2Jb??c?"


def test_explain_rules_and_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert Lint().run(["explain", "HOK015"]) == 0 and "matcher-permission-syntax" in capsys.readouterr().out
    assert Lint().run(["explain", "PLG/path-missing"]) == 0 and "PLG025" in capsys.readouterr().out
    assert Lint().run(["explain", "NOPE"]) == 2
    capsys.readouterr()
    assert Lint().run(["rules", "--json"]) == 0
    rules = json.loads(capsys.readouterr().out)
    assert {"code": "SKL057", "profile": "spec"}.items() <= next(r for r in rules if r["code"] == "SKL057").items() and len(
        rules
    ) > 270
    assert Schema().run(["hooks"]) == 0 and json.loads(capsys.readouterr().out)["title"] == "kernel hooks"
    assert Schema().run(["nonsense"]) == 2


def test_schemas_are_written(tmp_path: Path) -> None:
    assert Schema().run(["--output-dir", str(tmp_path / "schemas")]) == 0
    assert len(list((tmp_path / "schemas").glob("*.schema.json"))) == 12


ACME = '''
class NoTodo:
    """A skill says TODO.

    Why: it is not finished.
    """

    name = "ACME001"
    on = "skill"
    severity = "error"

    def check(self, target):
        if "TODO" in target.text:
            yield target.at("it is not finished", "name")


class Broken:
    name = "ACME002"
    on = "skill"

    def check(self, target):
        raise RuntimeError("no")
'''


def test_a_plugin_adds_rules(tmp_path: Path) -> None:
    """An installed plugin registers two rules: one finds, the other fails and is named; exit code 3."""
    site = tmp_path / "site"
    manifest = {
        "name": "acme-rules",
        "version": "1.0.0",
        "metadata": {"kernel": {"implements": ["register_lint_rules"], "provides": {"lint_rules": ["ACME001", "ACME002"]}}},
    }
    files = {
        "acme_rules/.claude-plugin/plugin.json": json.dumps(manifest),
        "acme_rules/__init__.py": "",
        "acme_rules/rules.py": ACME,
        "acme_rules/plugin.py": "from kernel import hookimpl\n\n@hookimpl\ndef register_lint_rules(register):\n"
        "    from acme_rules.rules import Broken, NoTodo\n    register(NoTodo())\n    register(Broken())\n",
        "acme_rules-1.0.0.dist-info/entry_points.txt": "[kernel.plugins]\nacme-rules = acme_rules.plugin\n",
    }
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, "utf-8")
    plugin(tmp_path, **{"skills/format/SKILL.md": SKILL + "TODO\n"})
    environment = {**os.environ, "PYTHONPATH": str(site), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "kernel", "plugins", "validate", "acme", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=60,
        check=False,
    )
    found = {f["code"]: f for f in json.loads(done.stdout)["findings"]}
    assert found["ACME001"]["message"] == "it is not finished" and found["ACME001"]["line"] == 2
    assert "ACME002 failed: RuntimeError: no" in found["KRN-INTERNAL"]["message"] and done.returncode == 3
    assert "Traceback" not in done.stderr


def test_as_a_program(tmp_path: Path) -> None:
    plugin(tmp_path, {"author": "Acme"})
    done = subprocess.run(
        [sys.executable, "-m", "kernel", "plugin", "validate", "acme"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 1 and "PLG011" in done.stdout and done.stderr == ""
