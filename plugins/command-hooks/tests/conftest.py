"""A world for hook tests: real settings files of every scope, real plugin folders, real handlers, a scripted model."""

from __future__ import annotations

import json
import os
import shlex
import signal
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel import Event, Manifest, Merged, Plugin, Session, Settings, SystemMessage, Tool, ToolContext, ToolError, ToolResult
from kernel.testing import Kit, Run, plugin_folder


class Placed(Plugin):
    """A plugin of a marketplace."""

    marketplace: str = "inline"

    @property
    def id(self) -> str:
        return f"{self.name}@{self.marketplace}"


class Echo(Tool):
    """A tool that only remembers what it was called with.

    :param result: text or structured object of every call.
    :param error: text of the failure of every call.
    """

    description = "For tests."

    def __init__(self, name: str, *, result: Any = None, error: str | None = None, aliases: tuple[str, ...] = (),
                 schema: dict[str, Any] | None = None, output_schema: dict[str, Any] | None = None) -> None:
        self.name = name  # type: ignore[misc]
        self.aliases = aliases  # type: ignore[misc]
        self.input_schema = schema or {"type": "object"}  # type: ignore[misc]
        self.output_schema = output_schema  # type: ignore[misc]
        kind = {"Bash": ("command", "command"), "Read": ("path", "file_path"), "Write": ("path", "file_path"),
                "Edit": ("path", "file_path"), "NotebookEdit": ("path", "file_path")}.get(name, ("ask", None))
        self.permission, self.rule_field = kind  # type: ignore[misc, assignment]
        self.rule_name = "Edit" if name in ("Write", "NotebookEdit") else None  # type: ignore[misc]
        self.result, self.error = result, error
        self.inputs: list[dict[str, Any]] = []

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        self.inputs.append(input)
        if self.error is not None:
            raise ToolError("failed", self.error)
        if isinstance(self.result, dict):
            return ToolResult(content=json.dumps(self.result), structured=self.result)
        return ToolResult(content=self.result or "ran")


def bash(result: str = "ran", **more: Any) -> Echo:
    """A Bash that runs nothing, with the documented shapes."""
    text, flag = {"type": "string"}, {"type": "boolean"}
    return Echo("Bash", result={"stdout": result, "stderr": "", "interrupted": False, "isImage": False},
                schema={"type": "object", "required": ["command"], "properties": {"command": text}},
                output_schema={"type": "object", "required": ["stdout", "stderr", "interrupted", "isImage"], "properties": {
                    "stdout": text, "stderr": text, "interrupted": flag, "isImage": flag}}, **more)


