"""From a file to the text that the model gets: variables, arguments, commands, mentioned files (skills contract, section 6)."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kernel import Block, KernelError, PermissionCall, Plugin, Session, ToolContext, ToolError, inert, reminder, text_of
from kernel_skills.catalogue import Skill, read
from kernel_skills.text import Arguments, Piece, only_variables, take_apart

if TYPE_CHECKING:
    from kernel import Tool, ToolResult

DISABLED = "[shell command execution disabled by policy]"
MAX_MENTIONS = 20
_MENTION = re.compile(r"(?<![\w@`/.])@(?:\"([^\"\n]+)\"|([^\s`\"'<>|@,;()\[\]{}]+))")


class SkillError(KernelError):
    """A skill cannot be used now; the text says why, for a person and for the model."""


class Rendered(Struct):
    """``text`` is what the model gets; ``attached`` are blocks of files that it mentions."""

    text: str
    attached: list[Block] = field(default_factory=list)


def variables(skill: Skill, session: Session) -> dict[str, str]:
    """The tokens ``${...}`` that count in this skill, without those of ``user_config``."""
    found = {"CLAUDE_SKILL_DIR": skill.directory, "CLAUDE_PROJECT_DIR": session.project_root,
             "CLAUDE_SESSION_ID": session.id, "CLAUDE_EFFORT": session.effort or ""}
    if skill.plugin is not None:
        found["CLAUDE_PLUGIN_ROOT"] = os.path.realpath(skill.plugin.root)
        found["CLAUDE_PLUGIN_DATA"] = data_dir(skill.plugin, session)
    return found


def data_dir(plugin: Plugin, session: Session) -> str:
    """Where a plugin keeps what survives its updates (plugins contract, section 5)."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", plugin.id)
    return str(session.settings.config_dir / "plugins" / "data" / name)


def options(plugin: Plugin, session: Session) -> dict[str, str]:
    """``user_config.KEY`` tokens of a plugin; secrets are none, and project files do not count (plugins contract, 4.8)."""
    found: dict[str, str] = {}
    declared = (plugin.manifest.user_config if plugin.manifest else None) or {}
    given: dict[str, Any] = {}
    for layer, configs in reversed(session.settings.by_layer("pluginConfigs")):
        entry = configs.get(plugin.id) or configs.get(plugin.name) if isinstance(configs, dict) else None
        if layer.scope not in ("project", "local") and isinstance(entry, dict) and isinstance(entry.get("options"), dict):
            given |= entry["options"]
    for key, option in declared.items():
        value = given.get(key, option.get("default") if isinstance(option, dict) else None)
        if isinstance(option, dict) and not option.get("sensitive") and isinstance(value, str | int | float | list):
            words = value if isinstance(value, list) else [value]
            found[f"user_config.{key}"] = " ".join(str(w).lower() if isinstance(w, bool) else str(w) for w in words)
    return found


def rules(skill: Skill, session: Session, listed: list[str]) -> tuple[str, ...]:
    """Rules of the frontmatter with paths in place."""
    known = variables(skill, session)
    return tuple(only_variables(rule, known) for rule in listed)


async def render(skill: Skill, args: str, session: Session) -> Rendered:
    """The text for the model. Commands in it run now, each only where it is allowed without a question.

    :raises SkillError: the file cannot be read, a command is not allowed or failed.
    """
    front = read(skill.component, body=True)
    if not front.readable:
        raise SkillError(f"{skill.path}: {front.problem}")
    known = variables(skill, session)
    texts = known if skill.plugin is None else known | options(skill.plugin, session)
    arguments = Arguments(args, skill.arguments)
    pieces = take_apart(front.body)
    if any("CLAUDE_PLUGIN_DATA}" in piece.text for piece in pieces) and skill.plugin is not None:
        os.makedirs(known["CLAUDE_PLUGIN_DATA"], mode=0o700, exist_ok=True)
    for piece in pieces:
        if piece.command and "${user_config." in piece.text:
            raise SkillError(f"{skill.path}: a command must not hold ${{user_config.*}}: its value would reach a shell")
        piece.text = arguments.put_into(piece.text, known if piece.command else texts)
    if args.strip() and not arguments.used:
        pieces.append(Piece(f"\n\nARGUMENTS: {args}"))
    attached = await attach("\n".join(p.text for p in pieces if not p.command), session)
    text = "".join([await run(p.text, skill, session) if p.command else p.text for p in pieces])
    return Rendered(text.strip(), attached)


