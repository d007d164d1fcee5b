"""Nothing heavy is imported before it is needed (decision D13): a whole run with the default plugins, looked at from inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

HEAVY = ("anthropic", "jsonschema", "yaml", "typer", "click", "rich", "tree_sitter", "tree_sitter_bash", "pydantic",
         "prompt_toolkit", "markdown_it", "importlib.metadata", "xml", "sqlite3", "multiprocessing")
EVENTS = [
    {"type": "message_start", "message": {"id": "msg_1", "model": "m", "role": "assistant", "content": [], "usage": {}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]


@pytest.fixture
def url() -> Iterator[str]:
    """A server that answers every request with one streamed text."""
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in EVENTS)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_run_without_tools_imports_nothing_heavy(url: str, tmp_path: Path) -> None:
    program = ("import json, sys\nfrom kernel.cli import main\ncode = main(['-p', 'go'])\n"
               "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"],
                                                         "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"})
    assert done.stdout == "hello\n", done.stderr
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0
    assert not [m for m in HEAVY if m in modules]
    assert not {"kernel_demo", "kernel_model_script.script"} & set(modules), "a plugin that is not needed is not loaded"
