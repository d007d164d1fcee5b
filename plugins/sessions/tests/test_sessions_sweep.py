"""What is old goes, and nothing else."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions.sweep import STAMP, period, sweep

from kernel import Layer, Settings
from kernel.testing import Kit, text

OLD = time.time() - 40 * 86_400


def age(place: Path) -> None:
    for root, folders, names in os.walk(place):
        for name in [*names, *folders]:
            os.utime(os.path.join(root, name), (OLD, OLD), follow_symlinks=False)
    os.utime(place, (OLD, OLD))


def test_old_sessions_go_with_what_is_theirs(home: Any) -> None:
    old, new = home.begin(home.prompt("old")), home.begin(home.prompt("new"))
    running = home.open()
    running.append([home.prompt("running")], cwd=str(home.cwd))
    project = Path(old.path).parent
    outside = home.root / "outside"
    outside.mkdir()
    (outside / "mine").write_text("x")
    for name in (old.session_id, new.session_id, running.session_id):
        for folder in (project / name / "tool-results", home.config / "file-history" / name):
            folder.mkdir(parents=True)
            (folder / "x").write_text("x")
    (project / "memory").mkdir()
    (project / "memory" / "MEMORY.md").write_text("kept")
    (home.config / "plans").mkdir()
    (home.config / "plans" / "p.md").write_text("p")
    (home.config / "debug").symlink_to(outside)
    age(home.config)
    for place in (new.path, project / new.session_id / "tool-results" / "x", home.config / "file-history" / new.session_id / "x"):
        os.utime(place)
    gone = sweep(home.config, time.time() - 30 * 86_400, running.session_id)
    assert set(gone) == {Path(old.path), project / old.session_id, home.config / "file-history" / old.session_id,
                         home.config / "plans" / "p.md"}
    assert Path(running.path).exists() and (project / "memory" / "MEMORY.md").exists() and (outside / "mine").exists()
    assert (project / new.session_id / "tool-results" / "x").exists() and Path(new.path).exists()
    running.close()


def test_links_are_not_followed(home: Any) -> None:
    old = home.begin(home.prompt("old"))
    outside = home.root / "outside" / old.session_id
    outside.mkdir(parents=True)
    (outside / "mine").write_text("x")
    Path(old.path).with_suffix("").symlink_to(outside)
    (home.config / "file-history").symlink_to(outside.parent)
    age(home.config)
    age(outside)
    sweep(home.config, time.time())
    assert (outside / "mine").exists() and not Path(old.path).exists()


def settings(*layers: tuple[str, Any], trusted: bool = True, problems: list[Any] | None = None) -> Settings:
    made = [Layer(scope, f"/{scope}", {"cleanupPeriodDays": value}, "/") for scope, value in layers]  # type: ignore[arg-type]
    return Settings(made, problems or [], config_dir=Path("/c"), project_root=Path("/p"), trusted=trusted)


@pytest.mark.parametrize(("layers", "trusted", "days"), [
    ([], True, 30), ([("user", 3)], True, 3), ([("user", 0)], True, None), ([("user", True)], True, None),
    ([("user", "7")], True, None), ([("project", 1), ("user", 9)], True, 1), ([("project", 1), ("user", 9)], False, 9),
    ([("local", 1)], False, 30), ([("managed", 5), ("user", 0)], True, 5)])
def test_the_period(layers: Any, trusted: bool, days: int | None) -> None:
    assert period(settings(*layers, trusted=trusted))[0] == days


def test_doubt_pauses_the_sweep_but_not_managed_settings() -> None:
    from kernel.settings import Problem

    whole, field = Problem("/user", "", "is no JSON"), Problem("/user", "hooks", "must be an object")
    assert period(settings(problems=[whole]))[0] is None and period(settings(problems=[field]))[0] == 30
    assert period(settings(("user", 3), problems=[field]))[0] is None
    assert period(settings(("managed", 3), problems=[whole]))[0] == 3


def test_at_most_once_a_day_and_not_in_bare_runs(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(threading, "Thread", lambda **args: started.append(args) or type("T", (), {"start": print})())

    def run(**options: Any) -> int:
        Kit(home.cwd, [text("x")], installed=["sessions"], persist=True, **options).play("hi")
        return len(started)

    assert run(extra={"bare": True}) == 0 and run() == 1 and run() == 1
    os.utime(home.config / STAMP, (OLD, OLD))
    assert run() == 2
