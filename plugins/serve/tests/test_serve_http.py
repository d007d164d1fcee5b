"""The API over its real socket: sessions, prompts, events, control, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from kernel_serve import http as protocol, server as serving
from kernel_serve.client import Client, NoServer, Rejected
from kernel_serve.ring import Ring
from kernel_serve.wishes import FIELDS, OPTIONS

ASKS = """
name: s
turns:
- calls: [{tool: Write, id: w1, input: {file_path: made.txt, content: by a tool}}]
- text: '{{last_result}}'
"""
SLOW = "name: s\nturns:\n- calls: [{tool: Bash, input: {command: sleep 60}}]\n- text: it went on\n- text: after that\n"


def refused(call: Any, *args: Any, **more: Any) -> tuple[int, str, str]:
    with pytest.raises(Rejected) as caught:
        call(*args, **more)
    return caught.value.status, caught.value.error["type"], str(caught.value)


# -- one conversation ----------------------------------------------------------------------------------------------------
def test_prompts_one_after_the_other(shared: Any) -> None:
    row = shared.create(options={"model": shared.script()})
    assert row["state"] == "idle" and row["turns"] == 0 and row["cwd"] == str(shared.project)
    heard = shared.listen(row["id"])
    for number, said in enumerate(("hello", "again"), 1):
        shared.post(row["id"], "messages", prompt="hi" if number == 1 else [{"type": "text", "text": "hi"}])
        assert heard.results(number)[-1]["result"] == said
    assert [m["type"] for m in heard.messages if m.get("subtype") != "status"] == ["system", "assistant", "result"] * 2
    told = shared.client().request("GET", f"/v1/sessions/{row['id']}")
    assert (told["state"], told["turns"], told["model"], told["result"]["result"]) == ("idle", 2, "script:s", "again")
    shared.post(row["id"], "messages", type="user", message={"role": "user", "content": "hi"}, uuid="u3")
    assert heard.results(3)[-1]["result"] == "a third time"
    shared.post(row["id"], "end")
    assert heard.named("end") == {"exit_code": 0}
    assert refused(shared.post, row["id"], "messages", prompt="more")[:2] == (409, "closed")
    numbers = [number for number, _, _ in heard.events]
    assert numbers == list(range(1, len(numbers) + 1))


def test_what_waits_and_what_comes_twice(shared: Any) -> None:
    row = shared.create(options={"model": shared.script()}, prompt="one")
    for _ in range(2):
        shared.post(row["id"], "messages", prompt="two", uuid="0f0e7a8e-0000-4000-8000-000000000001")
    shared.post(row["id"], "messages", prompt="three", end=True)
    heard = shared.listen(row["id"])
    heard.named("end")
    assert [m["result"] for m in heard.messages if m["type"] == "result"] == ["hello", "again", "a third time"]


def test_events_go_on_behind_a_number_and_several_may_listen(shared: Any) -> None:
    heard = shared.talk("hi", options={"model": shared.script()})
    whole = heard.events
    for after in range(len(whole)):
        again = shared.listen(heard.id, after)
        again.named("end")
        assert again.events == whole[after:]
    both = [shared.listen(heard.id) for _ in range(4)]
    for one in both:
        one.named("end")
        assert one.events == whole
    assert refused(lambda: list(shared.client().events(heard.id, "x")))[:2] == (400, "bad_request")  # type: ignore[arg-type]


def test_an_interrupt_ends_the_turn_and_not_the_session(shared: Any) -> None:
    row = shared.create(options={"model": shared.script(SLOW, "slow.yaml"), "allowed_tools": ["Bash"]}, prompt="go")
    heard = shared.listen(row["id"])
    heard.find("assistant")
    assert shared.post(row["id"], "interrupt") == {"interrupted": True}
    (result,) = heard.results()
    assert result["subtype"] == "error_during_execution" or "aborted" in result["terminal_reason"], result
    shared.post(row["id"], "messages", prompt="and now", end=True)
    assert heard.results(2)[1]["result"] == "it went on"


def test_delete_ends_a_running_command_and_the_conversation_can_be_resumed(shared: Any) -> None:
    row = shared.create(options={"model": shared.script(SLOW, "slow.yaml"), "allowed_tools": ["Bash"]}, prompt="go")
    heard = shared.listen(row["id"])
    heard.find("assistant")
    gone = shared.client().request("DELETE", f"/v1/sessions/{row['id']}")
    assert (gone["state"], gone["exit_code"]) == ("closed", 143)
    assert heard.named("end") == {"exit_code": 143}
    done = shared.run("-p", "hi", "--resume", row["id"], "--model", shared.script())
    assert (done.stdout, done.returncode) == ("hello\n", 0)
    assert shared.client().request("DELETE", f"/v1/sessions/{row['id']}")["state"] == "closed"
    assert refused(shared.client().request, "GET", f"/v1/sessions/{row['id']}")[0] == 404, "it is forgotten"
    again = shared.talk("hi", options={"model": shared.script(), "resume": row["id"]})
    assert again.id == row["id"] and again.results()[0]["result"] == "hello"


def test_a_conversation_is_open_once(shared: Any) -> None:
    row = shared.create(options={"model": shared.script()}, prompt="hi")
    shared.listen(row["id"]).results()
    for options in ({"resume": row["id"]}, {"continue_session": True}):
        status, name, text = refused(shared.create, options={"model": shared.script(), **options})
        assert (status, name) in ((409, "in_use"), (409, "session")) and f"the conversation {row['id']} is open" in text
    fork = shared.talk("hi", options={"model": shared.script(), "resume": row["id"], "fork_session": True})
    assert fork.id != row["id"]
    shared.post(row["id"], "messages", prompt="more", end=True)
    assert shared.listen(row["id"]).results(2)[1]["result"] == "again"


# -- control ---------------------------------------------------------------------------------------------------------------
def test_a_program_answers_a_permission_question(shared: Any) -> None:
    folder = shared.folder("asked")
    row = shared.create(folder, prompt="write", options={"model": shared.script(ASKS, folder=folder),
                                                         "permission_prompt_tool": "stdio"})
    heard = shared.listen(row["id"])
    frame = heard.question("can_use_tool")
    assert frame["request"]["input"]["content"] == "by a tool" and not (folder / "made.txt").exists()
    shared.post(row["id"], "control", type="control_response", response={
        "subtype": "success", "request_id": frame["request_id"], "response": {"behavior": "allow", "updatedInput": {
            **frame["request"]["input"], "content": "by a person"}}})
    heard.results()
    assert (folder / "made.txt").read_text() == "by a person"
    shared.client().request("DELETE", f"/v1/sessions/{row['id']}")


def test_requests_of_a_program(shared: Any) -> None:
    row = shared.create(options={"model": shared.script()})
    heard = shared.listen(row["id"])

    def ask(id: str, **request: Any) -> dict[str, Any]:
        assert shared.post(row["id"], "control", type="control_request", request_id=id, request=request) == {"taken": True}
        return heard.answer_to(id)

    assert "commands" in ask("r1", subtype="initialize")["response"]
    assert ask("r2", subtype="set_permission_mode", mode="plan")["subtype"] == "success"
    assert ask("r3", subtype="mcp_status")["response"] == {"mcpServers": []}
    assert ask("r4", subtype="get_context_usage")["response"]["model"] == "script:s"
    assert ask("r5", subtype="set_model", model="script:none.yaml")["subtype"] == "error"
    assert shared.client().request("GET", f"/v1/sessions/{row['id']}")["permission_mode"] == "plan"
    assert refused(shared.post, row["id"], "control", type="whatever")[:2] == (400, "bad_request")
    shared.post(row["id"], "end")
    heard.named("end")
    assert refused(shared.post, row["id"], "control", type="control_request")[:2] == (409, "closed")


def test_a_question_comes_again_for_a_client_that_comes_back(shared: Any) -> None:
    folder = shared.folder("asked-again")
    row = shared.create(folder, prompt="write", options={"model": shared.script(ASKS, folder=folder),
                                                         "permission_prompt_tool": "stdio"})
    client = shared.client()
    events = client.events(row["id"])
    for _, _, data in events:
        if json.loads(data).get("type") == "control_request":
            break
    client.close()  # the client is gone; the session waits
    heard = shared.listen(row["id"])
    frame = heard.question("can_use_tool")
    shared.post(row["id"], "control", type="control_response", response={
        "subtype": "success", "request_id": frame["request_id"], "response": {"behavior": "deny", "message": "not now"}})
    assert "not now" in heard.results()[0]["result"]
    shared.client().request("DELETE", f"/v1/sessions/{row['id']}")


# -- slow, lost, gone -----------------------------------------------------------------------------------------------------
def test_who_is_too_slow_is_cut_and_stalls_nobody(shared: Any) -> None:
    """A client that reads nothing while 24 MB are said; another one hears all the time."""
    script = "name: s\nmodel: {context_window: 100000000}\nturns:\n" + 24 * "- text: '{{last_prompt}}'\n"
    row = shared.create(options={"model": shared.script(script, "echo.yaml"), "no_persistence": True})
    slow = shared.client()
    status, _ = slow._begin("GET", f"/v1/sessions/{row['id']}/events", None)
    assert status == 200
    quick = shared.listen(row["id"])
    for number in range(1, 25):
        shared.post(row["id"], "messages", prompt=f"{number} " + 500_000 * "x")  # said by the assistant, and in the result
        quick.results(number)
    late = shared.listen(row["id"])
    assert late.named("lost")["from"] == 1
    got = b"".join(slow._chunks())
    assert b"event: lost\n" in got[-200:] and len(got) < 24_000_000
    assert "lost" not in [name for _, name, _ in quick.events]
    assert [m["result"].split()[0] for m in quick.results(24)] == [str(n) for n in range(1, 25)]
    shared.client().request("DELETE", f"/v1/sessions/{row['id']}")


def test_what_is_kept() -> None:
    ring, me = Ring(most=10_000, behind=30_000), object()
    for number in range(1, 201):
        ring.put(b"x" * 100)
        assert ring.last == number and (ring.last - ring.first + 1) * 300 < 10_000 + 400
    first = ring.first
    assert first > 150 and ring.behind(me, 0)[0] == first
    start, last, found = ring.behind(me, 200)
    assert (start, last, found) == (201, 200, [])
    for _ in range(60):
        ring.put(b"x" * 100)
    start, last, found = ring.behind(me, 200, most=1000)
    assert start == 201 and found[0].startswith(b"id: 201\n") and last < 210, "more is kept for who listens"
    for _ in range(100):
        ring.put(b"x" * 100)
    assert ring.behind(me, last)[0] > last + 1, "but not for ever"
    ring.leave(me)
    assert (ring.last - ring.first + 1) * 300 < 10_000 + 400
    ring.put(b"y" * 100_000, "warning")
    assert ring.first == ring.last and ring.behind(me, 0)[2][0].startswith(b"id: 361\nevent: warning\ndata: yyy")


# -- refusals -----------------------------------------------------------------------------------------------------------------
def test_the_token_is_asked_for_on_every_request(shared: Any) -> None:
    token = Path(shared.socket + ".token")
    assert stat.S_IMODE(token.stat().st_mode) == 0o600 and stat.S_IMODE(os.stat(shared.socket).st_mode) == 0o600
    for given in ("wrong", token.read_text().strip()[:-1], " ", "x" * 10_000):
        client = Client(shared.socket, given)
        for method, target in (("GET", "/v1/status"), ("POST", "/v1/stop"), ("GET", "/v1/sessions/x/events"), ("GET", "/")):
            status, name, text = refused(client.request, method, target)
            assert (status, name) == (401, "unauthorized") and "token" in text


@pytest.mark.parametrize(("body", "said"), [
    ({}, "'cwd' must be an absolute path"),
    ({"cwd": "relative"}, "'cwd' must be an absolute path"),
    ({"cwd": "/nowhere/at/all"}, "is no directory"),
    ({"cwd": "/", "what": 1}, "there is no field 'what'"),
    ({"cwd": "/", "options": []}, "'options' must be an object"),
    ({"cwd": "/", "options": {"modl": "x"}}, "did you mean 'model'?"),
    ({"cwd": "/", "options": {"model": 5}}, "'model' must be a string"),
    ({"cwd": "/", "options": {"max_turns": "5"}}, "'max_turns' must be a number"),
    ({"cwd": "/", "options": {"max_turns": 0}}, "--max-turns must be a positive integer"),
    ({"cwd": "/", "options": {"continue_session": "yes"}}, "must be true or false"),
    ({"cwd": "/", "options": {"add_dirs": ["/nowhere"]}}, "--add-dir /nowhere: is no directory"),
    ({"cwd": "/", "options": {"permission_mode": "whatever"}}, "unknown permission mode"),
    ({"cwd": "/", "options": {}, "args": []}, "exclude each other"),
    ({"cwd": "/", "args": ["--nothing"]}, "unknown flag --nothing"),
    ({"cwd": "/", "args": ["--harness", "h.yaml"]}, "a locked harness owns its whole process"),
    ({"cwd": "/", "environment": {"KERNEL_HARNESS": "h.yaml"}}, "a locked harness owns its whole process"),
    ({"cwd": "/", "environment": {"A": 1}}, "'environment' must be an object of strings"),
    ({"cwd": "/", "prompt": 5}, "'prompt' must be a text or a list"),
    ({"cwd": "/", "client": {"version": "0"}}, "the client is another one"),
])
def test_a_session_that_cannot_be(shared: Any, body: dict[str, Any], said: str) -> None:
    before = len(shared.client().request("GET", "/v1/sessions")["sessions"])
    status, _, text = refused(shared.client().request, "POST", "/v1/sessions", body)
    assert status in (400, 409) and said in text
    assert len(shared.client().request("GET", "/v1/sessions")["sessions"]) == before


def test_paths_and_methods(shared: Any) -> None:
    client = shared.client()
    assert refused(client.request, "GET", "/v1/sessions/nobody")[:2] == (404, "not_found")
    assert refused(client.request, "GET", "/v2")[:2] == (404, "not_found")
    assert refused(client.request, "PUT", "/v1/sessions")[:2] == (405, "no_such_method")
    assert refused(client.request, "GET", "/v1/sessions/../status")[:2] == (404, "not_found")
    assert client.request("GET", "/v1/status")["sessions"] >= 0  # the same connection goes on


def raw(world: Any, data: bytes, *, wait: float = 10.0) -> bytes:
    """What comes back for these bytes until the server hangs up or says nothing more."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(wait)
        client.connect(world.socket)
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        got = b""
        try:
            while chunk := client.recv(1 << 16):
                got += chunk
        except OSError:
            pass
        return got


