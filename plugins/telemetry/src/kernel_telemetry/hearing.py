"""What the stream of messages tells (section 7): the run from its start to its result, and what happens beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import (
    AssistantMessage,
    ConversationReset,
    Output,
    PreCompact,
    ResultMessage,
    SystemMessage,
    UserMessage,
    UserPromptExpansion,
    UserPromptSubmit,
)
from kernel_telemetry import redaction
from kernel_telemetry.asks import TOKENS
from kernel_telemetry.hooks import SOURCES
from kernel_telemetry.spans import Span

if TYPE_CHECKING:
    from kernel_telemetry.watch import Watch

LEAST_USD = 1e-9
"""Differences below it come from adding up."""
INTERNAL = "Internal failure: "
"""How the error of a result begins where the run failed by a fault of ours or of a plugin (``kernel.outcome``)."""
MCP = "mcp"
"""The plugin whose state tells what MCP servers there are, where it is installed."""


class Hearing:
    """What is heard of one context."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._mode = ""
        self._command: UserPromptExpansion | None = None
        self._compaction: tuple[str, Span] | None = None
        self._sizes: dict[str, Any] = {}
        self._servers: dict[str, str] = {}
        self._agents: dict[str, dict[str, Any]] = {}
        self._registered = False

    def hear(self, message: Output) -> None:
        """One message. Those that a subagent forwards are heard in its own context."""
        root = self.watch.session.parent is None
        if isinstance(message, AssistantMessage | UserMessage):
            if not root or message.parent_tool_use_id is None:
                self._conversation(message)
        elif isinstance(message, SystemMessage):
            self._compaction_status(message)
            if root:
                self._system(message)
        elif isinstance(message, ResultMessage) and root:
            self._result(message)
        elif isinstance(message, ConversationReset) and root:
            self._servers.clear()

    def _conversation(self, message: AssistantMessage | UserMessage) -> None:
        content = message.message.get("content")
        for block in content if isinstance(content, list) else ():
            kind = block.get("type")
            if kind == "tool_use":
                self.watch.calls.announced(block)
            elif kind == "tool_result":
                self.watch.calls.shown(block)
                self._look_around(str(block.get("tool_use_id")))
            elif kind == "text" and isinstance(message, AssistantMessage):
                said = self.watch.asks.said.pop(str(message.message.get("id")), None)
                if said is not None:
                    self.watch.asks.told(*said, message.uuid)

    # -- prompts -------------------------------------------------------------------------------------------------------------
    def expanded(self, event: UserPromptExpansion) -> None:
        self._command = event
        if event.expansion_type == "slash_command":
            self.skill(event.command_name, "user-slash", event.command_source)

    def prompted(self, event: UserPromptSubmit) -> None:
        """A prompt was submitted."""
        recorder = self.watch.recorder
        shown = event.prompt if recorder.switches.prompts else "<REDACTED>"
        name, source = self._typed(event.prompt)
        recorder.event("user_prompt", {"prompt_length": len(event.prompt), "prompt": shown, "command_name": name,
                                       "command_source": source})
        if recorder.interaction is not None:
            recorder.interaction.attributes.update({"user_prompt": shown, "user_prompt_length": len(event.prompt)})

    def _typed(self, prompt: str) -> tuple[str | None, str | None]:
        """The command that was typed and where it comes from, as it may be told."""
        expansion, self._command = self._command, None
        details = self.watch.recorder.switches.details
        if expansion is not None:
            source = "mcp" if expansion.expansion_type == "mcp_prompt" else "custom"
            return (expansion.command_name if details else source), source
        word = prompt[1:].split(maxsplit=1)[0] if prompt.startswith("/") and len(prompt) > 1 else ""
        command = self.watch.session.commands.get(word)
        return (word, "builtin") if command is not None and not command.kind else (None, None)

    def skill(self, name: str, trigger: str, source: str | None = None) -> None:
        recorder = self.watch.recorder
        details = recorder.switches.details
        plugin, colon, _ = name.partition(":")
        own = {"plugin.name": plugin if details else "third-party"} if colon else {}
        recorder.event("skill_activated", {
            "skill.name": name if details else "custom_skill", "invocation_trigger": trigger,
            "skill.source": source or ("plugin" if colon else None), **own})

    # -- the session ---------------------------------------------------------------------------------------------------------
    def began(self, source: str) -> None:
        """``SessionStart``: a session begins, or begins anew."""
        recorder, session = self.watch.recorder, self.watch.session
        kind = {"startup": "fresh", "clear": "fresh", "fork": "resume",
                "resume": "continue" if session.options.continue_session else "resume"}.get(source)
        if kind is not None:
            recorder.count("session.count", 1, {"start_type": kind})
        self._mode = self._mode or session.state.permission_mode
        if source == "compact":
            return
        for plugin in session.plugins.ready:
            manifest = plugin.manifest
            if manifest is None or (plugin.module is None and plugin.loaded is not None):
                continue
            name, market = redaction.plugin_name(plugin.id, recorder.switches.official, recorder.switches.details)
            root = plugin.root
            recorder.event("plugin_loaded", {
                "plugin.name": name, "marketplace.name": market, "plugin.version": plugin.version or None,
                "plugin.scope": {"distribution": "environment", "inline": "session"}.get(plugin.source, "user"),
                "enabled_via": plugin.source, "plugin_id_hash": redaction.hashed(plugin.id),
                "has_hooks": manifest.hooks is not None or (root / "hooks" / "hooks.json").exists(),
                "has_mcp": manifest.mcp_servers is not None or (root / ".mcp.json").exists(), "host_owned_mcp": False,
                "skill_path_count": _paths(manifest.skills, root / "skills"),
                "command_path_count": _paths(manifest.commands, root / "commands"),
                "agent_path_count": _paths(manifest.agents, root / "agents"), "safe_mode": False})

    def registered(self, handlers: list[Any]) -> None:
        """Each configured hook, once."""
        if self._registered:
            return
        self._registered = True
        recorder = self.watch.recorder
        for handler in handlers:
            plugin = handler.home.id if handler.home is not None else None
            told: dict[str, Any] = {}
            if plugin is not None:
                name, _ = redaction.plugin_name(plugin, recorder.switches.official, recorder.switches.details)
                told = {"plugin.name": name, "plugin_id_hash": redaction.hashed(plugin)}
            matcher = getattr(handler.matcher, "text", None)
            recorder.event("hook_registered", {
                "hook_event": handler.event, "hook_type": handler.spec.type, "hook_source": SOURCES.get(handler.scope, "merged"),
                "safe_mode": False, "hook_matcher": matcher if recorder.switches.details else None, **told})

    # -- system messages -----------------------------------------------------------------------------------------------------
    def _system(self, message: SystemMessage) -> None:
        data = message.data
        if message.subtype == "init":
            self._begin()
        elif message.subtype == "status" and data.get("permissionMode"):
            self._mode_is(str(data["permissionMode"]), None)
        elif message.subtype == "task_started" and data.get("task_type") == "local_agent":
            self._agents[str(data.get("task_id"))] = data
        elif message.subtype == "task_notification":
            self._agent_ended(self._agents.pop(str(data.get("task_id")), None), data)

    def _begin(self) -> None:
        """A run begins."""
        recorder, session = self.watch.recorder, self.watch.session
        if recorder.interaction is not None:
            return
        self._look_around("")
        recorder.interactions += 1
        recorder.calls.clear()
        recorder.busy.clear()
        recorder.waited = 0
        recorder.interaction = recorder.begin("interaction", recorder.outer, {
            "interaction.sequence": recorder.interactions, "user_prompt": "<REDACTED>"})
        if recorder.traced:
            session.environment["TRACEPARENT"] = recorder.interaction.place.traceparent

    def _mode_is(self, mode: str, trigger: str | None) -> None:
        if self._mode and mode != self._mode:
            self.watch.recorder.event("permission_mode_changed", {"from_mode": self._mode, "to_mode": mode, "trigger": trigger})
        self._mode = mode

    def _look_around(self, call_id: str) -> None:
        """What changes without a message: the mode through a tool, MCP servers."""
        session, recorder = self.watch.session, self.watch.recorder
        if session.parent is not None:
            return
        left = recorder.calls.get(call_id, ("", None))[0] == "ExitPlanMode"
        self._mode_is(session.state.permission_mode, "exit_plan_mode" if left else None)
        for row in session.init_facts.get("mcp_servers") or ():
            name, status = str(row.get("name")), str(row.get("status"))
            if self._servers.get(name) == status or status == "pending":
                continue
            before, self._servers[name] = self._servers.get(name), status
            scope, transport = self.scopes().get(name, (None, None))
            told = {"connected": "connected", "failed": "failed"}.get(status, "disconnected" if before == "connected" else status)
            details = recorder.switches.details
            recorder.event("mcp_server_connection", {
                "status": told, "transport_type": transport, "server_scope": scope, "is_plugin": name.startswith("plugin:"),
                "server_name": name if details else None})

    def scopes(self) -> dict[str, tuple[str | None, str | None]]:
        """Scope and transport of the MCP servers, where the plugin that connects them tells."""
        report = getattr(self.watch.session.root.plugin_state.get(MCP), "report", None)
        if report is None:
            return {}
        return {str(row.get("name")): (row.get("scope"), (row.get("config") or {}).get("type") or "stdio") for row in report()}

    def _agent_ended(self, began: dict[str, Any] | None, data: dict[str, Any]) -> None:
        if began is None:
            return
        recorder, session = self.watch.recorder, self.watch.session
        kind, usage = str(began.get("subagent_type") or ""), data.get("usage") or {}
        builtin = kind in redaction.AGENTS
        plugin = {"plugin.name": kind.partition(":")[0] if recorder.switches.details else "third-party"} if ":" in kind else {}
        recorder.event("subagent_completed", {
            "agent_type": redaction.agent_name(kind, recorder.switches.details), "is_built_in": builtin,
            "agent.source": "built-in" if builtin else "plugin" if plugin else "custom",
            "is_async": bool(began.get("is_backgrounded")), "total_tokens": usage.get("total_tokens"),
            "total_tool_uses": usage.get("tool_uses"), "duration_ms": usage.get("duration_ms"),
            "model": recorder.models.pop(str(data.get("task_id")), session.model_info.id), **plugin})

    # -- compaction ------------------------------------------------------------------------------------------------------------
    def compacting(self, event: PreCompact) -> None:
        self._sizes = {}
        self._compaction = (event.trigger, self.watch.recorder.begin("compaction", self.watch.parent(), {}))

    def compacted(self, trigger: str, error: str) -> None:
        if self._compaction is None:
            return
        span, self._compaction = self._compaction[1], None
        self.watch.recorder.event("compaction", {
            "trigger": trigger, "success": not error, "duration_ms": round(span.ms), "error": error or None,
            "pre_tokens": self._sizes.get("pre_tokens"), "post_tokens": self._sizes.get("post_tokens")})

    def _compaction_status(self, message: SystemMessage) -> None:
        if message.subtype == "compact_boundary":
            self._sizes = message.data.get("compact_metadata") or {}
        elif message.subtype == "status" and "status" in message.data and message.data["status"] is None \
                and "permissionMode" not in message.data and self._compaction is not None:
            self.compacted(self._compaction[0], "no summary")

    # -- the end ---------------------------------------------------------------------------------------------------------------
    def _result(self, message: ResultMessage) -> None:
        recorder = self.watch.recorder
        self._look_around("")
        self.watch.asks.give_up()
        self.watch.asks.said.clear()
        self.watch.calls.cancel()
        try:
            self._unseen(message)
            for error in message.errors if isinstance(message.errors, list) else ():
                if error.startswith(INTERNAL):
                    recorder.event("internal_error", {"error_name": error.removeprefix(INTERNAL).partition(":")[0]})
            if recorder.interaction is not None:
                self._ran(message, recorder.interaction)
        finally:
            recorder.interaction = None

    def _ran(self, message: ResultMessage, span: Span) -> None:
        """The run's own event, span and time."""
        recorder, session = self.watch.recorder, self.watch.session
        took, waited = span.ms, recorder.waited / 1e6
        busy = _union([(max(a, span.start), b) for a, b in recorder.busy]) / 1e6
        recorder.event("kernel.run", {
            "outcome": message.subtype, "terminal_reason": message.terminal_reason, "num_turns": message.num_turns,
            "duration_ms": round(took), "overhead_ms": round(max(took - busy, 0.0), 3)})
        recorder.end(span, {"interaction.duration_ms": round(took)})
        recorder.count("active_time.total", max(took - waited, 0.0) / 1000, {"type": "cli"})
        recorder.count("active_time.total", waited / 1000, {"type": "user"})
        if recorder.traced:
            session.environment.pop("TRACEPARENT", None)

    def _unseen(self, message: ResultMessage) -> None:
        """Requests that no middleware sees (another provider's): what the result counts beyond what was told."""
        recorder = self.watch.recorder
        for model, totals in message.model_usage.items():
            counted = recorder.counted.setdefault(model, {})
            told = {"model": model, "query_source": "auxiliary"}
            for name, (kind, _) in TOKENS.items():
                more = totals[name] - counted.get(name, 0)
                if more > 0:
                    counted[name] = totals[name]
                    recorder.count("token.usage", more, {**told, "type": kind})
            more = totals["costUSD"] - counted.get("costUSD", 0)
            if more > LEAST_USD:
                counted["costUSD"] = totals["costUSD"]
                recorder.count("cost.usage", more, told)


def _paths(declared: Any, folder: Any) -> int:
    if declared is not None:
        return len(declared) if isinstance(declared, list | dict) else 1
    return int(folder.is_dir())


def _union(spans: list[tuple[int, int]]) -> int:
    """The length of what the intervals cover together."""
    total = end = 0
    for a, b in sorted(spans):
        if b > max(a, end):
            total += b - max(a, end)
            end = b
    return total
