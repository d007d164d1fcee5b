"""``--permission-prompt-tool stdio``: the program answers permission questions (SDK contract, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from kernel import Notification, env_switch
from kernel_control.frames import Gone, NoAnswer

if TYPE_CHECKING:
    from kernel import PermissionCall, Verdict
    from kernel_control.talk import Talk

DESTINATIONS = ("userSettings", "projectSettings", "localSettings", "session")
WAITS_S = 6.0
"""A question that waits longer is told to ``Notification`` hooks (hooks contract, 18.21)."""
NO_NOTIFICATION = "CLAUDE_CODE_DISABLE_PERMISSION_PROMPT_NOTIFY_HOOKS"
UNREADABLE = "The answer to the permission question cannot be read"
_LISTS = {"addRules": "rules", "replaceRules": "rules", "removeRules": "rules", "addDirectories": "directories",
          "removeDirectories": "directories"}


class Asking:
    """The session's asker. A program takes several questions at once and answers them in any order."""

    side_by_side = True

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._open = 0
        self._none_open = anyio.Event()

    async def __call__(self, call: PermissionCall, verdict: Verdict, tool_use_id: str) -> dict[str, Any]:
        payload = {"subtype": "can_use_tool", "tool_name": call.tool.name, "input": call.input, "tool_use_id": tool_use_id,
                   "permission_suggestions": suggestions(verdict.suggestions), "blocked_path": None,
                   "display_name": call.tool.name}
        if verdict.message:
            payload["decision_reason"] = verdict.message
        if call.agent_id:
            payload["agent_id"] = call.agent_id
        self._begin()
        try:
            return await self._ask(payload, call.tool.name)
        finally:
            self._open -= 1
            if not self._open:
                self._none_open.set()

    def _begin(self) -> None:
        """``session.asking`` is held while any question is open: others that ask wait, and who waits for one is not idle."""
        self._open += 1
        if self._open == 1:
            self._none_open = anyio.Event()
            self._talk.wire.spawn(self._hold, self._none_open)

    async def _hold(self, none_open: anyio.Event) -> None:
        async with self._talk.session.asking:
            await none_open.wait()

    async def _ask(self, payload: dict[str, Any], tool: str) -> dict[str, Any]:
        was_open = not self._talk.closed
        answered = anyio.CancelScope()
        if was_open and not env_switch(NO_NOTIFICATION):
            self._talk.wire.spawn(self._notify, tool, answered)
        try:
            return read(await self._talk.request(payload))
        except Gone as error:  # a question that was open ends the turn; a later one is only refused
            return {"behavior": "deny", "message": f"The question was cancelled: {error}.", "interrupt": was_open}
        except NoAnswer as error:
            return {"behavior": "deny", "message": str(error)}
        finally:
            answered.cancel()

    async def _notify(self, tool: str, answered: anyio.CancelScope) -> None:
        """Somebody may have to be fetched: tell hooks that a question waits, once."""
        session = self._talk.session
        with answered:
            await session.clock.sleep(WAITS_S)
        if not answered.cancel_called:
            await session.fire(session.make(
                Notification, message=f"A permission is needed to use {tool}", notification_type="permission_prompt"))


def suggestions(given: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Only such as every reader takes: one ill-formed update makes the SDK answer with an error."""
    return [update for update in given if _well_formed(update)] or None


def _well_formed(update: Any) -> bool:
    if not isinstance(update, dict) or not isinstance(update.get("type"), str):
        return False
    if update["type"] == "setMode":
        return isinstance(update.get("mode"), str)
    kind = _LISTS.get(update["type"], "")
    entries = update.get(kind)
    if not isinstance(entries, list):
        return False
    if kind == "directories":
        return all(isinstance(entry, str) for entry in entries)
    return all(isinstance(entry, dict) and isinstance(entry.get("toolName"), str) for entry in entries)


def read(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer in the form that the kernel takes; what fits neither form is a denial."""
    behavior = answer.get("behavior")
    if behavior == "allow":
        given, updates = answer.get("updatedInput"), answer.get("updatedPermissions")
        if given is not None and not isinstance(given, dict):
            return {"behavior": "deny", "message": f"{UNREADABLE}: updatedInput is no object."}
        read: dict[str, Any] = {"behavior": "allow"}
        if given is not None:
            read["updatedInput"] = given
        if isinstance(updates, list):
            read["updatedPermissions"] = [_placed(u) for u in updates]
        return read
    if behavior == "deny":
        return {"behavior": "deny", "message": str(answer.get("message") or ""), "interrupt": answer.get("interrupt") is True}
    return {"behavior": "deny", "message": f"{UNREADABLE}: behavior is neither allow nor deny."}


def _placed(update: Any) -> Any:
    """A destination that is missing or unknown means this session."""
    if isinstance(update, dict) and update.get("destination") not in DESTINATIONS:
        return {**update, "destination": "session"}
    return update
