"""From what a handler brought back to an answer: exit codes, JSON, plain text (hooks contract, section 11).

Pure functions: nothing is run, written or announced here. A ``Reading`` says what counts, who must hear of what, and
what belongs into the debug log.
"""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

import msgspec
from msgspec import Struct, field

from kernel import ANSWERS, Answer, Decision, Event
from kernel_command_hooks.facts import Facts, row
from kernel_command_hooks.handlers import Handler

NO_STDERR = "No stderr output"
_GARBLED = "stdout begins with '{' but is no whole JSON object, so it is plain text"
NOT_STARTED = (126, 127)
"""Exit codes by which a shell says that it could not start the program."""
CALLBACK_MUST_ANSWER = ("PreToolUse", "UserPromptSubmit", "UserPromptExpansion")
"""Events that are refused where a callback of the embedding program does not answer (section 8, rule 3)."""


class Ran(Struct, kw_only=True):
    """What a runner brings back.

    ``error``: it could not run or not answer, in words; ``unusable``: it cannot work at all (missing program, refused URL).
    ``answer``: a runner of another plugin that answers by itself. ``http``: no exit code and no plain text exist.
    """

    code: int | None = 0
    stdout: str = ""
    stderr: str = ""
    cut: bool = False
    timed_out: bool = False
    timeout: float = 0.0
    error: str = ""
    unusable: bool = False
    http: bool = False
    answer: Answer | None = None


class Reading(Struct):
    """What it comes to. ``notice``: a hook error for the person; ``guard``: a guard did not work. ``failed``: it did not run or
    did not answer in a way that counts. ``warning``: something else to tell the person. ``debug``: lines for the debug log.
    ``stands_in``: the answer is the refusal for a callback that did not answer."""

    answer: Answer | None = None
    notice: str = ""
    guard: bool = False
    failed: str = ""
    warning: str = ""
    debug: list[str] = field(default_factory=list)
    stands_in: bool = False


def read(event: Event, handler: Handler, ran: Ran) -> Reading:
    """The answer of one handler that was waited for."""
    name = event.event_name
    facts = row(name)
    out = Reading()
    if ran.answer is not None:
        out.answer = honoured(ran.answer, facts)
    elif ran.timed_out or ran.error:
        _did_not_run(name, facts, ran, out)
        if handler.spec.type == "sdk" and name in CALLBACK_MUST_ANSWER:
            out.answer, out.stands_in = refusal(name, facts, f"The callback for {event.hook_name} {out.failed}"), True
    elif facts.output == "worktree" and not ran.http:
        _worktree(event, ran, out)
    else:
        _by_exit_code(name, facts, ran, out)
        if not out.failed and _GARBLED in out.debug and handler.spec.on_failure == "block":
            out.failed = _GARBLED
    if facts.output == "worktree":
        _worktree_needs_a_path(name, ran, out)
    if out.failed and handler.spec.on_failure == "block":
        out.guard = True
        if (facts.refuses or name == "PermissionRequest") and not refuses(out.answer):
            reason = f"The hook could not do its work, and is set to refuse then: {out.failed}"
            out.answer = refusal(name, facts, reason, out.answer)
    return out


# -- it did not run ----------------------------------------------------------------------------------------------------
def _did_not_run(name: str, facts: Facts, ran: Ran, out: Reading) -> None:
    out.failed = ran.error or f"timed out after {ran.timeout:g} s; its output does not count"
    shown = facts.output == "standard" or facts.refuses if ran.unusable else facts.output == "standard"
    if shown:
        out.notice = out.failed
        out.guard = ran.unusable or name == "PreToolUse"
    out.debug.append(out.failed)


# -- exit code and stdout ----------------------------------------------------------------------------------------------
def _by_exit_code(name: str, facts: Facts, ran: Ran, out: Reading) -> None:
    """The table of section 11.1."""
    value = json_object(ran, out.debug)
    found, problem = (None, "") if value is None else parse(name, value)
    if value is not None and (stray := misplaced(name, value)):
        out.warning = f"{' and '.join(stray)} outside hookSpecificOutput has no effect"
    if ran.code == 2:
        if problem:
            out.debug.append(problem)
        _exit_2(name, facts, ran, out, found)
    elif found is not None:
        out.answer = honoured(found, facts)
    elif problem:
        _failure(facts, problem, out)
    elif ran.code == 0:
        _plain(name, facts, ran, out)
    else:
        _failure(facts, f"Failed with non-blocking status code: {_first_line(ran)}", out)
        if ran.code in NOT_STARTED and out.notice == "" and facts.refuses:
            out.notice = out.failed
        out.guard = ran.code in NOT_STARTED and bool(out.notice)


def _failure(facts: Facts, text: str, out: Reading) -> None:
    """A non-blocking error; only the standard class announces it."""
    out.failed = text
    out.debug.append(text)
    if facts.output == "standard":
        out.notice = text


def _plain(name: str, facts: Facts, ran: Ran, out: Reading) -> None:
    text = ran.stdout.strip()
    if text and facts.plain:
        out.answer = ANSWERS[name](additional_context=text)  # type: ignore[call-arg]


def _exit_2(name: str, facts: Facts, ran: Ran, out: Reading, found: Answer | None) -> None:
    stderr = ran.stderr.strip() or NO_STDERR
    if facts.exit2 == "decline":
        found = None  # the object of a handler that declines does not count
    kept = honoured(found, facts) if found is not None else None
    if facts.refuses:
        out.answer = refusal(name, facts, stderr, kept)
        return
    out.answer = kept
    if facts.exit2 == "notice":
        out.notice = stderr
    elif facts.exit2 == "debug":
        out.debug.append(stderr)


