"""Whatever the bytes are: a verdict, no traceback, no waiting, nothing run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from kernel_linter import frontmatter, tree
from kernel_linter.rule import Report
from kernel_linter.runner import lint

MANIFEST = b'{"name": "acme", "version": "1.0.0", "description": "Formats SQL files", "author": {"name": "A"}}'
SKILL = b"---\nname: a\ndescription: Formats SQL files in a folder\n---\nText.\n"


def plugin(tmp_path: Path, **files: bytes) -> Path:
    root = tmp_path / "acme"
    for name, data in {".claude-plugin/plugin.json": MANIFEST, "skills/a/SKILL.md": SKILL, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def codes(report: Report) -> set[str]:
    found = {f.code for f in report.findings}
    assert "KRN-INTERNAL" not in found, [f.message for f in report.findings if f.code == "KRN-INTERNAL"]
    return found


DEEP = 100_000
PLACES = [
    ".claude-plugin/plugin.json",
    "hooks/hooks.json",
    ".mcp.json",
    ".lsp.json",
    "monitors/monitors.json",
    "settings.json",
    ".claude-plugin/marketplace.json",
    "themes/a.json",
]
BYTES: dict[str, tuple[bytes, str]] = {
    "deep lists": (b"[" * DEEP + b"]" * DEEP, "nested too deeply"),
    "deep objects": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "nested too deeply"),
    "binary": (bytes(range(256)) * 40, ""),
    "zeros": (b"\0" * 1000, ""),
    "half a surrogate": (b'{"name": "\\ud800"}', ""),
    "a huge number": (b'{"name": ' + b"9" * 10_000 + b"}", ""),
    "UTF-16": ('{"name": "acme"}'.encode("utf-16"), ""),
    "six million bytes": (b'{"name": "' + b"a" * 6_000_000 + b'"}', "too large"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", BYTES)
def test_json_of_every_kind(place: str, kind: str, tmp_path: Path) -> None:
    data, said = BYTES[kind]
    report = lint(plugin(tmp_path, **{place: data}))
    found = codes(report)
    if place != "settings.json" or said:
        assert any(f.severity in ("error", "warning") for f in report.findings) or kind == "half a surrogate", found
    if said and place != "themes/a.json":
        assert any(said in f.message for f in report.findings), [f.message for f in report.findings]


YAMLS: dict[str, tuple[str, str]] = {
    "aliases that multiply": (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(12)),
        "SKL016",
    ),
    "merge keys that multiply": (
        "a: &a {x: 1}\n"
        + "".join(f"{chr(98 + i)}: &{chr(98 + i)} {{<<: [{','.join([f'*{chr(97 + i)}'] * 9)}]}}\n" for i in range(12)),
        "SKL016",
    ),
    "a list in itself": ("description: &a [*a]\n", ""),
    "deep flow": ("description: " + "[" * 20_000 + "]" * 20_000 + "\n", "SKL001"),
    "python object": ("description: !!python/object/apply:os.system ['touch HACKED']\n", ""),
    "a date, a yes, a sexagesimal": ("description: 2026-01-01\nwhen_to_use: yes\nargument-hint: 1:30\n", ""),
    "a very long block": ("description: " + "x" * 300_000 + "\n", "SKL001"),
    "keys of every type": ("? [a, b]\n: 1\n1: 2\nnull: 3\n? {a: 1}\n: x\n", ""),
    "an unknown alias": ("description: *nothing\n", "SKL001"),
    "two documents": ("description: a\n...\nother\n", "SKL001"),
    "tabs": ("description:\tx\n\tname: y\n", ""),
}


@pytest.mark.parametrize("kind", YAMLS)
def test_yaml_of_every_kind(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    block, code = YAMLS[kind]
    data = f"---\nname: a\n{block}---\nText.\n".encode()
    files = dict.fromkeys(("skills/a/SKILL.md", "agents/b.md", "commands/c.md", "output-styles/d.md"), data)
    found = codes(lint(plugin(tmp_path, **files)))
    assert not code or code in found
    assert not list(tmp_path.rglob("HACKED"))


def test_dates_and_words_stay_texts() -> None:
    text = "---\na: 2026-01-01\nb: yes\nc: on\nd: 1:30\ne: 0o17\nf: 012\ng: 1_000\nh: TRUE\ni: ~\nj: .5\n---\n"
    assert frontmatter.parse(text).data == {
        "a": "2026-01-01",
        "b": "yes",
        "c": "on",
        "d": "1:30",
        "e": "0o17",
        "f": 12,
        "g": "1_000",
        "h": True,
        "i": None,
        "j": 0.5,
    }


def test_odd_files_are_named_and_not_opened(tmp_path: Path) -> None:
    """Named pipes in every place: no waiting, each named."""
    root = plugin(tmp_path)
    places = [
        "hooks/hooks.json",
        ".mcp.json",
        "agents/x.md",
        "commands/y.md",
        "bin/tool",
        "skills/b/SKILL.md",
        "pyproject.toml",
        "CLAUDE.md",
    ]
    for place in places:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / place)
    report = lint(root)
    codes(report)
    named = {f.path for f in report.findings if f.code in ("LNT001", "LNT002")}
    assert {str(root / p) for p in places} <= named


def test_links_that_go_round(tmp_path: Path) -> None:
    root = plugin(tmp_path)
    (root / "skills" / "loop").symlink_to("loop")
    (root / "skills" / "up").symlink_to("..")
    (root / "agents").symlink_to("commands")
    (root / "commands").symlink_to("agents")
    (root / "hooks").symlink_to("/dev")
    (root / ".mcp.json").symlink_to("/dev/zero")
    assert {"SEC007", "SEC006"} <= codes(lint(root))


def test_a_manifest_that_is_a_folder(tmp_path: Path) -> None:
    root = plugin(tmp_path)
    (root / ".claude-plugin" / "plugin.json").unlink()
    (root / ".claude-plugin" / "plugin.json").mkdir()
    assert "LNT001" in codes(lint(root)), "the installer refuses it, so the linter does not pass it"


def test_too_many_files_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_ENTRIES", 50)
    root = plugin(tmp_path)
    for index in range(60):
        (root / f"file{index}").write_bytes(b"")
    assert "LNT002" in codes(lint(root))


def test_deep_folders_end(tmp_path: Path) -> None:
    root = plugin(tmp_path)
    (root / "commands" / "/".join(["d"] * 60)).mkdir(parents=True)
    assert "LNT002" in codes(lint(root))


def test_thousands_of_entries(tmp_path: Path) -> None:
    """A catalogue with 5,000 entries that all say the same: a bounded report."""
    entries = [{"name": f"p{i}", "source": f"./p{i}", "zzz": 1} for i in range(5000)]
    place = tmp_path / ".claude-plugin" / "marketplace.json"
    place.parent.mkdir()
    place.write_text(json.dumps({"name": "m", "owner": {"name": "A"}, "plugins": entries}), "utf-8")
    report = lint(tmp_path)
    assert {"MKT013", "MKT019", "MKT008"} <= codes(report) and len(report.findings) <= 300 * 6


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1b[31mb", "..", "🙂", "a" * 200, "con", "-rf", "a b", "$(id)", "`id`", "%s%n", "\u202egpj"]
)
def test_strange_names(name: str, tmp_path: Path) -> None:
    root = plugin(tmp_path, **({} if name == ".." else {f"skills/{name}/SKILL.md": SKILL, f"commands/{name}.md": SKILL}))
    data = {
        "name": name,
        "skills": [f"./skills/{name}"],
        "commands": {name: {"content": "x"}},
        "mcpServers": {name: {"command": name}},
    }
    (root / ".claude-plugin" / "plugin.json").write_text(json.dumps(data), "utf-8")
    codes(lint(root))


# -- any bytes -----------------------------------------------------------------------------------------------------------
WORDS = [
    "---",
    "\n",
    "\r\n",
    "name:",
    "description:",
    "allowed-tools:",
    " ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    "- ",
    "|",
    ">",
    "'",
    '"',
    "#",
    "*",
    "&",
    "!",
    "%",
    "@",
    "`",
    "$1",
    "$ARGUMENTS",
    "!`x`",
    "```",
    "<!-- kernel-lint: ignore=SKL001 -->",
    "${CLAUDE_PLUGIN_ROOT}",
    "\ufeff",
    "\t",
    "true",
    "hooks:",
    "Stop:",
    "\u202e",
    "[x](y)",
    "Bash(",
    ")",
    ",",
    "mcp__a__b",
    "\\",
]
MARKDOWN = st.one_of(
    st.binary(max_size=300),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=40).map(
        lambda parts: ("---\n" + "".join(parts)).encode("utf-8", "surrogatepass")
    ),
)
KEYS = st.sampled_from(
    """
    name version skills commands agents hooks mcpServers lspServers userConfig channels dependencies experimental
    monitors themes settings author repository keywords plugins owner source metadata pluginRoot renames relevance
    signals hosts strict type title default min max command args env url headers Stop PreToolUse matcher if timeout
    shell server tool when description sha repo path extensionToLanguage permissions allow agent
