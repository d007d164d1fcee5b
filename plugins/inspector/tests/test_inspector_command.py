"""``kernel inspect`` as a person calls it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import provides

pytestmark = pytest.mark.skipif(
    not (provides("stores", "files") and provides("models", "script")), reason="needs files and a script"
)
TALK = "turns:\n  - text: first answer\n    repeat: true\n"


class Shell:
    """A home, a folder, and commands in it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "work"
        self.folder.mkdir()
        (root / "talk.yaml").write_text(TALK)
        self.env = {
            "HOME": str(root / "home"),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "KERNEL_PROVIDER": "script",
            "KERNEL_SCRIPT": str(root / "talk.yaml"),
        }

    def kernel(self, *args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kernel", *args],
            cwd=cwd or self.folder,
            env={**self.env, **env},
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def say(self, prompt: str, *more: str) -> str:
        """Run a prompt; the session's id."""
        done = self.kernel("-p", prompt, "--output-format", "json", *more)
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["session_id"])


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("shell"))


@pytest.fixture(scope="module")
def said(shell: Shell) -> tuple[str, str]:
    """Two sessions: the first has a name, the second is the newest."""
    return shell.say("the older prompt", "--name", "Older one"), shell.say("the newer prompt")


def seen(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_session_is_found_by_what_a_person_knows_of_it(shell: Shell, said: tuple[str, str]) -> None:
    older, newer = said
    elsewhere = shell.folder.parent
    assert seen(shell.kernel("inspect", "--json"))["id"] == newer
    for name, cwd in ((older, None), (older[:8], None), ("Older one", None), (older[:8], elsewhere), (older, elsewhere)):
        assert seen(shell.kernel("inspect", name, "--json", cwd=cwd))["id"] == older, name
    path = seen(shell.kernel("inspect", older, "--json"))["path"]
    assert seen(shell.kernel("inspect", path, "--json", cwd=elsewhere))["title"] == "Older one"


def test_what_is_printed_is_what_the_page_shows(shell: Shell, said: tuple[str, str]) -> None:
    got = seen(shell.kernel("inspect", said[1], "--json"))
    assert got["recorded"] and not got["running"] and got["totals"]["turns"] == 1 and got["totals"]["requests"] == 1
    (lane,) = got["content"]
    assert [(row["kind"], row["text"]) for row in lane["rows"]["rows"] if row["kind"] in ("turn", "text")] == [
        ("turn", "the newer prompt"),
        ("text", "first answer"),
    ]
    assert set(lane["requests"]["columns"][0]["parts"]) >= {"system", "tools", "user"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "no session of this folder"),
        ("deadbeef", "No conversation found"),
        ("No such name", "No conversation found"),
        ("nothing.jsonl", "there is no file"),
        ("../../etc/passwd", "No conversation found"),
    ],
)
def test_what_is_not_there_is_said_in_words(shell: Shell, tmp_path: Path, name: str, words: str) -> None:
    done = shell.kernel("inspect", *([name] if name else []), "--json", cwd=tmp_path)
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr


def test_inspecting_leaves_a_session_as_it_is(shell: Shell, said: tuple[str, str]) -> None:
    def files() -> dict[Path, tuple[int, bytes]]:
        return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in Path(shell.env["HOME"]).rglob("*.jsonl")}

    before = files()
    seen(shell.kernel("inspect", said[0], "--json"))
    seen(shell.kernel("inspect", "--json"))
    assert files() == before


def test_the_page_is_served_until_it_is_interrupted(shell: Shell, said: tuple[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "kernel", "inspect", said[0], "--no-open"],
        cwd=shell.folder,
        env=shell.env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    ) as process:
        try:
            assert process.stdout is not None
            address = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/#([\w-]{30,})\n", process.stdout.readline())
            assert address
            ask = urllib.request.Request(f"{address[1]}/api/session", headers={"Authorization": f"Bearer {address[2]}"})
            with urllib.request.urlopen(ask, timeout=20) as answer:
                assert json.load(answer)["id"] == said[0]
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(f"{address[1]}/api/session", timeout=20)
            busy = shell.kernel("inspect", said[0], "--no-open", "--port", address[1].rpartition(":")[2])
            assert busy.returncode == 1 and "--port 0" in busy.stderr
            arguments = Path(f"/proc/{process.pid}/cmdline")
            assert not arguments.exists() or address[2] not in arguments.read_text()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0 and process.stderr is not None and "Traceback" not in process.stderr.read()


