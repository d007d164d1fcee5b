"""The Agent tool (subagents contract, section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from kernel import Block, Tool, ToolContext, ToolError, ToolResult

if TYPE_CHECKING:
    from kernel_subagents.agents import Agents

MANUAL = """\
Gives a task to an agent with a context of its own. The types there are, and what each is for, stand in a reminder.

- The agent knows nothing of this conversation. Write a prompt that holds all it needs: the goal, what is known, paths, what to
  report and in what form. Say whether it is to change files or only to look.
- Its last message comes back to you and is not shown to the user: tell the user what matters of it.
- Start several agents in one message where their tasks do not depend on each other.
- It works in the background unless run_in_background is false; you are told when it ends. Do not do its task meanwhile, do not
  poll, and never report what you have not been told yet. Use the foreground where you cannot go on without the result.
- Do not use it to read a file whose path you know, or for one or two searches: do that yourself.
- name makes an agent reachable: SendMessage gives a running one something to consider, and a finished one a further task.
- isolation: "worktree" gives it a checkout of its own, so that agents that edit do not get in each other's way."""


def agents_of(context: ToolContext) -> Agents:
    from kernel_subagents.agents import STATE

    found: Agents | None = context.session.root.plugin_state.get(STATE)
    if found is None:
        raise ToolError("unavailable", "Agents cannot be started in this session.")
    return found


class AgentTool(Tool):
    name = "Agent"
    aliases = ("Task",)
    description = "Starts an agent that carries out a task in a context of its own and reports back."
    input_schema = {
        "type": "object",
        "properties": {
            "description": {"type": "string", "description": "The task in 3 to 5 words, for people."},
            "prompt": {"type": "string", "description": "The whole task. The agent sees nothing else of this conversation."},
            "subagent_type": {"type": "string", "description": "Which agent; general-purpose where none is named."},
            "model": {"type": "string", "description": "sonnet, opus, haiku or fable, instead of the agent's own model."},
            "run_in_background": {"type": "boolean", "description": "false waits for the report. The default does not wait."},
            "name": {"type": "string", "description": "A short name under which SendMessage reaches it."},
            "isolation": {"type": "string", "enum": ["worktree"], "description": "Work in a git worktree of its own."},
            "team_name": {"type": "string", "description": "Has no effect."},
            "mode": {"type": "string", "description": "Has no effect."},
        },
        "required": ["description", "prompt"],
        "additionalProperties": False,
    }
    output_schema = {
        "type": "object",
        "properties": {"status": {"enum": ["completed", "async_launched"]}, "agentId": {"type": "string"},
                       "content": {"type": "array", "items": {"type": "object"}}, "prompt": {"type": "string"},
                       "totalToolUseCount": {"type": "number"}, "totalDurationMs": {"type": "number"},
                       "totalTokens": {"type": "number"}, "outputFile": {"type": "string"}},
        "required": ["status"],
    }
    permission = "ask"
    rule_field = "subagent_type"
    max_result_chars = 200_000
    listed_as = ("Task",)
    made_of_steps = True  # a durable run enters it again and gives its steps again

    def prompt(self) -> str:
        return MANUAL

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return True

    def check_permissions(self, input: dict[str, Any], context: ToolContext) -> Literal["allow", "deny", "ask"] | None:
        """Free, but where nobody is asked an allow rule must stand for it (2)."""
        return None if context.state.permission_mode == "dontAsk" else "allow"

    def prepare_input(self, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """The type under its real name, so that rules and hooks see what will run."""
        from kernel_subagents.agents import DEFAULT_TYPE

        given = str(input.get("subagent_type") or "").strip() or DEFAULT_TYPE
        found = agents_of(context).catalogue.get(given)
        return {**input, "subagent_type": found.name if found is not None else given}

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        if not input["prompt"].strip():
            raise ToolError("invalid_arguments", "prompt: must not be blank")
        agents_of(context).definition(context.session, input["subagent_type"])

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        from kernel_subagents.agents import Request

        return await agents_of(context).start(context.session, Request(
            prompt=input["prompt"], agent_type=input["subagent_type"], description=input["description"].strip()[:200],
            model=input.get("model"), background=input.get("run_in_background"), name=(input.get("name") or "").strip() or None,
            isolated=input.get("isolation") == "worktree", tool_use_id=context.call_id))

    def from_structured(self, structured: Any) -> str | list[Block]:
        if isinstance(structured, dict) and isinstance(structured.get("content"), list):
            return [b for b in structured["content"] if isinstance(b, dict)]
        return super().from_structured(structured)
