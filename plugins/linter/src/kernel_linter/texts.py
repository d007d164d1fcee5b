"""Questions about Markdown components that several rules ask."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_linter.frontmatter import parse, quotable, quote, repaired
from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.tools import REMOVED, ToolEntry, known, near
from kernel_linter.words import shown

if TYPE_CHECKING:
    from kernel_linter.bundle import Plugin

_REST = re.compile(r"^[-*\[\]\"'(){}|&:;.<>#]|[\"'\]]$|\)$")
_SKIPPED = re.compile(r"(?:^|/)(?:\.[^/]+|tests?|fixtures?|templates?|examples?|evals?|benchmarks?|node_modules|vendors?"
                      r"|third_party|docs?|dist|build|"
                      r"references?|assets?|archive[sd]?|deprecated|\w*-template|_[^/]*)/", re.IGNORECASE)


def broken_frontmatter(text: TextFile) -> Iterator[Diagnostic]:
    """Frontmatter that does not parse, with the repair that quotes the values that broke it."""
    front = text.front
    if front.state != "broken":
        return
    block = text.text[front.start:front.end]
    fix = None
    if repaired(block):
        edits = tuple(text.swap((front.start + s, front.start + e), new) for s, e, new in quotable(block))
        fix = Fix("safe", "quote the values that broke it", edits)
    else:
        hard = hard_block(block)
        if hard:
            fix = text.fix_span((front.start, front.end), hard, "write the long value as a block")
    yield text.at(f"the frontmatter does not parse as YAML: {front.error}; every field is lost", span=(front.error_at,
        front.error_at + 1), fix=fix)


def hard_block(block: str) -> str:
    """A broken mapping whose values run over several lines, written with block scalars; empty if that does not help."""
    lines = block.splitlines()
    out: list[str] = []
    at = 0
    while at < len(lines):
        head = re.match(r"^([A-Za-z_][\w-]*):[ \t]+(\S.*)$", lines[at])
        more = at + 1
        while more < len(lines) and not re.match(r"^[A-Za-z_][\w-]*:(?:[ \t]|$)", lines[more]):
            more += 1
        if head and more > at + 1 and head[2][0] not in "|>\"'[{":
            out += [f"{head[1]}: |", f"  {head[2]}",
                    *(f"  {line.strip()}" if line.strip() else "" for line in lines[at + 1:more])]
        else:
            out += lines[at:more]
        at = more
    text = "\n".join(out) + "\n"
    text = repaired(text) or text
    return text if text != block and parse(f"---\n{text}---\n").state == "ok" else ""


def repair_delimiters(text: TextFile) -> Fix | None:
    """Move a misplaced block to the start, or straighten its opening line."""
    whole = text.text
    if text.front.state == "misplaced" and text.front.lead and not whole[:text.front.lead].strip("\ufeff \t\r\n"):
        return text.fix_span((0, text.front.lead), "", "remove what stands before the block")
    odd = re.match(r"\ufeff?(-{2}|-{4,}|–{1,3}|—)(?=[ \t]*\r?\n)", whole)
    if odd and text.front.state == "misplaced":
        closing = re.search(r"^(?:-{2,}|—)(?=[ \t]*\r?$)", whole[odd.end():], re.MULTILINE)
        if closing:
            end = (odd.end() + closing.start(), odd.end() + closing.end())
            return Fix("safe", "write '---'", (text.swap(odd.span(1), "---"), text.swap(end, "---")))
    return None


def flow_list(text: TextFile, joined: str, key: str = "description") -> bool:
    """Whether a field is a list on one line, so that it can be written as a text there."""
    at = text.front.keys.get(key)
    return bool(joined) and at is not None and "\n" not in text.text[at.value[0]:at.value[1]].strip()


def bare_mcp_names(text: TextFile, *keys: str) -> Iterator[Diagnostic]:
    """``mcp__<server>__...`` with a server of this plugin by its short name."""
    plugin = text.plugin
    if not plugin or not text.in_plugin:
        return
    for key in keys:
        entries = text.tools(key)
        wrong = {e: full_name(plugin, e) for e in entries}
        for entry, right in wrong.items():
            if right:
                new = [ToolEntry(wrong[e] or e.raw, e.name, e.specifier) for e in entries]
                yield text.at(f"{key}: {shown(entry.raw)} never matches; the tools of a plugin's server are called {right}", key,
                              fix=text.set_tools(key, new, f"write {right}"))


def unknown_tools(text: TextFile, *keys: str) -> Iterator[Diagnostic]:
    """Names that are no tool: neither the host's, nor a server's, nor one that this plugin declares, nor one that is gone."""
    extra = text.plugin.extra_tools if text.plugin else frozenset()
    for key in keys:
        for entry in text.tools(key):
            if not (known(entry.name, extra) or entry.name in REMOVED or entry.name == "*" or looks_like_rest(entry.raw)):
                yield text.at(f"{key}: {shown(entry.raw)} names no tool{near(entry.name, extra)}", key, about=entry.name)


def removed_tools(text: TextFile, *keys: str) -> Iterator[Diagnostic]:
    """Tools that no longer exist."""
    for key in keys:
        entries = text.tools(key)
        left = [e for e in entries if e.name not in REMOVED]
        for entry in entries:
            if entry.name in REMOVED:
                yield text.at(f"{key}: {entry.name} no longer exists; {REMOVED[entry.name]} took its place", key,
                              fix=text.set_tools(key, left, "drop it") if left else None)


def full_name(plugin: Plugin, entry: ToolEntry) -> str:
    """The full name of a tool of one of the plugin's servers; empty where the entry is none."""
    found = re.match(r"mcp__(.+?)(__.*)?$", entry.raw)
    if not found or found[1].startswith("plugin_"):
        return ""
    for server in plugin.server_names:
        safe = re.sub(r"[^A-Za-z0-9_-]", "_", server)
        if found[1] in (server, safe):
            return f"mcp__{scoped(plugin, server)}{found[2] or ''}"
    return ""


