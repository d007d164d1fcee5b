"""The examples of ``cases/*.yaml`` as folders.

An example is a mapping: ``files`` (paths in the plugin; ``null`` leaves one out), ``manifest`` and ``entry`` and ``market``
(keys over the defaults), ``skill``, ``agent``, ``hooks``, ``mcp`` (the usual files), ``settings`` (a project, not a plugin),
``root`` (files outside the plugin), ``python`` (a distribution around the plugin). Values that start with ``$`` are made here.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parent / "cases"
SKILL = "---\nname: {name}\ndescription: Formats SQL files. Use when one is edited\n---\nText for the model.\n"
COMMAND = "---\ndescription: Deploys the service\n---\nDeploy it.\n"
AGENT = "---\nname: reviewer\ndescription: Reviews changes before they are committed\n---\nReview the change.\n"
MANIFEST = {"name": "acme", "version": "1.0.0", "description": "Formats SQL files in a folder", "author": {"name": "Acme"}}
MARKET = {"name": "acme-tools", "description": "Tools", "owner": {"name": "Acme"},
          "plugins": [{"name": "acme", "source": "./plugins/acme", "description": "Formats SQL"}]}


def load() -> dict[str, dict[str, Any]]:
    """Code -> its case."""
    out: dict[str, dict[str, Any]] = {}
    for path in sorted(CASES.glob("*.yaml")):
        for code, case in yaml.safe_load(path.read_text("utf-8")).items():
            assert code not in out, f"{code} twice"
            out[code] = case
    return out


def examples(case: dict[str, Any], which: str) -> list[dict[str, Any]]:
    value = case[which]
    return value if isinstance(value, list) else [value]


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in {**base, **over}.items() if v is not None}


def build(root: Path, example: dict[str, Any], *, since: bool = False) -> Path:
    """Write an example; the path to check."""
    if "settings" in example:
        write(root / ".claude" / "settings.json", example["settings"])
        return root / ".claude"
    if set(example) == {"root"}:
        for name, content in example["root"].items():
            write(root / name, content)
        return root
    market = "market" in example or "entry" in example
    home = root / "plugins" / "acme" if market else root / "acme"
    for name, content in plugin_files(example).items():
        if content is not None:
            write(home / name, content)
    for name, content in example.get("root", {}).items():
        write(root / name, content)
    if not market:
        return home
    data = merged(MARKET, example.get("market", {}))
    if "entry" in example:
        data["plugins"] = [merged(MARKET["plugins"][0], example["entry"])]  # type: ignore[index,arg-type]
    place = root / ".claude-plugin" / "marketplace.json"
    if since:
        before = {**data, "plugins": [*data["plugins"], {"name": "gone", "source": "./gone"}]}
        write(place, before)
        for args in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "x"]):
            subprocess.run(["git", "-C", str(root), *args], check=True, capture_output=True)
    write(place, data)
    return root


def plugin_files(example: dict[str, Any]) -> dict[str, Any]:
    files: dict[str, Any] = {".claude-plugin/plugin.json": merged(MANIFEST, example.get("manifest", {})),
                             "skills/format/SKILL.md": "$skill"}
    if example.get("market",
                   {}).get("plugins") and "files" in example and any(k.endswith("/.claude-plugin/plugin.json")
                                                                     for k in example["files"]):
        return {f"../../{k}": v for k, v in example["files"].items()}
    if "skill" in example:
        files["skills/format/SKILL.md"] = example["skill"]
    if "agent" in example:
        files["agents/reviewer.md"] = example["agent"]
    if "hooks" in example:
        files["hooks/hooks.json"] = {"hooks": example["hooks"]}
    if "mcp" in example:
        files[".mcp.json"] = {"mcpServers": example["mcp"]}
    if "python" in example:
        files |= dict(distribution(example["python"]))
    return {**files, **example.get("files", {})}


def distribution(asked: dict[str, Any]) -> Iterator[tuple[str, str]]:
    include = ('[tool.hatch.build.targets.wheel.force-include]\n'
               '".claude-plugin" = "acme/.claude-plugin"\n"skills" = "acme/skills"\n')
    yield "pyproject.toml", (
        f'[build-system]\nbuild-backend = "hatchling.build"\n[project]\nname = "{asked.get("name", "kernel-acme")}"\n'
        f'version = "{asked.get("version", "1.0.0")}"\n[project.entry-points."kernel.plugins"]\n{asked.get("entry", "acme")} = '
        f'"acme.plugin"\n'
        + (include if asked.get("include", True) else ""))
    yield "src/acme/plugin.py", asked.get("code", '"""Hooks."""\n')


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict) and len(content) <= 2 and any(k.startswith("$") and k != "$schema" for k in content):
        return special(path, content)
    if isinstance(content, str):
        known = {"$skill": SKILL.format(name=path.parent.name), "$command": COMMAND, "$agent": AGENT}
        path.write_bytes(known.get(content, content).encode("utf-8"))
        return None
    path.write_text(json.dumps(secret(content), indent=2, ensure_ascii=False), "utf-8")
    return None


def secret(value: Any) -> Any:
    """``{"$secret": text}``: the text without its spaces, so that no scanner takes the example for a leak."""
    if isinstance(value, dict):
        return value["$secret"].replace(" ", "") if set(value) == {"$secret"} else {k: secret(v) for k, v in value.items()}
    return [secret(v) for v in value] if isinstance(value, list) else value


def special(path: Path, content: dict[str, Any]) -> None:
    if "$exec" in content:
        path.write_text(content["$exec"], "utf-8")
        path.chmod(0o755)
    elif "$link" in content:
        path.symlink_to(content["$link"])
    elif "$fifo" in content:
        os.mkfifo(path)
    elif "$size" in content:
        with path.open("wb") as file:
            file.truncate(content["$size"])
    elif "$secret" in content:
        path.write_text(content["$secret"].replace("g hp_", "ghp_"), "utf-8")
    elif "$lines" in content:
        path.write_text(SKILL.format(name=path.parent.name) + "line\n" * content["$lines"], "utf-8")
    else:
        key, text = content["$long"], "Formats " + "words " * (content["n"] // 6) + "x" * (content["n"] % 6)
        text = text[:content["n"]].strip() + "." * (content["n"] - len(text[:content["n"]].strip()))
        fields = {"name": path.parent.name, "description": "Formats SQL files in a folder", key: text}
        path.write_text("---\n" + "".join(f"{k}: {v}\n" for k, v in fields.items()) + "---\nText for the model.\n", "utf-8")
