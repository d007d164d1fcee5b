"""``kernel replay``: a recorded run once more, without a model."""

from __future__ import annotations

from kernel import run_app


class Replay:
    """The subcommand."""

    name = "replay"
    summary = "replay a recorded run without a model, and name the first event that differs"

    def run(self, args: list[str]) -> int:
        import typer

        from kernel_replay.running import replay_

        app = typer.Typer(add_completion=False)
        app.command(help=f"{self.summary[0].upper()}{self.summary[1:]}. Exit code 0: equal; 1: it differs; 2: it cannot be "
                         "replayed.")(replay_)
        return run_app(app, args, "kernel replay")
