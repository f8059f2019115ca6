"""JAX with Orbax on 1 to 4 processes, preempted and resumed."""
# needs: jax
# needs: orbax.checkpoint

import json
import os
import signal
import subprocess
import time

import pytest
from conftest import World, await_that, digests
from test_node import line_with

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
