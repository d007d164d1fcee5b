"""Check a value in a process of its own: a pattern that never comes to an end can be given up there (section 2)."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from kernel import OutputProblem
from kernel_structured_output.repair import problems_of
from kernel_structured_output.schema import Schema

LIMIT_S = 6.0
"""Seconds for the whole check, the start of the process included."""


async def check(schema: Schema, value: Any) -> list[OutputProblem]:
    """What does not fit; a check that takes too long is a problem of the value."""
    import anyio

    raw = msgspec.json.encode([msgspec.to_builtins(schema), value])
    try:
        with anyio.fail_after(LIMIT_S):
            done = await anyio.run_process([sys.executable, "-m", __name__], input=raw, check=False)
    except TimeoutError:
        return [OutputProblem(validator="json_schema", path="", rule="pattern", received="a value that takes too long to check",
                              expected=f"texts that the schema's patterns can be checked against within {LIMIT_S:g} s")]
    if done.returncode:
        raise RuntimeError(f"the check of a value ended with {done.returncode}: {done.stderr[-300:].decode('utf-8', 'replace')}")
    return msgspec.json.decode(done.stdout, type=list[OutputProblem])


def main() -> None:
    given, value = msgspec.json.decode(sys.stdin.buffer.read())
    sys.stdout.buffer.write(msgspec.json.encode(problems_of(msgspec.convert(given, Schema), value)))


if __name__ == "__main__":
    main()
