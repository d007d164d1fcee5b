"""What is shown, without a terminal: text of strangers, Markdown, rows, changes, questions, completion."""

from __future__ import annotations

import os
import subprocess
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from kernel_terminal import completion, diff, markdown, questions, safe
from kernel_terminal.lines import Line, cut, hung, is_place, text_of, width_of, wrapped
from kernel_terminal.view import View

from kernel import (
    AssistantMessage,
    PermissionCall,
    ResultMessage,
    StreamMessage,
    SystemMessage,
    Tool,
    ToolProgress,
    Usage,
    UserMessage,
    Verdict,
)

HOSTILE = st.lists(
    st.one_of(
        st.characters(),
        st.sampled_from(
            [
                "\x1b",
                "\x1b[",
                "\x1b]0;",
                "\x07",
                "\x9b",
                "\x9d",
                "\r",
                "\n",
                "\t",
                "\u202e",
                "\u2066",
                "2J",
                "31m",
                "\\",
                "\u2028",
                "\x7f",
            ]
        ),
    ),
    max_size=40,
).map("".join)
FORBIDDEN = {
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\u200e\u200f\u061c",
}


def harmless(lines: list[Line]) -> bool:
    return all(
        not FORBIDDEN & set(text) and not any("\ud800" <= c <= "\udfff" for c in text) for line in lines for _, text in line
    )


def shown(lines: list[Line]) -> str:
    return "\n".join(text_of(line).rstrip() for line in lines)