def refusal(name: str, facts: Facts, reason: str, kept: Answer | None = None) -> Answer:
    """The event's refusal. A reason that ``kept`` gives for its own refusal is better than the given one."""
    answer: Any = kept if kept is not None else ANSWERS[name]()
    if name == "PermissionRequest":
        answer.permission = Decision(behavior="deny", message=reason)
    elif facts.exit2 == "deny":
        if answer.permission_decision != "deny" or not answer.permission_decision_reason:
            answer.permission_decision, answer.permission_decision_reason = "deny", reason
    else:
        if facts.exit2 == "decline":
            answer.action = "decline"
        if answer.decision != "block" or not answer.reason:
            answer.decision, answer.reason = "block", reason
    return answer  # type: ignore[no-any-return]


def refuses(answer: Any) -> bool:
    """Whether the answer is a refusal."""
    return answer is not None and (answer.decision == "block" or getattr(answer, "permission_decision", None) == "deny")


def _first_line(ran: Ran) -> str:
    lines = ran.stderr.strip().splitlines()
    if lines:
        return lines[0]
    if ran.code is not None and ran.code > 128:
        try:
            return f"killed by {signal.Signals(ran.code - 128).name}"
        except ValueError:
            pass
    return f"{NO_STDERR} (exit code {ran.code})"


# -- JSON --------------------------------------------------------------------------------------------------------------
def parse(name: str, value: dict[str, Any]) -> tuple[Answer | None, str]:
    """A JSON object as an answer, or what is wrong with it."""
    try:
        return ANSWERS[name].from_wire(value), ""
    except ValueError as error:
        return None, f"Hook JSON output validation failed: {error}"


def json_object(ran: Ran, debug: list[str]) -> dict[str, Any] | None:
    """The JSON object that the whole of stdout is; anything else is plain text."""
    text = ran.stdout.lstrip()
    if not text.startswith("{"):
        return None
    if ran.cut:
        debug.append(_GARBLED)
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = _tolerant(text)
    if not isinstance(value, dict):
        debug.append(_GARBLED)
        return None
    return value


def _tolerant(text: str) -> Any:
    """JSON with lone surrogates, as JavaScript programs write it when they cut a text in the middle of a character."""
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        value = json.loads(text, parse_constant=refuse)
        return msgspec.json.decode(json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
                                   .decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        return None


def misplaced(name: str, value: dict[str, Any]) -> list[str]:
    """Deciding keys that stand at the root of the object, where they have no effect (section 11.3)."""
    own = {f.encode_name for f in msgspec.structs.fields(ANSWERS[name])}
    return sorted({"permissionDecision", "updatedInput"} & own & value.keys())


def honoured(answer: Any, facts: Facts) -> Answer:
    """The answer without what has no effect on its event."""
    for f in msgspec.structs.fields(type(answer)):
        always = ("source", "rank", "terminal_sequence", *answer.ours)
        if f.name not in facts.honours and "*" not in facts.honours and f.name not in always:
            setattr(answer, f.name, f.default)
    if answer.terminal_sequence is not None and not _SEQUENCES.fullmatch(answer.terminal_sequence):
        answer.terminal_sequence = None
    if answer.event == "PreToolUse":
        _pre_tool_use(answer)
    return answer  # type: ignore[no-any-return]


def _pre_tool_use(answer: Any) -> None:
    """The deprecated spelling as the current one, which wins (13.4); what ``defer`` leaves without effect (13.3)."""
    if answer.decision is not None and answer.permission_decision is None:
        answer.permission_decision = "deny" if answer.decision == "block" else "allow"
    if answer.permission_decision is not None:
        answer.permission_decision_reason = answer.permission_decision_reason or answer.reason
    answer.decision = answer.reason = None
    if answer.permission_decision == "defer":
        answer.additional_context = answer.updated_input = answer.permission_decision_reason = None


_SEQUENCES = re.compile(r"(?:\x07|\x1b\](?:0|1|2|9|99|777)(?:;[^\x00-\x1f\x7f-\x9f]*)?(?:\x07|\x1b\\))*")
"""OSC 0, 1, 2, 9, 99 and 777, ended by BEL or ST, and BEL: what a handler may send to a terminal (11.2)."""


# -- worktrees ---------------------------------------------------------------------------------------------------------
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def _worktree(event: Event, ran: Ran, out: Reading) -> None:
    """The last line that is not empty is the path, relative to where the handler ran."""
    if ran.code != 0:
        out.failed = f"Failed with status code {ran.code}: {_first_line(ran)}"
        return
    lines = [line for raw in ran.stdout.splitlines() if (line := _ANSI.sub("", raw).strip())]
    if lines:
        path = lines[-1] if os.path.isabs(lines[-1]) else os.path.normpath(os.path.join(event.cwd, lines[-1]))
        out.answer = ANSWERS["WorktreeCreate"](worktree_path=path)  # type: ignore[call-arg]


def _worktree_needs_a_path(name: str, ran: Ran, out: Reading) -> None:
    path = getattr(out.answer, "worktree_path", None)
    if path is not None and (not os.path.isabs(path) or {".", ".."} & set(path.split("/"))):
        out.failed, path = f"the path {path!r} must be absolute, without . and .. segments", None
    if path is None:
        out.failed = out.failed or "it printed no path"
        out.notice, out.guard = "", False
        out.answer = ANSWERS[name](decision="block", reason=out.failed)
