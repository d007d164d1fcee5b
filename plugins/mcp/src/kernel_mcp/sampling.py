"""A server asks for a model's answer: only where a person's settings allow it, and only after a yes for each request.

The question goes the way of every tool: hooks, rules and modes under the name ``mcp__<server>__sampling``, then whoever can be
asked. The answer comes from the session's own model, without tools and without the conversation (MCP contract, section 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import History, ModelError, ModelRequest, PermissionCall, Tool, side_request, text_block
from kernel_mcp.names import full_name

if TYPE_CHECKING:
    from kernel import Block
    from kernel_mcp.host import Host
    from kernel_mcp.link import Link

MAX_TOKENS = 8_000
MAX_PER_SESSION = 50
COUNT = "mcp.sampling"


class Sampling(Tool):
    """The question as a tool call, for rules, modes and whoever is asked. Never offered to the model, never called."""

    description = "An MCP server asks for an answer of the session's model."
    input_schema = {"type": "object"}
    permission = "ask"

    def __init__(self, name: str) -> None:
        setattr(self, "name", name)  # noqa: B010  # declared for classes


async def sample(host: Host, link: Link, params: Any) -> Any:
    from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

    session = host.session
    used = session.plugin_state.get(COUNT, 0)
    if used >= MAX_PER_SESSION:
        return ErrorData(code=INVALID_REQUEST, message=f"no more than {MAX_PER_SESSION} requests for a model in one session")
    question = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    if refused := await _refused(host, link, question):
        return ErrorData(code=INVALID_REQUEST, message=refused)
    session.plugin_state[COUNT] = used + 1
    request = ModelRequest(model=session.model_info.id, max_tokens=max(1, min(int(params.max_tokens), MAX_TOKENS)), tools=[],
                           system=[text_block(params.system_prompt)] if params.system_prompt else [],
                           history=History([(m["role"], _blocks(m["content"])) for m in question["messages"]]))
    try:
        response = await side_request(session, request, session.model_info)
    except ModelError as error:
        return ErrorData(code=INVALID_REQUEST, message=f"the model did not answer: {error.message}")
    text = "\n".join(str(b.get("text", "")) for b in response.blocks if b.get("type") == "text")
    reason = {"end_turn": "endTurn", "max_tokens": "maxTokens", "stop_sequence": "stopSequence"}.get(response.stop_reason or "")
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text=text), model=response.model,
                               stop_reason=reason)


async def _refused(host: Host, link: Link, question: dict[str, Any]) -> str:
    """Why there will be no answer; empty where a rule or a person allows it."""
    session = host.session
    call = PermissionCall(tool=Sampling(full_name(link.server.name, "sampling")), input=question, cwd=session.state.cwd,
                          mode=session.state.permission_mode)
    verdict = session.policy.decide(call)
    if verdict.behavior == "allow":
        return ""
    if verdict.behavior == "deny" or session.state.permission_mode == "dontAsk" or session.asker is None:
        return f"a model's answer was not permitted: {verdict.message or 'nobody can be asked'}"
    host.waiting_for_person += 1
    try:
        async with session.asking:
            answer = await session.asker(call, verdict, session.clock.new_id())
    except Exception as error:
        return f"the question failed: {type(error).__name__}"
    finally:
        host.waiting_for_person -= 1
    return "" if isinstance(answer, dict) and answer.get("behavior") == "allow" else "a person refused it"


def _blocks(content: Any) -> list[Block]:
    """The text of a message; other kinds are named, not passed on."""
    parts = content if isinstance(content, list) else [content]
    return [text_block(str(p["text"]) if p.get("type") == "text" else f"[{p.get('type')}]") for p in parts]
