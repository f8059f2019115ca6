"""JAX with Orbax on 1 to 4 processes, preempted and resumed."""
# needs: jax
# needs: orbax.checkpoint

import json
import os
import re
import signal
import subprocess
import time

import jax
import numpy
import orbax.checkpoint as ocp
import pytest
from conftest import World, await_that, digests
from test_node import line_with

import muster.orbax

PATIENCE = 240.0  # three launches that each import JAX, on two loaded cores
STEPS = 120


def train(world, ranks, seconds, *, steps=STEPS, failures=0, **options):
    program = ("train_orbax.py", world.directory, steps, seconds, json.dumps(options))
    return world.run(ranks, *program, options=("--max-failures", str(failures)))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """What each of so many processes holds at the end."""
    found = {}

    def of(ranks):
        if ranks not in found:
            world = World(tmp_path_factory.mktemp(f"of-{ranks}"))
            train(world, ranks, 0).finish(PATIENCE)
            world.end()
            found[ranks] = digests(world.directory / "digests")
            assert len(set(found[ranks].values())) == ranks  # each process holds its own part
        return found[ranks]

    return of


def told(launch, word):
    """What each launch says behind this word; all ranks say the same."""
    found = [
        [line.split()[1] for line in path.read_text().splitlines() if line.startswith(word + " ")]
        for path in sorted(launch.output.glob("*.log"))
    ]
    assert all(lines == found[0] for lines in found), launch.logs()
    return found[0]


def committed(world):
    rows = world.client.checkpoints("job")
    return sorted(row.step - 1 for row in rows if row.state == "committed")


def written(world):
    """The steps that Orbax has."""
    names = [path.name for path in (world.directory / "orbax").iterdir()]
    return sorted(int(name) for name in names if name.isdigit())


def test_two_preemptions_in_a_row_and_the_bits_of_an_uninterrupted_run(world, uninterrupted):
    launch = train(world, 2, 0.1, slow_launches=2)
    world.await_step(10, ranks=2, patience=PATIENCE)
    world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    await_that("the second launch", lambda: len(world.client.generations("job")) > 1, PATIENCE)
    nodes = world.await_step(60, ranks=2, patience=PATIENCE)
    os.kill(nodes[1].pid, signal.SIGTERM)
    launch.finish(PATIENCE)
    launch.ended(2, launches=3)  # A9
    assert digests(world.directory / "digests") == uninterrupted(2)
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    first, *steps = map(str, told(launch, "resumed"))
    assert first == "None" and 10 <= int(steps[0]) < 50 < int(steps[1]) < STEPS
    assert committed(world) == sorted({0, 50, 100, *map(int, steps)}) == written(world)


def test_a_signal_to_all_beside_JAXs_own_preemption_service(world, uninterrupted):
    launch = train(world, 2, 0.1, max_to_keep=1, save_interval_steps=20, own_initialize=True)
    for node in world.await_step(30, ranks=2, patience=PATIENCE):
        os.kill(node.pid, signal.SIGTERM)
    launch.finish(PATIENCE)
    assert digests(world.directory / "digests") == uninterrupted(2)
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    assert told(launch, "resumed")[0] == "None" and 30 <= int(told(launch, "resumed")[1]) < STEPS
    assert committed(world) == [100] == written(world)


def test_a_signal_to_one_of_four(world, uninterrupted):
    launch = train(world, 4, 0.1)
    os.kill(world.await_step(10, ranks=4, patience=PATIENCE)[3].pid, signal.SIGTERM)
    launch.finish(PATIENCE)
    assert digests(world.directory / "digests") == uninterrupted(4)
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    assert len(told(launch, "resumed")) == 2


def test_a_step_that_orbax_has_and_not_all_ranks_committed_is_not_resumed(world, uninterrupted):
    launch = train(world, 2, 0, failures=1, dies_at=50)
    launch.finish(PATIENCE)
    assert told(launch, "resumed") == ["None", "0"]
    assert "orbax/50 was not committed by all ranks" in launch.log(0)
    assert digests(world.directory / "digests") == uninterrupted(2)
    assert committed(world) == [0, 50, 100] == written(world)


def test_A6_ctrl_c_ends_a_save_within_a_second_while_the_broker_sleeps(world):
    process = world.python("wait_adapter.py", "orbax", world.directory / "orbax", stdin=subprocess.PIPE)
    line_with(process, "sleeps from here on")
    world.broker.send_signal(signal.SIGSTOP)
    try:
        process.stdin.write("go on\n")
        process.stdin.flush()
        line_with(process, "blocks")
        time.sleep(1.0)  # into the call: from outside nobody sees it
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        told = line_with(process, "KeyboardInterrupt after")
        took = time.monotonic() - began
    finally:
        world.broker.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert took < 1.0 and "muster: " in told and process.returncode == 130, (took, told)
    assert committed(world) == [0]


def test_A6_ctrl_c_ends_the_wait_for_the_other_processes_at_the_beginning(world):
    program = ("wait_agree.py", world.directory / "orbax")
    world.run(2, *program).finish(PATIENCE)
    launch = world.run(2, *program)
    await_that("rank 0 to sleep", lambda: "rank 0 sleeps" in launch.log(0), PATIENCE)
    time.sleep(1.0)  # until rank 1 waits: from outside nobody sees it
    began = time.monotonic()
    os.kill(next(row.pid for row in world.nodes() if row.rank == 1), signal.SIGINT)
    await_that("Ctrl-C to end it", lambda: "KeyboardInterrupt at" in launch.log(1), 30)
    took = float(launch.log(1).split("KeyboardInterrupt at ")[1].split()[0]) - began
    assert took < 1.0, took


