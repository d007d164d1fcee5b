"""``kernel permissions test FILE``: rules held against examples, like tests of code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from kernel import PermissionCall

from ..facts import Facts
from ..paper import PaperView, paper_tool
from ..rules import KNOWN_TOOLS, RENAMED, Behavior, Rule, RuleError, RuleSet, faults
from ..shell import Parser
from ..view import RealView, View
from .desk import mode_of
from .explain import rule_row, rule_text
from .files import Place, Unusable, read_text, shown
from .weigh import Weighing

_EXPECTED = {"allowed": "allow", "asked": "ask", "denied": "deny"}
_BEHAVIORS: tuple[Behavior, ...] = ("allow", "ask", "deny")
_KEYS = {"rules", "settings", "mode", "cwd", "add_dirs", "home", "files", "dirs", "links", *_EXPECTED}
HELP = """a file of examples holds
  rules: {allow: [RULE ...], ask: [...], deny: [...]}   and / or   settings: FILE   (its 'permissions' lists)
  allowed: [EXAMPLE ...]   asked: [...]   denied: [...]
an example is a command, or {command: ...} or {tool: NAME, input: {...}}, with mode and cwd of its own where it needs them;
optional: mode, cwd, add_dirs; and home, files, dirs, links for a file system on paper"""


class Example(NamedTuple):
    expected: str
    tool: str
    input: dict[str, Any]
    mode: str
    cwd: str

    @property
    def text(self) -> str:
        command = self.input.get("command")
        if self.tool in ("Bash", "PowerShell") and isinstance(command, str):
            return command
        return f"{self.tool} {json.dumps(self.input)}"


def play(path: Path) -> dict[str, Any]:
    """Decide every example of a file; the report as plain data.

    :raises Unusable: the file does not hold rules and examples.
    """
    data = _load(path)
    unknown = sorted(set(map(str, data)) - _KEYS)
    if unknown:
        raise Unusable(f"{path}: unknown key {unknown[0]!r}; {HELP}")
    cwd = str(data.get("cwd") or path.resolve().parent)
    view = _view(data)
    warnings: list[str] = []
    rules = [*_own_rules(path, data.get("rules"), cwd, warnings), *_settings_rules(path, data.get("settings"), cwd, warnings)]
    facts = Facts(RuleSet(rules), view, cwd, tuple(_texts(path, data, "add_dirs")))
    parser, rows = Parser(), []
    for example in _examples(path, data, cwd):
        call = PermissionCall(tool=paper_tool(example.tool), input=example.input, cwd=example.cwd, mode=example.mode)
        decision = Weighing(call, facts, parser)
        verdict = decision.run()
        rows.append({"example": example.text, "mode": example.mode, "expected": example.expected, "decision": verdict.behavior,
                     "reason": verdict.message, "rule": rule_row(decision.rule)})
    if not rows:
        raise Unusable(f"{path} holds no example; {HELP}")
    return {"file": str(path), "examples": len(rows), "wrong": [r for r in rows if r["decision"] != r["expected"]],
            "warnings": warnings}


def text(report: dict[str, Any]) -> str:
    """The report for people: what was expected and what came instead, like a diff."""
    lines: list[str] = []
    for row in report["wrong"]:
        why = rule_text(row["rule"]) or shown(row["reason"], 300)
        lines += [f"  {shown(row['example'])}" + (f"  (mode {row['mode']})" if row["mode"] != "default" else ""),
                  f"- {row['expected']}", f"+ {row['decision']:<5}  {why}", ""]
    lines += [f"warning: {shown(w, 400)}" for w in report["warnings"]]
    lines.append(f"{report['examples']} examples, {len(report['wrong'])} wrong")
    return "\n".join(lines)


# -- reading the file -------------------------------------------------------------------------------------------------------
def _load(path: Path) -> dict[Any, Any]:
    text = read_text(path)
    if path.suffix == ".json":
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Unusable(f"{path} is no JSON: {error}") from None
    else:
        import yaml

        try:
            data = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise Unusable(f"{path} is no YAML: {error}") from None
    if not isinstance(data, dict):
        raise Unusable(f"{path} must hold an object; {HELP}")
    return data


def _view(data: dict[Any, Any]) -> View:
    """A file system on paper where the file describes one, else the real one."""
    home = data.get("home")
    given = {name: data[name] for name in ("files", "dirs", "links") if data.get(name)}
    if not given:
        return RealView(str(home or Path.home()))
    links = given.get("links", {})
    if not isinstance(links, dict) or not all(isinstance(given.get(n, []), list) for n in ("files", "dirs")):
        raise Unusable("'files' and 'dirs' must be lists of paths, 'links' an object of paths and where they lead")
    return PaperView(home=str(home or "/home/u"), files=map(str, given.get("files", ())), dirs=map(str, given.get("dirs", ())),
                     links={str(k): str(v) for k, v in links.items()})


def _texts(path: Path, data: dict[Any, Any], key: str) -> list[str]:
    value = data.get(key) or []
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise Unusable(f"{path}: {key!r} must be a list of strings")
    return value


def _own_rules(path: Path, given: Any, cwd: str, warnings: list[str]) -> list[Rule]:
    if given is None:
        return []
    if not isinstance(given, dict) or not set(given) <= set(_BEHAVIORS):
        raise Unusable(f"{path}: 'rules' must be an object with the lists allow, ask and deny")
    found: list[Rule] = []
    for behavior in _BEHAVIORS:
        found += _rules(_texts(path, given, behavior), behavior, cwd, str(path), warnings)
    return found


def _settings_rules(path: Path, given: Any, cwd: str, warnings: list[str]) -> list[Rule]:
    if given is None:
        return []
    if not isinstance(given, str):
        raise Unusable(f"{path}: 'settings' must be the path of a settings file")
    file = path.parent / given
    try:
        permissions = json.loads(read_text(file)).get("permissions") or {}
    except (ValueError, AttributeError, RecursionError) as error:
        raise Unusable(f"{file} holds no JSON object: {error}") from None
    if not isinstance(permissions, dict):
        raise Unusable(f"{file}: 'permissions' must be an object")
    found: list[Rule] = []
    for behavior in _BEHAVIORS:
        found += _rules(_texts(file, permissions, behavior), behavior, cwd, f"{file}, permissions.{behavior}", warnings)
    return found


def _rules(texts: list[str], behavior: Behavior, cwd: str, origin: str, warnings: list[str]) -> list[Rule]:
    found: list[Rule] = []
    for text in texts:
        try:
            rule = Rule(text, behavior, "project", cwd, origin)
        except RuleError as error:
            warnings.append(f"{origin}: {text}: {error}")
            continue
        fault, counts = faults(rule, set())
        if fault:
            warnings.append(f"{origin}: {text}: {fault}")
        found += [rule] if counts else []
    return found


def _examples(path: Path, data: dict[Any, Any], cwd: str) -> list[Example]:
    found: list[Example] = []
    for key, expected in _EXPECTED.items():
        given = data.get(key) or []
        if not isinstance(given, list):
            raise Unusable(f"{path}: {key!r} must be a list of examples; {HELP}")
        found += [_example(Place(f"{path}, {key}[{n}]"), item, expected, data, cwd) for n, item in enumerate(given)]
    return found


def _example(where: Place, item: Any, expected: str, data: dict[Any, Any], cwd: str) -> Example:
    if isinstance(item, str):
        item = {"command": item}
    if not isinstance(item, dict):
        raise Unusable(f"{where}: an example is a command or an object; {HELP}")
    short = "command" in item
    tool = item.get("tool", "Bash" if short else None)
    input = {"command": item["command"]} if short else item.get("input")
    if not isinstance(tool, str) or not isinstance(input, dict) or not set(item) <= {"command", "tool", "input", "mode", "cwd"}:
        raise Unusable(f"{where}: an example has a command, or a tool and an input; {HELP}")
    tool = RENAMED.get(tool, tool)
    if tool not in KNOWN_TOOLS and not tool.startswith("mcp__"):
        raise Unusable(f"{where}: there is no tool {tool!r}")
    return Example(expected, tool, input, mode_of(str(item.get("mode") or data.get("mode") or "default")),
                   str(item.get("cwd") or cwd))
