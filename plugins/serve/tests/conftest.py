"""A real server in a process of its own, over its real socket, and clients of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_serve.client import Client, NoServer

PATIENCE_S = 30.0
HELLO = "name: s\nturns:\n- text: hello\n- text: again\n- text: a third time\n"


def until(condition: Any, what: str = "", seconds: float = PATIENCE_S) -> Any:
    """Wait for something that another process does; what it was."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"it did not happen: {what}"
        time.sleep(0.02)
    return found


class World:
    """A home, a project and a server in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = self.folder("project", folder)
        self.home.mkdir()
        self.socket = str(folder / "s")
        self.process: subprocess.Popen[str] | None = None
        self.log = folder / "server.log"
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KERNEL_SERVE": self.socket}

    def folder(self, name: str, base: Path | None = None) -> Path:
        made = (base or self.project.parent) / name
        made.mkdir(exist_ok=True)
        return made

    def script(self, text: str = HELLO, name: str = "s.yaml", folder: Path | None = None) -> str:
        ((folder or self.project) / name).write_text(text)
        return f"script:{name}"

    def serve(self, *flags: str, **env: str) -> dict[str, Any]:
        with self.log.open("a") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "kernel", "serve", "--json", *flags], stdout=subprocess.PIPE,
                                            stderr=log, text=True, env={**self.env, **env}, cwd=self.project)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        facts: dict[str, Any] = json.loads(line)
        return facts

    def end(self, number: int = signal.SIGTERM) -> int:
        """End the server with a signal; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def run(self, *args: str, stdin: str | None = None, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """``kernel ARGS``."""
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        return subprocess.run([sys.executable, "-m", "kernel", *args], capture_output=True, text=True, timeout=60, check=False,
                              cwd=cwd or self.project, env={**self.env, **env}, **given)

    def client(self) -> Client:
        return Client(self.socket)

    def create(self, cwd: Path | None = None, **body: Any) -> dict[str, Any]:
        created: dict[str, Any] = self.client().request("POST", "/v1/sessions", {"cwd": str(cwd or self.project), **body})
        return created

    def post(self, id: str, what: str, **body: Any) -> Any:
        return self.client().request("POST", f"/v1/sessions/{id}/{what}", body)

    def listen(self, id: str, after: int = 0) -> Listener:
        return Listener(self.client(), id, after)

    def talk(self, prompt: str, cwd: Path | None = None, **body: Any) -> Listener:
        """A session with one prompt, to its end."""
        row = self.create(cwd, prompt=prompt, end=True, **body)
        listener = self.listen(row["id"])
        listener.named("end")
        return listener


class Listener:
    """Listens in a thread. ``events``: (number, name, decoded data)."""

    def __init__(self, client: Client, id: str, after: int) -> None:
        self.id = id
        self.events: list[tuple[int, str, Any]] = []
        self.over = False
        self._client = client
        threading.Thread(target=self._listen, args=(id, after), daemon=True).start()

    def _listen(self, id: str, after: int) -> None:
        try:
            for number, name, data in self._client.events(id, after):
                self.events.append((number, name, json.loads(data)))
        except (NoServer, OSError, ValueError):
            pass
        self.over = True

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [data for _, name, data in [*self.events] if not name]

    def find(self, type: str, **fields: Any) -> dict[str, Any]:
        """The first message of that type with these fields; waited for."""
        return self._first(lambda m: m.get("type") == type and all(m.get(k) == v for k, v in fields.items()), f"{type} {fields}")

    def question(self, subtype: str) -> dict[str, Any]:
        """A control request of the session; waited for."""
        return self._first(lambda m: m.get("type") == "control_request" and m["request"]["subtype"] == subtype, subtype)

    def answer_to(self, id: str) -> dict[str, Any]:
        found = self._first(lambda m: m.get("type") == "control_response" and m["response"]["request_id"] == id, id)
        return dict(found["response"])

    def _first(self, fits: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        found: dict[str, Any] = until(lambda: next((m for m in self.messages if fits(m)), None), f"{what}; {self.events}")
        return found

    def results(self, count: int = 1) -> list[dict[str, Any]]:
        until(lambda: len([m for m in self.messages if m.get("type") == "result"]) >= count, f"{count} results; {self.events}")
        return [m for m in self.messages if m.get("type") == "result"]

    def named(self, name: str) -> Any:
        found: tuple[int, str, Any] = until(lambda: next((e for e in [*self.events] if e[1] == name), None), name)
        return found[2]


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("w"))
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for the tests of a file that leave it as it was."""
    made = World(tmp_path_factory.mktemp("w"))
    made.serve()
    yield made
    assert made.end() == 0
    assert "Traceback" not in made.log.read_text()


@pytest.fixture
def served(world: World) -> World:
    world.serve()
    return world