class World:
    """A workspace and a home. Handlers made by ``handler`` keep what they were handed: see ``ran``, ``inputs``, ``env``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = root / "repo"
        self.config = root / "home" / ".claude"
        self.log = root / "log"
        self.bin = root / "bin"
        self.managed = root / "managed"
        for folder in (self.cwd, self.config, self.log, self.bin, self.managed):
            folder.mkdir(parents=True)
        self.plugins: list[Plugin] = []
        self.cli: str | None = None
        self.kit: Kit = None  # type: ignore[assignment]
        self.debug: list[str] = []

    # -- laying things out ------------------------------------------------------------------------------------------------
    def settings(self, scope: str = "project", **values: Any) -> Path:
        path = {"project": self.cwd / ".claude" / "settings.json", "local": self.cwd / ".claude" / "settings.local.json",
                "user": self.config / "settings.json", "managed": self.managed / "managed-settings.json",
                "flag": self.root / "flag.json"}[scope]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
        if scope == "flag":
            self.cli = str(path)
        return path

    def trust(self) -> None:
        """The person trusted the folder."""
        (self.config / ".claude.json").write_text(json.dumps({"projects": {str(self.cwd): {"hasTrustDialogAccepted": True}}}))

    def plugin(self, name: str, files: dict[str, Any], marketplace: str = "inline", **manifest: Any) -> Path:
        root = plugin_folder(self.root / "plugins" / f"{name}-{marketplace}", name, files, **manifest)
        described = msgspec.convert({"name": name, **manifest}, Manifest)
        self.plugins.append(Placed(name=name, root=root, source="inline", manifest=described, marketplace=marketplace))
        return root

    def program(self, name: str, text: str) -> Path:
        """A program on the PATH of handlers."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def handler(self, id: str, *, exit: int = 0, stdout: str = "", json_out: Any = None, stderr: str = "", sleep_s: float = 0,
                killed_by: str = "", read_stdin: bool = True) -> str:
        """The command of a handler that keeps its input and environment, then does what was said."""
        if json_out is not None:
            stdout = json.dumps(json_out)
        (self.log / f"{id}.out").write_text(stdout)
        (self.log / f"{id}.err").write_text(stderr)
        base = shlex.quote(str(self.log / id))
        lines = ["#!/bin/sh", self.recording(id), f"cat > {base}.in.$$" if read_stdin else ":",
                 f"env > {base}.env", f"cat {base}.out", f"cat {base}.err >&2", f"sleep {sleep_s}" if sleep_s else ":",
                 f"echo {id} >> {shlex.quote(str(self.log / 'ended'))}",
                 f"kill -{killed_by} $$" if killed_by else f"exit {exit}"]
        return shlex.quote(str(self.program(f"handler-{id}", "\n".join(lines) + "\n")))

    def recording(self, id: str) -> str:
        return f"echo {id} >> {shlex.quote(str(self.log / 'ran'))}"

    def hooks(self, event: str, *commands: str | dict[str, Any], matcher: str | None = None) -> dict[str, Any]:
        """The ``hooks`` value for one event; a command alone is a handler in shell form."""
        handlers = [c if isinstance(c, dict) else {"type": "command", "command": c} for c in commands]
        return {event: [{"hooks": handlers, **({"matcher": matcher} if matcher is not None else {})}]}

    # -- running ------------------------------------------------------------------------------------------------------------
    def start(self, turns: Iterable[Any] = (), *, tools: Iterable[Tool] = (), policy: Any = None, installed: Iterable[str] = (),
              **options: Any) -> Session:
        kit = self.kit = Kit(self.cwd, turns, tools=tools, policy=policy, installed=["command-hooks", *installed], **options)
        kit.harness.plugins.plugins += self.plugins
        kit.harness.settings = self.read_settings(options.get("setting_sources", ("user", "project", "local")))
        for problem in kit.harness.settings.problems:
            kit.harness.announce(str(problem))
        kit.harness.debug_sink = self.debug.append
        return kit.open()

    def read_settings(self, sources: tuple[str, ...] = ("user", "project", "local")) -> Settings:
        return Settings.load(self.cwd, cli=self.cli, sources=sources, managed_dir=str(self.managed))

    async def prompt(self, text: str = "go", session: Session | None = None) -> Run:
        return await self.kit.run(text, session)

    async def fire(self, session: Session, kind: type[Event], /, **fields: Any) -> Merged:
        return await session.fire(session.make(kind, **fields))

    # -- what happened --------------------------------------------------------------------------------------------------------
    def ran(self) -> list[str]:
        """Ids of handlers in the order in which they began."""
        path = self.log / "ran"
        return path.read_text().split() if path.exists() else []

    def ended(self) -> list[str]:
        path = self.log / "ended"
        return path.read_text().split() if path.exists() else []

    def inputs(self, id: str) -> list[dict[str, Any]]:
        return [json.loads(p.read_text()) for p in sorted(self.log.glob(f"{id}.in.*"), key=lambda p: p.stat().st_mtime_ns)]

    def env(self, id: str) -> dict[str, str]:
        lines = (self.log / f"{id}.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def notices(self) -> list[str]:
        return [m.data["content"] for m in self.kit.outputs if isinstance(m, SystemMessage) and m.subtype == "informational"]

    def hook_messages(self, subtype: str = "") -> list[dict[str, Any]]:
        return [{"subtype": m.subtype, **m.data} for m in self.kit.outputs
                if isinstance(m, SystemMessage) and m.subtype.startswith(subtype or "hook_")]

    def model_saw(self) -> str:
        """Everything that the model was ever sent."""
        return json.dumps(self.kit.model.requests, ensure_ascii=False)


class Server:
    """Answers every path with what was set; keeps (path, headers, body) of every request."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.slow = {"/slow"}
        self.wait = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.seen.append((self.path, dict(self.headers), body))
                status, answer, headers = server.answers.get(self.path, (200, b"", {}))
                if self.path in server.slow:
                    server.wait.wait(20)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, path: str, value: Any, status: int = 200, **headers: str) -> None:
        self.answers[path] = (status, value if isinstance(value, bytes) else json.dumps(value).encode(), headers)

    def close(self) -> None:
        self.wait.set()
        self._server.shutdown()


@pytest.fixture(autouse=True)
def sandboxed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of ``bypassPermissions`` may be run by root; the kernel allows that in a sandbox only."""
    monkeypatch.setenv("IS_SANDBOX", "1")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world of its own; what the test sets in the environment is undone."""
    before = dict(os.environ)
    for name in [n for n in os.environ if n.startswith(("CLAUDE", "ANTHROPIC", "KERNEL_"))]:
        del os.environ[name]
    made = World(tmp_path)
    os.environ.update(HOME=str(tmp_path / "home"), CLAUDE_CONFIG_DIR=str(made.config), PATH=f"{made.bin}:{os.environ['PATH']}")
    yield made
    os.environ.clear()
    os.environ.update(before)
    for path in made.log.glob("*.pid"):  # what a test let run on
        try:
            os.kill(int(path.read_text()), signal.SIGKILL)
        except (OSError, ValueError):
            pass


@pytest.fixture
def echo() -> type[Echo]:
    return Echo


@pytest.fixture
def make_bash() -> Any:
    return bash


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()
