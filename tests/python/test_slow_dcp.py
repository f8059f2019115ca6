"""FSDP2 and torch.distributed.checkpoint: preempted, killed, and resumed by other numbers of ranks.
PyTorch is a download of 3 GB: slow.
"""
# needs: torch
# needs: torchdata

import random
import re
import time

import pytest
import torch
from conftest import World, await_that, digests
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

import muster.dcp

PATIENCE = 180.0  # launches that each import PyTorch, on two loaded cores
STEPS = 120


def train(world, ranks, seconds, every, *words):
    program = ("train_dcp.py", STEPS, seconds, world.directory / "digests", every, *words)
    return world.run(ranks, *program, options=("--max-failures", "0"))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    train(world, 2, 0, 0).finish(PATIENCE)
    world.end()
    return digests(world.directory / "digests")


def committed(world):
    return {row.step for row in world.client.checkpoints("job") if row.state == "committed"}


def saved(launch):
    """The digest of the weights at each step that this launch saved at."""
    return {int(at): told for at, told in re.findall(r"saves (\d+) with (\w+)", launch.log(0))}


def resumed(launch):
    """The step and the digest at which each rank went on."""
    found = set(re.findall(r"resumed True at (\d+) with (\w+)", launch.logs()))
    assert len(found) == 1, launch.logs()
    ((at, told),) = found
    return int(at), told


def killed_behind(world, launch, step):
    """Killed once a checkpoint behind `step` is committed."""
    await_that(
        f"a checkpoint behind step {step}",
        lambda: any(one > step for one in committed(world)),
        PATIENCE,
    )
    launch.kill()
    return launch


def test_fsdp2_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(world, uninterrupted):
    launch = train(world, 2, 0.1, 0)
    await_that("step 10", lambda: [r.done for r in world.nodes() if r.done >= 10], PATIENCE)
    world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    launch.finish(PATIENCE)
    launch.ended(2, launches=2)  # A9
    assert digests(world.directory / "digests") == uninterrupted
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    assert resumed(launch)[0] in committed(world)
    own = [text.split() for text in uninterrupted.values()]
    assert own[0][0] == own[1][0] and own[0][1] != own[1][1]  # weights alike, random numbers not
    assert own[0][2] == str(STEPS)


def test_A8_a_checkpoint_of_2_ranks_resumes_on_3_and_on_1(world, tmp_path):
    two = killed_behind(world, train(world, 2, 0.05, 10, "whole"), 0)
    three = killed_behind(world, train(world, 3, 0.05, 10, "whole"), max(committed(world)))
    one = train(world, 1, 0, 0, "whole")
    one.finish(PATIENCE)
    for later, earlier in ((three, two), (one, three)):
        step, told = resumed(later)
        assert saved(earlier)[step] == told
    assert resumed(one)[0] > resumed(three)[0]
    (end,) = digests(world.directory / "digests").values()
    assert end.split()[2] == str(STEPS)
    assert "rank 2 was not there when the checkpoint" in three.log(2)

    # DCP's own tools read rank 0's part, which names the others.
    (newest,) = (row for row in world.client.checkpoints("job") if row.step == resumed(one)[0])
    part = next((world.directory / "checkpoints" / newest.path).glob("shard-00000-*"))
    dcp_to_torch_save(part, tmp_path / "whole.pt")
    whole = torch.load(tmp_path / "whole.pt", weights_only=True)
    assert whole["model"]["0.weight"].shape == (33, 16)


def test_another_number_of_ranks_is_refused_where_nobody_shares_the_data_out(world):
    killed_behind(world, train(world, 2, 0.05, 10), 0)
    launch = train(world, 3, 0, 0)
    assert launch.end(PATIENCE) != 0
    assert "2 ranks saved the checkpoint" in launch.log(0)
    assert "give Checkpointer(resize=...)" in launch.log(0)


def test_a_kill_at_any_moment_leaves_no_torn_checkpoint_that_resumes(world, uninterrupted):
    chance = random.Random(19)
    for _ in range(5):
        before = max(committed(world), default=0)
        if before >= STEPS - 10:
            break
        launch = train(world, 2, 0.01, 2)
        await_that(
            "a newer checkpoint", lambda last=before: max(committed(world), default=0) > last, PATIENCE
        )
        time.sleep(chance.uniform(0, 0.3))  # the moment is the test's input, not a wait
        launch.kill()
        assert launch.process.returncode != 0
    launch = train(world, 2, 0, 0)
    launch.finish(PATIENCE)
    assert resumed(launch)[0] == max(committed(world))
    assert digests(world.directory / "digests") == uninterrupted


def test_the_example_runs(world):
    launch = world.run(2, "../../../client/python/examples/fsdp_dcp.py", 100)
    launch.finish(PATIENCE)
    assert "100 steps, loss " in launch.log(0)


def test_what_is_no_module_is_refused_by_name():
    says = "model is a Tensor; give the torch.nn.Module"
    with pytest.raises(muster.ArgumentTypeError, match=says):
        muster.dcp.Checkpointer(model=torch.zeros(1))
