"""`muster run --nodes` on hosts that are namespaces of this machine: each has a network, a name and
processes of its own, and a cable to a bridge. A program that torchrun starts runs there unchanged.
PyTorch is a download of 3 GB: slow.
"""
# needs: torch

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch
from conftest import PROGRAMS, World, await_that

PATIENCE = 240.0  # a rank that hangs in a collective has 60 s; then all import PyTorch again
STEPS = 4000
HEAD = "10.77.0.1"  # seen by nobody else
CLONE_NEWNET = 0x40000000


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@pytest.fixture(scope="module")
def network():
    """This process gets a network of its own, with a bridge."""
    if shutil.which("ip") is None:
        pytest.skip("there is no ip (package iproute2)")
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        pytest.skip(f"no network namespace: {os.strerror(ctypes.get_errno())}; it needs root")
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge", "type", "bridge")
    ip("address", "add", f"{HEAD}/24", "dev", "bridge")
    ip("link", "set", "bridge", "up")


class Host:
    """A machine: kill() takes its power, cut() its network."""

    def __init__(self, cluster, name, number):
        self.cluster, self.name = cluster, name
        cluster.hosts.append(self)
        self.log = cluster.directory / f"{name}.log"
        self.run = None
        self.power = subprocess.Popen(
            ["unshare", "--net", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"]
            + ["sh", "-c", f"hostname {name} && exec sleep infinity"]
        )
        children = pathlib.Path(f"/proc/{self.power.pid}/task/{self.power.pid}/children")
        self.init = int(await_that(f"host {name}", lambda: children.read_text().strip()))
        comm = pathlib.Path(f"/proc/{self.init}/comm")
        await_that(f"the name of {name}", lambda: comm.read_text() == "sleep\n")
        ip("link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", str(self.init))
        ip("link", "set", "dev", name, "master", "bridge", "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"10.77.0.{number}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            subprocess.run([*self.inside(), "ip", *words], check=True)

    def inside(self):
        return ["nsenter", "-t", str(self.init), "--net", "--uts", "--pid", "--mount"]

    def start(self, nodes):
        runtime = self.cluster.directory / f"runtime-{self.name}"
        runtime.mkdir()
        self.run = subprocess.Popen(
            [*self.inside(), os.environ["MUSTER"], "run", "--nodes", nodes, "--job", "job"]
            + ["--join-wait-ms", "2000", "--", sys.executable, *self.cluster.program],
            env={
                **self.cluster.env,
                "XDG_RUNTIME_DIR": str(runtime),
                "GLOO_SOCKET_IFNAME": "eth0",
            },
            stdout=self.log.open("w"),
            stderr=subprocess.STDOUT,
        )
        return self

    def kill(self):
        self.power.kill()  # its init goes with it, and all else of that host with the init
        self.power.wait()

    def cut(self):
        ip("link", "set", "dev", self.name, "down")

    def mend(self):
        ip("link", "set", "dev", self.name, "up")

    def end(self):
        return self.run.wait(PATIENCE)


class Cluster(World):
    def __init__(self, directory):
        key = directory / "own.key"
        subprocess.run(
            [os.environ["MUSTER"], "key", "add", "own", "--job", "*", "--file", str(key)]
            + ["--db", str(directory / "muster.db")],
            check=True,
        )
        os.environ["MUSTER_KEY_FILE"] = str(key)
        super().__init__(directory, listen=f"tcp://{HEAD}:*")
        self.env["MUSTER_KEY_FILE"] = str(key)
        self.hosts = []
        self.fast = directory / "fast"
        self.output = directory / "weights.pt"
        self.program = [
            str(PROGRAMS / "train_elastic.py"), str(STEPS), "0.1", str(self.output), str(self.fast)
        ]  # fmt: skip

    def start(self, name, nodes):
        return Host(self, name, len(self.hosts) + 2).start(nodes)

    def trains(self, *hosts):
        """A launch on these hosts alone takes steps; returns its newest generation."""
        names = {host.name for host in hosts}

        def there():
            live = self.nodes()
            began = max(self.client.generations("job"), key=lambda row: row.generation, default=0)
            if {row.host for row in live} != names or len(live) != len(names):
                return None
            behind = max(began.resume_step, 0) + 3
            return began if all(row.done > behind for row in live) else None

        return await_that(f"steps of {sorted(names)}", there, PATIENCE)

    def states(self):
        return {row.host: row.state for row in self.client.hosts("job")}

    def await_state(self, host, state):
        await_that(f"{host.name} {state}", lambda: self.states().get(host.name) == state, PATIENCE)

    def finish(self, *hosts):
        self.fast.touch()
        assert [host.end() for host in hosts] == [0] * len(hosts)
        return torch.load(self.output)

    def end(self):
        for host in self.hosts:
            host.kill()
        super().end()


@pytest.fixture
def cluster(network, tmp_path):
    made = Cluster(tmp_path)
    yield made
    for path in sorted(tmp_path.glob("*.log")):
        print(f"--- {path.name}\n{path.read_text()[-4000:]}")
    made.end()


@pytest.fixture(scope="module")
def uninterrupted(network, tmp_path_factory):
    """What torchrun makes of the same file."""
    directory = tmp_path_factory.mktemp("uninterrupted")
    world = Cluster(directory)
    world.fast.touch()
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        + world.program,
        env={**world.env, "MUSTER_JOB": "torchrun", "GLOO_SOCKET_IFNAME": "lo"},
        check=True,
        timeout=PATIENCE,
    )
    world.end()
    return torch.load(world.output)


def test_hosts_leave_and_come_and_each_step_counts_once(cluster, uninterrupted):
    """R15.1, R15.2, R15.4: a host gets a notice, one loses its power, one its network."""
    a, b = cluster.start("a", "1:3"), cluster.start("b", "1:3")
    cluster.trains(a, b)
    c = cluster.start("c", "1:3")
    cluster.trains(a, b, c)

    pid = next(row.pid for row in cluster.nodes() if row.host == "b")
    subprocess.run([*b.inside(), "kill", "-TERM", str(pid)], check=True)
    assert b.end() == 42
    saved = cluster.trains(a, c).resume_step
    assert saved == max(row.step for row in cluster.client.checkpoints("job"))

    c.kill()
    cluster.await_state(c, "lost")
    cluster.trains(a)
    d = cluster.start("d", "1:3")
    cluster.trains(a, d)

    d.cut()
    cluster.await_state(d, "lost")
    cluster.trains(a)
    d.mend()
    cluster.trains(a, d)
    assert cluster.states() == {"a": "running", "d": "running"}

    weights = cluster.finish(a, d)
    assert torch.equal(weights["counted"], uninterrupted["counted"])
    for name, tensor in uninterrupted.items():
        torch.testing.assert_close(weights[name], tensor, rtol=1e-3, atol=1e-4)


def test_a_host_that_replaces_a_killed_one_changes_no_bit(cluster, uninterrupted):
    """R15.2, R15.3"""
    a, b = cluster.start("a", "2"), cluster.start("b", "2")
    cluster.trains(a, b)
    b.kill()
    c = cluster.start("c", "2")
    cluster.trains(a, c)
    weights = cluster.finish(a, c)
    assert all(torch.equal(weights[name], tensor) for name, tensor in uninterrupted.items())
