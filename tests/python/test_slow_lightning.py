"""Lightning on two ranks, preempted and resumed."""
# needs: lightning
# needs: torchdata

import os
import signal

import lightning
import pytest
import torch
from conftest import World, await_that, digests

import muster.lightning

PATIENCE = 180.0  # two launches that each import PyTorch, on two loaded cores


def train(world, seconds, kind="one", *steps):
    program = ("train_lightning.py", world.directory, seconds, kind, *steps)
    return world.run(2, *program, options=("--max-failures", "0"))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    found = {}
    for kind in ("one", "two", "validated"):
        world = World(tmp_path_factory.mktemp(kind))
        train(world, 0, kind).finish(PATIENCE)
        world.end()
        found[kind] = digests(world.directory / "digests")
    return found


@pytest.mark.parametrize(
    ("how", "kind"),
    [("notice", "two"), ("one rank", "one"), ("groups", "one"), ("groups", "validated")],
)
def test_a_trainer_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(
    world, uninterrupted, how, kind
):
    launch = train(world, 0.1, kind)
    nodes = world.await_step(50, ranks=2)  # the second epoch of five
    if kind == "validated":  # those workers are still there
        assert all("validated by 2" in launch.log(rank) for rank in range(2))
    if how == "notice":
        world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    elif how == "one rank":
        os.kill(nodes[1].pid, signal.SIGTERM)
    else:
        for node in nodes:
            os.killpg(os.getpgid(node.pid), signal.SIGTERM)
    launch.finish(PATIENCE)
    launch.ended(2, launches=2)  # A9
    assert digests(world.directory / "digests") == uninterrupted[kind]
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    (checkpoint,) = world.client.checkpoints("job")
    for rank in range(2):
        assert f"resumed {checkpoint.path}/" in launch.log(rank)
    own = [text.split() for text in uninterrupted[kind].values()]
    assert own[0][0] == own[1][0] and own[0][1] != own[1][1]  # weights alike, random numbers not
    assert own[0][2] == {"two": "400"}.get(kind, "200")


def test_a_killed_trainer_goes_on_at_the_end_of_an_epoch(world, uninterrupted):
    launch = train(world, 0.1, "one", 79)
    world.await_step(85, ranks=2)
    await_that("the checkpoint", lambda: world.client.checkpoints("job"))
    launch.kill()
    launch = train(world, 0, "one")
    launch.finish(PATIENCE)
    assert "checkpoints/79/" in launch.log(0) and "checkpoints/79/" in launch.log(1)
    assert digests(world.directory / "digests") == uninterrupted["one"]


def test_a_trainer_that_has_no_step_left_leaves_the_job_as_finished(world):
    train(world, 0, "one", 199).finish(PATIENCE)
    train(world, 0, "one").finish(PATIENCE)
    (again, first) = sorted(world.client.generations("job"), key=lambda row: -row.generation)
    assert (first.resume_step, again.resume_step) == (0, 200)
    assert {row.exit_code for row in world.client.nodes("job", again.generation)} == {0}


def test_SLURMs_requeue_is_refused_by_name():
    class Environment:
        auto_requeue = True

    class Trainer:
        strategy = type("Strategy", (), {"cluster_environment": Environment()})

    with pytest.raises(muster.ArgumentError, match=r"beside muster; give .*auto_requeue=False"):
        muster.lightning.Muster(directory="x").setup(Trainer(), None, "fit")


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class MakesAFile:
    """Its pickle makes the file "made" when it is loaded."""

    def __reduce__(self):
        return os.mknod, ("made",)


class Loader(torch.utils.data.DataLoader):
    def state_dict(self):
        return {"at": MakesAFile()}

    def load_state_dict(self, state):
        pass


def test_a_position_that_only_a_pickle_holds_is_neither_saved_nor_restored(
    alone, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}

    def fit():
        cb = muster.lightning.Muster(save=[muster.SaveEverySteps(1)])
        trainer = lightning.Trainer(accelerator="cpu", max_steps=3, callbacks=[cb], **quiet)
        trainer.fit(Net(), Loader(torch.ones(64, 4), batch_size=8), ckpt_path=cb.ckpt_path)

    says = "data loader.*'at'.* is a .*MakesAFile, which only a pickle .*; make it tensors"
    with pytest.raises(muster.ArgumentTypeError, match=says) as caught:
        fit()
    assert "allow_pickle" not in caught.value.text  # which this callback has not
    monkeypatch.setattr(muster.lightning, "_refuse_pickles", lambda *given, **named: None)
    fit()
    with pytest.raises(muster.RestoreError, match=r"rank\.pt holds values .*; restore an older"):
        fit()
    assert not os.path.exists("made")
