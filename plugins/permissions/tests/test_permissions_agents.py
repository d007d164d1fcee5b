"""The policy inside a subagent: the conversation's rules and answers, its own grants, place and tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from kernel_permissions.paper import paper_tool

from kernel import Child, ChildSpec, Layer, PermissionCall, Session
from kernel.testing import Kit

pytestmark = pytest.mark.anyio


def session_of(folder: Path, **settings: Any) -> Session:
    return Kit(folder, installed=["permissions"], settings={"permissions": settings}).open()


def child_of(session: Session, **spec: Any) -> Child:
    fields = {"agent_id": "a1", "agent_type": "scout", **spec}
    return Child(session, ChildSpec(**fields), session.root.transcript.child(fields["agent_id"], {}))


def behavior(session: Session, command: str) -> str:
    tool = paper_tool("Bash")
    return session.policy.decide(PermissionCall(tool=tool, input={"command": command}, cwd=session.state.cwd,
                                                mode=session.state.permission_mode, agent_id=session.agent_id)).behavior


def test_rules_hold_at_every_depth(tmp_path: Path) -> None:
    session = session_of(tmp_path, allow=["Bash(make *)"], deny=["Bash(make clean)"], ask=["Bash(make deploy)"])
    outer = child_of(session)
    for context in (session, outer, child_of(outer, agent_id="a2")):
        assert [behavior(context, f"make {t}") for t in ("all", "clean", "deploy")] == ["allow", "deny", "ask"]


def test_grants_belong_to_one_context(tmp_path: Path) -> None:
    session = session_of(tmp_path, deny=["Bash(make clean)"])
    session.state = msgspec.structs.replace(session.state, grants=("Bash(mine *)",))
    outer = child_of(session, grants=("Bash(make *)",))
    inner = child_of(outer, agent_id="a2")
    assert [behavior(c, "mine x") for c in (session, outer, inner)] == ["allow", "ask", "ask"]
    assert [behavior(c, "make x") for c in (session, outer, inner)] == ["ask", "allow", "ask"]
    assert behavior(outer, "make clean") == "deny", "a grant never beats a denial"
    outer.state = msgspec.structs.replace(outer.state, grants=())
    assert behavior(outer, "make x") == "ask", "it ends when it is taken away"


def test_grants_do_not_count_where_managed_rules_alone_do(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    granted = child_of(session, grants=("Bash(make *)",))
    assert behavior(granted, "make x") == "allow"
    session.settings.layers = [Layer("managed", "/m", {"allowManagedPermissionRulesOnly": True}, "/"), *session.settings.layers]
    assert behavior(granted, "make x") == "ask"


def test_a_lasting_answer_in_an_agent_counts_for_all(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    outer = child_of(session)
    other = child_of(session, agent_id="a2")
    rule = {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "make *"}], "behavior": "allow",
            "destination": "session"}
    assert outer.policy.update([rule]) == []
    assert {behavior(c, "make x") for c in (session, outer, other)} == {"allow"}


def test_a_mode_that_an_answer_sets_goes_with_agents_in_the_conversations_mode(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    follows, own = child_of(session), child_of(session, agent_id="a2", mode="dontAsk")
    follows.policy.update([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}])
    modes = [c.state.permission_mode for c in (session, follows, own)]
    assert modes == ["acceptEdits", "acceptEdits", "dontAsk"]


def test_new_settings_count_inside_from_the_next_call_on(tmp_path: Path) -> None:
    session = session_of(tmp_path, allow=["Bash(make *)"])
    outer = child_of(session)
    assert behavior(outer, "make x") == "allow"
    session.harness.settings = Kit(tmp_path, settings={"permissions": {"deny": ["Bash(make *)"]}}).harness.settings
    assert behavior(outer, "make x") == "deny"


def test_a_folder_for_notes_is_not_protected_from_its_own_context(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    notes = tmp_path / ".claude" / "agent-memory" / "scout"
    notes.mkdir(parents=True)
    mine = child_of(session, grants=(f"Edit(/{notes}/**)",))
    mine.plugin_state["permissions.folders"] = [str(notes)]
    other = child_of(session, agent_id="a2", grants=(f"Edit(/{notes}/**)",))

    def write(context: Session, path: Path) -> str:
        call = PermissionCall(tool=paper_tool("Write"), input={"file_path": str(path)}, cwd=context.state.cwd, mode="default")
        return context.policy.decide(call).behavior

    (notes / "out").symlink_to(tmp_path / ".claude")
    assert (write(mine, notes / "a.md"), write(other, notes / "a.md")) == ("allow", "ask")
    assert write(mine, notes / ".." / "x.md") == write(mine, notes / "out" / "settings.json") == "ask"
