"""``kernel plugins new``: arguments in, files out, exit codes."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from kernel import UsageError, run_app
from kernel_scaffold.kinds import KINDS

app = typer.Typer(name="kernel plugins new", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_KINDS = "; ".join(f"{name}: {kind.summary}" for name, kind in KINDS.items())


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="the plugin's name, for example word-count")],
    kind: Annotated[list[str] | None, typer.Option(help=f"{_KINDS}; tool by default")] = None,
    folder: Annotated[Path, typer.Option("--dir", help="the folder to make it in")] = Path("."),
    author: Annotated[str | None, typer.Option(help="who writes it; git's user.name by default")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Make a working plugin: code, manifest, packaging and tests that pass."""
    from kernel_scaffold.make import make

    if kind and len(kind) > 1:
        raise UsageError("--kind can be given once: a new plugin begins with one kind",
                         hint=f"kernel plugins new {name} --kind {kind[0]}, then add the other by hand: docs/plugins.md, "
                              "'A second kind in one plugin'")
    made = make(name, kind[0] if kind else "tool", folder, author)
    if as_json:
        print(json.dumps({"name": made.name, "kind": made.kind, "path": str(made.path.resolve()), "package": made.package,
                          "distribution": made.distribution, "files": made.files, "notes": made.notes}, indent=1))
        return
    for note in made.notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"{made.path} is a working plugin of the kind {made.kind} ({len(made.files)} files). Next:\n\n"
          f"  cd {shlex.quote(str(made.path))}\n  pip install -e .\n  pytest\n  kernel plugins validate ."
          + ('\n  kernel -p "How many words does README.md have?" --model script:talk.yaml' if "talk.yaml" in made.files else ""))


class PluginsNew:
    """``kernel plugins new``. Writes one new folder and nothing else."""

    name = "plugins new"
    summary = "make a working plugin to begin with"

    def run(self, args: list[str]) -> int:
        """Exit code 0 where the folder was made, 1 where it could not be written, 2 for wrong usage."""
        try:
            return run_app(app, args, str(app.info.name))
        except UsageError as error:
            print(f"Error: {error}", file=sys.stderr)
            return 2
        except OSError as error:
            print(f"Error: {error.filename or 'the folder'}: {error.strerror}", file=sys.stderr)
            return 1
