"""The Python side of a kernel plugin, read from ``pyproject.toml`` and syntax trees. No module is imported."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from msgspec import Struct

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic, Severity
from kernel_linter.source import File
from kernel_linter.words import nearest

GROUP = "kernel.plugins"
REGISTRATION = ("tools", "models", "policies", "sandboxes", "search_backends", "stores", "front_ends", "controls",
                "prompt_parts", "extensions", "compactors", "validators", "middleware", "commands", "lint_rules")


Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(Struct):
    file: File
    tree: ast.Module

    def at(self, node: ast.stmt | ast.expr, message: str, length: int, severity: Severity | None = None) -> Diagnostic:
        """A diagnostic at the first characters of a node."""
        start = self.file.line_start(node.lineno - 1) + node.col_offset
        return self.file.at(message, span=(start, start + length), severity=severity)


class Project(Struct):
    """``pyproject.toml`` as far as it concerns a plugin."""

    plugin: Plugin
    data: dict[str, Any]

    @property
    def project(self) -> dict[str, Any]:
        return _table(self.data.get("project"))

    @property
    def name(self) -> str:
        value = self.project.get("name")
        return value if isinstance(value, str) else ""

    @property
    def version(self) -> str:
        value = self.project.get("version")
        return value if isinstance(value, str) else ""

    @property
    def points(self) -> dict[str, str]:
        """Entry points of the kernel's group."""
        group = _table(_table(self.project.get("entry-points")).get(GROUP))
        return {k: v for k, v in group.items() if isinstance(v, str)}

    @property
    def part(self) -> dict[str, Any]:
        return self.plugin.kernel or {}

    @property
    def kernel(self) -> bool:
        """Whether this is a plugin of the kernel at all, and not a project that happens to have both files."""
        dependencies = self.project.get("dependencies")
        return bool(self.part) or any(re.match(r"kernel-harness\b", d) for d in dependencies or () if isinstance(d, str)) \
            if isinstance(dependencies, list) else bool(self.part)

    @property
    def wants_code(self) -> bool:
        return bool(self.part.get("implements") or self.part.get("provides"))

    def unpackaged(self) -> list[str]:
        """What the wheel would lack. Only build back ends that are known are judged."""
        build = _table(self.data.get("build-system")).get("build-backend")
        wanted = [".claude-plugin", *(n for n in ("skills", "commands", "agents", "hooks") if self.plugin.is_dir(n))]
        module = next(iter(self.points.values())).split(":")[0].split(".")[0]
        for base in (f"src/{module}", module):
            wanted = [w for w in wanted if not self.plugin.exists(f"{base}/{w}")]
        tool = _table(self.data.get("tool"))
        if build == "hatchling.build":
            wheel = _table(_table(_table(_table(tool.get("hatch")).get("build")).get("targets")).get("wheel"))
            text = repr([wheel.get("force-include"), wheel.get("include"), wheel.get("artifacts"), wheel.get("packages"),
                         _table(_table(tool.get("hatch")).get("build")).get("force-include")])
        elif isinstance(build, str) and build.startswith("setuptools"):
            tools = _table(tool.get("setuptools"))
            text = repr([tools.get("package-data"), tools.get("data-files")])
            if self.plugin.is_file("MANIFEST.in"):
                text += self.plugin.file("MANIFEST.in").text
        else:
            return []
        return [w for w in wanted if w not in text]

    def sources(self) -> list[File]:
        """The files of the entry points' modules."""
        found = [source_of(self.plugin, value.split(":")[0]) for value in self.points.values()]
        return [file for file in found if file]


def python_files(plugin: Plugin) -> list[File]:
    """What of the Python side is read: the project file and the modules of its entry points."""
    project = distribution(plugin)
    return [plugin.file("pyproject.toml"), *project.sources()] if project else []


@lru_cache(maxsize=1)  # the rules ask about one plugin, one after the other
def modules(plugin: Plugin) -> list[Module]:
    """The modules of the entry points that can be parsed."""
    project = distribution(plugin)
    found = [(file, parse(file)) for file in project.sources()] if project else []
    return [Module(file, tree) for file, tree in found if isinstance(tree, ast.Module)]


