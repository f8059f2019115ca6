"""Accelerate's own loop, preempted and resumed. PyTorch is a download of 3 GB: slow."""
# needs: accelerate
# needs: torchdata

import os
import signal

import accelerate
import pytest
from conftest import World, digests

import muster.accelerate

PATIENCE = 180.0  # launches that each import PyTorch and Accelerate, on two loaded cores
STEPS, SECONDS = 200, 0.05


def train(world, seconds, *words):
    program = ("train_accelerate.py", STEPS, seconds, world.directory / "digests", *words)
    return world.run(2, *program, options=("--max-failures", "0"))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    train(world, 0).finish(PATIENCE)
    world.end()
    return digests(world.directory / "digests")


@pytest.mark.parametrize("how", ["notice", "one rank", "all"])
def test_A4_accelerate_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(
    world, uninterrupted, how
):
    launch = train(world, SECONDS)
    nodes = world.await_step(60, ranks=2, patience=PATIENCE)  # in the second epoch of five
    if how == "notice":
        world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    else:
        for node in nodes[1:] if how == "one rank" else nodes:
            os.kill(node.pid, signal.SIGTERM)
    launch.finish(PATIENCE)
    launch.ended(2, launches=2)  # A9
    assert digests(world.directory / "digests") == uninterrupted
    assert "resumed True" in launch.log(0) and "resumed True" in launch.log(1)
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    own = [text.split() for text in uninterrupted.values()]
    assert own[0][0] == own[1][0]  # weights alike, random numbers and data not
    assert own[0][1] != own[1][1] and own[0][2] != own[1][2]


def test_a_loader_without_a_position_is_warned_of(world):
    launch = world.run(1, "train_accelerate.py", 5, 0, world.directory / "digests", "unpositioned")
    launch.finish(PATIENCE)
    assert "a resumed run begins its data again" in launch.log(0)


def test_the_example_runs(world):
    launch = world.run(2, "../../../client/python/examples/accelerate_loop.py", 60)
    launch.finish(PATIENCE)
    assert "60 steps, loss " in launch.log(0)


def test_what_cannot_be_is_refused_by_name():
    says = "accelerator is a int; give the accelerate.Accelerator"
    with pytest.raises(muster.ArgumentTypeError, match=says):
        muster.accelerate.Checkpointer(1)
    from accelerate.utils import ProjectConfiguration

    naming = ProjectConfiguration(project_dir="p", automatic_checkpoint_naming=True)
    says = "automatic_checkpoint_naming writes beside .*; leave it out of the ProjectConfiguration"
    with pytest.raises(muster.ArgumentError, match=says):
        muster.accelerate.Checkpointer(accelerate.Accelerator(cpu=True, project_config=naming))
