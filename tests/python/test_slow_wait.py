"""A6: Ctrl-C ends the wait for a rank that never comes, in each module for a framework."""
# needs: torch
# needs: accelerate
# needs: transformers
# needs: lightning
# needs: keras
# needs: jax

import datetime
import os
import signal
import socket
import threading
import time

import pytest
import torch
from conftest import PATIENCE, await_that
from interrupted import WORDS
from test_node import line_with

import muster
import muster.torch

JOINS = [word for word in WORDS["wait_adapter.py"] if not word.endswith(("meets", "preempt"))]


def interrupt(process):
    """What it says of its KeyboardInterrupt; it has to come within a second."""
    time.sleep(0.3)  # into the call: from outside nobody sees it
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    deadline = threading.Timer(PATIENCE / 2, process.kill)
    deadline.start()
    told = line_with(process, "KeyboardInterrupt after")
    deadline.cancel()
    took = time.monotonic() - began
    rest, _ = process.communicate(timeout=60)
    assert took < 1.0 and process.returncode == 130, (took, told, rest)
    return told


@pytest.mark.parametrize("of", JOINS)
def test_A6_ctrl_c_ends_a_restore_that_waits_for_another_rank_within_a_second(world, of):
    process = world.python("wait_adapter.py", of, env={"MUSTER_WORLD_SIZE": "2"}, cwd=world.directory)
    line_with(process, "blocks")
    await_that("the rank that waits", world.nodes, 3 * PATIENCE)
    assert "muster: " in interrupt(process)


def listens(port):
    with socket.socket() as there:
        return there.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def place():
    """MASTER_ADDR and MASTER_PORT of a port where nobody listens yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("of", ["torch_meets", "jax_meets"])
def test_A6_ctrl_c_ends_the_wait_of_ranks_that_meet_within_a_second(world, place, of, rank):
    env = {"MUSTER_WORLD_SIZE": "2", "MUSTER_RANK": str(rank), **place}
    process = world.python("wait_adapter.py", of, env=env, cwd=world.directory)
    line_with(process, "blocks")
    if rank == 0:
        await_that("rank 0's store", lambda: listens(int(place["MASTER_PORT"])))
    interrupt(process)


def test_A6_ctrl_c_ends_the_wait_at_a_file_for_another_rank_within_a_second(world, tmp_path):
    env = {"MUSTER_WORLD_SIZE": "2", "MUSTER_LOCAL_SIZE": "2", "TMPDIR": str(tmp_path)}
    env["MUSTER_LIFE_FILE"] = str(tmp_path / "launch" / "life")
    process = world.python("wait_adapter.py", "torch_meets", env=env, cwd=world.directory)
    line_with(process, "blocks")
    await_that("the file", (tmp_path / "launch-0.torch").exists)
    interrupt(process)


def test_A6_ctrl_c_ends_a_test_s_wait_for_a_job_within_a_second(world):
    env = {name: os.environ[name] for name in ("MUSTER", "MUSTERD")}
    process = world.python("wait_adapter.py", "preempt", env=env, cwd=world.directory)
    line_with(process, "blocks")
    await_that("the job's rank", (world.directory / "x" / "logs" / "0.log").exists)
    interrupt(process)


def is_rank(rank, monkeypatch, place):
    """This process is one of two."""
    env = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    env.update({f"MUSTER_{name}": value for name, value in env.items()})
    for name, value in {**env, **place}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("rank, says", [(0, "1 of 2 ranks came"), (1, "rank 0 did not come")])
def test_a_meeting_without_all_ranks_ends_with_the_timeout_and_says_who_came(
    monkeypatch, place, rank, says
):
    is_rank(rank, monkeypatch, place)
    began = time.monotonic()
    says += f".*:{place['MASTER_PORT']} within 0.5 s"
    with pytest.raises(muster.WaitTimeout, match=says) as caught:
        muster.torch.init_process_group("gloo", timeout=datetime.timedelta(seconds=0.5))
    assert time.monotonic() - began < 3.0 and "a longer timeout" in caught.value.advice
    assert not torch.distributed.is_initialized()


def test_a_restarted_rank_leaves_the_store_of_the_former_launch(monkeypatch, place):
    """Its rank 0 lives on: all had come to it, and this rank was one of them."""
    port = int(place["MASTER_PORT"])
    former = torch.distributed.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    former = torch.distributed.PrefixStore("muster", former)
    former.set("rank 1", "another process")
    former.add("came", 2)
    is_rank(1, monkeypatch, place)
    with pytest.raises(muster.WaitTimeout, match="rank 0 did not come"):
        muster.torch.init_process_group("gloo", timeout=datetime.timedelta(seconds=0.5))