def scoped(plugin: Plugin, server: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"plugin_{plugin.name}_{server}")


def looks_like_rest(raw: str) -> bool:
    """A shred of a value that another rule speaks about."""
    return bool(_REST.search(raw)) and "(" not in raw


def line_of(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start:end if end >= 0 else len(text)]


def inline_spans(text: TextFile) -> list[tuple[int, int]]:
    """The spans of inline code in the body."""
    return [m.span() for m in re.finditer(r"(?<!`)`[^`\n]+`(?!`)", text.unfenced)]


def missing_link(text: TextFile, path: str) -> bool:
    """Whether a relative link leads nowhere. The folder of the file counts, and the plugin root."""
    bases = [text.path.parent, *([text.plugin.root] if text.plugin else [])]
    try:
        return not any(os.path.lexists(base / path) for base in bases)
    except (OSError, ValueError):
        return True


def covered(command: str, rules: list[str]) -> bool:
    """Whether a Bash rule of a grant covers a simple command."""
    for rule in rules:
        pattern = re.sub(r"\$\{CLAUDE_\w+\}", "x", rule)
        pattern = re.sub(r":\*$", " *", pattern)
        if pattern.endswith(" *") and (command == pattern[:-2] or command.startswith(pattern[:-1])):
            return True
        if re.fullmatch(".*".join(re.escape(p) for p in pattern.split("*")), command, re.DOTALL):
            return True
    return False


def add_grant(text: TextFile, rule: str) -> Fix | None:
    """Add a rule to ``allowed-tools``."""
    if not text.has_fields or re.search(r"[\"'`$]", rule):
        return None
    if "allowed-tools" in text.data:
        entries = text.granted
        return text.set_tools("allowed-tools", [*entries, ToolEntry(rule, "Bash", "")], f"add {rule}",
                              "unsafe") if entries else None
    return text.fix_span((text.front.end, text.front.end), f"allowed-tools: {quote(rule) if ': ' in rule else rule}\n",
                         f"grant {rule}", "unsafe")


def skipped(rel: str) -> bool:
    """Folders whose Markdown is material and not a component: tests, templates, examples and the like."""
    return bool(_SKIPPED.search(rel))


def in_named(plugin: Plugin, folder: str) -> bool:
    """Whether a folder is a skill of a path that the manifest names."""
    parent = folder.rpartition("/")[0]
    return any(r.sound and r.rel in (folder, parent) for r in plugin.paths("skills"))


def outer_catalogue(plugin: Plugin, rel: str) -> bool:
    """In a repository that is a marketplace and a plugin at once, folders of other entries are not the plugin's."""
    market = plugin.marketplace
    if not market or plugin.root != market.root:
        return False
    return any(e.place and f"{rel}/".startswith(f"{e.place}/") for e in market.entries)


def main_agents(plugin: Plugin) -> frozenset[str]:
    """Agents that the plugin's settings make the main agent."""
    values = [v.get("agent") for _, _, v in plugin.declared("settings") if isinstance(v, dict)]
    if plugin.is_file("settings.json"):
        values.append(plugin.json("settings.json").object.get("agent"))
    return frozenset(v.rpartition(":")[2] for v in values if isinstance(v, str))


def absolute(path: Path) -> str:
    return os.path.abspath(path)
