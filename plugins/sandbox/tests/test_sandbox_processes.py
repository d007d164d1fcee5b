"""Processes, with real commands in a real sandbox: what they see, how they end, what they may ask of the kernel."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernel.testing import alive_with, until

pytestmark = [pytest.mark.anyio, pytest.mark.real_sandbox]


@pytest.mark.parametrize(("command", "code"), [
    ("exit 7", 7), ("false", 1), ("kill -9 $$", 137), ("nosuchprogram", 127), ("kill -15 $$", 143)])
async def test_exit_codes_pass_through(box: Any, command: str, code: int) -> None:
    made = await box()
    assert (await made.text(command)).startswith(f"Exit code {code}")


@pytest.mark.parametrize("hosts", [[], ["example.com"]])
async def test_output_arguments_and_environment_pass_through(box: Any, hosts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD", "two\nlines 'and' \"quotes\"")
    for name in [n for n in os.environ if n.startswith("LC_") or n == "LANG"]:
        monkeypatch.delenv(name)
    made = await box({"network": {"allowedDomains": hosts}})
    assert await made.text("echo \"$ODD\"; echo $'\\xc3\\xa4'; echo \"${LC_CTYPE-unset}\"; echo err >&2; yes | head -1") == \
        "two\nlines 'and' \"quotes\"\nä\nunset\nerr\ny"
    long = "x" * 200_000
    assert await made.text(f": {long}; echo done") == "done"


async def test_the_working_directory_persists(box: Any, work: Path) -> None:
    (work / "sub").mkdir()
    made = await box()
    await made.text("cd sub")
    assert await made.text("pwd") == str(work / "sub")
    assert "Shell cwd was reset" in await made.text("cd /usr")
    assert await made.text("pwd") == str(work)


async def test_a_command_cannot_lie_about_its_directory_in_harmful_ways(box: Any, work: Path) -> None:
    """The file that the directory is told in can be written, but neither exchanged nor read without end."""
    made = await box()
    await made.text("true")
    shell = made.session.plugin_state["tools-shell"]
    name = shell.scratch / f"cwd-{shell._count + 1}"
    text = await made.text(f"rm -f {name}; ln -sf /etc/passwd {name}; mkfifo {name}; "
                           f"exec sh -c 'yes /etc | head -c 1000000 > {name}'")
    assert "Shell cwd was reset" in text and made.session.state.cwd == str(work)


async def test_a_timeout_ends_everything(box: Any) -> None:
    made = await box()
    mark = f"{os.getpid()}41"
    text = await made.text(f"sleep 0; (setsid env -i sleep {mark} &) ; git --version; sleep {mark}", timeout=700)
    assert "did not complete" in text
    assert alive_with(mark) == []


async def test_a_cancelled_call_ends_everything(box: Any, work: Path) -> None:
    made = await box()
    mark = f"{os.getpid()}42"
    async with anyio.create_task_group() as group:
        group.start_soon(made.text, f"(nohup setsid sleep {mark} &); touch started; sleep {mark}")
        await until((work / "started").exists)
        group.cancel_scope.cancel()
    assert alive_with(mark) == []


async def test_what_a_command_leaves_behind_ends_with_it(box: Any) -> None:
    made = await box()
    mark = f"{os.getpid()}43"
    assert await made.text(f"sleep {mark} > /dev/null 2>&1 & disown; echo done") == "done"
    await until(lambda: alive_with(mark) == [])


async def test_a_background_task_runs_on_and_can_be_stopped_gently(box: Any, work: Path) -> None:
    """TERM reaches the command, which has its time to put things in order."""
    made = await box()
    mark = f"{os.getpid()}44"
    result = await made.call("Bash", command="trap 'echo tidied > tidy; exit 0' TERM; touch started; "
                                             f"while :; do sleep 0.05; : {mark}; done", run_in_background=True)
    await until((work / "started").exists)
    await made.text("true")
    assert alive_with(mark)
    await made.call("TaskStop", task_id=result.structured["backgroundTaskId"])
    assert alive_with(mark) == []
    assert (work / "tidy").read_text() == "tidied\n"


async def test_the_end_of_the_session_ends_background_tasks(box: Any, work: Path) -> None:
    made = await box()
    mark = f"{os.getpid()}45"
    made.session.interrupted = True  # no grace
    await made.call("Bash", command=f"touch started; trap '' TERM; sleep {mark}; sleep {mark}", run_in_background=True)
    await until((work / "started").exists)
    await made.session.close()
    assert alive_with(mark) == []


async def test_the_death_of_the_harness_ends_everything(work: Path) -> None:
    """Not even KILL to the harness leaves a confined command behind."""
    import subprocess
    import sys

    mark = f"{os.getpid()}46"
    program = f"""
