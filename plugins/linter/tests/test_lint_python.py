"""What the kernel refuses when it loads a plugin, the linter says before; and it says no more."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_linter.command import Validate
from kernel_linter.runner import lint

from kernel import KernelError, Plugin, PluginSet

TOOL = "from kernel import Tool, hookimpl\nclass Hello(Tool):\n    name = 'Hello'\n"
REGISTER = "@hookimpl\ndef register_tools(register):\n    register(Hello())\n"
KERNEL = {"requires": ">=0.1,<1", "implements": ["register_tools"], "provides": {"tools": ["Hello"]}}

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a hook that the manifest does not name": (TOOL + REGISTER + "@hookimpl\ndef stop(event): ...\n", {}, "KRN009"),
    "a hook that only the manifest names": (TOOL + REGISTER, {"implements": ["register_tools", "stop"]}, "KRN009"),
    "no mark": (TOOL + REGISTER.replace("@hookimpl\n", ""), {}, "KRN009"),
    "a misspelt hook in the module": (TOOL + REGISTER.replace("_tools", "_tool"), {}, "KRN005"),
    "a misspelt hook on both sides": (TOOL + REGISTER.replace("_tools", "_tool"), {"implements": ["register_tool"]}, "KRN007"),
    "an unknown argument": (TOOL + REGISTER.replace("register)", "register, more=1)", 1), {}, "KRN005"),
    "the event of another hook": (
        TOOL + REGISTER + "@hookimpl\ndef stop(event: PreToolUse): ...\n", {"implements": ["register_tools", "stop"]}, "KRN005"),
    "a syntax error": (TOOL + REGISTER + "def (\n", {}, "KRN008"),
    "an unknown key": (TOOL + REGISTER, {"provide": {}}, "KRN007"),
    "a value of the wrong form": (TOOL + REGISTER, {"implements": "register_tools"}, "KRN007"),
    "no object": (TOOL + REGISTER, {"provides": ["Hello"]}, "KRN007")}
TAKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "as it should be": (TOOL + REGISTER, {}),
    "every event": (TOOL + REGISTER + "from kernel import EVENTS\nimport re\n"
                    "names = [re.sub('(?<!^)(?=[A-Z])', '_', e).lower() for e in EVENTS]\n"
                    "globals().update({name: hookimpl(lambda event: None) for name in names})\n",
                    {"implements": ["register_tools", "*"]}),
    "hooks of another module": ("from linted_more import *\n", {}),
    "an assigned hook": (TOOL + REGISTER + "stop = hookimpl(lambda event: None)\n",
                         {"implements": ["register_tools", "stop"]}),
    "in a branch": (TOOL + "if True:\n    @hookimpl\n    def register_tools(register):\n        register(Hello())\n", {}),
    "functions of one's own": (TOOL + REGISTER + "def setup(name): ...\ndef stop_all(event): ...\n", {})}


def project(root: Path, source: str, kernel: dict[str, Any]) -> Path:
    files = {
        ".claude-plugin/plugin.json": json.dumps({
            "name": "linted", "version": "1.0.0", "description": "Greets people by name", "author": {"name": "Ada"},
            "metadata": {"kernel": {**KERNEL, **kernel}}}),
        "pyproject.toml": '[build-system]\nbuild-backend = "hatchling.build"\n'
                          '[project]\nname = "kernel-linted"\nversion = "1.0.0"\n'
                          '[project.entry-points."kernel.plugins"]\nlinted = "linted.plugin"\n'
                          '[tool.hatch.build.targets.wheel.force-include]\n".claude-plugin" = "linted/.claude-plugin"\n',
        "src/linted/__init__.py": "", "src/linted/plugin.py": source, "src/linted_more.py": TOOL + REGISTER}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def loads(root: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the kernel takes the plugin, by loading it for real."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("linted", "linted_more")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(root / "src"))
    plugin = Plugin.at(root, "inline", module="linted.plugin")
    PluginSet([plugin])
    try:
        if plugin.state == "ready":
            plugin.load()
    except KernelError:
        return False
    finally:
        for name in [n for n in sys.modules if n.partition(".")[0] in ("linted", "linted_more")]:
            del sys.modules[name]
    return plugin.state == "ready"


@pytest.mark.parametrize("fault", REFUSED)
def test_what_the_kernel_refuses_is_an_error(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, kernel, code = REFUSED[fault]
    root = project(tmp_path / "linted", source, kernel)
    assert not loads(root, monkeypatch)
    found = {f.code: f for f in lint(root).findings if f.severity == "error"}
    assert code in found and found[code].line >= 1, found
    assert Validate().run([str(root)]) == 1


@pytest.mark.parametrize("name", TAKEN)
def test_what_the_kernel_takes_is_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, kernel = TAKEN[name]
    root = project(tmp_path / "linted", source, kernel)
    assert loads(root, monkeypatch)
    assert [f"{f.code} {f.message}" for f in lint(root).findings if f.severity == "error"] == []


def test_what_was_looked_at_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(tmp_path / "linted", TOOL + REGISTER, {})
    assert Validate().run([str(root)]) == 0
    assert "passed: 3 file(s), 1 of them Python" in capsys.readouterr().out


def test_a_fault_has_its_place(tmp_path: Path) -> None:
    source, kernel, _ = REFUSED["a hook that the manifest does not name"]
    (found,) = [f for f in lint(project(tmp_path / "linted", source, kernel)).findings if f.code == "KRN009"]
    assert found.path.endswith("src/linted/plugin.py") and found.line == source.splitlines().index("def stop(event): ...") + 1
