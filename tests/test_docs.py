"""The documentation is part of the product: generated pages are current, examples run, links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from kernel import EVENTS

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"),
                *(ROOT / "plugins").glob("*/README.md")])


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["hooks.md", "cli.md", "architecture.md", "../kernel/__init__.pyi"])
def test_generated_pages_are_current(name: str) -> None:
    kept, made = (ROOT / "docs" / name).read_text("utf-8"), generator().PAGES[name]()
    if name == "architecture.md":  # sizes may drift a little; modules, imports and trips may not
        kept, made = (re.sub(r"^(\| [^|]+\|) \d+ \| \d+ \|", r"\1", text, flags=re.MULTILINE) for text in (kept, made))
    assert kept == made, "run: python docs/generate.py"


def test_every_event_has_a_heading() -> None:
    page = (ROOT / "docs" / "hooks.md").read_text("utf-8")
    for event in EVENTS:
        assert f"[{event}](#" in page


def test_answers_are_spelled_as_python_writes_them() -> None:
    page = (ROOT / "docs" / "hooks.md").read_text("utf-8")
    section = page[page.index("\n## pre_tool_use\n"):page.index("\n## permission_request\n")]
    for field in ('permission_decision: "allow" | "deny" | "ask" | "defer" | None', "updated_input: dict[str, Any] | None",
                  "tool_input: dict[str, Any]"):
        assert f"`{field}`" in section
    assert '`behavior: "allow" | "deny"`' in page[page.index("\n## Decision\n"):]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```|^    .*?$|`[^`\n]+`", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def python_examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "plugins.md").read_text("utf-8"), re.DOTALL)


def test_the_examples_of_the_plugin_page_run(tmp_path: Path) -> None:
    """All blocks of docs/plugins.md in one namespace; then the test that the page shows is run."""
    space: dict[str, object] = {}
    for example in python_examples():
        exec(compile(example, "docs/plugins.md", "exec"), space)
    tests = [name for name in space if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        space[name](tmp_path)  # type: ignore[operator]


def test_the_parrot_of_the_plugin_page_answers(tmp_path: Path) -> None:
    from functools import partial

    import anyio

    from kernel.testing import Kit

    space: dict[str, object] = {}
    for example in python_examples():
        exec(compile(example, "docs/plugins.md", "exec"), space)
    parrot = type("Parrot", (), {"register_models": staticmethod(space["register_models"])})()
    kit = Kit(tmp_path, hooks={"parrot": parrot}, settings={"kernel": {"provider": "parrot"}, "model": "any"})
    run = anyio.run(partial(kit.run, "hello"))
    assert run.result.result == "hello"
