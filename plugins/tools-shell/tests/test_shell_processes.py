"""Processes: what a command is given, and that nothing of it is left when it must end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_tools_shell import command, processes, run, script

from kernel.testing import alive, until

pytestmark = pytest.mark.anyio


# -- what it is given ------------------------------------------------------------------------------------------------
async def test_stdin_is_empty_and_there_is_no_terminal(box: Any) -> None:
    shown = await box.text("cat; echo after; tty; exec 3</dev/tty || echo none")
    assert shown.startswith("after\nnot a tty") and shown.endswith("none")


async def test_it_leads_a_session_and_a_group_of_its_own(box: Any) -> None:
    own = os.getsid(0)
    pid, group, session = (await box.text("echo $$; ps -o pgid= -o sid= -p $$")).split()
    assert pid == group == session != str(own)


async def test_the_environment_says_where_it_runs(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "1")
    monkeypatch.setenv("FROM_SESSION", "old")
    box.session.environment["FROM_SESSION"] = "new"
    box.session.effort = "high"
    monkeypatch.setenv("CLAUDE_ENV_FILE", "/nowhere")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret")
    shown = dict(line.split("=", 1) for line in (await box.text("env")).splitlines() if "=" in line)
    expected = {"CLAUDECODE": "1", "CLAUDE_CODE_CHILD_SESSION": "1", "CLAUDE_CODE_SESSION_ID": box.session.id,
                "GIT_EDITOR": "true", "CLAUDE_PID": str(os.getpid()), "CLAUDE_EFFORT": "high", "FROM_OUTSIDE": "1",
                "FROM_SESSION": "new"}
    assert expected.items() <= shown.items()
    assert "CLAUDE_ENV_FILE" not in shown and not any(name.startswith("OTEL_") for name in shown)


async def test_exports_do_not_persist(box: Any) -> None:
    await box.bash("export KEPT=1; alias kept=true; kept_too() { :; }")
    assert await box.text("echo [$KEPT]; type kept kept_too 2>/dev/null; true") == "[]"


async def test_the_env_file_runs_before_each_command(box: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("env") / "it's env.sh"
    file.write_text("")
    box.session.environment["CLAUDE_ENV_FILE"] = str(file)
    assert await box.text("echo [$ADDED]") == "[]"
    file.write_text("export ADDED=1\necho noise of the file\n")
    assert await box.text("echo [$ADDED]") == "[1]"
    file.unlink()
    assert await box.text("echo [$ADDED]") == "[]"


async def test_credentials_are_taken_away_where_that_is_switched_on(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    assert await box.text("echo [$ANTHROPIC_API_KEY]") == "[secret]"
    monkeypatch.setenv("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "1")
    assert await box.text("echo [$ANTHROPIC_API_KEY]") == "[]"


async def test_writing_to_dev_stdout_and_dev_stderr_loses_nothing(box: Any) -> None:
    assert await box.text("echo a > /dev/stderr; echo b | tee /dev/stderr; echo c > /dev/stdout; echo d") == "a\nb\nb\nc\nd"


async def test_a_command_longer_than_an_argument_may_be(box: Any) -> None:
    assert await box.text(f"cat <<'E' | wc -c; cd .\n{'x' * 300_000}\nE") == "300001"


@pytest.mark.parametrize("wrong", ["", " \n\t", "echo a\0b"])
async def test_what_is_no_command_is_refused_before_it_runs(box: Any, wrong: str) -> None:
    with pytest.raises(Exception, match="command: "):
        await box.bash(wrong)


# -- timeouts --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("given", "env", "expected"), [
    (None, {}, 120_000), (5_000, {}, 5_000), (900_000, {}, 600_000), (0, {}, 120_000), (-5, {}, 120_000),
    (None, {"BASH_DEFAULT_TIMEOUT_MS": "7000"}, 7_000), (900_000, {"BASH_MAX_TIMEOUT_MS": "700000"}, 700_000),
    (900_000, {"BASH_DEFAULT_TIMEOUT_MS": "800000"}, 800_000), (None, {"BASH_DEFAULT_TIMEOUT_MS": "800000"}, 800_000),
    (50_000, {"BASH_MAX_TIMEOUT_MS": "20000"}, 50_000), (200_000, {"BASH_MAX_TIMEOUT_MS": "20000"}, 120_000),
    (None, {"BASH_DEFAULT_TIMEOUT_MS": "many"}, 120_000),
])
def test_timeouts_are_clamped_to_the_larger_of_the_two_variables(given: int | None, env: dict[str, str], expected: int,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert run.timeout_ms(given) == expected


async def test_at_its_timeout_a_command_moves_to_the_background_and_goes_on(box: Any) -> None:
    result = await box.bash("echo begun; while [ ! -e go ]; do sleep 0.02; done; echo ended", timeout=200)
    assert not result.failed
    assert "Command did not complete within its 0.2s timeout and was moved to the background" in result.content
    id = result.structured["backgroundTaskId"]
    path = Path(box.session.plugin_state["tasks"][id].path)
    assert id in result.content and str(path) in result.content and result.content.startswith("begun\n")
    assert result.structured["timedOutAfterMs"] == 200 and "backgroundCwdHint" not in result.structured
    assert path.read_text() == "begun\n"
    (box.workspace / "go").touch()
    await until(lambda: path.read_text() == "begun\nended\n")


@pytest.mark.parametrize("text", ["sleep 60", "X=1 sleep 60; true", "sleep 60; echo begun", "git --version; sleep 60; true",
                                  "true && /usr/bin/git --version; sleep 60", "cat <<E; sleep 60\nnever closed"])
async def test_these_are_killed_at_their_timeout_instead(box: Any, text: str) -> None:
    result = await box.bash(text, timeout=150)
    assert (result.error_code, result.status, result.retryable) == ("timeout", "retryable_error", True)
    assert "did not complete within its 0.15s timeout and was killed" in result.content
    assert box.session.plugin_state.get("tasks", {}) == {}


async def test_a_killed_command_leaves_nothing_and_its_output_is_shown(box: Any) -> None:
    result = await box.bash("git --version >/dev/null; echo shown; sleep 300 & echo $! > kid; wait", timeout=150)
    assert result.content.endswith("\nshown")
    assert not alive(await box.pid("kid"))


async def test_without_background_tasks_every_command_is_killed(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")
    result = await box.bash("echo $$ > pid; while :; do sleep 0.05; done", timeout=150)
    assert result.error_code == "timeout" and not alive(await box.pid("pid"))
    with pytest.raises(Exception, match="switched off"):
        await box.bash("true", run_in_background=True)


async def test_a_moved_command_with_a_cd_says_that_the_session_stays(box: Any) -> None:
    result = await box.bash("cd /; while :; do sleep 0.05; done", timeout=100)
    hint = (f"Session cwd remains {box.workspace}; directory changes made by the backgrounded command do not apply to "
            "subsequent commands.")
    assert result.structured["backgroundCwdHint"] == hint and hint in result.content
    assert box.session.state.cwd == str(box.workspace)


# -- ends ------------------------------------------------------------------------------------------------------------
async def cancelled(box: Any, text: str, *names: str) -> list[int]:
    """Run, wait for the process ids in those files, cancel the call; the ids."""
    async with anyio.create_task_group() as group:
        group.start_soon(box.bash, text)
        pids = [await box.pid(name) for name in names]
        group.cancel_scope.cancel()
    return pids


async def test_a_cancelled_call_ends_shell_children_and_grandchildren(box: Any) -> None:
    text = "echo $$ > shell; (sleep 300 & echo $! > deep; wait) & sleep 300 & echo $! > kid; wait"
    assert not any(map(alive, await cancelled(box, text, "shell", "kid", "deep")))


async def test_what_left_the_process_group_is_ended_too(box: Any) -> None:
    text = ("setsid sh -c 'echo $$ > away; exec sleep 300' & "
            "(setsid sh -c 'echo $$ > orphan; exec sleep 300' &) ; echo $$ > shell; wait")
    assert not any(map(alive, await cancelled(box, text, "away", "orphan", "shell")))


async def test_who_ignores_term_is_killed(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "TERM_S", 0.1)
    text = "trap '' TERM; sleep 300 & echo $! > kid; echo $$ > shell; while :; do sleep 300; done"
    assert not any(map(alive, await cancelled(box, text, "kid", "shell")))


async def test_who_handles_term_gets_time_for_it(box: Any) -> None:
    await cancelled(box, "trap 'echo tidy > tidied; exit' TERM; echo $$ > shell; while :; do sleep 0.02; done", "shell")
    assert (box.workspace / "tidied").read_text() == "tidy\n"


async def test_a_stopped_process_is_ended(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "TERM_S", 0.1)
    assert not any(map(alive, await cancelled(box, "echo $$ > shell; kill -STOP $$", "shell")))


async def test_a_grandchild_that_keeps_stdout_open_does_not_hold_the_call(box: Any,
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "LINGER_S", 0.1)
    assert await box.text("sleep 300 & echo $! > kid; echo done") == "done"
    assert alive(await box.pid("kid")), "it was asked for, so it lives on"
    await box.session.close()
    assert not alive(await box.pid("kid")), "until the session ends"


async def test_a_survivor_may_go_on_writing(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "LINGER_S", 0.05)
    await box.bash("(while [ ! -e go ]; do sleep 0.02; done; seq 1 50000 && echo fine > fate) &")
    (box.workspace / "go").touch()
    await until(lambda: (box.workspace / "fate").exists())


async def test_a_command_that_closes_its_output_is_still_waited_for(box: Any) -> None:
    assert await box.text("echo first; exec >&- 2>&-; sleep 0.1; exit 7") == "Exit code 7\nfirst"


async def test_progress_while_it_writes_and_heartbeats_while_it_does_not(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PROGRESS_S", 0.02)
    monkeypatch.setattr(run, "HEARTBEAT_S", 0.2)
    await box.bash("for i in 1 2 3; do echo $i; sleep 0.05; done; sleep 0.5")
    assert any(p.heartbeat for p in box.progress) and any(not p.heartbeat for p in box.progress)
    assert all(p.elapsed_time_seconds > 0 for p in box.progress)


async def test_many_commands_leave_no_descriptor_thread_or_child(box: Any) -> None:
    import threading

    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    await box.bash("true")
    await until(lambda: not [t for t in threading.enumerate() if t.name.startswith("command")])
    before = held()
    for _ in range(30):
        await box.bash("echo hi")
    await until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))


def test_nothing_outlives_a_process_that_never_closed_its_session(tmp_path: Path) -> None:
    program = textwrap.dedent("""\
        import anyio, sys
        from pathlib import Path
        from kernel.testing import Kit, call, text
        from kernel_tools_shell import plugin
        async def main():
            kit = Kit(Path(sys.argv[1]), hooks={"tools-shell": plugin}, turns=[
                call("Bash", command="echo $$ > task; sleep 300", run_in_background=True),
                call("Bash", command="(setsid sh -c 'echo $$ > away; exec sleep 300' >/dev/null 2>&1 &)"),
                call("Bash", command="while [ ! -s task ] || [ ! -s away ]; do sleep 0.02; done"), text("done")])
            await kit.run("go")
        anyio.run(main)
        """)
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("task", "away"):
        assert not alive(int((tmp_path / name).read_text()))


# -- shells -----------------------------------------------------------------------------------------------------------
def test_the_shell_is_the_users_if_it_is_bash_or_zsh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    zsh = tmp_path / "zsh"
    zsh.write_text("#!/bin/sh\n")
    zsh.chmod(0o755)
    for given, expected in [(str(zsh), str(zsh)), ("/bin/bash", "/bin/bash"), ("/usr/bin/fish", "bash"), ("/no/bash", "bash"),
                            ("", "bash")]:
        monkeypatch.setenv("SHELL", given)
        found = script.find_shell()
        assert found == expected or Path(found).name == expected
    monkeypatch.setenv("CLAUDE_CODE_SHELL", str(zsh))
    assert script.find_shell() == str(zsh)
    monkeypatch.delenv("CLAUDE_CODE_SHELL")
    monkeypatch.setenv("SHELL", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert script.find_shell() == "/bin/sh"


@pytest.mark.parametrize("shell", [s for s in ("/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/zsh") if os.path.exists(s)])
@pytest.mark.parametrize(("text", "code", "output", "moved"), [
    ("cd /usr; echo $#", 0, "0\n", True), ("cd /usr; exit 3", 3, "", True), ("set -e; cd /usr; false; echo no", 1, "", True),
    ("trap 'echo bye' EXIT; cd /usr; (exit 4)", 4, "bye\n", True), ("(cd /usr; exit 2)", 2, "", False),
    ("cat <<'E'\n$x it's \\n \\\\ é\nE\ncd /usr", 0, "$x it's \\n \\\\ é\n", True), ("set -u; cd /usr", 0, "", True),
    ("printf '%s' 'a\\nb' # it's", 0, "a\\nb", False), ("echo \"a\n'b'\"", 0, "a\n'b'\n", False),
    ("echo a \\\n b", 0, "a b\n", False),
])
def test_every_shell_runs_the_text_as_it_is_and_tells_its_directory(shell: str, text: str, code: int, output: str, moved: bool,
                                                                    tmp_path: Path) -> None:
    argv = script.build(shell, text, cwd_file=tmp_path / "cwd", sources=[])
    done = subprocess.run(argv, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, output), done.stderr
    assert (tmp_path / "cwd").read_text() == ("/usr\n" if moved else f"{tmp_path}\n")


async def test_line_numbers_in_messages_are_those_of_the_command(box: Any) -> None:
    assert "line 2: nosuchprogram" in await box.text("echo 1\nnosuchprogram")


async def test_a_syntax_error_is_a_failure_of_the_command(box: Any) -> None:
    assert (await box.text("echo a\nif true; then")).startswith("Exit code 2\na\n")


async def test_a_prefix_wraps_the_command(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SHELL_PREFIX", "env WRAPPED=yes bash -c")
    assert await box.text("echo $WRAPPED") == "yes"


async def test_aliases_functions_and_options_of_the_start_up_file_are_there(box: Any, own_home: Path) -> None:
    (own_home / ".bashrc").write_text(
        "case $- in *i*) ;; *) return;; esac\nalias ll='echo aliased'\ngreet() { echo \"hi $1\"; }\n"
        "shopt -s globstar\nset -o pipefail\n_completion() { :; }\nexport NOT_CAPTURED=1\necho noise\n")
    shown = await box.text("ll a; greet Ada; shopt -q globstar; echo $?; false | true; echo $? [$NOT_CAPTURED]\n"
                           "type _completion; :")
    assert shown.startswith("aliased a\nhi Ada\n0\n1 []\n") and shown.endswith("_completion: not found")
    (own_home / ".bashrc").unlink()
    assert await box.text("ll b") == "aliased b", "captured once"


async def test_a_start_up_file_that_hangs_or_fails_never_fails_the_call(make_box: Any, own_home: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_tools_shell import snapshot

    monkeypatch.setattr(snapshot, "SECONDS", 0.2)
    for number, content in enumerate([f"echo $$ > {own_home}/pid; exec sleep 300", "exit 3", "if", "kill -9 $$", "cat; read x"]):
        (own_home / ".bashrc").write_text(content + "\n")
        box = await make_box()
        assert await box.text("echo fine") == "fine", content
        if not number:
            assert not alive(int((own_home / "pid").read_text()))
