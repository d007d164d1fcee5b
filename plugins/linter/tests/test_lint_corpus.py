"""The corpus of real plugins: a verdict each, no fault of ours, and exactly the faults that reading found."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import pytest
import yaml
from kernel_linter.runner import lint

sys.path.insert(0, str(Path(__file__).parent))
from lint_corpus import CORPUS, repositories, roots, stand_in

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of public plugins is not here (KERNEL_SHARED)")
TABLE: dict[str, dict[str, list[str]]] = yaml.safe_load((Path(__file__).parent / "corpus_faults.yaml").read_text("utf-8"))
NOT_JUDGED = {"MKT013", "SKL037", "SKL049", "SKL053", "MCP009", "HOK021", "HOK022"}
CUT = {"Yeachan-Heo__oh-my-claudecode", "nyldn__claude-octopus", "ANcpLua__ancplua-claude-plugins"}
"""Repositories whose list of files is cut: nothing can be said about what is missing there."""


SECONDS: list[float] = []


def judged(repository: str, path: str, code: str) -> bool:
    if code in NOT_JUDGED:
        return False
    return not (code in ("PLG025", "PLG034") and repository in CUT and "fixtures" not in path)


@pytest.mark.parametrize("repository", repositories(), ids=lambda p: p.name)
def test_the_faults_are_those_of_the_table(repository: Path, tmp_path: Path) -> None:
    real = stand_in(repository, tmp_path)
    places = [tmp_path / r if r != "." else tmp_path for r in roots(repository)]
    places += sorted(tmp_path.rglob(".claude-plugin/marketplace.json"))
    found: set[tuple[str, str]] = set()
    for place in places:
        start = time.process_time()
        report = lint(place)
        SECONDS.append(time.process_time() - start)
        assert not [f.message for f in report.findings if f.code == "KRN-INTERNAL"]
        for finding in report.findings:
            path = finding.path.removeprefix(f"{tmp_path}/")
            if path in real and finding.severity != "info" and judged(repository.name, path, finding.code):
                found.add((path, finding.code))
    expected = {(path, code) for path, codes in TABLE[repository.name].items() for code in codes}
    assert sorted(expected - found) == [], "missed"
    assert sorted(found - expected) == [], "false alarms"


def test_the_time_of_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed, not held: machines are noisy. ``python -m benchmarks.lint`` compares with plain loading."""
    if not SECONDS:
        pytest.skip("nothing was checked in this process")
    with capsys.disabled():
        print(f"\nlint: {len(SECONDS)} plugins and catalogues of the corpus, processor time each: median "
              f"{statistics.median(SECONDS) * 1000:.0f} ms, 95 % {sorted(SECONDS)[int(len(SECONDS) * 0.95)] * 1000:.0f} ms, "
              f"most {max(SECONDS) * 1000:.0f} ms")
