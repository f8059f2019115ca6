"""Blocks in one call of muster's until Ctrl-C:
wait.py open | step | trains | manager | client | asks | reader | pinned | directory | finished | close
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
    else:
        waits_for_a_save(state)


def waits_for_a_save(state):
    """Rank 1 joins, and never comes to the step that rank 0 saves behind its training."""
    peer = os.environ["MUSTER_RANK"] == "1"
    manager = muster.Manager(state=state, save_behind=True, layout="sharded")
    if not peer:
        other = subprocess.Popen(
            [sys.executable, *sys.argv],
            env={**os.environ, "MUSTER_RANK": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    manager.restore()
    if peer:
        sys.stdin.read()  # until rank 0 is gone
        os._exit(1)
    manager.save(0, force=True)
    assert manager.is_saving and other.poll() is None
    ready()
    if what == "finished":
        manager.wait_until_finished()
    manager.close()


began = time.monotonic()
try:
    blocks_with(muster.TrainingState(w=numpy.zeros(4)))
except KeyboardInterrupt as interrupt:
    notes = getattr(interrupt, "__notes__", None)
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s: {notes}", flush=True)
    sys.exit(130)
