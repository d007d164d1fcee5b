"""Putting a set in place: exactly the lock, without a network, all or nothing."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_manager.harness_file import lockfile, verify

from .case_harness import World, library_wheel, plugin_project, plugin_wheel

# Ends, or fails, the process at one of its steps: files opened for writing, renames, folders made and removed. Steps inside of
# the scratch folder are counted apart: there are a thousand of them, and they are all alike.
BREAKER = '''
import errno, os, signal, sys
how, kind, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
count = {"inside": 0, "outside": 0}
def hook(event, args):
    if event == "open":
        if not isinstance(args[0], str) or not (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
    elif event not in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "shutil.move"):
        return
    path = str(args[0])
    if "project" not in path:
        return
    where = "inside" if ".work-" in path and event != "os.rename" else "outside"
    count[where] += 1
    if where == kind and count[where] == wanted:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if event not in ("os.remove", "os.rmdir", "shutil.rmtree"):  # a full disk can still remove
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
sys.addaudithook(hook)
from kernel.cli import main
code = main(sys.argv[4:])
print("STEPS", count["inside"], count["outside"])
sys.exit(code)
'''


@pytest.fixture
def world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path, tmp_path_factory)
    plugin_wheel(made.wheels, "greeter", "1.0")
    made.write("greeter")
    return made


def answer(world: World, *args: str) -> str:
    done = world.run(*args)
    return done.stdout + done.stderr


def test_on_another_machine_from_a_folder_of_wheels(world: World, tmp_path: Path) -> None:
    world.harness("lock")
    other = tmp_path / "other"
    other.mkdir()
    for name in ("harness.yaml", "kernel.lock", "script.yaml"):
        shutil.copy(world.root / name, other / name)
    lock = world.lock.read_bytes()
    world.root = other
    said = json.loads(world.harness("sync", "--frozen", "--json").stdout)
    assert (said["changed"], said["locked"], said["plugins"]["greeter"]) == (True, False, "1.0")
    assert world.lock.read_bytes() == lock and "greeter 1.0" in answer(world)
    assert json.loads(world.harness("sync", "--frozen", "--json").stdout)["changed"] is False


def test_after_a_lock_no_network_and_no_folder_is_needed(world: World) -> None:
    """pip downloads into .kernel/wheels when it is asked; what came from a folder of wheels is taken from there again."""
    world.harness("lock")
    shutil.copytree(world.shared, world.root / ".kernel" / "wheels", dirs_exist_ok=True)
    shutil.copytree(world.wheels, world.root / ".kernel" / "wheels", dirs_exist_ok=True)
    world.kernel("harness", "sync", "--no-index")
    assert "greeter 1.0" in answer(world)


def test_frozen_refuses_what_would_change_the_lock(world: World) -> None:
    done = world.harness("sync", "--frozen", ok=1)
    assert f"{world.lock}: cannot be read" in done.stderr
    world.harness("lock")
    lock = world.lock.read_bytes()
    world.write("greeter", more="block: [greeter]\n")
    done = world.harness("sync", "--frozen", ok=1)
    assert f"{world.file}: has changed since it was locked (run kernel harness lock" in done.stderr
    assert world.lock.read_bytes() == lock and not (world.root / ".kernel" / "sets").exists()
    assert world.harness("lock", "--check", ok=1).stdout.endswith("would change: 3 plugins, "
                                                                   f"{len(json.loads(lock)['distributions'])} distributions\n")
    assert world.lock.read_bytes() == lock


def test_frozen_refuses_a_folder_that_has_changed(world: World) -> None:
    notes = world.root / "notes"
    (notes / "skills/one").mkdir(parents=True)
    (notes / "skills/one/SKILL.md").write_text("one")
    plugin_project(world.root / "mine", "mine", "0.1")
    world.write("./notes", "path: ./mine")
    world.harness("sync")
    assert "mine 0.1" in answer(world)
    (notes / "skills/one/SKILL.md").write_text("two")
    done = world.harness("sync", "--frozen", ok=1)
    assert "plugin notes: skills/one/SKILL.md is not as it was locked" in done.stderr
    words = world.root / "mine/src/mine_pkg/words.py"
    words.write_text("VERSION = 'changed'\n")
    done = world.harness("sync", "--frozen", ok=1)
    assert "distribution mine: mine_pkg/words.py is not as it was locked" in done.stderr
    assert "mine 0.1" in answer(world), "what runs is what was locked"
    done = world.harness("sync", "--json")
    said = json.loads(done.stdout)
    assert said["locked"] and said["changed"] and "mine changed" in answer(world)
    assert done.stderr.count("building mine") == 1, "what was compared with the old lock is what the new one is made of"


def test_a_wheel_that_is_not_the_locked_one_is_refused(world: World) -> None:
    world.harness("lock")
    plugin_wheel(world.wheels, "greeter", "1.0", extra={"greeter_pkg/more.py": b""})
    done = world.harness("sync", ok=1)
    assert "greeter" in done.stderr and "hash" in done.stderr.lower()


def test_a_damaged_set_is_mended_and_old_sets_go(world: World) -> None:
    world.harness("sync")
    first = world.set
    path = first / "site/greeter_pkg/words.py"
    path.write_text("VERSION = 'evil'\n")
    assert "has changed since it was locked" in answer(world)
    assert json.loads(world.harness("sync", "--json").stdout)["changed"] is True
    assert "greeter 1.0" in answer(world)
    for version in ("1.1", "1.2"):
        plugin_wheel(world.wheels, "greeter", version)
        world.write(f"greeter=={version}")
        world.harness("sync")
        assert f"greeter {version}" in answer(world)
    assert len(list((world.root / ".kernel/sets").iterdir())) == 2 and not first.exists(), "this one and the one before it"


def test_compiled_code_of_long_ago_goes_with_a_sync(world: World) -> None:
    world.harness("sync")
    assert "greeter 1.0" in answer(world)
    code = world.home / ".claude/kernel/code"
    old, *others = sorted(code.iterdir())
    os.utime(old, (0, 0))
    world.harness("sync")
    assert others and sorted(code.iterdir()) == others


def test_going_back_to_the_lock_before(world: World) -> None:
    world.harness("sync")
    before = world.lock.read_bytes(), world.file.read_bytes()
    plugin_wheel(world.wheels, "greeter", "2.0")
    world.write("greeter>=2")
    world.harness("sync")
    assert "greeter 2.0" in answer(world)
    world.lock.write_bytes(before[0])
    world.file.write_bytes(before[1])
    assert "greeter 1.0" in answer(world), "its set is still there, so git checkout is the way back"


def test_another_target_is_found_by_the_environment_variable(world: World, tmp_path: Path) -> None:
    world.harness("sync", "--target", str(tmp_path / "elsewhere"))
    assert not (world.root / ".kernel").exists()
    done = world.run(KERNEL_HARNESS_DIR=str(tmp_path / "elsewhere"))
    assert "greeter 1.0" in done.stdout + done.stderr
    world.harness("verify", "--target", str(tmp_path / "elsewhere"))


def test_two_syncs_at_once(world: World) -> None:
    world.harness("lock")
    command = [sys.executable, "-m", "kernel", "harness", "sync", "--json", "--quiet", *world.offline]
    both = [subprocess.Popen(command, cwd=world.root, env=world.environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    changed = sorted(json.loads(process.communicate(timeout=120)[0])["changed"] for process in both)
    assert changed == [False, True] and "greeter 1.0" in answer(world)


# -- faults --------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A harness that works, and whose file asks for the next version of its plugin."""
    world = World(tmp_path_factory.mktemp("old"), tmp_path_factory)
    plugin_wheel(world.wheels, "greeter", "1.0")
    world.write("greeter")
    world.harness("sync")
    plugin_wheel(world.wheels, "greeter", "2.0")
    world.write("greeter>=2")
    return world


