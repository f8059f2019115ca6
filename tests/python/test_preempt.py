"""Preemption of Python programs: one agreed save, exit code 42, and the bits of an uninterrupted
run.
"""

import os
import signal

import pytest
from conftest import World, await_that, digests

STEPS, SECONDS = 600, 0.02


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    world.run(2, "train_numpy.py", STEPS, 0, world.directory / "digests").finish()
    world.end()
    return digests(world.directory / "digests")


def resumed_once(world, launch, uninterrupted):
    launch.finish()
    assert digests(world.directory / "digests") == uninterrupted
    generations = world.client.generations("job")
    assert len(generations) == 2 and generations[1].resume_step > 0
    return generations[1].resume_step


def test_a_notice_ends_with_code_42_and_the_bits_of_an_uninterrupted_run(world, uninterrupted):
    launch = world.run(2, "train_numpy.py", STEPS, SECONDS, world.directory / "digests")
    world.await_step(20, ranks=2)
    world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    step = resumed_once(world, launch, uninterrupted)
    assert f"rank 0 begins at {step}" in launch.log(0)
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    assert "the host goes away" in world.muster("why", "--job", "job")
    (checkpoint,) = [row for row in world.client.checkpoints("job") if row.step == step]
    assert (
        checkpoint.state == "committed" and checkpoint.save_s is not None and not checkpoint.extra
    )


def test_the_exit_code_of_a_preempted_process_is_42(world):
    process = world.python("train_numpy.py", 100000, SECONDS, world.directory / "digests")
    world.await_step(20)
    world.client.notify("job", 0, text="away")
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 42, text


def test_SIGTERM_to_one_rank_saves_all(world, uninterrupted):
    launch = world.run(2, "train_numpy.py", STEPS, SECONDS, world.directory / "digests")
    nodes = world.await_step(20, ranks=2)
    os.kill(nodes[1].pid, signal.SIGTERM)
    resumed_once(world, launch, uninterrupted)


def test_SIGTERM_is_heard_under_a_handler_that_the_program_set_later(world, uninterrupted):
    launch = world.run(
        2, "train_numpy.py", STEPS, SECONDS, world.directory / "digests", "late-handler"
    )
    nodes = world.await_step(1, ranks=2)
    await_that(
        "muster's handler over the program's",
        lambda: any(
            "muster put its own back" in row.sources for row in world.nodes() if row.rank == 1
        ),
    )
    os.kill(nodes[1].pid, signal.SIGTERM)
    resumed_once(world, launch, uninterrupted)
    assert launch.log(1).count("the late handler ran") == 1


def signals_at_once(world, times):
    """SIGTERM comes in the moment in which the program sets a handler over muster's."""
    program = ("train_numpy.py", 200, SECONDS, world.directory / "digests", "signal-at-once")
    launch = world.run(2, *program, env={"SLOW_LAUNCHES": str(times)})
    launch.finish(120)
    resumed = sorted(row.resume_step for row in world.client.generations("job"))
    assert len(set(resumed)) == times + 1, resumed
    saved = [row.step for row in world.client.checkpoints("job") if row.state == "committed"]
    assert sorted(saved) == resumed[1:]
    assert launch.log(1).count("the late handler ran") == times


def test_A4_SIGTERM_in_the_moment_in_which_the_program_sets_its_handler_is_heard(world):
    signals_at_once(world, 3)


LATE = """
import os, signal, subprocess, sys
import muster

told = []
before = signal.getsignal(signal.SIGTERM)
with muster.Node(state=muster.TrainingState(), signals=(signal.SIGTERM, signal.SIGUSR1)) as node:
    for number in (signal.SIGTERM, signal.SIGUSR1):
        assert signal.signal(number, lambda number, frame: told.append(number)) == before
        signal.signal(number, signal.SIG_IGN)
        os.kill(os.getpid(), number)
        signal.signal(number, before)
    assert node.announced is None and told == []  # ignored, as the program wishes
    signal.signal(signal.SIGUSR2, lambda number, frame: told.append(number))
    os.kill(os.getpid(), signal.SIGUSR2)
    assert node.announced is None and told == [signal.SIGUSR2]  # none of muster's
signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
os.kill(os.getpid(), signal.SIGTERM)
assert told == [signal.SIGUSR2, signal.SIGTERM]  # nobody is open
if os.fork() == 0:
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(7))
    os.kill(os.getpid(), signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_what_the_program_wants_of_other_signals_and_behind_the_job_stays(world):
    program = world.directory / "late.py"
    program.write_text(LATE)
    text, _ = world.python(program).communicate(timeout=60)
    assert text.splitlines()[-1] == "7", text


def test_two_frameworks_that_fight_for_SIGTERM_take_it_from_nobody(world, uninterrupted):
    launch = world.run(
        2, "train_numpy.py", STEPS, SECONDS, world.directory / "digests", "two-handlers"
    )
    nodes = world.await_step(1, ranks=2)
    await_that("the end of the fight", lambda: "muster has SIGTERM again" in launch.log(1))
    os.kill(nodes[1].pid, signal.SIGTERM)
    resumed_once(world, launch, uninterrupted)
    assert launch.log(1).count("the handler of the second ran") == 1
    assert "the handler of the first ran" not in launch.log(1)
