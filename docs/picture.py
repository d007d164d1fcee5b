"""What is, measured: the sizes and imports of the kernel's modules, and the files that four trips enter, in their order.

``python docs/generate.py`` writes both into ``docs/architecture.md``; a test compares.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import threading
import tokenize
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
# -- sizes and imports ---------------------------------------------------------------------------------------------------
def code_lines(source: str) -> int:
    """Lines that hold code: neither blank, nor comment, nor docstring."""
    docs: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docs.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = {line for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in quiet
             for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - docs)


def imports(source: str) -> tuple[set[str], set[str], set[str]]:
    """Kernel modules that are imported at once, in a function, and for types alone."""
    eager: set[str] = set()
    lazy: set[str] = set()
    typing: set[str] = set()

    def walk(node: ast.AST, found: set[str]) -> None:
        for child in ast.iter_child_nodes(node):
            inner = found
            if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
                inner = typing
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and found is eager:
                inner = lazy
            if isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == "kernel":
                inner |= {f"kernel.{a.name}" for a in child.names} if child.module == "kernel" else {str(child.module)}
            walk(child, inner)

    walk(ast.parse(source), eager)
    return eager, lazy - eager, typing - eager - lazy


def table() -> str:
    """One line per package of the kernel, and one per plugin."""
    lines = ["| module | lines | of code | imports at once | in functions | for types |", "| --- | --- | --- | --- | --- | --- |"]
    total = [0, 0]
    for path in sorted(ROOT.glob("kernel/**/*.py")):
        source = path.read_text("utf-8")
        size, code = len(source.splitlines()), code_lines(source)
        total = [total[0] + size, total[1] + code]
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        counts = [str(len(found)) for found in imports(source)]
        lines.append(f"| `{name}` | {size} | {code} | {' | '.join(counts)} |")
    lines.append(f"| together | {total[0]} | {total[1]} | | | |")
    return "\n".join(lines)


# -- trips ---------------------------------------------------------------------------------------------------------------
Mark = Callable[[str, str, FrameType], bool]


def at(file: str, function: str, **values: str) -> Mark:
    """A function of a file; ``values`` are what arguments are, or the names of their classes."""
    return lambda f, n, frame: f.endswith(file) and n == function and all(
        v in (type(frame.f_locals.get(k)).__name__, frame.f_locals.get(k)) for k, v in values.items())


class Stretch:
    """Files entered between the call of one function and the call, or the return, of another; each once, in order."""

    def __init__(self, begin: Mark, end: Mark, *, at_return: bool = True) -> None:
        self.begin, self.end, self.at_return = begin, end, at_return
        self.files: list[str] = []
        self.state = "before"

    def see(self, event: str, file: str, function: str, frame: FrameType) -> None:
        if self.state == "before" and event == "call" and self.begin(file, function, frame):
            self.state = "on"
        if self.state == "on":
            if event == "call" and file not in self.files:
                self.files.append(file)
            if (event == "return") == self.at_return and self.end(file, function, frame):
                self.state = "over"


def trips() -> dict[str, list[Stretch]]:
    load = at("kernel/settings.py", "load")
    find, decide = at("kernel/plugins.py", "find"), at("kernel/plugins.py", "decide")
    return {
        "A prompt, from the command line to the first request": [
            Stretch(at("kernel/cli/__init__.py", "main"), at("kernel_model_anthropic/provider.py", "_send"), at_return=False)],
        "A `PreToolUse` command hook, from the settings file to the merged decision": [
            Stretch(load, load), Stretch(at("kernel/session.py", "fire", event="PreToolUse"), at("kernel/merge.py", "merge"))],
        "A `Bash` call, from the model's block to its result message": [
            Stretch(at("kernel/batch.py", "run_batch"), at("kernel/batch.py", "_finish"))],
        "A manifest, from disk to a registered tool": [
            Stretch(find, find), Stretch(decide, decide),
            Stretch(at("kernel/plugins.py", "fill", kind="tools"), at("kernel/registry.py", "__call__"))],
    }


def run_trips() -> dict[str, list[Stretch]]:
    """One real run of the command line with a hook and a Bash call, watched. Changes the process: run it in one of its own."""
    found = trips()
    stretches = [s for some in found.values() for s in some]
    roots = (str(ROOT / "kernel") + os.sep, str(ROOT / "plugins") + os.sep)
    importing = 0
    known: set[FrameType] = set()  # a coroutine that goes on is no new station

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal importing
        function = frame.f_code.co_name
        if function == "<module>":  # what runs while a module is imported is no station of a trip
            importing += {"call": 1, "return": -1}.get(event, 0)
        elif event in ("call", "return") and not importing and not function.startswith("<"):
            file = frame.f_code.co_filename
            if file.startswith(roots) and not (event == "call" and frame in known):
                known.add(frame)
                for stretch in stretches:
                    stretch.see(event, file.removeprefix(str(ROOT) + os.sep), function, frame)

    with tempfile.TemporaryDirectory() as folder, _model() as url:
        home, work = Path(folder, "home"), Path(folder, "work")
        (work / ".claude").mkdir(parents=True)
        home.mkdir()
        hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "cat > /dev/null"}]}
        (work / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV")}
        os.environ.clear()
        os.environ.update(kept, HOME=str(home), ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="k", USER="someone", SHELL="/bin/sh")
        os.chdir(work)
        from kernel.cli import main

        with contextlib.redirect_stdout(io.StringIO()):
            sys.setprofile(watch)
            code = main(["-p", "go", "--allowedTools", "Bash", *(f"--block={name}" for name in _beside_the_default_set())])
            sys.setprofile(None)
        os.chdir("/")
    if code != 0 or any(s.state != "over" for s in stretches):
        raise RuntimeError(f"the run ended with {code}; {[(t, [s.state for s in some]) for t, some in found.items()]}")
    return found


def _beside_the_default_set() -> list[str]:
    """The plugins that ``requirements-dev.txt`` installs and ``requirements.txt`` does not."""
    dev, default = (set(re.findall(r"plugins/([a-z-]+)", (ROOT / file).read_text("utf-8")))
                    for file in ("requirements-dev.txt", "requirements.txt"))
    return sorted(dev - default)


@contextlib.contextmanager
def _model() -> Iterator[str]:
    """A server that asks for one Bash call and then says that it is done."""
    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    def answer(block: dict[str, Any], delta: dict[str, Any], stop: str) -> bytes:
        start = {"id": "msg_1", "model": "m", "role": "assistant", "content": [], "usage": {}}
        return b"".join([event("message_start", message=start), event("content_block_start", index=0, content_block=block),
                         event("content_block_delta", index=0, delta=delta), event("content_block_stop", index=0),
                         event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 1}), event("message_stop")])

    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
    answers = [answer(call, {"type": "input_json_delta", "partial_json": '{"command": "true"}'}, "tool_use"),
               answer({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}, "end_turn")]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = answers.pop(0)
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


def trips_text() -> str:
    lines: list[str] = []
    for title, stretches in run_trips().items():
        ways = [" → ".join(f"`{_short(f)}`" for f in s.files) for s in stretches]
        lines += [f"**{title}** ({sum(len(s.files) for s in stretches)} files)", "", ";\n".join(ways), ""]
    return "\n".join(lines).rstrip()


def _short(file: str) -> str:
    parts = Path(file).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__") if parts[0] == "kernel" else f"{parts[1]}: {'.'.join(parts[4:])}"


if __name__ == "__main__":
    print(json.dumps({"table": table(), "trips": trips_text()}))
