"""Blocks in one call of muster's until Ctrl-C:
wait.py open | step | trains | suspects | manager | client | asks | reader | pinned | directory |
        finished | saves | node | close
"""

import os
import subprocess
import sys
import time

import numpy

import muster

what = sys.argv[1]


def ready():
    print("blocks", flush=True)


def blocks_with(state):
    if what == "client":
        client = muster.Client(timeout=120)
        ready()
        client.jobs()
    elif what == "reader":
        with muster.Reader(job="job", timeout=120) as reader:
            ready()
            reader.next_checkpoint(120)
    elif what == "pinned":
        with muster.Reader(job="job", timeout=120) as reader:
            reader.pin(reader.latest_step(), lease=600)
            ready()
            while True:
                reader.latest_step()
    elif what == "directory":
        ready()
        muster.Reader(directory="nowhere", appear=120)
    elif what == "asks":
        with muster.Manager(state=state, connect_timeout=120) as manager:
            ready()
            manager.all_steps()
    elif what == "manager":
        with muster.Manager(state=state) as manager:
            ready()
            manager.restore()  # rank 1 never comes
    elif what == "open":
        ready()
        muster.Node(state=state, connect_timeout=120)
    elif what == "trains":
        with muster.Node(state=state):
            ready()
            time.sleep(60)
    elif what == "step":
        with muster.Node(state=state) as node:
            ready()
            node.step()
    elif what == "suspects":
        with muster.Node(state=state) as node:
            ready()
            node.fail("Connection reset by peer", suspect=True, wait=600)
    elif what == "node":
        waits_for_a_save_of_a_node(state)
    else:
        waits_for_a_save(state)


class Peer:
    """Rank 1, which joins, and never comes to the step that rank 0 saves behind its training."""

    is_this = os.environ["MUSTER_RANK"] == "1"

    def __init__(self):
        self.process = None
        if not self.is_this:
            self.process = subprocess.Popen(
                [sys.executable, *sys.argv],
                env={**os.environ, "MUSTER_RANK": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )

    def stays(self):
        if self.is_this:
            sys.stdin.read()  # until rank 0 is gone
            os._exit(1)


def waits_for_a_save_of_a_node(state):
    peer = Peer()
    with muster.Node(state=state, save_behind=True, layout="sharded", save_every=1) as node:
        peer.stays()
        node.step()
        node.step()
        assert node.is_saving and peer.process.poll() is None
        ready()
        node.wait_until_saved(120)


def waits_for_a_save(state):
    manager = muster.Manager(state=state, save_behind=True, layout="sharded")
    peer = Peer()
    manager.restore()
    peer.stays()
    manager.save(0, force=True)
    assert manager.is_saving and peer.process.poll() is None
    ready()
    if what == "finished":
        manager.wait_until_finished()
    if what == "saves":
        manager.save(1, force=True)
    manager.close()


began = time.monotonic()
try:
    blocks_with(muster.TrainingState(w=numpy.zeros(4)))
except KeyboardInterrupt as interrupt:
    notes = getattr(interrupt, "__notes__", None)
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s: {notes}", flush=True)
    sys.exit(130)
