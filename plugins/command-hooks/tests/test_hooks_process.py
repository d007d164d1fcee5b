"""Children: limits, ends, groups (hooks contract, section 8). Real processes."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_command_hooks import process
from kernel_command_hooks.process import MAX_BYTES, Child, Ended
from kernel_command_hooks.spawn import seal

from kernel.testing import alive


def run(command: str | list[str], *, payload: bytes = b"{}\n", cwd: str = "/", timeout: float = 30.0,
        env: dict[str, str] | None = None) -> Ended:
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command

    async def go() -> Ended:
        return await Child(argv, payload=payload, cwd=cwd, env=env or dict(os.environ)).wait(timeout)
    return asyncio.run(go())


def eventually(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return true()


async def written(path: Path) -> None:
    while not path.exists() or not path.read_text():  # noqa: ASYNC110  # another process writes it
        await asyncio.sleep(0.01)


@pytest.fixture(params=["here", "elsewhere"])
def cwd(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Both ways to start a process: with and without a change of directory."""
    return os.getcwd() if request.param == "here" else str(tmp_path)


def test_code_stdout_and_stderr_come_back(cwd: str) -> None:
    ended = run("cat; pwd; echo err >&2; exit 3", payload=b"in\n", cwd=cwd)
    assert (ended.code, ended.stdout, ended.stderr) == (3, f"in\n{os.path.realpath(cwd)}\n".encode(), b"err\n")


def test_a_signal_is_a_negative_code(cwd: str) -> None:
    assert run("kill -KILL $$", cwd=cwd).code == -9


def test_a_missing_program_cannot_be_started(cwd: str) -> None:
    for program in ("no-such-program-xyz", "/no/such/program"):
        with pytest.raises(OSError, match="No such file"):
            run([program], cwd=cwd)


def test_no_descriptor_is_lost(cwd: str) -> None:
    """Neither by ends nor by failures to start."""
    run("true", cwd=cwd)
    gc.collect()  # what other tests left open
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run("true", cwd=cwd)
        with pytest.raises(OSError):
            run(["/no/such/program"], cwd=cwd)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_child_inherits_no_descriptor_of_ours(cwd: str, tmp_path: Path) -> None:
    seal()
    with open(tmp_path / "secret", "w"):
        assert run(["/bin/ls", "/proc/self/fd"], cwd=cwd).stdout.split() == [b"0", b"1", b"2", b"3"]  # 3: the listing itself


def test_a_child_is_leader_of_a_session_without_a_terminal(cwd: str) -> None:
    code = "import os; print(os.getsid(0) == os.getpid() == os.getpgid(0)); open('/dev/tty')"
    ended = run([sys.executable, "-c", code], cwd=cwd)
    assert ended.stdout == b"True\n" and b"/dev/tty" in ended.stderr


def test_signals_that_python_ignores_have_their_meaning_again(cwd: str) -> None:
    ended = run([sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGPIPE))"], cwd=cwd)
    shell = run("yes | head -n 1; echo done", cwd=cwd)
    assert shell.stdout == b"y\ndone\n" and shell.stderr == b"" and ended.code == 0


def test_large_input_and_output_do_not_deadlock() -> None:
    big = b"x" * 5_000_000 + b"\n"
    ended = run("cat; exit 0", payload=big)
    assert ended.stdout == big and not ended.cut


@pytest.mark.parametrize("command", ["exit 0", "exec <&-; exit 0", "head -c 10 >/dev/null; exit 0"])
def test_a_child_need_not_read_its_input(command: str) -> None:
    assert run(command, payload=b"x" * 5_000_000).code == 0


@pytest.mark.parametrize(("size", "cut"), [(MAX_BYTES, False), (MAX_BYTES + 1, True)])
def test_output_is_kept_up_to_the_limit(size: int, cut: bool) -> None:
    ended = run([sys.executable, "-c", f"import sys; sys.stdout.buffer.write(b'x' * {size})"])
    assert len(ended.stdout) == MAX_BYTES and ended.cut is cut and ended.code == 0


def test_a_timeout_drops_all_output() -> None:
    ended = run("echo deny; sleep 60", timeout=0.3)
    assert ended.timed_out and ended.stdout == b""


def test_a_timeout_ends_the_whole_group(tmp_path: Path) -> None:
    ended = run("sleep 300 & echo $! > child; wait", cwd=str(tmp_path), timeout=0.3)
    assert ended.timed_out and not alive(int((tmp_path / "child").read_text()))


def test_a_group_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grace is shortened here; its documented length is asserted."""
    assert process.GRACE_S == 5.0
    script = "sh -c 'trap \"\" TERM; echo $$ > stubborn; sleep 300 & wait; sleep 300' & sleep 300"

    async def go() -> Ended:
        child = Child(["/bin/sh", "-c", script], payload=b"", cwd=str(tmp_path), env=dict(os.environ))
        await written(tmp_path / "stubborn")
        return await child.wait(0.1, grace=0.3)
    assert asyncio.run(go()).timed_out
    assert eventually(lambda: not alive(int((tmp_path / "stubborn").read_text())))


def test_a_grandchild_that_holds_stdout_does_not_hang_and_is_not_killed(tmp_path: Path) -> None:
    ended = run("sleep 120 & echo $! > child; echo '{}'; exit 0", cwd=str(tmp_path), timeout=60)
    pid = int((tmp_path / "child").read_text())
    try:
        assert ended.code == 0 and ended.stdout == b"{}\n" and alive(pid)
    finally:
        os.kill(pid, 9)


def test_what_a_grandchild_prints_within_the_drain_is_read() -> None:
    assert run("(sleep 0.2; echo late) & exit 0").stdout == b"late\n"


def test_a_child_that_closes_its_output_early_is_still_waited_for(tmp_path: Path) -> None:
    assert run("exec >&- 2>&-; sleep 0.2; echo x > made; exit 4", cwd=str(tmp_path)).code == 4
    assert (tmp_path / "made").exists()


def test_cancellation_ends_the_group_before_it_passes(tmp_path: Path) -> None:
    async def go() -> None:
        script = "sleep 300 & echo $! > child; wait"
        child = Child(["/bin/sh", "-c", script], payload=b"", cwd=str(tmp_path), env=dict(os.environ))
        task = asyncio.ensure_future(child.wait(60))
        await asyncio.sleep(0)
        await written(tmp_path / "child")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    asyncio.run(go())
    assert not alive(int((tmp_path / "child").read_text()))


def test_without_pidfd_a_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert run("echo hi; exit 5") == Ended(5, b"hi\n", b"", False)
    assert run("sleep 60", timeout=0.2).timed_out
