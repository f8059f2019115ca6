"""The recipe for Ray Train: Ray starts the ranks again behind a preemption."""
# needs: ray
# needs: torch

import re
import subprocess
import sys

import pytest
from conftest import HERE, World, await_that

PATIENCE = 240.0  # a Ray cluster and two groups of workers, on two loaded cores
STEPS, SECONDS = 200, 0.1


def train(world, seconds):
    ray = {"RAY_USAGE_STATS_ENABLED": "0", "HOME": str(world.directory)}  # it writes a token there
    env = {**world.env, **ray, "MUSTER_JOB": "job"}
    log = (world.directory / "ray.log").open("w")
    example = HERE.parent.parent / "client/python/examples/ray_train.py"
    command = [sys.executable, str(example), str(STEPS), str(seconds)]
    return subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=world.directory)


def weights(world, process):
    try:
        code = process.wait(PATIENCE)
    finally:
        process.kill()
    log = (world.directory / "ray.log").read_text()
    assert code == 0, log
    (found,) = set(re.findall(rf"{STEPS} steps, weights (\w+)", log))
    return found


@pytest.fixture
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    found = weights(world, train(world, 0))
    world.end()
    return found


def test_ray_starts_a_preempted_job_again_and_it_ends_with_the_same_bits(world, uninterrupted):
    process = train(world, SECONDS)
    await_that(
        "step 10 of both ranks",
        lambda: [row.done >= 10 for row in world.nodes()] == [True, True],
        PATIENCE,
    )
    world.client.notify("job", 1, text="the host goes away")
    assert weights(world, process) == uninterrupted
    (first, second) = sorted(world.client.generations("job"), key=lambda row: row.generation)
    assert second.resume_step > 10
    assert {row.exit_code for row in world.client.nodes("job", first.generation)} == {42}
    assert {row.exit_code for row in world.client.nodes("job", second.generation)} == {0}
