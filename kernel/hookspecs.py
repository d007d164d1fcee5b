"""Every hook, in the order of a session's life.

Three kinds, never mixed (decision D2).

*Registration* hooks (``register_*``) are synchronous and run once, when the kernel first needs what they bring. They
hand over objects: ``register(thing)`` keeps it under ``thing.name``.

*Lifecycle* hooks are not written out here: there is one for every event of ``kernel/events/``, under its name in snake case,
and what it is for stands there. They get one typed ``event``, and the ``session`` where they name it as a second argument.
They may be ``def`` or ``async def`` and return the event's result model, a list of them, or ``None``. All implementations
run, side by side; nobody sees another's answer; ``merge.py`` says what the answers come to.

*Middleware* wraps a model request or a tool run: ``register_middleware``.

Which events a plugin implements stands in its manifest (``metadata.kernel.implements``), so that its code is
imported when one of them first fires and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from kernel.events import ANSWERS, EVENTS, Event, snake

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.compactor import Compactor
    from kernel.extension import Extension
    from kernel.frontend import Command, Control, FrontEnd
    from kernel.lint import LintRule
    from kernel.middleware import Middleware
    from kernel.models import ModelProvider
    from kernel.policy import PolicyFactory
    from kernel.prompt import PromptPart
    from kernel.registry import Registry
    from kernel.sandbox import SandboxFactory
    from kernel.session import Session
    from kernel.tools import Tool
    from kernel.transcript import EntryStore, TranscriptStore
    from kernel.validator import OutputValidator
    from kernel.websearch import SearchBackend

F = TypeVar("F", bound="Callable[..., Any]")

hookspec = pluggy.HookspecMarker("kernel")
hookimpl = pluggy.HookimplMarker("kernel")
"""Marks an implementation: ``@hookimpl`` above a function of the plugin's module."""


# == registration ===================================================================================================
@hookspec
def register_tools(register: Registry[Tool]) -> None:
    """Offer tools to the model. Names are those of ``provides.tools`` in the manifest."""


@hookspec
def register_models(register: Registry[ModelProvider]) -> None:
    """Offer model providers. Only the plugin of the provider that is chosen is loaded."""


@hookspec
def register_policies(register: Registry[PolicyFactory]) -> None:
    """Offer permission policies. The setting ``kernel.policy`` chooses; ``rules`` is the default."""


@hookspec
def register_sandboxes(register: Registry[SandboxFactory]) -> None:
    """Offer confinement of processes, used where ``sandbox.enabled``. The setting ``kernel.sandbox`` chooses."""


@hookspec
def register_search_backends(register: Registry[SearchBackend]) -> None:
    """Offer ways to search the web for ``WebSearch``. The setting ``kernel.search`` chooses, also beside a provider's own."""


@hookspec
def register_stores(register: Registry[TranscriptStore | EntryStore]) -> None:
    """Offer transcript stores, or stores of entries alone. The setting ``kernel.store`` chooses; ``files`` is the default."""


@hookspec
def register_front_ends(register: Registry[FrontEnd]) -> None:
    """Offer front ends: ``text``, ``json``, ``stream-json``, ``terminal`` ... The command line chooses."""


@hookspec
def register_controls(register: Registry[Control]) -> None:
    """Offer ways in which a program drives a session beside its prompts. A front end that reads lines takes ``stdio``."""


@hookspec
def register_prompt_parts(register: Registry[PromptPart]) -> None:
    """Offer parts of the system prompt and of the first user message, each in its layer."""


@hookspec
def register_extensions(register: Registry[Extension]) -> None:
    """Take part in a session: its start, each prompt, each request. Brings typed commands, and tools that come and go."""


@hookspec
def register_compactors(register: Registry[Compactor]) -> None:
    """Offer strategies that make room in the window. The setting ``kernel.compactor`` chooses; ``summary`` is the default."""


@hookspec
def register_validators(register: Registry[OutputValidator]) -> None:
    """Offer checks of what a final answer means. Settings and callers choose by name."""


@hookspec
def register_middleware(register: Registry[Middleware]) -> None:
    """Wrap model requests and tool runs. Folded once at the start of a session, by plugin name, first outermost."""


@hookspec
def register_lint_rules(register: Registry[LintRule]) -> None:
    """Add rules to ``kernel plugins validate``. Called by the linter, in no session."""


@hookspec
def register_commands(register: Registry[Command]) -> None:
    """Offer subcommands of the ``kernel`` command. Only the plugin of the command that was typed is loaded."""


# == lifecycle: one hook for every event ================================================================================
def _lifecycle(event: type[Event]) -> Callable[..., Any]:
    def spec(event: Event, session: Session) -> Any: ...

    spec.__name__ = spec.__qualname__ = snake(event.__name__)
    spec.__doc__ = event.__doc__
    spec.__annotations__ = {"event": event, "session": "Session", "return": ANSWERS[event.__name__] | None}
    return spec


globals().update({snake(name): hookspec(_lifecycle(event)) for name, event in EVENTS.items()})