# -- commands --------------------------------------------------------------------------------------------------------------
async def run(command: str, skill: Skill, session: Session) -> str:
    """What a command of the text prints. It meets the same rules as the model's own, and is never asked about.

    :raises SkillError: it is not allowed, cannot run, or fails.
    """
    if session.settings.get("disableSkillShellExecution") is True and skill.component.scope != "managed":
        return DISABLED
    name = "PowerShell" if skill.shell == "powershell" else "Bash"
    tool = session.toolbox.by_name.get(name)
    if tool is None:
        raise SkillError(f"{skill.path} runs the command {command[:200]!r}, but there is no tool {name}")
    result = await call(tool, {"command": command}, session, f"{skill.path}: the command {command[:200]!r}")
    if result.failed:
        said = result.content if isinstance(result.content, str) else text_of(result.content)
        raise SkillError(f"{skill.path}: the command {command[:200]!r} failed: {said[:2_000]}")
    output = result.structured if isinstance(result.structured, dict) else {}
    if output.get("backgroundTaskId"):
        raise SkillError(f"{skill.path}: the command {command[:200]!r} did not end in time")
    if isinstance(output.get("stdout"), str) and not output.get("persistedOutputPath") and not output.get("isImage"):
        return str(output["stdout"]).rstrip("\n")
    return result.content if isinstance(result.content, str) else text_of(result.content)


async def call(tool: Tool, input: dict[str, Any], session: Session, what: str) -> ToolResult:
    """Run a tool for a skill's text.

    :raises SkillError: the policy does not allow it outright.
    """
    context = ToolContext(session, f"skill-{session.clock.new_id()}", tool.name)
    try:
        tool.validate_input(input, context)
        verdict = session.policy.decide(PermissionCall(tool=tool, input=input, cwd=session.state.cwd, agent_id=session.agent_id,
                                                       mode=session.state.permission_mode))
    except ToolError as error:
        raise SkillError(f"{what} cannot run: {error}") from None
    if verdict.behavior != "allow":
        why = verdict.message or "no rule allows it"
        raise SkillError(f"{what} is not allowed ({why}). A rule can allow it: allowed-tools: {tool.name}(...)")
    try:
        return await session.run_tool(tool, input, context)
    except ToolError as error:
        raise SkillError(f"{what} failed: {error}") from None


# -- mentioned files -------------------------------------------------------------------------------------------------------
async def attach(text: str, session: Session) -> list[Block]:
    """Files mentioned as ``@path`` that are there and may be read, each as the Read tool shows it."""
    tool = session.toolbox.by_name.get("Read")
    found: list[Block] = []
    if tool is None or "@" not in text:
        return found
    mentioned = dict.fromkeys(quoted or plain.rstrip(".:!?") for quoted, plain in _MENTION.findall(text))
    for given in list(mentioned)[:MAX_MENTIONS]:
        path = os.path.normpath(os.path.join(session.state.cwd, os.path.expanduser(given)))
        try:
            if not os.path.isfile(path):
                continue
            result = await call(tool, {"file_path": path}, session, f"reading {path}")
        except (SkillError, ValueError, OSError) as error:
            session.debug(f"skills: @{given} is not attached: {error}")
            continue
        if result.failed:
            continue
        if isinstance(result.content, str):
            found.append(reminder(inert(f"The file {path}, which is mentioned as @{given}:\n{result.content}")))
        else:
            found += [reminder(inert(f"The file {path}, which is mentioned as @{given}:")), *result.content]
    return found
