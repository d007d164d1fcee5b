"""One conversation's durable run: begun with the first step of a prompt, over with its end, left where nobody can go on.

Keys. A run's steps are counted from answer to answer of its model: ``3/model`` is the fourth answer, ``4/tool:ID`` a call of
that answer, ``4/hooks:PreToolUse:ID:0`` what hooks said to it. What happens inside a step stands under it: the first answer of a
subagent that the call started is ``4/tool:ID/agent0/0/model``. Calls that run side by side have ids, all else comes in a fixed
order.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from kernel_durable import values
from kernel_durable.config import config, engine
from kernel_durable.engine import DurableError

if TYPE_CHECKING:
    from kernel import Session
    from kernel_durable.engine import Run, StepEngine

STATE = "kernel_durable"
SCOPE: ContextVar[str] = ContextVar("kernel_durable_scope", default="")
"""The step that is being done, as the beginning of the keys of what happens in it; empty in the loop itself."""
NOT_SAID = ("prompt", "resume", "continue_session", "fork_session", "session_id", "resume_at", "front_end", "input_format",
            "output_format", "include_partial_messages", "replay_user_messages", "setup_trigger")
"""Options that are of a process and not of a run."""


class Agent:
    """Where one context stands: the conversation's, or a subagent's. ``path``: the beginning of its keys."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.answers = 0
        """Answers of its model so far."""
        self.counts: dict[str, int] = {}

    def scope(self) -> str:
        """The beginning of the keys of what happens now."""
        inside = SCOPE.get()
        return inside if len(inside) > len(self.path) and inside.startswith(self.path) else f"{self.path}{self.answers}/"

    def next(self, kind: str) -> str:
        """The key of the next step of a kind that comes in a fixed order."""
        key = self.scope() + kind
        return f"{key}:{self.counts.get(key, 0)}"

    def count(self, kind: str) -> None:
        """One more step of that kind."""
        key = self.scope() + kind
        self.counts[key] = self.counts.get(key, 0) + 1


