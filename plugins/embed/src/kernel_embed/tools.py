"""Functions as tools."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

import msgspec

from kernel import Tool, ToolContext, ToolResult, UsageError
from kernel_embed.calling import call
from kernel_embed.notices import LOG
from kernel_embed.signatures import Signature, plain

P = ParamSpec("P")
R = TypeVar("R")
Permission = Literal["free", "ask", "user"]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class FunctionTool(Tool, Generic[P, R]):
    """A function that the model may call. Made by ``tool``; calling it calls the function."""

    def __init__(self, function: Callable[P, R], *, name: str | None = None, description: str | None = None,
                 read_only: bool = False, permission: Permission | None = None, parallel: bool | None = None) -> None:
        update_wrapper(self, function)
        called = name or str(getattr(function, "__name__", ""))
        owner = f"tool {called or '?'}"
        if not _NAME.fullmatch(called):
            raise UsageError(f"the name {called!r} does not fit: letters, digits, - and _, at most 64", context=owner,
                             hint="@tool(name=...)")
        self.signature = Signature(function, owner)
        text = description or self.signature.text
        if not text:
            raise UsageError("has no description, and the model must be told what it is for", context=owner,
                             hint="write a docstring, or @tool(description=...)")
        for attribute, value in {
                "name": called, "description": text, "input_schema": self.signature.schema,
                "permission": permission or ("free" if read_only else "ask")}.items():
            setattr(self, attribute, value)
        self.function = function
        self.read_only = read_only
        self.parallel = read_only if parallel is None else parallel

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return self.read_only

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return self.parallel

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        self.signature.arguments(input)

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        arguments = self.signature.arguments(input)  # hooks may have written another input
        if self.signature.context:
            arguments[self.signature.context] = context
        try:
            return result_of(await call(self.function, **arguments), self.name)
        except Exception as error:
            if not hasattr(error, "reference"):  # an error for people says all there is to say
                LOG.warning("the tool %s raised %s; the model is told so", self.name, type(error).__name__, exc_info=True)
            raise


def result_of(value: Any, name: str) -> ToolResult:
    """What a function returned as a result: a text as it is, other values as JSON.

    :raises TypeError: it cannot be written as JSON.
    """
    if isinstance(value, ToolResult):
        return value
    if value is None or isinstance(value, str):
        return ToolResult(content=value or "")
    try:
        structured = msgspec.to_builtins(value, enc_hook=plain)
        return ToolResult(content=msgspec.json.format(msgspec.json.encode(structured), indent=1).decode(), structured=structured)
    except (TypeError, NotImplementedError) as error:
        raise TypeError(f"it returned {type(value).__name__}, which is neither text nor JSON ({error})") from None


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(*, name: str | None = None, description: str | None = None, read_only: bool = False,
         permission: Permission | None = None, parallel: bool | None = None,
         ) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **how: Any) -> Any:
    """A function as a tool: ``@tool``, or ``@tool(read_only=True)``.

    Its parameters become the input schema: types, defaults, and descriptions from the docstring (``Args:`` or
    ``:param name:``) or from ``Annotated[str, "..."]``. A parameter that is annotated ``ToolContext`` gets the call's context and
    is not shown. It returns a text, or anything that JSON can say (hooks get it as it is), or a ``ToolResult``. Raise
    ``kernel.ToolError`` for what can go wrong; anything else is told to the model as a failure, and logged. ``def`` or
    ``async def``; a ``def`` runs in a thread.

    :param name: the function's name by default.
    :param description: the docstring by default.
    :param read_only: it changes nothing: it needs no permission, and may run beside its neighbours.
    :param permission: ``free`` needs none, ``ask`` asks unless a rule allows it (``allowed_tools``), ``user`` asks always.
    :param parallel: it may run beside its neighbours; ``read_only`` by default.
    :raises UsageError: a parameter cannot be described, or there is no description.
    """
    if function is not None:
        return FunctionTool(function, **how)
    return lambda function: FunctionTool(function, **how)
