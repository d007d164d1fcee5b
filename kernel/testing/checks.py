"""Assertions whose failure text shows what happened instead."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kernel.answers import Answer
from kernel.merge import Merged
from kernel.messages import Block
from kernel.policy import Verdict
from kernel.testing.kit import Run
from kernel.testing.processes import HookRun, of_answer
from kernel.testing.transcripts import story


def _fail(what: str, run: Run) -> AssertionError:
    return AssertionError(f"{what}\n--- the run ---\n{story(run)}")


def _calls(run: Run) -> list[Block]:
    return [b for message in run.session.history.wire() if message["role"] == "assistant" and isinstance(message["content"], list)
            for b in message["content"] if b.get("type") == "tool_use"]


def call_of(run: Run, call: str) -> Block:
    """The tool call with that id, or the only call of the tool with that name.

    :raises AssertionError: there is none, or several have the name.
    """
    calls = _calls(run)
    found = [b for b in calls if b["id"] == call] or [b for b in calls if b["name"] == call]
    if len(found) == 1:
        return found[0]
    if found:
        raise _fail(f"{call} was called {len(found)} times; name the call by its id: {', '.join(b['id'] for b in found)}", run)
    raise _fail(f"there was no call {call!r}; calls were {', '.join(b['name'] for b in calls) or 'none'}", run)


def _text(block: Block) -> str:
    content = block["content"]
    return content if isinstance(content, str) else "\n".join(str(b.get("text", "")) for b in content)


def assert_result(run: Run, call: str, *, equals: str | None = None, contains: str | None = None,
                  error: bool | None = False) -> str:
    """What the model was shown for a call.

    :param call: the call's id, or the tool's name where it was called once.
    :param error: whether it is an error result; ``None``: either.
    :returns: the text of the result.
    """
    block = run.result_of(call_of(run, call)["id"])
    text, failed = _text(block), bool(block.get("is_error"))
    if error is not None and failed != error:
        raise _fail(f"the call {call} was expected to {'fail' if error else 'work'} and did not", run)
    if equals is not None and text != equals:
        raise _fail(f"the result of {call} is\n    {text!r}\nand not\n    {equals!r}", run)
    if contains is not None and contains not in text:
        raise _fail(f"the result of {call} does not hold {contains!r}: {text!r}", run)
    return text


def assert_refused(run: Run, call: str, *, reason: str | None = None) -> str:
    """A call was refused: by a hook, a rule, or since nobody could be asked.

    :param reason: a text that the model must have been told.
    """
    block = call_of(run, call)
    if block["id"] not in [denial["tool_use_id"] for denial in run.result.permission_denials]:
        raise _fail(f"the call {call} was not refused", run)
    return assert_result(run, block["id"], contains=reason, error=True)


def assert_allowed(run: Run, call: str) -> None:
    """A call was let through and its tool was run; what came of it is another question (``assert_result``).

    A call that never came to a decision was not let through: an unknown tool, an input that does not fit the schema.
    """
    block = call_of(run, call)
    if block["id"] in [denial["tool_use_id"] for denial in run.result.permission_denials]:
        raise _fail(f"the call {call} was refused", run)
    if block["id"] not in run.ran:
        raise _fail(f"the call {call} never ran: {_text(run.result_of(block['id']))}", run)


def assert_end(run: Run, *, subtype: str = "success", text: str | None = None) -> None:
    """How the run ended; ``text`` must be in the final answer."""
    if run.result.subtype != subtype:
        raise _fail(f"the run ended with {run.result.subtype!r}, not {subtype!r}", run)
    if text is not None and text not in run.text:
        raise _fail(f"the final answer does not hold {text!r}: {run.text!r}", run)


def assert_decision(answer: Answer | Merged | Verdict | HookRun | None, expected: str | None, *,
                    reason: str | None = None) -> None:
    """A decision of a hook, of all hooks together (``kit.play_event``), of a policy or of a command (``run_hook``).

    :param expected: ``allow``, ``ask``, ``deny``, ``defer``, ``block``, or ``None`` for silence.
    :param reason: a text that the reason must hold.
    """
    got, why = _decided(answer)
    if expected == "block" and isinstance(answer, Merged) and answer.blocked:
        got = "block"  # merged answers have both words: what blocks a prompt denies a call
    if got != expected:
        raise AssertionError(f"decided: {got or 'nothing'}, expected: {expected or 'nothing'}"
                             + (f"; the reason given: {why!r}" if why else "") + f"\n{answer!r}")
    if reason is not None and reason not in why:
        raise AssertionError(f"the reason does not hold {reason!r}: {why!r}")


def _decided(answer: Any) -> tuple[str | None, str]:
    if isinstance(answer, HookRun):
        return answer.decision, answer.reason
    if isinstance(answer, Verdict):
        return answer.behavior, answer.message
    if isinstance(answer, Merged):
        decision = answer.decision or answer.behavior or ("block" if answer.blocked else None)
        reasons = (t.text for t in (*answer.reasons, *answer.messages, *answer.block_reasons))
        return decision, "\n".join(dict.fromkeys(reasons))
    return of_answer(answer)


def assert_request(run: Run, number: int = -1, *, contains: str | None = None, lacks: str | None = None,
                   tools: Iterable[str] = (), without_tools: Iterable[str] = (), system: str | None = None) -> dict[str, Any]:
    """What the model was asked.

    :param number: which request, from 0; negative from the end.
    :param contains: a text that must be in its messages; ``lacks``: one that must not.
    :param tools: tools that must be offered; ``without_tools``: those that must not.
    :param system: a text that must be in the system prompt.
    :returns: the request's body, decoded.
    """
    if not -len(run.requests) <= number < len(run.requests):
        raise _fail(f"there is no request {number}: {len(run.requests)} were sent", run)
    body = run.requests[number]
    said = "\n".join(_texts(body["messages"]))
    offered = [tool["name"] for tool in body["tools"]]
    if contains is not None and contains not in said:
        raise AssertionError(f"request {number} does not hold {contains!r} in its messages:\n{_shown(said)}")
    if lacks is not None and lacks in said:
        raise AssertionError(f"request {number} holds {lacks!r} in its messages:\n{_shown(said)}")
    if absent := sorted(set(tools) - set(offered)):
        raise AssertionError(f"request {number} does not offer {', '.join(absent)}; offered are {', '.join(offered) or 'none'}")
    if present := sorted(set(without_tools) & set(offered)):
        raise AssertionError(f"request {number} offers {', '.join(present)}")
    prompt = "\n".join(_texts(body["system"]))
    if system is not None and system not in prompt:
        raise AssertionError(f"the system prompt of request {number} does not hold {system!r}:\n{_shown(prompt)}")
    return body


def _texts(value: Any) -> list[str]:
    """Every text inside messages or blocks, tool inputs as JSON."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, dict):
        if value.get("type") == "tool_use":
            return [f"{value['name']} {json.dumps(value['input'], ensure_ascii=False)}"]
        return _texts(value.get("text") or value.get("content") or "")
    return []


def _shown(text: str, most: int = 4000) -> str:
    return text if len(text) <= most else f"{text[:most]}\n... ({len(text)} characters in all)"
