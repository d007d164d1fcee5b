"""A model server that answers by a script and notes when bytes came and went.

Runs in a process of its own, so that it shares no interpreter with what is measured. Times are of the system's
monotonic clock, the same in all processes.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection


@dataclass
class Times:
    """Seconds, one entry per request: its first byte received, the last byte of the answer sent.

    ``between``: of every connection, from an answer with calls to the request with their results.
    """

    first_byte: list[float]
    last_byte: list[float]
    sizes: list[int]
    between: list[float]

    def gaps(self) -> list[float]:
        """Work between two requests: last byte of an answer to the first byte of the next request, in milliseconds."""
        return [(b - a) * 1000 for a, b in zip(self.last_byte, self.first_byte[1:], strict=False)]


def _answer(turn: int, turns: int, calls: int, deltas: int) -> bytes:
    """One streamed answer: ``calls`` tool calls, or text in ``deltas`` pieces at the end of the script."""
    blocks: list[tuple[dict, list[dict]]] = []
    if turn < turns:
        for n in range(calls):
            blocks.append(({"type": "tool_use", "id": f"toolu_{turn}_{n}", "name": "Noop", "input": {}},
                           [{"type": "input_json_delta", "partial_json": json.dumps({"value": turn})}]))
    else:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": "word "} for _ in range(deltas)]))
    events: list[dict] = [{"type": "message_start", "message": {
        "id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 100, "output_tokens": 1}}}]
    for index, (start, parts) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": part} for part in parts]
        events.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if turn < turns else "end_turn"
    events += [{"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": 20}}, {"type": "message_stop"}]
    body = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)
    return (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))


def _serve(listener: socket.socket, pipe: Connection, turns: int, calls: int, deltas: int, each: bool, delay: float) -> None:
    answers = [_answer(t, turns, calls, deltas) for t in range(turns + 1)]
    times = Times([], [], [], [])
    listener.settimeout(0.05)
    while True:
        if pipe.poll():
            pipe.send(times)
            return
        try:
            client, _ = listener.accept()
        except TimeoutError:
            continue
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_converse, args=(client, answers, times, each, delay), daemon=True).start()


def _converse(client: socket.socket, answers: list[bytes], times: Times, each: bool, delay: float) -> None:
    client.settimeout(60)
    asked, answered = 0, 0.0
    with client:
        while True:
            data = client.recv(1 << 20)
            if not data:
                return
            began = time.monotonic()
            while b"\r\n\r\n" not in data:
                data += client.recv(1 << 20)
            head, _, body = data.partition(b"\r\n\r\n")
            length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                           if line.startswith(b"content-length")), 0)
            received = len(body)
            while received < length:
                received += len(client.recv(1 << 20))
            turn = asked % len(answers) if each else len(times.first_byte)
            if each and turn:
                times.between.append(began - answered)
            asked += 1
            times.first_byte.append(began)
            times.sizes.append(length)
            time.sleep(delay)
            client.sendall(answers[min(turn, len(answers) - 1)])
            answered = time.monotonic()
            times.last_byte.append(answered)


class Server:
    """The address of a running server; ``times()`` ends it."""

    def __init__(self, url: str, pipe: Connection, process: multiprocessing.Process) -> None:
        self.url = url
        self._pipe = pipe
        self._process = process

    def times(self) -> Times:
        self._pipe.send("stop")
        times: Times = self._pipe.recv()
        self._process.join()
        return times


@contextmanager
def model_server(turns: int, calls: int = 1, deltas: int = 10, *, each: bool = False, delay: float = 0.0) -> Iterator[Server]:
    """Serve ``turns`` answers with ``calls`` tool calls each, then one of text.

    :param each: count for each connection by itself, and begin again behind the text.
    :param delay: seconds that the model takes.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(listener, there, turns, calls, deltas, each, delay), daemon=True)
    process.start()
    try:
        yield Server(f"http://127.0.0.1:{listener.getsockname()[1]}", here, process)
    finally:
        if process.is_alive():
            process.terminate()
        listener.close()


# -- answers by a function, for what is not measured ------------------------------------------------------------------------
Piece = bytes | float | int
"""Bytes to send, seconds to wait, or (first of all) another status than 200."""


def events(*blocks: dict, pause: float = 0.0) -> Iterator[Piece]:
    """The stream of one answer, text in words; between two pieces it waits."""
    usage = {"input_tokens": 9, "output_tokens": 1}
    yield _event({"type": "message_start", "message": {"id": f"msg_{time.monotonic_ns()}", "type": "message", "role": "assistant",
                                                       "model": "m", "content": [], "usage": usage}})
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            start, deltas = {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        else:
            start, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": f"{word} "} for word in block["text"].split()]
        yield _event({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            yield pause
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    yield _event({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage})
    yield _event({"type": "message_stop"})


def _event(event: dict) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


@contextmanager
def answering(answer: Callable[[dict], Iterator[Piece]]) -> Iterator[str]:
    """The address of a server in threads of this process; ``answer`` gets the decoded body of each request."""
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            pieces = answer(body)
            first = next(pieces)
            self.send_response(first if isinstance(first, int) else 200)
            self.send_header("content-type", "application/json" if isinstance(first, int) else "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            try:
                for piece in pieces if isinstance(first, int) else itertools.chain([first], pieces):
                    if isinstance(piece, bytes):
                        self.wfile.write(piece)
                    elif piece:
                        time.sleep(piece)
            except OSError:  # whoever asked is gone
                pass
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
