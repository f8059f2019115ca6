"""The examples run as they are, by the command that their first lines print. Those that take long
enough are preempted once, and resume. That of Ray is in test_slow_ray.py.
"""
# needs: torch
# needs: torchdata
# needs: accelerate
# needs: transformers
# needs: lightning
# needs: jax
# needs: orbax
# needs: keras

import contextlib
import re

import pytest
from conftest import HERE, await_that, without_muster

import muster

PATIENCE = 240.0  # launches that each import a framework, on two loaded cores
EXAMPLES = HERE.parent.parent / "client/python/examples"

# By its file: what it tells at its end. Those of "" tell nothing.
TOLD = {
    "accelerate_loop": r"400 steps, loss [0-9.]+",
    "fsdp_dcp": r"400 steps, loss [0-9.]+",
    "hf": r"'train_loss': ",
    "jax_orbax": r"resumed \d+",
    "keras_fit": "",
    "lightning_ddp": r"`Trainer.fit` stopped: `max_epochs=5` reached.",
    "numpy_sgd": r"400 steps, weights \w+",
    "torch_ddp": r"400 steps, weights \w+",
}
LONG = {"numpy_sgd", "torch_ddp"}  # others may be over before the notice is there


@pytest.mark.parametrize("example", sorted(TOLD))
def test_the_example_finishes_and_resumes_where_it_was_preempted(world, monkeypatch, example):
    path = EXAMPLES / f"{example}.py"
    assert f"muster run -n 2 -- python {example}.py" in path.read_text().partition("\n\n")[0]
    monkeypatch.chdir(world.directory)
    launch = world.run(2, path, options=("--max-failures", "0"))

    def trains():
        done = [row.done for row in world.nodes()]
        return launch.process.poll() is not None or (len(done) == 2 and min(done) >= 1)

    await_that("steps of both ranks", trains, PATIENCE)
    with contextlib.suppress(muster.NotFoundError):  # it is over
        world.client.notify("job", 1)
    launch.finish(PATIENCE)
    log = launch.logs()
    assert re.search(TOLD[example], log), log
    *before, last = sorted(world.client.generations("job"), key=lambda row: row.generation)
    print(f"{example}: resumed at {last.resume_step}")
    assert {row.exit_code for row in world.client.nodes("job", last.generation)} == {0}, log
    assert len(before) == 1 or (not before and example not in LONG), log
    for row in before:
        assert {node.exit_code for node in world.client.nodes("job", row.generation)} == {42}, log
        assert last.resume_step >= 1, log


# By its file: the framework that has its weights, and so many ranks of it as it was before muster.
# Keras' own back-up has one folder a process.
WEIGHTS = {
    "accelerate_loop": ("torch", 2),
    "fsdp_dcp": ("torch", 2),
    "hf": ("torch", 2),
    "jax_orbax": ("jax", 2),
    "keras_fit": ("keras", 1),
    "lightning_ddp": ("torch", 2),
}
OTHER_BITS = {"accelerate_loop"}  # muster gives its loader random numbers of its own


@pytest.mark.parametrize("example", sorted(WEIGHTS))
def test_A2_the_example_ends_with_the_bits_of_what_it_was_before_muster(
    world, monkeypatch, tmp_path, example
):
    framework, ranks = WEIGHTS[example]
    plain = tmp_path / f"{example}.py"
    source = EXAMPLES / plain.name
    plain.write_text(source.read_text() if example in OTHER_BITS else without_muster(source)[0])

    nodes = world.client.nodes

    def ends(count, how, program):
        (tmp_path / how).mkdir()
        monkeypatch.chdir(tmp_path / how)  # it saves here
        arguments = ("--job", how, "--max-failures", "0")
        place = {"MUSTER_CHECKPOINT_DIR": str(tmp_path / how / "checkpoints")}
        launch = world.run(count, "bits.py", framework, how, program, options=arguments, env=place)
        if how == "noticed":
            await_that("two steps", lambda: any(row.done > 1 for row in nodes(how)), PATIENCE)
            world.client.notify(how, 1)
        launch.finish(PATIENCE)
        return [re.search(r"\d+ weights: \w+", launch.log(rank)).group(0) for rank in range(count)]

    before, after = ends(ranks, "undisturbed", plain), ends(2, "noticed", source)
    assert after == before * (2 // ranks)
    first, second = sorted(world.client.generations("noticed"), key=lambda row: row.generation)
    assert {row.exit_code for row in nodes("noticed", first.generation)} == {42}
    assert second.resume_step >= 1


def test_every_example_is_compared_with_what_it_was_before_muster():
    elsewhere = {"numpy_sgd", "torch_ddp"}  # test_readme.py, test_slow_torch.py
    assert {*WEIGHTS, *elsewhere} == set(TOLD)


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*TOLD, "ray_train"}
