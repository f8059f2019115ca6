"""A Hugging Face Trainer on two ranks, preempted and resumed."""
# needs: transformers
# needs: accelerate

import json
import os
import shutil
import signal

import pytest
import transformers
from conftest import World, await_that, digests
from transformers.trainer_utils import get_last_checkpoint

import muster.transformers

PATIENCE = 180.0  # two launches that each import PyTorch, on two loaded cores


def train(world, seconds, **arguments):
    arguments = {"save_steps": 80, "logging_steps": 20, **arguments}
    options = ("--max-failures", "0")
    program = ("train_hf.py", world.directory, seconds, json.dumps(arguments))
    return world.run(2, *program, options=options)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    train(world, 0).finish(PATIENCE)
    world.end()
    return digests(world.directory / "digests")


def resumed_once(world, launch, uninterrupted):
    """Returns the step at which the job was preempted."""
    launch.finish(PATIENCE)
    launch.ended(2, launches=2)  # A9
    assert digests(world.directory / "digests") == uninterrupted
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    (step,) = {row.resume_step - 1 for row in world.client.generations("job")[1:]}
    for rank in range(2):
        assert f"resumed {world.directory}/trainer/checkpoint-{step}\n" in launch.log(rank)
    return step


@pytest.mark.parametrize("how", ["notice", "signal under a late handler"])
def test_a_trainer_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(
    world, uninterrupted, how
):
    launch = train(world, 0.1, late_handler=how != "notice")
    nodes = world.await_step(10, ranks=2)
    if how == "notice":
        world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    else:
        await_that(
            "muster's handler over the program's",
            lambda: all("muster put its own back" in row.sources for row in world.nodes()),
        )
        os.kill(nodes[1].pid, signal.SIGTERM)
    step = resumed_once(world, launch, uninterrupted)
    assert step % 80 != 0
    assert launch.log(1).count("the late handler ran") == (how != "notice")
    committed = [row.step - 1 for row in world.client.checkpoints("job")]
    assert sorted(committed) == sorted({step, 80, 160, 200})
    own = [text.split() for text in uninterrupted.values()]
    assert own[0][0] == own[1][0] and own[0][1] != own[1][1]  # weights alike, random numbers not


def test_a_group_signal_leaves_the_dataloaders_workers_alive(world, uninterrupted):
    launch = train(world, 0.1, dataloader_num_workers=2)
    nodes = world.await_step(10, ranks=2)
    for node in nodes:
        os.killpg(os.getpgid(node.pid), signal.SIGTERM)
    resumed_once(world, launch, uninterrupted)
    assert "DataLoader worker" not in launch.logs()


def test_a_torn_checkpoint_is_never_resumed(world, uninterrupted):
    launch = train(world, 0.1, save_steps=20)
    world.await_step(50, ranks=2)
    await_that("two checkpoints", lambda: len(world.client.checkpoints("job")) >= 2)
    launch.kill()
    trainer = world.directory / "trainer"
    torn = trainer / "checkpoint-1000"  # as a killed save leaves it
    torn.mkdir()
    (torn / "checkpoint-is-incomplete.txt").touch()
    assert get_last_checkpoint(str(trainer)) == str(torn)
    launch = train(world, 0, save_steps=20)
    launch.finish(PATIENCE)
    assert digests(world.directory / "digests") == uninterrupted
    assert "checkpoint-1000" not in launch.logs() and "/trainer/checkpoint-" in launch.log(0)


def test_a_checkpoint_that_was_written_again_or_is_gone_is_refused(world):
    train(world, 0, max_steps=40, save_steps=20).finish(PATIENCE)
    newest = world.directory / "trainer/checkpoint-40"
    seal = newest / "muster.json"
    (text := json.loads(seal.read_text()))["generation"] += 1
    seal.write_text(json.dumps(text))
    launch = train(world, 0, max_steps=40)
    assert launch.end(PATIENCE) != 0  # by the rank that restores first
    assert f"{newest} was written again by a save that was not committed" in launch.logs()
    shutil.rmtree(newest)
    launch = train(world, 0, max_steps=40)
    assert launch.end(PATIENCE) != 0
    assert f"{newest}, which muster's checkpoint in" in launch.logs()


def test_epochs_and_evaluations_are_saved_and_a_limit_counts_committed_ones(world):
    arguments = {"save_strategy": "epoch", "eval_strategy": "epoch", "save_total_limit": 2}
    train(world, 0, max_steps=160, **arguments).finish(PATIENCE)
    rows = sorted(world.client.checkpoints("job"), key=lambda row: row.step)
    assert [row.step - 1 for row in rows] == [40, 80, 120, 160]
    assert [row.state == "committed" for row in rows] == [False, False, True, True]
    assert "2 checkpoints of job job" in (verified := world.muster("verify", "--job", "job"))
    assert "0 damaged" in verified
    kept = {path.name for path in (world.directory / "trainer").glob("checkpoint-*")}
    assert kept == {"checkpoint-120", "checkpoint-160"}
    assert all("eval_loss" in row.metrics for row in rows)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"enable_jit_checkpoint": True}, "deadlocks with the others; leave it out"),
        ({"save_strategy": "best", "eval_strategy": "epoch"}, "; give save_strategy=.*load_best"),
        ({"save_only_model": True}, "nothing can be resumed; leave it out"),
    ],
)
def test_what_cannot_go_together_is_refused_by_name(tmp_path, arguments, text):
    args = transformers.TrainingArguments(
        str(tmp_path), use_cpu=True, metric_for_best_model="loss", **arguments
    )
    with pytest.raises(muster.ArgumentError, match=text):
        muster.transformers.Muster().on_init_end(args, None, None)
    with pytest.raises(muster.UsageError, match="no Trainer yet; make Trainer"):
        muster.transformers.Muster().checkpoint  # noqa: B018


def test_a_version_that_nobody_tested_is_named():
    with pytest.warns(RuntimeWarning, match=r"with transformers 5.23, and this is .* 6.0.1"):
        muster._framework.check_version("muster.transformers", "transformers", "6.0.1")
