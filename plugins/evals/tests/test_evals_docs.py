"""The example of docs/evals.md runs as it stands there, and the page names what there is."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_evals import suite

from kernel.testing import installed

PAGE = (Path(__file__).parent.parent.parent.parent / "docs" / "evals.md").read_text("utf-8")


@pytest.mark.skipif(not all(map(installed, ("headless", "model-script", "tools-shell", "permissions"))),
                    reason="needs print mode, a scripted model, Bash and rules")
def test_the_page_runs(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    env = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
           "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    for line in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)[0].splitlines():
        done = subprocess.run([sys.executable, "-m", *shlex.split(line)], cwd=tmp_path, env=env, capture_output=True, text=True,
                              check=False, timeout=120)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    assert (tmp_path / "page.html").exists()


def test_the_page_names_every_field_suite_and_measure() -> None:
    for kind in (suite.Case, suite.Check, suite.FileCheck, suite.CallCheck, suite.RequestCheck, suite.ResultCheck,
                 suite.MeasureCheck, suite.Injection, suite.Fault):
        for name in kind.__struct_fields__:
            assert re.search(rf"`{name}\b|\b{name}:", PAGE), f"{kind.__name__}.{name}"
    for path in suite.built_in():
        loaded = suite.load(path)
        assert f"`{loaded.name}`" in PAGE and all(f"`{measure}`" in PAGE for measure in loaded.measures), loaded.name
