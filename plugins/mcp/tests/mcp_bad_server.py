"""A stdio server that misbehaves in one way, named on the command line. It imports little, so that many start quickly.

Tools: ``work`` answers "done"; what goes wrong stands in the table ``MODES`` at the end.
"""

import json
import os
import signal
import sys
import time

OUT = sys.stdout.buffer
VERSION = "2025-06-18"


def raw(data: bytes) -> None:
    OUT.write(data)
    OUT.flush()


def send(message: object) -> None:
    raw(json.dumps(message).encode() + b"\n")


def reply(request: dict, result: object) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def fail(request: dict, code: int, text: str) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": text}})


def notify(method: str, **params: object) -> None:
    send({"jsonrpc": "2.0", "method": method, "params": params})


def text(value: str) -> dict:
    return {"content": [{"type": "text", "text": value}]}


def hang(*_: object) -> None:
    while True:
        time.sleep(60)


def tool(name: str = "work", **fields: object) -> dict:
    return {"name": name, "description": "Works.", "inputSchema": {"type": "object", "properties": {}}, **fields}


class Server:
    """The well-behaved server; a mode replaces one step."""

    def __init__(self, **steps: object) -> None:
        self.steps = steps

    def run(self) -> None:
        if "begin" in self.steps:
            self.steps["begin"]()
        for line in sys.stdin:
            message = json.loads(line)
            if "before" in self.steps:
                self.steps["before"]()
            method = message.get("method")
            if "id" in message and method:
                step = self.steps.get(method, getattr(self, method.replace("/", "_"), None))
                if step is None:
                    fail(message, -32601, "no such method")
                else:
                    step(message)
            elif method is None and "answered" in self.steps:
                self.steps["answered"](message)

    def initialize(self, request: dict) -> None:
        reply(request, {"protocolVersion": request["params"]["protocolVersion"], "serverInfo": {"name": "bad", "version": "1"},
                        "capabilities": {"tools": {"listChanged": True}, **self.steps.get("capabilities", {})}})

    def tools_list(self, request: dict) -> None:
        tools = self.steps.get("tools", [])
        reply(request, {"tools": [tool(), *(tools() if callable(tools) else tools)]})

    def tools_call(self, request: dict) -> None:
        reply(request, text("done"))


# -- pieces of misbehaviour -----------------------------------------------------------------------------------------------
def in_bytes(request: dict) -> None:
    result = {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "1"}}
    for byte in json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n":
        raw(bytes([byte]))


def twice(request: dict) -> None:
    reply(request, text("done"))
    reply(request, text("again"))


def dies(*_: object) -> None:
    os._exit(7)


def partial_line(request: dict) -> None:
    raw(b'{"jsonrpc": "2.0", "id": 1, "resu')
    os._exit(0)


def stubborn() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


class Stubborn(Server):
    def run(self) -> None:
        super().run()
        hang()


def with_child() -> None:
    if os.fork() == 0:
        hang()


def flood(stream: object) -> None:
    block = b"noise " * 10_000 + b"\n"
    while True:
        stream.write(block)


def pages(request: dict, cursor: object) -> None:
    number = int((request.get("params") or {}).get("cursor") or 0) + 1
    reply(request, {"tools": [tool("work" if number == 1 else f"work{number}")], "nextCursor": cursor(number)})


