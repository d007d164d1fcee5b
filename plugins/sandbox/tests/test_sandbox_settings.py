"""Which settings count, from which scope, and what happens where the sandbox cannot work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from kernel_sandbox import factory, seccomp, wishes

from kernel import Harness, UsageError
from kernel.testing import Kit, StubPolicy

real = pytest.mark.real_sandbox


def harness_of(work: Path, settings_of: Any, *layers: Any, trusted: bool = True, **options: Any) -> Harness:
    harness = Kit(work, installed=["sandbox"], policy=StubPolicy(), **options).harness
    harness.settings = settings_of(work, *layers, trusted=trusted)
    return harness


@pytest.fixture
def reading(work: Path, settings_of: Any) -> Any:
    """``read(*layers)``: what is asked for, and what the person is told."""
    def read(*layers: Any, trusted: bool = True, **options: Any) -> tuple[wishes.Wishes, list[str]]:
        harness = harness_of(work, settings_of, *layers, trusted=trusted, **options)
        session = harness.open()  # no sandbox is asked for, so none is opened
        return wishes.read(session), harness.announced
    return read


def sandbox(**values: Any) -> dict[str, Any]:
    return {"sandbox": values}


def hosts(asked: wishes.Wishes) -> tuple[list[str], list[str]]:
    return [p.host for p in asked.domains.allowed], [p.host for p in asked.domains.denied]


# -- where it cannot work ----------------------------------------------------------------------------------------------
@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_asked_for_and_not_possible_the_run_does_not_start(work: Path, settings_of: Any, no_bwrap: None) -> None:
    with pytest.raises(UsageError, match=r"bwrap is not installed.*bubblewrap"):
        harness_of(work, settings_of, ("project", sandbox(enabled=True))).open()


@pytest.mark.parametrize(("layers", "runs"), [
    ([("user", False)], True), ([("managed", False)], True), ([("project", False)], False), ([("local", False)], False),
    ([("cli", False)], False), ([("user", True)], False), ([("managed", True), ("user", False)], False),
    ([("project", True), ("user", False)], False), ([("managed", False), ("project", True)], True), ([("user", "no")], False),
    ([("project", False), ("user", False)], True), ([], False)])
def test_only_a_person_or_an_administrator_lets_the_run_go_on(work: Path, settings_of: Any, no_bwrap: None, layers: Any,
                                                              runs: bool) -> None:
    given = [(scope, sandbox(failIfUnavailable=value)) for scope, value in layers]
    harness = harness_of(work, settings_of, *given, ("user", sandbox(enabled=True)))
    if not runs:
        with pytest.raises(UsageError):
            harness.open()
        return
    session = harness.open()
    assert session.sandbox is not None and not session.sandbox.confines({"command": "ls"})
    assert session.sandbox.wrap(["ls"], cwd="/", purpose="tool") == ["ls"]
    assert any("WITHOUT a sandbox" in said and "bwrap" in said for said in harness.announced)


def test_a_program_that_does_nothing_is_found_out(work: Path, settings_of: Any, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UsageError, match=r"No permissions to create new namespace.*must allow user namespaces"):
        harness_of(work, settings_of, ("project", sandbox(enabled=True))).open()


def test_a_program_out_of_the_workspace_is_not_used(work: Path, settings_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "bin").mkdir()
    (work / "bin" / "bwrap").write_text("#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n")
    (work / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{work}/bin:{os.environ['PATH']}")
    with pytest.raises(UsageError, match="where commands could replace it"):
        harness_of(work, settings_of, ("project", sandbox(enabled=True))).open()


def test_another_system_or_processor_is_refused(monkeypatch: pytest.MonkeyPatch, work: Path, settings_of: Any) -> None:
    assert seccomp.program("riscv64") is None and seccomp.program("x86_64") != seccomp.program("aarch64")
    monkeypatch.setattr(seccomp, "program", lambda: None)
    with pytest.raises(UsageError, match=r"Unix sockets cannot be closed.*allowAllUnixSockets"):
        factory.probe("/bin/true", nested=False, unix_sockets=False)
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(UsageError, match="on Linux only"):
        harness_of(work, settings_of, ("project", sandbox(enabled=True))).open()


@real
def test_the_managed_path_of_the_program_counts_and_nobody_elses(work: Path, settings_of: Any) -> None:
    on = ("project", sandbox(enabled=True))
    session = harness_of(work, settings_of, ("user", sandbox(bwrapPath="/nonexistent")), on).open()
    assert session.sandbox is not None
    session.sandbox.close()
    for value in ("/nonexistent", "bwrap", 7):
        with pytest.raises(UsageError, match="bwrapPath"):
            harness_of(work, settings_of, ("managed", sandbox(bwrapPath=value)), on).open()


@real
def test_inside_a_container_it_can_do_with_less() -> None:
    import shutil

    program = shutil.which("bwrap") or ""
    strong, weak = (factory.probe(program, nested=nested, unix_sockets=False) for nested in (False, True))
    assert "--unshare-net" in strong and "--unshare-pid" in weak and "--disable-userns" not in weak


# -- who may ask for it, and who may not take it away ----------------------------------------------------------------------
@real
@pytest.mark.parametrize(("layers", "trusted", "on"), [
    ([("project", True)], False, True), ([("project", False), ("user", True)], False, True),
    ([("project", False), ("user", True)], True, False), ([("local", False), ("user", True)], False, True),
    ([("managed", False), ("user", True)], False, False), ([], True, False),
    ([("managed", True), ("project", False)], True, True)])
def test_an_untrusted_project_cannot_switch_it_off(work: Path, settings_of: Any, layers: Any, trusted: bool, on: bool) -> None:
    session = harness_of(work, settings_of, *[(s, sandbox(enabled=v)) for s, v in layers], trusted=trusted).open()
    assert (session.sandbox is not None) is on
    if session.sandbox is not None:
        session.sandbox.close()


def test_a_switch_that_is_no_boolean_ends_the_run(work: Path, settings_of: Any) -> None:
    with pytest.raises(UsageError, match=r"sandbox\.enabled: must be true or false"):
        harness_of(work, settings_of, ("project", sandbox(enabled="true"))).open()


@real
def test_the_choice_of_the_sandbox_may_stand_beside_its_other_settings(work: Path, settings_of: Any) -> None:
    for chosen in ({"name": "bubblewrap", "hooks": True}, {"hooks": True}, "bubblewrap"):
        session = harness_of(work, settings_of, ("project", {"kernel": {"sandbox": chosen}, **sandbox(enabled=True)})).open()
        assert session.sandbox is not None
        session.sandbox.close()
    with pytest.raises(UsageError, match="no plugin provides the sandbox 'other'"):
        harness_of(work, settings_of, ("project", {"kernel": {"sandbox": {"name": "other"}}, **sandbox(enabled=True)})).open()


# -- what widens -----------------------------------------------------------------------------------------------------------
WIDE = {"sandbox": {"excludedCommands": ["docker *"], "filesystem": {"allowWrite": ["/a"], "allowRead": ["/b"]},
                    "network": {"allowedDomains": ["x.test"], "allowAllUnixSockets": True}, "enableWeakerNestedSandbox": True},
        "permissions": {"allow": ["WebFetch(domain:fetched.test)"], "additionalDirectories": ["/c"]}}


def wide(asked: wishes.Wishes) -> list[bool]:
    return [bool(v) for v in (asked.excluded, asked.write, asked.show, asked.domains.allowed, asked.unix_sockets, asked.nested,
                              asked.work[1:])]


@pytest.mark.parametrize(("scope", "trusted", "counts"), [
    ("project", True, True), ("project", False, False), ("local", False, False), ("user", False, True), ("cli", False, True),
    ("managed", False, True)])
def test_what_widens_needs_trust(reading: Any, scope: str, trusted: bool, counts: bool) -> None:
    asked, said = reading((scope, WIDE), trusted=trusted)
    assert wide(asked) == [counts] * 7
    assert counts or any("sandbox.filesystem.allowWrite" in s and "not been trusted" in s for s in said)


def test_an_untrusted_project_cannot_take_back_what_a_person_forbade(reading: Any) -> None:
    strict = ("user", {**sandbox(allowUnsandboxedCommands=False), "kernel": {"sandbox": {"hooks": True}}})
    loose = ("project", {**sandbox(allowUnsandboxedCommands=True), "kernel": {"sandbox": {"hooks": False}}})
    for trusted, expected in ((False, (False, True)), (True, (True, False))):
        asked, _ = reading(loose, strict, trusted=trusted)
        assert (asked.escape, asked.hooks) == expected
    asked, _ = reading(("managed", strict[1]), loose)
    assert (asked.escape, asked.hooks) == (False, True)
    assert reading(loose)[0].escape is True


def test_what_cannot_be_read_is_read_strictly(reading: Any) -> None:
    asked, said = reading(("user", {"sandbox": {
        "excludedCommands": "docker *", "allowUnsandboxedCommands": "yes",
        "filesystem": {"allowWrite": [1, "/a", ""], "disabled": 1},
        "network": {"allowedDomains": ["bad host", "good.test"], "allowAllUnixSockets": "true"}},
        "kernel": {"sandbox": {"hooks": 1}}}))
    assert asked.excluded == () and asked.escape is False and asked.write == ("/a",) and asked.everything is False
    assert hosts(asked)[0] == ["good.test"] and asked.unix_sockets is False and asked.hooks is True
    assert len(said) == 7


@pytest.mark.parametrize("values", [
    {"filesystem": {"denyRead": "/x"}}, {"filesystem": {"denyWrite": {"a": 1}}}, {"network": {"deniedDomains": "x.test"}},
    {"network": {"deniedDomains": ["not a host"]}}, {"credentials": {"files": "x"}}, {"credentials": {"envVars": {}}}])
def test_a_boundary_that_cannot_be_read_ends_the_run(reading: Any, values: Any) -> None:
    for scope in ("project", "user", "managed"):
        with pytest.raises(UsageError):
            reading((scope, {"sandbox": values}), trusted=False)


def test_what_narrows_counts_from_everywhere(reading: Any) -> None:
    narrow = {"sandbox": {"filesystem": {"denyWrite": ["a"], "denyRead": ["b"]}, "network": {"deniedDomains": ["c.test"]},
                          "credentials": {"files": [{"path": "d", "mode": "mask"}, "e", {"mode": "deny"}],
                                          "envVars": ["F", {"name": "G"}]}},
              "permissions": {"deny": ["Read(h)", "Edit(i)", "WebFetch(domain:j.*)", "Read", "Bash(k)"]}}
    asked, said = reading(("project", narrow), trusted=False)
    assert [p.text for p in (*asked.no_write, *asked.no_read, *asked.sealed, *asked.fixed)] == ["a", "b", "d", "e", "h", "i"]
    assert hosts(asked)[1] == ["c.test", "j.*"] and asked.hide == ("F", "G") and len(said) == 1


# -- scopes of single keys -----------------------------------------------------------------------------------------------
def test_keys_of_some_scopes_do_nothing_in_others(reading: Any) -> None:
    off = {"sandbox": {"filesystem": {"disabled": True}}}
    scopes = ("managed", "user", "cli", "local", "project")
    assert [scope for scope in scopes if reading((scope, off))[0].everything] == ["managed", "user"]


@pytest.mark.parametrize("value", [True, "yes", 1, []])
def test_the_administrators_locks(reading: Any, value: Any) -> None:
    locks = {"filesystem": {"allowManagedReadPathsOnly": value, "allowRead": ["/m"]},
             "network": {"allowManagedDomainsOnly": value, "allowedDomains": ["m.test"]}}
    user = {"sandbox": {"filesystem": {"allowRead": ["/u"], "denyRead": ["/d"], "allowManagedReadPathsOnly": True},
                        "network": {"allowedDomains": ["u.test"], "deniedDomains": ["d.test"], "allowManagedDomainsOnly": True}},
            "permissions": {"allow": ["WebFetch(domain:w.test)"]}}
    asked, _ = reading(("managed", {"sandbox": locks}), ("user", user))
    assert asked.show == ("/m",) and hosts(asked) == (["m.test"], ["d.test"]) and asked.no_read
    asked, _ = reading(("user", user))
    assert asked.show == ("/u",) and hosts(asked)[0] == ["u.test", "w.test"]


def test_managed_rules_only(reading: Any) -> None:
    managed = {"allowManagedPermissionRulesOnly": True,
               "permissions": {"deny": ["Read(//m)"], "allow": ["WebFetch(domain:m.test)"]}}
    user = {"permissions": {"deny": ["Read(u)"], "allow": ["WebFetch(domain:u.test)"]}}
    asked, _ = reading(("managed", managed), ("user", user), disallowed_tools=["Read(c)"])
    assert [p.text for p in asked.sealed] == ["//m"] and hosts(asked)[0] == ["m.test"]


def test_where_paths_begin(reading: Any, work: Path) -> None:
    values = {"sandbox": {"filesystem": {"allowWrite": ["rel", "./dot", "/abs", "//root", "~/home", "~else/x"]}}}
    home = os.environ["HOME"]
    asked, said = reading(("project", values))
    assert asked.write == (f"{work}/rel", f"{work}/dot", "/abs", "/root", f"{home}/home")
    assert any("~else/x" in s for s in said)
    asked, _ = reading(("user", {"sandbox": {"filesystem": {"allowWrite": ["rel"]}}}))
    assert asked.write == (f"{work}/.config/rel",)


def test_a_bare_webfetch_rule_opens_no_network(reading: Any) -> None:
    asked, _ = reading(("user", {"permissions": {"allow": ["WebFetch", "WebFetch(domain:*)", "WebFetch(domain:a.test)"]}}),
                       allowed_tools=["Bash,WebFetch(domain:b.test)"])
    assert hosts(asked)[0] == ["a.test", "b.test"]


def test_what_is_not_enforced_is_said(reading: Any) -> None:
    _, said = reading(("user", sandbox(network={"tlsTerminate": {"x": 1}, "httpProxyPort": 8080})))
    assert any("tlsTerminate" in s for s in said) and not any("httpProxyPort" in s for s in said)


# -- in a session ----------------------------------------------------------------------------------------------------------
@real
@pytest.mark.anyio
async def test_a_call_may_ask_to_leave_unless_settings_forbid_it(box: Any, work: Path) -> None:
    for allowed, name in ((True, "one"), (False, "two")):
        made = await box({"allowUnsandboxedCommands": allowed})
        result = await made.call("Bash", command=f"touch {work.parent}/{name}", dangerouslyDisableSandbox=True)
        assert (work.parent / name).exists() is allowed
        assert ("[sandbox]" in str(result.content)) is not allowed
        assert ("dangerouslyDisableSandbox" in await made.text("touch /etc/x")) is allowed


@real
@pytest.mark.anyio
async def test_an_excluded_command_runs_outside(box: Any, work: Path) -> None:
    made = await box({"excludedCommands": ["touch *"]})
    await made.text(f"touch {work.parent}/one")
    await made.text(f"touch {work.parent}/two; cp /etc/hosts {work.parent}/three")
    assert (work.parent / "one").exists() and not (work.parent / "two").exists() and not (work.parent / "three").exists()


@real
@pytest.mark.anyio
async def test_confinement_stands_in_for_a_question(work: Path) -> None:
    from kernel.testing import call, text

    def kit(sandbox: dict[str, Any], rules: dict[str, Any] | None = None, **options: Any) -> Kit:
        commands = [call("Bash", command="touch made"), call("Bash", command="touch left", dangerouslyDisableSandbox=True),
                    call("Bash", command="touch asked"), call("Bash", command="touch denied")]
        return Kit(work, [[c] for c in commands] + [text("done")], installed=["tools-shell", "permissions", "sandbox"],
                   settings={"sandbox": {"enabled": True, **sandbox}, "permissions": rules or {}}, **options)

    run = await kit({}, {"ask": ["Bash", "Bash(touch asked)"], "deny": ["Bash(touch denied)"]}).run("go")
    assert [(work / n).exists() for n in ("made", "left", "asked", "denied")] == [True, False, False, False]
    assert "approval" in str(run.result_of("call_2")["content"]) or "Permission" in str(run.result_of("call_2")["content"])
    await run.session.close()
    (work / "made").unlink()
    for more in ({"settings_key": "auto"}, {"mode": "plan"}):
        asked = {"autoAllowBashIfSandboxed": False} if "settings_key" in more else {}
        run = await kit(asked, permission_mode="plan" if "mode" in more else None).run("go")
        assert not (work / "made").exists()
        await run.session.close()


@real
@pytest.mark.anyio
async def test_changed_settings_count_for_the_next_command(box: Any, work: Path, settings_of: Any) -> None:
    (work / "file").write_text("TOP")
    made = await box()
    assert "TOP" in await made.text("cat file")
    new = {"sandbox": {"enabled": True, "filesystem": {"denyRead": ["file"]}}}
    made.harness.settings = settings_of(work, ("project", new))
    assert "TOP" not in await made.text("cat file")
    made.harness.settings = settings_of(work, ("project", {"sandbox": {"enabled": True, "filesystem": {"denyRead": "broken"}}}))
    assert "TOP" not in await made.text("cat file")
    assert any("the boundaries stay as they were" in said for said in made.harness.announced)


@real
@pytest.mark.anyio
async def test_the_model_is_told_once(work: Path) -> None:
    kit = Kit(work, installed=["tools-shell", "permissions", "sandbox"],
              settings={"sandbox": {"enabled": True, "network": {"allowedDomains": ["pypi.org"]}}})
    run = await kit.run("go")
    told = "\n".join(block["text"] for block in run.requests[0]["system"])
    assert "# Sandbox" in told and "pypi.org" in told and str(work) in told and "dangerouslyDisableSandbox" in told
    await run.session.close()
    plain = await Kit(work, installed=["tools-shell", "permissions", "sandbox"]).run("go")
    assert "# Sandbox" not in str(plain.requests[0]["system"])
