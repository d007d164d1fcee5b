"""``kernel plugins validate``, ``kernel plugins schema`` and ``kernel lint`` (lint contract, section 3)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from kernel import run_app
from kernel_linter.rule import Rule

FORMATS = ("text", "json", "sarif", "github", "grouped")
PROFILES = ("default", "strict", "spec", "compat", "security")


class Validate:
    """Exit codes: 0 no error (with ``--strict``: no warning either), 1 findings, 2 wrong usage, 3 a fault of ours."""

    name = "plugins validate"
    summary = "check plugins, marketplaces, skills, agents, hooks, servers and settings without running them"

    def run(self, args: list[str]) -> int:
        return run_app(_validate_app(self.name), args, f"kernel {self.name}")


class Lint(Validate):
    name = "lint"
    summary = "the same as plugins validate; 'lint explain CODE' and 'lint rules' tell about the rules"

    def run(self, args: list[str]) -> int:
        if args[:1] == ["explain"]:
            return run_app(_explain_app(), args[1:], "kernel lint explain")
        if args[:1] == ["rules"]:
            return run_app(_rules_app(), args[1:], "kernel lint rules")
        return super().run(args)


class Schema:
    """Prints JSON Schemas that come from the tables the rules use."""

    name = "plugins schema"
    summary = "print the JSON Schema of a manifest, marketplace, hooks file, frontmatter, MCP or settings file"

    def run(self, args: list[str]) -> int:
        return run_app(_schema_app(), args, f"kernel {self.name}")


def _validate_app(name: str) -> Any:
    import typer

    app = typer.Typer(add_completion=False)
    option = typer.Option

    @app.command(name, help="Check paths (default: the current directory) without running any of their code.")
    def validate(
        paths: list[Path] | None = typer.Argument(None, metavar="[PATH]", help="plugin, marketplace, tree or file"),  # noqa: B008
        output: str = option("text", "--format", "--output-format", help=" ".join(FORMATS)),
        as_json: bool = option(False, "--json", help="the same as --format json"),
        output_file: Path | None = option(None, "--output-file", help="write the report to a file"),  # noqa: B008
        select: list[str] | None = option(None, "--select", help="only these: codes, prefixes, PREFIX/slug, ALL"),  # noqa: B008
        extend_select: list[str] | None = option(None, "--extend-select", help="these too"),  # noqa: B008
        ignore: list[str] | None = option(None, "--ignore", help="not these"),  # noqa: B008
        profile: str = option("", "--profile", help=" ".join(PROFILES)),
        target: str = option("", "--target", help="host version; older ones turn version findings on"),
        strict: bool = option(False, "--strict", help="warnings fail too"),
        preview: bool = option(False, "--preview", help="rules in preview too (there are none)"),
        fix: bool = option(False, "--fix", help="repair what can be repaired safely"),
        unsafe_fixes: bool = option(False, "--unsafe-fixes", help="repair what may change behaviour too"),
        diff: bool = option(False, "--diff", help="with --fix: show the repairs and write nothing"),
        since: str = option("", "--since", help="git revision to compare the catalogue with"),
        baseline: Path | None = option(None, "--baseline", help="hide the findings of this file"),  # noqa: B008
        write_baseline: Path | None = option(None, "--write-baseline", help="write the findings to this file"),  # noqa: B008
        config: Path | None = option(None, "--config", help="configuration file"),  # noqa: B008
        no_config: bool = option(False, "--no-config", help="read no configuration"),
        exit_zero: bool = option(False, "--exit-zero", help="findings do not fail"),
        statistics: bool = option(False, "--statistics", help="count by rule"),
    ) -> None:
        from kernel_linter.session import Asked, run

        raise typer.Exit(run(Asked(
            paths=paths or [Path()], format="json" if as_json else output, output_file=output_file, select=_words(select),
            extend_select=_words(extend_select), ignore=_words(ignore), profile=profile, target=target, strict=strict,
            preview=preview, fix=fix,
            unsafe_fixes=unsafe_fixes, diff=diff, since=since, baseline=baseline, write_baseline=write_baseline, config=config,
            no_config=no_config, exit_zero=exit_zero, statistics=statistics)))

    return app


def _words(values: list[str] | None) -> list[str]:
    return [word.strip() for value in values or () for word in value.split(",") if word.strip()]


def _explain_app() -> Any:
    import typer

    app = typer.Typer(add_completion=False)

    @app.command(help="What a rule says, why, and an example.")
    def explain(code: str) -> None:
        from kernel_linter.session import rules_of_run

        rule = rules_of_run().find(code)
        if rule is None:
            print(f"Error: {code!r} is no rule; 'kernel lint rules' lists them", file=sys.stderr)
            raise typer.Exit(2)
        print(f"{rule.code} {rule.slug} ({rule.severity}, fix: {rule.fix}, since {rule.since})\n\n{rule.doc}")

    return app


def _rules_app() -> Any:
    import typer

    app = typer.Typer(add_completion=False)

    @app.command(help="All rules.")
    def rules(output: str = typer.Option("text", "--format", "--output-format"), as_json: bool = typer.Option(False,
                                                                                                              "--json")) -> None:
        import json

        from kernel_linter.session import rules_of_run

        found = rules_of_run().all()
        if as_json or output == "json":
            print(json.dumps([_row(r) for r in found], indent=1))
        elif output != "text":
            print(f"Error: --format {output}: text or json", file=sys.stderr)
            raise typer.Exit(2)
        else:
            for r in found:
                print(f"{r.code} {r.severity:<7} {r.slug}")

    return app


def _row(rule: Rule) -> dict[str, str]:
    summary = " ".join(rule.doc.split("\n\n")[0].split())
    return {"code": rule.code, "slug": rule.slug, "severity": rule.severity, "fix": rule.fix, "since": rule.since,
            "summary": summary,
            "profile": rule.profile, "plugin": rule.plugin}


def _schema_app() -> Any:
    import typer

    app = typer.Typer(add_completion=False)

    @app.command(help="Print a JSON Schema, or all of them as one object; with --output-dir write one file each.")
    def schema(kind: str = typer.Argument("",
        help="manifest marketplace hooks skill command agent style mcp lsp monitors theme settings"),
               output_dir: Path | None = typer.Option(None, "--output-dir")) -> None:  # noqa: B008
        import json

        from kernel_linter.schemas import KINDS, schema as build

        if kind and kind not in KINDS:
            print(f"Error: {kind!r} is no kind of schema: {', '.join(KINDS)}", file=sys.stderr)
            raise typer.Exit(2)
        chosen = [kind] if kind else list(KINDS)
        if output_dir is None:
            print(json.dumps(build(kind) if kind else {k: build(k) for k in chosen}, indent=2))
            return
        output_dir.mkdir(parents=True, exist_ok=True)
        for name in chosen:
            (output_dir / f"{name}.schema.json").write_text(json.dumps(build(name), indent=2) + os.linesep, "utf-8")

    return app
