"""The tool protocol: what a tool is, what a call receives, what it gives back (tools contract, section 2).

A tool is an object with a life cycle, not a function. Derive from ``Tool``; the defaults are the safe ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct

from kernel.errors import ToolError
from kernel.messages import Block

if TYPE_CHECKING:
    from kernel.session import Session

Status = Literal["success", "partial", "empty", "retryable_error", "fatal_error", "blocked", "cancelled"]
FAILED: frozenset[str] = frozenset({"retryable_error", "fatal_error", "blocked", "cancelled"})


class State(Struct, frozen=True):
    """What a context modifier may change (tools contract, 2.1). Replaced as a whole, never edited.

    ``grants`` are allow rules for the rest of this turn, for example those of a skill.
    """

    cwd: str
    model: str
    permission_mode: str
    grants: tuple[str, ...] = ()


class ToolResult(Struct, frozen=True, kw_only=True):
    """The unified result of one call (loop contract, section 11).

    ``content`` is what the model sees; ``structured`` is the tool's output object in its documented camel-case shape,
    which hooks get as ``tool_response`` and clients as ``tool_use_result``. ``context_modifier`` is applied after the
    call (after the whole group when calls ran side by side); ``new_messages`` are blocks that follow the batch's
    results. ``error_code`` is set if and only if the call failed.

    A tool fills ``content`` and what else it knows; the batch fills ``call_id``, ``tool_name`` and ``duration_ms``.
    """

    content: str | list[Block]
    status: Status = "success"
    structured: Any = None
    error_code: str | None = None
    retryable: bool = False
    truncated: bool = False
    evidence_ids: tuple[str, ...] = ()
    context_modifier: Callable[[State], State] | None = None
    new_messages: tuple[Block, ...] = ()
    spill_path: str | None = None
    call_id: str = ""
    tool_name: str = ""
    duration_ms: int = 0

    @property
    def failed(self) -> bool:
        return self.status in FAILED

    def block(self) -> Block:
        """The ``tool_result`` block; empty content becomes a short text, since empty results provoke empty answers."""
        block: Block = {"type": "tool_result", "tool_use_id": self.call_id, "content": self.content or "(no output)"}
        if self.failed:
            block["is_error"] = True
        return block


class ReadState(Struct, kw_only=True):
    """What is known of a file that the model has seen (tools contract, 4.3). Sizes in bytes, lines from 1."""

    mtime_ns: int
    size: int
    digest: str
    start: int | None = None
    end: int | None = None
    partial: bool = False


class ToolContext:
    """What every call receives. One per call; the session behind it is shared.

    ``session`` gives messages, settings, plugins and the registries. ``state`` is the session's state when the call
    began. ``environment``: variables for processes of this call alone, on top of the session's. Cancellation reaches a tool as
    the usual cancellation of its task: it must end its processes and let it pass.
    """

    __slots__ = ("_progress", "call_id", "environment", "session", "state", "tool_name")

    def __init__(self, session: Session, call_id: str, tool_name: str,
                 progress: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.session = session
        self.state = session.state
        self.call_id = call_id
        self.tool_name = tool_name
        self.environment: dict[str, str] = {}
        self._progress = progress

    @property
    def cwd(self) -> str:
        return self.state.cwd

    @property
    def project_root(self) -> str:
        return self.session.project_root

    @property
    def read_files(self) -> dict[str, ReadState]:
        """Path -> what the model has seen of it; one map per agent context."""
        return self.session.read_files

    def progress(self, **data: Any) -> None:
        """Tell front ends that the call is still at work."""
        if self._progress:
            self._progress(data)


class Tool:
    """Base of all tools. Class attributes describe it, methods answer questions about one input.

    ``name``, ``aliases``  identity; old names keep working in rules and matchers.
    ``description``        what it is: one or two sentences, part of the tool definition.
    ``input_schema``       JSON Schema with ``type: object``; must not change within a session.
    ``output_schema``      shape of ``ToolResult.structured``; a hook's rewrite must fit it.
    ``rule_name``          the name that permission rules use for it, if another (``Write`` is ruled by ``Edit``).
    ``rule_field``         the input field that a rule's specifier is matched against; ``None``: by name only.
    ``permission``         ``free`` needs no permission, ``ask`` asks unless a rule allows, ``path`` and ``command`` are
                           decided by the policy from paths or a shell command, ``user`` always needs a person.
    ``max_result_chars``   above it the result is spilled to a file and replaced by a preview.
    ``polling``            exempt from the repeat guard.
    ``listed_as``          names under which the ``init`` message lists it as well, for clients that know an older one.
    ``internal``           the harness's own means to hear the model: no hook, no rule and no question stands before it.
    """

    name: ClassVar[str]
    aliases: ClassVar[Sequence[str]] = ()
    description: ClassVar[str]
    input_schema: ClassVar[dict[str, Any]]
    output_schema: ClassVar[dict[str, Any] | None] = None
    rule_name: ClassVar[str | None] = None
    rule_field: ClassVar[str | None] = None
    permission: ClassVar[Literal["free", "ask", "path", "command", "user"]] = "ask"
    max_result_chars: ClassVar[int] = 50_000
    polling: ClassVar[bool] = False
    listed_as: ClassVar[Sequence[str]] = ()
    internal: ClassVar[bool] = False

    def prompt(self) -> str:
        """The manual: when to use the tool, when not, its limits. Goes into the system prompt, not into the schema."""
        return ""

    def is_enabled(self, session: Session) -> bool:
        """Whether the tool is offered; asked once, at the start of a session."""
        return True

    def is_read_only(self, input: dict[str, Any]) -> bool:
        """Whether this call changes nothing."""
        return False

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        """Whether this call may run beside its neighbours."""
        return self.is_read_only(input)

    def is_destructive(self, input: dict[str, Any]) -> bool:
        return False

    def repair_input(self, input: dict[str, Any]) -> dict[str, Any]:
        """Known misspelt keys put right, before the schema is applied (tools contract, 3.4)."""
        return input

    def prepare_input(self, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """The input that hooks and rules see, for example with absolute paths. Runs after the schema."""
        return input

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        """The tool's own checks, before any hook.

        :raises ToolError: the call cannot work; the text tells the model what to change.
        """

    def check_permissions(self, input: dict[str, Any], context: ToolContext) -> Literal["allow", "deny", "ask"] | None:
        """The tool's own opinion; rules and modes come first. ``None``: no opinion."""
        return "allow" if self.permission == "free" else None

    def permission_paths(self, input: dict[str, Any]) -> list[str]:
        """Paths that path rules are matched against, absolute or relative to the working directory."""
        value = input.get(self.rule_field or "")
        return [value] if self.permission == "path" and isinstance(value, str) else []

    def permission_content(self, input: dict[str, Any]) -> str | None:
        """Text that a rule's specifier is matched against."""
        value = input.get(self.rule_field or "")
        return value if isinstance(value, str) else None

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run it.

        :raises ToolError: an expected failure. Anything else becomes a ``fatal_error`` result without a traceback.
        """
        raise NotImplementedError

    def from_structured(self, structured: Any) -> str | list[Block]:
        """What the model sees of an output object that a hook rewrote."""
        if isinstance(structured, str | list):
            return structured
        import msgspec

        return msgspec.json.format(msgspec.json.encode(structured), indent=1).decode()

    def definition(self) -> dict[str, Any]:
        """The entry of the request's ``tools`` list."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}


ToolRunner = Callable[[Tool, dict[str, Any], ToolContext], Awaitable[ToolResult]]
"""Runs one call; middleware wraps it (``register_middleware``)."""


def error_result(code: str, text: str, *, status: Status = "retryable_error", structured: Any = None) -> ToolResult:
    """A result that tells the model what went wrong. Steps before the hooks wrap the text (loop contract, 6 note 5)."""
    return ToolResult(content=text, status=status, error_code=code, retryable=status == "retryable_error",
                      structured=text if structured is None else structured)


def invalid_arguments(text: str) -> ToolResult:
    return error_result("invalid_arguments", f"<tool_use_error>invalid_arguments: {text}</tool_use_error>")


def result_of(error: ToolError) -> ToolResult:
    return error_result(error.code, str(error), structured=error.structured,
                        status="retryable_error" if error.retryable else "fatal_error")
