"""A4 with torchrun: SIGTERM to its agent, 20 times. PyTorch is a download of 3 GB: slow."""
# needs: torch

import os
import signal

from conftest import digests
from test_slow_torchrun import TORCHRUN, agent_of
from test_slow_twenty_torch import PATIENCE, TIMES, train, uninterrupted


def test_A4_SIGTERM_to_the_agent_of_torchrun_20_times(world, tmp_path):
    launch = train(world, TORCHRUN)
    world.preempt_again_and_again(
        launch, 2, lambda nodes: os.kill(agent_of(launch), signal.SIGTERM), TIMES, PATIENCE
    )
    assert digests(world.directory / "digests") == uninterrupted(tmp_path / "whole", 0)
