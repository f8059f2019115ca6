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


def took(directory, count):
    """Seconds, for processes that are about to take their steps."""

    def all_told(name):
        paths = [directory / f"{name}-{process}" for process in range(count)]
        return paths if all(path.exists() for path in paths) else None

    ready = await_that("the steps of all", lambda: all_told("ready"), 3 * PATIENCE)
    began = time.monotonic()
    os.kill(int(ready[1].read_text()), signal.SIGTERM)
    stands = await_that("the agreed step", lambda: all_told("stands"))
    return max(float(path.read_text()) for path in stands) - began


def of_jax(directory, count):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
    words = [sys.executable, str(PROGRAMS / "agree.py"), "jax", str(directory), address, str(count)]
    with (directory / "log").open("w") as log:
        processes = [
            subprocess.Popen([*words, str(process)], stdout=log, stderr=log)
            for process in range(count)
        ]
    try:
        return took(directory, count)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def of_muster(world, directory, count):
    launch = world.run(count, "agree.py", "muster", directory)
    try:
        return took(directory, count)
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
    assert muster < jax / 5, seconds
