"""The permission protocol: who decides whether a call may run (permissions contract, sections 4 and 12).

The kernel knows no rule. It asks the registered policy, passes an ``ask`` on to whoever can answer, and refuses
where nobody can. Without a policy every call is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from kernel.tools import Tool

if TYPE_CHECKING:
    from kernel.session import Session

Behavior = Literal["allow", "ask", "deny"]


class PermissionCall(Struct, frozen=True, kw_only=True):
    """One call as the policy sees it. ``input`` is the input that would be executed.

    ``hook``: the merged answer of the ``PreToolUse`` hooks, ``None`` where they were silent;
    ``hook_rewrote``: one of them replaced the input.
    """

    tool: Tool
    input: dict[str, Any]
    cwd: str
    mode: str
    hook: Literal["allow", "ask"] | None = None
    hook_rewrote: bool = False
    agent_id: str | None = None


class Verdict(Struct, frozen=True, kw_only=True):
    """A decision with its reason.

    ``reason_type``: ``rule``, ``mode``, ``hook``, ``classifier``, ``safety``, ``workingDir``, ``subcommands``,
    ``promptTool``, ``asyncAgent`` or ``other``. ``rule`` and ``source`` name the rule that decided. ``message`` is for
    the model. ``suggestions`` are permission updates that a person may choose with an ``ask``. ``undecided``: a denial because
    the classifier gave no answer that can be read; a hook cannot let the model try such a call again.
    """

    behavior: Behavior
    reason_type: str = "other"
    message: str = ""
    rule: str | None = None
    source: str | None = None
    suggestions: list[dict[str, Any]] = field(default_factory=list)
    undecided: bool = False


Asker = Callable[[PermissionCall, Verdict, str], Awaitable[dict[str, Any]]]
"""Asks a person or a program: (call, verdict, tool_use_id) -> ``{"behavior": "allow"|"deny", "updatedInput"?, "message"?,
"interrupt"?, "updatedPermissions"?}``. One that has ``side_by_side = True`` may be called again while it is asking; it holds
``session.asking`` as long as any question is open."""
Decider = Callable[[PermissionCall, str], Awaitable[Verdict]]
"""What a call comes to in the end, people asked: (call, tool_use_id) -> the verdict."""


def checked(verdict: Any) -> Verdict:
    """What a plugin answered, if it is a verdict.

    :raises TypeError: it is none.
    """
    if not isinstance(verdict, Verdict) or verdict.behavior not in ("allow", "ask", "deny"):
        raise TypeError(f"the answer was {verdict!r}, expected a Verdict")
    return verdict


@runtime_checkable
class Policy(Protocol):
    """Decides for one session. Pure: it runs nothing and never touches the network."""

    def decide(self, call: PermissionCall) -> Verdict:
        """The decision before anybody is asked. An exception counts as a denial that names the plugin."""

    def is_visible(self, tool: Tool) -> bool:
        """Whether the model is shown the tool; a bare deny takes it away."""

    def matches(self, rule: str, tool_name: str, input: dict[str, Any]) -> bool:
        """Whether a single rule covers a call: the ``if`` of a hook handler, read as hooks contract section 5 says."""

    def update(self, changes: list[dict[str, Any]]) -> list[str]:
        """Apply permission updates (hooks contract, 13.5); returns what could not be applied, in words."""


class AutoPolicy(Policy, Protocol):
    """What a policy offers beyond that where it knows how to work in the mode ``auto`` (permissions contract, 7.5)."""

    @property
    def auto(self) -> bool:
        """Whether the mode can be used now: somebody answers in a person's stead."""

    async def classify(self, call: PermissionCall) -> Verdict | None:
        """What an ``ask`` comes to; ``None`` where a person must be asked all the same. An exception counts as a denial
        without a verdict."""


def for_agent(policy: Policy, session: Session) -> Policy:
    """The policy for a subagent's context: the conversation's own, unless it can tell contexts apart.

    A policy that can has ``for_agent(session)``: the same rules and lasting answers, with the grants and tools of that context.
    """
    view = getattr(policy, "for_agent", None)
    if view is None:
        return policy
    try:
        made: Policy = view(session)
    except Exception as error:
        session.harness.announce(f"the permission policy cannot serve a subagent, so all its tool calls are refused: "
                                 f"{type(error).__name__}: {error}")
        return NoPolicy()
    return made


class PolicyFactory(Protocol):
    """Registered by ``register_policies`` under ``name``."""

    name: str

    def open(self, session: Session) -> Policy:
        """The policy of one session. Rules that cannot be read are announced by ``session.notice``."""


class NoPolicy:
    """What holds when no permission plugin is loaded: nothing is allowed."""

    _MESSAGE = ("No permission policy is loaded, so no tool call is allowed. "
                "Install or unblock the plugin 'permissions'.")

    def decide(self, call: PermissionCall) -> Verdict:
        return Verdict(behavior="deny", message=self._MESSAGE)

    def is_visible(self, tool: Tool) -> bool:
        return True

    def matches(self, rule: str, tool_name: str, input: dict[str, Any]) -> bool:
        return True  # a filter that cannot be evaluated lets the hook run (hooks contract, 5.1 rule 9)

    def update(self, changes: list[dict[str, Any]]) -> list[str]:
        return [self._MESSAGE]
