"""Plays one case of the contract's ``cases/hooks.yaml`` in this process and checks what it says.

The notation is explained at the head of that file. What a case says in words (``action``, ``steps``, ``outcome``) is
driven and checked by functions named after it in ``test_hooks_cases.py``.
"""

from __future__ import annotations

import json
import os
import re
import time
from importlib.util import find_spec
from typing import Any

import anyio
import msgspec
from kernel_command_hooks.hooks import CALLBACKS, STATE

from kernel import ANSWERS, EVENTS, Event, PermissionCall, Session, Verdict
from kernel.testing import Run, call, module, text

from .case_hosts import Bridge, Judge, callback
from .conftest import Echo, Server, World, bash

CAN_JUDGE = find_spec("kernel_permissions") is not None and find_spec("kernel_permissions.plugin") is not None
"""Whether the plugin with the permission rules is installed; without it every call is allowed and rules cannot be read."""


class NotDriven(Exception):
    """The case needs something that is not here; the text says what."""


class MissingPlugin(Exception):
    """The case needs a plugin that is not installed."""


def expand(value: Any) -> Any:
    """``<10001 x>`` -> that many x, everywhere in a value."""
    if isinstance(value, str):
        return re.sub(r"<(\d+) (.)>", lambda m: m[2] * int(m[1]), value)
    if isinstance(value, dict):
        return {k: expand(v) for k, v in value.items()}
    return [expand(v) for v in value] if isinstance(value, list) else value


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Judged:
    """The session's policy, with a classifier of auto mode that says what the case wants."""

    auto = True

    def __init__(self, policy: Any, word: str) -> None:
        self._policy, self._word = policy, word

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    async def classify(self, call: PermissionCall) -> Verdict | None:
        if call.hook == "ask":
            return None  # a person is meant
        if self._word == "allow":
            return Verdict(behavior="allow", reason_type="classifier")
        return Verdict(behavior="deny", reason_type="classifier", message=f"the classifier says {self._word}",
                       undecided=self._word != "deny")


