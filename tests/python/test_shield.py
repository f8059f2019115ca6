"""muster.shield: a helper process ends by its parent's SIGTERM alone."""

import os
import signal
import subprocess
import sys

from conftest import BUILD

PROGRAM = """
import os, signal, sys, time
import muster
signal.signal(signal.SIGTERM, lambda *_: print("the handler of before", flush=True))
muster.shield()
muster.shield(1)  # once more changes nothing
print(os.getpid(), flush=True)
while sys.stdin.readline() == "go on\\n":
    print("goes on", flush=True)
"""


def helper():
    env = {**os.environ, "PYTHONPATH": str(BUILD / "client/python"), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert int(process.stdout.readline()) == process.pid
    return process


def test_a_strangers_signal_is_ignored_and_the_parents_is_not():
    process = helper()
    subprocess.run(["kill", "-TERM", str(process.pid)], check=True)  # a stranger: not the parent
    process.stdin.write("go on\n")  # two signals that wait are one: the first is taken by then
    process.stdin.flush()
    assert process.stdout.readline() == "goes on\n"
    process.send_signal(signal.SIGTERM)  # while it waits for its next line
    assert process.stdout.readline() == "the handler of before\n"
    text, _ = process.communicate("end\n", timeout=60)
    assert process.returncode == 0 and text == ""  # heard once


ORPHAN = """
import os, signal, time
import muster
ready, tell = os.pipe()
parent = os.getpid()
if os.fork() == 0:
    muster.shield()
    os.write(tell, b"x")
    while os.getppid() == parent:
        time.sleep(0.01)
    print(os.getpid(), flush=True)
    signal.pause()
os.read(ready, 1)
os._exit(0)
"""


def test_without_its_parent_a_helper_ends_by_any_signal():
    env = {**os.environ, "PYTHONPATH": str(BUILD / "client/python")}
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHAN], env=env, stdout=subprocess.PIPE, text=True
    )
    os.kill(int(process.stdout.readline()), signal.SIGTERM)
    text, _ = process.communicate(timeout=60)  # until the orphan has gone too
    assert text == "" and process.returncode == 0


STARTED = """
import multiprocessing, os, signal, subprocess, sys
import muster
context = multiprocessing.get_context("fork")
ready, tell = os.pipe()

def worker(init, go):  # as a DataLoader's: its init comes some time behind the fork
    os.write(tell, b"x")
    os.read(go, 1)
    if init is not None:
        init(0)

def started(init):
    go, goes = os.pipe()
    process = context.Process(target=worker, args=(init, go))
    process.start()
    os.read(ready, 1)
    subprocess.run(["kill", "-TERM", str(process.pid)], check=True)  # a stranger
    os.write(goes, b"x")
    process.join()
    return process.exitcode

print(started(muster.shield), started(None))
print(signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


def test_a_signal_between_the_fork_and_the_shield_is_ignored_too():
    env = {**os.environ, "PYTHONPATH": str(BUILD / "client/python")}
    text = subprocess.check_output([sys.executable, "-c", STARTED], env=env, text=True)
    assert text == f"0 {-signal.SIGTERM}\nFalse\n"
