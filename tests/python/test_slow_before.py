"""What a preemption does without muster: the figures of the package's page."""
# needs: lightning
# needs: transformers
# needs: torchdata
# needs: accelerate
# needs: keras
# needs: orbax
# needs: ray

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
UPDATES = 5 * 40  # of the Keras example


class Ranks:
    """Two processes of an example without muster."""

    def __init__(self, directory, example, count=2):
        self.directory = directory
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.processes = []
        for rank in range(count):
            env = {
                **os.environ,
                "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{PROGRAMS.parent}",
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(count),
                "LOCAL_WORLD_SIZE": str(count),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
            command = [sys.executable, str(PROGRAMS / "train_before.py"), example, str(directory)]
            with (directory / f"{rank}.log").open("w") as log:
                process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=directory)
            self.processes.append(process)

    def await_files(self, pattern):
        def there():
            return len(list(self.directory.glob(pattern))) == len(self.processes)

        await_that(pattern, there, PATIENCE)

    def ends(self, patience):
        """The codes of those that end; the others are killed."""
        codes = []
        try:
            for each in self.processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    codes.append(each.wait(patience))
        finally:
            for each in self.processes:
                each.kill()
                each.wait()
        return codes

    def logs(self):
        logs = [self.directory / f"{rank}.log" for rank in range(len(self.processes))]
        return "".join(log.read_text() for log in logs)


@pytest.mark.parametrize("example", ["lightning_ddp", "hf"])
def test_without_muster_no_rank_goes_on(tmp_path, example):
    """The Trainer hangs. Lightning hangs too, or crashes: its handler's broadcast meets another
    collective. The rank that got the signal may also end with code 0: that is a SystemExit.
    """
    ranks = Ranks(tmp_path, example)
    try:
        ranks.await_files("step-*")
        ranks.processes[1].send_signal(signal.SIGTERM)
    finally:
        ends = ranks.ends(STANDS / 2)
    assert "the training ended" not in ranks.logs()
    assert ends.count(0) <= (example == "lightning_ddp"), ranks.logs()
    if example == "hf":
        assert ends == []
        torn = get_last_checkpoint(tmp_path / "trainer")
        assert torn is not None and os.listdir(torn) == ["checkpoint-is-incomplete.txt"]


def test_a_loop_of_pytorch_loses_what_it_did_since_its_last_save(tmp_path):
    import torch

    ranks = Ranks(tmp_path, "torch_ddp")
    try:
        ranks.await_files("step-*")  # 80 steps
        ranks.processes[1].send_signal(signal.SIGTERM)
    finally:
        ends = ranks.ends(STANDS)
    assert -signal.SIGTERM in ends and 0 not in ends and len(ends) == 2, ranks.logs()
    done, saved = int((tmp_path / "done").read_text()), torch.load(tmp_path / "last.pt")["step"]
    print(f"{done} steps were done, {saved} are saved")
    assert saved == 50 and done >= 80


def torchrun(directory):
    """torchrun with two ranks of that loop, once both have passed step 80."""
    launch = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    program = (str(PROGRAMS / "train_before.py"), "torch_ddp", str(directory))
    env = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{PROGRAMS.parent}"}
    with (directory / "log").open("w") as log:
        process = subprocess.Popen([*launch, *program], env=env, stdout=log, stderr=log)
    await_that("step 80", lambda: len(list(directory.glob("step-*"))) == 2, PATIENCE)
    return process


def test_torchrun_that_is_told_to_end_saves_nothing_and_ends_as_a_failure(tmp_path):
    import torch

    process = torchrun(tmp_path)
    try:
        process.send_signal(signal.SIGTERM)
        code = process.wait(STANDS)
    finally:
        process.kill()
    done, saved = int((tmp_path / "done").read_text()), torch.load(tmp_path / "last.pt")["step"]
    print(f"exit code {code}: {done} steps were done, {saved} are saved")
    assert code == 1 and "SignalException" in (tmp_path / "log").read_text()
    assert saved == 50 and done >= 80


def test_ray_does_again_what_was_done_since_the_last_checkpoint(tmp_path):
    process = Ranks(tmp_path, "ray_train", 1)
    assert process.ends(PATIENCE) == [0], process.logs()
    done = len((tmp_path / "updates").read_text())
    print(f"{done} steps were computed for 200")
    assert 230 <= done < 250  # those from 51 to 80 and later twice


def test_a_save_of_dcp_that_is_killed_leaves_a_folder_that_ends_the_next_start(tmp_path):
    first = Ranks(tmp_path, "fsdp_dcp")
    assert 0 not in first.ends(PATIENCE)
    assert (tmp_path / "1/.metadata").exists()
    assert (tmp_path / "2").exists() and not (tmp_path / "2/.metadata").exists()
    again = Ranks(tmp_path, "fsdp_dcp")
    assert 0 not in again.ends(PATIENCE)
    assert ".metadata" in again.logs(), again.logs()


def test_save_state_of_accelerate_keeps_one_position_of_two(tmp_path):
    ranks = Ranks(tmp_path, "accelerate_loop")
    assert ranks.ends(PATIENCE) == [0, 0], ranks.logs()
    names = os.listdir(tmp_path / "state")
    assert len([name for name in names if name.startswith("random_states")]) == 2
    assert len([name for name in names if name.startswith("dl_state_dict")]) == 1, names


def test_keras_restores_the_epoch_alone(tmp_path):
    Ranks(tmp_path, "keras_fit", 1).ends(PATIENCE)
    again = Ranks(tmp_path, "keras_fit", 1)
    assert again.ends(PATIENCE) == [0], again.logs()
    updates = len((tmp_path / "updates").read_text())
    assert updates == UPDATES + 20


def test_orbax_hears_one_notice(tmp_path):
    ranks = Ranks(tmp_path, "jax_orbax")
    try:
        ranks.await_files("step-*-20")
        ranks.processes[1].send_signal(signal.SIGTERM)
        ranks.await_files("step-*-250")
        ranks.processes[1].send_signal(signal.SIGTERM)
    finally:
        ends = ranks.ends(PATIENCE)
    assert ends == [0, 0], ranks.logs()
    saved = sorted(int(path.name) for path in (tmp_path / "checkpoints").iterdir())
    print(f"saved: {saved} of 400")
    assert max(saved) < 250, saved
