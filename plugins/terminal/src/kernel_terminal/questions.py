"""What a person is asked, and what each choice means for whoever asked. No terminal in here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kernel_terminal import diff, rows
from kernel_terminal.lines import Line, words
from kernel_terminal.safe import exact, exact_line, one_line, plain

if TYPE_CHECKING:
    from kernel import PermissionCall, Verdict

DESTINATIONS = {
    "session": "for this session", "localSettings": ".claude/settings.local.json", "projectSettings": ".claude/settings.json",
    "userSettings": "your user settings"}
COMMAND_LINES = 40
INPUT_LINES = 20
LINE_CHARS = 2_000
SHOW = "show"
"""The value of a choice that decides nothing: what is asked about is to be shown whole."""
PLAN_LINES = 400
MODES = {"acceptEdits": "edits are not asked about any more", "default": "every edit is asked about",
         "bypassPermissions": "nothing is asked about any more", "plan": "nothing is changed"}


class Choice(Struct):
    """``value``: what choosing it means. ``ask``: words are asked for, with this text; they may stay empty."""

    label: str
    value: Any
    detail: str = ""
    ask: str = ""


class Question(Struct):
    """``body`` is printed above the choices. ``many``: several choices at once. ``kind``: what it is, in a word.

    ``open``: it is answered by words alone, with this text in front; ``default``: what stands there.
    """

    title: str
    choices: list[Choice] = field(default_factory=list)
    body: list[Line] = field(default_factory=list)
    many: bool = False
    kind: str = "Question"
    open: str = ""
    default: str = ""


class Given(Struct):
    """An answer: the choices that were made, and the words. Without a choice: nobody chose (escape)."""

    chosen: list[Choice] = field(default_factory=list)
    text: str = ""

    @property
    def value(self) -> Any:
        return self.chosen[0].value if self.chosen else None


# -- permissions -----------------------------------------------------------------------------------------------------------
def permission(call: PermissionCall, verdict: Verdict, agent: str = "", *, whole: bool = False) -> Question:
    """May this call run? What would be saved by a yes that lasts is shown as it would stand in the settings.

    Where not all of the call is shown, there is the choice ``SHOW``; whoever makes it is asked again, with ``whole``.
    """
    name, given = call.tool.name, dict(call.input)
    who = f"The agent {one_line(agent, 60)}" if agent else "The model"
    body = _about(name, given, call.cwd, whole)
    cut = any(style == "warn" and "not shown" in text for line in body for style, text in line)
    if verdict.message:
        body.append([("dim", f"  Why it is asked: {one_line(verdict.message)}")])
    choices = [Choice("Yes, this once", {"behavior": "allow"})]
    for updates in lasting(verdict.suggestions):
        choices.append(Choice(f"Yes, and {_in_words(updates)}", {"behavior": "allow", "updatedPermissions": updates},
                              detail="; ".join(told for update in updates if (told := _scope(update)))))
    choices.append(Choice("No, and tell the model what to do instead", {"behavior": "deny"}, ask="What instead (may stay empty)"))
    if cut and not whole:
        choices.append(Choice("Show all of it first", SHOW, detail="nothing is decided by that"))
    return Question(f"{who} wants to use {rows.label(name)}. Allow it?", choices, body, kind="Permission")


def lasting(suggestions: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The suggestions as choices: all rules of one answer together, each change of the mode for itself."""
    rules = [u for u in suggestions if u.get("type") in ("addRules", "addDirectories") and _in_words([u])]
    modes = [[u] for u in suggestions if u.get("type") == "setMode" and isinstance(u.get("mode"), str)]
    return [*([rules] if rules else []), *modes]


def rule_texts(update: dict[str, Any]) -> list[str]:
    """The rules as settings hold them."""
    found = []
    for rule in update.get("rules") or ():
        if isinstance(rule, dict) and isinstance(rule.get("toolName"), str):
            content = rule.get("ruleContent")
            inner = content.replace("\\", "\\\\").replace("(", r"\(").replace(")", r"\)") if isinstance(content, str) else ""
            found.append(exact_line(f"{rule['toolName']}({inner})" if inner else rule["toolName"]))
    return found


