"""What a configured handler is: its documented fields, checked, and where it comes from (hooks contract, sections 2 and 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct, field

from kernel_command_hooks.match import EVERYTHING, Matcher

Scope = Literal["managed", "cli", "local", "project", "user", "plugin", "session", "sdk"]
"""Settings scopes, then plugins, then what a skill or an agent brought into the session, then callbacks of the program."""

Text = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0)]


# -- the wire form -----------------------------------------------------------------------------------------------------
class Spec(Struct, kw_only=True, tag_field="type"):
    """Fields of every handler. Unknown ones are ignored. ``onFailure`` is an extension of this project: with ``block``, any
    failure of the handler to run or to answer refuses what the event could refuse."""

    rule: str | None = field(default=None, name="if")
    timeout: Seconds | None = None
    once: bool = False
    on_failure: Literal["block"] | None = field(default=None, name="onFailure")

    type: ClassVar[str]

    def what(self) -> tuple[Any, ...]:
        """What is executed; equal for duplicates (section 3.5)."""
        raise NotImplementedError

    def text(self) -> str:
        """What a person recognises the handler by. Never holds a header or a query, which may be secret."""
        raise NotImplementedError


class Command(Spec, tag="command"):
    type = "command"
    command: Text
    args: list[str] | None = None
    shell: Literal["bash", "powershell"] | None = None
    run_async: bool = field(default=False, name="async")
    rewake: bool = field(default=False, name="asyncRewake")
    rewake_message: Any = field(default=None, name="rewakeMessage")
    rewake_summary: Any = field(default=None, name="rewakeSummary")

    def what(self) -> tuple[Any, ...]:
        return self.command, self.args, self.shell

    def text(self) -> str:
        return " ".join([self.command, *(self.args or ())])


class Http(Spec, tag="http"):
    type = "http"
    url: Text
    headers: dict[str, str] = {}
    allowed_env_vars: list[str] = field(default_factory=list, name="allowedEnvVars")

    def what(self) -> tuple[Any, ...]:
        return (self.url,)

    def text(self) -> str:
        base = self.url.split("?", 1)[0].split("#", 1)[0]
        scheme, separator, rest = base.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


class McpTool(Spec, tag="mcp_tool"):
    type = "mcp_tool"
    server: Text
    tool: Text
    input: dict[str, Any] = {}

    def what(self) -> tuple[Any, ...]:
        return self.server, self.tool, self.input

    def text(self) -> str:
        return f"{self.server} {self.tool}"


class Prompt(Spec, tag="prompt"):
    type = "prompt"
    prompt: Text
    model: str | None = None
    continue_on_block: bool = field(default=False, name="continueOnBlock")

    def what(self) -> tuple[Any, ...]:
        return self.prompt, self.model

    def text(self) -> str:
        return self.prompt


class Agent(Spec, tag="agent"):
    type = "agent"
    prompt: Text
    model: str | None = None

    def what(self) -> tuple[Any, ...]:
        return self.prompt, self.model

    def text(self) -> str:
        return self.prompt


class SdkEntry(Struct):
    """A callback of the embedding program as it was registered, see ``callbacks.py``."""

    callback: Any
    matcher: str | None = None
    timeout: Seconds | None = None
    label: str | None = None


class Sdk(Spec, tag="sdk"):
    """A callback of the embedding program; never read from a file. ``place`` tells callbacks apart."""

    type = "sdk"
    callback: Any = None
    place: str = ""

    def what(self) -> tuple[Any, ...]:
        return (self.place,)

    def text(self) -> str:
        return self.place


FileSpec = Command | Http | McpTool | Prompt | Agent
AnySpec = FileSpec | Sdk


class Group(Struct):
    """A matcher and its handlers, as a hooks file holds them. Unknown keys are ignored."""

    hooks: list[dict[str, Any]]
    matcher: str | None = None


def read_spec(value: Any, where: str) -> AnySpec:
    """One handler from its JSON object.

    :raises ValueError: it does not fit; the text names file, field and expectation.
    """
    return _convert(value, FileSpec, where)  # type: ignore[no-any-return]


def read_groups(value: Any, where: str) -> list[Group]:
    """The groups of one event.

    :raises ValueError: as ``read_spec``.
    """
    return _convert(value, list[Group], where)  # type: ignore[no-any-return]


def read_callback(value: Any, where: str) -> SdkEntry:
    """One callback of the embedding program.

    :raises ValueError: as ``read_spec``.
    """
    return _convert(value, SdkEntry, where)  # type: ignore[no-any-return]


def _convert(value: Any, type: Any, where: str) -> Any:
    try:
        return msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise ValueError(f"{where}{path.rstrip('`')}: {message}") from None


# -- a handler in its place --------------------------------------------------------------------------------------------
class Home(Struct, frozen=True):
    """The plugin that a handler comes from. ``data`` is made at first use; ``options`` are its user configuration."""

    id: str
    root: str
    data: str
    options: dict[str, Any]

    def make_data(self) -> None:
        try:
            Path(self.data).mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            pass  # the handler sees that it is missing, if it needs it


class Handler(Struct, kw_only=True):
    """A handler that takes part, in configuration order.

    ``where`` names file and field. ``broken`` says why it cannot run at all; such a handler is kept only where its failure
    has to refuse.
    """

    event: str
    spec: AnySpec
    scope: Scope
    where: str
    matcher: Matcher = EVERYTHING
    home: Home | None = None
    broken: str = ""
    label: str = ""
    identity: tuple[str, str, bytes] = ("", "", b"")

    def __post_init__(self) -> None:
        prefix = {"cli": "Flag", "sdk": "SDK"}.get(self.scope, self.scope.capitalize())
        owner = f"{self.home.id.partition('@')[0]}: " if self.home else ""
        self.label = self.label or f"[{prefix}] {owner}{short(self.spec.text())}"
        pool = self.home.id if self.home else self.where if self.scope == "session" else "settings"
        self.identity = (pool, self.spec.type, msgspec.json.encode((*self.spec.what(), self.spec.rule), order="sorted"))


def short(text: str, limit: int = 60) -> str:
    """One line of at most ``limit`` characters, shortened in the middle: the end of a path says most."""
    line = " ".join(text.split())
    head = limit // 3
    return line if len(line) <= limit else f"{line[:head]}…{line[head + 1 - limit:]}"