""".split()
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(
        [
            "./x",
            "../x",
            "/x",
            ".",
            "./skills",
            "./.claude-plugin/plugin.json",
            "Bash(git *)",
            "*.ts",
            "${user_config.a}",
            "^1.2",
            "npx -y x",
            "${CLAUDE_PLUGIN_ROOT}/x",
            "command",
            "http",
            "prompt",
            "github",
            "archive",
            "npm",
            "on-skill-invoke:a",
            "\0",
            "x" * 70,
            "acme",
        ]
    ),
)
JSONS = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=5)), max_leaves=25
)
QUICK = settings(
    max_examples=80,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@QUICK
@given(data=MARKDOWN)
def test_any_markdown(data: bytes, tmp_path: Path) -> None:
    files = dict.fromkeys(("skills/a/SKILL.md", "agents/b.md", "commands/c.md", "output-styles/d.md"), data)
    codes(lint(plugin(tmp_path, **files)))


@QUICK
@given(data=st.one_of(JSONS, st.dictionaries(KEYS, JSONS, max_size=6)), place=st.sampled_from(PLACES))
def test_any_json(data: Any, place: str, tmp_path: Path) -> None:
    root = plugin(
        tmp_path, **{p: b"{}" for p in PLACES if p not in (".claude-plugin/plugin.json", ".claude-plugin/marketplace.json")}
    )
    (root / ".claude-plugin" / "marketplace.json").unlink(missing_ok=True)
    (root / place).write_text(json.dumps(data), "utf-8")
    codes(lint(root))
    codes(lint(root / place))


@QUICK
@given(data=st.dictionaries(KEYS, JSONS, max_size=6))
def test_any_settings(data: dict[str, Any], tmp_path: Path) -> None:
    place = tmp_path / ".claude" / "settings.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(data), "utf-8")
    codes(lint(tmp_path / ".claude"))


@QUICK
@given(data=st.binary(max_size=200), place=st.sampled_from(PLACES))
def test_any_bytes(data: bytes, place: str, tmp_path: Path) -> None:
    (tmp_path / "acme" / ".claude-plugin" / "marketplace.json").unlink(missing_ok=True)
    codes(lint(plugin(tmp_path, **{place: data})))


def test_no_plugin_code_is_imported(tmp_path: Path) -> None:
    """A plugin whose module, hooks and servers would leave a mark: none is left, no module of it is loaded."""
    mark = tmp_path / "RAN"
    code = f"open({str(mark)!r}, 'w').write('x')\n".encode()
    project = '[project]\nname = "kernel-acme"\n[project.entry-points."kernel.plugins"]\nacme = "acme_hostile.plugin"\n'
    hooks = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {mark}"}]}]}}
    root = plugin(
        tmp_path,
        **{
            "pyproject.toml": project.encode(),
            "src/acme_hostile/plugin.py": code,
            "src/acme_hostile/__init__.py": code,
            "hooks/hooks.json": json.dumps(hooks).encode(),
            "skills/a/SKILL.md": SKILL + f"!`touch {mark}`\n".encode(),
            ".mcp.json": json.dumps({"mcpServers": {"a": {"command": "touch", "args": [str(mark)]}}}).encode(),
        },
    )
    assert "KRN006" in codes(lint(root))
    assert not mark.exists() and "acme_hostile" not in sys.modules
