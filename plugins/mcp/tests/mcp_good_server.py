"""A stdio server for tests that does what servers may do: contents of all kinds, resources, prompts, questions, changes.

Arguments: ``--tools N`` adds N tools; ``--log FILE`` notes what the client sent without being asked for an answer; ``wait``
tells of the others.
"""

import base64
import json
import os
import sys
import time

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()
ASKING: dict = {}
EXTRA: list = []


def option(name: str, default: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def send(message: dict) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def reply(request: dict, result: dict) -> None:
    send({"id": request["id"], "result": result})


def text(value: str, **more: object) -> dict:
    return {"content": [{"type": "text", "text": value}], **more}


def tool(name: str, description: str = "A tool.", properties: dict | None = None, **more: object) -> dict:
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties or {}}, **more}


TOOLS = [
    tool(
        "echo",
        "Gives the text back.",
        {"text": {"type": "string"}, "count": {"type": "integer"}},
        annotations={"readOnlyHint": True},
    ),
    tool("big", "Many characters.", {"size": {"type": "integer"}}),
    tool("lines", "Many lines.", {"count": {"type": "integer"}}),
    tool("capped", "A limit of its own.", {"size": {"type": "integer"}}, _meta={"anthropic/maxResultSizeChars": 1000}),
    tool("image"),
    tool("bitmap"),
    tool("audio"),
    tool("link"),
    tool("embedded"),
    tool("blob"),
    tool("nothing"),
    tool("refused"),
    tool("structured", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    tool("misfit", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    tool("both_kinds"),
    tool("bad_arguments"),
    tool("slow"),
    tool("progress"),
    tool("grow"),
    tool("roots"),
    tool("ask", "Asks the person.", {"schema": {"type": "object"}}),
    tool("ask_url"),
    tool("sample"),
    tool("env", "", {"name": {"type": "string"}}),
    tool("always", _meta={"anthropic/alwaysLoad": True}),
    tool("user_only", _meta={"anthropic/requiresUserInteraction": True}),
    tool("hinted", _meta={"anthropic/searchHint": "zebra crossing"}),
]


def ask(request: dict, method: str, params: dict) -> None:
    ASKING[900 + len(ASKING)] = request
    send({"id": 899 + len(ASKING), "method": method, "params": params})


def call(request: dict) -> None:
    name, given = request["params"]["name"], request["params"].get("arguments") or {}
    token = (request["params"].get("_meta") or {}).get("progressToken")
    if name == "ask":
        return ask(
            request,
            "elicitation/create",
            {
                "message": "Who are you?",
                "requestedSchema": given.get("schema")
                or {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            },
        )
    if name == "ask_url":
        return ask(
            request,
            "elicitation/create",
            {"mode": "url", "message": "Please sign", "url": "https://example.test/", "elicitationId": "e1"},
        )
    if name == "sample":
        return ask(
            request,
            "sampling/createMessage",
            {
                "maxTokens": 20,
                "systemPrompt": "Be brief.",
                "messages": [{"role": "user", "content": {"type": "text", "text": "What is 6 times 7?"}}],
            },
        )
    if name == "roots":
        return ask(request, "roots/list", {})
    if name == "slow":
        return None
    if name == "progress":
        for step in range(4):
            time.sleep(0.4)
            send(
                {
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": step, "total": 4, "message": f"step {step}"},
                }
            )
    if name == "grow":
        EXTRA.append(tool(f"grown_{len(EXTRA)}"))
        send({"method": "notifications/tools/list_changed"})
    if name == "bad_arguments":
        return send({"id": request["id"], "error": {"code": -32602, "message": "wrong arguments", "data": "n is missing"}})
    return reply(request, result(name, given))


def result(name: str, given: dict) -> dict:
    if name == "echo":
        return text(given.get("text", "") * given.get("count", 1))
    if name in ("big", "capped"):
        return text("x" * given["size"])
    if name == "lines":
        return text("\n".join(f"line {n}" for n in range(given["count"])))
    kinds = {
        "image": [{"type": "image", "mimeType": "image/png", "data": PNG}],
        "bitmap": [{"type": "image", "mimeType": "image/bmp", "data": PNG}],
        "audio": [{"type": "audio", "mimeType": "audio/wav", "data": PNG}],
        "link": [{"type": "resource_link", "uri": "mem://note", "name": "note", "description": "a note"}],
        "embedded": [{"type": "resource", "resource": {"uri": "mem://note", "mimeType": "text/plain", "text": "inside"}}],
        "blob": [{"type": "resource", "resource": {"uri": "mem://b", "mimeType": "application/pdf", "blob": PNG}}],
        "nothing": [],
    }
    if name in kinds:
        return {"content": kinds[name]}
    if name == "structured":
        return text("the same in words", structuredContent={"n": 1})
    if name == "misfit":
        return text("words", structuredContent={"n": "one"})
    if name == "both_kinds":
        return {"content": [{"type": "text", "text": "words"}, *kinds["image"]], "structuredContent": {"n": 2}}
    if name == "refused":
        return {"content": [{"type": "text", "text": "the disk is full"}, *kinds["image"]], "isError": True}
    if name == "env":
        return text(os.environ.get(given["name"], "(not set)"))
    return text("done")


def answer(request: dict) -> None:
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        reply(
            request,
            {
                "protocolVersion": params["protocolVersion"],
                "serverInfo": {"name": "good", "version": "1"},
                "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
                "instructions": "Use echo for echoes. " + "More words. " * 400,
            },
        )
    elif method == "tools/list":
        count = int(option("--tools", "0"))
        more = [tool(f"extra_{n}", f"Tool number {n} about {'apples' if n % 2 else 'pears'}.") for n in range(count)]
        reply(request, {"tools": [*TOOLS, *EXTRA, *more]})
    elif method == "tools/call":
        call(request)
    elif method == "resources/list":
        note = {"uri": "mem://note", "name": "note", "mimeType": "text/plain", "description": "A note."}
        reply(
            request,
            {"resources": [note, {"uri": "mem://folder/a.txt", "name": "a"}, {"uri": "mem://folder/deep/b.txt", "name": "b"}]},
        )
    elif method == "resources/read" and params["uri"] == "mem://note":
        reply(
            request,
            {
                "contents": [
                    {"uri": "mem://note", "mimeType": "text/plain", "text": "a note from the server"},
                    {"uri": "mem://note", "mimeType": "application/pdf", "blob": PNG},
                ]
            },
        )
    elif method == "prompts/list":
        reply(
            request,
            {
                "prompts": [
                    {
                        "name": "greet",
                        "description": "Greets.",
                        "arguments": [{"name": "who", "required": True}, {"name": "how"}],
                    },
                    {"name": "odd name!"},
                ]
            },
        )
    elif method == "prompts/get":
        given = params.get("arguments") or {}
        said = f"Greet {given.get('who')} {given.get('how', '')}."
        reply(request, {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]})
    else:
        code = -32002 if method == "resources/read" else -32601
        send({"id": request["id"], "error": {"code": code, "message": "no such thing"}})


def wait() -> None:
    """``--wait FILE``: until the file is there. ``--meet DIR N``: until N servers have come to the folder."""
    while option("--wait") and not os.path.exists(option("--wait")):
        time.sleep(0.02)
    if "--meet" in sys.argv:
        place = option("--meet")
        open(os.path.join(place, str(os.getpid())), "w").close()
        while len(os.listdir(place)) < int(sys.argv[sys.argv.index("--meet") + 2]):
            time.sleep(0.02)


def main() -> None:
    wait()
    log = option("--log")
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            waiting = ASKING.pop(message["id"])
            reply(waiting, text(json.dumps(message.get("result", message.get("error")))))
        elif "id" in message:
            answer(message)
        elif log:
            with open(log, "a") as out:
                out.write(line)


if __name__ == "__main__":
    main()
