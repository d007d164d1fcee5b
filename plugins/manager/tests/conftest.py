"""A world for the manager: a config folder, a project, and sources that the tests make themselves."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PLUGIN = """
from kernel import Tool, ToolResult, hookimpl


@hookimpl
def register_tools(register):
    class Say(Tool):
        name = "{tool}"
        description = "says something"
        input_schema = {{"type": "object"}}
        permission = "free"

        async def call(self, input, context):
            return ToolResult(content="{version}")

    register(Say())
"""


class Done:
    """What a command came to."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


class World:
    def __init__(self, root: Path, capsys: Any) -> None:
        self.root, self.capsys = root, capsys
        self.home, self.config, self.project = root / "home", root / "home" / ".claude", root / "project"
        self.project.mkdir(parents=True)
        self.config.mkdir(parents=True)
        self.state_file = self.config / "kernel" / "plugins" / "state.json"

    # -- the command -----------------------------------------------------------------------------------------------------
    def run(self, *args: str | Path) -> Done:
        """``kernel plugins ...`` in this process, through the public door."""
        from kernel.cli import main

        self.capsys.readouterr()
        code = main(["plugins", *map(str, args)])
        done = self.capsys.readouterr()
        return Done(code, done.out, done.err)

    def ok(self, *args: str | Path) -> Done:
        done = self.run(*args)
        assert done.code == 0, done
        return done

    def refused(self, type: str, *args: str | Path) -> Done:
        """The command fails with that kind of error, says so as JSON, and has changed nothing that counts."""
        before = self.counts()
        done = self.run(*args, "--json")
        assert done.code != 0 and not done.json["ok"], done
        assert done.json["error"]["type"] in type.split(" or "), done
        assert self.counts() == before
        assert not list((self.config / "kernel" / "plugins" / "staging").glob("*"))
        return done

    def process(self, *args: str | Path, prelude: str = "") -> subprocess.CompletedProcess[str]:
        """The same in a process of its own, after some lines of Python."""
        code = f"{prelude}\nimport sys\nfrom kernel.cli import main\nsys.exit(main({['plugins', *map(str, args)]!r}))"
        return subprocess.run([sys.executable, "-c", code], cwd=self.project, capture_output=True, text=True, timeout=120,
                              check=False)

    def counts(self) -> Any:
        """What a session would run with: enabled plugins that are there, their versions, settings."""
        state = json.loads(self.state_file.read_text()) if self.state_file.exists() else {"plugins": {}}
        files = [self.config / "settings.json", self.project / ".claude" / "settings.json",
                 self.project / ".claude" / "settings.local.json"]
        return ({i: [(r["scope"], r["version"], r["digest"]) for r in rs] for i, rs in state["plugins"].items()},
                [f.read_text() if f.exists() else None for f in files])

    def listed(self) -> dict[str, dict[str, Any]]:
        """What the list says of everything that the manager installed."""
        rows = json.loads(self.run("list", "--json").out)
        return {row["id"]: row for row in rows if row["scope"]}

    def versions(self) -> dict[str, str]:
        return {id: row["version"] for id, row in self.listed().items() if row["enabled"]}

    def trust(self, folder: Path | None = None) -> None:
        path = self.config / ".claude.json"
        path.write_text(json.dumps({"projects": {str(folder or self.project): {"hasTrustDialogAccepted": True}}}))

    # -- sources -----------------------------------------------------------------------------------------------------------
    def plugin(self, name: str, version: str | None = "1.0.0", *, folder: Path | None = None, files: dict[str, str] | None = None,
               **manifest: Any) -> Path:
        """A plugin folder with one skill. With ``hooks=True`` it has a hook, too."""
        folder = folder or self.root / "sources" / name
        files = {"skills/hello/SKILL.md": f"---\ndescription: {name}\n---\n{version}\n", **(files or {})}
        if manifest.pop("hooks", False):
            command = {"type": "command", "command": "true"}
            files["hooks/hooks.json"] = json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [command]}]}})
        data = {"name": name, "description": f"the plugin {name}", **({"version": version} if version else {}), **manifest}
        for path, text in {".claude-plugin/plugin.json": json.dumps(data), **files}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    def project_plugin(self, name: str, version: str = "1.0.0", *, tool: str = "Say", before: str = "",
                       requires: tuple[str, ...] = (),
                       **more: Any) -> Path:
        """A plugin folder that is a Python project with a tool."""
        kernel = {"implements": ["register_tools"], "provides": {"tools": [tool]}}
        project = f'[project]\nname = "{name}-project"\nversion = "{version}"\ndependencies = {list(requires)!r}\n' \
                  f'[project.entry-points."kernel.plugins"]\n{name} = "{name}_module.plugin"\n'
        files = {"pyproject.toml": project, f"src/{name}_module/__init__.py": "",
                 f"src/{name}_module/plugin.py": f"{before}\n{PLUGIN.format(tool=tool, version=version)}"}
        return self.plugin(name, version, files=files, metadata={"kernel": kernel}, **more)

    def market(self, name: str = "acme", plugins: dict[str, dict[str, Any]] | None = None, **top: Any) -> Path:
        """A marketplace folder. Each plugin is ``{version, hooks, ..., entry: {...}}`` and lies in ``plugins/NAME``."""
        folder = self.root / "markets" / name
        entries = []
        for plugin, facts in (plugins or {}).items():
            facts = dict(facts)
            entry = facts.pop("entry", {})
            if "source" not in entry:
                self.plugin(plugin, facts.pop("version", "1.0.0"), folder=folder / "plugins" / plugin, **facts)
            entries.append({"name": plugin, "source": f"./plugins/{plugin}", **entry})
        place = folder / ".claude-plugin" / "marketplace.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps({"name": name, "owner": {"name": "o"}, "plugins": entries, **top}))
        return folder

    def git(self, folder: Path, *args: str) -> str:
        done = subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main", *args],
                              cwd=folder,
                              capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    def commit(self, folder: Path, tag: str | None = None) -> str:
        if not (folder / ".git").exists():
            self.git(folder, "init", "-q")
        self.git(folder, "add", "-A")
        self.git(folder, "commit", "-q", "--allow-empty", "-m", "x")
        if tag:
            self.git(folder, "tag", tag)
        return self.git(folder, "rev-parse", "HEAD")

    def wheel(self, name: str, version: str = "1.0.0", *, requires: list[str] | None = None, plugin: str | None = None,
              files: dict[str, str] | None = None, folder: Path | None = None, tool: str = "Say", broken: str = "") -> Path:
        """A wheel; with ``plugin`` it brings a plugin of that name with a tool."""
        package = name.replace("-", "_")
        content = {f"{package}/__init__.py": broken, **(files or {})}
        if plugin:
            kernel = {"implements": ["register_tools"], "provides": {"tools": [tool]}}
            manifest = {"name": plugin, "version": version, "description": plugin, "metadata": {"kernel": kernel}}
            content[f"{package}/.claude-plugin/plugin.json"] = json.dumps(manifest)
            content[f"{package}/plugin.py"] = PLUGIN.format(tool=tool, version=version)
            content[f"{package}-{version}.dist-info/entry_points.txt"] = f"[kernel.plugins]\n{plugin} = {package}.plugin\n"
        info = f"{package}-{version}.dist-info"
        needs = "".join(f"Requires-Dist: {r}\n" for r in requires or [])
        content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        content[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        folder = folder or self.root / "wheels"
        folder.mkdir(exist_ok=True)
        path = folder / f"{package}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as file:
            record = ""
            for place, text in content.items():
                file.writestr(place, text)
                digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
                record += f"{place},sha256={digest},{len(text.encode())}\n"
            file.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
        return path

    @property
    def index(self) -> tuple[str, ...]:
        return ("--no-index", "--find-links", str(self.root / "wheels"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> World:
    made = World(tmp_path, capsys)
    for name in [n for n in os.environ if n.startswith(("CLAUDE_", "KERNEL_", "PIP_", "UV_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(made.config))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.chdir(made.project)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return made


@pytest.fixture
def at_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], None]], None]:
    """Do something when a change comes to a step."""
    from kernel_manager import steps

    def listen(name: str, action: Callable[[], None]) -> None:
        monkeypatch.setattr(steps, "listeners", [lambda step: action() if step == name else None])

    return listen
