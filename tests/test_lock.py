"""The kernel's side of a harness as a file: what it reads, what it lets a process import. The plugin ``manager`` makes locks."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from kernel import Harness, Layer, LockError, Options, Settings, UsageError, __version__
from kernel.guard import _is_standard
from kernel.lock import Lock, lock_path


def place(root: Path, files: dict[str, str], *, package: str = "pack", **more: Any) -> Path:
    """A harness with one plugin ``pack``, locked and in place, as the plugin ``manager`` leaves it."""
    harness = root / "harness.yaml"
    harness.write_text("harness: 1\n")
    locked = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    data = {"lock": 1, "harness": hashlib.sha256(harness.read_bytes()).hexdigest(), "kernel": __version__, "settings": {},
            "order": [], "block": [], "plugins": {"pack": {"distribution": "pack", "package": package}},
            "distributions": {"pack": {"version": "1", "files": locked}}} | more
    raw = json.dumps(data).encode()
    lock_path(harness).write_bytes(raw)
    for name, text in files.items():
        path = root / ".kernel" / "sets" / hashlib.sha256(raw).hexdigest()[:16] / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return harness


PLUGIN = {
    "pack-1.dist-info/entry_points.txt": "[kernel.plugins]\npack = pack.plugin\n",
    "pack/.claude-plugin/plugin.json": json.dumps({"name": "pack", "metadata": {"kernel": {"implements": ["stop"]}}}),
    "pack/__init__.py": "", "pack/plugin.py": "from kernel import StopResult, hookimpl\n@hookimpl\n"
                                              "def stop(event): return StopResult(system_message='pack')\n"}


PROGRAM = '''
from pathlib import Path
from kernel import Harness, Options
from kernel.plugins import load
harness = Harness(Options(harness=Path("harness.yaml")))
module = load(harness.plugins.get("pack"))
import json, pytest
loader = type(module.__loader__).__name__
print(json.dumps([[p.name for p in harness.plugins], harness.settings.get("model"), module.__file__, loader]))
'''


def python(folder: Path, program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60, check=False,
                          env={"HOME": str(folder), "PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_where_a_lock_lies() -> None:
    assert lock_path(Path("/a/harness.yaml")) == Path("/a/kernel.lock")
    assert lock_path(Path("/a/team.yaml")) == Path("/a/team.lock")


def test_a_program_of_ones_own_runs_a_locked_harness(tmp_path: Path) -> None:
    """Its own modules stay importable; the command line keeps to the lock alone (plugins/manager/tests)."""
    place(tmp_path, PLUGIN, settings={"model": "mine"})
    plugins, model, file, loader = json.loads(python(tmp_path, PROGRAM))
    assert (plugins, model, loader) == (["pack"], "mine", "Source")
    assert file.startswith(str(tmp_path / ".kernel" / "sets"))


def test_settings_of_the_harness_stand_below_the_command_line_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    harness = place(tmp_path, PLUGIN, settings={"model": "harness", "effort": "low"})
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text('{"model": "project", "effort": "high"}')
    got = Harness(Options(harness=harness, cwd=tmp_path, settings='{"model": "flag"}')).settings
    assert (got.get("model"), got.get("effort")) == ("flag", "low")
    assert [(layer.scope, layer.path) for layer in got.layers][:2] == [("cli", "--settings"), ("cli", str(harness))]


def test_where_side_loading_is_switched_off_a_harness_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel.cli.run import _require_plugins

    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    layers = [Layer("managed", "managed", {"disableSideloadFlags": True}, "/")]
    managed = Settings(layers, [], config_dir=tmp_path, project_root=tmp_path, trusted=False)
    harness = Harness(Options(harness=place(tmp_path, PLUGIN), cwd=tmp_path), settings=managed)
    with pytest.raises(UsageError, match="--harness is switched off by managed settings"):
        _require_plugins(harness, [])


def test_verify_names_what_changed_what_is_missing_and_what_nobody_locked(tmp_path: Path) -> None:
    harness = place(tmp_path, PLUGIN)
    lock = Lock(harness)
    lock.verify()
    (lock.site / "pack/plugin.py").write_text("changed")
    (lock.site / "pack/__init__.py").unlink()
    (lock.site / "pack/extra.md").write_text("")
    (lock.site / "pack/linked").symlink_to(tmp_path)
    with pytest.raises(LockError) as caught:
        lock.verify()
    for words in ("pack/plugin.py has changed since it was locked", "pack/__init__.py cannot be read",
                  "pack/extra.md is not in the lock", "pack/linked is not in the lock", "plugin pack: ", "kernel harness sync"):
        assert words in str(caught.value)


def test_what_is_no_file_of_its_own_is_not_what_was_locked(tmp_path: Path) -> None:
    """A link with the right content today, a pipe that never ends, a device without an end, a skill among compiled files."""
    harness = place(tmp_path, {**PLUGIN, "pack/skills/a/SKILL.md": "a"})
    lock = Lock(harness)
    skill = lock.site / "pack/skills/a/SKILL.md"
    (tmp_path / "elsewhere.md").write_text("a")
    for make in (lambda: skill.symlink_to(tmp_path / "elsewhere.md"), lambda: os.mkfifo(skill), lambda: skill.mkdir(),
                 lambda: skill.symlink_to("/dev/zero")):
        skill.unlink(missing_ok=True)
        make()
        with pytest.raises(LockError, match=r"SKILL\.md cannot be read"):
            lock.verify()
        if skill.is_dir():
            skill.rmdir()
    skill.unlink()
    skill.write_text("a")
    compiled = lock.site / "pack/skills/__pycache__"
    compiled.mkdir()
    (compiled / "x.cpython-311.pyc").write_bytes(b"never read")
    lock.verify()
    (compiled / "SKILL.md").write_text("planted")
    with pytest.raises(LockError, match=r"__pycache__/SKILL\.md is not in the lock"):
        lock.verify()
    (compiled / "SKILL.md").unlink()
    compiled.rename(tmp_path / "away")
    compiled.symlink_to(tmp_path / "away")
    with pytest.raises(LockError, match="__pycache__ is not in the lock"):
        lock.verify()


def test_the_code_cache_is_by_content_and_only_in_a_folder_of_ones_own(tmp_path: Path) -> None:
    """The second run compiles nothing; a cache that others may write to is not used; garbage in it is compiled over."""
    harness = place(tmp_path, {**PLUGIN, "pack/plugin.py": "print('from', __file__ is not None)\n"})
    program = (f"from pathlib import Path\nfrom kernel.lock import enter\nenter(Path({str(harness)!r}))\nimport builtins\n"
               "real, n = builtins.compile, [0]\ndef compile(*a, **k):\n    n[0] += 1\n    return real(*a, **k)\n"
               "builtins.compile = compile\nimport pack.plugin\nprint(n[0])")

    def run() -> list[str]:
        return python(tmp_path, program).split("\n")[:2]

    cache = tmp_path / ".claude/kernel/code"
    assert [run(), run()] == [["from True", "2"], ["from True", "0"]]
    assert cache.stat().st_mode & 0o777 == 0o700
    for path in cache.iterdir():
        path.write_bytes(b"garbage")
    assert [run(), run()] == [["from True", "2"], ["from True", "0"]]
    cache.chmod(0o777)
    assert run() == ["from True", "2"]


def test_compiled_code_that_was_exchanged_does_not_run(tmp_path: Path) -> None:
    """Neither what another wrote under the right name, nor one module's code under the name of the other's, nor with a key
    that others can read."""
    import marshal

    harness = place(tmp_path, {**PLUGIN, "pack/plugin.py": "print('locked')\n", "pack/__init__.py": "import pack.other\n",
                               "pack/other.py": "print('other')\n"})
    program = f"from pathlib import Path\nfrom kernel.lock import enter\nenter(Path({str(harness)!r}))\nimport pack.plugin"
    cache, key = tmp_path / ".claude/kernel/code", tmp_path / ".claude/kernel/code.key"
    right = "other\nlocked\n"
    assert python(tmp_path, program) == right and python(tmp_path, program) == right
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_bytes()) == 32
    evil = marshal.dumps(compile("print('evil')", "x", "exec"))
    kept = {path: path.read_bytes() for path in sorted(cache.iterdir())}
    for path, raw in kept.items():
        path.write_bytes(raw[:32] + evil)
    assert python(tmp_path, program) == right
    for path, raw in zip(kept, [*list(kept.values())[1:], *list(kept.values())[:1]], strict=True):
        path.write_bytes(raw)
    assert python(tmp_path, program) == right
    assert {path: path.read_bytes() for path in cache.iterdir()} == kept, "what was exchanged is written anew"
    key.chmod(0o644)
    for path in kept:
        path.write_bytes(evil)
    assert python(tmp_path, program) == right
    assert all(path.read_bytes() == evil for path in kept), "it was neither read nor written"


def test_what_belongs_to_the_standard_library() -> None:
    spec = importlib.util.find_spec("pytest")
    assert spec and spec.origin and not _is_standard(spec.origin)
    assert _is_standard(os.__file__) and _is_standard(json.__file__) and not _is_standard(__file__)


GOOD = {"lock": 1, "harness": "0" * 64, "kernel": __version__, "settings": {}, "order": [], "block": [],
        "plugins": {"pack": {"distribution": "pack", "package": "pack"}, "notes": {"files": {"a.md": "1" * 64}}},
        "distributions": {"pack": {"version": "1", "files": {"pack/plugin.py": "2" * 64}}}}
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["../x", "/etc/x", "a\\b", ".."])
keys = st.text(max_size=5) | st.sampled_from(["files", "distribution", "package", "pack", "..", "a/b"])
junk = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(GOOD)), st.sampled_from(["", "pack", "notes"]),
       st.sampled_from(["", "files", "distribution", "package"]), junk)
def test_a_lock_with_anything_in_it_is_refused_or_stays_below_its_folder(key: str, name: str, field: str, value: Any) -> None:
    from kernel.lock import _parsed

    data = json.loads(json.dumps(GOOD))
    inner = data[key]
    if name and field and isinstance(inner, dict) and name in inner:
        inner[name][field] = value
    elif name and isinstance(inner, dict):
        inner[name] = value
    else:
        data[key] = value
    said, got = "", {"distributions": {}, "plugins": {}}
    try:
        got = _parsed(Path("/x/kernel.lock"), json.dumps(data).encode())
    except LockError as error:
        said = str(error)
    assert not said or said.startswith("/x/kernel.lock: ")
    for item in (*got["distributions"].values(), *got["plugins"].values()):
        for file in item.get("files", {}):
            assert os.path.normpath(os.path.join("/root/set", file)).startswith("/root/set")
