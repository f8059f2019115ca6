"""Other launchers under `muster run --launcher`: accelerate's, by torchrun and by Open MPI, and
DeepSpeed's. torchrun has tests of its own.
"""
# needs: accelerate
# needs: torchdata

import importlib.util
import os
import shutil
import signal
import socket
import sys

import pytest
from conftest import World, digests

PATIENCE = 180.0  # two launches that each import PyTorch and the launcher's own, on two loaded cores
STEPS, SECONDS = 200, 0.05


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def accelerate(*words):
    launch = (sys.executable, "-m", "accelerate.commands.launch", "--num_processes", "2")
    plain = ("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")
    place = ("--main_process_ip", "127.0.0.1", "--main_process_port", str(free_port()))
    return (*launch, *plain, *place, *words)


def by_torchrun(directory):
    return "train_accelerate.py", accelerate("--multi_gpu")  # which is torchrun, with gloo as well


def by_mpirun(directory):
    if shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed (apt-get install openmpi-bin)")
    hosts = directory / "hosts"
    hosts.write_text("localhost slots=2\n")
    return "train_accelerate.py", accelerate("--cpu", "--mpirun_hostfile", str(hosts))


def by_deepspeed(directory):
    if importlib.util.find_spec("deepspeed") is None:
        pytest.skip("deepspeed is not installed; `./tools/dev python --slow` installs it")
    run = (sys.executable, "-m", "deepspeed.launcher.runner", "--num_gpus", "2")
    return "train_ddp.py", (*run, "--no_local_rank", "--master_port", str(free_port()))


def train(world, program, ranks, seconds):
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = (program, STEPS, seconds, world.directory / "digests")
    return world.run(ranks, *words, options=("--max-failures", "0"), env=root)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    found = {}
    for program in ("train_accelerate.py", "train_ddp.py"):
        world = World(tmp_path_factory.mktemp("uninterrupted"))
        train(world, program, 2, 0).finish(PATIENCE)
        world.end()
        found[program] = digests(world.directory / "digests")
    return found


@pytest.mark.parametrize("launcher", [by_torchrun, by_mpirun, by_deepspeed])
@pytest.mark.parametrize("how", ["notice", "one rank"])
def test_A4_a_launcher_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(
    world, uninterrupted, launcher, how
):
    program, words = launcher(world.directory)
    launch = train(world, program, words, SECONDS)
    nodes = world.await_step(10, ranks=2, patience=PATIENCE)
    if how == "notice":
        world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    else:
        os.kill(nodes[1].pid, signal.SIGTERM)
    launch.finish(PATIENCE)
    assert "(2 launches, 1 preemption, 0 failures)" in launch.stderr
    assert digests(world.directory / "digests") == uninterrupted[program]
    assert len(world.client.checkpoints("job")) == 1
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