import anyio
from pathlib import Path
from kernel import ToolContext
from kernel.testing import Kit
async def main():
    session = Kit(Path({str(work)!r}), installed=["tools-shell", "sandbox"], settings={{"sandbox": {{"enabled": True}}}}).open()
    await session.start()
    await session.run_tool(session.toolbox.by_name["Bash"], {{"command": "touch started; setsid sleep {mark}; sleep {mark}"}},
                           ToolContext(session, "call_1", "Bash"))
anyio.run(main)
"""
    harness = subprocess.Popen([sys.executable, "-c", program])  # noqa: ASYNC220
    await until((work / "started").exists)
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    await until(lambda: alive_with(f"sleep\0{mark}") == [])


async def test_a_command_sees_its_own_processes_only(box: Any) -> None:
    made = await box()
    text = await made.text(f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()} && echo seen; "
                           f"head -c 9 /proc/{os.getpid()}/environ; true")
    assert int(text.splitlines()[0]) < 10 and "seen" not in text and "No such" in text


async def test_no_rights_are_left_and_none_can_be_gained(box: Any) -> None:
    made = await box()
    text = await made.text("grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|^Seccomp:' /proc/self/status; "
                           "unshare -U true && echo namespace; ls /dev")
    status = dict(line.split(":\t") for line in text.splitlines() if ":\t" in line)
    assert all(int(value, 16) == 0 for name, value in status.items() if name.startswith("Cap"))
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    helped = await anyio.run_process([made.session.sandbox.program, "--help"])
    assert "namespace" not in text.split() or b"--disable-userns" not in helped.stdout + helped.stderr
    assert not {"sda", "vda", "mem", "kmsg", "fuse", "kvm"} & set(text.split())


CALLS = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    print(errno.errorcode[ctypes.get_errno()] if result < 0 else "ok", end=" ")
def make(*arguments, pair=False):
    try:
        (socket.socketpair if pair else socket.socket)(*arguments); print("ok", end=" ")
    except OSError as error:
        print(errno.errorcode[error.errno], end=" ")
make(socket.AF_UNIX, socket.SOCK_STREAM); make(socket.AF_UNIX, socket.SOCK_DGRAM)
make(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
make(socket.AF_VSOCK, socket.SOCK_STREAM); make(socket.AF_INET, socket.SOCK_STREAM); make(socket.AF_NETLINK, socket.SOCK_RAW)
make(socket.AF_UNIX, socket.SOCK_STREAM, pair=True); make(socket.AF_UNIX, socket.SOCK_DGRAM, pair=True)
call(425, 8, None)
if os.uname().machine == "x86_64":
    call(250, 0, 0, 0); call(0x40000000 | 39)
"""


@pytest.mark.parametrize("hosts", [[], ["example.com"]], ids=["no network", "proxy"])
async def test_the_filter_closes_unix_sockets_and_the_ways_around_it(box: Any, work: Path, hosts: list[str]) -> None:
    (work / "calls.py").write_text(CALLS)
    made = await box({"network": {"allowedDomains": hosts}})
    text = await made.text("python3 calls.py")
    assert text.splitlines()[0].split()[:9] == ["EPERM", "EPERM", "EPERM", "EPERM", "ok", "ok", "ok", "EPERM", "ENOSYS"]
    assert text.splitlines()[0].split()[9:] in ([], ["EPERM", "ENOSYS"])
    opened = await box({"network": {"allowedDomains": hosts, "allowAllUnixSockets": True}})
    assert (await opened.text("python3 calls.py")).split()[:3] == ["ok", "ok", "ok"]


async def test_credentials_are_kept_from_commands(box: Any, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "token").write_text("TOP")
    monkeypatch.setenv("MY_TOKEN", "TOP")
    made = await box({"credentials": {"envVars": [{"name": "MY_TOKEN", "mode": "mask"}],
                                      "files": [{"path": "./token", "mode": "deny"}]}})
    assert "TOP" not in await made.text("cat token; env; tr '\\0' '\\n' < /proc/self/environ")


async def test_a_sandbox_that_fails_while_the_session_runs_does_not_let_the_command_run(box: Any, work: Path) -> None:
    made = await box()
    made.session.sandbox.program = "/nonexistent/bwrap"
    assert (await made.text("touch ran")).startswith("Exit code") and not (work / "ran").exists()
    made = await box()
    made.session.sandbox.form = [*made.session.sandbox.form, "--no-such-option"]
    assert "[sandbox] The sandbox could not run the command: bwrap: Unknown option" in await made.text("touch ran")
    assert not (work / "ran").exists()


async def test_too_many_mounts_are_refused_before_anything_runs(box: Any, work: Path) -> None:
    from kernel import ToolError

    (work / "many").mkdir()
    for n in range(2300):
        (work / "many" / f"{n}.key").touch()
    made = await box(more={"permissions": {"deny": ["Read(*.key)"]}})
    with pytest.raises(ToolError, match="too many mounts"):
        await made.text("touch ran")
    for n in range(2100, 2300):
        (work / "many" / f"{n}.key").unlink()
    assert await made.text("echo works") == "works"
