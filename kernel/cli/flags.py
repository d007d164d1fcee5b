"""The flags of a run, as one table (headless contract, section 2): parser, help text and options all come from it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Kind = Literal["switch", "value", "each", "many", "maybe", "integer", "number"]


class Flag(NamedTuple):
    """``option``: field of ``Options``, or ``extra.NAME``. ``needs``: the plugin whose feature it is; a run without that
    plugin refuses the flag instead of ignoring it. ``kind``: ``many`` takes several arguments, ``maybe`` one or none."""

    names: str
    kind: Kind
    option: str
    help: str
    needs: str = ""


FLAGS = (
    Flag("-p --print", "switch", "print_mode", "run the prompt, print the answer, exit"),
    Flag("--output-format", "value", "output_format", "text, json or stream-json"),
    Flag("--input-format", "value", "input_format", "text or stream-json"),
    Flag("--verbose", "switch", "verbose", "all messages; stream-json needs it"),
    Flag("--include-partial-messages", "switch", "include_partial_messages", "the model's stream as it comes"),
    Flag("--include-hook-events", "switch", "include_hook_events", "messages about configured hooks; not about those in Python"),
    Flag("--replay-user-messages", "switch", "replay_user_messages", "repeat user messages read from stdin"),
    Flag("--model", "value", "model", "alias, id, or provider:model"),
    Flag("--max-turns", "integer", "max_turns", "end after that many turns with tool calls"),
    Flag("--max-budget-usd", "number", "max_budget_usd", "end when that many dollars are spent"),
    Flag("--effort", "value", "effort", "low, medium, high, xhigh or max"),
    Flag("--thinking", "value", "thinking", "adaptive or disabled"),
    Flag("--thinking-display", "value", "extra.thinking_display", "what is shown of thinking: summarized or omitted"),
    Flag("--max-thinking-tokens", "integer", "max_thinking_tokens", "fixed thinking budget"),
    Flag("--betas", "value", "betas", "comma list of beta features"),
    Flag("--system-prompt", "value", "system_prompt", "replace the system prompt; empty for none"),
    Flag("--system-prompt-file", "value", "extra.system_prompt_file", "the same from a file"),
    Flag("--append-system-prompt", "value", "append_system_prompt", "add to the system prompt"),
    Flag("--append-system-prompt-file", "value", "extra.append_system_prompt_file", "the same from a file"),
    Flag("--tools", "value", "tools", "the tools that exist: names, 'default', or empty for none"),
    Flag("--allowedTools --allowed-tools", "many", "allowed_tools", "allow rules of this run"),
    Flag("--disallowedTools --disallowed-tools", "many", "disallowed_tools", "deny rules of this run"),
    Flag("--permission-mode", "value", "permission_mode", "default, acceptEdits, plan, dontAsk or bypassPermissions"),
    Flag("--dangerously-skip-permissions", "switch", "extra.skip_permissions", "the same as bypassPermissions"),
    Flag("--allow-dangerously-skip-permissions", "switch", "allow_bypass", "make bypassPermissions reachable later"),
    Flag("--permission-prompt-tool", "value", "extra.permission_prompt_tool", "who answers permission questions", "control"),
    Flag("--add-dir", "many", "add_dirs", "further working directories"),
    Flag("-c --continue", "switch", "continue_session", "go on with the latest session of this folder"),
    Flag("-r --resume", "maybe", "resume", "go on with a session, by id or name"),
    Flag("--fork-session", "switch", "fork_session", "with resume or continue: go on in a copy"),
    Flag("--session-id", "value", "session_id", "the id of the new session (a UUID)"),
    Flag("--resume-session-at", "value", "resume_at", "resume up to that entry only"),
    Flag("--resume-drops-turn", "value", "extra.resume_drops_turn", "with --resume-session-at: what is cut must be that turn"),
    Flag("--rewind-files", "value", "extra.rewind_files", "with --resume: put files back to what they were at that prompt, exit",
         "sessions"),
    Flag("--no-session-persistence", "switch", "extra.no_persistence", "write no transcript"),
    Flag("-n --name", "value", "name", "a name for the session"),
    Flag("--settings", "value", "settings", "one more settings file, or JSON text"),
    Flag("--setting-sources", "value", "setting_sources", "which of user,project,local to read"),
    Flag("--plugin-dir", "each", "plugin_dirs", "a plugin folder for this run"),
    Flag("--harness", "value", "harness", "run what that harness file locks, verified against its lock; or KERNEL_HARNESS"),
    Flag("--block", "many", "block", "plugins to leave out"),
    Flag("--exclude-dynamic-system-prompt-sections", "switch", "extra.exclude_dynamic_system_prompt_sections",
         "what differs between machines goes into the first user message"),
    Flag("--init", "switch", "extra.init", "raise Setup(init) first"),
    Flag("--init-only", "switch", "extra.init_only", "raise Setup and SessionStart, then exit"),
    Flag("--maintenance", "switch", "extra.maintenance", "raise Setup(maintenance) first"),
    Flag("--debug", "value", "extra.debug", "debug log on stderr; --debug=FILTER"),
    Flag("--debug-file", "value", "extra.debug_file", "debug log to a file"),
    Flag("--fallback-model", "value", "extra.fallback_model", "models to use when the first is overloaded", "fallback"),
    Flag("--json-schema", "value", "extra.json_schema", "structured output", "structured-output"),
    Flag("--mcp-config", "many", "extra.mcp_config", "MCP servers", "mcp"),
    Flag("--strict-mcp-config", "switch", "extra.strict_mcp_config", "only the servers of --mcp-config", "mcp"),
    Flag("--agents", "value", "extra.agents", "subagents as JSON", "subagents"),
    Flag("--agent", "value", "extra.agent", "run as that agent", "subagents"),
    Flag("--append-subagent-system-prompt", "value", "extra.append_subagent_system_prompt", "add to every subagent's prompt",
         "subagents"),
    Flag("--forward-subagent-text", "switch", "extra.forward_subagent_text", "also show what subagents say", "subagents"),
    Flag("--session-mirror", "switch", "extra.session_mirror", "mirror the transcript to the host", "control"),
    Flag("--attach", "value", "extra.attach", "run in the process that kernel serve started; --attach=SOCKET", "serve"),
    Flag("--durable", "switch", "extra.durable", "record the steps; another process takes the run up after a kill", "durable"),
    Flag("--record", "value", "extra.record", "record the run into a file or folder, for kernel replay", "replay"),
    Flag("--disable-slash-commands", "switch", "extra.disable_slash_commands", "no skills and commands"),
)


_HOW: dict[str, dict[str, Any]] = {
    "switch": {"action": "store_true"}, "value": {}, "integer": {"type": int}, "number": {"type": float},
    "each": {"action": "append"}, "many": {"nargs": "+", "action": "extend"}, "maybe": {"nargs": "?", "const": ""}}


def parser() -> Any:
    """An ``argparse`` parser whose errors are ``UsageError``."""
    import argparse

    from kernel.errors import UsageError

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> Any:
            raise UsageError(message, hint="kernel --help lists the flags")

    made = Parser(prog="kernel", add_help=False, allow_abbrev=False)
    for flag in FLAGS:
        how = _HOW[flag.kind]
        made.add_argument(*flag.names.split(), dest=flag.option, default=None, **how)
    return made


def help_text(plugins: dict[str, str] | None = None) -> str:
    """The whole of ``kernel --help``.

    :param plugins: command -> plugin of the commands that plugins bring.
    """
    from kernel.cli.table import COMMANDS

    lines = ["kernel: a plugin-first harness for language models", "",
             "usage: kernel [PROMPT] [flags]      a conversation on the terminal (plugin terminal)",
             "       kernel -p PROMPT [flags]     (or: ... | kernel -p)", "       kernel COMMAND [arguments]", "", "commands:"]
    lines += [f"  {name:<12} {summary}" for name, (_, summary) in COMMANDS.items()]
    if plugins:
        lines += ["", "commands of plugins (kernel COMMAND --help says more):", *_grouped(plugins)]
    lines += ["", "flags:"]
    for flag in FLAGS:
        value = {"switch": "", "many": " X [X ...]", "maybe": " [X]"}.get(flag.kind, " X")
        names = ", ".join(flag.names.split()) + value
        needs = f" (plugin {flag.needs})" if flag.needs else ""
        lines.append(f"  {names:<42} {flag.help}{needs}")
    lines += ["", "  -v, --version                              the contract's version and kernel's own",
              "", "Documentation: docs/index.md of the project."]
    return "\n".join(lines)


def _grouped(plugins: dict[str, str]) -> list[str]:
    """Commands of two words by their first one: one paragraph for each, and one line for all that stand alone."""
    from textwrap import wrap

    groups: dict[str, list[str]] = {}
    for name in sorted(plugins):
        first, _, rest = name.partition(" ")
        groups.setdefault(first, []).extend([rest] if rest else [])
    lines: list[str] = []
    for first, words in groups.items():
        told = wrap(", ".join(words), 100) or [f"(plugin {plugins[first]})"]
        lines += [f"  {first if n == 0 else '':<12} {line}" for n, line in enumerate(told)]
    return lines