def broken_sync(world: World, how: str, kind: str, step: int) -> subprocess.CompletedProcess[str]:
    return world.python("-c", BREAKER, how, kind, str(step), "harness", "sync", "--quiet", *world.offline, ok=None)


def copied(old: World, place: Path) -> World:
    world = object.__new__(World)
    world.__dict__.update(old.__dict__)
    world.root = place / "project"
    shutil.copytree(old.root, world.root, copy_function=os.link)  # files are replaced, never written to
    return world


def test_a_kill_or_a_full_disk_at_any_step_leaves_the_old_set_working(old: World, tmp_path: Path) -> None:
    done = broken_sync(copied(old, tmp_path / "count"), "kill", "nowhere", 0)
    inside, outside = (int(n) for n in done.stdout.split("STEPS ")[1].split())
    print(f"{inside} steps inside of the scratch folder, {outside} outside")
    assert inside > 100 and outside >= 4
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    faults = [(how, "outside", step) for how in ("kill", "full") for step in range(1, outside + 1)]
    faults += [(how, "inside", random.Random(seed).randrange(1, inside)) for how in ("kill", "full")]
    sampled = random.Random(seed + 1).sample(range(len(faults)), 3)
    switched = 0
    for number, (how, kind, step) in enumerate(faults):
        world = copied(old, tmp_path / str(number))
        done = broken_sync(world, how, kind, step)
        fault = f"{how} at {kind} step {step} of {inside}/{outside}: {done.returncode} {done.stderr}"
        if how == "kill":
            assert done.returncode == -9, fault
        elif done.returncode:
            assert done.returncode == 1 and "No space left" in done.stderr and "the set so far is as it was" in done.stderr, fault
        lock = lockfile.read(world.lock)[1]
        assert verify.problems(lock, world.set) == [], fault
        new = lock.distributions["greeter"].version == "2.0"
        switched += new
        if number in sampled:
            said = answer(world)
            assert f"greeter {2 if new else 1}.0" in said, f"{fault}\n{said}"
            assert new or f"{world.file} has changed since kernel.lock was made" in said, "the old lock, and it says so"
            world.harness("sync")
            assert "greeter 2.0" in answer(world), f"and the next sync goes through: {fault}"
            assert not list(world.root.glob(".kernel/.work-*")) and not list(world.root.glob(".kernel.lock-*")), fault
        shutil.rmtree(world.root)
    assert 0 < switched < len(faults) / 2, "most steps come before the switch"


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare for a small disk of its own")
def test_a_disk_that_is_really_full(old: World, tmp_path: Path) -> None:
    world = copied(old, tmp_path)
    size = sum(p.stat().st_blocks * 512 for p in world.root.rglob("*") if p.is_file()) + 2_000_000
    disk = tmp_path / "disk"
    disk.mkdir()
    script = (f'mount -t tmpfs -o size={size} none "$1" && cp -a "$2/." "$1/" && cd "$1" && shift 2 || exit 77\n'
              '"$@" harness sync --quiet ' + " ".join(world.offline) + '; echo "sync $?"; "$@" --harness harness.yaml -p hello '
              f'--model {world.model}')
    done = subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(disk), str(world.root),
                           sys.executable, "-m", "kernel"], env=world.environment | {"IS_SANDBOX": "1"}, capture_output=True,
                          text=True, timeout=120, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no small disk can be made here: {done.stderr.strip()[-200:]}")
    assert "sync 1" in done.stdout and "No space left on device; the set so far is as it was" in done.stderr, done
    assert "greeter 1.0" in done.stdout + done.stderr


def content(world: World) -> dict[Path, bytes]:
    return {p.relative_to(world.root): p.read_bytes() for p in world.root.rglob("*") if p.is_file() and p.name != ".busy"}


def test_a_resolver_that_fails_changes_nothing(old: World, tmp_path: Path) -> None:
    world = copied(old, tmp_path)
    library_wheel(world.wheels, "unrelated", "1.0")
    before = content(world)
    world.write("greeter>=3")
    done = world.harness("sync", ok=1)
    assert "greeter>=3" in done.stderr
    world.write("greeter>=2")
    assert content(world) == before


def test_a_folder_that_cannot_be_written_is_named(world: World) -> None:
    (world.root / ".kernel").write_text("a file")
    done = world.harness("sync", ok=1)
    assert str(world.root / ".kernel") in done.stderr and os.strerror(17) in done.stderr