def huge(size: int, newline: bool = True) -> object:
    def step(request: dict) -> None:
        raw(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "' % request["id"])
        block = b"x" * 1_000_000
        for _ in range(size // 1_000_000):
            OUT.write(block)
        raw(b'"}]}}' + (b"\n" if newline else b""))
    return step


def storm(count: int, method: str, **params: object) -> object:
    line = json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n"

    def step(request: dict) -> None:
        raw(line * count)
        reply(request, text("done"))
    return step


def progress_storm(request: dict) -> None:
    token = request["params"]["_meta"]["progressToken"]
    for number in range(2_000):
        notify("notifications/progress", progressToken=token, progress=number, message="working")
    reply(request, text("done"))


def answer_with(result: object) -> object:
    return lambda request: reply(request, result)


def ask_first(method: str, **params: object) -> dict:
    """A call that asks the client something, and tells what it was answered."""
    open_calls = []

    def call(request: dict) -> None:
        open_calls.append(request)
        send({"jsonrpc": "2.0", "id": 900, "method": method, "params": params})

    def answered(message: dict) -> None:
        said = message.get("result", message.get("error"))
        reply(open_calls.pop(), text(json.dumps(said)))
    return {"tools/call": call, "answered": answered}


def deep(depth: int) -> dict:
    schema: dict = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def drip(request: dict) -> None:
    for byte in b'{"jsonrpc": "2.0", "id": 1, "method":' * 100:
        raw(bytes([byte]))
        time.sleep(0.05)


INIT = {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "1"}}
SCHEMA = "inputSchema"
MODES = {
    # -- the start
    "exits at once": Server(begin=lambda: os._exit(3)),
    "exits at once, without an error": Server(begin=lambda: os._exit(0)),
    "is killed at once": Server(begin=lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "hangs before it reads": Server(begin=hang),
    "never answers initialize": Server(initialize=lambda request: None),
    "hangs in initialize": Server(initialize=hang),
    "dies in initialize": Server(initialize=dies),
    "sends half an answer and ends": Server(initialize=partial_line),
    "drips an answer for ever": Server(initialize=drip),
    "noise before it speaks": Server(begin=lambda: raw(b"Welcome to the server!\nversion 1\n\n{}\n[]\n")),
    "noise before every message": Server(before=lambda: raw(b"debug: got something\n")),
    "bytes that are no text": Server(before=lambda: raw(bytes(range(128, 256)) + b"\n\0\0\n")),
    "JSON that is no message": Server(before=lambda: raw(b'{"a": 1}\nnull\n"text"\n{"jsonrpc": "1.0"}\n')),
    "floods stdout with noise": Server(begin=lambda: flood(OUT)),
    "floods stderr": Server(begin=lambda: sys.stderr.buffer.write(b"error! " * 500_000)),
    "closes stdout and lives": Server(begin=lambda: (os.close(1), hang())),
    "closes stdin and lives": Server(begin=lambda: (os.close(0), hang())),
    "refuses initialize": Server(initialize=lambda request: fail(request, -32603, "not today")),
    "speaks a version that nobody knows": Server(initialize=answer_with({**INIT, "protocolVersion": "1999-01-01"})),
    "has a version that is a number": Server(initialize=answer_with({**INIT, "protocolVersion": 7})),
    "answers initialize with a list": Server(initialize=answer_with([])),
    "answers initialize with null": Server(initialize=answer_with(None)),
    "has no capabilities": Server(initialize=answer_with({"protocolVersion": VERSION, "serverInfo": INIT["serverInfo"]})),
    "has capabilities that are text": Server(initialize=answer_with({**INIT, "capabilities": "all"})),
    "answers initialize under another id": Server(initialize=lambda r: reply({"id": 4711}, INIT)),
    "answers initialize under its id as text": Server(initialize=lambda r: reply({"id": str(r["id"])}, INIT)),
    "answers initialize twice": Server(initialize=lambda r: (reply(r, INIT), reply(r, INIT))),
    "answers initialize byte by byte": Server(initialize=in_bytes),
    "answers initialize late": Server(initialize=lambda r: (time.sleep(0.3), reply(r, INIT))),
    "answers in a batch": Server(initialize=lambda r: send([{"jsonrpc": "2.0", "id": r["id"], "result": INIT}])),
    "ends lines with CRLF": Server(initialize=lambda r: raw(
        json.dumps({"jsonrpc": "2.0", "id": r["id"], "result": INIT}).encode() + b"\r\n")),
    "does not end": Stubborn(begin=stubborn),
    "leaves a child behind": Server(begin=with_child),
    # -- the lists
    "hangs in tools/list": Server(**{"tools/list": hang}),
    "dies in tools/list": Server(**{"tools/list": dies}),
    "refuses tools/list": Server(**{"tools/list": lambda r: fail(r, -32603, "no list")}),
    "lists no tools key": Server(**{"tools/list": answer_with({})}),
    "lists null": Server(**{"tools/list": answer_with({"tools": None})}),
    "pages without end": Server(**{"tools/list": lambda r: pages(r, str)}),
    "pages in a circle": Server(**{"tools/list": lambda r: pages(r, lambda number: "1")}),
    "has a tool that is text": Server(tools=["work harder"]),
    "has a tool without a name": Server(tools=[{"description": "x", SCHEMA: {"type": "object"}}, tool("other")]),
    "has a tool without a schema": Server(tools=[{"name": "other"}]),
    "has a schema that is true": Server(tools=[tool("other", **{SCHEMA: True})]),
    "has a schema of type string": Server(tools=[tool("other", **{SCHEMA: {"type": "string"}})]),
    "has a schema with oneOf at the root": Server(tools=[tool("other", **{SCHEMA: {"oneOf": [
        {"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}})]),
    "has a schema with nonsense at the root": Server(tools=[tool("gone", **{SCHEMA: {"anyOf": "x"}}), tool("other")]),
    "has a schema that refers to the network": Server(tools=[tool("other", **{SCHEMA: {
        "type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}})]),
    "has a schema of great depth": Server(tools=[tool("other", **{SCHEMA: deep(150)})]),
    "has two tools of one name": Server(tools=[tool("other"), tool("other")]),
    "has two names that become one": Server(tools=[tool("other"), tool("a.b"), tool("a b")]),
    "has a name of 300 characters": Server(tools=[tool("other"), tool("n" * 300)]),
    "has a name of odd characters": Server(tools=[tool("other"), tool("söme/tööl\n\0💥")]),
    "has a description of a megabyte": Server(tools=[tool("other", description="word " * 200_000)]),
    "has a description with half a character": Server(tools=[tool("other", description="half \ud83d")]),
    "has a description that is a number": Server(tools=[tool("other", description=42)]),
    "has annotations that are text": Server(tools=[tool("other", annotations="readOnly", _meta=[])]),
    "has 11,000 tools": Server(tools=lambda: [tool(f"t{n}") for n in range(11_000)]),
    "hangs in prompts/list": Server(capabilities={"prompts": {}}, **{"prompts/list": hang}),
    "lists nonsense as resources": Server(
        capabilities={"resources": {}}, **{"resources/list": answer_with({"resources": [1, {}]})}),
    "dies after its lists": Server(**{"tools/list": lambda r: (reply(r, {"tools": [tool()]}), time.sleep(0.1), dies())}),
    # -- a call
    "hangs in a call": Server(**{"tools/call": lambda request: None}),
    "dies in a call": Server(**{"tools/call": dies}),
    "answers a call under another id": Server(**{"tools/call": lambda r: reply({"id": 999}, text("done"))}),
    "answers a call twice": Server(**{"tools/call": twice}),
    "answers with 100 MB": Server(**{"tools/call": huge(100_000_000)}),
    "answers with 100 MB and no end": Server(**{"tools/call": huge(100_000_000, newline=False)}),
    "answers with an error of a megabyte": Server(**{"tools/call": lambda r: fail(r, -32000, "x" * 1_000_000)}),
    "answers with content of an unknown kind": Server(**{"tools/call": answer_with({"content": [{"type": "hologram", "x": 1}]})}),
    "answers with content that is text": Server(**{"tools/call": answer_with({"content": "done"})}),
    "answers a call with null": Server(**{"tools/call": answer_with(None)}),
    "answers without content": Server(**{"tools/call": answer_with({})}),
    "says error without a text": Server(**{"tools/call": answer_with({"content": [], "isError": True})}),
    "sends an image that is none": Server(**{"tools/call": answer_with({"content": [
        {"type": "image", "mimeType": "image/png", "data": "%%%"}]})}),
    "tells progress 2,000 times": Server(**{"tools/call": progress_storm}),
    "says 20,000 times that its list changed": Server(**{"tools/call": storm(20_000, "notifications/tools/list_changed")}),
    "logs 5,000 lines": Server(**{"tools/call": storm(5_000, "notifications/message", level="info", data="log")}),
    "sends notices that nobody knows": Server(**{"tools/call": storm(100, "notifications/rumour", a=1)}),
    "asks for something that does not exist": Server(**ask_first("client/secrets")),
    "asks whether we live": Server(**ask_first("ping")),
    "asks a person": Server(**ask_first("elicitation/create", message="Name?", requestedSchema={
        "type": "object", "properties": {"name": {"type": "string"}}})),
    "asks for a password": Server(**ask_first("elicitation/create", message="Log in", requestedSchema={
        "type": "object", "properties": {"password": {"type": "string"}}})),
    "asks for a model": Server(**ask_first("sampling/createMessage", maxTokens=5, messages=[
        {"role": "user", "content": {"type": "text", "text": "hi"}}])),
}

if __name__ == "__main__":
    MODES[sys.argv[1]].run()
