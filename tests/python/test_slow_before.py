"""What SIGTERM to one of two ranks does without muster: the figures of the package's page. The
Trainer hangs. Lightning hangs too, or crashes: its handler's broadcast meets another collective.
"""
# needs: lightning
# needs: transformers
# needs: torchdata

import contextlib
import os
import signal
import socket
import subprocess
import sys

import pytest
from conftest import PROGRAMS, await_that
from transformers.trainer_utils import get_last_checkpoint

PATIENCE = 180.0  # two processes that each import PyTorch, on two loaded cores
STANDS = 60.0  # seconds; what does not end in them hangs


@pytest.mark.parametrize("example", ["lightning_ddp", "hf"])
def test_without_muster_no_rank_goes_on(tmp_path, example):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ranks = []
    for rank in range(2):
        env = {
            **os.environ,
            "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{PROGRAMS.parent}",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        command = [sys.executable, str(PROGRAMS / "train_before.py"), example, str(tmp_path)]
        log = (tmp_path / f"{rank}.log").open("w")
        ranks.append(subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=tmp_path))
    try:
        await_that("steps of both", lambda: len(list(tmp_path.glob("step-*"))) == 2, PATIENCE)
        ranks[1].send_signal(signal.SIGTERM)
        ends = []
        for each in ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                ends.append(each.wait(STANDS / 2))
    finally:
        for each in ranks:
            each.kill()
            each.wait()
    logs = [(tmp_path / f"{rank}.log").read_text() for rank in range(2)]
    assert "the training ended" not in "".join(logs), logs
    assert 0 not in ends, logs
    if example == "hf":
        assert ends == []
        torn = get_last_checkpoint(tmp_path / "trainer")
        assert torn is not None and os.listdir(torn) == ["checkpoint-is-incomplete.txt"]
