"""``kernel -p --attach``: a run in the process of ``kernel serve``, with print mode's streams, signals and exit codes.

The command line, the folder and the environment go there as they are; prompts are read here, and what the session says is
written here. Next to nothing is imported: of the kernel its errors, and those only where one is met.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from kernel_serve.client import Client, NoServer, Rejected
from kernel_serve.places import default_socket
from kernel_serve.stdin import BadInput, objects, text_prompt
from kernel_serve.stdout import Output, write

INTERRUPTED = 130
TERMINATED = 143

Event = tuple[int, str, bytes]


def main(args: list[str]) -> int:
    """:raises kernel.UsageError: there is no server, or what is asked cannot be done."""
    path, args = taken(args)
    try:
        return Attached(path).run(args)
    except (BadInput, NoServer, Rejected) as error:
        raise _usage(str(error)) from None


def _usage(text: str) -> Exception:
    from kernel import UsageError

    return UsageError(text)


def taken(args: list[str]) -> tuple[str, list[str]]:
    """The socket that ``--attach`` names, and the other arguments."""
    end = args.index("--") if "--" in args else len(args)
    ours = [a for a in args[:end] if a.partition("=")[0] == "--attach"]
    given = ours[-1].partition("=")[2]
    return (os.path.abspath(os.path.expanduser(given)) if given else default_socket(),
            [a for a in args[:end] if a not in ours] + args[end:])


class Attached:
    """One run. Signals are answered in the main thread, on connections of their own."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._id = ""
        self._prompted = False
        self._interrupts = 0
        self._code: int | None = None
        """Set where the run is left before its end."""
        self._fault: Exception | None = None
        """Of what stdin holds."""

    def run(self, args: list[str]) -> int:
        from kernel import __version__

        try:
            cwd = os.getcwd()
        except OSError as error:
            raise _usage(f"the working directory cannot be used: {error.strerror} (change to a folder that exists)") from None
        client = Client(self.path)
        try:
            facts = client.request("POST", "/v1/sessions", {
                "args": args, "cwd": cwd, "environment": dict(os.environ),
                "client": {"version": __version__, "prefix": sys.prefix}})
        except Rejected as error:
            if "result" in error.error:
                write(str(error.error["result"]).encode() + b"\n")
            raise
        self._id = facts["id"]
        signal.signal(signal.SIGINT, self._on_interrupt)
        signal.signal(signal.SIGTERM, self._on_terminate)
        output = Output(facts["output_format"], verbose=facts["verbose"])
        streaming = facts["input_format"] == "stream-json"
        if not streaming:
            self._one_prompt(client, facts)
        elif not facts["init_only"]:
            _beside(self._stream, client)
        self._prompted = True
        events = self._events()
        try:
            return self._show(_ahead(events) if facts["output_format"] == "stream-json" else events, output, facts)
        except OSError as error:
            self._say("DELETE", "")
            if isinstance(error, BrokenPipeError):
                return 1
            raise _usage(f"stdout cannot be written: {error.strerror}") from None

    # -- in --------------------------------------------------------------------------------------------------------------------
    def _one_prompt(self, client: Client, facts: dict[str, Any]) -> None:
        try:
            prompt = text_prompt(facts["prompt"])
        except BadInput:
            self._say("DELETE", "")
            raise
        if prompt is None:
            client.request("POST", f"/v1/sessions/{self._id}/end", {})
        else:
            client.request("POST", f"/v1/sessions/{self._id}/messages", {"prompt": prompt, "end": True})

    def _stream(self, client: Client) -> None:
        """All that comes on stdin, to its end; in a thread."""
        try:
            for value in objects():
                kind = str(value.get("type"))
                if kind == "user" or kind.startswith("control_"):
                    self._post(client, "messages" if kind == "user" else "control", value)
        except (BadInput, NoServer) as error:
            self._fault = error
        try:
            self._post(client, "end", {})
        except NoServer:
            pass  # which the events tell

    def _post(self, client: Client, what: str, value: dict[str, Any]) -> None:
        """What cannot be taken is dropped, as print mode does; where too much waits, stdin waits, too."""
        while True:
            try:
                client.request("POST", f"/v1/sessions/{self._id}/{what}", value)
                return
            except Rejected as error:
                if error.status != 429:
                    return
            import time

            time.sleep(0.1)

    # -- out -------------------------------------------------------------------------------------------------------------------
    def _events(self) -> Iterator[Event]:
        """All events to the last one. Who was too slow takes up what is still kept.

        :raises NoServer: the server is gone before the session's end.
        """
        seen = 0
        while True:
            client, name, first = Client(self.path), "", True
            for number, name, data in client.events(self._id, seen):
                if name != "lost" or first:
                    yield number, name, data
                first, seen = False, number or seen
            client.close()
            if name == "end":
                return
            if name != "lost":
                raise NoServer("the server has ended before the run did; "
                               f"kernel -p --resume {self._id} goes on with the conversation")

    def _show(self, events: Iterator[Event], output: Output, facts: dict[str, Any]) -> int:
        end: dict[str, Any] = {}
        for _, name, data in events:
            if not name:
                output.take(data)
            elif name == "warning":
                output.warn(json.loads(data))
            elif name == "debug":
                print(f"[debug] {json.loads(data)}", file=sys.stderr, flush=True)
            elif name == "lost":
                gap = json.loads(data)
                output.warn(f"{gap['to'] - gap['from'] + 1} messages came faster than they were taken and are lost")
            elif name == "end":
                end = json.loads(data)
        if self._code is not None:
            return self._code
        if self._fault is not None:
            raise self._fault
        if "error" in end:
            print(f"Error: {end['error']}", file=sys.stderr)
        elif not facts["init_only"]:
            output.finish()
        return int(end["exit_code"])

    # -- signals -----------------------------------------------------------------------------------------------------------------
    def _on_interrupt(self, *_: object) -> None:
        """The first ends the turn, the second the run; a third waits for nothing."""
        self._interrupts += 1
        if self._interrupts > 2:
            os._exit(INTERRUPTED)
        elif self._interrupts == 2 and self._prompted:
            sys.stderr.write("Interrupted twice.\n")
            self._leave(INTERRUPTED)
        elif self._prompted:
            _beside(self._say, "POST", "/interrupt")
        else:
            self._give_up(INTERRUPTED)

    def _on_terminate(self, *_: object) -> None:
        if self._prompted:
            self._leave(TERMINATED)
        else:
            self._give_up(TERMINATED)

    def _leave(self, code: int) -> None:
        """The session is told to close, in a thread: its last events are still read and written."""
        self._code = code
        _beside(self._say, "DELETE", "")

    def _give_up(self, code: int) -> None:
        self._say("DELETE", "")
        os._exit(code)

    def _say(self, method: str, what: str) -> None:
        try:
            Client(self.path).request(method, f"/v1/sessions/{self._id}{what}")
        except (NoServer, Rejected):
            pass  # it is over, which its events tell


def _beside(work: Any, *args: Any) -> None:
    import threading

    threading.Thread(target=work, args=args, daemon=True).start()


def _ahead(events: Iterator[Event]) -> Iterator[Event]:
    """The events, read in a thread as fast as they come: who takes stdout slowly loses nothing by it."""
    from queue import SimpleQueue

    waiting: SimpleQueue[Event | Exception | None] = SimpleQueue()

    def read() -> None:
        try:
            for event in events:
                waiting.put(event)
            waiting.put(None)
        except Exception as error:  # raised where the events are taken
            waiting.put(error)

    _beside(read)
    while (event := waiting.get()) is not None:
        if isinstance(event, Exception):
            raise event
        yield event
