"""What a plugin's module says it implements and registers, read from its syntax tree. What cannot be told is left open."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct, field

from kernel_linter.bundle import Plugin
from kernel_linter.python_side import Function, Module, hook_names, is_mark, modules, parse, source_of


class Side(Struct):
    """The hooks of a module. ``open``: more may be there than the tree shows (star imports, ``globals()``, ``setattr``)."""

    module: Module
    marked: dict[str, Function] = field(default_factory=dict)
    bare: dict[str, Function] = field(default_factory=dict)
    other: set[str] = field(default_factory=set)
    """Names that are bound in another way: imported or assigned."""
    open: bool = False


def sides(plugin: Plugin) -> list[Side]:
    return [read(module) for module in modules(plugin)]


def read(module: Module) -> Side:
    side = Side(module)
    for node in _statements(module.tree.body):
        if isinstance(node, Function):
            (side.marked if any(is_mark(d) for d in node.decorator_list) else side.bare)[node.name] = node
            side.open = side.open or (node.name in hook_names() and not all(map(is_mark, node.decorator_list)))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            side.other |= {(a.asname or a.name).split(".")[0] for a in node.names}
            side.open = side.open or any(a.name == "*" for a in node.names)
        else:
            side.other |= {t.id for t in ast.walk(node) if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)}
            side.open = side.open or any(isinstance(c, ast.Call) and isinstance(c.func, ast.Name)
                                         and c.func.id in ("globals", "setattr", "exec", "vars") for c in ast.walk(node))
    return side


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those of its branches included."""
    for node in body:
        parts = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")] if isinstance(node, ast.If | ast.Try
                                                                                                     | ast.With) else []
        yield from (inner for part in parts for inner in _statements(part))
        if isinstance(node, ast.Try):
            yield from (inner for handler in node.handlers for inner in _statements(handler.body))
        if not parts:
            yield node


def implements(plugin: Plugin) -> list[str] | None:
    """The hooks that the manifest names, ``*`` written out; ``None`` where it says nothing that can be read."""
    part = plugin.kernel
    named = part.get("implements", []) if part is not None else None
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        return None
    events = [name for name in hook_names() if not name.startswith("register_")]
    return list(dict.fromkeys(hook for name in named for hook in (events if name == "*" else [name])))


def provides(plugin: Plugin) -> dict[str, list[str]]:
    found = (plugin.kernel or {}).get("provides")
    return {kind: [n for n in names if isinstance(n, str)] for kind, names in found.items() if isinstance(names, list)} \
        if isinstance(found, dict) else {}


class Registered(Struct):
    """What a ``register_...`` hook hands over: names with their calls; ``open``: some of it cannot be told."""

    kind: str
    function: Function
    names: dict[str, ast.Call] = field(default_factory=dict)
    open: bool = False


def registered(plugin: Plugin, side: Side) -> Iterator[Registered]:
    """``register(Thing())`` where ``Thing`` is a class of the plugin whose ``name`` is a plain text."""
    for hook, function in side.marked.items():
        if not hook.startswith("register_") or not function.args.args:
            continue
        found = Registered(hook.removeprefix("register_"), function)
        handed = function.args.args[0].arg
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                 and node.func.id == handed]
        uses = sum(isinstance(node, ast.Name) and node.id == handed for node in ast.walk(function))
        found.open = uses != len(calls) or any(isinstance(n, ast.If | ast.For | ast.While | ast.Try | ast.Return | ast.Match)
                                               for n in ast.walk(function))
        for call in calls:
            name = _name_of(plugin, side, function, call)
            if name:
                found.names[name] = call
            else:
                found.open = True
        yield found


def _name_of(plugin: Plugin, side: Side, function: Function, call: ast.Call) -> str:
    """The name under which a call registers; empty where it cannot be told."""
    given = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "name"), None)
    if given is not None:
        return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
    made = call.args[0] if call.args else None
    if not (isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and not made.args and not made.keywords):
        return ""
    tree = side.module.tree
    wanted = made.func.id
    for node in (*ast.walk(function), *tree.body):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            alias = next((a for a in node.names if (a.asname or a.name) == wanted), None)
            if alias is not None:
                file = source_of(plugin, node.module)
                parsed = parse(file) if file else None
                return _class_name(parsed, alias.name) if isinstance(parsed, ast.Module) else ""
    return _class_name(tree, wanted)


def _class_name(tree: ast.Module, wanted: str) -> str:
    """The ``name`` that a class of the tree has in its body, and that nothing in it sets again."""
    cls = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == wanted), None)
    if cls is None or any(isinstance(n, ast.Attribute) and n.attr == "name" and isinstance(n.ctx, ast.Store)
                          for n in ast.walk(cls)):
        return ""
    for node in cls.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == "name":
            value = getattr(node, "value", None)
            return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
    return ""
