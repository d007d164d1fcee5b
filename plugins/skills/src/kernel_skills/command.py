"""``kernel skills``: what this folder has, where each comes from, what is wrong; and what one skill would tell the model."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

from kernel import Harness, Options
from kernel_skills.catalogue import Catalogue, Skill, read
from kernel_skills.values import one_line

USAGE = """usage: kernel skills list [--json] [--plugin-dir DIR]...
       kernel skills show NAME [--json] [--plugin-dir DIR]...

list   every skill and command that a session in this folder has: name, where it comes from, who may use it, what is wrong
show   one of them: its file, its fields, its text
"""


class SkillsCommand:
    name = "skills"
    summary = "list skills and commands, where they come from and what is wrong with them"

    def run(self, args: list[str]) -> int:
        import argparse
        from pathlib import Path

        parser = argparse.ArgumentParser("kernel skills", usage=USAGE, add_help=True)
        parser.add_argument("what", choices=("list", "show"))
        parser.add_argument("name", nargs="?")
        parser.add_argument("--json", action="store_true")
        parser.add_argument("--plugin-dir", action="append", default=[], type=lambda p: Path(p).expanduser().absolute())
        try:
            given = parser.parse_args(args or ["list"])
        except SystemExit as error:
            return int(error.code or 0)
        if (given.what == "show") is not (given.name is not None):
            print(USAGE, file=sys.stderr)
            return 2
        catalogue = _catalogue(Options(plugin_dirs=given.plugin_dir))
        return _list(catalogue, given.json) if given.what == "list" else _show(catalogue, given.name, given.json)


def _catalogue(options: Options) -> Catalogue:
    """Without opening a session: no model is chosen and nothing is recorded."""
    harness = Harness(options)
    place: Any = SimpleNamespace(options=options, settings=harness.settings, plugins=harness.plugins,
                                 project_root=str(options.cwd))
    catalogue = Catalogue()
    catalogue.load(place)
    return catalogue


def _fields(skill: Skill) -> dict[str, Any]:
    return {"name": skill.name, "kind": "command" if skill.is_command else "skill", "scope": skill.component.scope,
            "plugin": skill.plugin.name if skill.plugin else None, "path": skill.path, "description": one_line(skill.description),
            "userInvocable": skill.by_user, "modelInvocable": skill.by_model, "allowedTools": skill.allowed,
            "context": "fork" if skill.fork else None}


def _list(catalogue: Catalogue, as_json: bool) -> int:
    skills = list(catalogue.by_name.values())
    if as_json:
        print(json.dumps({"skills": [_fields(s) for s in skills], "problems": list(catalogue.problems)}, indent=1))
    else:
        width = max((len(s.name) for s in skills), default=0)
        for skill in skills:
            who = ("both" if skill.by_model else "user") if skill.by_user else "model" if skill.by_model else "nobody"
            print(f"{skill.name:<{width}}  {skill.component.scope:<7}  {who:<6}  {one_line(skill.description)[:80]}")
        if not skills:
            print("There are no skills or commands here.", file=sys.stderr)
        for problem in catalogue.problems:
            print(one_line(problem), file=sys.stderr)
    return 1 if catalogue.problems else 0


def _show(catalogue: Catalogue, name: str, as_json: bool) -> int:
    skill = catalogue.get(name)
    if skill is None:
        print(f"there is no skill {name!r}; kernel skills list shows which there are", file=sys.stderr)
        return 2
    body = read(skill.component, body=True).body
    if as_json:
        print(json.dumps({**_fields(skill), "text": body, "problems": skill.problems}, indent=1))
        return 1 if skill.problems else 0
    for key, value in _fields(skill).items():
        if value not in (None, []):
            print(f"{key}: {', '.join(value) if isinstance(value, list) else value}")
    print(f"\n{body}")
    for problem in skill.problems:
        print(f"{skill.path}: {one_line(problem)}", file=sys.stderr)
    return 1 if skill.problems else 0
