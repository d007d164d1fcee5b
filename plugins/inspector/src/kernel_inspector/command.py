"""``kernel inspect``: the command line's side; the work is done elsewhere."""

from __future__ import annotations

from kernel import run_app


class InspectCommand:
    name = "inspect"
    summary = "a session as a local page: turns, tools, hooks, decisions, context, cost and time"

    def run(self, args: list[str]) -> int:
        import typer

        from kernel_inspector.showing import inspect

        app = typer.Typer(add_completion=False)
        app.command(help="Show a session as a local page, live while it runs.")(inspect)
        return run_app(app, args, "kernel inspect")