class Messages:
    """The messages of a session, as short as possible."""

    ids: dict[str, Any] = {"uuid": "u", "session_id": "s"}

    def assistant(self, *blocks: dict[str, Any], parent: str | None = None, **more: Any) -> AssistantMessage:
        return AssistantMessage(
            **self.ids, message={"role": "assistant", "content": list(blocks)}, parent_tool_use_id=parent, **more
        )

    def call(self, name: str, id: str = "c1", parent: str | None = None, **input: Any) -> AssistantMessage:
        return self.assistant({"type": "tool_use", "id": id, "name": name, "input": input}, parent=parent)

    def result(self, text: Any, id: str = "c1", *, error: bool = False, structured: Any = None) -> UserMessage:
        block = {"type": "tool_result", "tool_use_id": id, "content": text, **({"is_error": True} if error else {})}
        return UserMessage(
            **self.ids, message={"role": "user", "content": [block]}, parent_tool_use_id=None, tool_use_result=structured
        )

    def stream(self, **event: Any) -> StreamMessage:
        return StreamMessage(**self.ids, event=event, parent_tool_use_id=None)

    def delta(self, text: str) -> StreamMessage:
        return self.stream(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def system(self, subtype: str, **data: Any) -> SystemMessage:
        return SystemMessage(**self.ids, subtype=subtype, data=data)

    def end(self, **more: Any) -> ResultMessage:
        return ResultMessage(
            **self.ids,
            **{
                "subtype": "success",
                "is_error": False,
                "duration_ms": 100,
                "duration_api_ms": 1,
                "num_turns": 1,
                "stop_reason": None,
                "total_cost_usd": 0.0,
                "usage": Usage(),
                "model_usage": {},
                "permission_denials": [],
                "terminal_reason": "completed",
                **more,
            },
        )


m = Messages()


@pytest.fixture(params=[False, True], ids=["live", "plain"])
def view(request: pytest.FixtureRequest) -> View:
    return View(plain=request.param, cwd="/w")


# -- text of strangers -------------------------------------------------------------------------------------------------------
@given(HOSTILE)
def test_no_text_can_steer_a_terminal(text: str) -> None:
    for made in (safe.plain(text), safe.exact(text), safe.one_line(text)):
        assert not (FORBIDDEN - {"\n"}) & set(made)
        assert not any("\ud800" <= c <= "\udfff" for c in made)


@given(HOSTILE)
def test_what_is_asked_about_hides_nothing(text: str) -> None:
    """Every character of a command is there, as itself or as its escape."""
    left = safe.exact(text)
    for character in text:
        parts = [character, f"\\x{ord(character):02x}", f"\\u{ord(character):04x}", f"\\U{ord(character):08x}", safe.TAB]
        found = next((p for p in parts if left.startswith(p)), None)
        assert found is not None
        left = left[len(found) :]
    assert left == ""


def test_colours_of_programs_are_left_out_and_words_stay() -> None:
    assert safe.plain("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 a\rb \x1b(B.") == "red link a\nb ."


@settings(max_examples=60)
@given(st.lists(HOSTILE, min_size=8, max_size=8), st.booleans())
def test_whatever_messages_say_the_lines_are_harmless(texts: list[str], plain: bool) -> None:
    a, b, c, d, e, f, g, h = texts
    view = View(plain=plain, columns=lambda: 50)
    view.start()
    said = [
        m.stream(type="message_start"),
        m.stream(type="content_block_start", content_block={"type": "text"}),
        m.delta(a),
        m.delta(b),
        m.assistant({"type": "text", "text": a + b}),
        m.call(c or "T", command=d, file_path=e),
        m.call("Agent", "c2", description=f),
        m.call(g or "X", "c3", parent="c2", path=h),
        ToolProgress(
            **m.ids, tool_use_id="c1", tool_name=c, parent_tool_use_id=None, elapsed_time_seconds=1.0, data={"message": g}
        ),
        m.system("informational", content=h, level="warning"),
        m.system("informational", content=a, level="info"),
        m.system("api_retry", attempt=1, max_retries=2, retry_delay_ms=1000, error_status=b),
        m.system("background_tasks_changed", tasks=[{"task_id": c, "description": d}]),
        m.system("task_notification", task_id=e, summary=f),
        m.system("permission_denied", tool_use_id="c1", message=g),
    ]
    lines = [line for message in said for line in view.take(message)] + view.live(20)
    lines += view.take(m.result([{"type": "text", "text": h}, {"type": a}], error=True))
    lines += view.take(m.result(b, "c2", structured={"structuredPatch": [{"lines": [f"+{c}", f"-{d}", " x", e]}]}))
    lines += view.take(m.end(result=f)) + view.take(m.end(subtype="error", is_error=True, errors=[g])) + view.whole_result()
    lines += view.announce(h) + view.said(a) + view.result(b) + view.note(c) + view.past("user", d) + view.stop()
    assert harmless(lines)
    assert view.activity() == ""


@given(HOSTILE, HOSTILE, HOSTILE)
def test_questions_are_harmless(a: str, b: str, c: str) -> None:
    tool: Any = type("T", (Tool,), {"name": a or "T", "description": "", "input_schema": {}})()
    update = {
        "type": "addRules",
        "behavior": "allow",
        "destination": "localSettings",
        "rules": [{"toolName": a, "ruleContent": b}],
    }
    call = PermissionCall(tool=tool, input={"command": b, a: c, "deep": {b: [c]}}, cwd="/w", mode="default")
    asked = [
        questions.permission(call, Verdict(behavior="ask", message=c, suggestions=[update]), a),
        questions.of_model({"question": a, "header": b, "options": [{"label": c, "description": a, "preview": b}]}, 1, 2),
        questions.plan({"plan": a, "planFilePath": b}, 40),
        questions.consent(a, {"message": b, "url": c}),
        questions.of_field(a, {"title": b, "description": c, "enum": [a], "enumNames": [c]}, True),
    ]
    for question in asked:
        assert harmless([[("", question.title), ("", question.open)], *question.body])
        assert harmless([[("", choice.label), ("", choice.detail)] for choice in question.choices])


# -- lines and Markdown ------------------------------------------------------------------------------------------------------
@given(st.text(st.characters(exclude_categories=["C"]), max_size=200), st.integers(10, 90))
def test_wrapped_lines_fit_and_lose_no_word(text: str, columns: int) -> None:
    lines = wrapped([("", text)], columns)
    assert all(width_of(text_of(line)) <= columns or is_place(text_of(line).strip()) for line in lines)
    assert "".join("".join(map(text_of, lines)).split()) == "".join(text.split())


def test_lines_break_between_words_and_paths_stay_whole() -> None:
    path = "/a/long/folder/with/a/file.json"
    lines = [text_of(line) for line in hung([("", f"  they differ in white space and are in {path} now")], 20)]
    assert lines == ["  they differ in", "    white space and", "    are in", f"    {path}", "    now"]


@given(st.text(st.characters(exclude_categories=["C"]), max_size=80), st.integers(1, 40))
def test_a_cut_text_fits(text: str, columns: int) -> None:
    assert width_of(cut(text, columns)) <= columns


DOCUMENT = """\
# A title

Words with **bold**, *italic*, `code` and a [link](http://x.test/a).

1. one
   more of one

   - deep
2. two

> quoted
> twice

```python
def f():

    return "  kept  "
```

| name | size |
|------|-----:|
| a | 1 |
| long name | 22 |

The end.
"""


def test_markdown_is_readable_without_colours() -> None:
    assert (
        shown(markdown.rendered(DOCUMENT, 60))
        == """\
# A title

Words with bold, italic, code and a link (http://x.test/a).

1. one more of one

   • deep
2. two

│ quoted twice

  def f():

      return "  kept  "

name       size
─────────  ────
a          1
long name  22

The end."""
    )


def test_what_is_settled_renders_as_it_does_in_the_whole() -> None:
    """A text that grows is printed in pieces; together they are what the whole would have been, but for blank lines."""
    whole = [line for line in shown(markdown.rendered(DOCUMENT, 60)).splitlines() if line]
    pieces: list[str] = []
    done = 0
    for end in range(len(DOCUMENT) + 1):
        ready = markdown.settled(DOCUMENT[done:end])
        if ready:
            pieces += shown(markdown.rendered(DOCUMENT[done : done + ready], 60)).splitlines()
            done += ready
    pieces += shown(markdown.rendered(DOCUMENT[done:], 60)).splitlines()
    assert [line for line in pieces if line] == whole
    assert len(pieces) > 10 and done > 100, "it was printed in pieces"


@settings(max_examples=100)
@given(st.text(st.sampled_from("ab #*_`~>-|\n1.[]()!&<\\ "), max_size=120), st.integers(20, 80))
def test_any_markdown_is_rendered_within_the_width(text: str, columns: int) -> None:
    for line in markdown.rendered(text, columns):
        if not any(style == "code" for style, _ in line):
            assert width_of(text_of(line)) <= max(columns, 40) or "│" in text_of(line) or text_of(line).startswith(" ")


# -- the view ----------------------------------------------------------------------------------------------------------------
def test_a_streamed_answer_is_printed_once(view: View) -> None:
    view.start()
    lines = view.take(m.stream(type="message_start")) + view.take(
        m.stream(type="content_block_start", content_block={"type": "text"})
    )
    text = "First part.\n\nSecond part.\n\nThird part."
    for place in range(0, len(text), 3):
        lines += view.take(m.delta(text[place : place + 3]))
        if not view.plain:
            assert shown(lines + view.live(20)).count("First part.") <= 1
    lines += view.take(m.assistant({"type": "text", "text": text})) + view.take(m.end(result=text))
    for part in ("First", "Second", "Third"):
        assert shown(lines).count(f"{part} part.") == 1


def test_an_answer_that_broke_off_is_asked_for_again_and_counts_alone() -> None:
    view = View()
    view.start()
    lines: list[Line] = []
    for message in (
        m.stream(type="message_start"),
        m.delta("Old.\n\nHalf"),
        m.stream(type="message_start"),
        m.delta("New"),
        m.assistant({"type": "text", "text": "New answer."}),
    ):
        lines += view.take(message)
    assert "New answer." in shown(lines) and "Half" not in shown(lines)


def test_calls_are_rows_with_their_end(view: View) -> None:
    view.start()
    lines = view.take(m.call("Bash", command="make all\nmake test"))
    if view.plain:
        assert shown(lines) == "Tool started: Bash: make all make test"
    else:
        assert "Bash make all make test" in shown(view.live(10)) and view.activity() == "Bash"
    lines = view.take(m.result("\n".join(f"line {n}" for n in range(30))))
    assert "line 0" in shown(lines) and "line 20" not in shown(lines) and "26 more lines" in shown(lines)
    assert "line 29" in shown(view.whole_result())
    view.take(m.call("Bash", "c2", command="false"))
    assert "failed" in shown(view.take(m.result("exit code 1", "c2", error=True)))
    view.take(m.call("Read", "c3", file_path="/w/a.py"))
    assert "2 lines" in shown(view.take(m.result("a\nb", "c3")))
    view.take(m.call("Bash", "c4", command="rm x"))
    view.take(m.system("permission_denied", tool_use_id="c4", message="a rule denies it"))
    assert "refused" in shown(view.take(m.result("no", "c4", error=True))).lower()


def test_a_change_is_shown_with_signs_and_numbers(view: View) -> None:
    patch = [{"oldStart": 7, "newStart": 7, "lines": [" same", "-old", "+new"]}]
    view.take(m.call("Edit", file_path="/w/a.py"))
    lines = shown(view.take(m.result("ok", structured={"structuredPatch": patch})))
    assert (
        ("Removed line 8: old" in lines and "Added line 8: new" in lines)
        if view.plain
        else ("8 - old" in lines and "8 + new" in lines)
    )
    assert "1 added, 1 removed" in lines


def test_an_agent_is_one_row() -> None:
    view = View(cwd="/w")
    view.start()
    view.take(m.call("Agent", description="look around"))
    for number in range(3):
        assert view.take(m.call("Read", f"d{number}", parent="c1", file_path=f"/w/{number}.py")) == []
    assert "3 steps · Read 2.py" in shown(view.live(10))
    assert "3 steps" in shown(view.take(m.result("It is all there.")))


def test_notices_retries_and_ends(view: View) -> None:
    view.start()
    assert "try 2 of 10 in 4.0 s" in shown(view.take(m.system("api_retry", attempt=2, max_retries=10, retry_delay_ms=4000)))
    warning = shown(view.announce("a guard does not work"))
    assert "a guard does not work" in warning
    assert view.take(m.system("informational", content="a guard does not work", level="warning")) == [], "it is said once"
    assert "summed up" in shown(view.take(m.system("compact_boundary", compact_metadata={"pre_tokens": 1000})))
    assert "Interrupted" in shown(
        view.take(m.end(subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools"))
    )
    assert "no money" in shown(view.take(m.end(subtype="error_max_budget_usd", is_error=True, errors=["no money"])))
    view.start()
    said = shown(view.take(m.end(result="1 one\n2 two"))).splitlines()
    assert said[-2].endswith("1 one") and said[-1].endswith("2 two"), "the lines of a command's answer stay lines"
    view.start()
    assert "The session is named" in shown(view.take(m.end(result="The session is named 'x' now."))), "what a command answers"
    view.start()
    error = m.assistant({"type": "text", "text": "API Error 401"}, error="authentication_failed")
    assert shown(view.take(error) + view.take(m.end(is_error=True, result="API Error 401"))).count("API Error 401") == 1


# -- changes -----------------------------------------------------------------------------------------------------------------
def test_a_huge_change_is_bounded_and_fast(tmp_path: Path) -> None:
    before = "\n".join(f"line {n}" for n in range(10_000))
    (tmp_path / "a.txt").write_text(before)
    began = time.process_time()
    found = diff.of_call("Write", {"file_path": "a.txt", "content": before.replace("line", "row")}, str(tmp_path))
    assert isinstance(found, list)
    lines = diff.shown(found)
    assert len(lines) == diff.MOST_LINES + 1 and "19940 more lines" in text_of(lines[-1])
    assert diff.told(found) == "10000 added, 10000 removed"
    assert time.process_time() - began < 20


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_a_diff_says_what_changed(old: list[str], new: list[str]) -> None:
    found = diff.hunks("\n".join(old), "\n".join(new))
    added, removed = diff.counts(found)
    assert len(new) - len(old) == added - removed if old and new else True
    assert bool(found) == (old != new)
    for hunk in found:
        kept = [t[1:] for t in hunk["lines"] if not t.startswith("+")]
        assert old[hunk["oldStart"] - 1 :][: len(kept)] == kept
        come = [t[1:] for t in hunk["lines"] if not t.startswith("-")]
        assert new[hunk["newStart"] - 1 :][: len(come)] == come


def test_changes_of_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 1\n")
    edit = {"file_path": "a.py", "old_string": "1", "new_string": "2", "replace_all": True}
    assert diff.told(diff.of_call("Edit", edit, str(tmp_path))) == "2 added, 2 removed"  # type: ignore[arg-type]
    assert diff.of_call("Bash", {"command": "ls"}, str(tmp_path)) is None
    assert diff.told(diff.of_call("Write", {"file_path": "new.py", "content": "a\nb\n"}, str(tmp_path))) == "2 added, 0 removed"  # type: ignore[arg-type]
    for more, told in (({"old_string": "z"}, "does not occur"), ({"replace_all": False}, "occurs 2 times"),
                       ({"old_string": ""}, "not empty"), ({"file_path": "none.py"}, "not there")):
        said = diff.of_call("Edit", {**edit, **more}, str(tmp_path))
        assert isinstance(said, str) and told in said and "would fail" in said, "no change is made up"
    (tmp_path / "q.txt").write_text("one\r\n“two”\r\n", newline="")
    curly = {"file_path": "q.txt", "old_string": 'one\n"two"', "new_string": "x"}
    assert diff.told(diff.of_call("Edit", curly, str(tmp_path))) == "1 added, 2 removed"  # type: ignore[arg-type]
    os.mkfifo(tmp_path / "pipe")
    assert isinstance(diff.of_call("Write", {"file_path": "pipe", "content": "a"}, str(tmp_path)), str), "it is not opened"


# -- questions ---------------------------------------------------------------------------------------------------------------
def test_the_rule_is_shown_as_it_will_be_saved() -> None:
    tool: Any = type("Bash", (Tool,), {"name": "Bash", "description": "", "input_schema": {}})()
    update = {
        "type": "addRules",
        "behavior": "allow",
        "destination": "localSettings",
        "rules": [{"toolName": "Bash", "ruleContent": "echo (a)"}],
    }
    call = PermissionCall(tool=tool, input={"command": "echo (a)"}, cwd="/w", mode="default")
    question = questions.permission(call, Verdict(behavior="ask", suggestions=[update]))
    once, lasting, no = question.choices
    assert r"Bash(echo \(a\))" in lasting.label and "settings.local.json" in lasting.detail
    assert questions.permission_answer(questions.Given([once])) == {"behavior": "allow"}
    assert questions.permission_answer(questions.Given([lasting]))["updatedPermissions"] == [update]
    refused = questions.permission_answer(questions.Given([no], "use make"))
    assert refused["behavior"] == "deny" and "use make" in refused["message"] and not refused.get("interrupt")
    assert questions.permission_answer(questions.Given())["interrupt"] is True


def test_long_commands_say_what_is_not_shown() -> None:
    tool: Any = type("Bash", (Tool,), {"name": "Bash", "description": "", "input_schema": {}})()
    call = PermissionCall(tool=tool, input={"command": "\n".join(f"echo {n}" for n in range(200))}, cwd="/w", mode="default")
    asked = questions.permission(call, Verdict(behavior="ask"))
    assert "160 more lines that are not shown" in shown(asked.body) and asked.choices[-1].value == questions.SHOW
    whole = questions.permission(call, Verdict(behavior="ask"), whole=True)
    assert "echo 199" in shown(whole.body) and "not shown" not in shown(whole.body)
    assert [c.label for c in whole.choices] == [c.label for c in asked.choices[:-1]], "showing it decides nothing"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Bash", {"command": f"echo {'a' * 9_000}; END"}),
        ("T", {"value": [f"{n}" for n in range(2_000)] + ["END"]}),
        ("Write", {"file_path": "new.txt", "content": "\n".join(map(str, range(200))) + "\nEND"}),
        ("Write", {"file_path": "new.txt", "content": "a" * 9_000 + "END"}),
        ("Write", {"file_path": "new.txt", "content": "a\n" * 1_100_000 + "END"}),
    ],
)
def test_what_is_cut_is_warned_of_and_can_be_seen(tmp_path: Path, name: str, given: dict[str, Any]) -> None:
    tool: Any = type("T", (Tool,), {"name": name, "description": "", "input_schema": {}})()
    call = PermissionCall(tool=tool, input=given, cwd=str(tmp_path), mode="default")
    asked = questions.permission(call, Verdict(behavior="ask"))
    assert "END" not in shown(asked.body) and asked.choices[-1].value == questions.SHOW
    assert any(style == "warn" and "not shown" in text for line in asked.body for style, text in line)
    assert "END" in shown(questions.permission(call, Verdict(behavior="ask"), whole=True).body)


def test_what_cannot_be_seen_is_shown_as_an_escape() -> None:
    for number in range(0x110000):
        if unicodedata.category(chr(number)) == "Cf":
            assert safe.exact(chr(number)) in (f"\\u{number:04x}", f"\\U{number:08x}", f"\\x{number:02x}")
    assert safe.exact("r\u200bm \u00ad\u3164\U000e0041\u2800") == r"r\u200bm \xad\u3164\U000e0041\u2800"
    assert safe.exact("zażółć 你好 é 🙂") == "zażółć 你好 é 🙂"


def test_values_of_a_form() -> None:
    assert questions.field_value({"type": "integer"}, questions.Given(text=" 7 ")) == 7
    assert questions.field_value({"type": "boolean"}, questions.Given([questions.Choice("No", False)])) is False
    with pytest.raises(ValueError):
        questions.field_value({"type": "number"}, questions.Given(text="many"))


# -- completion --------------------------------------------------------------------------------------------------------------
def test_commands_and_files_are_found() -> None:
    commands = {"compact": "sum up", "context": "the window", "my:skill": "x"}
    files = ["src/main.py", "src/", "README.md", "a b.txt", "docs/main_page.md"]
    assert [f.shown for f in completion.found("/co", commands, lambda: files)] == ["/compact", "/context"]
    assert [f.text for f in completion.found("look at @main", commands, lambda: files)] == [
        "@src/main.py ",
        "@docs/main_page.md ",
    ]
    assert completion.found("see @a", commands, lambda: files)[0].text == '@"a b.txt" '
    assert completion.found("@sr", commands, lambda: files)[0].text == "@src/", "a folder goes on"
    assert completion.found("me@host", commands, lambda: files) == [] and completion.found("a /b", commands, lambda: files) == []


def test_files_that_git_ignores_are_not_offered(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.py", "sub/b.py", "secret.log"):
        (tmp_path / name).write_text("")
    assert {"a.py", "secret.log", "sub/", "sub/b.py"} <= set(completion.Files(str(tmp_path))())
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert set(completion.Files(str(tmp_path))()) == {".gitignore", "a.py", "sub/", "sub/b.py"}
