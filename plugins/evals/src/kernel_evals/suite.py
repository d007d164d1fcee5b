"""A suite: a YAML file with cases, what each must come to, and the faults that it must find. Read strictly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta, Struct, field

from kernel import UsageError

BUILT_IN = Path(__file__).parent / "suites"

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]
Outcome = Literal["made", "refused", "failed", "never"]


class _Strict(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base: a field that does not exist is an error."""


class FileCheck(_Strict):
    """A file of the workspace behind the run. ``unchanged``: byte for byte as in the fixture; ``absent``: it does not exist."""

    path: str
    contains: str | None = None
    lacks: str | None = None
    equals: str | None = None
    unchanged: bool = False
    absent: bool = False


class CallCheck(_Strict):
    """Calls of a tool whose input, as JSON text, holds ``input``. ``made``: one was run and went well; ``failed``: one was run,
    or did not fit, and the model was told of the error; ``refused``: there is one, and all were; ``never``: nobody asked for
    one."""

    tool: str
    outcome: Outcome
    input: str = ""


class RequestCheck(_Strict):
    """What the model was asked, as text: system prompt, messages, results. ``number``: from 0, negative from the end; without it
    ``contains`` holds for one request at least, ``lacks`` for all. ``after_compaction``: only requests behind the first one."""

    number: int | None = None
    contains: str | None = None
    lacks: str | None = None
    after_compaction: bool = False


class ResultCheck(_Strict):
    """The last result message."""

    subtype: str | None = None
    terminal_reason: str | None = None
    contains: str | None = None
    lacks: str | None = None
    structured: Any = None


class MeasureCheck(_Strict):
    """A measure of the run (observability contract, section 8): the sum of the points whose attributes fit ``where``."""

    name: str
    where: dict[str, Any] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None


class Check(_Strict):
    """One thing that must hold; exactly one field beside ``name`` says what.

    ``probe``: a fact that every request behind the first compaction must hold. ``citations: exist``: every ``[ev_N]`` in the
    answer is evidence that a tool of the run found.
    """

    name: str
    file: FileCheck | None = None
    call: CallCheck | None = None
    request: RequestCheck | None = None
    result: ResultCheck | None = None
    measure: MeasureCheck | None = None
    probe: str | None = None
    citations: Literal["exist"] | None = None


class Injection(_Strict):
    """A fault in a tool, planted where the tool would run: ``error`` (a code and the text), or ``result`` instead of its own.

    ``input``: only calls whose input, as JSON text, holds that. ``times``: so many calls, then the tool works again.
    """

    tool: str
    error: str | None = None
    text: str = "injected fault"
    result: str | None = None
    status: Literal["success", "empty", "partial"] = "success"
    input: str = ""
    times: Annotated[int, Meta(ge=1)] = 1


class Case(_Strict):
    """One conversation in a workspace and a home of its own.

    ``files``, ``home``: path -> text. ``settings`` are the user's (so they count as trusted). ``prompts`` come one after the
    other in one session. ``script``: the turns of a scripted model, as the provider ``script`` reads them; ``recording``: such a
    file beside the suite. With ``--model`` both are left out. ``environment``: variables of the run.
    """

    id: Name
    description: str
    prompts: Annotated[list[str], Meta(min_length=1)]
    checks: Annotated[list[Check], Meta(min_length=1)]
    files: dict[str, str] = field(default_factory=dict)
    home: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    script: dict[str, Any] | None = None
    recording: str | None = None
    inject: list[Injection] = field(default_factory=list)
    timeout_s: Annotated[float, Meta(gt=0)] = 120.0


class Fault(_Strict):
    """A fault of the harness, planted to see whether the suite finds it.

    ``block``: plugins that are left out. ``settings``: keys (dotted) -> other values, ``null`` takes a key away. ``lose``: a text
    that is taken out of every request behind a compaction. ``hide_failures``: tool errors are told to the model as successes.
    ``breaks``: the checks that must turn red, ``case: check``.
    """

    name: Name
    description: str
    breaks: Annotated[list[str], Meta(min_length=1)]
    block: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    lose: str | None = None
    hide_failures: bool = False