def source_of(plugin: Plugin, module: str) -> File | None:
    """The file of a module of the plugin, by its dotted name."""
    path = module.replace(".", "/")
    rel = next((r for base in ("src/", "") for r in (f"{base}{path}.py", f"{base}{path}/__init__.py") if plugin.is_file(r)), "")
    return plugin.file(rel) if rel else None


def parse(file: File) -> ast.Module | SyntaxError | None:
    """The tree of a file, or why it is no Python; ``None`` for what no interpreter of ours could say anything about."""
    try:
        return ast.parse(file.text.lstrip("\ufeff"))
    except SyntaxError as error:
        return error
    except ValueError as error:  # null bytes
        return SyntaxError(str(error))
    except (RecursionError, MemoryError):
        return None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@lru_cache(maxsize=1)
def distribution(plugin: Plugin) -> Project | None:
    """The project of a plugin that is a Python distribution."""
    if not plugin.is_file("pyproject.toml"):
        return None
    try:
        return Project(plugin, tomllib.loads(plugin.file("pyproject.toml").text))
    except (ValueError, RecursionError):
        return None


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def hook_names() -> dict[str, tuple[str, ...]]:
    """Hook -> its arguments."""
    from kernel import EVENTS

    snake = {re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower(): ("event", "session") for event in EVENTS}
    return {**snake, **{f"register_{kind}": ("register",) for kind in REGISTRATION}}


def is_mark(node: ast.expr) -> bool:
    """Whether a decorator is ``hookimpl``."""
    target = node.func if isinstance(node, ast.Call) else node
    return (target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else "") == "hookimpl"


def hook_functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in tree.body if isinstance(node, Function) and any(map(is_mark, node.decorator_list)))


def wrong_hook(function: Function) -> str:
    names = hook_names()
    if function.name not in names:
        near = nearest(function.name, names)
        return "there is no such hook" + (f"; did you mean {near}?" if near else "")
    arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    strange = [a for a in arguments if a not in names[function.name]]
    if strange:
        return f"has no argument {strange[0]!r}; it may take {', '.join(names[function.name])}"
    return _wrong_annotation(function)


def _wrong_annotation(function: Function) -> str:
    """An event of another hook in the annotation: the kernel refuses it when it loads the module."""
    annotation = next((a.annotation for a in function.args.args if a.arg == "event"), None)
    if annotation is None:
        return ""
    given = ast.unparse(annotation).strip("'\"").rsplit(".", 1)[-1]
    expected = "".join(part.capitalize() for part in function.name.split("_"))
    return "" if given in (expected, "Event", "Any") else f"takes a {expected}, but its annotation says {given}"


_EFFECTS: tuple[tuple[re.Pattern[str], str], ...] = tuple((re.compile(pattern), what) for pattern, what in (
    (r"(?:requests|httpx|urllib\.request|aiohttp)\.\w+$|urlopen$|socket\.(?:socket|create_connection)$", "network access"),
    (r"subprocess\.\w+$|os\.(?:system|popen|spawn\w*|exec\w*)$", "a process"),
    (r"(?:threading\.)?(?:Thread|Timer)$|\.start$|multiprocessing\.Process$|\w*Executor$", "a thread"),
    (r"\.(?:write_text|write_bytes|mkdir|unlink|rmdir|touch)$|os\.(?:makedirs|mkdir|remove|unlink|rename)$|shutil\.\w+$",
     "a change of files"),
    (r"asyncio\.run$|anyio\.run$", "an event loop"),
))


def side_effects(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Calls at the top of a module that start something or write something."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.If):
            test = ast.unparse(node.test)
            pending += [] if "__name__" in test or "TYPE_CHECKING" in test else node.body
            pending += node.orelse
            continue
        if isinstance(node, ast.Try | ast.With | ast.For | ast.While):
            pending += node.body
        for part in ast.walk(node) if not isinstance(node, ast.Try | ast.With | ast.For | ast.While) else ():
            if isinstance(part, ast.Call) and (what := _effect(part)):
                yield part, what
                break


def _effect(call: ast.Call) -> str:
    name = ast.unparse(call.func)
    if name in ("open", "io.open"):
        mode = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "mode"), None)
        return "a change of files" if isinstance(mode, ast.Constant) and any(c in str(mode.value) for c in "wax+") else ""
    return next((what for pattern, what in _EFFECTS if pattern.search(name)), "")
