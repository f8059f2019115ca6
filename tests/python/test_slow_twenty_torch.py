"""A4 with PyTorch: SIGTERM to the process group of ranks with DataLoader workers, 20 times. A7: who
is blamed when a rank is killed inside a collective. PyTorch is a download of 3 GB: slow.

The ranks are forks of one process that has imported PyTorch: `muster run` starts programs/warm.py,
which becomes one. What they are compared with is not: it imports PyTorch itself.
"""
# needs: torch
# needs: torchdata

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest
from conftest import PROGRAMS, World, await_that, digests

PATIENCE = 180.0  # launches that each import PyTorch three times, on two loaded cores
STEPS, SECONDS, TIMES = 600, 0.05, max(20, int(os.environ.get("TIMES", "20")))


@pytest.fixture(scope="module")
def warm():
    """The words in front of a program that make it a fork of a process with PyTorch."""
    directory = pathlib.Path(tempfile.mkdtemp())  # a socket's path is short
    place = directory / "socket"
    modules = ("torch._dynamo", "torch.nn.parallel", "torchdata.stateful_dataloader")
    command = [sys.executable, PROGRAMS / "warm.py", "--serve", place, *modules, "muster.torch"]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    await_that("PyTorch", place.exists, PATIENCE)
    yield "warm.py", place
    process.kill()
    process.wait()
    shutil.rmtree(directory)


def train(world, ranks, seconds=SECONDS, workers=0, warm=()):
    """Its first TIMES launches take their time."""
    program = (*warm, PROGRAMS / "train_ddp.py", STEPS, seconds, world.directory / "digests")
    env = {"SLOW_LAUNCHES": str(TIMES), "WORKERS": str(workers)}
    return world.run(ranks, *program, options=("--max-failures", "0"), env=env)


def uninterrupted(directory, workers):
    directory.mkdir()
    world = World(directory)
    train(world, 2, 0, workers).finish(PATIENCE)
    world.end()
    return digests(directory / "digests")


def test_A4_SIGTERM_to_the_group_with_4_DataLoader_workers_20_times(world, tmp_path, warm):
    launch = train(world, 2, workers=4, warm=warm)

    def strike(nodes):
        for node in nodes:
            os.killpg(os.getpgid(node.pid), signal.SIGTERM)

    world.preempt_again_and_again(launch, 2, strike, TIMES, PATIENCE)
    assert "DataLoader worker" not in launch.logs()
    assert digests(world.directory / "digests") == uninterrupted(tmp_path / "whole", 4)


def test_A7_why_names_the_killed_rank_20_times(world, warm):
    """The survivor's gloo call breaks first, and it is not blamed."""
    for number in range(TIMES):
        job = f"job-{number}"
        program = (*warm, PROGRAMS / "train_ddp.py", 100000, 0.001, world.directory / "digests")
        launch = world.run(
            2,
            *program,
            options=("--max-failures", "0", "--job", job),
            env={"MUSTER_CHECKPOINT_DIR": str(world.directory / job)},
        )
        killed = number % 2
        nodes = await_that(
            "steps of both ranks",
            lambda job=job: (
                [row.done >= 5 for row in world.client.nodes(job)] == [True, True]
                and world.client.nodes(job)
            ),
            PATIENCE,
        )
        (pid,) = (row.pid for row in nodes if row.rank == killed)
        os.kill(pid, signal.SIGKILL)
        assert launch.end(PATIENCE) != 0
        told = world.muster("why", "--job", job)
        assert f"rank {killed}" in told.splitlines()[0], told
        assert f"rank {1 - killed}" not in told.splitlines()[0], told
