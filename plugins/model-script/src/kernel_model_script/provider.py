"""The provider: chooses the turn that answers a request, and plays it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import anyio
from msgspec import Struct, field

from kernel import ModelError, ModelInfo, ModelRequest, Settings, StreamError, StreamEvent, UsageError
from kernel_model_script import play
from kernel_model_script.script import Fail, Script, Turn, load

PREFIX = "script:"
KINDS = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
         404: "not_found_error", 408: "timeout_error", 409: "conflict_error", 413: "request_too_large",
         429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error"}


CUT = Fail(kind="connection_error", message="the script cuts the stream here")


class Playing(Struct):
    """A script that is being played. ``failures``: turn -> how often it has failed."""

    path: Path
    script: Script
    used: set[int] = field(default_factory=set)
    failures: dict[int, int] = field(default_factory=dict)
    answers: int = 0


class ScriptModel:
    """Plays a script in place of a model. Each turn is played once, whichever conversation asks for it.

    The script: ``script:PATH`` as the model, else ``KERNEL_SCRIPT``, else the setting ``kernel.script``.
    """

    name = "script"

    def __init__(self, settings: Settings | None = None, cwd: Path | None = None) -> None:
        self._settings = settings
        self._cwd = cwd or Path.cwd()
        self._playing: dict[str, Playing] = {}

    def resolve(self, model: str) -> ModelInfo | None:
        """The script as a model; its id is ``script:`` and the script's name.

        :raises UsageError: there is no script, or it cannot be used.
        """
        playing = self._find(model)
        facts = playing.script.model
        return ModelInfo(id=PREFIX + playing.script.name, context_window=facts.context_window, max_output=facts.max_output,
                         effort=facts.effort)

    def _find(self, model: str) -> Playing:
        name = model.removeprefix(PREFIX)
        if PREFIX + name in self._playing:
            return self._playing[PREFIX + name]
        path = _path(name, self._settings, self._cwd)
        if path is not None:
            return self._open(path)
        if self._playing:  # another model's name, for a subagent: it plays along
            return next(iter(self._playing.values()))
        raise UsageError("there is no script to play", context="plugin model-script",
                         hint="set KERNEL_SCRIPT or the setting kernel.script, or choose --model script:PATH")

    def _open(self, path: Path) -> Playing:
        for playing in self._playing.values():
            if playing.path == path:
                return playing
        script = load(path)
        if PREFIX + script.name in self._playing:
            script.name = str(path)  # another script of that name is being played
        playing = self._playing[PREFIX + script.name] = Playing(path, script)
        return playing

    async def aclose(self) -> None:
        pass

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
        """See ``ModelProvider.stream``."""
        playing = self._find(request.model)
        number = _choose(playing, request)
        turn = playing.script.turns[number] if number is not None else Turn(text=_ended(playing))
        if number is not None:
            _use(playing, number, turn)
        await anyio.sleep(turn.delay)
        pace = playing.script.pace if turn.pace is None else turn.pace
        sent = 0
        for event in self._events(playing, turn, request, number):
            if turn.cut_after is not None and sent >= turn.cut_after:
                raise _error(CUT, began=sent > 0)
            if pace and event.get("type") == "content_block_delta":
                await anyio.sleep(pace)
            yield event
            sent += 1
        if turn.fail is not None:
            raise _error(turn.fail, began=sent > 0)

    def _events(self, playing: Playing, turn: Turn, request: ModelRequest, number: int | None) -> Iterator[StreamEvent]:
        if isinstance(turn.events, list):
            return iter(turn.events)
        if not turn.answers:
            return iter(())
        playing.answers += 1
        # The length of the history tells the answers of a resumed conversation from those of the first run.
        mark = f"script_{len(request.history)}_{playing.answers if number is None else number + 1}"
        tokens = turn.usage.get("input_tokens")
        return play.events_of(turn, play.blocks_of(turn, request.history, f"toolu_{mark}"), id=f"msg_{mark}_{playing.answers}",
                              model=PREFIX + playing.script.name,
                              prompt_tokens=len(request.history.encode()) // 4 if tokens is None else tokens)


def _path(model: str, settings: Settings | None, cwd: Path) -> Path | None:
    """The script that a model name stands for; ``None`` where nothing names one."""
    if model.endswith((".yaml", ".yml")) or os.sep in model:
        return (cwd / Path(model).expanduser()).resolve()
    given = os.environ.get("KERNEL_SCRIPT", "").strip()
    if given:
        return (cwd / Path(given).expanduser()).resolve()
    for layer, value in (settings or Settings.load(cwd)).by_layer("kernel.script"):
        if isinstance(value, str) and value:
            return Path(layer.directory, Path(value).expanduser()).resolve()
        raise UsageError("expected the path of a script", context=f"{layer.path}, kernel.script")
    return None


def _choose(playing: Playing, request: ModelRequest) -> int | None:
    """The first unused turn whose ``when`` fits; else the first unused one without; ``None`` when there is none."""
    plain: int | None = None
    for number, turn in enumerate(playing.script.turns):
        if number in playing.used:
            continue
        if turn.when is None:
            plain = number if plain is None else plain
        elif play.fits(turn.when, request.history):
            return number
    return plain


def _use(playing: Playing, number: int, turn: Turn) -> None:
    failed = playing.failures[number] = playing.failures.get(number, 0) + 1
    if not turn.repeat and failed >= (turn.fail.times if turn.fail else 1):
        playing.used.add(number)


def _ended(playing: Playing) -> str:
    turns = len(playing.script.turns)
    waiting = turns - len(playing.used)
    if waiting:
        return f"The script {playing.script.name} has no turn for this: {waiting} of its {turns} turns wait for another prompt."
    return f"The script {playing.script.name} has ended after {turns} turn{'s' if turns > 1 else ''}."


def _error(fail: Fail, *, began: bool) -> ModelError:
    kind = fail.kind or (KINDS.get(fail.status or 0) or ("connection_error" if fail.status is None else "api_error"))
    return (StreamError if began else ModelError)(fail.message, kind=kind, status=fail.status, retry_after=fail.retry_after,
                                                  should_retry=fail.should_retry, context="plugin model-script")
