"""A3: a save of 200 s that reports nothing commits at its first attempt, and plans count with it. A
failed one is not made up for.
"""

import re

import pytest
from conftest import await_that

SECONDS = 200


@pytest.mark.parametrize("how", ["callable", "two-phase"])
def test_A3_a_save_of_200_s_that_reports_no_byte_commits_at_once(world, how):
    launch = world.run(2, "train_slow_save.py", SECONDS, how, world.directory)
    world.await_step(3, 2)
    world.muster("save", "--job", "job")
    (row,) = await_that(
        "the checkpoint",
        lambda: [
            row
            for row in world.client.checkpoints("job")
            if row.state == "committed" and row.in_place
        ],
        SECONDS + 60,
    )
    assert [each.state for each in world.client.rounds("job")] == ["committed"]
    assert row.save_s >= SECONDS
    path = world.directory / "checkpoints" / row.path
    if how == "callable":
        assert sum(file.stat().st_size for file in path.rglob("state")) == 2 * 1000
    else:
        assert str(world.directory / "own-") in row.custom and '"bytes":1000' in row.custom.replace(
            " ", ""
        )
    listed = world.muster("checkpoints", "--job", "job")
    assert row.path in listed and re.search(" committed +operator .* 3 min ", listed), listed
    if how == "two-phase":
        assert re.search(rf"^ +{row.checkpoint}  1.0 kB  {world.directory}/own-\d+$", listed, re.M)

    world.client.notify("job", 0, left=600)
    await_that("the plan", lambda: "save in" in launch.log())
    left, begins = map(int, re.search(r"left (\d+) save in (\d+)", launch.log()).groups())
    assert left - begins >= 2.5 * SECONDS, launch.log()
    launch.kill()


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_failed_save_of_ones_own_is_not_made_up_for_by_a_close_when_preempted(world, attempts):
    """The broker tries again at once; the rank that left has nothing whole to save."""
    launch = world.run(2, "own_save_ends.py", attempts, options=("--max-failures", "0"))
    launch.end()
    assert [row.state for row in world.client.checkpoints("job") if row.state == "committed"] == []
    assert "no room for the weights" in world.muster("why", "--job", "job"), launch.logs()