class Play:
    """One case that is being played. ``run`` and ``session`` are there once it was driven."""

    def __init__(self, world: World, server: Server, case: dict[str, Any]) -> None:
        self.world, self.server = world, server
        case = json.loads(json.dumps(case).replace("/repo", str(world.cwd)))
        self.given, self.when, self.then = expand(case["given"]), expand(case["when"]), expand(case["then"])
        self.id = case["id"]
        self.kind = self.given.get("session", {}).get("kind", "interactive")
        self.options: dict[str, Any] = {"print_mode": self.kind == "print"}
        self.tools: dict[str, Echo] = {}
        self.asked: list[str] = []
        self.answer = {"behavior": "deny", "message": "the user says no"}
        self.fired: list[str] = []
        self.in_process: list[tuple[str, str, Any]] = []
        """Implementations of installed distributions: name, hook, function."""
        self.components: dict[str, dict[str, list[Any]]] = {}
        """The hooks of skills and agents of the project, by ``skill:name`` and ``agent:name``; see ``case_frontmatter``."""
        self.session: Session = None  # type: ignore[assignment]
        self.run: Run | None = None
        self.merged: Any = None
        self.turns: list[Any] = []
        self.verdicts: dict[str, dict[str, Any]] = {}
        """What the evaluating model does, by hook id."""
        self.bridge: Bridge | None = None
        self.callbacks: dict[str, list[dict[str, Any]]] = {}
        self.classifier: str | None = None
        """What the classifier of auto mode says."""
        self.called: list[tuple[dict[str, Any], str | None]] = []
        """What callbacks of the embedding program were handed."""
        self.real: list[str] = []
        """Installed plugins whose tools take the place of the ones that only remember."""

    # -- given --------------------------------------------------------------------------------------------------------------
    def lay_out(self) -> None:
        os.environ.update({k: str(v) for k, v in self.given.get("env", {}).items()})
        self._session_options()
        scopes: dict[str, dict[str, Any]] = {k: dict(v) for k, v in self.given.get("settings", {}).items()}
        plugins: dict[str, dict[str, Any]] = {}
        for values in scopes.values():
            for word in re.findall(r'"command": "(\w+)"', json.dumps(values.get("hooks", {}))):
                self.world.program(word, f"#!/bin/sh\n{self.world.recording(word)}\n")
        self._permissions(scopes)
        for hook in self.given.get("hooks", ()):
            self._hook(hook, scopes, plugins)
        for path, content in self.given.get("files", {}).items():
            place, _, inner = path.partition("/")
            if place.startswith("plugin:"):
                for word in re.findall(r'"command": "(\w+)"', content):
                    self.world.program(word, f"#!/bin/sh\n{self.world.recording(word)}\n")
                plugins.setdefault(place[7:], {})[inner] = content
            elif not path.startswith("/") and not (self.world.cwd / path).exists():
                target = self.world.cwd / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(content)
        for scope, values in scopes.items():
            self.world.settings(scope, **values)
        for name, files in plugins.items():
            plain, _, marketplace = name.partition("@")
            hooks = files.pop("hooks", None)
            self.world.plugin(plain, {**files, **({"hooks/hooks.json": {"hooks": hooks}} if hooks else {})},
                              marketplace or "inline")
        trusted = self.given.get("session", {}).get("trusted", True)
        (self.world.config / ".claude.json").write_text(json.dumps(
            {"projects": {str(self.world.cwd): {"hasTrustDialogAccepted": trusted}}}))

    def _session_options(self) -> None:
        for flag in self.given.get("session", {}).get("flags", ()):
            name, _, value = flag.partition(" ")
            known: dict[str, dict[str, Any]] = {
                "--init": {"setup_trigger": "init"}, "--include-hook-events": {"include_hook_events": True},
                "--permission-mode": {"permission_mode": value}, "--bare": {"extra": {"bare": True}},
                "--output-format": {"output_format": value, "verbose": True}, "--agent": {"extra": {"agent": value}}}
            if name not in known:
                raise NotDriven(f"the flag {name} belongs to another plugin")
            self.options |= known[name]

    def _permissions(self, scopes: dict[str, dict[str, Any]]) -> None:
        given = self.given.get("permissions")
        if not CAN_JUDGE and (given or any("if" in h.get("handler", {}) for h in self.given.get("hooks", ()))):
            raise MissingPlugin("the plugin permissions is not here")
        if given is None:
            return  # all tools of the case are allowed, see open()
        if given.get("mode") == "auto":
            self.classifier = given["classifier"]
        else:
            self.options["permission_mode"] = given.get("mode", "default")
        scopes.setdefault("user", {})["permissions"] = {k: given[k] for k in ("allow", "ask", "deny") if k in given}

    def _hook(self, hook: dict[str, Any], scopes: dict[str, dict[str, Any]], plugins: dict[str, dict[str, Any]]) -> None:
        source, event = hook.get("source", "project"), hook["event"]
        if source.startswith(("sdk", "inproc")):
            self._in_process(hook)
            return
        handler = self._handler(hook, plugins)
        group = {"hooks": [handler], **({"matcher": hook["matcher"]} if "matcher" in hook else {})}
        kind, _, name = source.partition(":")
        if kind == "plugin":
            plugins.setdefault(name, {}).setdefault("hooks", {}).setdefault(event, []).append(group)
        elif kind in ("skill", "agent"):
            self.components.setdefault(source, {}).setdefault(event, []).append(group)
        else:
            scopes.setdefault(source, {}).setdefault("hooks", {}).setdefault(event, []).append(group)

    def _handler(self, hook: dict[str, Any], plugins: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """The handler as configured; what it runs keeps its input and does what the case says."""
        does, id = dict(hook.get("does", {})), hook["id"]
        handler = {"type": "command", **hook.get("handler", {})}
        if handler["type"] == "http":
            self.server.answer(f"/{id}", does.get("json", does.get("body", "").encode()), does.get("status", 200))
            if does.get("sleep_s"):
                self.server.slow.add(f"/{id}")
            handler["url"] = re.sub(r"^http://localhost:80\d\d/\w+$", f"{self.server.url}/{id}", handler["url"])
        elif handler["type"] in ("prompt", "agent"):
            self.verdicts[id] = does
        elif handler["type"] == "mcp_tool":
            self.bridge = Bridge(self.world, id, does)
        elif handler["type"] == "command" and "command" not in handler:
            handler["command"] = self._script(id, does)
        elif handler["type"] == "command":
            self._own_command(hook, handler, plugins)
        return handler

    def _script(self, id: str, does: dict[str, Any]) -> str:
        return self.world.handler(id, exit=does.get("exit", 0), stdout=does.get("stdout", ""), json_out=does.get("json"),
                                  stderr=does.get("stderr", ""), sleep_s=does.get("sleep_s", 0),
                                  killed_by=does.get("killed_by", ""), read_stdin=does.get("stdin") != "ignored")

    def _own_command(self, hook: dict[str, Any], handler: dict[str, Any], plugins: dict[str, dict[str, Any]]) -> None:
        """A command that the case spells out: the programs that it names exist, and that it ran is recorded."""
        world, id = self.world, hook["id"]
        world.program("argv-dump", f"""#!/usr/bin/env python3
import json, os, sys
json.dump(sys.argv[1:], open("argv.json", "w"))
json.dump(dict(os.environ), open({str(world.log / "dump.json")!r}, "w"))
""")
        world.program("json-get", "#!/usr/bin/env python3\nimport json, sys\nprint(json.load(sys.stdin)[sys.argv[1]])\n")
        for word in ("notify", "review"):
            world.program(word, "#!/bin/sh\ntrue\n")
        if "h.sh" in json.dumps(handler):
            self._script(id, hook.get("does", {}))
            content = (world.bin / f"handler-{id}").read_text()
            if hook.get("source", "").startswith("plugin:"):
                plugins.setdefault(hook["source"][7:], {})["h.sh"] = content
            else:
                target = world.cwd / "my dir" / "h.sh"
                target.parent.mkdir(exist_ok=True)
                target.write_text(content)
                target.chmod(0o755)
        elif "args" not in handler and "spawn" not in hook.get("does", {}):
            handler["command"] = f"{world.recording(id)}; {handler['command']}"

    def _in_process(self, hook: dict[str, Any]) -> None:
        does, event, id = hook.get("does", {}), hook["event"], hook["id"]
        if hook["source"] == "sdk":
            entry = {k: v for k, v in {"matcher": hook.get("matcher"), **hook.get("handler", {})}.items() if v is not None}
            self.callbacks.setdefault(event, []).append(
                {**entry, "label": id, "callback": callback(self.world, id, does, self.called)})
            return

        def implementation(event: Event) -> Any:
            with (self.world.log / "ran").open("a") as log:
                log.write(f"{id}\n")
            if "note" in hook.get("handler", {}):
                event.tool_input["command"] = "echo hacked"  # type: ignore[attr-defined]
            return ANSWERS[type(event).__name__].from_wire(does["json"]) if "json" in does else None
        self.in_process.append((f"in-process-{id}", snake(event), implementation))

    # -- when ---------------------------------------------------------------------------------------------------------------
    def tool(self, name: str, outcome: dict[str, Any]) -> Echo:
        """The tool of a call; repeated calls share it."""
        if name not in self.tools:
            result = outcome.get("result")
            aliases = ("Task",) if name == "Agent" else ()
            self.tools[name] = bash(result or "ran") if name == "Bash" else Echo(name, result=result, aliases=aliases)
        self.tools[name].error = outcome.get("error")
        return self.tools[name]

    def calls(self, *calls: dict[str, Any]) -> list[Any]:
        """One assistant message with these calls."""
        for number, one in enumerate(calls):
            if one["name"] != "NoSuchTool":
                self.tool(one["name"], one)
            one.setdefault("id", f"toolu_{len(self.turns)}_{number}")
        return [call(c["name"], c["id"], **c["input"]) for c in calls]

    def open(self, turns: list[Any] | None = None) -> Session:
        """Open the session with everything that was laid out."""
        def observe(event: Event) -> None:
            self.fired.append(event.event_name)
        hooks = {"observer": module(**{snake(name): observe for name in EVENTS})}
        for name, hook, implementation in self.in_process:
            hooks[name] = module(**{hook: implementation})
        self.turns = turns if turns is not None else self.turns
        for name in ("Bash", "Read", "Write", "Edit", "WebFetch"):
            self.tool(name, {"result": self.tools[name].result["stdout"] if name == "Bash" else self.tools[name].result,
                             "error": self.tools[name].error} if name in self.tools else {})
        if "permissions" not in self.given:
            self.options.setdefault("allowed_tools", list(self.tools))
        installed = [*(["permissions"] if CAN_JUDGE else []), *self.real]
        real = {"tools-files": ("Read", "Write", "Edit"), "tools-shell": ("Bash",), "tools-tasks": ("TaskCreate", "TaskUpdate"),
                "tools-user": ("ExitPlanMode", "AskUserQuestion")}
        replaced = [name for plugin in self.real for name in real.get(plugin, ())]
        tools = [t for name, t in self.tools.items() if name not in replaced]
        self.session = self.world.start(self.turns, tools=tools, hooks=hooks, installed=installed,
                                        model=Judge(self.world, self.turns, self.verdicts), **self.options)
        self.session.plugin_state |= {"mcp": self.bridge} if self.bridge else {}
        self.session.plugin_state |= {CALLBACKS: self.callbacks} if self.callbacks else {}
        if self.kind != "print":
            self.session.asker = self._ask
        if self.classifier is not None:
            self.session.policy = Judged(self.session.policy, self.classifier)
            self.session.state = msgspec.structs.replace(self.session.state, permission_mode="auto")
        return self.session

    async def _ask(self, call: PermissionCall, verdict: Verdict, id: str) -> dict[str, Any]:
        self.asked.append(f"{call.tool.name} {verdict.message}")
        return self.answer

    async def drive(self) -> None:
        """Do what ``when`` says, where it says it in data."""
        when = self.when
        if "tool_call" in when or "tool_calls" in when:
            calls = when.get("tool_calls") or [when["tool_call"]]
            self.open([self.calls(*calls), text("done")])
            self.run = await self.world.prompt("go", self.session)
        elif "prompt" in when:
            turns = [self.calls({"name": "Bash", "input": {"command": "ls"}})] if when["prompt"] == "run ls" else []
            self.open([*turns, text("done")])
            self.run = await self.world.prompt(when["prompt"], self.session)
        elif when.get("event") == "SessionStart" and when["input"]["source"] == "startup":
            self.open([text("done")])
            self.run = await self.world.prompt("go", self.session)
        elif "event" in when:
            self.open([text("done")])
            self.merged = await self.world.fire(self.session, EVENTS[when["event"]], **when["input"])
            await self.settle()
        elif when.get("action") == "end a turn":
            self.open([text("done"), text("more")])
            self.run = await self.world.prompt("go", self.session)
        else:
            raise NotDriven("it is told in words")

    async def settle(self) -> None:
        """Wait until no handler runs in the background."""
        deadline = time.monotonic() + 20
        state = self.session.plugin_state.get(STATE)
        background = state._running.background if state is not None and state._running is not None else None
        while background and (background._killed or background._finished) and time.monotonic() < deadline:  # noqa: ASYNC110
            await anyio.sleep(0.02)

    # -- then ---------------------------------------------------------------------------------------------------------------
    @property
    def model_saw(self) -> str:
        """All texts that the model was sent."""
        return "\n".join(_strings([r["messages"] for r in self.world.kit.model.requests]))

    @property
    def user_saw(self) -> str:
        return "\n".join([*self.world.notices(), *_strings(self.run.result.result if self.run else ""), *self.asked])

    def check(self) -> None:
        """All checks of ``then`` that are data.

        :raises AssertionError: one of them does not hold; the text names it.
        """
        for key, expected in self.then.items():
            function = getattr(self, f"_check_{key}", None)
            if function is not None:
                happened = f"ran: {self.world.ran()}\nnotices: {self.world.notices()}\nasked: {self.asked}"
                assert function(expected), f"{self.id}: {key}: {expected}\n{happened}"

    def _check_ran(self, ids: list[str]) -> bool:
        asked = {path.strip("/") for path, _, _ in self.server.seen}
        tried = {id for id in ids if any("could not be asked" in n for n in self.world.notices())}
        return set(ids) <= {*self.world.ran(), *asked, *tried}

    def _check_not_ran(self, ids: list[str]) -> bool:
        return not set(ids) & {*self.world.ran(), *(path.strip("/") for path, _, _ in self.server.seen)}

    def _check_run_count(self, counts: dict[str, int]) -> bool:
        return all(self.world.ran().count(id) == n for id, n in counts.items())

    def _tool_of_case(self) -> Echo:
        calls = self.when.get("tool_calls") or [self.when["tool_call"]]
        return self.tools[calls[0]["name"]]

    def _check_executed(self, expected: bool) -> bool:
        return bool(self._tool_of_case().inputs) is expected

    def _check_executed_input(self, expected: dict[str, Any]) -> bool:
        return self._tool_of_case().inputs == [expected]

    def _check_prompted(self, expected: bool) -> bool:
        return bool(self.asked) is expected

    def _check_model_sees(self, texts: list[str]) -> bool:
        return all(t in self.model_saw for t in texts)

    def _check_model_sees_not(self, texts: list[str]) -> bool:
        return not any(t in self.model_saw for t in texts)

    def _check_user_sees(self, texts: list[str]) -> bool:
        names = {"<hook name>": "hook error"}
        return all(names.get(t, t) in self.user_saw for t in texts)

    def _check_user_sees_not(self, texts: list[str]) -> bool:
        return not any(t in self.user_saw for t in texts)

    def _check_notice(self, expected: str) -> bool:
        return any("hook error" in n for n in self.world.notices()) is (expected == "hook_error")

    def _check_notice_text(self, expected: str) -> bool:
        return any(expected in n for n in self.world.notices())

    def _check_turn(self, expected: str) -> bool:
        requests = len(self.world.kit.model.requests)
        if "tool_call" in self.when or "tool_calls" in self.when:
            return (requests > 1) is (expected == "continues")
        if any(h["event"] in ("Stop", "SubagentStop") for h in self.given.get("hooks", ())):
            return requests > 1 if expected == "continues" else requests < 12
        return True

    def _check_fired(self, names: list[str]) -> bool:
        return set(names) <= set(self.fired)

    def _check_not_fired(self, names: list[str]) -> bool:
        return not set(names) & set(self.fired)

    def _inputs(self) -> list[dict[str, Any]]:
        return [i for h in self.given.get("hooks", ()) for i in self.world.inputs(h["id"])]

    def _check_input_has(self, expected: dict[str, Any]) -> bool:
        return any(all(_fits(i.get(k), v) for k, v in expected.items()) for i in self._inputs())

    def _check_input_lacks(self, names: list[str]) -> bool:
        return bool(self._inputs()) and not any(set(names) & i.keys() for i in self._inputs())

    def _env(self) -> dict[str, str]:
        for hook in self.given.get("hooks", ()):
            if (self.world.log / f"{hook['id']}.env").exists():
                return self.world.env(hook["id"])
        found: dict[str, str] = json.loads((self.world.log / "dump.json").read_text())
        return found

    def _check_env_has(self, expected: Any) -> bool:
        env = self._env()
        if isinstance(expected, list):
            return all(n in env for n in expected)
        return all(env.get(k) == v for k, v in expected.items())

    def _check_env_lacks(self, names: list[str]) -> bool:
        return not set(names) & self._env().keys()


def _fits(value: Any, expected: Any) -> bool:
    if expected == "<non-empty>":
        return bool(value)
    return isinstance(value, dict) if expected == "<object>" else bool(value == expected)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [s for v in inner for s in _strings(v)]


