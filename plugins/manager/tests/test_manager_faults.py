"""A fault at each step: the old set works on, nothing is half done, and the next command finds a clean house."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_manager.steps import STEPS

AtStep = Callable[[str, Callable[[], None]], None]
KILL = """
import os, signal
from kernel_manager import steps
steps.listeners.append(lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == {step!r} else None)
"""
BEFORE_SWITCH = [s for s in STEPS if s not in ("switch", "switched", "clean", "python")]
SESSION = """
from kernel import Harness
harness = Harness()
tools = harness.tools.names()
print({p.id: (p.version, p.state) for p in harness.plugins if p.source == "installed"},
      sorted(t for t in tools if t.startswith("Z")))
"""


def session(world: Any) -> str:
    """What a new run of the kernel sees and loads, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", SESSION], cwd=world.project, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def prepare(world: Any, change: str) -> list[str]:
    """An old set of two plugins, and the command that is about to change it."""
    world.ok("install", world.plugin("base", "1.0.0"))
    world.ok("install", world.plugin("fmt", "1.0.0"))
    if change == "install":
        return ["install", str(world.plugin("new", "1.0.0"))]
    if change == "update":
        world.plugin("fmt", "2.0.0")
        return ["update", "fmt"]
    return [change, "fmt"] if change != "rollback" else ["rollback"]


RESULTS = {"install": {"base@installed": "1.0.0", "fmt@installed": "1.0.0", "new@installed": "1.0.0"},
           "update": {"base@installed": "1.0.0", "fmt@installed": "2.0.0"},
           **{change: {"base@installed": "1.0.0"} for change in ("uninstall", "disable", "rollback")}}
OLD = {"base@installed": "1.0.0", "fmt@installed": "1.0.0"}
CHANGING = [(change, step) for change in RESULTS for step in STEPS
            if step != "python" and (step != "health" or change == "update")
            and (change in ("install", "update") or step in ("prepare", "journal", "switch", "switched", "clean"))]


@pytest.mark.parametrize(("change", "step"), CHANGING)
def test_killed_at_any_step(world: Any, change: str, step: str) -> None:
    """Before the journal is in place the old set stays; after it the next command carries the change to its end. In
    between, a session sees the old set or the new one, and nothing else."""
    command = prepare(world, change)
    done = world.process(*command, prelude=KILL.format(step=step))
    assert done.returncode == -signal.SIGKILL, done
    before_recovery = json.loads(json.dumps(visible(world)))
    assert before_recovery in (OLD, RESULTS[change])
    after = OLD if step in BEFORE_SWITCH else RESULTS[change]
    assert world.versions() == after == visible(world)
    left = [p for p in (world.config / "kernel" / "plugins").iterdir() if p.name in ("journal.json",) or p.suffix == ".tmp"]
    left += list(world.config.glob("*.tmp"))
    assert left == []
    world.ok(*prepare_again(world, change))
    assert set(visible(world)) >= {"base@installed"}


def prepare_again(world: Any, change: str) -> list[str]:
    return ["install", str(world.plugin("later", "1.0.0"))]


def visible(world: Any) -> dict[str, str]:
    """What the kernel finds, without the manager, and therefore without its recovery."""
    from kernel import Harness

    return {p.id: p.version for p in Harness().plugins if p.source == "installed" and p.state == "ready"}


@pytest.mark.parametrize(("change", "step"), [(c, s) for c in ("install", "update") for s in BEFORE_SWITCH
                                              if (c, s) != ("install", "health")])
def test_a_full_disk_at_any_step_before_the_switch(world: Any, at_step: AtStep, change: str, step: str) -> None:
    command = prepare(world, change)

    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")

    at_step(step, full)
    done = world.refused("disk", *command)
    assert "No space left" in done.json["error"]["message"] and "nothing was changed" in done.json["error"]["message"]
    assert visible(world) == OLD
    assert not list(world.config.rglob("*.tmp")) and not list(world.config.rglob("journal.json"))


