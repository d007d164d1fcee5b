"""Types of Python as JSON Schema and back: parameters of a function, and the type of an answer.

What msgspec describes is understood: ``str``, ``int``, ``Literal``, ``Enum``, ``X | None``, lists, dictionaries, dates,
dataclasses, ``TypedDict``, ``msgspec.Struct``. Where a type holds a pydantic model, pydantic describes it; a program that has one
has imported it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct

from kernel import ToolContext, ToolError, UsageError


class Parameter(Struct):
    """``default`` is ``UNSET`` where it must be given."""

    name: str
    kind: Any
    default: Any = UNSET
    description: str = ""


class Signature:
    """What a function takes, for the model. A parameter that is annotated ``ToolContext`` is filled in by the kernel.

    :raises UsageError: a parameter cannot be described.
    """

    def __init__(self, function: Callable[..., Any], owner: str) -> None:
        self.owner = owner
        self.context: str | None = None
        self.parameters: list[Parameter] = []
        self.text, described = read_docstring(inspect.getdoc(function) or "")
        hints = self._hints(function)
        for name, given in inspect.signature(function).parameters.items():
            if given.kind not in (given.POSITIONAL_OR_KEYWORD, given.KEYWORD_ONLY):
                raise self._wrong(name, "a model names every argument: no *args, no **kwargs, none that is positional only")
            if name not in hints:
                raise self._wrong(name, "has no type annotation", "write its type: the model is told what to give")
            kind = hints[name]
            if kind is ToolContext or ToolContext in get_args(kind):
                self.context = name
                continue
            default = UNSET if given.default is given.empty else given.default
            self.parameters.append(Parameter(name, kind, default, _said(kind) or described.get(name, "")))
        self.schema = self._schema()

    def _hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        target = function if inspect.isroutine(function) else type(function).__call__
        try:
            return get_type_hints(inspect.unwrap(target), include_extras=True)
        except Exception as error:
            raise UsageError(f"its annotations cannot be read: {error}", context=self.owner,
                             hint="types in annotations must be known where the function is defined, at the level of its module"
                             ) from None

    def _wrong(self, name: str, problem: str, hint: str = "") -> UsageError:
        return UsageError(problem, context=f"{self.owner}, parameter {name}", hint=hint)

    def _schema(self) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        shared: dict[str, Any] = {}
        for parameter in self.parameters:
            schema = schema_of(parameter.kind, f"{self.owner}, parameter {parameter.name}")
            for name, inner in schema.pop("$defs", {}).items():
                if shared.setdefault(name, inner) != inner:
                    raise self._wrong(parameter.name, f"another type is called {name}, too", "give one of the two another name")
            if parameter.description:
                schema["description"] = parameter.description
            if parameter.default is not UNSET:
                try:
                    schema["default"] = msgspec.to_builtins(parameter.default, enc_hook=plain)
                except (TypeError, NotImplementedError):
                    pass  # a default that JSON cannot say is not shown
            properties[parameter.name] = schema
        made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        needed = [p.name for p in self.parameters if p.default is UNSET]
        return {**made, **({"required": needed} if needed else {}), **({"$defs": shared} if shared else {})}

    def arguments(self, input: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call, in the types that the function wants.

        :raises ToolError: a value does not fit.
        """
        given: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.name in input:
                try:
                    given[parameter.name] = convert(input[parameter.name], parameter.kind)
                except ValueError as error:
                    raise ToolError("invalid_arguments", f"{parameter.name}: {error}", retryable=True) from None
        return given


# -- one type ------------------------------------------------------------------------------------------------------------
def schema_of(kind: Any, owner: str) -> dict[str, Any]:
    """The JSON Schema of a type, a schema at its root.

    :raises UsageError: it cannot be described.
    """
    try:
        adapter = _adapter(kind)
        found: dict[str, Any] = adapter.json_schema() if adapter else msgspec.json.schema(kind)
    except Exception as error:  # of msgspec and pydantic: TypeError and errors of their own
        said = " ".join(str(error).split())[:300]
        raise UsageError(f"the type {_named(kind)} cannot be described to a model: {said}", context=owner,
                         hint="use text, numbers, Literal, lists, dictionaries, dataclasses or models of these") from None
    shared = found.get("$defs", {})
    if set(found) == {"$ref", "$defs"} and found["$ref"].startswith("#/$defs/"):
        name = found["$ref"].removeprefix("#/$defs/")
        if not _mentions(shared, name):
            shared = {key: inner for key, inner in shared.items() if key != name}
        return {**found["$defs"][name], **({"$defs": shared} if shared else {})}
    return found


def convert(value: Any, kind: Any) -> Any:
    """A decoded JSON value in that type.

    :raises ValueError: it does not fit.
    """
    adapter = _adapter(kind)
    if adapter:
        return adapter.validate_python(value)
    return msgspec.convert(value, kind)


def plain(value: Any) -> Any:
    """For msgspec: what it does not know by itself.

    :raises NotImplementedError: we do not know it either.
    """
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise NotImplementedError(f"{type(value).__name__} cannot be written as JSON")
    return dump(mode="json")


def _adapter(kind: Any) -> Any:
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not _is_pydantic(kind):
        return None
    return pydantic.TypeAdapter(kind)


def _is_pydantic(kind: Any) -> bool:
    if isinstance(kind, type) and (hasattr(kind, "__pydantic_validator__") or hasattr(kind, "__get_pydantic_core_schema__")):
        return True
    told = kind.__metadata__ if get_origin(kind) is Annotated else ()
    if any(type(item).__module__.startswith(("pydantic", "annotated_types")) for item in told):
        return True
    return any(_is_pydantic(inner) for inner in get_args(kind))


def _mentions(schemas: Any, name: str) -> bool:
    return f'"#/$defs/{name}"'.encode() in msgspec.json.encode(schemas)


def _named(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind)


def _said(kind: Any) -> str:
    """The description that an annotation carries: a text, or what msgspec and pydantic take."""
    if get_origin(kind) is not Annotated:
        return ""
    for given in kind.__metadata__:
        text = given if isinstance(given, str) else getattr(given, "description", None)
        if isinstance(text, str) and text:
            return text
    return ""


# -- docstrings ----------------------------------------------------------------------------------------------------------
_SECTION = re.compile(r"(Args|Arguments|Parameters|Raises|Yields|Examples?|Notes?):\s*\Z")
_ARGUMENT = re.compile(r"(\*{0,2}\w+)(?: \([^)]*\))?:\s*(.*)\Z")
_FIELD = re.compile(r":(\w+)(?: ([^:]*))?:\s*(.*)\Z")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, and what is said of each parameter: in a section ``Args:`` or as ``:param name:``."""
    kept: list[str] = []
    said: dict[str, list[str]] = {}
    section, current, depth = "", None, 0
    for line in text.splitlines():
        stripped, indent = line.strip(), len(line) - len(line.lstrip())
        if not indent and (found := _SECTION.match(stripped)):
            section, current, depth = found[1], None, 0
        elif not indent and (found := _FIELD.match(stripped)):
            section = "field"
            current = found[2].split()[-1] if found[1] == "param" and found[2] else None
            if current:
                said[current] = [found[3]]
        elif section and (indent or not stripped):
            depth = depth or indent
            if section in ("Args", "Arguments", "Parameters") and indent == depth and (found := _ARGUMENT.match(stripped)):
                current = found[1].lstrip("*")
                said[current] = [found[2]]
            elif current and stripped:
                said[current].append(stripped)
        else:
            section = ""
            kept.append(line)
    return "\n".join(kept).strip(), {name: " ".join(parts).strip() for name, parts in said.items()}
