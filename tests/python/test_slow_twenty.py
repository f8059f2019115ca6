"""A4 with plain NumPy: SIGTERM in each of its ways, 20 times in a row. A9: exits at random moments."""

import os
import signal

import pytest
from conftest import World, await_that, digests

STEPS, SECONDS, TIMES = 2000, 0.02, 20


def train(world, *words, **options):
    program = ("train_numpy.py", STEPS, SECONDS, world.directory / "digests", *words)
    return world.run(2, *program, env={"SLOW_LAUNCHES": str(TIMES)}, **options)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    world.run(2, "train_numpy.py", STEPS, 0, world.directory / "digests").finish()
    world.end()
    return digests(world.directory / "digests")


def to_one(nodes, number):
    os.kill(nodes[number % len(nodes)].pid, signal.SIGTERM)


def to_all(nodes, number):
    for node in nodes:
        os.kill(node.pid, signal.SIGTERM)


def to_the_groups(nodes, number):
    for node in nodes:
        os.killpg(os.getpgid(node.pid), signal.SIGTERM)


@pytest.mark.parametrize("how", [to_one, to_all, to_the_groups])
def test_A4_SIGTERM_20_times_saves_20_agreed_checkpoints(world, uninterrupted, how):
    launch = train(world, options=("--max-failures", "0"))
    number = iter(range(TIMES))
    world.preempt_again_and_again(launch, 2, lambda nodes: how(nodes, next(number)), TIMES)
    assert digests(world.directory / "digests") == uninterrupted


def test_A4_SIGTERM_under_a_later_handler_20_times(world, uninterrupted):
    launch = train(world, "late-handler", options=("--max-failures", "0"))

    def strike(nodes):
        def put_back():
            return [
                row.pid
                for row in world.nodes()
                if row.rank == 1 and "muster put its own back" in row.sources
            ]

        (pid,) = await_that("muster's handler over the program's", put_back)
        os.kill(pid, signal.SIGTERM)

    world.preempt_again_and_again(launch, 2, strike, TIMES)
    assert digests(world.directory / "digests") == uninterrupted


def test_A4_SIGTERM_in_the_moment_in_which_the_program_sets_its_handler_20_times(world):
    from test_preempt import signals_at_once

    signals_at_once(world, TIMES)


def test_A9_200_exits_at_random_moments_neither_crash_nor_hang(world):
    from test_node import exits_at_random_moments

    exits_at_random_moments(world, 200)
