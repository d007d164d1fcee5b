"""What a harness is exported to gives the same harness: a real installation of the pyproject, the structure of the Dockerfile."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
import venv
from pathlib import Path

import jsonschema
import pytest
import yaml
from kernel_manager.harness_file import lockfile, model

from kernel import __version__

from .case_harness import World, kernel_wheel, library_wheel, plugin_wheel, write_wheel

# Enough of a build backend for a project without code of its own; what hatchling makes of the same file is the same wheel.
STAND_IN = b'''
import tomllib, zipfile
from pathlib import Path

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    needs = "".join(f"Requires-Dist: {text}\\n" for text in project["dependencies"])
    head = f"Metadata-Version: 2.1\\nName: {project['name']}\\nVersion: {project['version']}\\n"
    with zipfile.ZipFile(Path(wheel_directory) / f"{stem}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{stem}.dist-info/METADATA", head + f"Requires-Python: {project['requires-python']}\\n" + needs)
        wheel.writestr(f"{stem}.dist-info/WHEEL",
                       "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")
    return f"{stem}-py3-none-any.whl"
'''


@pytest.fixture
def world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path, tmp_path_factory)
    library_wheel(made.wheels, "phrases", "1.0")
    library_wheel(made.wheels, "phrases", "2.0")
    plugin_wheel(made.wheels, "greeter", "1.0", ["phrases<2"], {
        "greeter-1.0.data/scripts/hello": b"#!python\n", "greeter-1.0.data/data/share/hello.txt": b"hello",
        "greeter-1.0.data/purelib/greeter_pkg/more.py": b""})
    made.write("greeter", more="description: Says hello\n")
    return made


def test_the_exported_pyproject_installs_the_same_harness(world: World, tmp_path: Path) -> None:
    """Into a fresh environment, from a folder of wheels; the environment then holds the locked bytes, and runs them."""
    world.harness("lock")
    world.kernel("harness", "export", "--output", "out")
    lock = lockfile.read(world.lock)[1]
    data = tomllib.loads((world.root / "out/pyproject.toml").read_text())
    pins = {f"{name}=={d.version}" for name, d in lock.distributions.items()}
    assert set(data["project"]["dependencies"]) == pins | {f"kernel-harness=={__version__}"}
    kernel_wheel(world.wheels)
    write_wheel(world.wheels, "hatchling", "1.27.0", {"hatchling/__init__.py": b"", "hatchling/build.py": STAND_IN}, {
        "METADATA": "Metadata-Version: 2.1\nName: hatchling\nVersion: 1.27.0\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"})
    place = tmp_path / "venv"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    world.python("-m", "pip", "--python", str(python), "install", "--quiet", *world.offline, str(world.root / "out"))

    def run() -> str:
        ran = subprocess.run([str(python), "-m", "kernel", "--harness", "harness.yaml", "-p", "hello", "--model", world.model],
                             cwd=world.root, env=world.environment, capture_output=True, text=True, timeout=60, check=False)
        return ran.stdout + ran.stderr

    assert "greeter 1.0" in run(), "without a set the environment is compared with the lock, and runs"
    (words,) = place.glob("lib/python*/site-packages/greeter_pkg/words.py")
    words.write_text("VERSION = 'evil'\n")
    assert f"plugin greeter: {words} has changed since it was locked" in run()


def test_exported_requirements_hold_the_digest_of_every_archive(world: World, tmp_path: Path) -> None:
    world.harness("lock")
    world.kernel("harness", "export")
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", *world.offline, "-r", "requirements.txt"]
    world.python(*install, "--target", str(tmp_path / "target"))
    assert (tmp_path / "target/greeter_pkg/plugin.py").exists()
    plugin_wheel(world.wheels, "greeter", "1.0", extra={"greeter_pkg/x.py": b""})
    done = world.python(*install, "--target", str(tmp_path / "other"), ok=1)
    assert "greeter" in done.stderr and "DO NOT MATCH" in done.stderr


def test_the_dockerfile(world: World) -> None:
    (world.root / "notes/skills/one").mkdir(parents=True)
    (world.root / "notes/skills/one/SKILL.md").write_text("one")
    world.write("greeter", "./notes")
    world.harness("lock")
    done = world.kernel("harness", "export", ok=1)
    assert "plugin notes: is a folder without a Python project, which a pyproject cannot name" in done.stderr
    world.kernel("harness", "export", "--only", "dockerfile", "--image", "python:3.11-slim@sha256:" + "0" * 64)
    assert not (world.root / "pyproject.toml").exists()
    lines = [line for line in (world.root / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    verbs = [line.split()[0] for line in lines]
    assert verbs == ["FROM", "ENV", "WORKDIR", "COPY", "COPY", "RUN", "COPY", "RUN", "RUN", "USER", "WORKDIR", "ENV",
                     "ENTRYPOINT", "CMD"]
    assert lines[0] == "FROM python:3.11-slim@sha256:" + "0" * 64
    copied = [json.loads(line.removeprefix("COPY ")) for line in lines if line.startswith("COPY")]
    assert copied == [["harness.yaml", "kernel.lock", "./"], ["harness.yaml", "wheel[s]", "./wheels/"], ["./notes", "./notes"]]
    assert re.search(rf"kernel-harness=={re.escape(__version__)} kernel-manager==\S+$", lines[5])
    assert "kernel harness sync --frozen" in lines[7] and "kernel harness verify" in lines[7]
    assert lines[11] == 'ENV KERNEL_HARNESS="/harness/harness.yaml"' and lines[12] == 'ENTRYPOINT ["kernel"]'
    outside = world.root.parent / "outside"
    outside.mkdir()
    world.write("../outside")
    world.harness("lock")
    assert "lies outside of the harness's folder" in world.kernel("harness", "export", "--only", "dockerfile", ok=1).stderr


# -- init, show, schema ------------------------------------------------------------------------------------------------------
def test_init_writes_a_commented_file_from_what_is_installed(world: World) -> None:
    world.file.unlink()
    world.kernel("harness", "init")
    text = world.file.read_text()
    assert text.count("#") > 10 and "kernel harness lock" in text
    parsed = model.read(world.file)
    assert any(w.path and w.path.endswith("plugins/manager") for w, _ in parsed.wanted) or any(
        w.requirement and w.requirement.startswith("kernel-manager>=") for w, _ in parsed.wanted)
    done = world.kernel("harness", "init", ok=1)
    assert "harness.yaml: is there already (--force replaces it)" in done.stderr and world.file.read_text() == text
    world.kernel("harness", "init", "--force")
    world.kernel("harness", "init", "team.yaml")
    assert model.read(world.root / "team.yaml").file.harness == 1


def test_show_says_what_the_harness_is(world: World) -> None:
    assert "cannot be read" in world.harness("show", ok=1).stderr
    world.harness("lock")
    data = json.loads(world.harness("show", "--json").stdout)
    assert (data["name"], data["description"], data["current"], data["in_place"]) == ("team", "Says hello", True, False)
    world.harness("sync")
    data = json.loads(world.harness("show", "--json").stdout)
    assert data["in_place"] is True
    greeter = next(p for p in data["plugins"] if p["name"] == "greeter")
    assert [greeter[key] for key in ("version", "from", "hooks", "files")] == ["1.0", "index", ["user_prompt_submit"], 11]
    assert next(d for d in data["distributions"] if d["name"] == "phrases")["needed_by"] == ["greeter"]
    said = world.harness("show").stdout
    assert re.search(r"^  greeter +1\.0 +index +hooks: user_prompt_submit$", said, re.MULTILINE)
    assert "phrases 1.0  (for greeter)" in said
    world.write("greeter", more="# changed\n")
    assert "the file has changed since it was locked" in world.harness("show").stdout
    assert "has changed since it was locked" in world.harness("verify", ok=1).stdout


def test_the_schema_takes_what_is_taken_and_refuses_what_is_refused(world: World) -> None:
    schema = json.loads(world.kernel("harness", "schema").stdout)
    checker = jsonschema.Draft202012Validator(schema)
    checker.check_schema(schema)
    assert not list(checker.iter_errors(yaml.safe_load(world.file.read_text())))
    for bad in ({}, {"harness": 2}, {"harness": 1, "plugns": []}, {"harness": 1, "plugins": [{"requirment": "x"}]},
                {"harness": 1, "order": "x"}):
        assert list(checker.iter_errors(bad)), bad


def test_wrong_usage_ends_with_2(world: World) -> None:
    for args in (["nothing"], ["lock", "--nothing"], ["sync", "--find-links", "nowhere"], ["export", "a", "b"]):
        done = world.kernel("harness", *args, ok=2)
        assert done.stdout == "" and done.stderr
    assert "lock" in world.kernel("harness").stdout
