"""What a session asks a person: permissions, plans, questions of the model, forms of servers, and whether servers are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from kernel import KernelError, Notification
from kernel_terminal import questions, rows
from kernel_terminal.brought import server
from kernel_terminal.lines import Line, cut, words
from kernel_terminal.questions import Choice, Question
from kernel_terminal.safe import exact_line, one_line

if TYPE_CHECKING:
    from kernel import PermissionCall, Session, Verdict
    from kernel_terminal.screen import Screen
    from kernel_terminal.view import View

WAITS_S = 6.0
"""A question that waits longer is told to ``Notification`` hooks (hooks contract, 18.21)."""
PERSON, SERVERS = "mcp.person", "mcp"
"""Where the plugin ``mcp`` looks for who answers a server, and where it keeps its connections."""


class Asking:
    def __init__(self, session: Session, screen: Screen, view: View) -> None:
        self.session = session
        self.screen = screen
        self.view = view
        session.asker = self.ask
        session.plugin_state[PERSON] = self.elicit

    def _show(self, lines: list[Line]) -> None:
        self.screen.show(lines)

    async def ask(self, call: PermissionCall, verdict: Verdict, call_id: str) -> dict[str, Any]:
        """The session's asker: a permission, a plan, questions of the model."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._notify, call.tool.name)
            answer = await self._answer(call, verdict)
            self.view.answered(call_id)
            tasks.cancel_scope.cancel()
        return answer

    async def _answer(self, call: PermissionCall, verdict: Verdict) -> dict[str, Any]:
        if call.tool.name == "AskUserQuestion":
            return await self._ask_of_model(dict(call.input))
        if call.tool.name == "ExitPlanMode":
            given = await self.screen.ask(questions.plan(dict(call.input), self.view.columns()))
            answer = questions.plan_answer(given)
        else:
            agent = call.agent_id or ""
            given = await self.screen.ask(questions.permission(call, verdict, agent))
            if given.value == questions.SHOW:
                given = await self.screen.ask(questions.permission(call, verdict, agent, whole=True))
            answer = questions.permission_answer(given)
        label = given.chosen[0].label if given.chosen else "No, and stop"
        told = f"{label}{f': {one_line(given.text)}' if given.text.strip() else ''}"
        name, style = rows.label(call.tool.name), "ok" if answer["behavior"] == "allow" else "warn"
        self._show([words(f"Answer: {told}")] if self.screen.plain else [
            [(style, f"  {name}: "), ("dim", cut(told, max(self.view.columns() - len(name) - 5, 20)))]])
        return answer

    async def _ask_of_model(self, input: dict[str, Any]) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        asked = [q for q in input.get("questions") or () if isinstance(q, dict)]
        for number, question in enumerate(asked, 1):
            given = await self.screen.ask(questions.of_model(question, number, len(asked)))
            answer = questions.model_answer(given)
            if answer is None:
                return {"behavior": "deny", "message": "The person did not answer the questions.", "interrupt": not given.chosen}
            answers[str(question.get("question"))] = answer
            told = answer if isinstance(answer, str) else ", ".join(answer)
            self._show([words(f"Answer: {one_line(told)}")] if self.screen.plain else [
                [("dim", f"  {cut(one_line(question.get('question', '')), 60)} "), ("", one_line(told))]])
        return {"behavior": "allow", "updatedInput": {**input, "answers": answers}}

    async def _notify(self, tool: str) -> None:
        """Somebody may have to be fetched."""
        await anyio.sleep(WAITS_S)
        with anyio.CancelScope(shield=True):
            await self.session.fire(self.session.make(
                Notification, message=f"A permission is needed to use {tool}", notification_type="permission_prompt"))

    async def elicit(self, server: str, asked: dict[str, Any]) -> dict[str, Any]:
        """An MCP server asks the person for a form, or to open an address."""
        given = await self.screen.ask(questions.consent(server, asked))
        if given.value != "accept" or isinstance(asked.get("url"), str):
            return {"action": given.value or "cancel"}
        schema = asked.get("requestedSchema")
        needed = schema.get("required") if isinstance(schema, dict) else None
        content: dict[str, Any] = {}
        for name, field in questions.fields_of(schema).items():
            required = isinstance(needed, list) and name in needed
            while True:
                given = await self.screen.ask(questions.of_field(name, field, required))
                if not given.chosen and not given.text.strip():
                    if required:
                        return {"action": "cancel"}
                    break
                try:
                    content[name] = questions.field_value(field, given)
                    break
                except ValueError:
                    self._show(self.view.note(f"That is no {one_line(field.get('type'))}."))
        return {"action": "accept", "content": content}

    async def servers(self) -> None:
        """Servers that the project's own file names are asked about one by one; the answers are kept (MCP contract, 1.3)."""
        bridge: Any = self.session.plugin_state.get(SERVERS)
        for name in bridge.undecided() if hasattr(bridge, "undecided") else ():
            title = f"The MCP server {exact_line(name)} stands in this folder's .mcp.json. Use it?"
            body = [words(f"  {exact_line(server(bridge.off[name][0].raw))}")]
            given = await self.screen.ask(Question(title, [
                Choice("Yes", True, detail="remembered in .claude/settings.local.json"),
                Choice("No", False, detail="remembered as well"), Choice("Not now", None)], body, kind="Server"))
            if given.value is not None:
                try:
                    await bridge.decide(name, given.value)
                except (KernelError, KeyError, OSError, ConnectionError) as error:
                    self._show(self.view.announce(f"the MCP server {one_line(name, 80)}: {error}"))
