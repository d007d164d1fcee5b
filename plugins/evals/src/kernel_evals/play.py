"""One case played: a home, a workspace, a process of ``kernel -p``, and what is left of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kernel_evals.suite import Case, Fault, Suite
from kernel_evals.trace import Plan

PASSED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "TZ")
FOR_A_MODEL = ("ANTHROPIC_", "CLAUDE_CODE_USE_", "AWS_", "GOOGLE_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
               "https_proxy", "no_proxy", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "KERNEL_PROVIDER")
MOST_FILE = 1 << 20


class Setup(Struct, kw_only=True):
    """What is evaluated. ``model``: a real one instead of the scripts. ``harness``: a locked plugin set; ``block``: plugins left
    out."""

    name: str = "as installed"
    model: str | None = None
    harness: str | None = None
    block: list[str] = field(default_factory=list)
    fault: Fault | None = None


class Played(Struct, kw_only=True):
    """``messages``: the stream; ``trace``: what ``trace.py`` wrote; ``before``, ``after``: the text of the workspace's files."""

    messages: list[dict[str, Any]]
    trace: list[dict[str, Any]]
    before: dict[str, str]
    after: dict[str, str]
    exit_code: int | None
    stderr: str


def play(suite: Suite, case: Case, setup: Setup) -> Played:
    """Run it; blocks. A run that does not come to its end is a ``Played`` without a result message."""
    with tempfile.TemporaryDirectory(prefix="kernel-evals-") as name:
        folder = Path(name).resolve()
        home, work, trace = folder / "home", folder / "workspace", folder / "trace"
        for path in (home / ".claude", work, trace):
            path.mkdir(parents=True)
        _write(work, case.files)
        _write(home, case.home)
        settings = settings_of(suite, case, setup.fault)
        (home / ".claude" / "settings.json").write_text(json.dumps(settings), "utf-8")
        fault = setup.fault
        plan = Plan(inject=case.inject, lose=fault.lose if fault else None, hide_failures=bool(fault and fault.hide_failures))
        (trace / "plan.json").write_bytes(msgspec.json.encode(plan))
        before = _files(work)
        said = ({"type": "user", "message": {"role": "user", "content": text}} for text in case.prompts)
        lines = "".join(json.dumps(message) + "\n" for message in said)
        command = [sys.executable, "-P", "-m", "kernel", *_arguments(suite, case, setup, folder)]
        code, out, err = _run(command, lines, work, _environment(case, setup, home, trace), case.timeout_s)
        return Played(messages=_lines(out), trace=_lines(_read(trace / "trace.jsonl")), before=before, after=_files(work),
                      exit_code=code, stderr=err.decode("utf-8", "replace")[-4000:])


def settings_of(suite: Suite, case: Case, fault: Fault | None) -> dict[str, Any]:
    """The suite's, the case's over them, and what a fault does to them."""
    made = _merged(_merged({}, suite.settings), case.settings)
    for key, value in (fault.settings if fault else {}).items():
        inner = made
        *way, last = key.split(".")
        for part in way:
            inner = inner.setdefault(part, {})
        if value is None:
            inner.pop(last, None)
        else:
            inner[last] = value
    return made


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    made = dict(below)
    for key, value in above.items():
        old = made.get(key)
        made[key] = _merged(old if isinstance(old, dict) else {}, value) if isinstance(value, dict) else value
    return made


def _arguments(suite: Suite, case: Case, setup: Setup, folder: Path) -> list[str]:
    made = ["-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose", *case.flags]
    if setup.model:
        made += ["--model", setup.model]
    elif case.recording is not None:
        made += ["--model", f"script:{(Path(suite.path).parent / case.recording).resolve()}"]
    else:
        (folder / "talk.yaml").write_text(json.dumps({"name": case.id, **(case.script or {})}), "utf-8")  # JSON is YAML
        made += ["--model", f"script:{folder / 'talk.yaml'}"]
    if setup.harness:
        made += ["--harness", setup.harness]
    block = [*setup.block, *(setup.fault.block if setup.fault else ())]
    made += ["--block", *block] if block else []
    return made + (setup.fault.flags if setup.fault else [])


def _environment(case: Case, setup: Setup, home: Path, trace: Path) -> dict[str, str]:
    passed = {k: v for k, v in os.environ.items() if k in PASSED or (setup.model and k.startswith(FOR_A_MODEL))}
    return {**passed, "HOME": str(home), "KERNEL_EVALS_TRACE": str(trace), **case.environment}


def _run(command: list[str], lines: str, cwd: Path, env: dict[str, str], timeout: float) -> tuple[int | None, bytes, bytes]:
    with subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,  # noqa: S603  # our own
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            out, err = process.communicate(lines.encode(), timeout)
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                out, err = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                out, err = process.communicate()
            return None, out, err + f"\nended after {timeout:g} s".encode()


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _files(folder: Path) -> dict[str, str]:
    """Regular files, as text; links are not followed, what is long is cut."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            found[path.relative_to(folder).as_posix()] = _read(path)[:MOST_FILE].decode("utf-8", "replace")
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _lines(data: bytes) -> list[dict[str, Any]]:
    found = []
    for line in data.split(b"\n"):
        try:
            value = msgspec.json.decode(line) if line else None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
