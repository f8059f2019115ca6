"""Keras on two ranks, preempted and resumed."""
# needs: keras
# needs: jax

import json
import os
import signal

import numpy
import pytest
from conftest import World, await_that, digests

os.environ["KERAS_BACKEND"] = "jax"
import keras

import muster.keras

PATIENCE = 240.0  # two launches that each import Keras, on two loaded cores


def train(world, seconds, **options):
    program = ("train_keras.py", world.directory, seconds, json.dumps(options))
    return world.run(2, *program, options=("--max-failures", "0"))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    train(world, 0).finish(PATIENCE)
    world.end()
    return digests(world.directory / "digests")


@pytest.mark.parametrize("how", ["notice", "one rank", "all"])
def test_a_fit_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(
    world, uninterrupted, how
):
    launch = train(world, 0.1)
    nodes = world.await_step(60, ranks=2, patience=PATIENCE)  # the second epoch of five
    if how == "notice":
        world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    else:
        for node in nodes[1:] if how == "one rank" else nodes:
            os.kill(node.pid, signal.SIGTERM)
    launch.finish(PATIENCE)
    launch.ended(2, launches=2)  # A9
    assert digests(world.directory / "digests") == uninterrupted
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    assert "first epoch 1" in launch.log(0) and "first epoch 1" in launch.log(1)
    assert len(set(uninterrupted.values())) == 2  # each rank has its own data


def test_a_killed_fit_goes_on_behind_a_batch_of_save_freq(world, uninterrupted):
    launch = train(world, 0.1, save_freq=15, double_checkpoint=True)
    await_that("a save of the second epoch", lambda: len(saves(world)) == 2 and saves(world)[1] > 41, PATIENCE)
    launch.kill()
    launch = train(world, 0)
    launch.finish(PATIENCE)
    assert "first epoch 1" in launch.log(0) and "first epoch 1" in launch.log(1)
    assert digests(world.directory / "digests") == uninterrupted


def saves(world):
    rows = world.client.checkpoints("job")
    return sorted(row.step for row in rows if row.state == "committed")


def test_a_model_of_another_width_is_named(world, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("MUSTER_BROKER", "MUSTER_CHECKPOINT_DIR"):
        monkeypatch.setenv(name, world.env[name])
    for name, value in (("JOB", "job"), ("RANK", "0"), ("WORLD_SIZE", "1")):
        monkeypatch.setenv(f"MUSTER_{name}", value)

    def fit(width):
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(width)])
        model.compile("sgd", "mse")
        data = numpy.zeros((8, 4)), numpy.zeros((8, width))
        backup = muster.keras.BackupAndRestore("backup", save_freq=1)
        model.fit(*data, batch_size=2, epochs=1, verbose=0, callbacks=[backup])

    fit(2)
    with pytest.raises(muster.RestoreError, match="the model does not fit the checkpoint"):
        fit(3)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delete_checkpoint": True}, "delete_checkpoint is .*; leave it out, and start another"),
        ({"save_freq": "batch"}, "save_freq is 'batch'; give 'epoch', batches, or False"),
        ({"backup_dir": ""}, "backup_dir is empty; give a directory"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options, text):
    with pytest.raises(muster.ArgumentError, match=text):
        muster.keras.BackupAndRestore(**{"backup_dir": "backup", **options})
