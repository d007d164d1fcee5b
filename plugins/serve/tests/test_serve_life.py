"""Beginnings and ends: signals of clients and of the server, kills, commands about it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_serve import files
from kernel_serve.client import Client, NoServer

from kernel import UsageError

SLOW = """
name: s
turns:
- calls: [{tool: Bash, input: {command: 'trap "" INT TERM; echo $$ > pid; sleep 60; sleep 60'}}]
- text: it went on
- text: later
"""
STREAM = ("--output-format", "stream-json", "--verbose")
LINES = ("--input-format", "stream-json", *STREAM)
USER = '{"type":"user","message":{"role":"user","content":"%s"}}\n'
END = '{"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "touch ended"}]}]}}'


def until(condition: Any, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def begun(world: Any, *args: str, attach: bool = True, prompt: str = "", **more: Any) -> subprocess.Popen[str]:
    """A run that has come to its command, which sleeps."""
    pid = world.project / "pid"
    pid.unlink(missing_ok=True)
    (world.project / "ended").unlink(missing_ok=True)
    model = world.script(SLOW, "slow.yaml")
    flags = ("--attach",) if attach else ()
    run = subprocess.Popen([sys.executable, "-m", "kernel", "-p", *flags, *args, "--model", model, "--allowedTools", "Bash",
                            "--settings", END], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=world.env,
                           cwd=world.project, **{"stdin": subprocess.DEVNULL, **more})
    if prompt and run.stdin is not None:
        run.stdin.write(prompt)
        run.stdin.flush()
    until(lambda: pid.exists() and pid.read_text().strip())
    return run


def gone(world: Any) -> bool:
    number = int((world.project / "pid").read_text())
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def outcome(run: subprocess.Popen[str], *numbers: int) -> tuple[int, list[str], str]:
    for number in numbers:
        run.send_signal(number)
        time.sleep(0.3)
    out, err = run.communicate(timeout=60)
    lines = out.splitlines()
    try:
        said = [":".join(str(m.get(k)) for k in ("type", "subtype", "terminal_reason")) for m in map(json.loads, lines)]
    except ValueError:
        said = lines
    return run.returncode, said, err


@pytest.mark.parametrize("numbers", [(signal.SIGINT,), (signal.SIGINT, signal.SIGINT), (signal.SIGTERM,)],
                         ids=["interrupt", "interrupt twice", "terminate"])
@pytest.mark.parametrize("args", [("go",), ("go", *STREAM)], ids=["text", "stream-json"])
def test_signals_do_what_they_do_to_print_mode(shared: Any, numbers: tuple[int, ...], args: tuple[str, ...]) -> None:
    plain = outcome(begun(shared, *args, attach=False), *numbers)
    ended = (shared.project / "ended").exists()
    attached = outcome(begun(shared, *args), *numbers)
    assert attached == plain
    assert gone(shared), "the command has ended, too"
    assert (shared.project / "ended").exists() == ended


def test_a_reader_that_goes_away_ends_the_run(shared: Any) -> None:
    run = begun(shared, *LINES, stdin=subprocess.PIPE, prompt=USER % "go")
    assert run.stdout is not None
    run.stdout.close()
    (row,) = [r for r in shared.client().request("GET", "/v1/sessions")["sessions"] if r["state"] == "running"]
    shared.post(row["id"], "control", type="control_request", request_id="r", request={"subtype": "mcp_status"})
    assert run.wait(30) == 1
    assert run.stderr is not None and run.stderr.read() == ""
    assert shared.client().request("GET", f"/v1/sessions/{row['id']}")["state"] == "closed" and gone(shared)


def test_a_client_that_is_killed_leaves_its_session(shared: Any) -> None:
    run = begun(shared, "go")
    run.kill()
    run.communicate()
    (row,) = [r for r in shared.client().request("GET", "/v1/sessions")["sessions"] if r["state"] == "running"]
    heard = shared.listen(row["id"])
    shared.post(row["id"], "interrupt")
    assert heard.named("end")["exit_code"] == 1
    done = shared.run("-p", "--attach", "hi", "--resume", row["id"], "--model", shared.script())
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


def test_a_server_that_is_killed_leaves_conversations_that_go_on(world: Any) -> None:
    world.serve()
    run = begun(world, "go", *STREAM)
    model = world.script()
    idle = world.create(options={"model": model}, prompt="hi")
    world.listen(idle["id"]).results()
    assert world.end(signal.SIGKILL) == -signal.SIGKILL
    out, err = run.communicate(timeout=30)
    assert run.returncode == 1
    id = json.loads(out.splitlines()[0])["session_id"]
    assert err == f"Error: the server has ended before the run did; kernel -p --resume {id} goes on with the conversation\n"
    for one in (id, idle["id"]):
        done = world.run("-p", "hi", "--resume", one, "--model", model, "--output-format", "json")
        assert json.loads(done.stdout)["result"] == "hello" and json.loads(done.stdout)["session_id"] == one
    os.kill(int((world.project / "pid").read_text()), signal.SIGKILL)
    with pytest.raises(NoServer):
        world.client()
    world.serve()  # the socket that was left behind is no obstacle
    assert world.client().request("GET", "/v1/status")["sessions"] == 0
    world.end()


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "stop"])
def test_the_end_of_the_server_closes_sessions_as_print_mode_does(world: Any, how: str) -> None:
    world.serve()
    run = begun(world, "go", *STREAM)
    id = world.client().request("GET", "/v1/sessions")["sessions"][0]["id"]
    if how == "stop":
        done = world.run("serve", "stop")
        assert (done.returncode, done.stdout) == (0, f"The server (process {world.process.pid}) has ended.\n")
        assert world.process.wait(5) == 0
    else:
        assert world.end(getattr(signal, how)) == 0
    out, err = run.communicate(timeout=30)
    assert run.returncode == 143 and err == ""
    assert gone(world) and (world.project / "ended").exists(), "SessionEnd was raised"
    assert not os.path.exists(world.socket) and not os.path.exists(world.socket + ".token")
    assert world.run("-p", "hi", "--resume", id, "--model", world.script()).stdout == "hello\n"


def test_one_server_for_a_socket(world: Any) -> None:
    world.serve()
    done = world.run("serve")
    assert done.returncode == 1 and "another server has this socket" in done.stderr
    assert world.client().request("GET", "/v1/status")["pid"] == world.process.pid
    done = world.run("serve", "status", "--json")
    assert json.loads(done.stdout)["socket"] == world.socket
    row = world.create(options={"model": world.script()})
    assert row["id"] in world.run("serve", "sessions").stdout
    assert json.loads(world.run("serve", "sessions", "--json").stdout)[0]["id"] == row["id"]
    world.end()
    done = world.run("serve", "stop")
    assert done.returncode == 1 and done.stderr.endswith("start one with: kernel serve\n")


def test_the_folder_is_private(world: Any) -> None:
    del world.env["KERNEL_SERVE"]
    facts = world.serve()
    folder = world.home / ".claude" / "kernel" / "serve"
    assert facts["socket"] == str(folder / "socket") and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert world.run("-p", "--attach", "hi", "--model", world.script()).stdout == "hello\n"
    world.end()
    open_to_all = world.folder("open")
    open_to_all.chmod(0o777)
    done = world.run("serve", "--socket", str(open_to_all / "s"))
    assert done.returncode == 1 and "others may write to its folder" in done.stderr


def test_a_long_configuration_path_has_its_socket_elsewhere(world: Any) -> None:
    del world.env["KERNEL_SERVE"]
    world.env["CLAUDE_CONFIG_DIR"] = str(world.folder("c" * 100))
    world.env["XDG_RUNTIME_DIR"] = str(world.folder("run"))
    facts = world.serve()
    assert facts["socket"].startswith(world.env["XDG_RUNTIME_DIR"]) and len(facts["socket"]) < 108
    assert world.run("-p", "--attach", "hi", "--model", world.script()).stdout == "hello\n"


@pytest.mark.parametrize("name", ["f", "f.token"])
@pytest.mark.parametrize("text", ["mine\n", "mine" * 100])
def test_a_file_of_somebody_is_not_removed(world: Any, name: str, text: str) -> None:
    place = world.folder("place")
    (place / name).write_text(text)
    done = world.run("serve", "--socket", str(place / "f"))
    assert done.returncode == 1 and f"{place / name} is there, and is not" in done.stderr and "Traceback" not in done.stderr
    assert [p.name for p in place.iterdir()] == [name] and (place / name).read_text() == text


def test_links_are_not_followed_and_what_a_server_left_is_replaced(world: Any) -> None:
    place = world.folder("place")
    (place / "f.token").symlink_to(world.project / "token")
    (world.project / "token").write_text("x" * 43 + "\n")
    assert world.run("serve", "--socket", str(place / "f")).returncode == 1 and (place / "f.token").is_symlink()
    for left in ("", "x" * 43 + "\n"):
        Path(world.socket + ".token").write_text(left)
        world.serve()
        assert world.client().request("GET", "/v1/status")
        world.end()
        assert not os.path.exists(world.socket) and not os.path.exists(world.socket + ".token")


def test_at_its_end_a_server_removes_only_what_it_made(world: Any) -> None:
    world.serve()
    for name in (world.socket, world.socket + ".token"):
        Path(name + ".new").write_text("another's")
        os.replace(name + ".new", name)
    world.end()
    assert Path(world.socket).read_text() == Path(world.socket + ".token").read_text() == "another's"


@pytest.mark.parametrize("wrong", ["", "link", "open", "inner link", "inner open"])
def test_folders_in_a_shared_place_must_be_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    own = tmp_path / "kernel-1"
    monkeypatch.setattr(files, "fallback", lambda: str(own))
    level = own / "kernel-a" if wrong.startswith("inner") else own
    if wrong.startswith("inner"):
        own.mkdir(mode=0o700)
    if wrong.endswith("link"):
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        level.symlink_to(tmp_path / "elsewhere")
    elif wrong:
        level.mkdir()
        level.chmod(0o755)
    path = str(own / "kernel-a" / "socket")
    if wrong:
        with pytest.raises(UsageError, match="nobody else may look into"), files.claimed(path):
            pass
        return
    before = os.umask(0)
    try:
        with files.claimed(path):
            assert [stat.S_IMODE(p.stat().st_mode) for p in (own, own / "kernel-a")] == [0o700, 0o700]
    finally:
        os.umask(before)


def test_a_folder_with_control_characters_does_not_steer_the_terminal(world: Any) -> None:
    world.serve()
    odd = world.folder("odd\x1b]0;stolen\x07\x1b[2J")
    world.script(folder=odd)
    world.create(odd, options={"model": "script:s.yaml"})
    out = world.run("serve", "sessions").stdout
    assert "odd?]0;stolen??[2J" in out and "\x1b" not in out and "\x07" not in out


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may look into."""
    with tempfile.TemporaryDirectory(prefix="kernel-serve-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


AS_NOBODY = "import json, os, socket, struct, sys\n{}\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n{}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_not_served(world: Any, open_folder: Path) -> None:
    world.socket = world.env["KERNEL_SERVE"] = str(open_folder / "s")
    world.serve()
    os.chmod(world.socket, 0o666)
    token = Path(world.socket + ".token").read_text().strip()
    ask = f"GET /v1/status HTTP/1.1\\r\\nHost: kernel\\r\\nAuthorization: Bearer {token}\\r\\n\\r\\n"
    program = AS_NOBODY.format("s = socket.socket(socket.AF_UNIX)", f"s.connect({world.socket!r})\ns.sendall(b'{ask}')\n"
                               f"print(s.recv(65536).decode())\nopen({world.socket + '.token'!r})")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd="/")
    assert done.stdout.startswith("HTTP/1.1 403 ") and "other_user" in done.stdout, done.stderr
    assert "PermissionError" in done.stderr, "the token cannot be read"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_client_says_nothing_to_another_users_server(open_folder: Path) -> None:
    path = str(open_folder / "s")
    open_folder.chmod(0o777)
    program = AS_NOBODY.format("s = socket.socket(socket.AF_UNIX)", f"s.bind({path!r})\ns.listen()\nprint('ready', flush=True)\n"
                               "print(s.accept()[0].recv(100), flush=True)")
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd="/") as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(NoServer, match="it belongs to another user"):
            Client(path, "token")
        assert other.stdout.read() == "b''\n"


def test_a_sample_of_the_benchmark() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-m", "benchmarks.serve", "--sessions", "4", "--turns", "2", "--delay", "0", "--runs",
                           "1", "--json"], cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    bounded = [row for row in json.loads(done.stdout) if row["bound"]]
    assert len(bounded) == 2 and all(0 < row["value"] <= row["bound"] for row in bounded)
