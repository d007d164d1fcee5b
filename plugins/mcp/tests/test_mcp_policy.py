"""Managed policy, names and schemas: pure functions over tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_mcp.entries import Server
from kernel_mcp.headers import is_credential
from kernel_mcp.names import MAX_NAME, full_name, plugin_server
from kernel_mcp.policy import Lists, url_matches
from kernel_mcp.redact import arguments, without_secrets
from kernel_mcp.schemas import MAX_DEPTH, cut, encodable, for_check, for_model, mismatch

STDIO = {"command": "run", "args": ["a"]}

# -- policy -----------------------------------------------------------------------------------------------------------------
WEB = Server(name="web", kind="http", scope="user", url="https://api.example.com/v1/mcp")
TOOL = Server(name="tool", kind="stdio", scope="user", command="npx", args=("-y", "x"))
URL, COMMAND = {"serverUrl": "https://api.example.com/*"}, {"serverCommand": ["npx", "-y", "x"]}
POLICY = [
    # allow list, deny list -> web, tool
    (None, [], True, True),
    ([], [], False, False),
    ([URL], [], True, False),
    ([COMMAND], [], False, True),
    ([URL, COMMAND], [], True, True),
    ([{"serverName": "web"}], [], True, False),
    ([{"serverName": "tool"}], [], False, True),
    ([{"serverName": "web"}, {"serverUrl": "https://other/*"}], [], False, False),
    ([{"serverName": "tool"}, {"serverCommand": ["npx"]}], [], False, False),
    ([{"serverName": "web"}, COMMAND], [], True, True),
    (None, [URL], False, True),
    (None, [{"serverName": "web"}], False, True),
    (None, [COMMAND], True, False),
    ([URL, COMMAND], [{"serverName": "web"}], False, True),
    (None, [{"serverCommand": ["npx", "-y"]}], True, True),
    ([{"serverUrl": "https://api.example.com/v1/mcp", "serverName": "web"}], [], False, False),
    (["web"], [], False, False),
    ([{"serverName": "web*"}], [], False, False),
]


@pytest.mark.parametrize(("allow", "deny", "web", "tool"), POLICY)
def test_policy(allow: Any, deny: Any, web: bool, tool: bool) -> None:
    lists = Lists(allow, deny)
    assert (not lists.verdict(WEB), not lists.verdict(TOOL)) == (web, tool)


@pytest.mark.parametrize(
    ("pattern", "url", "expected"),
    [
        ("https://x.com", "https://x.com/a/b", True),
        ("https://X.com/", "https://x.COM/", True),
        ("https://x.com./a", "https://x.com/a", True),
        ("https://x.com/a", "https://x.com/A", False),
        ("https://x.com/a", "https://x.com/ab", False),
        ("https://x.com/a*", "https://x.com/ab", True),
        ("https://*.x.com", "https://a.x.com/z", True),
        ("https://*.x.com", "https://x.com/", False),
        ("*://x.com", "http://x.com/", True),
        ("https://x.com", "http://x.com/", False),
        ("https://x.com:8080", "https://x.com:8080/", True),
        ("https://x.com", "https://x.com:8080/", False),
        ("x.com", "https://x.com/", True),
        ("*", "https://x.com/", True),
        ("https://x.com", "https://x.com.evil.org/", False),
        ("https://x.com", "https://x.com@evil.org/", False),
        ("https://x.com/a?b=1", "https://x.com/a?b=1", True),
        ("https://x.com", "https://[", False),
    ],
)
def test_address_patterns(pattern: str, url: str, expected: bool) -> None:
    assert url_matches(pattern, url) is expected


def test_a_variable_does_not_widen_what_policy_allows() -> None:
    """An allow entry whose expansion changes host or scheme counts for nothing; a deny entry still matches."""
    environment = {"HOST": "api.example.com", "PATHS": "v1/*"}
    assert Lists([{"serverUrl": "https://${HOST}/*"}], [], environment).verdict(WEB)
    assert not Lists([{"serverUrl": "https://api.example.com/${PATHS}"}], [], environment).verdict(WEB)
    assert Lists(None, [{"serverUrl": "https://${HOST}/*"}], environment).verdict(WEB)


# -- names and schemas ------------------------------------------------------------------------------------------------------
@given(st.text(min_size=1, max_size=100), st.text(min_size=1, max_size=200))
def test_every_name_is_one_that_a_model_api_takes(server: str, tool: str) -> None:
    name = full_name(server, tool)
    assert (len(name) <= MAX_NAME and name.isascii() and name.replace("_", "").replace("-", "").isalnum()) or set(name) <= {
        "_",
        "m",
        "c",
        "p",
    }
    assert full_name(server, tool) == name


def test_names() -> None:
    assert full_name("git hub", "get.me") == "mcp__git_hub__get_me"
    assert full_name(plugin_server("demo", "calc"), "add") == "mcp__plugin_demo_calc__add"
    assert full_name("s", "add", prefix=False) == "add"
    assert full_name("s", "a" * 100) != full_name("s", "a" * 101)


def test_a_schema_is_sent_as_it_is() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"a": {"type": "string"}},
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "if": {"required": ["a"]},
        "then": {},
        "additionalProperties": False,
    }
    assert for_model(schema) == (schema, "") and for_model(schema)[0] is schema


@pytest.mark.parametrize(
    ("schema", "required", "properties", "told"),
    [
        (
            {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
            ["a", "b"],
            {"a", "b"},
            "",
        ),
        (
            {"anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            None,
            {"a", "b"},
            "At least one of these sets of arguments is required: a; or nothing.",
        ),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b", "c"]}], "properties": {"a": {}}},
            None,
            {"a"},
            "Exactly one of these sets of arguments is required: a; or b, c.",
        ),
        ({"$defs": {"x": {"properties": {"a": {}}, "required": ["a"]}}, "allOf": [{"$ref": "#/$defs/x"}]}, ["a"], {"a"}, ""),
    ],
)
def test_combinators_at_the_root_are_flattened(schema: Any, required: Any, properties: set[str], told: str) -> None:
    flat, words = for_model(schema)
    assert flat["type"] == "object" and not {"allOf", "anyOf", "oneOf"} & flat.keys()
    assert (flat.get("required"), set(flat["properties"]), words) == (required, properties, told)


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": "x"},
        {"allOf": [1]},
        {"oneOf": []},
        {"allOf": [{"anyOf": [{}]}]},
        {"anyOf": [{"$ref": "http://x/y"}, 5]},
        {"allOf": [{"properties": []}]},
    ],
)
def test_a_root_that_makes_no_object_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        for_model(schema)


def test_what_we_check_ourselves_is_the_first_level_and_no_pattern() -> None:
    check = for_check(
        {
            "type": "object",
            "required": ["a", 5],
            "properties": {
                "a": {"type": "string", "pattern": "(a+)+$"},
                "b": {"type": ["integer", "null"]},
                "c": {"$ref": "http://x"},
                "d": True,
                "e": {"type": ["string", "integer"]},
                "f": {"type": "strange"},
            },
        }
    )
    assert check == {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string"}, "e": {"type": ["string", "integer"]}},
    }


def test_a_result_is_compared_without_going_anywhere() -> None:
    assert mismatch({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": "x"}).startswith("n: ")
    assert (
        mismatch({"$ref": "http://127.0.0.1:9/schema"}, {}) == "" and mismatch({"type": 5}, {}) == "" and mismatch(None, {}) == ""
    )


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    )
)
def test_a_schema_of_any_shape_never_raises_anything_but_a_refusal(value: Any) -> None:
    schema = {"type": "object", "properties": value, "anyOf": value, "required": value}
    for_check(schema)
    try:
        for_model(schema)
    except ValueError:
        return


def test_depth_and_length_have_an_end() -> None:
    deep: Any = {}
    for _ in range(MAX_DEPTH + 1):
        deep = {"a": deep}
    assert not encodable(deep) and encodable({"a": [1, {"b": None}]})
    assert len(cut("ü" * 5000).encode()) <= 2048 and cut("short") == "short" and cut("\ud83d") == "?"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GITHUB_TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("PAT", True),
        ("MY_PAT", True),
        ("PATH", False),
        ("PATTERN", False),
        ("AUTHOR", False),
        ("AUTH_MODE", True),
        ("KEYBOARD", False),
        ("sentry_dsn", True),
        ("HOME", False),
        ("DB_CREDENTIALS", True),
    ],
)
def test_variables_that_hold_credentials(name: str, expected: bool) -> None:
    assert is_credential(name) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://me:pw@x.com/a?api_key=1&b=2", "https://***@x.com/a?api_key=***&b=2"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("http://x/?token=s3cret", "http://x/?token=***"),
        ("http://x/?page=2&keyboard=de", "http://x/?page=2&keyboard=***"),
        ("a bearer of news", "a bearer ***  news".replace("  ", " ")),
        ("nothing here", "nothing here"),
    ],
)
def test_secrets_of_texts(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--token", "s3cret", "x"], ["--token", "***", "x"]),
        (["--api-key=s3cret"], ["--api-key=***"]),
        (["--token", "${T}"], ["--token", "${T}"]),
        (["--token=${T}"], ["--token=${T}"]),
        (["--verbose", "x"], ["--verbose", "x"]),
        (["--token", "--other", "x"], ["--token", "--other", "x"]),
        (["postgres://me:pw@host/db"], ["postgres://***@host/db"]),
    ],
)
def test_secrets_of_commands(words: list[str], expected: list[str]) -> None:
    assert arguments(words) == expected
