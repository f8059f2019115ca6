"""From SIGTERM to one process until the last one stands at the agreed step: muster beside JAX'
preemption sync point, in the same run.
"""
# needs: jax

import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import time

import pytest
from conftest import PATIENCE, PROGRAMS, await_that

TIMES = 3


def took(side, directory, count, log):
    """Seconds, for processes of one side that are about to take their steps; log() is what they
    wrote.
    """

    def all_told(name, patience):
        def told():
            paths = [directory / f"{name}-{process}" for process in range(count)]
            return paths if all(path.exists() for path in paths) else None

        try:
            return await_that(f"{side}: {name} of all {count}", told, patience)
        except pytest.fail.Exception as missing:
            found = sorted(path.name for path in directory.glob(f"{name}-*"))
            pytest.fail(f"{missing}, only {found}:\n{log()}")

    ready = all_told("ready", 3 * PATIENCE)
    began = time.monotonic()
    os.kill(int(ready[1].read_text()), signal.SIGTERM)
    stands = all_told("stands", PATIENCE)
    return max(float(path.read_text()) for path in stands) - began


def of_jax(directory, count):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
    words = [sys.executable, str(PROGRAMS / "agree.py"), "jax", str(directory), address, str(count)]
    path = directory / "log"
    with path.open("w") as log:
        processes = [
            subprocess.Popen([*words, str(process)], stdout=log, stderr=log)
            for process in range(count)
        ]
    try:
        return took("JAX", directory, count, path.read_text)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def of_muster(world, directory, count):
    launch = world.run(count, "agree.py", "muster", directory)
    try:
        return took("muster", directory, count, launch.logs)
    finally:
        launch.kill()  # it has begun the next launch


@pytest.mark.parametrize("count", [4, 8])
def test_the_last_process_stands_at_the_agreed_step(world, tmp_path, count):
    seconds = {"jax": [], "muster": []}
    for time_ in range(TIMES):
        for name, of in (("jax", of_jax), ("muster", lambda *args: of_muster(world, *args))):
            directory = pathlib.Path(tmp_path / f"{name}-{time_}")
            directory.mkdir()
            seconds[name].append(of(directory, count))
    jax, muster = (statistics.median(seconds[name]) for name in ("jax", "muster"))
    print(f"{count} processes: JAX {1000 * jax:.0f} ms, muster {1000 * muster:.1f} ms")
    assert muster < jax / 20, seconds
