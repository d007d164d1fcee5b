"""What a server asks of us: roots, a form or an address for the person, a model's answer; and what it tells us.

Elicitation: hooks first, then whoever a front end named, then a second hook over the answer; with nobody there the answer is
``cancel`` (MCP contract, section 4; hooks contract, 18.30 and 18.31).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kernel import Elicitation, ElicitationResult
from kernel_mcp.schemas import clean_text

if TYPE_CHECKING:
    from kernel_mcp.host import Host
    from kernel_mcp.link import Link

_SECRET = re.compile(r"password|passwd|passphrase|secret|api[ _-]?key|access[ _-]?token|private[ _-]?key|credential",
                     re.IGNORECASE)
ACTIONS = ("accept", "decline", "cancel")


class Asked:
    """The package's callbacks for one connection."""

    def __init__(self, host: Host, link: Link) -> None:
        self.host = host
        self.link = link

    @property
    def may_sample(self) -> bool:
        """Sampling is off unless a person's settings switch it on; then each request is asked."""
        return self.host.session.settings.own("kernel.mcp.sampling") is True

    async def roots(self, context: Any) -> Any:
        from mcp_types import ListRootsResult, Root

        return ListRootsResult(roots=[Root.model_validate({"uri": uri, "name": name}) for uri, name in self.host.roots()])

    async def log(self, params: Any) -> None:
        self.host.log(self.link, f"{params.level}: {str(params.data)[:1000]}")

    async def notice(self, message: Any) -> None:
        if isinstance(message, Exception):
            self.host.log(self.link, f"{type(message).__name__}: {message}")

    async def sample(self, context: Any, params: Any) -> Any:
        from kernel_mcp.sampling import sample

        return await sample(self.host, self.link, params)

    # -- elicitation -----------------------------------------------------------------------------------------------------
    async def elicit(self, context: Any, params: Any) -> Any:
        from mcp_types import ElicitResult

        action, content = await self._answer(params.model_dump(by_alias=True, mode="json", exclude_none=True))
        if action == "accept" and content is not None:
            return ElicitResult(action=action, content=content)
        return ElicitResult(action=action)

    async def _answer(self, asked: dict[str, Any]) -> tuple[Any, dict[str, Any] | None]:
        session = self.host.session
        form = asked.get("mode", "form") == "form"
        schema = asked.get("requestedSchema") if form else None
        if form and asks_for_secret(asked.get("message", ""), schema):
            session.notice(f"The MCP server {self.link.server.name!r} asked for a secret by a form; that was declined. A secret "
                           "belongs into its configuration, or into a page that it opens.")
            return "decline", None
        merged = await session.fire(session.make(
            Elicitation, mcp_server_name=self.link.server.name, message=clean_text(str(asked.get("message", ""))),
            mode="form" if form else "url", url=asked.get("url"), elicitation_id=asked.get("elicitationId"),
            requested_schema=schema))
        action, content = _hook_says(merged)
        if action is None:
            action, content = await self._person(asked)
            merged = await session.fire(session.make(
                ElicitationResult, mcp_server_name=self.link.server.name, action=action, mode="form" if form else "url",
                elicitation_id=asked.get("elicitationId"), content=content))
            over, new = _hook_says(merged)
            if over is not None:
                action, content = over, new if new is not None else content
        if action == "accept" and form and (wrong := misfit(schema, content)):
            self.host.log(self.link, f"the answer to its form does not fit: {wrong}")
            return "cancel", None
        return action, content if action == "accept" and form else None

    async def _person(self, asked: dict[str, Any]) -> tuple[Any, dict[str, Any] | None]:
        from kernel_mcp.host import PERSON

        person = self.host.session.plugin_state.get(PERSON)
        if person is None:
            return "cancel", None
        self.host.waiting_for_person += 1
        try:
            answer = await person(self.link.server.name, asked)
        except Exception as error:
            self.host.session.notice(f"the question of the MCP server {self.link.server.name!r} failed: "
                                     f"{type(error).__name__}: {error}")
            return "cancel", None
        finally:
            self.host.waiting_for_person -= 1
        action = answer.get("action") if isinstance(answer, dict) else None
        content = answer.get("content") if isinstance(answer, dict) else None
        return (action if action in ACTIONS else "cancel"), content if isinstance(content, dict) else None


def _hook_says(merged: Any) -> tuple[Any, dict[str, Any] | None]:
    """The answer of hooks; one that blocks or fails declines."""
    if merged.blocked or merged.stopped:
        return "decline", None
    action, content = merged.last.get("action"), merged.last.get("content")
    return (action if action in ACTIONS else None), content if isinstance(content, dict) else None


def asks_for_secret(message: str, schema: Any) -> bool:
    """Whether a form has a field for something that must not go through a form."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, field in properties.items() if isinstance(properties, dict) else ():
        texts = [name, *(str(field.get(k, "")) for k in ("title", "format") if isinstance(field, dict))]
        if any(_SECRET.search(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)) for text in texts):
            return True
    return False


def misfit(schema: Any, content: Any) -> str:
    """Why the values do not fit the form; empty where they do."""
    from kernel_mcp.schemas import mismatch

    return mismatch(schema, content if content is not None else {})


def defaults_of(schema: Any) -> dict[str, Any]:
    """The values that a form proposes."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    fields = properties.items() if isinstance(properties, dict) else ()
    return {name: field["default"] for name, field in fields if isinstance(field, dict) and "default" in field}
