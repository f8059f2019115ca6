"""PyTorch's DistributedDataParallel, preempted and resumed. PyTorch is a download of 3 GB: slow."""
# needs: torch

import os
import signal

import pytest
import torch
from conftest import World, digests

import muster.torch

STEPS, SECONDS = 200, 0.05


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    world.run(2, "train_ddp.py", STEPS, 0, world.directory / "digests").finish()
    world.end()
    return digests(world.directory / "digests")


@pytest.mark.parametrize("how", ["notice", "signal"])
def test_ddp_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(world, uninterrupted, how):
    launch = world.run(2, "train_ddp.py", STEPS, SECONDS, world.directory / "digests")
    nodes = world.await_step(10, ranks=2)
    if how == "notice":
        world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    else:
        os.kill(nodes[1].pid, signal.SIGTERM)
    launch.finish()
    assert digests(world.directory / "digests") == uninterrupted
    assert "resumed True" in launch.log(0) and "resumed True" in launch.log(1)
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    own = [text.split() for text in uninterrupted.values()]
    assert own[0][0] == own[1][0] and own[0][1] != own[1][1]  # weights alike, random numbers not
    assert own[0][2] == str(STEPS)


def test_a_state_that_only_a_pickle_holds_is_refused_by_name(world):
    class Odd:
        def state_dict(self):
            return {"when": [1, object()]}

        def load_state_dict(self, state):
            pass

    with pytest.raises(TypeError, match=r"odd\['when'\]\[1\] is a builtins.object"):
        muster.torch.Checkpointer(others={"odd": Odd()})
    with pytest.raises(TypeError, match="model is a Tensor without state_dict"):
        muster.torch.Checkpointer(model=torch.zeros(1))


def test_tensors_of_a_state_are_filled_in_place():
    tensor = torch.zeros(3, dtype=torch.bfloat16)
    assert muster.TrainingState(w=tensor).size_bytes == 6
    with pytest.raises(ValueError, match="state 'w' is on cpu or not contiguous"):
        muster.TrainingState(w=torch.zeros(4, 4).T[:2])