@pytest.mark.parametrize("number", range(3))
def test_A7_why_names_the_killed_process_and_not_the_one_whose_collective_broke(world, number):
    launch = train(world, 2, 0.02, killed_at=20)
    assert launch.end(PATIENCE) != 0
    first = world.muster("why", "--job", "job").splitlines()[0]
    assert "rank 1" in first and "rank 0" not in first, first
    assert re.search("Gloo .* failed", launch.log(0))


def test_A8_what_two_processes_saved_resumes_on_one_and_three(world):
    launch = train(world, 2, 0, steps=51)
    launch.finish(PATIENCE)
    saved = told(launch, "ended")  # step 50 is saved, and the last one
    for ranks, step, steps in ((1, "50", 101), (3, "100", STEPS)):
        launch = train(world, ranks, 0, steps=steps)
        launch.finish(PATIENCE)
        assert told(launch, "resumed") == [step]
        assert told(launch, "restored") == saved
        saved = told(launch, "ended")
    assert committed(world) == [0, 50, 100] == written(world)


SAVED = {
    "w": numpy.arange(6, dtype="float32").reshape(3, 2),
    "deep": [jax.numpy.ones(3), 5],
    "keys": jax.random.split(jax.random.key(0), 4),
}
Standard, PyTree = ocp.args.StandardRestore, ocp.args.PyTreeRestore


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Where SAVED is, by whether it is the item "state" or the only one."""
    paths = {}
    for named in (False, True):
        paths[named] = tmp_path_factory.mktemp("saved")
        with ocp.CheckpointManager(paths[named]) as mngr:
            args = ocp.args.StandardSave(SAVED)
            assert mngr.save(0, args=ocp.args.Composite(state=args) if named else args)
    return paths


def restore(path, args=None, step=0):
    options = ocp.CheckpointManagerOptions(read_only=True)
    with muster.orbax.CheckpointManager(path, options=options) as mngr:
        return mngr.restore(step, args=args)


def other(**leaves):
    return {**SAVED, **leaves}


def abstract(tree):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


def of_shape(*shape):
    return other(w=numpy.zeros(shape, "float32"))


@pytest.mark.parametrize(
    ("target", "name", "was", "is_now"),
    [
        (of_shape(4, 2), "w", "shape (3, 2)", "shape (4, 2)"),
        (of_shape(2, 2), "w", "shape (3, 2)", "shape (2, 2)"),
        (of_shape(6), "w", "shape (3, 2)", "shape (6,)"),
        (other(w=jax.numpy.ones((3, 4))), "w", "(3, 2)", "(3, 4)"),
        (other(w=abstract(jax.numpy.ones((3, 4)))), "w", "(3, 2)", "(3, 4)"),
        (other(deep=[numpy.zeros(4, "float32"), 5]), "deep.0", "(3,)", "(4,)"),
        (other(deep=[SAVED["deep"][0], numpy.zeros(2)]), "deep.1", "shape ()", "(2,)"),
        (other(keys=SAVED["keys"][:2]), "keys", "(4, 2)", "(2, 2)"),
    ],
)
@pytest.mark.parametrize("how", [Standard, PyTree, "named"])
def test_a_target_of_another_shape_is_named(saved, how, target, name, was, is_now):
    args = (Standard if how == "named" else how)(target)
    if how == "named":
        name, args = f"state.{name}", ocp.args.Composite(state=args)
    with pytest.raises(muster.RestoreError, match="strict=False") as caught:
        restore(saved[how == "named"], args)
    text = str(caught.value)
    assert f"checkpoint: {name} was saved with " in text and "start another job" in text, text
    before, after = text.split(", and is to be restored with ")
    assert was in before and is_now in after, text


def test_a_target_of_another_type_is_converted_as_orbax_does_it(saved):
    target = other(w=numpy.zeros((3, 2), "float64"), deep=[jax.numpy.ones(3, "bfloat16"), 5])
    restored = restore(saved[False], Standard(target))
    assert (restored["w"].dtype, restored["deep"][0].dtype) == ("float64", "bfloat16")
    assert numpy.array_equal(restored["w"], SAVED["w"])


@pytest.mark.parametrize("of", [Standard, PyTree])
def test_a_target_that_fits_or_says_nothing_is_restored(saved, of):
    assert set(restore(saved[False], of(), step=None)) == set(SAVED)
    for target in (SAVED, other(deep=[SAVED["deep"][0], jax.numpy.int32(1)])):
        restored = restore(saved[False], of(target))
        assert numpy.array_equal(restored["w"], SAVED["w"]) and restored["deep"][1] == 5
        assert jax.numpy.array_equal(restored["deep"][0], SAVED["deep"][0])


def test_a_number_may_stand_for_an_array(saved):
    how = ocp.checkpoint_utils.construct_restore_args(SAVED)
    assert restore(saved[False], PyTree(other(w=0), how))["w"].shape == (3, 2)


def test_strict_false_takes_what_orbax_makes_of_it(saved):
    target = other(w=jax.numpy.ones((4, 2)))
    restored = restore(saved[False], Standard(target, strict=False))
    assert restored["w"].shape == (4, 2)
    how = ocp.checkpoint_utils.construct_restore_args(target)
    how["w"].strict = False
    assert restore(saved[False], PyTree(target, how))["w"].shape == (4, 2)


def test_another_structure_is_said_by_orbax(saved):
    for target in ({"w": SAVED["w"]}, other(more=SAVED["w"])):
        with pytest.raises(ValueError) as caught:
            restore(saved[False], Standard(target))
        assert "the state does not fit the checkpoint" in caught.value.__notes__[0]
