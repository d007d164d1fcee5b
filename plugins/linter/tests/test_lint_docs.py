"""The pages of the rules come from the rules, and the published schemas from the tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kernel_linter.docs import TITLES, pages
from kernel_linter.rule import Rule
from kernel_linter.ruleset import FOLDER, KINDS, everything, prefixes
from kernel_linter.schemas import KINDS as SCHEMA_KINDS, schema

from kernel import manifest as kernel_manifest

ROOT = Path(__file__).resolve().parents[3]
RULES = everything()


def test_pages_are_current() -> None:
    wanted = dict(pages())
    folder = ROOT / "docs" / "rules"
    found = {p.relative_to(folder).as_posix(): p.read_text("utf-8") for p in folder.rglob("*.md")}
    assert found.keys() == wanted.keys(), "run: python docs/generate.py"
    assert [n for n in wanted if found[n] != wanted[n]] == [], "run: python docs/generate.py"


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_a_rule_is_documented_and_reachable(rule: Rule) -> None:
    """What, why, bad, good; a kind of target that brings its module in; the folder of its prefix."""
    assert re.fullmatch(r"[A-Z]{3}\d{3}", rule.code) and re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.slug)
    assert re.search(r"^.+\n\nWhy: .+\n\nBad:\n\n    .+\n\nGood:\n\n    .+", rule.doc, re.DOTALL), rule.code
    assert rule.severity in ("error", "warning", "info") and rule.fix in ("safe", "unsafe", "none")
    for kind in rule.on.split():
        assert rule.code[:3].lower() in KINDS[kind], f"{rule.code}: targets of kind {kind} do not load its prefix"


def test_codes_and_slugs_are_unique() -> None:
    assert len({r.code for r in RULES}) == len(RULES) == len({r.id for r in RULES})
    assert {r.code[:3] for r in RULES} == set(TITLES) == {p.upper() for p in prefixes()}
    for path in FOLDER.rglob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) < 110, f"{path}: a rule is small"


def test_a_rule_that_says_it_repairs_does() -> None:
    """Its source makes a fix, or calls something that does; one that says it does not makes none."""
    makers = re.compile(r"fix=|broken_frontmatter|bare_mcp_names|removed_tools|unknown\(")
    for rule in RULES:
        source = (FOLDER / rule.code[:3].lower() / f"{rule.slug.replace('-', '_')}.py").read_text("utf-8")
        if rule.fix != "none":
            assert makers.search(source), f"{rule.code} promises a fix"


@pytest.mark.parametrize("kind", SCHEMA_KINDS)
def test_a_schema_is_a_schema(kind: str) -> None:
    made = schema(kind)
    Draft202012Validator.check_schema(made)
    json.dumps(made)


SAMPLES = [
    (
        "manifest",
        {"name": "acme", "skills": ["./x"], "userConfig": {"a": {"type": "string", "title": "T", "description": "D"}}},
        True,
    ),
    ("manifest", {"name": "acme", "author": "Acme"}, False),
    ("manifest", {"version": "1.0.0"}, False),
    ("manifest", {"name": "a b"}, False),
    ("manifest", {"name": "a", "dependencies": ["x y"]}, False),
    ("manifest", {"name": "a", "commands": {"x": {}}}, False),
    ("marketplace", {"name": "m", "owner": {"name": "A"}, "plugins": [{"name": "p", "source": "./p"}]}, True),
    ("marketplace", {"name": "m", "plugins": []}, False),
    ("marketplace", {"name": "m", "owner": {"name": "A"}, "plugins": [{"name": "p", "source": {"source": "github"}}]}, False),
    ("hooks", {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}, True),
    ("hooks", {"hooks": {"Stopp": []}}, False),
    ("hooks", {"Stop": []}, False),
    ("hooks", {"hooks": {"PostCompact": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}}, False),
    ("hooks", {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 0}]}]}}, False),
    ("skill", {"name": "a", "allowed-tools": ["Read"], "disable-model-invocation": "yes", "unknown": 1}, True),
    ("skill", {"context": "inline"}, False),
    ("agent", {"name": "a", "description": "b", "color": "pink"}, True),
    ("agent", {"name": "a"}, False),
    ("agent", {"name": "a", "description": "b", "memory": True}, False),
    ("mcp", {"mcpServers": {"a": {"command": "x"}, "b": {"type": "http", "url": ""}}}, True),
    ("mcp", {"mcpServers": {"a": {"url": "x"}}}, False),
    ("lsp", {"go": {"command": "gopls", "extensionToLanguage": {".go": "go"}}}, True),
    ("lsp", {"go": {"command": "gopls"}}, False),
    ("monitors", [{"name": "a", "command": "b", "description": "c"}], True),
    ("monitors", {}, False),
    ("settings", {"permissions": {"allow": ["Bash"]}, "env": {"A": "1"}}, True),
    ("settings", {"permissions": {"allow": "Bash"}}, False),
    ("theme", {"base": "dark", "overrides": {"x": "#fff"}}, True),
    ("theme", {"base": "darker"}, False),
]


@pytest.mark.parametrize(("kind", "value", "good"), SAMPLES)
def test_a_schema_agrees_with_the_rules(kind: str, value: object, good: bool) -> None:
    assert Draft202012Validator(schema(kind)).is_valid(value) is good


def test_the_python_side_knows_every_registration_hook() -> None:
    from kernel_linter.python_side import hook_names

    assert {f"register_{kind}" for kind in kernel_manifest.KINDS} <= set(hook_names())