class Keeper:
    """What the middleware of a conversation and its subagents shares."""

    def __init__(self, root: Session) -> None:
        self.root = root
        self.config = config(root.settings)
        self.engine: StepEngine = engine(root.settings)
        self.run: Run | None = None
        self.used: set[str] = set()
        self.waiting = ""
        """The question for whose answer the run is left."""
        self.failure: DurableError | None = None
        self.nobody: set[str] = set()
        """Calls that nobody was there to be asked about."""
        self._over: str | None = None
        self._agents: dict[str, int] = {}
        self._lock = anyio.Lock()

    # -- the run -----------------------------------------------------------------------------------------------------------
    async def current(self) -> Run | None:
        """The run that is on, begun where it is not; ``None`` outside of runs.

        :raises DurableError: it cannot be begun, or it cannot go on here.
        """
        asked = self.root.asked
        if asked is None or self._over == asked[1]:
            return None
        if self.run is None:
            async with self._lock:
                if self.run is None and self.failure is None:
                    self.run = await self._begun(*asked)
        if self.failure is not None:
            raise self.failure
        return self.run

    async def _begun(self, prompt: Any, uuid: str) -> Run | None:
        try:
            return await self._begin(prompt, uuid)
        except Exception as error:
            self.fail(error if isinstance(error, DurableError) else DurableError(
                f"a durable run cannot be begun: {type(error).__name__}: {str(error).splitlines()[0]}", context=self.engine.shown,
                hint="kernel.durable.database says where runs are kept"))
            return None

    async def _begin(self, prompt: Any, uuid: str) -> Run:
        root = self.root
        if not root.transcript.kept:
            raise DurableError("a durable run needs its transcript, and none is kept",
                               hint="leave out --no-session-persistence, and load a store (plugin sessions)")
        said = msgspec.to_builtins(root.options, enc_hook=str)
        spec = {"session": root.id, "uuid": uuid, "prompt": prompt, "cwd": str(root.options.cwd), "plugins": plugins(root),
                "options": {name: value for name, value in said.items() if name not in NOT_SAID}}
        return await self.engine.begin(f"{root.id}:{uuid}", msgspec.json.decode(values.text(spec)))

    def adopt(self, run: Run) -> None:
        """Go on with a run of another process."""
        self.run = run

    async def end(self, result: dict[str, Any]) -> None:
        run, self.run = self.run, None
        self._over = self.root.asked[1] if self.root.asked else None
        self.used.clear()
        self._agents.clear()
        if run is not None:
            await run.finish(result)

    async def leave(self) -> None:
        run, self.run = self.run, None
        self._over = self.root.asked[1] if self.root.asked else None
        if run is not None:
            await run.leave()

    # -- steps -------------------------------------------------------------------------------------------------------------
    async def record(self, run: Run, key: str, value: Any) -> None:
        """Keep what a step came to.

        :raises DurableError: another process has the run, or nothing can be kept; the turn is ended.
        """
        try:
            await run.record(key, values.text(value))
        except Exception as error:
            failure = error if isinstance(error, DurableError) else DurableError(
                f"the step {key} cannot be recorded: {type(error).__name__}: {error}", context=self.engine.shown)
            self.fail(failure)
            raise failure from error
        self.used.add(key)

    def found(self, run: Run, key: str) -> dict[str, Any] | None:
        """What the step came to in a process before this one."""
        value = run.recorded.get(key)
        if value is None:
            return None
        self.used.add(key)
        return values.read(value)

    def fail(self, error: DurableError) -> None:
        """The run cannot go on here: every later step is refused, and so the turn ends; the run stays as it is."""
        self.failure = self.failure or error

    def differs(self, what: str) -> DurableError:
        """The loop goes another way than it went before."""
        run = self.run.id if self.run else "?"
        now, then = plugins(self.root), dict(self.run.spec.get("plugins", {})) if self.run else {}
        changed = sorted(f"{name} {then.get(name, 'missing')} -> {now.get(name, 'missing')}"
                         for name in {*now, *then} if now.get(name) != then.get(name))
        why = f"other plugins than then: {', '.join(changed)}" if changed else "the code of a plugin or of the kernel has changed"
        error = DurableError(f"the run does not go the way that was recorded: {what}", context=f"durable run {run}",
                             hint=f"nothing was repeated; {why}. Put back what was there, or go on without its steps: "
                                  f"kernel -p ... --resume {self.root.id}")
        self.fail(error)
        return error

    def agent(self, session: Session) -> Agent:
        """Where that context stands; a new one is named by the step that it was made in."""
        found: Agent | None = session.plugin_state.get(STATE)
        if found is None:
            path = ""
            if session.parent is not None:
                scope = SCOPE.get()
                number = self._agents.get(scope, 0)
                self._agents[scope] = number + 1
                path = f"{scope}agent{number}/"
            found = session.plugin_state[STATE] = Agent(path)
            if self.run is not None:
                self.mark_ran(session, found)
        return found

    def mark_ran(self, session: Session, agent: Agent) -> None:
        """Calls whose tools were begun: their checks were passed then, and would see their effects now."""
        assert self.run is not None
        for key, value in self.run.recorded.items():
            call = tool_call(key, agent.path)
            if call is not None:
                session.ran_before[call] = values.read(value)["input"]

    def left_over(self, agent: Agent) -> str:
        """A call of the answer before that was run then and is not now; empty where there is none."""
        assert self.run is not None
        scope = f"{agent.path}{agent.answers}/"
        calls = (tool_call(key, scope, exact=True) for key in self.run.recorded if key not in self.used)
        return next((call for call in calls if call), "")


def tool_call(key: str, scope: str, *, exact: bool = False) -> str | None:
    """The id of the call whose run, or beginning, is kept under that key.

    :param exact: the finished run alone, right in that scope.
    """
    rest = key.removeprefix(scope)
    if not exact:
        rest = rest.partition("/")[2]
    if not key.startswith(scope) or not rest.startswith("tool:") or "/" in rest:
        return None
    call, mark, _ = rest.removeprefix("tool:").partition("?")
    return None if mark and exact else call


def plugins(session: Session) -> dict[str, str]:
    return {p.name: str(p.version) for p in session.plugins.ready}
