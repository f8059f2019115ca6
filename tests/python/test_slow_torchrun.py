"""torchrun under `muster run --launcher`: preempted, told to end, and asked who its ranks are.
PyTorch is a download of 3 GB: slow.
"""
# needs: torch

import os
import pathlib
import signal
import sys

import pytest
from conftest import World, await_that, digests

PATIENCE = 180.0  # two launches that each import PyTorch three times, on two loaded cores
STEPS, SECONDS = 200, 0.05
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def train(world, ranks=TORCHRUN, seconds=SECONDS, steps=STEPS):
    program = ("train_ddp.py", steps, seconds, world.directory / "digests")
    return world.run(ranks, *program, options=("--max-failures", "0"))


def await_steps(world):
    return await_that(
        "step 10 of both ranks",
        lambda: [r.done >= 10 for r in world.nodes()] == [True, True] and world.nodes(),
        PATIENCE,
    )


def agent_of(launch):
    """torchrun's own process: a child of `muster run`, as the guard is that looks like it."""
    pid = launch.process.pid
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if b"torch.distributed.run" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
            if b"--launcher" not in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    raise AssertionError(f"no torchrun under {pid}")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    train(world, 2, 0).finish(PATIENCE)
    world.end()
    return digests(world.directory / "digests")


@pytest.mark.parametrize("how", ["notice", "one rank", "the agent"])
def test_A4_torchrun_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(
    world, uninterrupted, how
):
    launch = train(world)
    nodes = await_steps(world)
    if how == "notice":
        world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    else:
        os.kill(nodes[1].pid if how == "one rank" else agent_of(launch), signal.SIGTERM)
    launch.finish(PATIENCE)
    assert "(2 launches, 1 preemption, 0 failures)" in launch.stderr
    assert "(preempted, the launcher exited with code 1)" in launch.stderr
    assert digests(world.directory / "digests") == uninterrupted
    assert len(world.client.checkpoints("job")) == 1
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}


def test_SIGTERM_at_muster_run_ends_torchrun_with_the_restart_code(world):
    launch = train(world, steps=100000)
    await_steps(world)
    launch.process.send_signal(signal.SIGTERM)
    assert launch.end(PATIENCE) == 42
    assert len(world.client.checkpoints("job")) == 1


def test_a_rank_of_an_outer_muster_run_is_not_believed(world):
    launcher = ("env", "MUSTER_RANK=0", "MUSTER_WORLD_SIZE=1", *TORCHRUN)
    launch = train(world, launcher, 0)
    assert launch.end(PATIENCE) != 0
    assert "MUSTER_WORLD_SIZE say rank 0 of 1, but torchrun says rank" in launch.logs()
