"""The command handler: a shell line or a program, with the documented environment (hooks contract, sections 6.2 and 9)."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from kernel import Event, ToolError, env_switch
from kernel_command_hooks.answer import Ran
from kernel_command_hooks.facts import row
from kernel_command_hooks.handlers import Command, Handler
from kernel_command_hooks.process import GRACE_S, Child

if TYPE_CHECKING:
    from kernel import Session


class Call(Struct):
    """One run of one handler. ``payload``: the event as one line of JSON. ``timeout`` in seconds.

    ``progress`` is called with (stdout, stderr) once a second while a command prints; ``None`` where nobody listens.
    """

    handler: Handler
    event: Event
    session: Session
    payload: bytes
    timeout: float
    grace: float = GRACE_S
    progress: Callable[[bytes, bytes], None] | None = None


PLACEHOLDER = re.compile(r"\$\{(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT|CLAUDE_PLUGIN_DATA)\}")
USER_CONFIG = re.compile(r"\$\{user_config\.([A-Za-z_][A-Za-z0-9_]*)\}")

_SAFE_TEXT = re.compile(r"[\w./ @%+=:,-]*")
"""Values that a shell reads as they stand. Others are left to the shell, which takes them from the environment: a folder
named ``$(x)`` must not become code."""

_ENV_FILE = "command-hooks.env-file"
_ENVIRONMENT = "command-hooks.environment"
_MOVING = ("TRACEPARENT", "TRACESTATE")
"""Variables that change while a session runs."""
_OWN = ("CLAUDE_ENV_FILE", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_EFFORT")
_OWN_PREFIXES = ("OTEL_", "CLAUDE_PLUGIN_OPTION_")
CREDENTIALS = frozenset((
    "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_CUSTOM_HEADERS ANTHROPIC_FOUNDRY_API_KEY CLAUDE_CODE_OAUTH_TOKEN "
    "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_BEARER_TOKEN_BEDROCK GOOGLE_APPLICATION_CREDENTIALS "
    "AZURE_CLIENT_SECRET OPENAI_API_KEY GEMINI_API_KEY").split())
"""Removed with ``CLAUDE_CODE_SUBPROCESS_ENV_SCRUB=1``."""


class CannotRun(Exception):
    """The handler cannot be started; the text says why and what to do."""


async def run(call: Call) -> Ran:
    """Run the command to its end or its timeout."""
    spec = call.handler.spec
    assert isinstance(spec, Command)
    places = _places(call)
    try:
        command = _exec_form(spec, call, places) if spec.args is not None else _shell_form(spec, call, places)
        where, env = working_directory(call), environment(call, places)
        child = Child(_confined(command, call, where, env), payload=call.payload, cwd=where, env=env)
    except (CannotRun, ToolError) as error:
        return Ran(code=None, error=str(error), unusable=True)
    except (OSError, ValueError) as error:  # ValueError: a null byte in an argument
        reason = getattr(error, "strerror", None) or str(error)
        return Ran(code=None, unusable=True, error=f"Failed with non-blocking status code: could not be started: {reason}"
                                                    f" ({spec.command!r})")
    with _Progress(child, call.progress):
        ended = await child.wait(call.timeout, call.grace)
    if ended.timed_out:
        return Ran(code=None, timed_out=True, timeout=call.timeout)
    code = ended.code if ended.code is None or ended.code >= 0 else 128 - ended.code
    return Ran(code=code, stdout=decode(ended.stdout), stderr=decode(ended.stderr), cut=ended.cut)


def _confined(command: list[str], call: Call, where: str, env: dict[str, str]) -> list[str]:
    """Inside the session's sandbox, if that one confines hooks; by the contract they run with the user's rights."""
    sandbox = call.session.sandbox
    if sandbox is None:
        return command
    theirs = [path for name in ("CLAUDE_ENV_FILE", "CLAUDE_PLUGIN_DATA") if (path := env.get(name)) and os.path.exists(path)]
    return sandbox.wrap(command, cwd=where, purpose="hook", writable=theirs)


def decode(data: bytes) -> str:
    """UTF-8 with replacement, without a leading byte order mark."""
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def working_directory(call: Call) -> str:
    """The session's directory; the project's, then the home directory, where it is gone."""
    return next((d for d in (call.event.cwd, call.session.project_root) if os.path.isdir(d)), os.path.expanduser("~"))


# -- the command -------------------------------------------------------------------------------------------------------
def _places(call: Call) -> dict[str, str]:
    places = {"CLAUDE_PROJECT_DIR": call.session.project_root}
    home = call.handler.home
    if home is not None:
        home.make_data()
        places |= {"CLAUDE_PLUGIN_ROOT": home.root, "CLAUDE_PLUGIN_DATA": home.data}
    return places


def _exec_form(spec: Command, call: Call, places: dict[str, str]) -> list[str]:
    options = call.handler.home.options if call.handler.home else None

    def option(match: re.Match[str]) -> str:
        if options is None:
            return match[0]
        if match[1] not in options:
            raise CannotRun(f"the option {match[1]!r} of plugin {call.handler.home.id} has no value; "  # type: ignore[union-attr]
                            "set it in pluginConfigs")
        return option_text(options[match[1]])

    def fill(text: str) -> str:
        return USER_CONFIG.sub(option, PLACEHOLDER.sub(lambda m: places.get(m[1], m[0]), text))

    return [fill(spec.command), *map(fill, spec.args or ())]


def _shell_form(spec: Command, call: Call, places: dict[str, str]) -> list[str]:
    if call.handler.home is not None and (used := USER_CONFIG.search(spec.command)):
        raise CannotRun(f"{call.handler.label} uses {used[0]} in a shell command, where its value could become code; give "
                        f"'args' (then it is replaced), or read $CLAUDE_PLUGIN_OPTION_{used[1].upper()}")
    if spec.shell == "powershell" or (spec.shell is None and sys.platform == "win32"):
        if re.search(r"\$CLAUDE_PROJECT_DIR\b", spec.command):
            call.session.debug(f"{call.handler.label}: $CLAUDE_PROJECT_DIR is no PowerShell variable; put its name into braces")
        text = PLACEHOLDER.sub(lambda m: f"${{env:{m[1]}}}", spec.command)
        return ["pwsh", "-NoProfile", "-NonInteractive", "-Command", text]
    text = PLACEHOLDER.sub(lambda m: v if (v := places.get(m[1])) and _SAFE_TEXT.fullmatch(v) else m[0], spec.command)
    prefix = os.environ.get("CLAUDE_CODE_SHELL_PREFIX")
    if prefix:
        text = f"{prefix} {shlex.quote(text)}"
    return ["bash" if spec.shell == "bash" else "/bin/sh", "-c", text]


# -- the environment ---------------------------------------------------------------------------------------------------
def environment(call: Call, places: dict[str, str]) -> dict[str, str]:
    """The host's environment and what section 9 adds and takes away."""
    session, event = call.session, call.event
    env = {**_inherited(session), **places, "CLAUDE_CODE_SESSION_ID": session.id}
    for name in _MOVING:
        if value := session.environment.get(name) or os.environ.get(name):
            env[name] = value
    effort = (event.effort or {}).get("level") or session.effort
    if effort:
        env["CLAUDE_EFFORT"] = effort
    if call.handler.home is not None:
        env |= {f"CLAUDE_PLUGIN_OPTION_{k.upper()}": option_text(v) for k, v in call.handler.home.options.items()}
    if row(event.event_name).env_file:
        env["CLAUDE_ENV_FILE"] = env_file(session)
    return env


