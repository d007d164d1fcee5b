"""What each word behind ``kernel durable`` does. Results on stdout; 0 fine, 1 an error, 75 the run waits for an approval."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import anyio
import typer
from typer import Argument, Option

from kernel import Output, ResultMessage, Settings, UsageError, encode_output
from kernel_durable.asking import questions
from kernel_durable.config import engine
from kernel_durable.engine import DurableError, RunInfo, StepEngine

WAITS = 75
"""Exit code of a run that was left for an answer (``EX_TEMPFAIL``)."""

Json = Annotated[bool, Option("--json", help="JSON instead of a table")]
T = TypeVar("T")
RunId = Annotated[str, Argument(help="a run's id, or the beginning of one")]


def _settings() -> Settings:
    return Settings.load(Path.cwd())


def _with_engine(work: Callable[[StepEngine], Awaitable[T]]) -> T:
    async def main() -> T:
        used = engine(_settings())
        try:
            return await work(used)
        finally:
            await used.close()

    return anyio.run(main)


async def _one(used: StepEngine, run_id: str, *, done: bool = True) -> RunInfo:
    found = await used.runs(run_id=run_id, done=done) if run_id else []
    if len(found) != 1:
        what = f"several runs begin with {run_id!r}" if found else f"there is no run {run_id!r}"
        raise UsageError(what, context=used.shown, hint="kernel durable list shows them")
    return found[0]


def state_of(info: RunInfo) -> str:
    """``waiting`` for a run that nobody has and that has an open question."""
    return "waiting" if info.state == "pending" and any(q["answer"] is None for q in questions(info)) else info.state


def _wire(info: RunInfo) -> dict[str, Any]:
    return {"id": info.id, "state": state_of(info), "session": info.spec["session"], "cwd": info.spec["cwd"],
            "prompt": info.spec["prompt"], "created": info.created, "changed": info.changed,
            "steps": sum("?" not in key and not key.startswith("answer ") for key in info.steps), "result": info.result}


def list_(all_: Annotated[bool, Option("--all", help="those that are over, too")] = False, json_: Json = False) -> int:
    found = _with_engine(lambda used: used.runs(done=all_))
    if json_:
        print(json.dumps([_wire(info) for info in found], indent=1, ensure_ascii=False))
        return 0
    for info in found:
        print(f"{info.id}  {state_of(info):<8} {_time(info.created)}  {_words(info.spec['prompt'])}")
    print(f"{len(found)} runs" if found else "No durable runs" + ("." if all_ else " to take up (--all: the others, too)."))
    return 0


def show_(run: RunId, json_: Json = False) -> int:
    info = _with_engine(lambda used: _one(used, run))
    if json_:
        print(json.dumps({**_wire(info), "recorded": {key: json.loads(value) for key, value in info.steps.items()}}, indent=1,
                         ensure_ascii=False))
        return 0
    print(f"{info.id}  {state_of(info)}  {info.spec['cwd']}\n{_words(info.spec['prompt'])}")
    for key in info.steps:
        print(f"  {key}")
    if info.result:
        print(f"over: {info.result['reason']}")
    return 0


# -- taking up -------------------------------------------------------------------------------------------------------------
Format = Annotated[Literal["text", "json", "stream-json"], Option("--output-format", help="as of kernel -p")]


def resume_(run: RunId = "", output_format: Format = "text") -> int:
    async def work(used: StepEngine) -> int:
        wanted = (await _one(used, run, done=False)).id if run else await _latest(used)
        return await _resumed(used, wanted, output_format)

    return _with_engine(work)


async def _latest(used: StepEngine) -> str:
    here = str(Path.cwd())
    found = [info for info in await used.runs(done=False) if info.spec["cwd"] == here and info.state == "pending"]
    if not found:
        raise UsageError("no run of this folder was left behind", context=used.shown, hint="kernel durable list shows all")
    return found[0].id


async def _resumed(used: StepEngine, run_id: str, output_format: str) -> int:
    from kernel_durable.taking_up import go_on, harness_of, open_at

    run = await used.take(run_id)
    try:
        harness = harness_of(run)
        for text in harness.announced:
            _warn(text)
        harness.listeners.append(_warn)
        session, said = open_at(harness, run, _stream if output_format == "stream-json" else lambda message: None)
        result = await go_on(session, run, said)
        await session.close()
    finally:
        await run.leave()
    if output_format == "text":
        print(result.result if isinstance(result.result, str) else "\n".join(result.errors or ()))
    elif output_format == "json":
        print(encode_output(result).decode())
    return code_of(result)


def code_of(result: ResultMessage) -> int:
    from kernel_durable.extension import WAITING

    return WAITS if result.terminal_reason == WAITING else int(result.is_error)


def _stream(message: Output) -> None:
    print(encode_output(message).decode(), flush=True)


def _warn(text: str) -> None:
    print(f"Warning: {text}", file=sys.stderr, flush=True)


def work_(once: Annotated[bool, Option("--once", help="end when there is nothing to take up")] = False,
          jobs: Annotated[int, Option(min=1, help="at most so many at once")] = 2,
          every: Annotated[float, Option(min=0.1, help="seconds between two looks")] = 2.0) -> int:
    from kernel_durable.working import work

    return _with_engine(lambda used: work(used, state_of, once=once, jobs=jobs, every=every))


# -- approvals -------------------------------------------------------------------------------------------------------------
approvals = typer.Typer(add_completion=False, no_args_is_help=True, help="Questions of durable runs.")


async def _questions(used: StepEngine) -> list[dict[str, Any]]:
    return [q for info in await used.runs(done=False) for q in questions(info)]


async def _question(used: StepEngine, name: str) -> dict[str, Any]:
    found = [q for q in await _questions(used) if q["id"].startswith(name)] if name else []
    if len(found) != 1:
        raise UsageError(f"there is no question {name!r}" if not found else f"several questions begin with {name!r}",
                         hint="kernel durable approvals list shows them")
    return found[0]


@approvals.command("list", help="The questions that wait for an answer.")
def approvals_list(all_: Annotated[bool, Option("--all", help="answered ones, too")] = False, json_: Json = False) -> int:
    found = [q for q in _with_engine(_questions) if all_ or q["answer"] is None]
    if json_:
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return 0
    for q in found:
        answer = f"  [{q['answer']['behavior']}]" if q["answer"] else ""
        print(f"{q['id']}  {q['question']['kind']}: {q['question']['tool']} {_words(json.dumps(q['question']['input']))}{answer}")
    print(f"{len(found)} questions" if found else "No questions wait for an answer.")
    return 0


@approvals.command("show", help="One question, whole.")
def approvals_show(question: str, json_: Json = False) -> int:
    found = _with_engine(lambda used: _question(used, question))
    print(json.dumps(found, indent=1, ensure_ascii=False) if json_ else "\n".join(
        [f"{found['id']}  of run {found['run']}", f"{found['question']['kind']}: {found['question']['tool']}",
         json.dumps(found["question"]["input"], indent=1, ensure_ascii=False), found["question"]["reason"],
         f"answered: {found['answer']['behavior']}" if found["answer"] else "not answered"]))
    return 0


@approvals.command("answer", help="Answer a question. The run goes on with kernel durable resume, or with a worker.")
def approvals_answer(question: str, answer: Annotated[Literal["allow", "deny"], Argument()],
                     message: Annotated[str, Option(help="for the model, with deny")] = "") -> int:
    async def work(used: StepEngine) -> dict[str, Any]:
        found = await _question(used, question)
        if found["answer"] is not None:
            raise DurableError(f"the question {found['id']} is answered already: {found['answer']['behavior']}")
        await used.send(found["run"], found["name"], {"behavior": answer, **({"message": message} if message else {})})
        return found

    found = _with_engine(work)
    print(f"{found['id']}: {answer}. The run goes on with: kernel durable resume {found['run']}")
    return 0


# -- the rest --------------------------------------------------------------------------------------------------------------
def prune_(days: Annotated[float, Option(min=0, help="over for at least so many days")] = 30.0, json_: Json = False) -> int:
    count = _with_engine(lambda used: used.prune(time.time() - days * 86_400))
    print(json.dumps({"forgotten": count}) if json_ else f"{count} runs forgotten.")
    return 0


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _words(prompt: Any) -> str:
    said = prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False)
    line = "".join(c if c.isprintable() else " " for c in " ".join(said.split()))
    return line if len(line) <= 80 else f"{line[:79]}…"
