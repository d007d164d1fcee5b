"""What an agent gets before its first request: prompt, permission mode, hooks, skills (subagents contract, 3 and 5)."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from kernel import KernelError, Session, reminder
from kernel_subagents.definition import Definition

if TYPE_CHECKING:
    from kernel import Block, Child, Plugin

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
    """The body of the file, with its tokens replaced (plugins contract, section 5), and what the agent remembers."""
    known = {"CLAUDE_PROJECT_DIR": root.project_root}
    if definition.plugin is not None:
        known |= _of_plugin(root, definition.plugin)
    text = _TOKEN.sub(lambda match: known.get(match[1], match[0]), definition.prompt)
    return f"{text}\n\n{remembers.prompt()}".strip() if remembers is not None else text


_TOKEN = re.compile(r"\$\{(CLAUDE_[A-Z_]+|user_config\.[A-Za-z_]\w*)\}")


def _of_plugin(root: Session, plugin: Plugin) -> dict[str, str]:
    """The plugin's folders, and its options but for secrets; files of the project do not set those (4.8)."""
    data = root.settings.config_dir / "plugins" / "data" / re.sub(r"[^A-Za-z0-9_-]", "-", plugin.id)
    known = {"CLAUDE_PLUGIN_ROOT": os.path.realpath(plugin.root), "CLAUDE_PLUGIN_DATA": str(data)}
    given: dict[str, Any] = {}
    for layer, configs in reversed(root.settings.by_layer("pluginConfigs")):
        entry = (configs.get(plugin.id) or configs.get(plugin.name)) if isinstance(configs, dict) else None
        chosen = entry.get("options") if isinstance(entry, dict) and layer.scope not in ("project", "local") else None
        given |= chosen if isinstance(chosen, dict) else {}
    for key, option in ((plugin.manifest.user_config if plugin.manifest else None) or {}).items():
        value = given.get(key, option.get("default")) if isinstance(option, dict) and not option.get("sensitive") else None
        words = value if isinstance(value, list) else [value]
        if value is not None and all(isinstance(word, str | int | float) for word in words):
            known[f"user_config.{key}"] = " ".join(str(w).lower() if isinstance(w, bool) else str(w) for w in words)
    return known


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
    """The MCP servers of the definition for the plugin mcp: what it names, and its own where its file may bring them (10.4)."""
    servers = definition.servers
    own = [entry for entry in servers if isinstance(entry, dict)]
    if own and definition.source in ("project", "added") and not session.settings.trusted:
        session.notice(f"agent {definition.name}, mcpServers: its own servers are not started: this workspace is not trusted")
        servers = [entry for entry in servers if entry not in own]
    elif own and definition.source != "flag" and session.options.extra.get("strict_mcp_config"):
        session.debug(f"agent {definition.name}, mcpServers: its own servers are not started: --strict-mcp-config")
        servers = [entry for entry in servers if entry not in own]
    if not servers:
        return {}
    plugin = session.plugins.get("mcp")
    if plugin is None or plugin.state != "ready":
        session.notice(f"agent {definition.name}, mcpServers: the plugin 'mcp' is not there, so none is connected")
        return {}
    return {SERVERS: servers}


def hook_entry(session: Session, definition: Definition) -> dict[str, Any] | None:
    """The hooks of a definition for the plugin command-hooks; ``None`` where it has none."""
    if not definition.hooks:
        return None
    plugin = session.plugins.get("command-hooks")
    if plugin is None or plugin.state != "ready":
        session.notice(f"agent {definition.name}, hooks: the plugin 'command-hooks' is not there, so none of them runs",
                       guard=True)
        return None
    theirs = definition.source in ("project", "added")
    if theirs and not session.settings.trusted:
        session.debug(f"agent {definition.name}: its hooks do not run before {session.project_root} itself was trusted, in an "
                      "interactive session that is started there")
        return None
    return {"label": f"agent {definition.name}", "hooks": definition.hooks, "project": theirs}


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