def test_where_it_is_opened_the_token_is_in_no_argument(shell: Shell, said: tuple[str, str], tmp_path: Path) -> None:
    """What a person's browser is started with can be read by all people of the machine."""
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\n'
        f'cp "${{1#file://}}" {tmp_path}/opened\nls -l "${{1#file://}}" > {tmp_path}/rights\n'
    )
    browser.chmod(0o755)
    env = {**shell.env, "DISPLAY": ":99", "BROWSER": f"{browser} %s"}
    with subprocess.Popen(
        [sys.executable, "-m", "kernel", "inspect", said[0]],
        cwd=shell.folder,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            until = time.monotonic() + 20
            while not (tmp_path / "rights").exists() or not (tmp_path / "rights").read_text():
                assert time.monotonic() < until
                time.sleep(0.05)
        finally:
            process.send_signal(signal.SIGINT)
        process.wait(20)
    arguments = (tmp_path / "arguments").read_text()
    assert url.split("#")[1] not in arguments and url in (tmp_path / "opened").read_text()
    assert (tmp_path / "rights").read_text().startswith("-rw-------")
    assert not Path(arguments.strip().removeprefix("file://")).exists()


def test_a_page_is_exported(shell: Shell, said: tuple[str, str], tmp_path: Path) -> None:
    done = shell.kernel("inspect", said[0], "--export", str(tmp_path / "page.html"))
    assert done.returncode == 0 and (tmp_path / "page.html").read_text().count("the older prompt") >= 1
    refused = shell.kernel("inspect", said[0], "--export", str(tmp_path / "no" / "page.html"))
    assert refused.returncode in (1, 2) and "Traceback" not in refused.stderr and "page.html" in refused.stderr


def test_an_export_is_a_new_file_that_only_its_owner_reads(shell: Shell, said: tuple[str, str], tmp_path: Path) -> None:
    page, link, other = tmp_path / "page.html", tmp_path / "link.html", tmp_path / "other"
    page.write_text("old")
    page.chmod(0o644)
    assert shell.kernel("inspect", said[0], "--export", str(page)).returncode == 0
    assert page.stat().st_mode & 0o777 == 0o600 and "the older prompt" in page.read_text()
    other.write_text("another's")
    link.symlink_to(other)
    refused = shell.kernel("inspect", said[0], "--export", str(link))
    assert refused.returncode == 1 and "no ordinary file" in refused.stderr and other.read_text() == "another's"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.html", "other", "page.html"]


def test_a_title_does_not_steer_the_terminal(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    entry = {"type": "user", "uuid": "u", "message": {"role": "user", "content": "a\x1b]0;stolen\x07 title"}}
    path.write_text(json.dumps(entry) + "\n")
    with subprocess.Popen([sys.executable, "-m", "kernel", "inspect", str(path), "--no-open"], cwd=shell.folder, env=shell.env,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.readline()
            line = process.stderr.readline()
        finally:
            process.send_signal(signal.SIGINT)
        process.wait(20)
    assert "stolen" in line and "title" in line and "\x1b" not in line and "\x07" not in line


@pytest.mark.skipif(not provides("commands", "sessions delete"), reason="needs what deletes sessions")
def test_the_record_is_removed_with_its_session(shell: Shell) -> None:
    session = shell.say("to be removed")
    records = [p for p in Path(shell.env["HOME"]).rglob("inspect.jsonl") if p.parent.name == session]
    assert len(records) == 1 and shell.kernel("sessions", "delete", session, "--yes").returncode == 0
    assert not records[0].parent.exists()


@pytest.mark.skipif(not provides("stores", "sql"), reason="needs a store of entries")
def test_a_session_of_a_store_of_entries_is_shown(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    settings = ["--settings", json.dumps({"kernel": {"store": "sql"}})]
    session = shell.say("kept in a table", *settings)
    (Path(shell.env["HOME"]) / ".claude" / "settings.json").write_text(json.dumps({"kernel": {"store": "sql"}}))
    assert not list(Path(shell.env["HOME"]).rglob(f"{session}.jsonl"))
    for name in ([session], []):
        got = seen(shell.kernel("inspect", *name, "--json"))
        assert got["id"] == session and got["recorded"]
        assert [r["text"] for r in got["content"][0]["rows"]["rows"] if r["kind"] in ("turn", "text")] == [
            "kept in a table",
            "first answer",
        ]
