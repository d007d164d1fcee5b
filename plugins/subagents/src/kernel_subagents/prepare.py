"""What an agent gets before its first request: prompt, permission mode, hooks, skills (subagents contract, 3 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import KernelError, Session, reminder
from kernel_subagents.definition import Definition

if TYPE_CHECKING:
    from kernel import Block, Child

SOURCES = "command-hooks.sources"
"""Where the plugin command-hooks finds the hooks of a context."""
SKILLS = "skills"
"""Where the plugin skills keeps what it knows: ``await skills.preload(name, session, plugin="")`` gives a skill's whole text."""
SERVERS = "mcp.servers"
"""Where the plugin mcp finds the ``mcpServers`` of an agent's definition."""
_FIXED = frozenset({"bypassPermissions", "acceptEdits", "auto", "plan"})
"""Modes of a parent that hold inside. ``plan`` is among them: nothing that a plan starts may change anything."""
_WIDER = frozenset({"acceptEdits", "bypassPermissions", "auto"})


def system_prompt(root: Session, definition: Definition, remembers: Any) -> str:
    """The body of the file, with the tokens of a plugin's files replaced, and what the agent remembers."""
    text = definition.prompt
    known = {"CLAUDE_PROJECT_DIR": root.project_root}
    if definition.plugin is not None:
        known["CLAUDE_PLUGIN_ROOT"] = str(definition.plugin.root)
        known["CLAUDE_PLUGIN_DATA"] = str(root.settings.config_dir / "plugins" / "data" / definition.plugin.name)
    for name, value in known.items():
        text = text.replace(f"${{{name}}}", value)
    return f"{text}\n\n{remembers.prompt()}".strip() if remembers is not None else text


def mode_of(session: Session, definition: Definition) -> str | None:
    """The mode that the definition asks for, where it may have it; ``None``: the parent's."""
    mode = definition.mode
    if mode is None or session.state.permission_mode in _FIXED:
        return None
    theirs = definition.source in ("project", "added")
    if theirs and mode in _WIDER and not session.settings.trusted:
        session.notice(f"agent {definition.path}, permissionMode: {mode!r} does not count: this workspace has not been trusted")
        return None
    if mode == "auto" and getattr(session.policy, "auto", False) is not True:
        return None
    try:
        return session.harness.checked_mode(mode)
    except KernelError as error:
        session.debug(f"agent {definition.name}, permissionMode: {error}")
        return None


def hooks_for(session: Session, definition: Definition) -> dict[str, Any]:
    """The hooks of the agent's context: those of the context that starts it, as far as they guard, and its own."""
    entries = [_inherited(entry) for entry in session.plugin_state.get(SOURCES, ())]
    own = hook_entry(session, definition)
    if own is not None:
        entries.append({**own, "subagent": True})
    return {SOURCES: entries} if entries else {}


def servers_for(session: Session, definition: Definition) -> dict[str, Any]:
    """The MCP servers of the definition for the plugin mcp."""
    if not definition.servers:
        return {}
    plugin = session.plugins.get("mcp")
    if plugin is None or plugin.state != "ready":
        session.notice(f"agent {definition.name}, mcpServers: the plugin 'mcp' is not there, so none is connected")
        return {}
    return {SERVERS: definition.servers}


def hook_entry(session: Session, definition: Definition) -> dict[str, Any] | None:
    """The hooks of a definition for the plugin command-hooks; ``None`` where it has none."""
    if not definition.hooks:
        return None
    plugin = session.plugins.get("command-hooks")
    if plugin is None or plugin.state != "ready":
        session.notice(f"agent {definition.name}, hooks: the plugin 'command-hooks' is not there, so none of them runs",
                       guard=True)
        return None
    return {"label": f"agent {definition.name}", "hooks": definition.hooks, "project": definition.source in ("project", "added")}


def _inherited(entry: dict[str, Any]) -> dict[str, Any]:
    """The end of the agent above is not the end of this one."""
    if not entry.get("subagent") or not isinstance(entry.get("hooks"), dict):
        return entry
    return {**entry, "hooks": {event: groups for event, groups in entry["hooks"].items() if event != "Stop"}}


async def preload(child: Child, definition: Definition) -> list[Block]:
    """The bodies of the skills that the definition names. One that cannot be had is left out, with a line in the debug log."""
    blocks: list[Block] = []
    if definition.reminder:
        blocks.append(reminder(definition.reminder))
    if not definition.skills:
        return blocks
    skills = child.root.plugin_state.get(SKILLS)
    if skills is None:
        child.notice(f"agent {definition.name}, skills: no plugin brings skills, so none is loaded")
        return blocks
    for name in definition.skills:
        text = await skills.preload(name, child, plugin=definition.plugin.name if definition.plugin is not None else "")
        if text:
            blocks.append({"type": "text", "text": text})
    return blocks