class Suite(_Strict):
    """``measures``: those of section 8 that the suite reads. ``needs``: plugins without which it says nothing."""

    name: Name
    description: str
    cases: Annotated[list[Case], Meta(min_length=1)]
    faults: list[Fault] = field(default_factory=list)
    measures: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    path: str = ""


def built_in() -> list[Path]:
    return sorted(BUILT_IN.glob("*.yaml"))


def find(name: str) -> Path:
    """A file, or a suite that comes along, by its name.

    :raises UsageError: there is neither.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return Path(name)
    path = BUILT_IN / f"{name}.yaml"
    if not path.exists():
        raise UsageError(f"there is no suite {name!r}", hint=f"a file, or one of {', '.join(p.stem for p in built_in())}")
    return path


class _Loader(yaml.SafeLoader):
    """Safe, and without aliases, so that a small file stays small."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases are not taken", problem_mark=self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        return super().compose_node(parent, index)


def load(path: Path) -> Suite:
    """:raises UsageError: it cannot be read or does not fit; with file, line and field."""
    try:
        loader = _Loader(path.read_text("utf-8"))
        try:
            node = loader.get_single_node()
            data = loader.construct_document(node) if node is not None else None
        finally:
            loader.dispose()
        suite = msgspec.convert(data, Suite)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", context=str(path)) from None
    except (yaml.MarkedYAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError):
            text, where = _told(error)
            raise UsageError(text, context=f"{path}:{_line(node, where)}, {where}") from None
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise UsageError(str(getattr(error, "problem", None) or error), context=f"{path}:{line}") from None
    suite.path = str(path)
    for where, text in _problems(suite):
        raise UsageError(text, context=f"{path}:{_line(node, where)}, {where}")
    return suite


def _problems(suite: Suite) -> list[tuple[str, str]]:
    """What the form alone does not say: place and text."""
    found: list[tuple[str, str]] = []
    ids = [case.id for case in suite.cases]
    names = {f"{case.id}: {check.name}" for case in suite.cases for check in case.checks}
    for n, case in enumerate(suite.cases):
        at = f"$.cases[{n}]"
        if ids.index(case.id) != n:
            found.append((f"{at}.id", f"{case.id!r} is the id of two cases"))
        if (case.script is None) == (case.recording is None):
            found.append((at, "expected either script or recording"))
        for kind in ("files", "home"):
            found += [(f"{at}.{kind}", f"{path!r} must stay inside the folder") for path in getattr(case, kind)
                      if path.startswith(("/", "~")) or ".." in Path(path).parts or not path]
        for m, check in enumerate(case.checks):
            given = [f for f in check.__struct_fields__ if f != "name" and getattr(check, f) is not None]
            if len(given) != 1:
                found.append((f"{at}.checks[{m}]", f"expected one of file, call, request, result, measure, probe, citations; "
                                                   f"there are {len(given)}"))
        for m, item in enumerate(case.inject):
            if (item.error is None) == (item.result is None):
                found.append((f"{at}.inject[{m}]", "expected either error or result"))
    for n, fault in enumerate(suite.faults):
        found += [(f"$.faults[{n}].breaks", f"{name!r} is no check of a case") for name in fault.breaks if name not in names]
        if not (fault.block or fault.settings or fault.flags or fault.lose or fault.hide_failures):
            found.append((f"$.faults[{n}]", "plants nothing: expected block, settings, flags, lose or hide_failures"))
    return found


def _told(error: Exception) -> tuple[str, str]:
    found = re.match(r"(?s)(.*) - at `(.*)`$", str(error))
    return (found[1], found[2]) if found else (str(error), "$")


def _line(node: Any, where: str) -> int:
    """The line of a place such as ``$.cases[2].id``; of the nearest node above it, where the place does not exist."""
    for key, number in re.findall(r"\.([A-Za-z_]\w*)|\[(\d+)\]", where):
        if key and isinstance(node, yaml.MappingNode):
            node = next((v for k, v in node.value if k.value == key), node)
        elif number and isinstance(node, yaml.SequenceNode) and int(number) < len(node.value):
            node = node.value[int(number)]
    return int(node.start_mark.line) + 1 if node is not None else 1
