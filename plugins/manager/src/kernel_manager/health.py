"""Before an update is switched: does the new version load? Its module is imported in a process of its own, with a time
limit, and its hooks are compared with the hookspecs and the manifest. Only for plugins that were enabled already: a first
install runs nothing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from kernel_manager.candidates import Candidate
from kernel_manager.errors import ManagerError
from kernel_manager.programs import run
from kernel_manager.steps import step

TIMEOUT = 30.0
_CHECK = """
import json, sys
from pathlib import Path
from kernel import Plugin, PluginSet, Registry
asked = json.loads(sys.argv[1])
plugin = Plugin.at(Path(asked["root"]), "installed", module=asked["module"], path=asked["path"])
if plugin.state == "ready":
    plugins = PluginSet([plugin])
    try:
        plugin.load()
    except Exception as error:
        plugin.errors.append(str(error))
    for kind in plugin.manifest.kernel.provides if plugin.state == "ready" else ():
        plugins.fill(Registry(kind), kind)
print("\\n" + json.dumps({"state": plugin.state, "errors": plugin.errors}))
"""


def check(candidate: Candidate, staging: Path, timeout: float | None = None) -> None:
    """:raises ManagerError: ``unhealthy``: it does not load, with its own words."""
    step("health")
    code = candidate.description.code
    if code is None or not candidate.description.implements:
        return
    base = candidate.fetched.base
    path = [str(base / code.path) if code.path else str(base), *(str(d.folder) for d in candidate.distributions if d.folder)]
    asked = json.dumps({"root": str(candidate.fetched.root), "module": code.module, "path": path})
    what = f"plugin {candidate.id}, version {candidate.version}"
    folder = staging / "health"
    folder.mkdir(exist_ok=True)
    said = run([sys.executable, "-P", "-B", "-c", _CHECK, asked], cwd=folder, timeout=timeout or TIMEOUT, type="unhealthy",
               what=what, env={"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    try:
        result = json.loads(said.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise ManagerError("unhealthy", "its module ended the process when it was imported", context=what) from None
    if result["state"] != "ready" or result["errors"]:
        raise ManagerError("unhealthy", "does not load: " + "; ".join(map(str, result["errors"]))[:500], context=what,
                           hint="the version before stays in use")