@pytest.mark.parametrize("step", ["switch", "switched", "clean"])
def test_a_disk_that_fails_behind_the_journal(world: Any, at_step: AtStep, step: str) -> None:
    """What is decided is said to be decided; the next command carries it to its end."""
    command = prepare(world, "install")

    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "somewhere")

    at_step(step, fail)
    done = world.run(*command, "--json")
    assert done.code == 1 and done.json["error"]["type"] == "unfinished", done
    assert visible(world) in (OLD, RESULTS["install"])
    at_step("never", fail)
    assert world.versions() == RESULTS["install"] == visible(world)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_programs_end_with_us(world: Any, number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt while git runs ends git, too, and leaves nothing behind."""
    programs = world.root / "programs"
    programs.mkdir()
    (programs / "git").write_text(f"#!/bin/sh\necho $$ > {world.root}/pid\nexec sleep 100\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    code = "import sys; from kernel.cli import main; sys.exit(main(['plugins', 'install', 'git+https://example.invalid/x.git']))"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=world.project, stderr=subprocess.PIPE)
    wait_for(lambda: (world.root / "pid").exists() and (world.root / "pid").read_text().strip())
    process.send_signal(number)
    assert process.wait(timeout=30) == 130
    assert process.stderr is not None and b"Traceback" not in process.stderr.read()
    wait_for(lambda: not Path(f"/proc/{(world.root / 'pid').read_text().strip()}").exists())
    assert not list((world.config / "kernel" / "plugins" / "staging").glob("*"))


def wait_for(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_a_really_full_disk(world: Any) -> None:
    """A file system of one MiB, where that can be mounted; else a limit on the size of files."""
    source = world.plugin("fat", files={"big.bin": "x" * 3_000_000})
    world.ok("install", world.plugin("fmt"))
    limit = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" \
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))"
    done = world.process("install", source, "--json", prelude=limit)
    assert json.loads(done.stdout)["error"]["type"] == "disk", done
    assert visible(world) == {"fmt@installed": "1.0.0"} == world.versions()
    assert not list((world.config / "kernel" / "plugins" / "store").glob("fat*"))


def test_a_failing_resolver(world: Any) -> None:
    world.wheel("fmt-plugin", "1.0.0", plugin="fmt", tool="Zfmt")
    world.ok("install", "python:fmt-plugin", *world.index, "--yes")
    world.wheel("fmt-plugin", "2.0.0", plugin="fmt", tool="Zfmt", requires=["never-heard-of-it>=3"])
    world.wheel("other-plugin", "1.0.0", plugin="other", requires=["never-heard-of-it"])
    world.refused("resolve-failed", "update", "fmt", "--yes", "--no-index", "--find-links", str(world.root / "nowhere"))
    world.refused("resolve-failed", "install", "python:other-plugin", *world.index, "--yes")
    assert session(world) == "{'fmt@installed': ('1.0.0', 'ready')} ['Zfmt']\n"


def test_two_plugins_cannot_have_two_versions_of_one_distribution(world: Any) -> None:
    world.wheel("shared", "1.0.0")
    world.wheel("shared", "2.0.0")
    world.wheel("one-plugin", plugin="one", requires=["shared==1.0.0"], tool="Zone")
    world.wheel("two-plugin", plugin="two", requires=["shared>=2"], tool="Ztwo")
    world.ok("install", "python:one-plugin", *world.index, "--yes")
    world.refused("resolve-failed", "install", "python:two-plugin", *world.index, "--yes")
    assert session(world) == "{'one@installed': ('1.0.0', 'ready')} ['Zone']\n"


@pytest.mark.parametrize("fault", ["not a zip", "half a zip"])
def test_a_bad_archive(world: Any, fault: str) -> None:
    world.ok("install", world.plugin("fmt"))
    archive = world.root / "bad.zip"
    wheel = world.wheel("x-plugin", plugin="x").read_bytes()
    archive.write_bytes(b"PK nonsense" if fault == "not a zip" else wheel[: len(wheel) // 2])
    world.refused("bad-archive", "install", archive)
    assert visible(world) == {"fmt@installed": "1.0.0"}


@pytest.mark.parametrize(("broken", "says"), [
    ("raise RuntimeError('boom')",
     "boom"), ("import never_heard_of_it", "never_heard_of_it"), ("import os; os._exit(0)", "ended the process"),
    ("import time; time.sleep(60)", "took longer"), ("import sys; sys.exit(3)", "SystemExit"), ("def f(:", "SyntaxError")])
def test_an_update_that_does_not_load_is_not_taken(world: Any, broken: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_manager import health

    monkeypatch.setattr(health, "TIMEOUT", 4.0)
    world.ok("install", world.project_plugin("fmt", "1.0.0", tool="Zfmt"), "--yes")
    world.project_plugin("fmt", "2.0.0", tool="Zfmt", before=broken)
    done = world.refused("unhealthy", "update", "fmt", "--yes")
    assert says in done.json["error"]["message"], done
    assert session(world) == "{'fmt@installed': ('1.0.0', 'ready')} ['Zfmt']\n"
    world.ok("update", "fmt", "--yes", "--no-check")
    assert world.versions() == {"fmt@installed": "2.0.0"}
    world.ok("rollback")
    assert session(world) == "{'fmt@installed': ('1.0.0', 'ready')} ['Zfmt']\n"


def test_hooks_that_do_not_fit_are_found_before_the_switch(world: Any) -> None:
    kernel = {"implements": ["pre_tool_use"]}
    good = "from kernel import hookimpl\n@hookimpl\ndef pre_tool_use(event):\n    return None\n"
    project = '[project]\nname = "guard"\nversion = "1"\ndependencies = []\n' \
              '[project.entry-points."kernel.plugins"]\nguard = "guard_x"\n'
    files = {"pyproject.toml": project, "src/guard_x.py": good}
    world.ok("install", world.plugin("guard", files=files, metadata={"kernel": kernel}), "--yes")
    files["src/guard_x.py"] = good.replace("pre_tool_use(event)", "pre_tool_use(event, nonsense)")
    world.plugin("guard", "2.0.0", files=files, metadata={"kernel": kernel})
    assert "nonsense" in world.refused("unhealthy", "update", "guard", "--yes").json["error"]["message"]
    assert visible(world) == {"guard@installed": "1.0.0"}


def test_two_processes_at_once(world: Any) -> None:
    """One waits for the other; both changes are there in the end."""
    folders = [world.plugin(f"p{n}") for n in range(6)]
    code = "import sys; from kernel.cli import main; sys.exit(main(['plugins', 'install', sys.argv[1]]))"
    running = [subprocess.Popen([sys.executable, "-c", code, str(f)], cwd=world.project, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
               for f in folders]
    for process in running:
        assert process.communicate(timeout=60) is not None and process.returncode == 0
    assert set(world.versions()) == {f"p{n}@installed" for n in range(6)}


def test_somebody_else_writes_the_settings_in_between(world: Any, at_step: AtStep) -> None:
    path = world.config / "settings.json"
    path.write_text('{"model": "opus"}')
    at_step("switch", lambda: path.write_text('{"model": "sonnet", "theirs": 1}'))
    world.ok("install", world.plugin("fmt"))
    assert json.loads(path.read_text()) == {"model": "sonnet", "theirs": 1, "enabledPlugins": {"fmt@installed": True}}


def test_a_stored_version_that_was_changed_is_not_used_again(world: Any) -> None:
    source = world.plugin("fmt")
    world.ok("install", source)
    place = Path(world.listed()["fmt@installed"]["installPath"])
    (place / "skills" / "hello" / "SKILL.md").write_text("evil")
    assert json.loads(world.ok("info", "fmt", "--json").out)["intact"] is False
    world.ok("uninstall", "fmt")
    world.ok("install", source)
    assert "evil" not in (place / "skills" / "hello" / "SKILL.md").read_text()
    assert json.loads(world.ok("info", "fmt", "--json").out)["intact"] is True
