"""The command: without a key a script plays the model; everything else is the real harness."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio

from kernel import Harness, KernelError, Options, ResultMessage, UsageError
from kernel_demo.printer import Printer

HERE = Path(__file__).parent
PROMPT = ("Find the TODO and FIXME notes in the files of this folder and write them, with file and line, to TODO-REPORT.md. "
          "Change nothing else.")
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
USAGE = """usage: kernel demo [--scripted]

Finds the TODO and FIXME notes in the folder you stand in and writes them to TODO-REPORT.md. With ANTHROPIC_API_KEY or
ANTHROPIC_AUTH_TOKEN the model is asked; without, or with --scripted, a script plays the model against the real harness."""


class Demo:
    """``kernel demo``. Exit code 0 where the job was done."""

    name = "demo"
    summary = "a small real job in the folder you stand in; needs no key"

    def run(self, args: list[str]) -> int:
        if args in (["-h"], ["--help"]):
            print(USAGE)
            return 0
        if args not in ([], ["--scripted"]):
            raise UsageError(f"unknown argument {args[0]!r}", context="kernel demo", hint="kernel demo --help")
        scripted = bool(args) or not any(os.environ.get(key) for key in KEYS)
        return anyio.run(self._run, scripted)

    async def _run(self, scripted: bool) -> int:
        script = HERE / "script.yaml"
        printer = Printer(sys.stdout)
        printer.line(f"Scripted: no model is asked; {script} plays it." if scripted else "Live: the model is asked.")
        printer.line("Files, commands, hooks and permission decisions are real.\n")
        printer.line(f"> {PROMPT}\n")
        harness = Harness(Options(prompt=PROMPT, model=f"script:{script}" if scripted else None, permission_mode="acceptEdits",
                                  plugin_dirs=[HERE / "guide"], max_turns=30))
        for text in harness.announced:
            printer.line(f"! {text}")
        harness.listeners.append(lambda text: printer.line(f"! {text}"))
        session = harness.open(printer.take)
        try:
            result = await session.submit(PROMPT)
        finally:
            await session.close()
        return self._end(result, printer, None if scripted else session.id)

    def _end(self, result: ResultMessage, printer: Printer, session: str | None) -> int:
        if result.is_error:
            text = result.result if isinstance(result.result, str) else "; ".join(result.errors or ())
            raise KernelError(text or result.subtype, context="kernel demo", hint="kernel doctor says what works")
        more = f" Go on with: kernel -p \"...\" --resume {session}" if session else ""
        printer.line(f"\n{result.num_turns} requests, {len(result.permission_denials)} call(s) refused.{more}")
        return 0
