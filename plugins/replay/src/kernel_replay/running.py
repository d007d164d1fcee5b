"""What ``kernel replay`` does and says."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel import KernelError
from kernel_replay.recording import load
from kernel_replay.replay import PATIENCE_S, Report, replay
from kernel_replay.setting import harness_of, moved, surroundings

UNUSABLE = 2


def replay_(
    file: Annotated[Path, typer.Argument(help="what --record wrote")],
    live: Annotated[str, typer.Option("--live", help="done for real: tools, hooks, decisions, parts, mcp; a comma list")] = "",
    block: Annotated[list[str] | None, typer.Option("--block", help="a plugin to leave out")] = None,
    plugin_dir: Annotated[list[Path] | None, typer.Option("--plugin-dir", help="a plugin folder that takes part")] = None,
    harness: Annotated[Path | None, typer.Option("--harness", help="the plugin set of that harness file")] = None,
    settings: Annotated[str | None, typer.Option("--settings", help="another settings file, or JSON text")] = None,
    cwd: Annotated[Path | None, typer.Option("--cwd", help="replay in that folder instead of the recorded one")] = None,
    until: Annotated[int, typer.Option("--until", help="stop behind that many events", min=0)] = 0,
    patience: Annotated[float, typer.Option("--patience", help="seconds until an event counts as missing", min=0.1)] = PATIENCE_S,
    output: Annotated[bool, typer.Option("--output", help="print the messages of the run, as stream-json has them")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Replay a recorded run without a model, and name the first event that differs. Exit code 0: equal; 1: it differs; 2: it
    cannot be replayed."""
    try:
        recording = load(file)
        if cwd is not None:
            recording = moved(recording, cwd)
        if until:
            recording.events, recording.cut = recording.events[:until], f"--until {until}"
        changes: dict[str, Any] = {}
        if block:
            changes["block"] = [*recording.header.options.get("block", []), *block]
        if plugin_dir:
            changes["plugin_dirs"] = [str(p.resolve()) for p in plugin_dir]
        if harness:
            changes["harness"] = str(harness.resolve())
        if settings:
            changes["settings"] = settings
        with surroundings(recording) as stand_ins, contextlib.redirect_stdout(sys.stderr):
            kinds = [kind for kind in live.split(",") if kind]
            report = _run(recording, lambda: harness_of(recording, changes, live=kinds), kinds, stand_ins, patience)
    except KernelError as error:
        print(json.dumps({"unusable": str(error)}, indent=1) if as_json else f"Error: {error}",
              file=sys.stdout if as_json else sys.stderr)
        raise typer.Exit(UNUSABLE) from None
    if output:
        for line in report.lines:
            print(line.decode())
    print(json.dumps(as_wire(report), indent=1, default=str) if as_json else "\n".join(as_lines(report)),
          file=sys.stderr if output else sys.stdout)
    raise typer.Exit(0 if report.equal else 1)


def _run(recording: Any, make: Any, live: list[str], stand_ins: dict[str, str], patience: float) -> Report:
    import anyio

    async def go() -> Report:
        return await replay(recording, make(), live=live, stand_ins=stand_ins, patience=patience)

    return anyio.run(go)


def as_wire(report: Report) -> dict[str, Any]:
    """The report as plain data, without the outputs."""
    return {"equal": report.equal, "difference": report.difference.wire() if report.difference else None,
            "events": report.events, "of": report.of, "requests": report.requests, "outputs": report.outputs,
            "recordedSeconds": round(report.recorded, 3), "seconds": round(report.took, 3), "speed": round(report.speed, 1),
            "cut": report.cut or None, "plugins": report.changed, "notes": report.notes}


def as_lines(report: Report) -> list[str]:
    """The report in words."""
    counted = f"{report.events} of {report.of} events, {report.requests} requests, {report.outputs} outputs"
    lines = [f"plugin {said}" for said in report.changed]
    lines += [f"note: {said}" for said in report.notes]
    lines += [f"the recording ends early: {report.cut}"] if report.cut else []
    if report.difference is not None:
        return [*lines, f"differs behind {counted}", *report.difference.lines()]
    return [*lines, f"equal: {counted}, {report.speed:.0f} times as fast as it was"]