def head(world: Any, method: str = "POST", target: str = "/v1/sessions", **headers: str) -> bytes:
    token = Path(world.socket + ".token").read_text().strip()
    lines = {"Host": "kernel", "Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
    return f"{method} {target} HTTP/1.1\r\n".encode() + b"".join(f"{k}: {v}\r\n".encode() for k, v in lines.items()) + b"\r\n"


@pytest.mark.parametrize(("headers", "body", "status", "said"), [
    ({"Content-Type": "text/plain"}, b"{}", 415, b"application/json"),
    ({"Content-Type": "application/x-www-form-urlencoded"}, b"a=b", 415, b"application/json"),
    ({"Origin": "http://evil.example"}, b"{}", 403, b"web pages"),
    ({}, b"[]", 400, b"must be a JSON object"),
    ({}, b"{", 400, b"not valid JSON"),
    ({}, b"\xff\xfe", 400, b"not valid JSON"),
    ({}, b'{"cwd": NaN}', 400, b"not valid JSON"),
    ({}, b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", 400, b"levels"),
    ({}, b'{"a": ' + b"[" * 200_000, 400, b"not valid JSON"),
    ({}, b'{"a": ' + b"9" * 10_000 + b"}", 400, b"not valid JSON"),
])
def test_a_body_that_is_none(shared: Any, headers: dict[str, str], body: bytes, status: int, said: bytes) -> None:
    got = raw(shared, head(shared, **headers, **{"Content-Length": str(len(body))}) + body)
    assert got.startswith(b"HTTP/1.1 %d " % status) and said in got


def test_a_body_that_is_too_large_is_not_read(shared: Any) -> None:
    assert raw(shared, head(shared, **{"Content-Length": "99999999999"})).startswith(b"HTTP/1.1 413 ")
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    assert raw(shared, head(shared, **{"Transfer-Encoding": "chunked"}) + chunk * 40).startswith(b"HTTP/1.1 413 ")


PIECES = (b"\r\n", b"\r\n\r\n", b"\0", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"A" * 40_000)


def test_bytes_that_are_no_request_harm_nobody(shared: Any) -> None:
    """Random bytes, and requests with random damage; the server answers the next one as before."""
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print(f"SEED={seed}")
    draw = random.Random(seed)
    whole = head(shared, **{"Content-Length": "15"}) + b'{"cwd": "/dev"}'
    for _ in range(int(os.environ.get("KERNEL_SERVE_FUZZ") or 150)):
        data = bytearray(whole if draw.random() < 0.8 else draw.randbytes(draw.randrange(1, 4000)))
        for _ in range(draw.randrange(1, 8)):
            place = draw.randrange(len(data))
            match draw.randrange(4):
                case 0:
                    data[place] = draw.randrange(256)
                case 1:
                    del data[place:place + draw.randrange(1, 20)]
                    data = data or bytearray(b"x")
                case 2:
                    data[place:place] = draw.randbytes(draw.randrange(1, 20))
                case 3:
                    data[place:place] = draw.choice(PIECES)
        raw(shared, bytes(data), wait=5.0)
    assert shared.client().request("GET", "/v1/status")["pid"] == shared.process.pid
    assert shared.process.poll() is None


VALUES = (None, True, 0, -1, 1e300, 10 ** 30, "", "x", "/", "/tmp", "\0", "\ud800", "é" * 300, [], ["a"], [{}], {}, {"a": 1},
          [{"type": "text", "text": "hi"}], [{"type": "image"}], {"role": "user", "content": "hi"})


def test_bodies_of_any_shape_are_answered(shared: Any) -> None:
    """Every route that takes a body, with the fields it knows and values that it does not."""
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print(f"SEED={seed}")
    draw = random.Random(seed)
    row = shared.create(options={"model": shared.script()})
    fields = [*FIELDS, "message", "uuid", "origin", "shouldQuery", "type", "request_id", "request", "response", "options"]
    for _ in range(int(os.environ.get("KERNEL_SERVE_FUZZ") or 150)):
        body = {name: draw.choice(VALUES) for name in draw.sample(fields, draw.randrange(6))}
        if draw.random() < 0.5:
            body |= {"cwd": str(shared.project), "options": {name: draw.choice(VALUES) for name in draw.sample([*OPTIONS], 2)}}
            body.pop("args", None)
        if draw.random() < 0.3:
            body |= {"type": draw.choice(("control_request", "control_response")), "request_id": f"r{draw.random()}"}
        target = draw.choice(("/v1/sessions", f"/v1/sessions/{row['id']}/messages", f"/v1/sessions/{row['id']}/control"))
        status, made = 202, {}
        try:
            made = shared.client().request("POST", target, body)
        except Rejected as error:
            status = error.status
        assert status < 500, (target, body)
        if "id" in made:
            shared.client().request("DELETE", f"/v1/sessions/{made['id']}")
    shared.client().request("DELETE", f"/v1/sessions/{row['id']}")


def test_half_a_request_and_a_client_that_vanishes(shared: Any) -> None:
    left = []
    for end in (10, 60, -1):
        client = socket.socket(socket.AF_UNIX)
        client.connect(shared.socket)
        client.sendall((head(shared, **{"Content-Length": "15"}) + b'{"cwd": "/dev"}')[:end])
        left.append(client)
    assert shared.client().request("GET", "/v1/status")
    for client in left:
        client.close()


# -- TCP -----------------------------------------------------------------------------------------------------------------------
def test_tcp_wants_its_own_name(world: Any) -> None:
    import http.client

    facts = world.serve("--port", "0")
    port = int(facts["url"].rpartition(":")[2])
    token = Path(world.socket + ".token").read_text().strip()

    def ask(host: str | None, *, token: str = token) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.putrequest("GET", "/v1/status", skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.putheader("Authorization", f"Bearer {token}")
        connection.endheaders()
        status = connection.getresponse().status
        connection.close()
        return status

    assert ask(f"127.0.0.1:{port}") == ask(f"localhost:{port}") == ask(f"LOCALHOST:{port}") == 200
    for host in (None, "", "evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1:{port}@evil", "[::1",
                 "::1"):
        assert ask(host) in (400, 403), host
    assert ask(f"127.0.0.1:{port}", token="x") == 401


def test_who_shows_no_token_keeps_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TCP; the socket has places of its own."""
    monkeypatch.setattr(serving, "MOST_TCP", 4)
    monkeypatch.setattr(protocol, "FIRST_S", 0.5)
    monkeypatch.setattr(serving.surroundings, "install", lambda: None)  # this process has other tests

    async def status(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, token: str) -> bytes:
        writer.write(f"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        return await reader.readline()

    async def main() -> None:
        made = serving.Server(str(tmp_path / "s"), tcp=("127.0.0.1", 0))
        ready = asyncio.Event()
        running = asyncio.create_task(made.run(ready.set))
        await asyncio.wait_for(ready.wait(), 20)
        assert made.tcp is not None
        port = made.tcp[1]
        good = await asyncio.open_connection("127.0.0.1", port)
        assert b" 200 " in await status(*good, port, made.token)
        wrong = await asyncio.open_connection("127.0.0.1", port)
        assert b" 401 " in await status(*wrong, port, "wrong")
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        idle[0][1].write(b"GET / HT")
        over = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(over[0].read(), 20) == b"", "all places are taken"
        near = await asyncio.open_unix_connection(made.socket)
        assert b" 200 " in await status(*near, port, made.token)
        for reader, _ in (wrong, *idle):
            await asyncio.wait_for(reader.read(), 20)
        again = await asyncio.open_connection("127.0.0.1", port)
        assert b" 200 " in await status(*again, port, made.token)
        for kept in (good, near):
            assert await asyncio.wait_for(kept[0].readuntil(b"}\n"), 20)
            assert b" 200 " in await status(*kept, port, made.token), "who has the token stays"
        for _, writer in (good, wrong, *idle, over, near, again):
            writer.close()
        made.stop("done")
        await running

    asyncio.run(main())


def test_another_address_needs_a_word_of_permission(world: Any) -> None:
    done = world.run("serve", "--port", "0", "--host", "0.0.0.0")
    assert done.returncode == 1 and "--allow-remote" in done.stderr and not os.path.exists(world.socket)


# -- limits ----------------------------------------------------------------------------------------------------------------------
def test_too_many_sessions_and_idle_ones(world: Any) -> None:
    world.serve("--max-sessions", "2", "--session-idle", "1", "--idle-exit", "1")
    model = world.script()
    rows = [world.create(options={"model": model}) for _ in range(2)]
    assert refused(world.create, options={"model": model})[:2] == (429, "too_many")
    heard = world.listen(rows[0]["id"])
    time.sleep(2.5)
    states = {r["id"]: r["state"] for r in world.client().request("GET", "/v1/sessions")["sessions"]}
    assert states == {rows[0]["id"]: "idle", rows[1]["id"]: "closed"}, "somebody listens to the first one"
    world.post(rows[0]["id"], "end")
    heard.named("end")
    assert world.process.wait(20) == 0
    with pytest.raises(NoServer):
        world.client()
    assert not os.path.exists(world.socket) and not os.path.exists(world.socket + ".token")


def test_many_at_once(shared: Any) -> None:
    model, found = shared.script(), []

    def one() -> None:
        found.append(shared.talk("hi", options={"model": model, "no_persistence": True}).results()[0]["result"])

    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["hello"] * 20