def _in_words(updates: list[dict[str, Any]]) -> str:
    said = []
    for update in updates:
        if update.get("type") == "addRules" and (texts := rule_texts(update)):
            said.append(f"add the rule{'s' if len(texts) > 1 else ''} {', '.join(texts)}")
        elif update.get("type") == "addDirectories":
            said.append(f"add the folder {', '.join(exact_line(d) for d in update.get('directories') or ())}")
        elif update.get("type") == "setMode":
            said.append(f"go on in the mode {one_line(update.get('mode'))}")
    return " and ".join(said)


def _scope(update: dict[str, Any]) -> str:
    place = DESTINATIONS.get(str(update.get("destination", "session")), "for this session")
    if update.get("type") == "setMode":
        return f"{MODES.get(str(update.get('mode')), '')}, {place}".strip(", ")
    return place if place.startswith("for") else f"kept in {place}"


def _about(name: str, given: dict[str, Any], cwd: str, whole: bool = False) -> list[Line]:
    """The call, as far as that can be looked at: what is cut is said, in the style of a warning. ``whole``: nothing is."""
    change = diff.of_call(name, given, cwd)
    if change is not None:
        path = rows.shortened(str(given.get("file_path")), cwd)
        told = change if isinstance(change, str) else diff.told(change)
        if isinstance(change, list):
            lines = diff.shown(change, whole=whole)
        else:
            lines = _inputs(given, True) if whole else [[("warn", "  … the change itself is not shown")]]
        return [[("tool", f"  {exact_line(path)}"), ("warn" if isinstance(change, str) else "dim", f"  {told}")], *lines]
    if name == "Bash":
        described = given.get("description")
        out = _cut(exact(given.get("command", "")).split("\n"), COMMAND_LINES, "  $ ", "    ", whole)
        if isinstance(described, str) and described:
            out.append([("dim", f"  {one_line(described)}")])
        if given.get("run_in_background") is True:
            out.append([("dim", "  It goes on in the background.")])
        return out
    return _inputs(given, whole)


def _inputs(given: dict[str, Any], whole: bool) -> list[Line]:
    given_lines = [f"{exact(key)}: {exact(_value(value))}" for key, value in given.items()]
    return _cut([part for text in given_lines for part in text.split("\n")], INPUT_LINES, "  ", "  ", whole)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


def _cut(lines: list[str], most: int, first: str, rest: str, whole: bool = False) -> list[Line]:
    out: list[Line] = []
    for number, text in enumerate(lines if whole else lines[:most]):
        out.append(words(f"{rest if number else first}{text[:LINE_CHARS]}"))
        if whole:
            out += [words(f"{rest}{text[at:at + LINE_CHARS]}") for at in range(LINE_CHARS, len(text), LINE_CHARS)]
        elif len(text) > LINE_CHARS:
            out.append([("warn", f"{rest}… {len(text) - LINE_CHARS:,} more characters of this line that are not shown")])
    if len(lines) > most and not whole:
        out.append([("warn", f"{rest}… {len(lines) - most} more lines that are not shown")])
    return out


def permission_answer(given: Given) -> dict[str, Any]:
    """What the kernel is told. Nobody chose: no, and the turn ends."""
    if not given.chosen:
        return {"behavior": "deny", "message": "The person stopped the call and the turn.", "interrupt": True}
    answer = dict(given.value)
    if answer["behavior"] == "deny":
        answer["message"] = (f"The person refused the call and says: {given.text.strip()}" if given.text.strip() else
                             "The person refused the call. Ask what to do instead, or choose another way.")
    return answer


# -- plans -----------------------------------------------------------------------------------------------------------------
def plan(input: dict[str, Any], columns: int) -> Question:
    from kernel_terminal import markdown

    text = input.get("plan")
    body = markdown.rendered(plain(text), columns)[:PLAN_LINES] if isinstance(text, str) and text.strip() else [
        words("  (There is no plan in the plan file.)")]
    where = input.get("planFilePath")
    if isinstance(where, str):
        body = [*body, [], [("dim", f"  The plan is in {exact_line(where)}")]]
    edits = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    return Question("The plan is ready. Go on with it?", [
        Choice("Yes, and ask about each edit", {"behavior": "allow", "updatedPermissions": [{**edits, "mode": "default"}]}),
        Choice("Yes, and do not ask about edits", {"behavior": "allow", "updatedPermissions": [edits]}),
        Choice("No, keep planning", {"behavior": "deny"}, ask="What is to be changed in the plan")], body, kind="Plan")


