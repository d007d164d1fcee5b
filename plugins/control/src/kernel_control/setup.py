"""``initialize``: what the program brings along, and what it is told of the session (SDK contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from kernel import CONTRACT, EVENTS
from kernel_control.frames import SDK, Refused, field

if TYPE_CHECKING:
    from kernel_control.talk import Talk

HOOKS = "hooks.callbacks"
"""Where the plugin ``command-hooks`` looks for callbacks, in ``session.root.plugin_state``."""
PATIENCE_S = 45.0
"""The SDK waits 60 s for the answer; a session that takes longer to start is told of as far as it is known."""
ALIASES = ("default", "sonnet", "opus", "haiku")
EFFORTS = ["low", "medium", "high", "xhigh", "max"]


class Setup:
    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._times = 0
        self._hooked = False

    # -- the request -------------------------------------------------------------------------------------------------------
    def apply(self, request: dict[str, Any]) -> None:
        """Put it into force; a second one replaces hooks, and whatever else it names.

        :raises Refused: some field cannot be used; then nothing of it is.
        """
        session = self._talk.session
        hooks = self._hooks(field(request, "hooks", dict, required=False) or {})
        agents = field(request, "agents", dict, required=False)
        skills = field(request, "skills", list, required=False)
        switches = {option: field(request, name, bool, required=False) for name, option in (
            ("excludeDynamicSections", "exclude_dynamic_system_prompt_sections"),
            ("forwardSubagentText", "forward_subagent_text"))}
        if hooks and not self._works("command-hooks"):
            raise Refused("initialize: hooks need the plugin 'command-hooks', which is not ready; none of them would be called")
        if agents and not self._works("subagents"):
            raise Refused("initialize: agents need the plugin 'subagents', which is not ready")
        extra = session.options.extra
        if hooks or self._hooked:
            session.root.plugin_state[HOOKS] = hooks
        self._hooked = bool(hooks)
        if agents:
            extra["agents"] = agents
        if skills is not None:
            extra["skills"] = [name for name in skills if isinstance(name, str)]
        extra.update({option: value for option, value in switches.items() if value is not None})
        self._times += 1

    def _works(self, plugin: str) -> bool:
        found = self._talk.session.plugins.get(plugin)
        return found is not None and found.state == "ready"

    def _hooks(self, given: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Entries for the plugin ``command-hooks``: one for each callback.

        :raises Refused: a matcher that cannot be read: a guard must not get lost.
        """
        found: dict[str, list[dict[str, Any]]] = {}
        for event, matchers in given.items():
            if event not in EVENTS:
                self._talk.session.debug(f"control: there is no event {event[:60]!r}; its callbacks are never called")
                continue
            if not isinstance(matchers, list | None):
                raise Refused(f"initialize: hooks.{event} must be a list")
            for n, matcher in enumerate(matchers or ()):
                found.setdefault(event, []).extend(self._callbacks(f"hooks.{event}[{n}]", matcher))
        return found

    def _callbacks(self, where: str, matcher: Any) -> list[dict[str, Any]]:
        if not isinstance(matcher, dict):
            raise Refused(f"initialize: {where} must be an object")
        pattern, timeout, ids = matcher.get("matcher"), matcher.get("timeout"), matcher.get("hookCallbackIds")
        if not isinstance(pattern, str | None):
            raise Refused(f"initialize: {where}.matcher must be a string or null")
        if timeout is not None and (not isinstance(timeout, int | float) or isinstance(timeout, bool) or timeout <= 0):
            raise Refused(f"initialize: {where}.timeout must be a positive number of seconds")
        if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
            raise Refused(f"initialize: {where}.hookCallbackIds must be a list of strings")
        more: dict[str, Any] = {} if pattern is None else {"matcher": pattern}
        if timeout is not None:
            more["timeout"] = timeout
        return [{"callback": self._callback(id), "label": id, **more} for id in ids]

    def _callback(self, id: str) -> Any:
        async def call(input: dict[str, Any], tool_use_id: str | None) -> dict[str, Any]:
            return await self._talk.request(
                {"subtype": "hook_callback", "callback_id": id, "input": input, "tool_use_id": tool_use_id})
        return call

    # -- the response --------------------------------------------------------------------------------------------------------
    async def answer(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The response, and what stands beside it in the wrapper."""
        again, questions = self._times > 1, self._talk.open_questions()
        with anyio.move_on_after(PATIENCE_S):
            await self._talk.wire.started()
        response = {**told(self._talk), **({"hooks_applied": True} if self._hooked else {})}
        return response, {"pending_permission_requests": questions} if again else {}

    @property
    def repeated(self) -> bool:
        return self._times > 1


def told(talk: Talk) -> dict[str, Any]:
    """What the program is told of the session (3.2), and the versions that this follows."""
    session = talk.session
    style = session.init_facts.get("output_style") or session.settings.get("outputStyle") or "default"
    return {
        "commands": [_command(name, command) for name, command in session.commands.items()
                     if not getattr(command, "hidden", False)],
        "agents": _agents(talk), "output_style": style, "available_output_styles": sorted({"default", str(style)}),
        "models": _models(talk), "account": _account(), "fast_mode_state": "off",
        "contract_version": CONTRACT, "protocol_version": SDK}


def _command(name: str, command: Any) -> dict[str, Any]:
    return {"name": name, "description": str(getattr(command, "description", "") or ""),
            "argumentHint": str(getattr(command, "argument_hint", "") or "")}


def _agents(talk: Talk) -> list[dict[str, Any]]:
    catalogue: Any = getattr(talk.session.plugin_state.get("subagents"), "catalogue", None)
    found = []
    for name in talk.session.init_facts.get("agents", ()):
        definition = getattr(catalogue, "by_name", {}).get(name)
        entry = {"name": name, "description": str(getattr(definition, "description", "") or "")}
        if isinstance(model := getattr(definition, "model", None), str) and model:
            entry["model"] = model
        found.append(entry)
    return found


def _models(talk: Talk) -> list[dict[str, Any]]:
    """The aliases that the provider knows, and the model in use."""
    session = talk.session
    found: list[dict[str, Any]] = []
    for value in dict.fromkeys([*ALIASES, session.model_info.id]):
        try:
            info = session.model_info if value == session.model_info.id else session.provider.resolve(value)
        except Exception as error:
            session.debug(f"control: the model {value!r} is left out: {error}")
            continue
        if info is None:
            continue
        more = {"supportsEffort": True, "supportedEffortLevels": EFFORTS} if info.effort else {}
        found.append({"value": value, "displayName": value.capitalize() if value in ALIASES else value,
                      "description": f"{info.id}, window of {info.context_window:,} tokens", "resolvedModel": info.id, **more})
    return found


def _account() -> dict[str, str]:
    import os

    return {"apiKeySource": "ANTHROPIC_API_KEY" if os.environ.get("ANTHROPIC_API_KEY") else "none"}
