"""The house rules, held by reading the source: who imports whom, what is public, how long a file may be."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import kernel
from kernel.manifest import read

ROOT = Path(__file__).parent.parent
KERNEL = ROOT / "kernel"
PLUGINS = sorted(p for p in (ROOT / "plugins").iterdir() if (p / "pyproject.toml").exists())
MAX_LINES = 400


def imports(path: Path, *, lazy: bool = True) -> set[str]:
    """Modules that a file imports, lazy and typing ones counted."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
    return found


def kernel_modules() -> dict[str, set[str]]:
    """Module -> the kernel modules that it imports, at once or in a function; not those it names in types alone."""
    files = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
             for path in KERNEL.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        found: set[str] = set()
        stack: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                continue
            stack += ast.iter_child_nodes(node)
            if isinstance(node, ast.Import):
                found |= {a.name for a in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{a.name}" for a in node.names}
                found |= inner & set(files) or {node.module}
        graph[name] = {m for m in found if m in files and m != "kernel"}  # the package itself imports nothing
    return graph


def test_no_import_cycle_in_the_kernel_not_even_a_lazy_one() -> None:
    graph = kernel_modules()
    done: set[str] = set()

    def walk(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join((*way, module))
        if module in done:
            return
        for other in sorted(graph[module]):
            walk(other, (*way, module))
        done.add(module)

    for module in sorted(graph):
        walk(module, ())


def test_the_drawing_shows_what_is_there() -> None:
    """Every part of docs/architecture.md exists, every part that exists is drawn, and no import goes up a floor."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    house, rooms = page[page.index("```"):].split("```")[1].split("hooks (pluggy)")
    floors = [{part for chain in re.findall(r"[a-z]+(?: ─ [a-z]+)+", floor) for part in chain.split(" ─ ")}
              for floor in re.split(r"├─+┤", house)]
    level = {part: number for number, floor in enumerate(floors) for part in floor}
    graph: dict[str, set[str]] = {}
    for module, others in kernel_modules().items():
        if "." in module:
            graph.setdefault(module.split(".")[1], set()).update(o.split(".")[1] for o in others if "." in o)
    beside = {"testing", "__main__"}
    assert len(floors) == 7 and level.keys() == graph.keys() - beside
    up = [f"{a} -> {b}" for a, others in graph.items() if a not in beside for b in others if level[b] < level[a]]
    assert not up
    assert set(re.findall(r"[a-z]+(?:-[a-z]+)*", rooms)) == {p.name for p in PLUGINS}
    never = re.findall(r"`([a-z]+) -> ([a-z]+)`", page[page.index("Never:"):].split("\n\n")[0])
    assert len(never) == 10 and not [(a, b) for a, b in never if b in graph[a]]


@pytest.mark.parametrize("path", sorted(KERNEL.rglob("*.py")), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_kernel_imports_no_plugin(path: Path) -> None:
    packages = {f"kernel_{p.name.replace('-', '_')}" for p in PLUGINS}
    assert not {m.split(".")[0] for m in imports(path)} & packages


def test_nothing_but_the_command_line_imports_the_command_line() -> None:
    for path in KERNEL.glob("*.py"):
        if path.name != "__main__.py":
            assert not any(m.startswith("kernel.cli") for m in imports(path)), path.name


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda p: p.name)
def test_a_plugin_imports_public_names_its_dependencies_and_itself(plugin: Path) -> None:
    import tomllib

    project = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(d for extra in project.get("optional-dependencies", {}).values() for d in extra)]
    declared = {re.split(r"[<>=!~\[; ]", d)[0].replace("-", "_").lower() for d in wanted}
    other_names = {"pyyaml": "yaml", "opentelemetry_sdk": "opentelemetry", "markdown_it_py": "markdown_it"}
    declared |= {other_names.get(d, d) for d in declared}
    package = f"kernel_{plugin.name.replace('-', '_')}"
    for path in (plugin / "src").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "kernel":
                strange = {a.name for a in node.names} - set(kernel.__all__)
                assert not strange, f"{path}: {strange} is not public"
        for module in imports(path):
            top = module.split(".")[0]
            if top == "kernel":
                assert module == "kernel" or module.removeprefix("kernel.") in kernel.__all__, f"{path} imports {module}"
            else:
                assert top in sys.stdlib_module_names or top == package or top.lower() in declared, \
                    f"{path} imports {module}, which pyproject.toml does not declare"


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda p: p.name)
def test_uv_finds_what_lies_beside(plugin: Path) -> None:
    """Every dependency of ours is a source of the workspace; without it uv refuses the whole set."""
    import tomllib

    data = tomllib.loads((plugin / "pyproject.toml").read_text())
    names = {re.split(r"[<>=!~\[; ]", line)[0] for line in data["project"]["dependencies"]}
    ours = names & {"kernel-harness", *(f"kernel-{p.name}" for p in PLUGINS)}
    assert data["tool"]["uv"]["sources"] == {name: {"workspace": True} for name in ours}


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda p: p.name)
def test_manifest_and_distribution_agree(plugin: Path) -> None:
    import tomllib

    project = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]
    got = read(plugin)
    assert got.errors == [] and got.warnings == []
    assert got.manifest is not None
    assert got.manifest.name == plugin.name == project["name"].removeprefix("kernel-")
    assert got.manifest.version == project["version"]
    assert got.manifest.name in project["entry-points"]["kernel.plugins"]
    assert (plugin / "README.md").stat().st_size > 200, "the README says what it registers, reads and answers"


def test_requirements_name_every_plugin() -> None:
    lines = (ROOT / "requirements-dev.txt").read_text().splitlines()
    assert [line.removeprefix("-e ./plugins/").partition("[")[0] for line in lines if "plugins/" in line] == [
        p.name for p in PLUGINS]
    default = (ROOT / "requirements.txt").read_text().splitlines()
    assert set(default) - {"-e ."} <= set(lines)


def test_public_names_are_what_is_exported() -> None:
    for name in kernel.__all__:
        assert getattr(kernel, name) is not None
    assert kernel.__all__[2:] == sorted(kernel.__all__[2:])
    modules = {path.stem for path in KERNEL.glob("*.py")} | {path.name for path in KERNEL.iterdir() if path.is_dir()}
    assert not set(kernel.__all__) & modules, "a name that is a module as well is one or the other by the order of imports"
    assert {*kernel.EVENTS, *(answer.__name__ for answer in kernel.ANSWERS.values())} < set(kernel.__all__)


FLOORS = (1480, 1385, 1020, 430, 450, 1300, 310)
"""Lines of code (no blanks, comments, docstrings) that each floor of the drawing may hold, from above; they may only shrink."""


def test_the_kernel_does_not_grow() -> None:
    """Decision 13. A floor that got much smaller is an error, too: its bound goes down with it."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("picture", ROOT / "docs" / "picture.py")
    assert spec and spec.loader
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    house = page[page.index("```"):].split("```")[1].split("hooks (pluggy)")[0]
    sizes = []
    for floor in re.split(r"├─+┤", house):
        parts = {part for chain in re.findall(r"[a-z]+(?: ─ [a-z]+)+", floor) for part in chain.split(" ─ ")}
        files = [f for part in parts for f in ([KERNEL / f"{part}.py"] if (KERNEL / f"{part}.py").exists()
                                               else (KERNEL / part).rglob("*.py"))]
        sizes.append(sum(picture.code_lines(file.read_text("utf-8")) for file in files))
    assert len(sizes) == len(FLOORS)
    assert all(bound * 0.9 <= size <= bound for size, bound in zip(sizes, FLOORS, strict=True)), sizes


def test_the_loop_is_read_in_one_sitting() -> None:
    assert len((KERNEL / "loop.py").read_text("utf-8").splitlines()) <= 200


def test_no_file_is_too_long() -> None:
    long = {p.relative_to(ROOT).as_posix(): n for base in (KERNEL, ROOT / "plugins") for p in base.rglob("*.py")
            if "/tests/" not in p.as_posix() and (n := len(p.read_text("utf-8").splitlines())) > MAX_LINES}
    assert not long, f"over {MAX_LINES} lines: {long}"


def test_no_shell_true_no_unsafe_yaml_no_pickle() -> None:
    for base in (KERNEL, ROOT / "plugins"):
        for path in base.rglob("*.py"):
            if "/tests/" in path.as_posix():
                continue
            source = path.read_text("utf-8")
            assert "shell=True" not in source, path
            assert not re.search(r"\byaml\.(load|full_load|unsafe_load)\(", source), path
            assert not re.search(r"^\s*(import|from) pickle", source, re.MULTILINE), path