def plan_answer(given: Given) -> dict[str, Any]:
    answer = permission_answer(given)
    if given.chosen and answer["behavior"] == "deny":
        said = f" The person says: {given.text.strip()}" if given.text.strip() else ""
        answer["message"] = f"The plan was not approved; keep planning.{said}"
    return answer


# -- questions of the model ------------------------------------------------------------------------------------------------
def of_model(asked: dict[str, Any], number: int, count: int) -> Question:
    """One question of AskUserQuestion; it can always be answered in other words."""
    body: list[Line] = []
    choices = []
    for option in asked.get("options") or ():
        label = one_line(option.get("label", ""))
        choices.append(Choice(label, str(option.get("label", "")), detail=one_line(option.get("description") or "")))
        if isinstance(option.get("preview"), str):
            body += [[("bold", f"  {label}")], *_cut(exact(option["preview"]).split("\n"), INPUT_LINES, "    ", "    ")]
    choices.append(Choice("Something else", None, ask="Your answer"))
    head = f"[{one_line(asked.get('header') or '')}] " if asked.get("header") else ""
    place = f" ({number} of {count})" if count > 1 else ""
    title = f"{head}{one_line(asked.get('question', ''), 1000)}{place}"
    return Question(title, choices, body, many=asked.get("multiSelect") is True)


def model_answer(given: Given) -> str | list[str] | None:
    """Label, labels, or the person's own words; ``None``: no answer."""
    picked = [choice.value for choice in given.chosen if choice.value is not None]
    own = given.text.strip()
    if own:
        picked.append(own)
    return None if not picked else picked[0] if len(picked) == 1 else picked


# -- servers ---------------------------------------------------------------------------------------------------------------
def fields_of(schema: Any) -> dict[str, dict[str, Any]]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return {str(k): v for k, v in found.items() if isinstance(v, dict)} if isinstance(found, dict) else {}


def consent(server: str, asked: dict[str, Any]) -> Question:
    """Whether the person answers a server at all."""
    name, url = one_line(server, 80), asked.get("url")
    body = [words(f"  {exact(part)}") for part in str(asked.get("message", "")).split("\n")[:INPUT_LINES]]
    if isinstance(url, str):
        body.append(words(f"  {exact_line(url)[:LINE_CHARS]}"))
        return Question(f"The MCP server {name} wants you to open this address. Open it yourself, then say so.", [
            Choice("Done", "accept"), Choice("No", "decline")], body)
    return Question(f"The MCP server {name} asks. Answer it?", [Choice("Yes", "accept"), Choice("No", "decline")], body)


def of_field(name: str, schema: dict[str, Any], required: bool) -> Question:
    title = one_line(schema.get("title") or name)
    told = one_line(schema.get("description") or "")
    body = [[("dim", f"  {told}")]] if told else []
    options = schema.get("enum")
    names = schema.get("enumNames") or ()
    if isinstance(options, list):
        labels = [one_line(names[n] if n < len(names) else option) for n, option in enumerate(options)]
        return Question(title, [Choice(label, option) for label, option in zip(labels, options, strict=True)], body)
    if schema.get("type") == "boolean":
        return Question(title, [Choice("Yes", True), Choice("No", False)], body)
    default = schema.get("default")
    return Question(title, body=body, open=f"{title}{'' if required else ' (may stay empty)'}",
                    default="" if default is None else exact_line(default))


def field_value(schema: dict[str, Any], given: Given) -> Any:
    """The value that a form gets. ``ValueError``: the words are no such value."""
    if given.chosen:
        return given.value
    text = given.text.strip()
    if schema.get("type") == "integer":
        return int(text)
    if schema.get("type") == "number":
        return float(text)
    return text
