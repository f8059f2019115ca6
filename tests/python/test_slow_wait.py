"""A6: Ctrl-C ends the wait for a rank that never comes, in each module for a framework."""
# needs: torch
# needs: accelerate
# needs: transformers
# needs: lightning
# needs: keras

import signal
import time

import pytest
from conftest import PATIENCE, await_that
from test_node import line_with


@pytest.mark.parametrize("of", ["torch", "dcp", "accelerate", "transformers", "lightning", "keras"])
def test_A6_ctrl_c_ends_a_restore_that_waits_for_another_rank_within_a_second(world, of):
    process = world.python("wait_adapter.py", of, env={"MUSTER_WORLD_SIZE": "2"}, cwd=world.directory)
    line_with(process, "blocks")
    await_that("the rank that waits", world.nodes, 3 * PATIENCE)
    time.sleep(0.3)  # into the call: from outside nobody sees it
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    told = line_with(process, "KeyboardInterrupt after")
    took = time.monotonic() - began
    process.communicate(timeout=60)
    assert took < 1.0 and "muster: " in told and process.returncode == 130, (took, told)