def _inherited(session: Session) -> dict[str, str]:
    """What all handlers get from the host. Read once per configuration: it is a tenth of the time to start a handler."""
    kept: dict[str, str] | None = session.root.plugin_state.get(_ENVIRONMENT)
    if kept is None:
        scrub = env_switch("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB")
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(_OWN_PREFIXES) and name not in _OWN and not (scrub and name in CREDENTIALS)}
        kept |= {"CLAUDECODE": "1", "CLAUDE_CODE_CHILD_SESSION": "1", "CLAUDE_PID": str(os.getpid())}
        session.root.plugin_state[_ENVIRONMENT] = kept
    return kept


def forget_environment(session: Session) -> None:
    """Settings changed, and with them perhaps the environment."""
    session.root.plugin_state.pop(_ENVIRONMENT, None)


def option_text(value: object) -> str:
    """An option as text: Booleans as ``true`` and ``false``, lists and numbers as JSON."""
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def env_file(session: Session) -> str:
    """The script that runs before every later Bash command; handlers append ``export`` lines. Made at first use.

    The path stands in ``session.environment["CLAUDE_ENV_FILE"]``, where the Bash tool finds it.
    """
    path = session.root.plugin_state.get(_ENV_FILE)
    if not isinstance(path, str):
        import tempfile

        handle, path = tempfile.mkstemp(prefix="kernel-env-", suffix=".sh")
        os.close(handle)
        session.root.plugin_state[_ENV_FILE] = session.environment["CLAUDE_ENV_FILE"] = path
    return path


def drop_env_file(session: Session) -> None:
    """Forget what handlers exported: the session is over, was cleared or resumed."""
    path = session.root.plugin_state.pop(_ENV_FILE, None)
    if isinstance(path, str):
        session.environment.pop("CLAUDE_ENV_FILE", None)
        try:
            os.unlink(path)
        except OSError:
            pass


class _Progress:
    """Calls back once a second while the child prints something new."""

    def __init__(self, child: Child, callback: Callable[[bytes, bytes], None] | None) -> None:
        self._child, self._callback = child, callback
        self._seen = (b"", b"")

    def __enter__(self) -> None:
        if self._callback is not None:
            import asyncio

            self._loop = asyncio.get_running_loop()
            self._timer = self._loop.call_later(1.0, self._tick)

    def _tick(self) -> None:
        output = self._child.output
        if output != self._seen and self._callback is not None:
            self._seen = output
            self._callback(*output)
        self._timer = self._loop.call_later(1.0, self._tick)

    def __exit__(self, *exc: object) -> None:
        if self._callback is not None:
            self._timer.cancel()
