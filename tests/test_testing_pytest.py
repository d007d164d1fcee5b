"""The pytest plugin in test runs of its own: loaded where it is asked for, and what its options do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.testing import plugin_folder

EVENTS = '''
import anyio
from kernel import hookimpl
from kernel.dispatch import Dispatcher
from kernel.testing import event, run_hook

class Guard:
    @hookimpl
    def pre_tool_use(self, event): return None
    @hookimpl
    def post_tool_use(self, event): return None

def test_one(kernel_kit):
    kernel_kit(hooks={"guard": Guard()}).play_event("PreToolUse")

def test_two(kernel_kit):
    kernel_kit(hooks={"guard": Guard()}).play_event("PreToolUse")

def test_another_plugin(kernel_kit):
    kernel_kit(hooks={"other": Guard()}).play_event("PostToolUse")

def test_a_new_dispatcher_as_after_a_reload(kernel_kit):
    plugins = kernel_kit(hooks={"guard": Guard()}).harness.plugins
    anyio.run(Dispatcher(plugins.manager).fire, event("PreToolUse"))

def test_a_command(tmp_path):
    run_hook("exit 0", "Stop", cwd=tmp_path)
'''
GUARD = {"implements": ["pre_tool_use", "post_tool_use", "register_tools"]}


def run(folder: Path, *args: str, plugin: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    asked = ["-p", "kernel.testing.pytest_plugin"] if plugin else []
    return subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", *asked, *args], cwd=folder, capture_output=True, text=True,
                          timeout=120, check=False, env={**os.environ, **env})


def test_nothing_of_it_is_there_unless_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    assert "--update-golden" not in run(tmp_path, "--help", plugin=False).stdout
    assert run(tmp_path, "--update-golden", plugin=False).returncode == pytest.ExitCode.USAGE_ERROR
    assert "--update-golden" in run(tmp_path, "--help").stdout


def test_the_kernel_is_imported_with_the_first_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("""
import sys
def test_before():
    assert not {"kernel.harness", "pluggy._kernel", "msgspec"} & sys.modules.keys()
def test_with(kernel_kit):
    assert "kernel.harness" in sys.modules
""")
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_home_is_empty_and_everything_is_put_back(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("""
import os
from pathlib import Path
HOME = os.environ["HOME"]
def test_inside(kernel_home):
    assert str(kernel_home) == os.environ["HOME"] != HOME and not list(kernel_home.iterdir())
    assert not [n for n in os.environ if n.startswith(("CLAUDE", "ANTHROPIC", "KERNEL_"))]
    os.environ["LEFT"] = "1"
def test_afterwards():
    assert os.environ["ANTHROPIC_API_KEY"] == "k" and os.environ["HOME"] == HOME and "LEFT" not in os.environ
""")
    done = run(tmp_path, "-p", "no:randomly", ANTHROPIC_API_KEY="k", CLAUDE_X="1", KERNEL_Y="2")
    assert done.returncode == 0, done.stdout


def test_golden_transcripts_are_written_when_asked(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("""
from pathlib import Path
from kernel.testing import assert_golden, text
def test_a(kernel_kit):
    assert_golden(kernel_kit(text("done")).play("go"), Path(__file__).parent / "golden" / "a.txt")
""")
    assert "there is no golden transcript" in run(tmp_path).stdout
    assert run(tmp_path, "--update-golden").returncode == 0
    assert (tmp_path / "golden" / "a.txt").read_text() == "user: go\nassistant: done\nend: success (completed), 1 turns\n"
    assert run(tmp_path).returncode == 0
    (tmp_path / "golden" / "a.txt").write_text("user: go\nassistant: something else\n")
    assert "-assistant: something else" in run(tmp_path).stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_events_are_counted_and_missed(tmp_path: Path, workers: str) -> None:
    files = {"test_a.py": EVENTS, "hooks/hooks.json": {"hooks": {"Stop": [], "SessionEnd": []}}}
    plugin_folder(tmp_path, "guard", files, kernel=GUARD)
    done = run(tmp_path, "-n", workers, "--event-coverage")
    assert done.returncode == 0, done.stdout
    report = done.stdout[done.stdout.index("event coverage of guard"):].splitlines()[:5]
    assert [line.strip() for line in report] == [
        "event coverage of guard: 2 of 4", "PreToolUse   fired 3 times", "PostToolUse  never fired", "Stop         fired 1 time",
        "SessionEnd   never fired"]
    assert run(tmp_path, "-n", workers, "--event-coverage", "--event-coverage-fail").returncode == 1


def test_full_coverage_does_not_fail(tmp_path: Path) -> None:
    plugin_folder(tmp_path / "p", "guard", kernel={"implements": ["pre_tool_use"]})
    (tmp_path / "test_a.py").write_text(EVENTS)
    done = run(tmp_path, "--event-coverage", "p", "--event-coverage-fail")
    assert done.returncode == 0 and "event coverage of guard: 1 of 1" in done.stdout


def test_without_the_option_nothing_is_counted(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("""
from kernel.dispatch import Dispatcher
def test_a(kernel_kit):
    assert kernel_kit().harness.dispatcher.fire.__func__.__module__ == "kernel.dispatch"
""")
    done = run(tmp_path)
    assert done.returncode == 0 and "event coverage" not in done.stdout


def test_a_folder_without_a_plugin_is_said(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    done = run(tmp_path, "--event-coverage", "no-such-folder")
    assert done.returncode != 0 and "--event-coverage: " in done.stdout + done.stderr and "no folder" in done.stdout + done.stderr
