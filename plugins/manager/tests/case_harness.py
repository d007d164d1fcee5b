"""What the tests of a harness as a file share: real wheels, real pip, and ``kernel`` as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

REPO = Path(__file__).resolve().parents[3]
NOT_RUN = ("typer", "jsonschema")
NOT_IN_A_WHEEL = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")

# Its hook stops every prompt and says which version did it; importing it leaves a mark.
GREETER = '''
from __future__ import annotations
import os
from kernel import UserPromptSubmit, UserPromptSubmitResult, hookimpl
from {package}.words import VERSION

if os.environ.get("KERNEL_TEST_MARK"):
    with open(os.environ["KERNEL_TEST_MARK"], "a") as mark:
        mark.write("{name}\\n")

@hookimpl
def user_prompt_submit(event: UserPromptSubmit) -> UserPromptSubmitResult | None:
    return UserPromptSubmitResult(decision="block", reason=f"{name} " + VERSION)
'''

# A build backend in the tree: nothing is downloaded, and any backend that fills a wheel would do.
BACKEND = '''
import json, zipfile
from pathlib import Path

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    facts = json.loads(Path("wheel.json").read_text())
    name = f"{facts['stem']}-{facts['version']}"
    files = {p.relative_to("src").as_posix(): p.read_bytes() for p in sorted(Path("src").rglob("*"))
             if p.is_file() and "__pycache__" not in p.parts}
    files[f"{facts['package']}/.claude-plugin/plugin.json"] = Path(".claude-plugin/plugin.json").read_bytes()
    for part, text in facts["info"].items():
        files[f"{name}.dist-info/{part}"] = text.encode()
    files[f"{name}.dist-info/RECORD"] = "".join(f"{n},,\\n" for n in [*files, f"{name}.dist-info/RECORD"]).encode()
    with zipfile.ZipFile(Path(wheel_directory) / f"{name}-py3-none-any.whl", "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    return f"{name}-py3-none-any.whl"
'''


def write_wheel(folder: Path, stem: str, version: str, files: dict[str, bytes], info: dict[str, str],
                tag: str = "py3-none-any") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-{version}-{tag}.whl"
    base = f"{stem}-{version}.dist-info"
    everything = files | {f"{base}/{name}": text.encode() for name, text in info.items()}
    everything[f"{base}/RECORD"] = "".join(f"{name},,\n" for name in [*everything, f"{base}/RECORD"]).encode()
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in everything.items():
            wheel.writestr(name, content)
    return path


def info(name: str, version: str, requires: list[str], entry: str = "") -> dict[str, str]:
    needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
    found = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
             "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    return found | ({"entry_points.txt": f"[kernel.plugins]\n{entry}\n"} if entry else {})


def manifest(name: str, version: str, implements: list[str], **kernel: Any) -> str:
    return json.dumps({"name": name, "version": version, "description": f"The plugin {name}",
                       "metadata": {"kernel": {"requires": ">=0.1", "implements": implements, **kernel}}}, indent=1)


def plugin_files(name: str, version: str, **kernel: Any) -> dict[str, bytes]:
    """The package of a plugin that stops every prompt, with a skill beside its code."""
    package = name.replace("-", "_") + "_pkg"
    texts = {"__init__.py": "", "plugin.py": GREETER.format(package=package, name=name), "words.py": f"VERSION = {version!r}\n",
             ".claude-plugin/plugin.json": manifest(name, version, ["user_prompt_submit"], **kernel),
             "skills/hello/SKILL.md": "---\nname: hello\ndescription: Says hello\n---\nSay hello.\n"}
    return {f"{package}/{path}": text.encode() for path, text in texts.items()}


def plugin_wheel(folder: Path, name: str, version: str, requires: list[str] | None = None, extra: dict[str, bytes] | None = None,
                 **kernel: Any) -> Path:
    stem = name.replace("-", "_")
    return write_wheel(folder, stem, version, plugin_files(name, version, **kernel) | (extra or {}),
                       info(name, version, ["kernel-harness>=0.1", *(requires or [])], f"{name} = {stem}_pkg.plugin"))


def plugin_project(folder: Path, name: str, version: str, requires: list[str] | None = None) -> Path:
    """A project folder that pip builds into such a wheel."""
    stem = name.replace("-", "_")
    facts = {"stem": stem, "version": version, "package": f"{stem}_pkg",
             "info": info(name, version, ["kernel-harness>=0.1", *(requires or [])], f"{name} = {stem}_pkg.plugin")}
    files = {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
             "backend.py": BACKEND, "wheel.json": json.dumps(facts)}
    for path, content in plugin_files(name, version).items():
        inside = path.partition("/")[2]
        files[inside if inside.startswith(".claude") else f"src/{path}"] = content.decode()
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def library_wheel(folder: Path, name: str, version: str, requires: list[str] | None = None,
                  files: dict[str, bytes] | None = None) -> Path:
    return write_wheel(folder, name.replace("-", "_"), version,
                       files or {f"{name.replace('-', '_')}/__init__.py": f"VERSION = {version!r}\n".encode()},
                       info(name, version, requires or []))


# -- what is installed here, as wheels ----------------------------------------------------------------------------------
def wheelhouse(base: Path) -> Path:
    """A folder with wheels of what the kernel needs, made once for a test run out of the packages that are installed; and
    of our own plugins model-script and headless. What no run here imports (``NOT_RUN``) is an empty package: its hundreds of
    files would only be written and compared again and again."""
    folder = base / "harness-wheels"
    if folder.is_dir():
        return folder
    made = base / f"making-{os.getpid()}"
    for name in needed(["kernel-harness", "pyyaml"]) - {"kernel-harness"}:
        if name in NOT_RUN:
            library_wheel(made, name, metadata.version(name))
        else:
            rewheel(metadata.distribution(name), made)
    for name in ("model-script", "headless"):
        first_party(REPO / "plugins" / name, made)
    try:
        made.rename(folder)
    except OSError:  # another worker was faster
        pass
    return folder


def needed(roots: list[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop().lower()
        if name not in found:
            found.add(name)
            for text in () if name in NOT_RUN else metadata.distribution(name).requires or ():
                requirement = Requirement(text)
                if requirement.name != "editables" and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                    waiting.append(requirement.name)
    return found


def rewheel(found: metadata.Distribution, folder: Path) -> Path:
    """The wheel that a distribution was installed from, near enough: every file that its RECORD names."""
    files: dict[str, bytes] = {}
    for path in found.files or []:
        name = path.as_posix()
        if not name.startswith("..") and not name.endswith(".pyc") and path.name not in NOT_IN_A_WHEEL:
            files[name] = Path(str(path.locate())).read_bytes()
    parts = {name: files.pop(name) for name in list(files) if name.split("/")[0].endswith(".dist-info")}
    wheel = next(text for name, text in parts.items() if name.endswith("/WHEEL")).decode()
    tags = [line.partition(": ")[2].strip().split("-") for line in wheel.splitlines() if line.startswith("Tag: ")]
    tag = "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))
    stem = found.metadata["Name"].replace("-", "_").replace(".", "_")
    return write_wheel(folder, stem, found.version, files,
                       {name.partition("/")[2]: text.decode("utf-8", "surrogateescape") for name, text in parts.items()}, tag)


def first_party(project: Path, folder: Path) -> Path:
    data = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    package = f"kernel_{project.name.replace('-', '_')}"
    files = {p.relative_to(project / "src").as_posix(): p.read_bytes() for p in sorted((project / "src").rglob("*"))
             if p.is_file() and "__pycache__" not in p.parts}
    files[f"{package}/.claude-plugin/plugin.json"] = (project / ".claude-plugin/plugin.json").read_bytes()
    return write_wheel(folder, package, data["version"], files, info(
        data["name"], data["version"], data["dependencies"], f"{project.name} = {package}.plugin"))


def kernel_wheel(folder: Path) -> Path:
    """The kernel of this checkout."""
    data = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    files = {p.relative_to(REPO).as_posix(): p.read_bytes() for p in sorted((REPO / "kernel").rglob("*"))
             if p.is_file() and "__pycache__" not in p.parts}
    facts = info(data["name"], data["version"], data["dependencies"])
    return write_wheel(folder, "kernel_harness", data["version"], files, facts)


# -- kernel as a process ---------------------------------------------------------------------------------------------------
class World:
    """A folder with a harness, a folder of wheels, and a home. ``kernel`` runs in it."""

    def __init__(self, root: Path, factory: pytest.TempPathFactory) -> None:
        base = factory.getbasetemp()
        base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        self.root, self.wheels, self.shared = root / "project", root / "wheels", wheelhouse(base)
        self.home, self.mark = root / "home", root / "imported"
        for folder in (self.root, self.wheels, self.home):
            folder.mkdir()
        (self.root / "script.yaml").write_text("turns:\n  - text: the model was asked\n")
        self.environment = {
            "PATH": "/usr/bin:/bin", "HOME": str(self.home), "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "KERNEL_TEST_MARK": str(self.mark), "PIP_CONFIG_FILE": os.devnull, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "200"}

    @property
    def file(self) -> Path:
        return self.root / "harness.yaml"

    @property
    def lock(self) -> Path:
        return self.root / "kernel.lock"

    def write(self, *plugins: str, more: str = "") -> None:
        lines = "".join(f"  - {p}\n" for p in ("kernel-headless", "kernel-model-script", *plugins))
        self.file.write_text(f"harness: 1\nname: team\nplugins:\n{lines}{more}")

    @property
    def offline(self) -> list[str]:
        return ["--no-index", "--find-links", str(self.wheels), "--find-links", str(self.shared)]

    def kernel(self, *args: str, ok: int | None = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "kernel", *args, ok=ok, **environment)

    def python(self, *args: str, ok: int | None = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([sys.executable, *args], cwd=self.root, capture_output=True, text=True, timeout=300, check=False,
                              stdin=subprocess.DEVNULL, env=self.environment | environment)
        assert "Traceback" not in done.stderr, done.stderr
        assert ok is None or done.returncode == ok, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def harness(self, verb: str, *args: str, ok: int | None = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        offline = self.offline if verb in ("lock", "sync") else []
        return self.kernel("harness", verb, *args, *offline, ok=ok, **environment)

    def run(self, *args: str, ok: int | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """One prompt with the locked harness. A plugin of ``plugin_wheel`` stops it and says so."""
        return self.kernel("--harness", "harness.yaml", "-p", "hello", "--model", self.model, *args, ok=ok, **environment)

    @property
    def model(self) -> str:
        return f"script:{self.root / 'script.yaml'}"

    def imported(self) -> list[str]:
        """The plugins whose code was imported since this was asked last."""
        names = self.mark.read_text().split() if self.mark.exists() else []
        self.mark.unlink(missing_ok=True)
        return names

    @property
    def set(self) -> Path:
        """The set of the present lock."""
        from kernel_manager.harness_file.lockfile import set_id

        return self.root / ".kernel" / "sets" / set_id(self.lock.read_bytes())
