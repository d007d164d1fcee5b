"""The pytest plugin of the test kit. It is loaded where it is asked for and nowhere else (decision 20)::

    [tool.pytest.ini_options]
    addopts = ["-p", "kernel.testing.pytest_plugin"]

Fixtures: ``kernel_kit`` and ``kernel_home``. Options: ``--update-golden``, ``--event-coverage``, ``--skill-model``.
The kernel is imported when the first fixture is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kernel.testing.kit import Kit

PREFIXES = ("CLAUDE", "ANTHROPIC", "KERNEL_")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kernel")
    group.addoption("--update-golden", action="store_true", help="write golden transcripts instead of comparing with them")
    group.addoption("--event-coverage", metavar="FOLDER", nargs="?", const="", default=None,
                    help="report which events that the plugin in FOLDER (default: the root folder) answers were fired")
    group.addoption("--event-coverage-fail", action="store_true", help="fail where --event-coverage finds an event never fired")
    group.addoption("--skill-model", metavar="MODEL", default=None, help="let this model choose in trigger tests; costs money")


# -- fixtures -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def kernel_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty home, and no settings, keys or variables of the person who runs the tests; all is put back afterwards."""
    before = dict(os.environ)
    home = tmp_path_factory.mktemp("home")
    for name in before:
        if name.startswith(PREFIXES):
            del os.environ[name]
    os.environ["HOME"] = str(home)
    yield home
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def kernel_kit(kernel_home: Path, tmp_path: Path) -> Callable[..., Kit]:
    """A harness whose model plays a script, in the test's own folder: ``kernel_kit(turn, turn, ..., **what Kit takes)``."""
    from kernel.testing.kit import Kit

    def make(*turns: Any, cwd: Path | None = None, **more: Any) -> Kit:
        return Kit(cwd or tmp_path, turns, **more)

    return make


@pytest.fixture
def skill_chooser(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Who chooses in ``assert_triggers(..., choose=...)``: words, or the model that ``--skill-model`` names."""
    from kernel.testing.skills import ask_model, by_words

    model = request.config.getoption("--skill-model")
    return ask_model(model, tmp_path) if model else by_words


# -- golden transcripts and event coverage -------------------------------------------------------------------------------
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden"):
        from kernel.testing import transcripts

        transcripts._update[0] = True
    if config.getoption("--event-coverage") is not None:
        from kernel.testing import event_coverage

        config.stash[_RECORDER] = event_coverage.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.getoption("--update-golden"):
        from kernel.testing import transcripts

        transcripts._update[0] = False
    if _RECORDER in config.stash:
        from kernel.testing import event_coverage

        event_coverage.stop()


_RECORDER: pytest.StashKey[Any] = pytest.StashKey()
_COVERAGE: pytest.StashKey[Any] = pytest.StashKey()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker of pytest-xdist ended: what it counted is added."""
    if _RECORDER in node.config.stash:
        node.config.stash[_RECORDER].add(getattr(node, "workeroutput", {}).get("kernel_events", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if _RECORDER not in config.stash:
        return
    if hasattr(config, "workeroutput"):
        config.workeroutput["kernel_events"] = config.stash[_RECORDER].fired
        return
    from kernel.testing.event_coverage import measure

    try:
        coverage = measure(Path(config.getoption("--event-coverage") or config.rootpath), config.stash[_RECORDER])
    except ValueError as error:
        raise pytest.UsageError(f"--event-coverage: {error}") from None
    config.stash[_COVERAGE] = coverage
    if config.getoption("--event-coverage-fail") and coverage.missing and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    coverage = config.stash.get(_COVERAGE, None)
    if coverage is not None:
        for line in coverage.lines():
            terminalreporter.write_line(line, yellow=line.endswith("never fired"))
