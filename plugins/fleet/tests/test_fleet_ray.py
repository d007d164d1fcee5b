"""The same command on a Ray cluster of two nodes: two raylets on this host."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import installed

pytest.importorskip("ray", reason="Ray is not installed (pip install 'kernel-fleet[ray]')")
pytestmark = pytest.mark.skipif(not all(map(installed, ("headless", "model-script", "tools-shell", "sessions", "permissions"))),
                                reason="needs print mode, a scripted model, Bash, sessions and rules")

CLUSTER = """\
import json, sys
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True,
                  head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80_000_000})
cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
for line in sys.stdin:
    if line == "kill\\n":
        cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
        print("killed", flush=True)
cluster.shutdown()
"""


class Cluster:
    def __init__(self, folder: Path) -> None:
        env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "RAY_USAGE_STATS_ENABLED": "0"}
        self.process = subprocess.Popen([sys.executable, "-c", CLUSTER], cwd=folder, stdin=subprocess.PIPE, env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=(folder / "ray.err").open("w"))
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()
        assert ":" in self.address, (folder / "ray.err").read_text()

    def kill_a_node(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("kill\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "killed\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("ray"))
    yield made
    made.process.communicate(timeout=60)


def test_two_nodes_share_the_tasks_and_one_that_is_lost_loses_nothing(place: Any, cluster: Cluster) -> None:
    place.script(f"cat /proc/sys/kernel/random/uuid >> {place.ledger}", delay=0.2)
    place.tasks(*({"id": f"t{n}"} for n in range(10)))
    process = subprocess.Popen(place.command("--address", cluster.address, "--json"), cwd=place.folder, env=place.env,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    results = place.folder / "tasks.fleet" / "results.jsonl"
    place.until(lambda: results.exists() and results.read_bytes().count(b"\n") >= 3, "three results")
    cluster.kill_a_node()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert told["statuses"] == {"done": 10} and len(place.results) == 10, err
    seats = {line["seat"] for line in place.journal if line["kind"] == "over"}
    assert seats == {1, 2} and place.left() == []
